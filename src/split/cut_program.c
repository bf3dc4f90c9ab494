/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Cuts a program into bodies of the host and calls:
 *
 *     output [n]                                            cut0 [n] ahead
 *       %4[n,i] = ...                                         %4[n,i] = ...
 *       %9[n,j] = cast ... (of products with %4)              store cut0[n,i] = %4[n,i]
 *       %12[n,j] = exp %9[n,j]                        ->    vta0 [n] ahead
 *       store y[n,j] = %12[n,j]                               call vta0 (input cut0, output cut1)
 *                                                           output [n]
 *                                                             %7[n,j] = exp cut1[n,j]
 *                                                             store y[n,j] = %7[n,j]
 *
 * Calls run in the order of their results, each in a traversal of its own behind that of the body which stores what it reads.
 * A value that both the host and a function, or bodies of the host before and behind a function, need is computed by each; but
 * what a function reads is computed once. */
#include "split/cutting.h"

/* --- copies --- */

/* The dimensions of a row, which begin behind the node, that are axes of a value; -1 = there is one. */
static void find_row_axes(const int *of_value, int *axis)
{
	for (int i = 0; i < SPLIT_AXES; i++)
		axis[i] = of_value[i] < 1 ? -1 : of_value[i] - 1;
}

static struct split_product *product_of(const struct cutting *c, uint32_t result)
{
	return &c->products->all.at[c->products->of_result[result] - 1];
}

/* The input that has a result of a call as the model does: the call unpacks it, once something reads it. */
static int find_unpacked(struct cutting *c, uint32_t i)
{
	struct split_product *q = product_of(c, i);
	struct vta_activations e = {q->images, q->outputs, {split_count_sums(q, 0), split_count_sums(q, 1)}};
	int axis[SPLIT_AXES];
	if (!c->input_of[i]) {
		int input = split_add_input(c, &c->from->values.at[i], q->requantised ? DTYPE_I32 : split_byte_type(q->tail.low));
		find_row_axes(q->result_axis, axis);
		split_add_output(c, i, input, e, axis);
		c->input_of[i] = input + 1;
		q->unpacked = true;
	}
	return c->input_of[i] - 1;
}

static sub_ref read_input(struct cutting *c, uint32_t i)
{
	const struct sub_value *v = &c->from->values.at[i];
	if (!c->input_of[i] && !c->call_of[i])
		return split_read_blocks(c, i);
	struct sub_value in = {.op = SUB_VECTOR, .which = c->input_of[i] ? c->input_of[i] - 1 : find_unpacked(c, i), .vars = v->vars};
	memcpy(in.var, v->var, sizeof in.var);
	return sub_add(c->to, in, NULL);
}

static sub_ref copy_value(const struct cutting *c, uint32_t i)
{
	struct sub_value v = c->from->values.at[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = c->now[v.arg[a].value.i];
	return sub_add(c->to, v, NULL);
}

/* Whether some body has stored a value, or a call computes it. */
static bool is_there(const struct cutting *c, uint32_t i)
{
	return c->input_of[i] || split_has_blocks(c, i);
}

/* Copies marked values and what they need, but for what is there. */
static void copy_marked(struct cutting *c, bool *needed)
{
	for (uint32_t i = (uint32_t)c->from->values.n; i-- > 1;)
		for (int a = 0; needed[i] && !is_there(c, i) && a < c->from->values.at[i].args; a++)
			needed[c->from->values.at[i].arg[a].value.i] = true;
	for (uint32_t i = 1; i < c->from->values.n; i++)
		if (needed[i])
			c->now[i] = is_there(c, i) ? read_input(c, i) : copy_value(c, i);
}

sub_ref split_copy_value(struct cutting *c, sub_ref r)
{
	bool *needed = ARENA_ARRAY(c->products->arena, bool, c->from->values.n);
	if (!r.i)
		return r;
	needed[r.i] = true;
	copy_marked(c, needed);
	return c->now[r.i];
}

/* --- inputs and bodies --- */

static bool is_input_name(const struct sub_program *p, const char *name)
{
	for (size_t i = 0; i < p->inputs.n; i++)
		if (strcmp(p->inputs.at[i].name, name) == 0)
			return true;
	return false;
}

static const char *name_input(struct cutting *c)
{
	for (;;) {
		struct str s = str_in(c->to->arena);
		str_printf(&s, "cut%d", c->inputs++);
		if (!is_input_name(c->to, str_text(&s)))
			return str_text(&s);
	}
}

int split_add_input(struct cutting *c, const struct sub_value *v, enum dtype dtype)
{
	struct sub_input in = {.name = name_input(c), .hoisted = true};
	in.row = (struct sub_tensor){.name = in.name, .dtype = dtype, .rank = v->vars - 1};
	for (int d = 0; d < in.row.rank; d++) {
		in.row.var[d] = v->var[d + 1];
		in.row.shape[d] = c->to->vars.at[v->var[d + 1]].extent;
	}
	vec_push(c->to->arena, &c->to->inputs, in);
	return (int)c->to->inputs.n - 1;
}

enum dtype split_byte_type(double low)
{
	return low < 0 ? DTYPE_I8 : DTYPE_U8;
}

/* Adds a body ahead of a traversal of its own. */
static struct sub_body *add_body(struct cutting *c, const char *name)
{
	struct sub_body b = {.name = sub_find_free_name(c->to, SUB_NAME_BODY, name), .domain = SUB_AHEAD, .traversal = c->traversals};
	if ((size_t)c->traversals++ >= c->to->traversals.n)
		vec_push(c->to->arena, &c->to->traversals, (struct sub_traversal){.down = false});
	vec_push(c->to->arena, &c->to->bodies, b);
	return &c->to->bodies.at[c->to->bodies.n - 1];
}

/* Adds an input and the body of the host that stores a value of `to` to it. */
static int store_input(struct cutting *c, sub_ref stored, double low)
{
	int input = split_add_input(c, sub_at(c->to, stored), split_byte_type(low));
	struct sub_body *b = add_body(c, c->to->inputs.at[input].name);
	struct sub_store s = {.to = SUB_TO_INPUT, .which = input, .value = sub_as_is(c->to, stored)};
	vec_push(c->to->arena, &b->stores, s);
	return input;
}

/* A copy of what a product reads, with a border of its zero point around two of its dimensions, rows and columns. */
static sub_ref add_border(struct cutting *c, const struct split_product *q, sub_ref image, int rows, int columns)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .arg = {sub_as_is(c->to, image)}, .map = map, .fills = true, .fill = -q->offset};
	v.vars = v.arg[0].vars;
	for (int d = 0; d < v.vars; d++) {
		int axis = d == rows ? 0 : d == columns ? 1 : -1;
		int var = v.arg[0].var[d];
		v.var[d] = d ? sub_other_dim(c->to, axis < 0 ? c->to->vars.at[var].extent : q->size[axis], v.var, d) : var;
		map[d] = (struct sub_map){.function = SUB_AFFINE, .var = v.var[d], .scale = 1, .offset = axis < 0 ? 0 : -q->margin[axis]};
	}
	return sub_add(c->to, v, NULL);
}

/* The input of the program that has what a product reads, in blocks. */
static int find_input_in_blocks(struct cutting *c, const struct split_product *q)
{
	const int *at = split_axes_of_blocks;
	if (q->copied)
		return store_input(c, add_border(c, q, split_copy_blocks(c, q->input), at[SPLIT_ROW] + 1, at[SPLIT_COLUMN] + 1), q->low);
	if (!split_has_blocks(c, q->input.i))
		c->blocks_of[q->input.i] = store_input(c, split_copy_blocks(c, q->input), q->low) + 1;
	return split_find_blocks(c, q->input.i);
}

/* The input of the program that has what a product reads; a body of the host stores it if there is none. */
static int find_input(struct cutting *c, const struct split_product *q)
{
	const struct sub_value *v = sub_at(c->from, q->input);
	const int *at = q->input_axis;
	if (q->in_blocks)
		return find_input_in_blocks(c, q);
	if (q->copied)
		return store_input(c, add_border(c, q, split_copy_value(c, q->input), at[SPLIT_ROW], at[SPLIT_COLUMN]), q->low);
	if (v->op == SUB_VECTOR)
		return v->which;
	if (c->call_of[q->input.i])
		return find_unpacked(c, q->input.i);
	if (!c->input_of[q->input.i])
		c->input_of[q->input.i] = store_input(c, split_copy_value(c, q->input), q->low) + 1;
	return c->input_of[q->input.i] - 1;
}

/* --- calls --- */

static const char *print_name(const struct cutting *c, const char *format, int number)
{
	struct str s = str_in(c->to->arena);
	str_printf(&s, "%s%d", format, number);
	return str_text(&s);
}

/* What a function reads: rows of an input, as the model has them or in blocks. */
static struct sub_operand operand_of(struct cutting *c, const struct split_product *q)
{
	const int64_t extent[] = {q->images, q->channels, q->size[0], q->size[1]};
	struct sub_operand o = {.segment = "x", .role = IMAGE_OPERAND_INPUT, .which = find_input(c, q), .zero = q->zero, .planes = 1};
	o.extent = q->in_blocks ? split_count_blocks(extent) : (struct vta_activations){q->images, q->channels, {q->size[0], q->size[1]}};
	if (q->in_blocks)
		memcpy(o.axis, split_axes_of_blocks, sizeof o.axis);
	else
		find_row_axes(q->input_axis, o.axis);
	return o;
}

void split_add_output(struct cutting *c, uint32_t result, int input, struct vta_activations extent, const int *axis)
{
	const struct split_product *q = product_of(c, result);
	struct sub_call *call = &c->to->calls.at[c->call_of[result] - 1];
	struct sub_operand *all = ARENA_ARRAY(c->to->arena, struct sub_operand, call->operands + 1);
	struct sub_operand o = {.segment = "y", .role = IMAGE_OPERAND_OUTPUT, .which = input, .extent = extent, .zero = q->result_zero, .planes = q->requantised ? 4 : 1};
	memcpy(o.axis, axis, sizeof o.axis);
	memcpy(all, call->operand, call->operands * sizeof *all);
	all[call->operands++] = o;
	call->operand = all;
}

static struct sub_operand constant_operand(const char *name, const char *ending, struct arena *a, int param)
{
	struct str s = str_in(a);
	str_printf(&s, "%s%s", name, ending);
	return (struct sub_operand){.segment = str_text(&s), .role = IMAGE_OPERAND_CONSTANT, .which = param, .axis = {-1, -1, -1, -1}, .planes = 1};
}

static struct vta_operation operation_of(const struct cutting *c, const struct split_product *q, int number, bool last)
{
	struct vta_operation op = split_operation_of(q);
	op.name = print_name(c, "c", number);
	op.input = number ? print_name(c, "t", number - 1) : "x";
	op.output = last ? "y" : print_name(c, "t", number);
	return op;
}

/* The products of a function, in order; the last one has its result. */
struct function {
	VEC(const struct split_product *) all;
};

/* Adds the constants of a product as operands of its call. */
static int add_constants(struct cutting *c, const struct split_product *q, const char *call, int number, struct sub_operand *to)
{
	struct arena *a = c->to->arena;
	const char *name = print_name(c, "c", number);
	sub_ref weights = split_copy_value(c, q->weights), bias = split_copy_value(c, q->bias);
	struct str w = str_in(a), b = str_in(a);
	str_printf(&w, "%s.w%d", call, number);
	str_printf(&b, "%s.b%d", call, number);
	to[0] = constant_operand(name, ".w", a, split_add_weights(c->to, q, weights, str_text(&w)));
	to[1] = constant_operand(name, ".b", a, split_add_bias(c->to, q, weights, bias, str_text(&b)));
	return 2;
}

static void add_call(struct cutting *c, const struct function *f, int number)
{
	size_t n = f->all.n;
	struct arena *a = c->to->arena;
	const struct split_product *first = f->all.at[0], *last = f->all.at[n - 1];
	struct vta_operation *operation = ARENA_ARRAY(a, struct vta_operation, n);
	struct sub_operand *operand = ARENA_ARRAY(a, struct sub_operand, 2 * n + 1);
	struct sub_call call = {.name = print_name(c, "vta", number), .operation = operation, .operations = (int)n, .operand = operand};
	operand[call.operands++] = operand_of(c, first);
	for (size_t i = 0; i < n; i++) {
		operation[i] = operation_of(c, f->all.at[i], (int)i, i + 1 == n);
		call.operands += add_constants(c, f->all.at[i], call.name, (int)i, operand + call.operands);
	}
	vec_push(a, &c->to->calls, call);
	add_body(c, call.name)->call = (int)c->to->calls.n;
	c->call_of[last->result.i] = (int)c->to->calls.n;
}

/* --- all --- */

static struct function *list_functions(const struct cutting *c)
{
	const struct split_products *s = c->products;
	struct function *f = ARENA_ARRAY(s->arena, struct function, s->functions + 1);
	for (size_t i = 0; i < s->all.n; i++)
		if (s->all.at[i].function >= 0)
			vec_push(s->arena, &f[s->all.at[i].function].all, &s->all.at[i]);
	return f;
}

static uint32_t result_of(const struct function *f)
{
	return f->all.at[f->all.n - 1]->result.i;
}

/* Calls are made in the order of their results, as what a function reads comes before its result. */
static void add_calls(struct cutting *c)
{
	struct function *f = list_functions(c);
	for (int k = 0; k < c->products->functions; k++) {
		int next = k;
		for (int i = k + 1; i < c->products->functions; i++)
			next = result_of(&f[i]) < result_of(&f[next]) ? i : next;
		struct function swapped = f[k];
		f[k] = f[next];
		f[next] = swapped;
		add_call(c, &f[k], k);
	}
}

/* Bodies of outputs are of the last traversal. */
static void keep_bodies(struct cutting *c)
{
	bool *needed = ARENA_ARRAY(c->products->arena, bool, c->from->values.n);
	for (size_t b = 0; b < c->from->bodies.n; b++)
		for (size_t i = 0; i < c->from->bodies.at[b].stores.n; i++)
			needed[c->from->bodies.at[b].stores.at[i].value.value.i] = true;
	copy_marked(c, needed);
	for (size_t b = 0; b < c->from->bodies.n; b++) {
		struct sub_body kept = sub_map_body(c->to->arena, &c->from->bodies.at[b], c->now);
		if (c->traversals)
			kept.traversal = (int)c->to->traversals.n - 1;
		vec_push(c->to->arena, &c->to->bodies, kept);
	}
}

void split_cut_program(struct sub_program *to, struct split_products *s)
{
	struct cutting c = {.to = to, .from = s->p, .products = s};
	sub_copy_declarations(to, c.from);
	c.input_of = ARENA_ARRAY(to->arena, int, c.from->values.n);
	c.blocks_of = ARENA_ARRAY(to->arena, int, c.from->values.n);
	c.call_of = ARENA_ARRAY(to->arena, int, c.from->values.n);
	c.now = ARENA_ARRAY(to->arena, sub_ref, c.from->values.n);
	add_calls(&c);
	keep_bodies(&c);
}

void rewrite_cut(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *options,
		 struct rewrite_trace *trace)
{
	struct split_products products;
	(void)trace;
	split_find_products(&products, to->arena, from, options);
	split_cut_program(to, &products);
}
