/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images whose tables do not hold together are refused, each for what is wrong with it. */
#include "tests/image/bending.h"

static void foreign_param(struct bending *b)
{
	b->source->param = image_params(&b->image);
}

static void leaves_param(struct bending *b)
{
	b->source->end[0]++;
}

static void begins_late(struct bending *b)
{
	b->source->begin[0] = b->source->end[0] + 1;
}

static void no_source(struct bending *b)
{
	b->recipe->sources = 0;
}

static void long_walk(struct bending *b)
{
	b->recipe->dim[0].stride = INT32_MAX;
	b->recipe->dim[0].extent = INT32_MAX;
}

static void empty_walk(struct bending *b)
{
	b->recipe->dim[0].extent = 0;
}

static void empty_param(struct bending *b)
{
	b->param->shape[0] = 0;
}

static void huge_param(struct bending *b)
{
	b->param->rank = 3;
	b->param->shape[0] = b->param->shape[1] = b->param->shape[2] = INT32_MAX;
}

static void many_sources(struct bending *b)
{
	b->recipe->dim[0].axis = IMAGE_PACK_SOURCE;
	b->recipe->dim[0].extent = 10000;
}

static void small_weight(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_WEIGHT)].row_elements--;
}

static void foreign_recipe(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_WEIGHT)].which = b->image.recipes;
}

static void foreign_input(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_TOKEN)].which = b->image.inputs;
}

static void wrong_dtype(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_ROOT)].dtype = DTYPE_I64;
}

static void wrong_weight(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_WEIGHT)].dtype = DTYPE_F16;
}

static void wrong_recipe(struct bending *b)
{
	b->recipe->dtype = DTYPE_I8;
}

static void wrong_rows(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_TOKEN)].rows = IMAGE_EDGES;
}

static void small_state(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_STATE)].row_elements = 0;
}

static void vector_for_token(struct bending *b)
{
	b->input->token = false;
	b->input->elements = 1;
}

/* All elements of a row lie on each other there, but those that come from the caller do not. */
static void piled_vectors(struct bending *b)
{
	struct image_buffer *token = &b->buffer[buffer_of_kind(&b->image, IMAGE_TOKEN)];
	token->kind = IMAGE_VECTOR;
	token->dtype = b->input->dtype = DTYPE_F32;
	b->input->token = false;
	token->rank = b->input->rank = 1;
	token->shape[0] = b->input->shape[0] = b->input->elements = 3;
	token->stride[0] = 0;
}

static void input_shape(struct bending *b)
{
	b->input->elements = 3;
}

static void output_elsewhere(struct bending *b)
{
	b->output->buffer = b->image.buffers;
}

static void output_in_state(struct bending *b)
{
	b->output->buffer = b->state->buffer;
}

static void output_at_root(struct bending *b)
{
	b->output->at_root = !b->output->at_root;
}

static void output_shape(struct bending *b)
{
	b->output->elements++;
}

static void many_labels(struct bending *b)
{
	static const char *const labels[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	b->output->labels = b->output->elements + 1;
	b->output->label = labels;
}

static void state_elsewhere(struct bending *b)
{
	b->state->buffer = b->output->buffer;
}

static void state_shape(struct bending *b)
{
	b->state->shape[0]++;
}

static void layout_of_shared(struct bending *b)
{
	for (int i = 0; i < b->image.buffers; i++)
		if (b->buffer[i].kind == IMAGE_PLACE)
			b->buffer[i].kind = IMAGE_CHILD_BEGIN;
	b->state->layout = IMAGE_BY_PARENT;
	b->image.shared_children = true;
	b->image.unroll = 1;
}

static void unrolled_shared(struct bending *b)
{
	layout_of_shared(b);
	b->state->layout = IMAGE_BY_NODE;
	b->image.unroll = 2;
}

static void stacked_tree(struct bending *b)
{
	b->image.stacked = 2;
}

static void place_of_shared(struct bending *b)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = IMAGE_PLACE;
	child->which = 0;
	b->image.shared_children = true;
	b->image.unroll = 1;
}

static void place_of_edges(struct bending *b)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = IMAGE_PLACE;
	child->rows = IMAGE_EDGES;
}

static void long_stride(struct bending *b)
{
	struct image_buffer *state = &b->buffer[buffer_of_kind(&b->image, IMAGE_STATE)];
	state->row_elements = 2;
	state->shape[0] = 2;
	state->stride[0] = 2;
}

static void step_without_kernel(struct bending *b)
{
	b->step->kernel = b->image.kernels;
}

static void step_without_blocks(struct bending *b)
{
	b->step->blocks = 0;
}

static void step_of_many_bytes(struct bending *b)
{
	b->step->block_bytes = INT64_MAX / 2;
}

static void step_of_many_weights(struct bending *b)
{
	b->step->weight_bytes = INT64_MAX / 2;
}

static void step_after_none(struct bending *b)
{
	b->step->after = b->image.steps + 1;
}

static void head_of_more(struct bending *b)
{
	b->step->head = b->step->operations + 1;
}

static void kernel_outside(struct bending *b)
{
	*b->kernel = b->image.blob.size;
}

static void kernels_missing(struct bending *b)
{
	b->image.blob.kernels--;
}

static void odd_alignment(struct bending *b)
{
	b->image.blob.alignment = 24;
}

static void frames_outside(struct bending *b)
{
	b->image.blob.frame_bytes = b->image.blob.size - b->image.blob.frames + 1;
}

static void frames_of_code(struct bending *b)
{
	b->image.blob.frames = 0;
	b->image.blob.frame_bytes = b->image.blob.size;
}

static void function_outside(struct bending *b)
{
	static struct image_symbol function = {"f", 0, 0};
	function.bytes = b->image.blob.size + 1;
	b->image.blob.function = &function;
	b->image.blob.functions = 1;
}

static void lines_turned(struct bending *b)
{
	static const struct image_line turned[] = {{8, 1}, {0, 2}};
	b->image.blob.line = turned;
	b->image.blob.lines = 2;
}

static void line_outside(struct bending *b)
{
	static struct image_line line = {0, 1};
	line.place = b->image.blob.size + 1;
	b->image.blob.line = &line;
	b->image.blob.lines = 1;
}

static const struct image_match far_match[] = {{1000, 1}};

static struct image_case *give_cases(struct bending *b)
{
	static struct image_case cases[IMAGE_MAX_CASES + 1];
	memcpy(cases, four_cases, sizeof four_cases);
	for (int i = CASES; i <= IMAGE_MAX_CASES; i++)
		cases[i] = four_cases[CASES - 1];
	b->image.cases = CASES;
	b->image.case_at = cases;
	return cases;
}

static void many_cases(struct bending *b)
{
	give_cases(b);
	b->image.cases = IMAGE_MAX_CASES + 1;
}

static void mixed_cases(struct bending *b)
{
	give_cases(b)[0].inner = true;
}

static void case_of_nothing(struct bending *b)
{
	give_cases(b)[2].match = far_match;
}

static void leaves_of_no_case(struct bending *b)
{
	give_cases(b)[0].parent = IMAGE_YES;
}

static void inner_of_no_case(struct bending *b)
{
	give_cases(b)[3].children = 2;
}

static void step_of_no_case(struct bending *b)
{
	give_cases(b);
	b->step[b->image.steps - 1].domain = IMAGE_DOMAIN_INNER;
	b->step[b->image.steps - 1].cases = 1 << 4;
}

static void whole_step_of_cases(struct bending *b)
{
	give_cases(b);
	b->step[b->image.steps - 1].domain = IMAGE_DOMAIN_NODES;
	b->step[b->image.steps - 1].cases = 1;
}

static void edge_data_of_leaves(struct bending *b)
{
	b->input->on_edge = b->input->at_leaf = true;
}

static void edge_data_by_nodes(struct bending *b)
{
	b->input->on_edge = true;
	b->input->at_leaf = false;
}

static void case_of_edges(struct bending *b)
{
	give_cases(b);
	edge_data_by_nodes(b);
}

/* Rows of this image are sorted by its first token. */
static struct image_sort *give_sorts(struct bending *b)
{
	static struct image_sort sort;
	sort = (struct image_sort){.input = 0, .slot = -1};
	b->image.sorts = 1;
	b->image.sort = &sort;
	return &sort;
}

static void sort_by_nothing(struct bending *b)
{
	give_sorts(b)->input = b->image.inputs;
}

static void sort_without_limit(struct bending *b)
{
	give_sorts(b);
	b->input->limit = 0;
}

static void sort_edges_by_node(struct bending *b)
{
	give_sorts(b)->edges = true;
}

static void step_of_no_sort(struct bending *b)
{
	give_sorts(b);
	b->step[b->image.steps - 1].sort = 2;
}

static void sorted_inputs(struct bending *b)
{
	give_sorts(b);
	b->step[b->image.steps - 1].domain = IMAGE_DOMAIN_INPUTS;
	b->step[b->image.steps - 1].sort = 1;
}

static void become_members(struct bending *b, enum image_buffer_kind kind, enum image_size rows, int which)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = kind;
	child->rows = rows;
	child->which = which;
}

static void member_begins_by_nodes(struct bending *b)
{
	become_members(b, IMAGE_MEMBER_BEGIN, IMAGE_NODES, 0);
}

static void members_by_inputs(struct bending *b)
{
	become_members(b, IMAGE_MEMBER_LIST, IMAGE_INPUTS, 0);
}

static void second_members(struct bending *b)
{
	become_members(b, IMAGE_MEMBER_LIST, IMAGE_NODES, 1);
}

static void positions_by_edges(struct bending *b)
{
	give_sorts(b);
	become_members(b, IMAGE_SORTED, IMAGE_EDGES, 0);
}

static void positions_of_no_sort(struct bending *b)
{
	become_members(b, IMAGE_SEGMENT_BEGIN, IMAGE_NODES, 0);
}

static void cases_of_none(struct bending *b)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = IMAGE_CASE;
	child->which = 0;
}

static struct image_packed *give_weights(struct bending *b)
{
	static struct image_packed packed[100];
	static const float zeros[1 << 14];
	for (int i = 0; i < b->image.recipes; i++) {
		packed[i] = (struct image_packed){.at = zeros, .bytes = sizeof(float)};
		for (int d = 0; d < b->recipe[i].dims; d++)
			packed[i].bytes *= b->recipe[i].dim[d].extent;
	}
	b->image.packs = b->image.recipes;
	b->image.packed = packed;
	return packed;
}

static void few_weights(struct bending *b)
{
	give_weights(b);
	b->image.packs--;
}

static void no_weights(struct bending *b)
{
	struct image_packed *packed = give_weights(b);
	for (int i = 0; i < b->image.buffers; i++)
		if (b->buffer[i].kind == IMAGE_WEIGHT && !b->buffer[i].at_binding)
			packed[b->buffer[i].which].bytes = 0;
}

static void short_weights(struct bending *b)
{
	give_weights(b)[b->image.recipes - 1].bytes--;
}

static void bounded_token(struct bending *b)
{
	b->input->within = 1;
}

static const struct bent bendings[] = {
    {"a token within a bound", bounded_token, "does not have floats"},
    {"fewer weights than recipes", few_weights, "not as many as recipes"},
    {"weights that a run misses", no_weights, "where a run needs them"},
    {"weights that are too short", short_weights, "not as long as they are laid out"},
    {"a recipe of a parameter that is not there", foreign_param, "parameter that does not exist"},
    {"a recipe past the end of its parameter", leaves_param, "past the end of its parameter"},
    {"a recipe that begins behind its end", begins_late, "past the end of its parameter"},
    {"a recipe of nothing", no_source, "source that it does not have"},
    {"a recipe without end", long_walk, "walks too far"},
    {"a recipe with an empty dimension", empty_walk, "a recipe is empty"},
    {"an empty parameter", empty_param, "a parameter is empty"},
    {"a parameter too large to count", huge_param, "does not fit 64 bits"},
    {"a recipe of more sources than it has", many_sources, "source that it does not have"},
    {"packed weights of another size", small_weight, "as large as"},
    {"packed weights without a recipe", foreign_recipe, "something that does not exist"},
    {"data of an input that is not there", foreign_input, "something that does not exist"},
    {"an index array of i64", wrong_dtype, "not as its kind must be"},
    {"a weight of another type than its recipe", wrong_weight, "as large as"},
    {"a recipe of another type than its parameter", wrong_recipe, "elements of another type"},
    {"tokens by edges", wrong_rows, "not as its kind must be"},
    {"data of edges that leaves read", edge_data_of_leaves, "no edges to read of"},
    {"data of edges by nodes", edge_data_by_nodes, "not as its kind must be"},
    {"a case of what edges carry", case_of_edges, "token that does not exist"},
    {"beginnings of members by nodes", member_begins_by_nodes, "not as its kind must be"},
    {"members by inputs", members_by_inputs, "not as its kind must be"},
    {"members of another order", second_members, "something that does not exist"},
    {"a state whose rows are too small", small_state, "as large as"},
    {"tokens of an input of vectors", vector_for_token, "not as large as"},
    {"vectors in rows of one element", piled_vectors, "not as large as"},
    {"an input of another shape", input_shape, "does not have its elements"},
    {"an output in no buffer", output_elsewhere, "not in its buffer"},
    {"an output in a state's buffer", output_in_state, "not in its buffer"},
    {"an output of other rows", output_at_root, "not in its buffer"},
    {"an output of another shape", output_shape, "elements of its shape"},
    {"an output with a label too many", many_labels, "not a label for each"},
    {"a state in no buffer of its own", state_elsewhere, "not in its buffer"},
    {"a state of another shape", state_shape, "elements of its shape"},
    {"a state by parent where nodes have several", layout_of_shared, "by parent"},
    {"levels unrolled where nodes have several parents", unrolled_shared, "levels are unrolled"},
    {"a row that is several where there is a structure", stacked_tree, "a row is several"},
    {"places where nodes have several parents", place_of_shared, "something that does not exist"},
    {"places of edges", place_of_edges, "not as its kind must be"},
    {"a state with elements outside of its row", long_stride, "as large as"},
    {"a step without a kernel", step_without_kernel, "kernel that does not exist"},
    {"a step without blocks", step_without_blocks, "out of its range"},
    {"a step that reads too much to count", step_of_many_bytes, "out of its range"},
    {"a step with more weights than can be counted", step_of_many_weights, "out of its range"},
    {"a step after one that is not there", step_after_none, "follows one that does not exist"},
    {"a head of more operations than its step", head_of_more, "does more than the step"},
    {"more cases than a mask has bits", many_cases, "too many"},
    {"a case of leaves behind one of inner nodes", mixed_cases, "behind one of inner nodes"},
    {"a case of a token that is not there", case_of_nothing, "token that does not exist"},
    {"leaves that are of no case", leaves_of_no_case, "of no case"},
    {"inner nodes that are of no case", inner_of_no_case, "of no case"},
    {"a step of a case that is not there", step_of_no_case, "cannot tell apart"},
    {"a step over all nodes of some cases", whole_step_of_cases, "cannot tell apart"},
    {"a sort by a token that is not there", sort_by_nothing, "by a token that does not exist"},
    {"a sort by a token without end", sort_without_limit, "by a token that does not exist"},
    {"edges sorted by what nodes carry", sort_edges_by_node, "they do not carry"},
    {"a step of a sort that is not there", step_of_no_sort, "that nothing sorts"},
    {"a step over sorted inputs", sorted_inputs, "that nothing sorts"},
    {"positions of nodes by edges", positions_by_edges, "not as its kind must be"},
    {"segments of no sort", positions_of_no_sort, "something that does not exist"},
    {"an array of cases where there are none", cases_of_none, "something that does not exist"},
    {"a kernel outside of the code", kernel_outside, "outside of the code"},
    {"fewer kernels than names", kernels_missing, "place for each kernel"},
    {"call frame information outside of the code", frames_outside, "information lies outside"},
    {"call frame information that is code", frames_of_code, "of another form"},
    {"a function that ends behind the code", function_outside, "function lies outside"},
    {"lines in another order", lines_turned, "not in the order"},
    {"lines behind the code", line_outside, "not in the order"},
    {"an odd alignment", odd_alignment, "alignment"},
};

static void test_tables(struct test_run *r)
{
	test_bendings(&r->arena, &r->image, bendings, sizeof bendings / sizeof *bendings);
}

int main(void)
{
	if (!need_backend("images as bytes"))
		return tap_done();
	with_model(SMALL_MODEL, test_tables);
	return tap_done();
}
