/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "onnx/reading.h"

#include <stdio.h>
#include <string.h>

/* Adds a value; -1 when there is one of the name. */
static int add_value(struct onnx_making *g, const char *name)
{
	if (!map_add_lasting(&g->names, name, strlen(name), g->values.n))
		return -1;
	vec_push(
	    g->reading->arena, &g->values,
	    (struct onnx_value){
		.name = name, .what_name = "tensor", .rank = -1, .producer = -1, .input = -1, .outer = -1});
	return g->values.n - 1;
}

static bool refuse_again(struct onnx_making *g, const char *what, const char *name)
{
	return onnx_report(g->reading, DIAG_ONNX_GRAPH, "give each value of a graph a name of its own",
			   "two %s are named '%.200s'", what, name);
}

/* --- declared types --- */

static bool read_shape(struct onnx_making *g, const Onnx__TensorShapeProto *s, struct onnx_value *v)
{
	if (s->n_dim > ONNX_MAX_RANK)
		return onnx_report(g->reading, DIAG_BAD_ONNX, NULL,
				   "the value '%.200s' has %zu axes; at most %d are supported", v->name,
				   s->n_dim, ONNX_MAX_RANK);
	v->rank = s->n_dim;
	for (int i = 0; i < v->rank; i++) {
		const Onnx__TensorShapeProto__Dimension *d = s->dim[i];
		bool sized = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
			     d->dim_value >= 0;
		bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
			     *onnx_text_of(d->dim_param);
		v->dim[i] = (struct onnx_dim){sized ? d->dim_value : -1, named ? d->dim_param : NULL};
		onnx_decide_extent(g->reading, &v->dim[i]);
	}
	return true;
}

static bool read_tensor_type(struct onnx_making *g, const Onnx__TypeProto__Tensor *t, struct onnx_value *v)
{
	if (t->elem_type < 0 || t->elem_type >= ONNX_TYPES)
		return onnx_report(g->reading, DIAG_BAD_ONNX, NULL,
				   "elements of the value '%.200s' have type number %d, which is not known",
				   v->name, t->elem_type);
	v->type = t->elem_type;
	return !t->shape || read_shape(g, t->shape, v);
}

static bool read_type(struct onnx_making *g, const Onnx__TypeProto *t, struct onnx_value *v)
{
	static const char *const others[] = {[ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE] = "sequence",
					     [ONNX__TYPE_PROTO__VALUE_MAP_TYPE] = "map",
					     [ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE] = "optional",
					     [ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE] = "sparse tensor"};
	if (!t || t->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
		return true;
	if (t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
		return !t->tensor_type || read_tensor_type(g, t->tensor_type, v);
	v->what = ONNX_OTHER_VALUE;
	v->what_name = others[t->value_case];
	return true;
}

/* --- inputs, initializers, outputs of nodes --- */

static bool define_inputs(struct onnx_making *g, const Onnx__GraphProto *from)
{
	int *input = ARENA_ARRAY(g->reading->arena, int, from->n_input + 1);
	for (size_t i = 0; i < from->n_input; i++) {
		const char *name = onnx_text_of(from->input[i]->name);
		if (!*name)
			return onnx_report(g->reading, DIAG_BAD_ONNX, NULL,
					   "input %zu of a graph has no name", i);
		input[i] = add_value(g, name);
		if (input[i] < 0)
			return refuse_again(g, "inputs", name);
		g->values.at[input[i]].input = i;
		if (!read_type(g, from->input[i]->type, &g->values.at[input[i]]))
			return false;
	}
	g->graph->input = input;
	g->graph->inputs = from->n_input;
	return true;
}

/* The declaration of an input may have names where the tensor has extents. */
static bool fits_declaration(const struct onnx_value *v, const struct onnx_tensor *t)
{
	bool ok = (v->type == ONNX_UNKNOWN_TYPE || v->type == t->type) && (v->rank < 0 || v->rank == t->rank);
	for (int i = 0; ok && i < v->rank; i++)
		ok = v->dim[i].size < 0 || v->dim[i].size == t->dim[i];
	return ok;
}

/* Says the type and the extents of a tensor, and those that its input is declared with. */
static bool refuse_constant(struct onnx_making *g, const struct onnx_value *v, const struct onnx_tensor *t)
{
	struct str has = str_in(g->reading->arena), wanted = str_in(g->reading->arena);
	for (int i = 0; i < t->rank; i++)
		str_printf(&has, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
	for (int i = 0; i < v->rank; i++)
		if (v->dim[i].size < 0)
			str_printf(&wanted, "%s%.60s", i ? ", " : "",
				   v->dim[i].param ? v->dim[i].param : "?");
		else
			str_printf(&wanted, "%s%lld", i ? ", " : "", (long long)v->dim[i].size);
	return onnx_report(g->reading, DIAG_ONNX_GRAPH, NULL,
			   "the tensor '%.200s' is %s[%s], and its input is declared as %s[%s]", v->name,
			   onnx_type_traits_of(t->type)->name, str_text(&has),
			   onnx_type_traits_of(v->type)->name, v->rank < 0 ? "..." : str_text(&wanted));
}

bool onnx_set_constant(struct onnx_making *g, int value, const struct onnx_tensor *t)
{
	struct onnx_value *v = &g->values.at[value];
	if (v->what != ONNX_TENSOR_VALUE || !fits_declaration(v, t))
		return refuse_constant(g, v, t);
	v->constant = t;
	v->type = t->type;
	v->rank = t->rank;
	for (int i = 0; i < t->rank; i++)
		v->dim[i] = (struct onnx_dim){t->dim[i], NULL};
	return true;
}

static bool define_initializer(struct onnx_making *g, const Onnx__TensorProto *from)
{
	char what[200];
	const char *name = onnx_text_of(from->name);
	struct onnx_tensor *t = ARENA_NEW(g->reading->arena, struct onnx_tensor);
	if (!*name)
		return onnx_report(g->reading, DIAG_BAD_ONNX, NULL, "an initializer has no name");
	int at = map_get(&g->names, name, strlen(name));
	if (at >= 0 && g->values.at[at].constant)
		return refuse_again(g, "initializers", name);
	snprintf(what, sizeof what, "the initializer '%.150s'", name);
	return onnx_make_tensor(g->reading, what, from, t) &&
	       onnx_set_constant(g, at < 0 ? add_value(g, name) : at, t);
}

static bool define_initializers(struct onnx_making *g, const Onnx__GraphProto *from)
{
	if (from->n_sparse_initializer)
		return onnx_report(g->reading, DIAG_BAD_ONNX, "save the tensor with all its elements",
				   "an initializer is a sparse tensor, which is not supported");
	for (size_t i = 0; i < from->n_initializer; i++)
		if (!define_initializer(g, from->initializer[i]))
			return false;
	return true;
}

static bool define_results(struct onnx_making *g, const Onnx__NodeProto *from, struct onnx_node *node)
{
	int *output = ARENA_ARRAY(g->reading->arena, int, from->n_output + 1);
	node->output = output;
	node->outputs = from->n_output;
	for (size_t i = 0; i < from->n_output; i++) {
		output[i] = *from->output[i] ? add_value(g, from->output[i]) : -1;
		if (*from->output[i] && output[i] < 0)
			return onnx_refuse(g->reading->diags, g->graph, node, DIAG_ONNX_GRAPH,
					   "give each value of a graph a name of its own",
					   "its output '%.200s' is the name of another value, too",
					   from->output[i]);
		if (output[i] >= 0) {
			g->values.at[output[i]].producer = node - g->graph->node;
			g->values.at[output[i]].result = i;
		}
	}
	return true;
}

/* What a list says about values that exist; others are passed over, and so is what is said again of an input.
 */
static bool declare_values(struct onnx_making *g, Onnx__ValueInfoProto *const *info, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = onnx_text_of(info[i]->name);
		int at = map_get(&g->names, name, strlen(name));
		if (at >= 0 && g->values.at[at].input < 0 && !g->values.at[at].constant &&
		    !read_type(g, info[i]->type, &g->values.at[at]))
			return false;
	}
	return true;
}

bool onnx_define_values(struct onnx_making *g, const Onnx__GraphProto *from)
{
	if (!define_inputs(g, from) || !define_initializers(g, from))
		return false;
	for (size_t i = 0; i < from->n_node; i++)
		if (!define_results(g, from->node[i], &g->graph->node[i]))
			return false;
	return declare_values(g, from->value_info, from->n_value_info) &&
	       declare_values(g, from->output, from->n_output);
}

/* --- what names mean --- */

int onnx_find_value(struct onnx_making *g, const char *name)
{
	int at = map_get(&g->names, name, strlen(name));
	if (at >= 0 || !g->outer)
		return at;
	int outer = onnx_find_value(g->outer, name);
	if (outer < 0)
		return -1;
	struct onnx_value v = g->outer->values.at[outer];
	at = add_value(g, v.name);
	v.outer = outer;
	v.producer = v.input = -1;
	v.result = 0;
	g->values.at[at] = v;
	return at;
}
