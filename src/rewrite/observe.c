/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Observing: makes what products with weights multiply, and what their sums are, results of the program.
 *
 *     inner [n with children]                          inner [n with children]
 *       %2[n,j] = accumulate_k b[j], W[j,k], x[n,k]      %2[n,j] = accumulate_k b[j], W[j,k], x[n,k]
 *       ...                                        ->    %3[n,k] = abs x[n,k]
 *                                                        %4[n] = max_k %3[n,k]
 *                                                        store 'largest1 of W*x'[n] = %4[n]
 *                                                        store 'sum1 of W*x'[n,j] = %2[n,j]
 *
 * A body of a recursion stores them in states, one of outputs in outputs, which have the numbers after those of the
 * model.  Bodies of the same traversal without the product store zeros, so that each row of a state is written.  What has a
 * row for each edge, or for each node of the input, is joined: magnitudes by their maximum, sums by addition.
 *
 * In f32 it stores the squares of what each column of the weights multiplies as well, as 'squares1 of W*x'[n,k], by which
 * scales are chosen (row_scales.c).
 *
 * The pass runs before products are quantised and stores no sum in the middle of a chain, so the chains stay the same. */
#include "rewrite/expressions.h"
#include "rewrite/products.h"

static const struct sub_use none;
static const char *const kinds[] = {[REWRITE_LARGEST] = "largest", [REWRITE_SUM] = "sum", [REWRITE_SQUARES] = "squares"};

struct observing {
	struct sub_program *to;
	const struct sub_program *from;
	sub_ref *now; /* by value of `from` */
	size_t states; /* of `from` */
	bool f32; /* sums are not computed in integers: those in the middle of chains can be stored, too, and squares are */
};

const char *rewrite_read_observed(const char *name, enum rewrite_observation *observation)
{
	static const char of[] = " of ";
	for (int kind = 0; kind < REWRITE_OBSERVATIONS; kind++) {
		size_t n = strlen(kinds[kind]);
		if (strncmp(name, kinds[kind], n) != 0)
			continue;
		n += strspn(name + n, "0123456789");
		*observation = kind;
		if (strncmp(name + n, of, sizeof of - 1) == 0)
			return name + n + sizeof of - 1;
	}
	return NULL;
}

/* --- values --- */

static int leading_var(const struct observing *o, const struct sub_body *b)
{
	return b->domain == SUB_EVERY_INPUT ? o->to->input : o->to->node;
}

/* Reduces the variables behind the row that are ragged, or those that are not. */
static struct sub_use reduce_behind_row(struct observing *o, struct sub_use x, bool ragged, enum sub_op op)
{
	struct sub_vars over = {0};
	for (int i = 1; i < x.vars; i++)
		if (sub_is_ragged(o->to, x.var[i]) == ragged)
			over.var[over.n++] = x.var[i];
	return over.n ? rewrite_add_reduction(o->to, op, x, &over) : x;
}

static bool has_row(const struct observing *o, const struct sub_body *b, const struct sub_use *u)
{
	return u->vars && u->var[0] == leading_var(o, b);
}

/* The largest magnitude in a row of what a product multiplies. */
static struct sub_use add_largest(struct observing *o, const struct sub_body *b, const struct rewrite_product *p)
{
	struct sub_use x = sub_as_is(o->to, o->now[p->x.value.i]);
	if (!has_row(o, b, &x))
		return none;
	x = rewrite_add_operator(o->to, SUB_ABS, x, none, none);
	x = reduce_behind_row(o, x, false, SUB_MAX);
	x = reduce_behind_row(o, x, true, SUB_MAX);
	return rewrite_add_operator(o->to, SUB_SMAX, x, rewrite_add_constant(o->to, DTYPE_F32, 0), none);
}

static struct sub_use add_sum(struct observing *o, const struct sub_body *b, uint32_t product)
{
	struct sub_use x = sub_as_is(o->to, o->now[product]);
	if (!has_row(o, b, &x))
		return none;
	x = reduce_behind_row(o, x, true, SUB_SUM);
	return x.vars <= TENSOR_MAX_RANK ? x : none;
}

/* The sums of the squares, in a row, of what each column of the weights multiplies. */
static struct sub_use add_squares(struct observing *o, const struct sub_body *b, const struct rewrite_product *p)
{
	struct sub_use x = p->x;
	struct sub_vars over = {0};
	x.value = o->now[x.value.i];
	if (!has_row(o, b, &x))
		return none;
	for (int i = 1; i < x.vars; i++)
		if (!sub_use_has(&p->w, x.var[i]) && !sub_is_ragged(o->to, x.var[i]))
			over.var[over.n++] = x.var[i];
	x = rewrite_add_operator(o->to, SUB_MULTIPLY, x, x, none);
	x = over.n ? rewrite_add_reduction(o->to, SUB_SUM, x, &over) : x;
	x = reduce_behind_row(o, x, true, SUB_SUM);
	return x.vars <= TENSOR_MAX_RANK ? x : none;
}

/* --- results --- */

static struct sub_tensor describe_result(const struct observing *o, const struct sub_body *b, struct sub_use x,
					 const char *name)
{
	int64_t steps = sub_is_stepped(b) ? o->to->traversals.at[b->traversal].steps : 0;
	struct sub_tensor t = {.name = name, .dtype = DTYPE_F32, .traversal = b->traversal};
	if (steps) {
		t.var[0] = sub_dim(o->to, steps, 0);
		t.shape[t.rank++] = steps;
	}
	for (int i = 1; i < x.vars; i++, t.rank++) {
		t.var[t.rank] = x.var[i];
		t.shape[t.rank] = o->to->vars.at[x.var[i]].extent;
	}
	return t;
}

static bool same_shape(const struct sub_tensor *a, const struct sub_tensor *b)
{
	return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static bool is_stored(const struct sub_body *b, int state)
{
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].to == SUB_TO_STATE && b->stores.at[i].which == state)
			return true;
	return false;
}

/* Whether another body of the traversal has made this state, and it has a place for this one's result. */
static bool shares_state(const struct observing *o, const struct sub_body *b, int state, const struct sub_tensor *t)
{
	const struct sub_tensor *s = &o->to->states.at[state];
	return s->traversal == b->traversal && same_shape(s, t) && !is_stored(b, state);
}

static int find_tensor(const struct observing *o, const char *name, bool output)
{
	for (size_t i = 0; output && i < o->to->outputs.n; i++)
		if (strcmp(o->to->outputs.at[i].row.name, name) == 0)
			return (int)i;
	for (size_t i = 0; !output && i < o->to->states.n; i++)
		if (strcmp(o->to->states.at[i].name, name) == 0)
			return (int)i;
	return -1;
}

static int declare_output(struct observing *o, const struct sub_tensor *t, bool at_root)
{
	vec_push(o->to->arena, &o->to->outputs, (struct sub_output){*t, at_root});
	return (int)o->to->outputs.n - 1;
}

static int declare_state(struct observing *o, const struct sub_tensor *t)
{
	vec_push(o->to->arena, &o->to->states, *t);
	return (int)o->to->states.n - 1;
}

/* The state or output of a result; the first of its name that is free, or that other bodies share. */
static int find_result(struct observing *o, const struct sub_body *b, struct sub_use x, int kind, const char *product)
{
	bool output = b->domain == SUB_EVERY_NODE || b->domain == SUB_EVERY_INPUT;
	for (int number = 1;; number++) {
		struct str name = str_in(o->to->arena);
		str_printf(&name, "%s%d of %s", kinds[kind], number, product);
		struct sub_tensor t = describe_result(o, b, x, str_text(&name));
		int found = find_tensor(o, t.name, output);
		if (found < 0)
			return output ? declare_output(o, &t, b->domain == SUB_EVERY_INPUT) : declare_state(o, &t);
		if (!output && shares_state(o, b, found, &t))
			return found;
	}
}

/* What a body stores of a scan stands at the step that it computes, which any other of its stores tells. */
static struct sub_store make_store(const struct sub_body *b, int which, struct sub_use value)
{
	struct sub_store s = b->stores.at[0];
	s.which = which;
	s.value = value;
	return s;
}

static void store_result(struct observing *o, struct sub_body *b, struct sub_use x, int kind, const char *product)
{
	if (x.value.i)
		vec_push(o->to->arena, &b->stores, make_store(b, find_result(o, b, x, kind, product), x));
}

/* --- bodies --- */

static bool is_observed(const struct sub_body *b)
{
	return b->stores.n && (b->domain <= SUB_EVERY_INPUT || sub_is_stepped(b));
}

static void observe_body(struct observing *o, const struct rewrite_products *all, const struct sub_body *from,
			 struct sub_body *b)
{
	bool *live = ARENA_ARRAY(o->to->arena, bool, o->from->values.n);
	sub_mark_live(o->from, from, live);
	for (uint32_t i = 1; i < o->from->values.n; i++) {
		const struct rewrite_product *p = &all->at[i];
		bool fits = p->refusal == REWRITE_QUANTISED || p->refusal == REWRITE_NO_BOUND ||
			    p->refusal == REWRITE_UNFIT_BOUND || p->refusal == REWRITE_KEPT;
		if (!live[i] || !fits)
			continue;
		store_result(o, b, add_largest(o, b, p), REWRITE_LARGEST, p->name);
		if (!p->absorbed || o->f32)
			store_result(o, b, add_sum(o, b, i), REWRITE_SUM, p->name);
		if (o->f32)
			store_result(o, b, add_squares(o, b, p), REWRITE_SQUARES, p->name);
	}
}

/* A row of zeros of a state, or of one step of it. */
static struct sub_use add_zeros(struct observing *o, const struct sub_body *b, const struct sub_tensor *t)
{
	int first = sub_is_stepped(b);
	struct sub_value zero = {.op = SUB_ASSIGN,
				 .args = 1,
				 .arg = {rewrite_add_constant(o->to, DTYPE_F32, 0)},
				 .vars = 1 + t->rank - first,
				 .var = {o->to->node}};
	memcpy(zero.var + 1, t->var + first, (t->rank - first) * sizeof *t->var);
	return rewrite_use_value(o->to, zero);
}

static void store_zeros(struct observing *o, struct sub_body *b)
{
	for (size_t s = o->states; s < o->to->states.n; s++)
		if (o->to->states.at[s].traversal == b->traversal && !is_stored(b, (int)s))
			vec_push(o->to->arena, &b->stores,
				 make_store(b, (int)s, add_zeros(o, b, &o->to->states.at[s])));
}

void rewrite_observe(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *options,
		     struct rewrite_trace *trace)
{
	(void)trace;
	struct rewrite_products all = rewrite_find_products(from, options, to->arena);
	struct observing o = {
	    .to = to, .from = from, .now = ARENA_ARRAY(to->arena, sub_ref, from->values.n), .states = from->states.n, .f32 = options->precision == PRECISION_F32};
	sub_copy_declarations(to, from);
	for (uint32_t i = 1; i < from->values.n; i++) {
		struct sub_value v = from->values.at[i];
		for (int a = 0; a < v.args; a++)
			v.arg[a].value = o.now[v.arg[a].value.i];
		o.now[i] = sub_add(to, v, NULL);
	}
	for (size_t b = 0; b < from->bodies.n; b++) {
		vec_push(to->arena, &to->bodies, sub_map_body(to->arena, &from->bodies.at[b], o.now));
		if (is_observed(&from->bodies.at[b]))
			observe_body(&o, &all, &from->bodies.at[b], &to->bodies.at[b]);
	}
	for (size_t b = 0; b < to->bodies.n; b++)
		if (is_observed(&to->bodies.at[b]) && to->bodies.at[b].domain != SUB_EVERY_NODE &&
		    to->bodies.at[b].domain != SUB_EVERY_INPUT)
			store_zeros(&o, &to->bodies.at[b]);
}
