/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Values of leaves, computed as inner nodes compute theirs.
 *
 *     leaf:   %5[n,i] = accumulate_j b[i], W[i,j], x[n,j]
 *     inner:  %9[n,j] = sum_e %8[n,e,j]
 *             %12[n,i] = accumulate_j %5[n,i], U[i,j], %9[n,j]
 *
 * A leaf has no edges: there a sum over them is zero, and an accumulation over them what it begins with.  Of a leaf %9 is zero, so
 * %12 is %5, and the tanh of %12 that of %5.  Linear values are compared as those of other mutants are, of both nodes with this put in
 * place of each reduction over edges; an operator that is not linear gives the same of equal arguments. */
#include "mutate/product_mutant.h"

#include <string.h>

struct emptying {
	struct sub_program *p;
	size_t values; /* of the program before */
	sub_ref *now;  /* by value: what it is where a node has no edges */
	const char *why;
};

/* --- values without edges --- */

static bool reduces_edges(const struct sub_program *p, const struct sub_value *v)
{
	return v->reduced.n && p->vars.at[v->reduced.var[0]].set == SUB_EDGE;
}

/* Whether a value reads an edge, or a child, of the node itself: a leaf has none. */
static bool follows_edge(const struct sub_program *p, const struct sub_value *v)
{
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++) {
		const struct sub_map *m = &v->map[i];
		bool token = m->function == SUB_TOKEN && p->inputs.at[m->which].on_edge;
		if (token || m->function == SUB_CHILD || m->function == SUB_EDGE_CHILD || m->function == SUB_SLOT_EDGE)
			return true;
	}
	return false;
}

/* A use as a value with the variables of another, which has all of its own. */
static sub_ref spread_use(struct sub_program *p, const struct sub_use *u, const struct sub_value *like)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(p, u->value)}, .vars = like->vars, .map = map};
	if (u->vars == like->vars && memcmp(u->var, like->var, (size_t)u->vars * sizeof *u->var) == 0)
		return u->value;
	memcpy(v.var, like->var, (size_t)like->vars * sizeof *like->var);
	for (int i = 0; i < u->vars; i++)
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = u->var[i], .scale = 1};
	return sub_add(p, v, NULL);
}

static sub_ref empty_value(struct emptying *, sub_ref);

static sub_ref empty_reduction(struct emptying *e, const struct sub_value *v)
{
	struct sub_use begin = {.vars = 0};
	if (v->dtype != DTYPE_F32 || (v->op != SUB_SUM && v->op != SUB_ACCUMULATE)) {
		e->why = "it reduces edges by another operator than a sum";
		return (sub_ref){0};
	}
	if (v->op == SUB_ACCUMULATE) {
		begin = v->arg[0];
		begin.value = empty_value(e, begin.value);
	} else {
		begin.value = sub_add(e->p, (struct sub_value){.op = SUB_CONST}, NULL);
	}
	if (e->why)
		return (sub_ref){0};
	return spread_use(e->p, &begin, v);
}

static sub_ref empty_value(struct emptying *e, sub_ref r)
{
	if (r.i >= e->values || e->now[r.i].i || e->why)
		return r.i >= e->values ? r : e->now[r.i];
	struct sub_value v = *sub_at(e->p, r);
	if (reduces_edges(e->p, &v))
		return e->now[r.i] = empty_reduction(e, &v);
	if (follows_edge(e->p, &v))
		e->why = "it reads a child by its place";
	for (int a = 0; a < v.args && !e->why; a++)
		v.arg[a].value = empty_value(e, v.arg[a].value);
	if (!e->why)
		e->now[r.i] = sub_add(e->p, v, NULL);
	return e->now[r.i];
}

/* What values are where a node has no edges.  Returns why that is not known of one, NULL = *empty has them. */
static const char *empty_edges(struct sub_program *p, const sub_ref *value, int n, sub_ref *empty)
{
	struct emptying e = {.p = p, .values = p->values.n, .now = ARENA_ARRAY(p->arena, sub_ref, p->values.n)};
	for (int i = 0; i < n; i++)
		empty[i] = empty_value(&e, value[i]);
	return e.why;
}

/* --- what a leaf has to have --- */

/* Marks the inputs of nodes that a value needs. */
static void mark_inputs(const struct sub_program *p, sub_ref r, bool *seen, bool *needed)
{
	const struct sub_value *v = sub_at(p, r);
	if (seen[r.i])
		return;
	seen[r.i] = true;
	if (v->op == SUB_VECTOR)
		needed[v->which] = true;
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		if (v->map[i].function == SUB_TOKEN)
			needed[v->map[i].which] = true;
	for (int a = 0; a < v->args; a++)
		mark_inputs(p, v->arg[a].value, seen, needed);
}

static bool needs_further_input(const struct sub_program *p, sub_ref original, sub_ref like)
{
	bool *needed[2], further = false;
	for (int k = 0; k < 2; k++) {
		needed[k] = ARENA_ARRAY(p->arena, bool, p->inputs.n + 1);
		mark_inputs(p, k ? like : original, ARENA_ARRAY(p->arena, bool, p->values.n), needed[k]);
	}
	for (size_t i = 0; i < p->inputs.n; i++)
		further |= needed[1][i] && !needed[0][i] && !p->inputs.at[i].on_edge;
	return further;
}

/* --- the proof --- */

struct likeness {
	struct sub_program *p;
	struct mutate_form *forms;
	size_t room; /* values that `forms` has room for */
	int rounds;
	bool *of_leaf; /* by value, of those that it has an entry for: whether the value of leaves needs it */
	size_t values;
	sub_ref *now; /* by value: what it is proved to be */
	struct mutate_comparison *proof; /* all comparisons that found values to be equal */
	struct mutate_census *census;	 /* of all elements of these, NULL = they are not computed */
	const char *why;
};

static bool same_vars(const struct sub_value *a, const struct sub_value *b)
{
	return a->dtype == b->dtype && a->vars == b->vars && memcmp(a->var, b->var, (size_t)a->vars * sizeof *a->var) == 0;
}

/* Computes all elements of two values that were proved to be equal, if that is wanted; false if there are too many. */
static bool count_elements(struct likeness *l, sub_ref a, sub_ref b)
{
	struct mutate_census census;
	struct mutate_comparison none = {.vars = sub_at(l->p, a)->vars};
	if (!l->census)
		return true;
	if (!mutate_compute_most(l->p, l->forms, a, b, &none, 0, MUTATE_MAX_STEPS, &census))
		return false;
	l->census->elements += census.elements;
	l->census->missed += census.missed;
	return true;
}

/* Whether two values are one, or are proved to be equal everywhere. */
static bool are_equal(struct likeness *l, sub_ref a, sub_ref b)
{
	struct mutate_comparison c;
	if (a.i == b.i)
		return true;
	if (!same_vars(sub_at(l->p, a), sub_at(l->p, b)) || l->p->values.n > l->room)
		return false;
	mutate_find_forms_over(l->p, NULL, 0, l->forms, a);
	mutate_find_forms_over(l->p, NULL, 0, l->forms, b);
	if (l->forms[a.i].kind != MUTATE_LINEAR && l->forms[b.i].kind != MUTATE_LINEAR)
		return false;
	mutate_compare_by(l->p, l->forms, a, b, false, l->rounds, &c);
	if (c.refused || c.wrong > 0)
		return false;
	l->proof->boxes += c.boxes;
	l->proof->positions += c.positions;
	l->proof->degree = c.degree > l->proof->degree ? c.degree : l->proof->degree;
	return count_elements(l, a, b);
}

/* Whether a value of the leaf is computed by the same operator of equal arguments. */
static bool is_computed_alike(struct likeness *l, const struct sub_value *v, sub_ref of_leaf)
{
	struct sub_value other = *v;
	const struct sub_value leaf = *sub_at(l->p, of_leaf);
	if (v->op != leaf.op || v->args != leaf.args)
		return false;
	for (int a = 0; a < v->args; a++)
		other.arg[a].value = leaf.arg[a].value;
	if (!sub_find_value(l->p, other).i || sub_find_value(l->p, other).i != of_leaf.i)
		return false;
	for (int a = 0; a < v->args; a++)
		if (!are_equal(l, v->arg[a].value, leaf.arg[a].value))
			return false;
	return true;
}

/* The value with what is proved of its arguments: one of the leaf, where an operator that is not linear is applied to equal ones. */
static sub_ref find_equal(struct likeness *l, sub_ref r)
{
	if (r.i >= l->values || l->now[r.i].i)
		return r.i >= l->values ? r : l->now[r.i];
	struct sub_value v = *sub_at(l->p, r);
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = find_equal(l, v.arg[a].value);
	l->now[r.i] = v.args ? sub_add(l->p, v, NULL) : r;
	if (l->p->values.n > l->room)
		l->why = "it has too many parts";
	else
		mutate_find_forms_over(l->p, NULL, 0, l->forms, l->now[r.i]);
	bool opaque = !l->why && v.args && l->forms[l->now[r.i].i].kind == MUTATE_LEAF;
	for (uint32_t i = 1; i < l->values && opaque; i++)
		if (l->of_leaf[i] && is_computed_alike(l, &v, (sub_ref){i})) {
			l->now[r.i] = (sub_ref){i};
			opaque = false;
		}
	return l->now[r.i];
}

static void mark_needed(const struct sub_program *p, sub_ref r, bool *needed)
{
	if (needed[r.i])
		return;
	needed[r.i] = true;
	for (int a = 0; a < sub_at(p, r)->args; a++)
		mark_needed(p, sub_at(p, r)->arg[a].value, needed);
}

/* Why a value of leaves is not proved to be another one, both where there are no edges; NULL = it is. */
static const char *prove_equal(struct sub_program *p, sub_ref leaf, sub_ref inner, struct mutate_form *forms, size_t room, int rounds,
			       struct mutate_comparison *proof, struct mutate_census *census)
{
	struct likeness l = {.p = p, .forms = forms, .room = room, .rounds = rounds, .values = p->values.n, .proof = proof, .census = census};
	if (l.values > room)
		return "it has too many parts";
	memset(forms, 0, room * sizeof *forms);
	l.of_leaf = ARENA_ARRAY(p->arena, bool, l.values);
	l.now = ARENA_ARRAY(p->arena, sub_ref, l.values);
	mark_needed(p, leaf, l.of_leaf);
	sub_ref equal = find_equal(&l, inner);
	if (l.why)
		return l.why;
	return are_equal(&l, leaf, equal) ? NULL : "it is not proved to be what inner nodes compute";
}

/* --- the mutant --- */

static double count_all_work(const struct sub_program *p, sub_ref r, bool *seen)
{
	const struct sub_value *v = sub_at(p, r);
	if (seen[r.i] || sub_class_of(v->op) == SUB_SOURCE)
		return 0;
	seen[r.i] = true;
	double work = mutate_count_row_work(p, r);
	for (int a = 0; a < v->args; a++)
		work += count_all_work(p, v->arg[a].value, seen);
	return work;
}

const char *mutate_make_like(struct sub_program *p, const struct mutate_regroup *r, bool exact, int rounds, struct mutate_form *forms,
			     struct mutate_products *m, struct mutate_census *census, sub_ref *now)
{
	size_t room = p->values.n + MUTATE_ROOM;
	sub_ref empty[2];
	*m = (struct mutate_products){.r = *r};
	if (exact)
		return "its sums have other terms, which --math exact does not allow";
	if (!same_vars(sub_at(p, r->value[0]), sub_at(p, r->value[1])))
		return "its values have other sizes";
	if (needs_further_input(p, r->value[0], r->value[1]))
		return "it reads an input that leaves need not have";
	const char *why = empty_edges(p, r->value, 2, empty);
	if (why)
		return why;
	m->original = count_all_work(p, empty[0], ARENA_ARRAY(p->arena, bool, p->values.n));
	m->work = count_all_work(p, empty[1], ARENA_ARRAY(p->arena, bool, p->values.n));
	m->proof[0] = (struct mutate_comparison){
	    .vars = sub_at(p, empty[0])->vars, .rounds = rounds, .elements = sub_row_elements(p, sub_at(p, empty[0]))};
	now[0] = r->value[1];
	return prove_equal(p, empty[0], empty[1], forms, room, rounds, &m->proof[0], census);
}
