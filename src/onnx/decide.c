/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the caller decides about a graph: sizes, values of inputs, and which values are outputs. */
#include "onnx/reading.h"

#include <stdio.h>
#include <string.h>

/* An extent without a name of its own is named by its input and its axis. */
static void name_axis(char *to, size_t n, const char *input, int axis)
{
	snprintf(to, n, "%s[%d]", input, axis);
}

static int64_t take_size(struct onnx_reading *r, const char *name)
{
	for (size_t i = 0; i < r->choices->sizes; i++)
		if (strcmp(r->choices->size[i].name, name) == 0)
			return r->used[i] = true, r->choices->size[i].size;
	return -1;
}

void onnx_decide_extent(struct onnx_reading *r, struct onnx_dim *d)
{
	if (r->choices && d->param)
		d->size = take_size(r, d->param);
}

static void decide_axes(struct onnx_making *g)
{
	char name[300];
	for (size_t i = 0; i < g->graph->inputs; i++) {
		struct onnx_value *v = &g->values.at[g->graph->input[i]];
		for (int axis = 0; axis < v->rank; axis++) {
			name_axis(name, sizeof name, v->name, axis);
			if (v->dim[axis].size < 0 && !v->dim[axis].param)
				v->dim[axis].size = take_size(g->reading, name);
		}
	}
}

static bool is_named_before(const struct onnx_making *g, size_t input, int axis, const char *param)
{
	for (size_t i = 0; i <= input; i++) {
		const struct onnx_value *v = &g->values.at[g->graph->input[i]];
		for (int d = 0; d < (i < input ? v->rank : axis); d++)
			if (v->dim[d].param && strcmp(v->dim[d].param, param) == 0)
				return true;
	}
	return false;
}

enum { LIST_LENGTH = 300 };

/* The inputs with their extents, for a hint where all are known: "x[1, 3, 224, 224]". */
static void list_shapes(const struct onnx_making *g, struct str *s)
{
	for (size_t i = 0; i < g->graph->inputs && s->n < LIST_LENGTH; i++) {
		const struct onnx_value *v = &g->values.at[g->graph->input[i]];
		if (v->constant || v->rank < 0)
			continue;
		str_printf(s, "%s%s[", s->n ? ", " : "all extents of its inputs are known: ", v->name);
		for (int axis = 0; axis < v->rank; axis++)
			str_printf(s, "%s%lld", axis ? ", " : "", (long long)v->dim[axis].size);
		str_puts(s, "]");
	}
	if (!s->n)
		str_puts(s, "it has no inputs with extents");
}

/* The names that extents of inputs have, for a hint. */
static void list_names(const struct onnx_making *g, struct str *s)
{
	char name[300];
	for (size_t i = 0; i < g->graph->inputs && s->n < LIST_LENGTH; i++) {
		const struct onnx_value *v = &g->values.at[g->graph->input[i]];
		for (int axis = 0; axis < v->rank; axis++) {
			const char *param = v->dim[axis].param;
			if ((v->dim[axis].size >= 0 && !param) ||
			    (param && is_named_before(g, i, axis, param)))
				continue;
			name_axis(name, sizeof name, v->name, axis);
			str_printf(s, "%s%s",
				   s->n ? ", " : "extents that can be given: ", param ? param : name);
		}
	}
}

static bool is_given_before(const struct onnx_choices *c, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (strcmp(c->size[i].name, c->size[size].name) == 0)
			return true;
	return false;
}

/* Finds the axis of an input that a size names and the graph fixes; sets its extent. */
static bool find_fixed(const struct onnx_making *g, const char *size, int64_t *extent)
{
	char name[300];
	for (size_t i = 0; i < g->graph->inputs; i++) {
		const struct onnx_value *v = &g->values.at[g->graph->input[i]];
		for (int axis = 0; axis < v->rank; axis++) {
			name_axis(name, sizeof name, v->name, axis);
			*extent = v->dim[axis].size;
			if (*extent >= 0 && !v->dim[axis].param && strcmp(name, size) == 0)
				return true;
		}
	}
	return false;
}

/* Takes a size of an extent that the graph fixes, if it is the same; refuses others, and names of no extent. */
static bool check_unused(struct onnx_making *g, const struct onnx_size *s)
{
	struct str names = str_in(g->reading->arena);
	int64_t extent;
	bool fixed = find_fixed(g, s->name, &extent);
	if (fixed && extent == s->size)
		return true;
	list_names(g, &names);
	if (!names.n)
		list_shapes(g, &names);
	return fixed ? onnx_report(g->reading, DIAG_ONNX_CHOICE, str_text(&names), "the size of '%.200s' is %lld in the graph, not %lld",
				   s->name, (long long)extent, (long long)s->size)
		     : onnx_report(g->reading, DIAG_ONNX_CHOICE, str_text(&names), "no extent is named '%.200s'", s->name);
}

static bool check_sizes(struct onnx_making *g)
{
	struct onnx_reading *r = g->reading;
	for (size_t i = 0; i < r->choices->sizes; i++) {
		if (r->choices->size[i].size < 1 || r->choices->size[i].size > INT32_MAX)
			return onnx_report(
			    r, DIAG_ONNX_CHOICE, NULL, "the size %lld of '%.200s' is not in 1 .. %d",
			    (long long)r->choices->size[i].size, r->choices->size[i].name, INT32_MAX);
		if (is_given_before(r->choices, i))
			return onnx_report(r, DIAG_ONNX_CHOICE, NULL, "two sizes are given of '%.200s'",
					   r->choices->size[i].name);
		if (!r->used[i] && !check_unused(g, &r->choices->size[i]))
			return false;
	}
	return true;
}

static bool decide_constants(struct onnx_making *g)
{
	const struct onnx_choices *c = g->reading->choices;
	for (size_t i = 0; i < c->constants; i++) {
		const char *name = c->constant[i].name;
		int at = map_get(&g->names, name, strlen(name));
		if (at < 0 || g->values.at[at].input < 0 || g->values.at[at].constant)
			return onnx_report(g->reading, DIAG_ONNX_CHOICE, NULL,
					   "'%.200s', of which a value is given, is no input of the graph",
					   name);
		if (!onnx_set_constant(g, at, &c->constant[i]))
			return false;
	}
	return true;
}

bool onnx_decide_values(struct onnx_making *g)
{
	decide_axes(g);
	return decide_constants(g) && check_sizes(g);
}

bool onnx_decide_outputs(struct onnx_making *g)
{
	const struct onnx_choices *c = g->reading->choices;
	int *output = ARENA_ARRAY(g->reading->arena, int, c->exports + 1);
	for (size_t i = 0; i < c->exports; i++) {
		output[i] = map_get(&g->names, c->exported[i], strlen(c->exported[i]));
		if (output[i] < 0)
			return onnx_report(g->reading, DIAG_ONNX_CHOICE,
					   "names are those of inputs, initializers and outputs of nodes",
					   "'%.200s', which is to be exported, is no value of the graph",
					   c->exported[i]);
	}
	if (c->exports) {
		g->graph->output = output;
		g->graph->outputs = c->exports;
	}
	return true;
}
