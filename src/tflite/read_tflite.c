/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From bytes to a checked graph: tensors become values, operators nodes, and their options attributes. */
#include "tflite/lite.h"

#include <string.h>

/* A file that is being read. */
struct reading {
	struct flat_file file;
	struct onnx_graph *graph;
	struct flat_list operators;
	struct code {
		const char *name, *custom;
		int64_t version;
	} * code;
	uint32_t codes;
	struct buffer {
		struct flat_list data;
		const void *copy; /* made for the first tensor that has it */
	} * buffer;
	uint32_t buffers;
	int64_t variables; /* elements of those so far */
};

/* --- operators' names, buffers --- */

static const char *const builtins[] = {
#define TFLITE_BUILTIN(name) #name,
#include "tflite/builtins.def"
};

/* Numbers to 126 stand in a field of bytes, all others, and 127 in it, in one that came later. */
static struct code read_code(struct flat_file *f, const struct flat_table *t)
{
	int64_t early = flat_number(f, t, FLAT_OPERATOR_CODE_deprecated_builtin_code),
		late = flat_number(f, t, FLAT_OPERATOR_CODE_builtin_code);
	int64_t number = early > late ? early : late;
	if (number < 0 || number >= (int64_t)(sizeof builtins / sizeof *builtins)) {
		flat_refuse(f, "the operator %lld is of a newer version of the format", (long long)number);
		number = 0;
	}
	return (struct code){builtins[number], flat_text(f, t, FLAT_OPERATOR_CODE_custom_code),
			     flat_number(f, t, FLAT_OPERATOR_CODE_version)};
}

static void read_codes(struct reading *r, const struct flat_table *model)
{
	struct flat_list l = flat_list(&r->file, model, FLAT_MODEL_operator_codes);
	r->codes = l.n;
	r->code = ARENA_ARRAY(r->file.arena, struct code, l.n + 1);
	for (uint32_t i = 0; i < l.n && !r->file.failed; i++) {
		struct flat_table t = flat_child_at(&r->file, &l, i, FLAT_OPERATOR_CODE, false);
		r->code[i] = read_code(&r->file, &t);
	}
}

static void read_buffers(struct reading *r, const struct flat_table *model)
{
	struct flat_list l = flat_list(&r->file, model, FLAT_MODEL_buffers);
	r->buffers = l.n;
	r->buffer = ARENA_ARRAY(r->file.arena, struct buffer, l.n + 1);
	for (uint32_t i = 0; i < l.n && !r->file.failed; i++) {
		struct flat_table t = flat_child_at(&r->file, &l, i, FLAT_BUFFER, true);
		r->buffer[i].data = flat_list(&r->file, &t, FLAT_BUFFER_data);
		if (flat_number(&r->file, &t, FLAT_BUFFER_offset) ||
		    flat_number(&r->file, &t, FLAT_BUFFER_size))
			flat_refuse(
			    &r->file,
			    "buffer %u lies behind the tables, as in files of over 2 GiB, which are not read",
			    i);
	}
}

/* --- tensors --- */

/* The types of elements, by their numbers here. */
static enum onnx_type find_type(int64_t number)
{
	static const enum onnx_type types[] = {
	    ONNX_FLOAT,	 ONNX_FLOAT16,	  ONNX_INT32,  ONNX_UINT8,	  ONNX_INT64,
	    ONNX_STRING, ONNX_BOOL,	  ONNX_INT16,  ONNX_COMPLEX64,	  ONNX_INT8,
	    ONNX_DOUBLE, ONNX_COMPLEX128, ONNX_UINT64, ONNX_UNKNOWN_TYPE, ONNX_UNKNOWN_TYPE,
	    ONNX_UINT32, ONNX_UINT16,	  ONNX_INT4,   ONNX_BFLOAT16};
	return number >= 0 && number < (int64_t)(sizeof types / sizeof *types) ? types[number]
									       : ONNX_UNKNOWN_TYPE;
}

static int64_t count_elements(const struct onnx_value *v)
{
	int64_t n = 1;
	for (int d = 0; d < v->rank; d++)
		if (__builtin_mul_overflow(n, v->dim[d].size, &n) || n > ONNX_MAX_BYTES)
			return -1;
	return n;
}

static void read_shape(struct flat_file *f, const struct flat_table *t, struct onnx_value *v)
{
	struct flat_list shape = flat_list(f, t, FLAT_TENSOR_shape);
	if (shape.n > ONNX_MAX_RANK)
		flat_refuse(f, "'%.120s' has %u axes, and tensors have at most %d", v->name, shape.n,
			    ONNX_MAX_RANK);
	for (v->rank = 0; !f->failed && v->rank < (int)shape.n; v->rank++) {
		v->dim[v->rank].size = flat_integer_at(f, &shape, (uint32_t)v->rank);
		if (v->dim[v->rank].size < 0)
			flat_refuse(f, "axis %d of '%.120s' has the negative extent %lld", v->rank, v->name,
				    (long long)v->dim[v->rank].size);
	}
}

static void set_constant(struct reading *r, struct onnx_value *v, const void *data, size_t bytes)
{
	struct onnx_tensor *t = ARENA_NEW(r->file.arena, struct onnx_tensor);
	*t = (struct onnx_tensor){.name = v->name,
				  .type = v->type,
				  .rank = v->rank,
				  .elements = count_elements(v),
				  .data = data,
				  .bytes = bytes};
	for (int d = 0; d < v->rank; d++)
		t->dim[d] = v->dim[d].size;
	v->constant = t;
}

/* Elements that the file has.  Tensors that have a buffer in common have its one copy. */
static void read_elements(struct reading *r, struct onnx_value *v, struct buffer *b)
{
	int64_t n = count_elements(v);
	int bits = onnx_type_traits_of(v->type)->bits;
	if (bits % 8 || !bits || n < 0 || n * (bits / 8) != b->data.n) {
		flat_refuse(&r->file,
			    "'%.120s' has %u bytes of elements, which its shape and its type %s do not have",
			    v->name, b->data.n, onnx_type_traits_of(v->type)->name);
		return;
	}
	if (!b->copy)
		b->copy = arena_copy(r->file.arena, r->file.bytes + b->data.at, b->data.n);
	set_constant(r, v, b->copy, b->data.n);
}

/* What a variable begins with: elements that stand for 0. */
static void clear_variable(struct reading *r, struct onnx_value *v)
{
	int64_t n = count_elements(v);
	r->variables += n < 0 ? 0 : n;
	if (n < 0 || r->variables > (int64_t)r->file.n ||
	    (v->type != ONNX_INT8 && v->type != ONNX_INT16 && v->type != ONNX_FLOAT)) {
		flat_refuse(&r->file,
			    "the variable '%.120s' and those before it have more elements than the file has "
			    "bytes, or it is of type %s",
			    v->name, onnx_type_traits_of(v->type)->name);
		return;
	}
	size_t bytes = (size_t)n * (size_t)(onnx_type_traits_of(v->type)->bits / 8);
	char *data = arena_take(r->file.arena, bytes + 1, 1);
	memset(data, v->type == ONNX_INT8 && v->quantisation ? (int)v->quantisation->zero[0] : 0, bytes);
	set_constant(r, v, data, bytes);
	v->variable = true;
}

/* Converters join the names of all that they have fused: of a long one the beginning, up to a whole
 * character. */
static const char *shorten_name(struct arena *arena, const char *name)
{
	enum { MOST = 200 };
	size_t n = strlen(name);
	if (n <= MOST)
		return name;
	for (n = MOST; n && (name[n] & 0xc0) == 0x80; n--)
		;
	return arena_text(arena, name, n);
}

static void read_tensor(struct reading *r, const struct flat_table *t, struct onnx_value *v)
{
	struct flat_file *f = &r->file;
	*v = (struct onnx_value){.what_name = "tensor", .producer = -1, .input = -1, .outer = -1};
	v->name = shorten_name(f->arena, flat_text(f, t, FLAT_TENSOR_name));
	v->type = find_type(flat_number(f, t, FLAT_TENSOR_type));
	read_shape(f, t, v);
	v->quantisation = tflite_read_quantisation(f, t);
	int64_t buffer = flat_number(f, t, FLAT_TENSOR_buffer);
	if (buffer >= r->buffers && buffer)
		flat_refuse(f, "'%.120s' has the buffer %lld of %u", v->name, (long long)buffer, r->buffers);
	if (f->failed)
		return;
	if (buffer && r->buffer[buffer].data.n)
		read_elements(r, v, &r->buffer[buffer]);
	else if (flat_number(f, t, FLAT_TENSOR_is_variable))
		clear_variable(r, v);
}

static void read_tensors(struct reading *r, const struct flat_table *graph)
{
	struct flat_list l = flat_list(&r->file, graph, FLAT_SUBGRAPH_tensors);
	r->graph->values = l.n;
	r->graph->value = ARENA_ARRAY(r->file.arena, struct onnx_value, l.n + 1);
	for (uint32_t i = 0; i < l.n && !r->file.failed; i++) {
		struct flat_table t = flat_child_at(&r->file, &l, i, FLAT_TENSOR, false);
		read_tensor(r, &t, &r->graph->value[i]);
	}
}

/* --- nodes --- */

/* Adds numbers of values to others; -1 = an argument that is left out. */
static void add_numbers(struct reading *r, const struct flat_list *l, const char *what, int **to, size_t *n)
{
	for (uint32_t i = 0; i < l->n; i++) {
		int64_t value = flat_integer_at(&r->file, l, i);
		if (value < -1 || value >= (int64_t)r->graph->values) {
			flat_refuse(&r->file, "%s name the tensor %lld of %zu", what, (long long)value,
				    r->graph->values);
			return;
		}
		(*to)[(*n)++] = (int)value;
	}
}

static int *read_numbers(struct reading *r, const struct flat_table *t, enum flat_field field,
			 const char *what, size_t *n)
{
	struct flat_list l = flat_list(&r->file, t, field);
	int *to = ARENA_ARRAY(r->file.arena, int, l.n + 1);
	*n = 0;
	add_numbers(r, &l, what, &to, n);
	return to;
}

/* What carries the scales of values within an operator stands behind its outputs. */
static int *read_outputs(struct reading *r, const struct flat_table *t, size_t *n)
{
	struct flat_list own = flat_list(&r->file, t, FLAT_OPERATOR_outputs),
			 within = flat_list(&r->file, t, FLAT_OPERATOR_intermediates);
	int *to = ARENA_ARRAY(r->file.arena, int, (size_t)own.n + within.n + 1);
	*n = 0;
	add_numbers(r, &own, "the outputs of an operator", &to, n);
	add_numbers(r, &within, "the intermediates of an operator", &to, n);
	return to;
}

static void make_attribute(struct reading *r, const struct flat_table *t, enum flat_field field,
			   struct onnx_attribute *a)
{
	const struct flat_field_traits *traits = flat_traits_of(field);
	*a = (struct onnx_attribute){.name = traits->name, .n = 1, .kind = ONNX_KIND_INT, .kind_name = "INT"};
	if (traits->kind == FLAT_F32) {
		a->kind = ONNX_KIND_FLOAT, a->kind_name = "FLOAT";
		a->f = flat_float(&r->file, t, field);
	} else if (traits->kind == FLAT_I32S) {
		struct flat_list l = flat_list(&r->file, t, field);
		int64_t *ints = ARENA_ARRAY(r->file.arena, int64_t, l.n + 1);
		for (uint32_t i = 0; i < l.n; i++)
			ints[i] = flat_integer_at(&r->file, &l, i);
		a->kind = ONNX_KIND_INTS, a->kind_name = "INTS", a->ints = ints, a->n = l.n;
	} else {
		a->i = flat_number(&r->file, t, field);
	}
}

enum { MOST_OPTIONS = 16 }; /* fields that a table of options of schema.def has at most */

/* All fields of the options are attributes, those that a file leaves out with the numbers that they have
 * then. */
static void read_options(struct reading *r, const struct flat_table *operator, struct onnx_node * n)
{
	struct flat_file *f = &r->file;
	const struct tflite_options *o = tflite_find_options(n->op);
	int64_t number = flat_number(f, operator, FLAT_OPERATOR_builtin_options_type);
	if (!o || (o->number && !number))
		return;
	if (o->number && number != o->number) {
		flat_refuse(f, "operator %d, %s, has options %lld, which are those of another one", n->number,
			    n->op, (long long)number);
		return;
	}
	struct flat_table t = {.type = o->type};
	if (o->number)
		t = flat_child(f, operator, FLAT_OPERATOR_builtin_options, o->type);
	struct onnx_attribute a[MOST_OPTIONS];
	for (enum flat_field i = 0; i < FLAT_FIELDS; i++)
		if (flat_traits_of(i)->type == o->type && flat_traits_of(i)->kind != FLAT_IGNORED)
			make_attribute(r, &t, i, &a[n->attributes++]);
	n->attribute = arena_copy(f->arena, a, sizeof *a * n->attributes);
}

static void read_operator(struct reading *r, const struct flat_table *t, struct onnx_node *n)
{
	struct flat_file *f = &r->file;
	int64_t code = flat_number(f, t, FLAT_OPERATOR_opcode_index);
	if (code >= r->codes) {
		flat_refuse(f, "operator %d has the code %lld of %u", n->number, (long long)code, r->codes);
		return;
	}
	n->op = r->code[code].name, n->domain = "tflite", n->name = r->code[code].custom;
	n->opset = r->code[code].version;
	n->input = read_numbers(r, t, FLAT_OPERATOR_inputs, "the inputs of an operator", &n->inputs);
	n->output = read_outputs(r, t, &n->outputs);
	read_options(r, t, n);
}

static void read_operators(struct reading *r, const struct flat_table *graph)
{
	struct flat_list l = flat_list(&r->file, graph, FLAT_SUBGRAPH_operators);
	r->graph->nodes = l.n;
	r->graph->node = ARENA_ARRAY(r->file.arena, struct onnx_node, l.n + 1);
	for (uint32_t i = 0; i < l.n && !r->file.failed; i++) {
		struct flat_table t = flat_child_at(&r->file, &l, i, FLAT_OPERATOR, false);
		r->graph->node[i].number = (int)i;
		read_operator(r, &t, &r->graph->node[i]);
	}
}

/* --- the graph --- */

static void read_subgraph(struct reading *r, const struct flat_table *model)
{
	struct flat_list l = flat_list(&r->file, model, FLAT_MODEL_subgraphs);
	if (!l.n)
		flat_refuse(&r->file, "it has no graph");
	struct flat_table t = flat_child_at(&r->file, &l, 0, FLAT_SUBGRAPH, false);
	r->graph->name = flat_text(&r->file, &t, FLAT_SUBGRAPH_name);
	read_tensors(r, &t);
	r->graph->input =
	    read_numbers(r, &t, FLAT_SUBGRAPH_inputs, "the inputs of the graph", &r->graph->inputs);
	r->graph->output =
	    read_numbers(r, &t, FLAT_SUBGRAPH_outputs, "the outputs of the graph", &r->graph->outputs);
	read_operators(r, &t);
}

static bool refuse_value(struct reading *r, const struct onnx_node *n, int value, const char *what)
{
	const char *name = value < 0 ? "" : r->graph->value[value].name;
	return onnx_refuse(r->file.diags, r->graph, n, DIAG_ONNX_GRAPH, NULL, "tensor %d '%.120s' %s", value,
			   name, what);
}

static bool mark_inputs(struct reading *r)
{
	for (size_t i = 0; i < r->graph->inputs; i++) {
		int value = r->graph->input[i];
		if (value < 0 || r->graph->value[value].constant || r->graph->value[value].input >= 0) {
			flat_refuse(&r->file, "input %zu of the graph is none, a constant, or another input",
				    i);
			return false;
		}
		r->graph->value[value].input = (int)i;
	}
	return true;
}

/* Operators run in the order of the file: each takes what is there before it. */
static bool link_node(struct reading *r, size_t number)
{
	const struct onnx_node *n = &r->graph->node[number];
	for (size_t i = 0; i < n->inputs; i++) {
		const struct onnx_value *v = &r->graph->value[n->input[i] < 0 ? 0 : n->input[i]];
		if (n->input[i] >= 0 && !v->constant && v->input < 0 && v->producer < 0)
			return refuse_value(r, n, n->input[i],
					    "is its input, and no operator before it computes it");
	}
	for (size_t i = 0; i < n->outputs; i++) {
		struct onnx_value *v = &r->graph->value[n->output[i] < 0 ? 0 : n->output[i]];
		if (n->output[i] < 0 || v->constant || v->input >= 0 || v->producer >= 0)
			return refuse_value(r, n, n->output[i],
					    "is its output, and something else defines it");
		v->producer = (int)number, v->result = (int)i;
	}
	return true;
}

static bool check_outputs(struct reading *r)
{
	for (size_t i = 0; i < r->graph->outputs; i++) {
		int value = r->graph->output[i];
		const struct onnx_value *v = &r->graph->value[value < 0 ? 0 : value];
		if (value < 0 || (!v->constant && v->input < 0 && v->producer < 0)) {
			flat_refuse(&r->file, "no operator computes output %zu of the graph", i);
			return false;
		}
	}
	return true;
}

static bool is_needed(const struct onnx_node *n, const bool *needed)
{
	for (size_t i = 0; i < n->outputs; i++)
		if (needed[n->output[i]])
			return true;
	return false;
}

/* Drops nodes that no output needs. */
static void drop_nodes(struct reading *r)
{
	struct onnx_graph *g = r->graph;
	bool *needed = ARENA_ARRAY(r->file.arena, bool, g->values + 1),
	     *kept = ARENA_ARRAY(r->file.arena, bool, g->nodes + 1);
	size_t n = 0;
	for (size_t i = 0; i < g->outputs; i++)
		needed[g->output[i]] = true;
	for (size_t i = g->nodes; i-- > 0;) {
		kept[i] = is_needed(&g->node[i], needed);
		for (size_t k = 0; kept[i] && k < g->node[i].inputs; k++)
			if (g->node[i].input[k] >= 0)
				needed[g->node[i].input[k]] = true;
	}
	for (size_t i = 0; i < g->nodes; i++) {
		for (size_t k = 0; k < g->node[i].outputs; k++)
			g->value[g->node[i].output[k]].producer = kept[i] ? (int)n : -1;
		if (kept[i])
			g->node[n++] = g->node[i];
	}
	g->nodes = n;
}

static bool link_nodes(struct reading *r)
{
	if (!mark_inputs(r))
		return false;
	for (size_t i = 0; i < r->graph->nodes; i++)
		if (!link_node(r, i) ||
		    !tflite_check_quantisation(r->file.diags, r->graph, &r->graph->node[i]))
			return false;
	if (!check_outputs(r))
		return false;
	drop_nodes(r);
	return true;
}

bool tflite_read_graph(struct arena *arena, struct diags *diags, const char *file, const void *bytes,
		       size_t n, struct onnx_graph **out)
{
	struct reading *r = ARENA_NEW(arena, struct reading);
	struct flat_table model =
	    flat_open(&r->file, arena, diags, arena_string(arena, file), bytes, n, "TFL3", FLAT_MODEL);
	r->graph = *out = ARENA_NEW(arena, struct onnx_graph);
	*r->graph = (struct onnx_graph){
	    .file = r->file.name, .table = &tflite_table, .name = "", .bytes = (int64_t)n};
	if (!r->file.failed && flat_number(&r->file, &model, FLAT_MODEL_version) != 3)
		flat_refuse(&r->file, "it is of version %lld of the format, and version 3 is read",
			    (long long)flat_number(&r->file, &model, FLAT_MODEL_version));
	r->graph->ir = 3;
	r->graph->producer = flat_text(&r->file, &model, FLAT_MODEL_description);
	read_codes(r, &model);
	read_buffers(r, &model);
	read_subgraph(r, &model);
	return !r->file.failed && link_nodes(r);
}
