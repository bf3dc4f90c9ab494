/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bounds of errors of states and outputs: the errors of a level of nodes follow from those of the levels that
 * its bodies read, so they are computed as the nodes are, one level after the other, for all cases together.
 *
 *     E[0] = errors of what bodies of leaves store
 *     E[h] = the larger one of E[h - 1] and the errors of what other bodies store if they read states with
 * E[h - 1]
 *
 * so E[h] bounds the errors of all nodes of height h at most.  For any height the errors begin as the length
 * of each state's range and are computed again and again; each time they are a bound, as larger errors of
 * states never make those of results smaller. */
#include "rewrite/error_bound.h"

#include <math.h>

enum {
	MOST_LEVELS = 64, /* of a scan with more steps the bound is that for any number */
	NARROWED = 24	  /* rounds for any height */
};

/* --- states --- */

/* The elements of all states, at zero. */
static double **make_rows(const struct rewrite_bounding *b)
{
	double **rows = ARENA_ARRAY(b->arena, double *, b->p->states.n + 1);
	for (size_t i = 0; i < b->p->states.n; i++)
		rows[i] = ARENA_ARRAY(b->arena, double, error_state_elements(&b->p->states.at[i]));
	return rows;
}

/* Sets the states of a traversal to one number each, or to zero. */
static void set_states(const struct rewrite_bounding *b, struct error_states s, int traversal, bool widest)
{
	for (size_t i = 0; i < b->p->states.n; i++) {
		const struct sub_tensor *t = &b->p->states.at[i];
		for (int64_t e = 0; t->traversal == traversal && e < error_state_elements(t); e++) {
			s.error[i][e] = widest ? error_longest(b, &b->kept[i]) : 0;
			s.size[i][e] = widest ? error_most(b, &b->kept[i]) : 0;
		}
	}
}

/* Joins what is stored, at all steps of a scan, with the elements of a state. */
static void join_elements(double *to, int64_t n, const double *from, int64_t elements)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = fmax(to[i], from[i % elements]);
}

static void join_store(struct rewrite_bounding *b, const struct sub_store *s, struct error_states *to)
{
	uint32_t value = s->value.value.i;
	const struct sub_value *v = &b->p->values.at[value];
	int64_t n = error_state_elements(&b->p->states.at[s->which]), elements = error_elements(b, v);
	if (b->error[value].known)
		join_elements(to->error[s->which], n, b->error[value].element, elements);
	join_elements(to->size[s->which], n, error_find_size(b, value), elements);
	if (!b->cause[s->which])
		b->cause[s->which] = error_find_cause(b, value);
}

/* --- bodies --- */

/* The edges of a node: as many as the cases of the body, or the model, say. */
static double count_edges(const struct rewrite_bounding *b, const struct sub_body *body)
{
	int children = sub_children_of(b->p, body);
	if (sub_goes_down(b->p, body))
		return b->p->tree ? 1 : b->open_edges;
	return children >= 0 ? children : b->open_edges;
}

static void evaluate_body(struct rewrite_bounding *b, size_t body)
{
	b->edges = count_edges(b, &b->p->bodies.at[body]);
	error_forget(b);
	error_evaluate(b, b->live[body]);
}

static bool begins_recursion(const struct sub_body *b)
{
	return b->domain == SUB_LEAF || b->domain == SUB_TOP || b->domain == SUB_FIRST_STEP;
}

static bool goes_on(const struct sub_body *b)
{
	return b->domain == SUB_INNER || b->domain == SUB_BELOW || b->domain == SUB_NEXT_STEPS;
}

/* Joins what the bodies of a traversal store, those that begin it or those that go on, with states. */
static void run_bodies(struct rewrite_bounding *b, int traversal, bool (*runs)(const struct sub_body *),
		       struct error_states *to)
{
	for (size_t i = 0; i < b->p->bodies.n && !b->failed; i++) {
		const struct sub_body *body = &b->p->bodies.at[i];
		if (body->traversal != traversal || !runs(body))
			continue;
		evaluate_body(b, i);
		for (size_t s = 0; s < body->stores.n; s++)
			join_store(b, &body->stores.at[s], to);
	}
}

/* --- traversals --- */

static void copy_states(const struct rewrite_bounding *b, struct error_states *to,
			const struct error_states *from)
{
	for (size_t i = 0; i < b->p->states.n; i++) {
		size_t bytes = error_state_elements(&b->p->states.at[i]) * sizeof(double);
		memcpy(to->error[i], from->error[i], bytes);
		memcpy(to->size[i], from->size[i], bytes);
	}
}

/* Errors of levels 0 to `levels`. */
static void climb_levels(struct rewrite_bounding *b, int traversal, int levels)
{
	set_states(b, b->states, traversal, false);
	run_bodies(b, traversal, begins_recursion, &b->states);
	for (int level = 1; level <= levels; level++) {
		copy_states(b, &b->next, &b->states);
		run_bodies(b, traversal, goes_on, &b->next);
		copy_states(b, &b->states, &b->next);
	}
}

/* Errors of any level. */
static void narrow_errors(struct rewrite_bounding *b, int traversal)
{
	set_states(b, b->states, traversal, true);
	for (int round = 0; round < NARROWED; round++) {
		copy_states(b, &b->next, &b->states);
		set_states(b, b->next, traversal, false);
		run_bodies(b, traversal, begins_recursion, &b->next);
		run_bodies(b, traversal, goes_on, &b->next);
		copy_states(b, &b->states, &b->next);
	}
}

static void bound_traversal(struct rewrite_bounding *b, int traversal, int height)
{
	int64_t steps = b->p->traversals.at[traversal].steps;
	int64_t levels = steps ? steps - 1 : height;
	if (levels < 0 || levels > MOST_LEVELS)
		narrow_errors(b, traversal);
	else
		climb_levels(b, traversal, levels);
}

/* --- results --- */

/* Prints the name of a source, or of what another value is computed of. */
static void describe_value(const struct rewrite_bounding *b, uint32_t value, struct str *s)
{
	uint32_t source = b->source[value];
	str_puts(s, source == value || !source ? "" : "what is computed of ");
	sub_print_name(b->p, (sub_ref){source ? source : value}, s);
}

/* Why a value has no bound. */
static const char *describe_cause(const struct rewrite_bounding *b, uint32_t value)
{
	const struct sub_value *v = &b->p->values.at[value];
	struct str s = str_in(b->arena);
	for (size_t i = 0; i < b->p->states.n && v->op == SUB_STATE && b->cause[v->which]; i++)
		v = &b->p->values.at[b->cause[v->which]];
	if (v->op == SUB_STATE)
		str_printf(&s, "the state %s grows with the structure", b->p->states.at[v->which].name);
	else
		str_printf(&s, "%s may make an error of any size of one in its arguments, ",
			   sub_spelling(v->op));
	for (int a = 0; a < v->args; a++) {
		str_puts(&s, a ? " and " : "");
		describe_value(b, v->arg[a].value.i, &s);
	}
	return str_text(&s);
}

static double find_largest(const double *x, int64_t n)
{
	double most = 0;
	for (int64_t i = 0; i < n; i++)
		most = fmax(most, x[i]);
	return most;
}

static void bound_output(struct rewrite_bounding *b, const struct sub_store *s, double *output,
			 struct rewrite_errors *e)
{
	uint32_t value = s->value.value.i, cause = error_find_cause(b, value);
	if (b->error[value].known)
		output[s->which] =
		    fmax(output[s->which],
			 find_largest(b->error[value].element, error_elements(b, &b->p->values.at[value])));
	if (cause && !e->unbounded)
		e->unbounded = describe_cause(b, cause);
}

static void bound_outputs(struct rewrite_bounding *b, double *output, struct rewrite_errors *e)
{
	for (size_t i = 0; i < b->p->bodies.n && !b->failed; i++) {
		const struct sub_body *body = &b->p->bodies.at[i];
		if (body->domain != SUB_EVERY_NODE && body->domain != SUB_EVERY_INPUT)
			continue;
		evaluate_body(b, i);
		for (size_t s = 0; s < body->stores.n; s++)
			bound_output(b, &body->stores.at[s], output, e);
	}
}

bool rewrite_bound_errors(struct rewrite_bounding *b, struct rewrite_extent extent, struct rewrite_errors *e)
{
	double *state = ARENA_ARRAY(b->arena, double, b->p->states.n + 1),
	       *output = ARENA_ARRAY(b->arena, double, b->p->outputs.n + 1);
	*e = (struct rewrite_errors){.state = state, .output = output};
	b->open_edges = extent.edges;
	b->cause = ARENA_ARRAY(b->arena, uint32_t, b->p->states.n + 1);
	for (size_t t = 0; t < b->p->traversals.n; t++)
		bound_traversal(b, t, extent.height);
	bound_outputs(b, output, e);
	for (size_t i = 0; i < b->p->states.n; i++)
		state[i] = find_largest(b->states.error[i], error_state_elements(&b->p->states.at[i]));
	return !b->failed;
}

/* --- sums --- */

/* The names of the parameters of a sum's weights, from the first product on. */
static const char *name_weights(const struct rewrite_bounding *b, const struct rewrite_integers *sum)
{
	struct str s = str_in(b->arena);
	for (int i = sum->links; i-- > 0;) {
		uint32_t source = b->source[sum->link[i].w.value.i];
		str_puts(&s, i == sum->links - 1 ? "" : ", ");
		sub_print_name(b->p, (sub_ref){source ? source : sum->link[i].w.value.i}, &s);
	}
	return str_text(&s);
}

bool rewrite_bound_sum(struct rewrite_bounding *b, int number, struct rewrite_sum_error *e)
{
	uint32_t i = 1;
	for (; i < b->p->values.n; i++)
		if (b->integers[i].links && number-- == 0)
			break;
	if (i == b->p->values.n)
		return false;
	const double *own = error_find_own(b, i);
	e->weights = name_weights(b, &b->integers[i]);
	e->most = find_largest(own, error_elements(b, &b->p->values.at[i]));
	e->per_edge = b->integers[i].per_edge;
	return !b->failed;
}

/* --- beginning --- */

/* Whether ranges, which are those of the program in f32, hold in integers too: where none is of a sum of
 * integers, which may leave it. */
static bool keeps_ranges(const struct rewrite_bounding *b)
{
	bool any = false;
	for (uint32_t i = 1; i < b->p->values.n; i++)
		for (int l = 0; l < b->integers[i].links; l++) {
			const struct rewrite_range *r =
			    &b->range[b->integers[i].link[l].sum - b->p->values.at];
			any |= r->low > -1e30 || r->high < 1e30;
		}
	return !any;
}

static bool **find_live(const struct rewrite_bounding *b)
{
	bool **live = ARENA_ARRAY(b->arena, bool *, b->p->bodies.n + 1);
	for (size_t i = 0; i < b->p->bodies.n; i++) {
		live[i] = ARENA_ARRAY(b->arena, bool, b->p->values.n);
		sub_mark_live(b->p, &b->p->bodies.at[i], live[i]);
	}
	return live;
}

/* By state: the range of all that is stored in it. */
static struct rewrite_range *find_kept(const struct rewrite_bounding *b)
{
	struct rewrite_range *kept = ARENA_ARRAY(b->arena, struct rewrite_range, b->p->states.n + 1);
	for (size_t i = 0; i < b->p->states.n; i++)
		kept[i] = (struct rewrite_range){INFINITY, -INFINITY, false};
	for (size_t i = 0; i < b->p->bodies.n; i++)
		for (size_t k = 0; k < b->p->bodies.at[i].stores.n; k++) {
			const struct sub_store *s = &b->p->bodies.at[i].stores.at[k];
			if (s->to == SUB_TO_STATE)
				kept[s->which] =
				    rewrite_join_ranges(kept[s->which], b->range[s->value.value.i]);
		}
	return kept;
}

struct rewrite_bounding *rewrite_begin_bounding(const struct sub_program *p,
						const struct rewrite_options *options,
						const struct rewrite_weights *weights, struct arena *a,
						struct diags *diags)
{
	struct rewrite_bounding *b = ARENA_ARRAY(a, struct rewrite_bounding, 1);
	*b = (struct rewrite_bounding){.arena = a,
				       .diags = diags,
				       .p = p,
				       .weights = weights,
				       .integers = rewrite_find_integers(p, options, a),
				       .function_error = rewrite_find_function_errors(p, options, a),
				       .range = rewrite_find_ranges(p, options, a),
				       .source = rewrite_find_sources(p, a),
				       .constant = sub_find_constants(p),
				       .magnitude = ARENA_ARRAY(a, double *, p->values.n),
				       .integer_error = ARENA_ARRAY(a, double *, p->values.n),
				       .error = ARENA_ARRAY(a, struct error_tensor, p->values.n),
				       .size = ARENA_ARRAY(a, struct error_tensor, p->values.n),
				       .param = ARENA_ARRAY(a, const void *, p->params.n + 1),
				       .env = ARENA_ARRAY(a, int64_t, p->vars.n + 1)};
	b->trusted = keeps_ranges(b);
	b->live = find_live(b);
	b->kept = find_kept(b);
	b->states = (struct error_states){make_rows(b), make_rows(b)};
	b->next = (struct error_states){make_rows(b), make_rows(b)};
	return b;
}
