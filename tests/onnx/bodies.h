/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random bodies of Loop and Scan, written as such and unrolled in the graph around. */
#ifndef ESPALIER_TESTS_ONNX_BODIES_H
#define ESPALIER_TESTS_ONNX_BODIES_H

#include "tests/examples/numbers.h"
#include "tests/onnx/encode.h"

enum form { SCALAR, VECTOR, MATRIX }; /* [], [4], [3, 4]: the number is the rank */
enum {
	MOST_VALUES = 48,
	MOST_STATES = 3,
	MOST_SCANNED = 2,
	MOST_STEPS = 9,
	MOST_OUTPUTS = MOST_STATES + MOST_SCANNED,
	ROW = 3,
	COLUMNS = 4
};

/* `integer`: i64, not a float; `hidden`: statements name it themselves. */
struct value {
	enum form form;
	bool integer, hidden;
};

struct statement {
	const char *op;
	int a, b, out;
	int64_t trips; /* of a Loop in it */
};

/* Values of the body: the number of the iteration, states, elements of scanned inputs, values of the graph around, and
 * the results of statements.  Outputs are states, then scanned ones. */
struct body {
	bool loop;
	int states, scanned, outputs, around, values, statements;
	struct value value[MOST_VALUES];
	struct statement statement[MOST_VALUES];
	int out[MOST_OUTPUTS];
};

/* What bodies use of the graph around, which is the same for all. */
static const struct around {
	const char *name;
	struct value value;
} around[] = {
    {"factor", {.form = SCALAR}},
    {"bias", {.form = VECTOR}},
    {"shown", {.form = MATRIX}},
    {"increment", {.form = SCALAR, .integer = true}},
    {"weight", {.form = MATRIX, .hidden = true}},
    {"list", {.form = MATRIX, .hidden = true}},
};
enum { INCREMENT = 3, WEIGHT, LIST, AROUND };

/* --- drawing --- */

static inline int add_value(struct body *b, enum form form, bool integer)
{
	b->value[b->values] = (struct value){form, integer, false};
	return b->values++;
}

/* A float of at most that form. */
static inline int draw_value(const struct body *b, enum form most)
{
	for (;;) {
		int i = random_below(b->values);
		const struct value *v = &b->value[i];
		if (!v->integer && !v->hidden && v->form <= most)
			return i;
	}
}

static inline int add_statement(struct body *b, const char *op, int a, int other, enum form form, bool integer)
{
	int out = add_value(b, form, integer);
	b->statement[b->statements++] = (struct statement){op, a, other, out, 1 + random_below(6)};
	return out;
}

static inline void draw_statement(struct body *b)
{
	static const char *const two[] = {"Add", "Sub", "Mul", "Max"}, *const one[] = {"Softsign", "Neg", "Sigmoid", "Abs"};
	const int kind = random_below(10), x = draw_value(b, MATRIX), y = draw_value(b, MATRIX);
	const enum form f = b->value[x].form, g = b->value[y].form;
	if (kind < 4)
		add_statement(b, two[random_below(4)], x, y, f > g ? f : g, false);
	else if (kind < 6)
		add_statement(b, one[random_below(4)], x, -1, f, false);
	else if (kind == 6 && f)
		add_statement(b, random_below(2) ? "ReduceMean" : "ReduceMax", x, -1, f - 1, false);
	else if (kind == 7 && f)
		add_statement(b, "MatMul", x, b->around + WEIGHT, f, false);
	else if (kind == 8 && b->loop)
		add_statement(b, "Gather", b->around + LIST, 0, VECTOR, false);
	else if (kind == 9 && f >= g)
		add_statement(b, "Loop", x, y, f, false);
}

/* What a state becomes: bounded, so that small differences stay small; or a value as it is. */
static inline int draw_next(struct body *b, int state)
{
	const struct value *v = &b->value[state];
	if (v->integer)
		return add_statement(b, "Add", state, random_below(2) && b->loop ? 0 : b->around + INCREMENT, SCALAR, true);
	int other = draw_value(b, v->form);
	if (random_below(6) == 0 && b->value[other].form == v->form)
		return other;
	int sum = add_statement(b, "Add", state, other, v->form, false);
	return add_statement(b, random_below(3) ? "Softsign" : "Tanh", sum, -1, v->form, false);
}

static inline bool is_used(const struct body *b, int value)
{
	for (int i = 0; i < b->statements; i++)
		if (b->statement[i].a == value || b->statement[i].b == value)
			return true;
	for (int i = 0; i < b->outputs; i++)
		if (b->out[i] == value)
			return true;
	return false;
}

/* Adds up the values that nothing uses, but for those of the graph around, to one more output: a graph must need all of
 * its inputs. */
static inline void use_all(struct body *b)
{
	const int n = b->values;
	int sum = draw_value(b, MATRIX);
	for (int i = 0; i < n; i++) {
		const struct value *v = &b->value[i], *s = &b->value[sum];
		bool outside = i >= b->around && i < b->around + AROUND;
		if (!outside && !v->integer && !is_used(b, i))
			sum = add_statement(b, "Add", sum, i, v->form > s->form ? v->form : s->form, false);
	}
	b->out[b->outputs++] = sum;
}

static inline void draw_body(struct body *b, bool loop)
{
	*b = (struct body){.loop = loop, .states = 1 + random_below(MOST_STATES), .scanned = loop ? 0 : 1 + random_below(2)};
	if (loop)
		add_value(b, SCALAR, true);
	const int first = b->values;
	for (int i = 0; i < b->states + b->scanned; i++)
		add_value(b, random_below(3), i < b->states && random_below(4) == 0);
	for (int i = 0; i < b->states; i++)
		if (b->value[first + i].integer)
			b->value[first + i].form = SCALAR;
	b->around = b->values;
	for (int i = 0; i < AROUND; i++)
		b->value[b->values++] = around[i].value;
	for (int i = 2 + random_below(5); i--;)
		draw_statement(b);
	b->outputs = b->states + random_below(MOST_SCANNED);
	for (int i = 0; i < b->outputs; i++)
		b->out[i] = i < b->states ? draw_next(b, first + i) : draw_value(b, MATRIX);
	use_all(b);
}

/* --- writing --- */

/* Adds a node of one output, with the attributes that its operator needs; returns the name of the output. */
static inline const char *add_node(struct str *graph, const char *op, int inputs, const char *const *in, const char *out,
				   const char *attribute, int64_t number)
{
	struct str s = begin_node(graph->arena, op, inputs, in, 1, &out);
	if (attribute && strcmp(attribute, "axes") == 0)
		put_integers(&s, attribute, &number, 1);
	else if (attribute)
		put_integer(&s, attribute, number);
	if (strncmp(op, "Reduce", 6) == 0)
		put_integer(&s, "keepdims", 0);
	put_node(graph, &s);
	return out;
}

static inline const char *make_name(struct arena *a, const char *prefix, const char *letter, int i)
{
	struct str s = str_in(a);
	str_printf(&s, "%s_%s%d", prefix, letter, i);
	return str_text(&s);
}

/* A loop in a body: s = Softsign(s + b), beginning with a. */
static inline void add_inner_loop(struct str *graph, const char *a, const char *b, int64_t trips, const char *out)
{
	struct str body = str_in(graph->arena);
	const char *sum = make_name(graph->arena, out, "sum", 0), *next = make_name(graph->arena, out, "next", 0),
		   *on = make_name(graph->arena, out, "on", 0), *state = make_name(graph->arena, out, "state", 0),
		   *count = make_name(graph->arena, out, "count", 0), *n = make_name(graph->arena, out, "trips", 0);
	add_node(&body, "Add", 2, (const char *[]){state, b}, sum, NULL, 0);
	add_node(&body, "Softsign", 1, &sum, next, NULL, 0);
	put_text(&body, 2, "inner");
	put_body_input(&body, count);
	put_body_input(&body, on);
	put_body_input(&body, state);
	put_output(&body, on);
	put_output(&body, next);
	put_tensor(graph, n, INTS, 0, NULL, &trips, sizeof trips);
	struct str s = begin_node(graph->arena, "Loop", 3, (const char *[]){n, "", a}, 1, &out);
	put_graph(&s, "body", &body);
	put_node(graph, &s);
}

/* The statements, of values whose names are given as far as these do not make them. */
static inline void add_statements(struct str *graph, const struct body *b, const char **name, const char *prefix)
{
	for (int i = 0; i < b->statements; i++) {
		const struct statement *s = &b->statement[i];
		const char *in[] = {name[s->a], s->b < 0 ? NULL : name[s->b]};
		bool reduces = strncmp(s->op, "Reduce", 6) == 0;
		name[s->out] = make_name(graph->arena, prefix, "v", s->out);
		if (strcmp(s->op, "Loop") == 0)
			add_inner_loop(graph, in[0], in[1], s->trips, name[s->out]);
		else
			add_node(graph, s->op, s->b < 0 ? 1 : 2, in, name[s->out],
				 reduces ? "axes" : strcmp(s->op, "Gather") == 0 ? "axis" : NULL, 0);
	}
}

static inline void name_around(const struct body *b, const char **name)
{
	for (int i = 0; i < AROUND; i++)
		name[b->around + i] = around[i].name;
}

/* The graph of the node. */
static inline struct str write_body(struct arena *a, const struct body *b, const char *prefix)
{
	struct str g = str_in(a);
	const char *name[MOST_VALUES], *on = make_name(a, prefix, "on", 0);
	put_text(&g, 2, "body");
	name_around(b, name);
	for (int i = 0; i < b->around; i++) {
		put_body_input(&g, name[i] = make_name(a, prefix, "in", i));
		if (b->loop && i == 0)
			put_body_input(&g, on);
	}
	add_statements(&g, b, name, prefix);
	if (b->loop)
		put_output(&g, on);
	for (int i = 0; i < b->outputs; i++)
		put_output(&g, name[b->out[i]]);
	return g;
}

#endif
