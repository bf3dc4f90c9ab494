/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The reader of ONNX files: what it makes of proper graphs, and what it says of others. */
#include "onnx/graph.h"
#include "tests/io/files.h"
#include "tests/onnx/messages.h"

#include <sys/stat.h>

static int64_t two = 2;
static float numbers[2] = {1.5f, -2};

/* y = Relu(x + w), which stands before what it needs in the file. */
static void make_small(struct parts *p)
{
	init_parts(p, 13);
	put_node(p, "last", "Relu", "sum", NULL, "y");
	put_node(p, "first", "Add", "x", "w", "sum");
	put_input(p, "x");
	put_output(p, "y");
	put_tensor(p, "w", &two, numbers, 2);
}

static struct onnx_graph *read_bytes(const void *bytes, size_t n, const struct onnx_choices *choices)
{
	struct onnx_graph *graph;
	return onnx_read_graph(&arena, &diags, path_of("model.onnx"), bytes, n, choices, &graph) ? graph
												 : NULL;
}

static struct onnx_graph *read_parts(const struct parts *p, const struct onnx_choices *choices)
{
	size_t n;
	uint8_t *bytes = pack_parts(p, &n);
	struct onnx_graph *graph = read_bytes(bytes, n, choices);
	free(bytes);
	return graph;
}

static void reads(void)
{
	struct parts p;
	make_small(&p);
	struct onnx_graph *g = read_parts(&p, NULL);
	if (!tap_ok(accepted(g), "a graph is read"))
		return;
	tap_ok(g->nodes == 2 && strcmp(g->node[0].op, "Add") == 0 && strcmp(g->node[1].op, "Relu") == 0 &&
		   g->node[0].number == 1 && g->node[0].opset == 13 && !*g->node[0].domain,
	       "its nodes are in topological order");
	const struct onnx_value *w = &g->value[g->node[0].input[1]], *sum = &g->value[g->node[1].input[0]];
	tap_ok(w->constant && w->constant->type == ONNX_FLOAT && w->constant->bytes == 8 && w->rank == 1 &&
		   w->dim[0].size == 2 && memcmp(w->constant->data, numbers, 8) == 0,
	       "initializers are constants with their elements");
	tap_ok(sum->producer == 0 && !sum->constant && g->value[g->output[0]].producer == 1 &&
		   g->value[g->input[0]].input == 0,
	       "values know where they come from");
	put_node(&p, "idle", "Exp", "sum", NULL, "nobody");
	g = read_parts(&p, NULL);
	tap_ok(accepted(g) && g->nodes == 2, "nodes that no output needs are dropped");
	g = read_parts(&p,
		       &(struct onnx_choices){.exported = (const char *[]){"nobody", "sum"}, .exports = 2});
	tap_ok(accepted(g) && g->nodes == 2 && strcmp(g->node[1].op, "Exp") == 0 && g->outputs == 2,
	       "other values can be exported");
}

static void takes_versions(void)
{
	struct parts p;
	make_small(&p);
	p.model.n_opset_import = 0;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_OPSET, "says of no version"),
	       "a model that imports no operators is refused");
	p.model.ir_version = 2;
	struct onnx_graph *g = read_parts(&p, NULL);
	tap_ok(accepted(g) && g->node[0].opset == 1,
	       "but for one of an old format, which has those of version 1");
	make_small(&p);
	p.opset.version = 22;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_OPSET, "version 22"),
	       "operators of version 22 are refused");
	make_small(&p);
	p.node[0].node.domain = "com.example";
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_OPSET, "node 0 'last' (com.example.Relu"),
	       "so are those of a domain that is not imported");
}

static void refuses_graphs(void)
{
	struct parts p;
	make_small(&p);
	p.node[1].input[1] = "y";
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_GRAPH, "depends on itself"), "a cycle is refused");
	make_small(&p);
	p.node[1].output[0] = "w";
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_GRAPH, "node 1 'first' (Add, opset 13)"),
	       "a name that two values have is refused");
	make_small(&p);
	p.node[1].input[0] = "nothing";
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_GRAPH, "'nothing' is defined nowhere"),
	       "a name that no value has is refused");
	make_small(&p);
	put_output(&p, "none");
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_GRAPH, "'none'"),
	       "so is an output that nothing computes");
	make_small(&p);
	put_tensor(&p, "w", &two, numbers, 2);
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_GRAPH, "two initializers"),
	       "and a tensor that comes twice");
	make_small(&p);
	p.node[0].node.op_type = NULL;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "names no operator"),
	       "and a node without an operator");
	make_small(&p);
	p.model.graph = NULL;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "no graph"), "and a model without a graph");
}

static void refuses_tensors(void)
{
	static int64_t huge = (int64_t)1 << 40, negative = -1, three = 3;
	struct parts p;
	make_small(&p);
	p.tensor[0].dims = &three;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "take 3 elements, it has 2"),
	       "a size that lies is refused");
	p.tensor[0].dims = &huge;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "the initializer 'w'"),
	       "so is one of 2^40 elements");
	p.tensor[0].dims = &negative;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "extent of its axis 0 is -1"),
	       "and one below zero");
	p.tensor[0].dims = &two;
	p.tensor[0].data_type = 99;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "type number 99"),
	       "and a type that is not known");
	p.tensor[0].data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "cannot be in 'float_data'"),
	       "and elements in another's place");
	p.tensor[0].data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
	p.tensor[0].has_raw_data = true;
	p.tensor[0].raw_data = (ProtobufCBinaryData){8, (uint8_t *)numbers};
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "'raw_data' and in 'float_data'"),
	       "and elements in two places");
	p.tensor[0].n_float_data = 0;
	tap_ok(accepted(read_parts(&p, NULL)), "in one of them they are read");
}

/* Elements of 8 and 16 bits and truth values come as numbers of 32 bits, too. */
static void narrows(void)
{
	static int32_t small[2] = {-3, 200}, halves[2] = {0x3c00, 0xc000}, wrong[2] = {1, 300};
	struct parts p;
	make_small(&p);
	Onnx__TensorProto *t = &p.tensor[0];
	t->n_float_data = 0;
	t->int32_data = small;
	t->n_int32_data = 2;
	t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT8;
	struct onnx_graph *g = read_parts(&p, NULL);
	tap_ok(accepted(g) && memcmp(g->value[g->node[0].input[1]].constant->data, "\xfd\xc8", 2) == 0,
	       "bytes are narrowed");
	t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
	g = read_parts(&p, NULL);
	tap_ok(accepted(g) && memcmp(g->value[g->node[0].input[1]].constant->data, "\1\1", 2) == 0,
	       "truth values become 0 and 1");
	t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
	t->int32_data = halves;
	g = read_parts(&p, NULL);
	tap_ok(accepted(g) && memcmp(g->value[g->node[0].input[1]].constant->data, "\0\x3c\0\xc0", 4) == 0,
	       "halves keep their bits");
	t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
	t->int32_data = wrong;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "is 300, which is no uint8"),
	       "a number that is none of the type is refused");
}

/* --- external data --- */

static Onnx__StringStringEntryProto entry[3], *entries[3] = {&entry[0], &entry[1], &entry[2]};

static void place_outside(struct parts *p, char *location, char *offset, char *length)
{
	char *const keys[] = {"location", "offset", "length"}, *const values[] = {location, offset, length};
	make_small(p);
	for (int i = 0; i < 3; i++) {
		onnx__string_string_entry_proto__init(&entry[i]);
		entry[i].key = keys[i];
		entry[i].value = values[i];
	}
	p->tensor[0].n_float_data = 0;
	p->tensor[0].external_data = entries;
	p->tensor[0].n_external_data = 3;
	p->tensor[0].has_data_location = true;
	p->tensor[0].data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static void refuses_outside(char *location, char *offset, char *length, const char *text, const char *what)
{
	struct parts p;
	place_outside(&p, location, offset, length);
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_EXTERNAL, text), "%s", what);
}

/* An extent costs the writer a few bytes, and the reader nothing until the file is seen to have them. */
static void refuses_outside_early(void)
{
	struct parts p;
	int64_t extent = 1 << 29;
	place_outside(&p, "data", "0", "2147483648");
	p.tensor[0].dims = &extent;
	size_t before = arena.bytes;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_EXTERNAL, "which has 12") && arena.bytes - before < 1 << 20,
	       "a tensor of 2 GiB that its file does not have takes no memory");
}

static void reads_outside(void)
{
	struct parts p;
	write_file("data", "....\0\0\xc0\x3f\0\0\0\xc0", 12);
	place_outside(&p, "data", "4", "8");
	struct onnx_graph *g = read_parts(&p, NULL);
	tap_ok(accepted(g) && memcmp(g->value[g->node[0].input[1]].constant->data, numbers, 8) == 0,
	       "elements are read from a file beside the model");
	refuses_outside("../data", "0", "8", "no path inside", "a path that leaves the folder is refused");
	refuses_outside("/etc/passwd", "0", "8", "no path inside", "so is one from the root");
	refuses_outside("a/../../data", "0", "8", "no path inside", "and one that leaves it later");
	refuses_outside("absent", "0", "8", "cannot be opened", "a file that is not there is refused");
	refuses_outside("data", "8", "8", "which has 12", "so are elements past its end");
	refuses_outside("data", "9223372036854775807", "8", "which has 12", "and far past it");
	refuses_outside_early();
	refuses_outside("data", "-4", "8", "no number", "and an offset that is no number");
	refuses_outside("data", "4", "4", "it has 4 bytes", "and a length that is not that of the tensor");
	tap_ok(symlink("/etc/passwd", path_of("link")) == 0, "there is a link");
	refuses_outside("link", "0", "8", "link", "a link is not followed");
	tap_ok(mkfifo(path_of("pipe"), 0600) == 0, "there is a pipe");
	refuses_outside("pipe", "0", "8", "no regular file", "a pipe is refused");
	refuses_outside(".", "0", "8", "no regular file", "so is a folder");
}

/* --- bytes --- */

static void refuses_bytes(const char *bytes, size_t n, const char *text, const char *what)
{
	tap_ok(!read_bytes(bytes, n, NULL) && refused(DIAG_BAD_ONNX, text), "%s", what);
}

/* A graph in an attribute of a node of a graph, and so on. */
static size_t nest(uint8_t *bytes, int levels)
{
	uint8_t spare[4000];
	size_t n = 0;
	for (int i = 0; i < 3 * levels; i++) {
		size_t head = 0;
		spare[head++] = i % 3 == 0   ? 0x32
				: i % 3 == 1 ? 0x2a
					     : 0x0a; /* attribute: g; node: attribute; graph: node */
		if (n >= 128)
			spare[head++] = (uint8_t)(n & 0x7f) | 0x80;
		spare[head++] = (uint8_t)(n >= 128 ? n >> 7 : n);
		memcpy(spare + head, bytes, n);
		memcpy(bytes, spare, n += head);
	}
	return n;
}

static void refuses_all_bytes(void)
{
	struct parts p;
	make_small(&p);
	size_t n;
	uint8_t *bytes = pack_parts(&p, &n);
	bool ok = true;
	for (size_t i = 0; i < n; i++) {
		ok &= !read_bytes(bytes, i, NULL) && diags.n == 1;
		diags_free(&diags);
	}
	tap_ok(ok, "a file that is cut off is refused, wherever");
	free(bytes);
	refuses_bytes("\x3a\x7f", 2, "no proper end", "a length past the end is refused");
	refuses_bytes("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "no proper end",
		      "so is one of 2^64 - 1");
	refuses_bytes("\x38\1", 2, "of another type", "and a graph that is a number");
	refuses_bytes("\x08\1\x08\1", 4, "comes twice", "and a field that comes twice");
	refuses_bytes("\x12\2\xff\xfe", 4, "UTF-8", "and a text that is none");
	refuses_bytes("\x3a\x09\x2a\7\x10\x80\xa0\x94\xa5\x8d\x1d", 11, "'data_type' has a number that does not fit 32 bits",
		      "and a type number of 10^12, which is not cut to another one");
	refuses_bytes("\x3a\x0b\x2a\x09\x2a\7\1\x80\xa0\x94\xa5\x8d\x1d", 13,
		      "'int32_data' has a number that does not fit 32 bits", "and such a number among those that stand together");
	refuses_bytes("\xf8\x07\1", 3, "number 127 is not known", "and a field that is not known");
	refuses_bytes("\x3a\7\x0a\5\x42\3new", 9, "'overload', of version 10",
		      "a newer field is refused by its name");
	refuses_bytes("\xd2\1\0", 3, "has no graph",
		      "one that says nothing of the computation is passed over");
	uint8_t deep[8000] = {0};
	size_t length = nest(deep, 40);
	uint8_t *all = malloc(length + 3);
	all[0] = 0x3a;
	all[1] = (uint8_t)(length & 0x7f) | 0x80;
	all[2] = (uint8_t)(length >> 7);
	memcpy(all + 3, deep, length);
	refuses_bytes((char *)all, length + 3, "nested deeper", "forty graphs in each other are refused");
	free(all);
}

/* A million nodes of no bytes. */
static void refuses_crowds(void)
{
	enum { NODES = 1000000, HEAD = 5 };
	uint8_t *bytes = malloc(HEAD + 2 * NODES);
	memcpy(bytes, "\x3a\x80\x89\x7a", 4);
	for (int i = 0; i < NODES; i++)
		memcpy(bytes + 4 + 2 * i, "\x0a\0", 2);
	tap_ok(!read_bytes(bytes, 4 + 2 * NODES, NULL) && refused(DIAG_BAD_ONNX, "more than 100000 nodes"),
	       "a million nodes are refused");
	free(bytes);
}

/* --- what the caller decides --- */

static void decides(void)
{
	Onnx__TensorShapeProto__Dimension dim[2], *dims[2] = {&dim[0], &dim[1]};
	Onnx__TensorShapeProto shape;
	Onnx__TypeProto__Tensor tensor;
	Onnx__TypeProto type;
	struct parts p;
	make_small(&p);
	onnx__type_proto__init(&type);
	onnx__type_proto__tensor__init(&tensor);
	onnx__tensor_shape_proto__init(&shape);
	for (int i = 0; i < 2; i++)
		onnx__tensor_shape_proto__dimension__init(&dim[i]);
	dim[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
	dim[0].dim_param = "N";
	shape.dim = dims;
	shape.n_dim = 2;
	tensor.has_elem_type = true;
	tensor.elem_type = 1;
	tensor.shape = &shape;
	type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	type.tensor_type = &tensor;
	p.input[0].type = &type;
	struct onnx_graph *g = read_parts(&p, NULL);
	tap_ok(accepted(g) && g->value[g->input[0]].rank == 2 && g->value[g->input[0]].dim[0].size == -1 &&
		   strcmp(g->value[g->input[0]].dim[0].param, "N") == 0 &&
		   !g->value[g->input[0]].dim[1].param,
	       "extents have names, or none");
	struct onnx_size sizes[] = {{"N", 3}, {"x[1]", 2}};
	g = read_parts(&p, &(struct onnx_choices){.size = sizes, .sizes = 2});
	tap_ok(accepted(g) && g->value[g->input[0]].dim[0].size == 3 &&
		   g->value[g->input[0]].dim[1].size == 2,
	       "their sizes can be given, by name or by axis");
	sizes[0].name = "M";
	tap_ok(!read_parts(&p, &(struct onnx_choices){.size = sizes, .sizes = 1}) &&
		   refused(DIAG_ONNX_CHOICE, "no extent is named 'M'"),
	       "a name that no extent has is refused");
	dim[1].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
	dim[1].dim_value = 2;
	sizes[0] = (struct onnx_size){"x[1]", 2};
	tap_ok(accepted(read_parts(&p, &(struct onnx_choices){.size = sizes, .sizes = 1})), "the size that the graph has may be given");
	sizes[0].size = 3;
	tap_ok(!read_parts(&p, &(struct onnx_choices){.size = sizes, .sizes = 1}) &&
		   refused(DIAG_ONNX_CHOICE, "the size of 'x[1]' is 2 in the graph, not 3"), "but no other one");
	dim[1].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
	sizes[0].name = sizes[1].name = "N";
	tap_ok(!read_parts(&p, &(struct onnx_choices){.size = sizes, .sizes = 2}) &&
		   refused(DIAG_ONNX_CHOICE, "two sizes are given of 'N'"),
	       "so are two sizes of one extent");
	sizes[1].name = "x[1]";
	sizes[0] = (struct onnx_size){"N", 0};
	tap_ok(!read_parts(&p, &(struct onnx_choices){.size = sizes, .sizes = 1}) &&
		   refused(DIAG_ONNX_CHOICE, "the size 0"),
	       "so is a size of 0");
	static const float four[4] = {1, 2, 3, 4};
	struct onnx_tensor x = {.name = "x",
				.type = ONNX_FLOAT,
				.rank = 2,
				.dim = {2, 2},
				.elements = 4,
				.data = four,
				.bytes = 16};
	g = read_parts(&p, &(struct onnx_choices){.constant = &x, .constants = 1});
	tap_ok(accepted(g) && g->value[g->input[0]].constant == &x && g->value[g->input[0]].dim[0].size == 2,
	       "an input can be given a value");
	x.type = ONNX_INT32;
	tap_ok(!read_parts(&p, &(struct onnx_choices){.constant = &x, .constants = 1}) &&
		   refused(DIAG_ONNX_GRAPH, "'x'"),
	       "of its own type alone");
	x.name = "w";
	tap_ok(!read_parts(&p, &(struct onnx_choices){.constant = &x, .constants = 1}) &&
		   refused(DIAG_ONNX_CHOICE, "'w'"),
	       "an initializer is no input");
	const char *absent = "absent";
	tap_ok(!read_parts(&p, &(struct onnx_choices){.exported = &absent, .exports = 1}) &&
		   refused(DIAG_ONNX_CHOICE, "'absent'"),
	       "what is no value is not exported");
}

/* --- attributes and subgraphs --- */

static void reads_attributes(void)
{
	Onnx__AttributeProto a, b;
	struct parts p, inner;
	make_small(&p);
	onnx__attribute_proto__init(&a);
	onnx__attribute_proto__init(&b);
	a.name = "alpha";
	a.has_type = a.has_f = true;
	a.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
	a.f = 0.25f;
	p.node[0].attribute[0] = &a;
	p.node[0].node.n_attribute = 1;
	struct onnx_graph *g = read_parts(&p, NULL);
	tap_ok(accepted(g) && g->node[1].attributes == 1 && g->node[1].attribute[0].kind == ONNX_KIND_FLOAT &&
		   g->node[1].attribute[0].f == 0.25f,
	       "attributes are read");
	a.has_type = false;
	g = read_parts(&p, NULL);
	tap_ok(accepted(g) && g->node[1].attribute[0].kind == ONNX_KIND_FLOAT,
	       "also where the file does not say their kind");
	p.node[0].attribute[1] = &a;
	p.node[0].node.n_attribute = 2;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "'alpha' comes twice"),
	       "one that comes twice is refused");
	p.node[0].attribute[1] = &b;
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_BAD_ONNX, "has no name"), "so is one without a name");
	b.name = "body";
	b.g = &inner.graph;
	init_parts(&inner, 13);
	put_node(&inner, "", "Exp", "sum", NULL, "e");
	put_output(&inner, "e");
	p.node[0].input[0] = "x"; /* so that the first node is needed by the subgraph alone */
	g = read_parts(&p, NULL);
	tap_ok(accepted(g) && g->nodes == 2, "what a subgraph uses is needed");
	const struct onnx_graph *sub = g ? g->node[1].attribute[1].graph : NULL;
	tap_ok(sub && sub->outer == g && sub->nodes == 1 &&
		   sub->value[sub->node[0].input[0]].outer == g->node[0].output[0],
	       "and is a value of the graph around it");
	inner.node[0].input[0] = "y";
	tap_ok(!read_parts(&p, NULL) && refused(DIAG_ONNX_GRAPH, "depends on itself"),
	       "a cycle through a subgraph is refused");
}

static void spells_names(void)
{
	static const char *const names[][2] = {{"/conv1/Conv_output_0", "_conv1_Conv_output_0"},
					       {"input", "input_"},
					       {"input.1", "input.1"},
					       {"12", "_12"},
					       {"", "_"},
					       {"\xc3\xa4", "__"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *got = onnx_spell_name(&arena, names[i][0]);
		tap_ok(strcmp(got, names[i][1]) == 0 && onnx_is_spelled(got, names[i][0]) && !onnx_is_spelled("other", names[i][0]), "'%s' is spelled '%s'", names[i][0], got);
	}
}

int main(void)
{
	begin_tests();
	reads();
	takes_versions();
	refuses_graphs();
	refuses_tensors();
	narrows();
	reads_outside();
	refuses_all_bytes();
	refuses_crowds();
	decides();
	reads_attributes();
	spells_names();
	return end_tests();
}
