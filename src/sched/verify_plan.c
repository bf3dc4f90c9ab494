/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Checks the rules of a plan, independently of the planners.
 *
 * Groups run in the order of supersteps.  A value that a group reads was stored by an earlier one, or is a
 * target of the group itself, read at the same element that is computed.  It follows that groups are
 * convex (no path leaves a group and comes back) and that no result of a reduction passes from one column
 * or row of a group to another, which may be computed by another thread.  What is stored is a result, or
 * another group reads it. */
#include "sched/plan.h"

#include <stdarg.h>
#include <stdio.h>

struct verifier {
	const struct sched_plan *plan;
	const struct sub_program *p;
	struct diags *diags;
	struct sched_walk walk;
	bool **read;	 /* [body][value]: by another group, or at another element than is computed */
	bool *expensive; /* by value of the current body */
	bool ok;
};

__attribute__((format(printf, 4, 5))) static void report_fault(struct verifier *v, int body, sub_ref r,
							       const char *format, ...)
{
	char text[200];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	v->ok = diag_add(v->diags, DIAG_INVALID_PLAN, (struct diag_at){0},
			 "this is a fault of the compiler; please report it with the model and its schedule",
			 "%s: %s: value %%%u: %s", v->p->name, v->p->bodies.at[body].name, r.i, text);
}

static const struct sched_group *group_of(const struct verifier *v, int body, sub_ref r)
{
	int group = sched_group_of(v->plan, body, r);
	return group < 0 ? NULL : &v->plan->groups.at[group];
}

static const struct sched_values *values_of(const struct verifier *v, int body)
{
	return &v->plan->values[body];
}

/* --- what is stored --- */

static void check_shape(struct verifier *v, const struct sched_group *g, sub_ref r)
{
	const struct sub_value *value = sub_at(v->p, r);
	int leading = sub_leading_dims(v->p, r);
	bool same = g->dims == value->vars - leading && g->rows + g->edges == leading;
	for (int i = 0; same && i < g->dims; i++)
		same = g->extent[i] == v->p->vars.at[value->var[leading + i]].extent;
	if (!same)
		report_fault(v, g->body, r, "group %s has another shape", g->name);
}

static void check_target(struct verifier *v, const struct sched_group *g, sub_ref r)
{
	const struct sched_values *values = values_of(v, g->body);
	const struct sched_fact *f = sched_fact(values, r);
	if (group_of(v, g->body, r) != g)
		report_fault(v, g->body, r, "is a target of two groups, or of none that knows it");
	else if (f->result)
		check_shape(v, g, r);
	else if (!f->stored)
		report_fault(v, g->body, r, "is neither a result nor stored, but a target of %s", g->name);
	else if (f->chain_end.i)
		report_fault(v, g->body, r, "is a step towards %%%u, and stored", f->chain_end.i);
	else if (sched_is_index(v->p, values, r))
		report_fault(v, g->body, r, "is data movement with one consumer, and stored");
	else
		check_shape(v, g, r);
}

/* --- what is read --- */

static void check_read(struct verifier *v, const struct sched_group *g, const struct sched_read *read)
{
	int body = g->body;
	const struct sched_group *from = group_of(v, body, read->value);
	v->read[body][sched_fact(values_of(v, body), read->value) - values_of(v, body)->fact] |=
	    !read->inside || from != g;
	if (!from)
		report_fault(v, body, read->value, "is read by %s, and nothing computes it", g->name);
	else if (from == g && !read->inside)
		report_fault(v, body, read->value, "crosses from one element of %s to another", g->name);
	else if (from != g && from->superstep >= g->superstep)
		report_fault(v, body, read->value, "is read by %s in superstep %d before %s has stored it",
			     g->name, g->superstep, from->name);
}

/* Checks a value that is computed in the nest of a target. */
static void check_fused(struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	struct verifier *v = w->context;
	const struct sched_values *values = values_of(v, w->body);
	if (!v->ok || !sub_has_leading_dim(v->p, r) || sched_is_index(v->p, values, r))
		return;
	double most = sched_fact(values, r)->recomputed ? SCHED_MAX_AGAIN : 1;
	if (w->instances[r.i] > SCHED_MAX_PLACES + 1)
		report_fault(v, w->body, r, "is computed at more than %d places for %%%u", SCHED_MAX_PLACES,
			     w->target.i);
	else if (v->expensive[sched_fact(values, r) - values->fact] && !sched_is_inside(w, r, index) &&
		 sched_times_computed(w, r, index) > most)
		report_fault(v, w->body, r, "is computed %g times for %%%u",
			     sched_times_computed(w, r, index), w->target.i);
}

/* Marks expensive values, independently of the planner's marks. */
static void mark_expensive(struct verifier *v, const struct sched_values *values)
{
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *value = sub_at(v->p, values->value[i]);
		v->expensive[i] = sub_traits_of(value->op)->price == SUB_EXPENSIVE && !values->fact[i].in_place;
		for (int a = 0; a < value->args; a++) {
			const struct sched_fact *arg = sched_fact(values, value->arg[a].value);
			v->expensive[i] |= v->expensive[arg - values->fact] && !arg->stored;
		}
	}
}

/* What threads compute again, each for itself, must not be a result, nor read weights again. */
static void check_local(struct verifier *v, const struct sched_group *g)
{
	for (size_t t = 0; g->local && v->ok && t < g->targets.n; t++)
		if (sched_fact(values_of(v, g->body), g->targets.at[t])->result || g->products || !g->rows)
			report_fault(v, g->body, g->targets.at[t], "every reader of %s would compute it", g->name);
}

/* The positions that a kernel is called for are those of all that it computes. */
static void check_sorted(struct verifier *v, const struct sched_group *g)
{
	if (!g->sort)
		return;
	bool known = g->sort > 0 && (size_t)g->sort <= v->plan->sorts.n && g->targets.n;
	if (!known || g->heads.n || g->local || !g->rows || v->plan->sorts.at[g->sort - 1].edges != g->edges)
		report_fault(v, g->body, g->targets.at[0], "%s has rows that its sort does not have", g->name);
}

/* Checks that words that are read in place are words of what is in memory. */
static void check_words(struct verifier *v, int body)
{
	const struct sched_values *values = values_of(v, body);
	for (int i = 0; v->ok && i < values->n; i++) {
		struct sched_word w;
		if (!values->fact[i].in_place)
			continue;
		if (values->fact[i].stored || sub_at(v->p, values->value[i])->op != SUB_APPEND8)
			report_fault(v, body, values->value[i], "is read in place, and stored or no word");
		else if (sched_find_word(v->p, values->value[i], &w) && sub_class_of(sub_at(v->p, w.bytes)->op) != SUB_SOURCE &&
			 !sched_fact(values, w.bytes)->stored)
			report_fault(v, body, values->value[i], "is read in place, but its bytes are not stored");
	}
}

static void check_group(struct verifier *v, size_t at)
{
	const struct sched_group *g = &v->plan->groups.at[at];
	check_local(v, g);
	check_sorted(v, g);
	if (at && v->plan->groups.at[at - 1].body == g->body &&
	    v->plan->groups.at[at - 1].superstep > g->superstep)
		report_fault(v, g->body, g->targets.at[0], "%s stands behind a later superstep", g->name);
	if (!at || v->plan->groups.at[at - 1].body != g->body)
		mark_expensive(v, values_of(v, g->body));
	for (size_t t = 0; v->ok && t < g->targets.n; t++)
		check_target(v, g, g->targets.at[t]);
	for (size_t t = 0; v->ok && t < g->targets.n; t++) {
		sched_walk_target(&v->walk, g->body, g->targets.at[t]);
		for (size_t i = 0; v->ok && i < v->walk.reads.n; i++)
			check_read(v, g, &v->walk.reads.at[i]);
	}
}

/* --- what is missing --- */

static void check_body(struct verifier *v, int body)
{
	const struct sched_values *values = values_of(v, body);
	for (int i = 0; v->ok && i < values->n; i++)
		if (values->fact[i].result && !group_of(v, body, values->value[i]))
			report_fault(v, body, values->value[i], "is a result that no group computes");
	for (int i = 0; v->ok && i < values->n; i++)
		if (!values->fact[i].result && group_of(v, body, values->value[i]) && !v->read[body][i])
			report_fault(v, body, values->value[i], "is stored, and nothing reads it");
}

/* --- what is computed ahead --- */

/* What stores a state ahead may read other nodes of the input; a hoisted value may not. */
static bool needs_state(const struct verifier *v, int body)
{
	if (v->p->bodies.at[body].call)
		return false;
	if (v->p->bodies.at[body].stores.at[0].to == SUB_TO_STATE)
		return move_needs_order(v->p, &v->p->bodies.at[body]);
	const bool *recursive = sub_find_recursive(v->p, v->p->bodies.at[body].traversal);
	for (int i = 0; i < values_of(v, body)->n; i++)
		if (recursive[values_of(v, body)->value[i].i])
			return true;
	return false;
}

/* The body that computes a hoisted input; -1 = none before body `before`. */
static int find_writer(const struct verifier *v, int input, int before)
{
	for (int b = 0; b < before; b++) {
		if (sub_call_writes(v->p, &v->p->bodies.at[b], input))
			return b;
		for (size_t i = 0; i < v->p->bodies.at[b].stores.n; i++) {
			const struct sub_store *s = &v->p->bodies.at[b].stores.at[i];
			if (s->to == SUB_TO_INPUT && s->which == input)
				return b;
		}
	}
	return -1;
}

/* Checks that bodies ahead of the recursion need no state, and that hoisted inputs are computed for all
 * nodes that read them. */
static void check_ahead(struct verifier *v, int body)
{
	const struct sched_values *values = values_of(v, body);
	enum sub_domain domain = v->p->bodies.at[body].domain;
	if ((domain == SUB_AHEAD || domain == SUB_AHEAD_INNER) && needs_state(v, body))
		report_fault(v, body, values->value[0],
			     "is ahead of the recursion with others of which one needs a state");
	for (int i = 0; v->ok && i < values->n; i++) {
		const struct sub_value *value = sub_at(v->p, values->value[i]);
		if (value->op != SUB_VECTOR || !v->p->inputs.at[value->which].hoisted)
			continue;
		int writer = find_writer(v, value->which, body);
		if (writer < 0 || (v->p->bodies.at[writer].domain == SUB_AHEAD_INNER && domain != SUB_INNER))
			report_fault(v, body, values->value[i],
				     "was not computed ahead for all nodes that read it");
	}
}

/* --- what children keep for their parents --- */

static bool stores_state(const struct sub_body *b, int state)
{
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].to == SUB_TO_STATE && b->stores.at[i].which == state)
			return true;
	return false;
}

static bool reads_child(const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && v->arg[0].vars &&
	       (v->map[0].function == SUB_CHILD || v->map[0].function == SUB_EDGE_CHILD);
}

/* Whether all bodies of leaves and inner nodes of the traversal store the state. */
static bool is_kept(const struct sub_program *p, int traversal, int state)
{
	for (size_t i = 0; i < p->bodies.n; i++) {
		const struct sub_body *b = &p->bodies.at[i];
		if (b->traversal == traversal && (b->domain == SUB_LEAF || b->domain == SUB_INNER) &&
		    !stores_state(b, state))
			return false;
	}
	return true;
}

/* Checks that all nodes store derived states, and that these are read of children only. */
static void check_derived(struct verifier *v, int body)
{
	const struct sched_values *values = values_of(v, body);
	int traversal = v->p->bodies.at[body].traversal;
	for (int i = 0; v->ok && i < values->n; i++) {
		const struct sub_value *value = sub_at(v->p, values->value[i]);
		for (int a = 0; a < value->args; a++) {
			const struct sub_value *from = sub_at(v->p, value->arg[a].value);
			if (from->op != SUB_STATE || !v->p->states.at[from->which].derived)
				continue;
			if (!reads_child(value))
				report_fault(v, body, values->value[i], "is read, but not of a child");
			else if (!is_kept(v->p, traversal, from->which))
				report_fault(v, body, values->value[i],
					     "was not kept by all nodes that are read");
		}
	}
}

bool sched_verify(const struct sched_plan *plan, struct diags *diags)
{
	const struct sub_program *p = plan->p;
	struct verifier v = {.plan = plan, .p = p, .diags = diags, .ok = true};
	v.expensive = ARENA_ARRAY(p->arena, bool, p->values.n);
	v.read = ARENA_ARRAY(p->arena, bool *, p->bodies.n);
	for (size_t b = 0; b < p->bodies.n; b++)
		v.read[b] = ARENA_ARRAY(p->arena, bool, plan->values[b].n);
	sched_walk_init(&v.walk, p->arena, plan);
	v.walk.visit = check_fused;
	v.walk.context = &v;
	for (size_t g = 0; v.ok && g < plan->groups.n; g++)
		check_group(&v, g);
	for (size_t b = 0; b < p->bodies.n; b++)
		check_body(&v, b);
	for (size_t b = 0; v.ok && b < p->bodies.n; b++)
		check_ahead(&v, b);
	for (size_t b = 0; v.ok && b < p->bodies.n; b++)
		check_words(&v, b);
	for (size_t b = 0; v.ok && b < p->bodies.n; b++)
		check_derived(&v, b);
	return v.ok;
}
