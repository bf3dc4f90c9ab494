/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images whose folded parameters, tables of leaves, rows of the caller or stacks do not hold together are refused, each for what is
 * wrong with it. */
#include "tests/image/bending.h"

/* --- folded parameters --- */

static struct image_fold *first_with_rows(const struct bending *b)
{
	int i = 0;
	while (!b->fold[i].tensor.rank)
		i++;
	return &b->fold[i];
}

static void no_place(struct bending *b)
{
	b->fold->recipe = b->image.recipes;
}

static void foreign_place(struct bending *b)
{
	b->fold->recipe = !b->fold->recipe;
}

static void place_in_blocks(struct bending *b)
{
	b->recipe[first_with_rows(b)->recipe].dim[0].stride = 2;
}

static void small_place(struct bending *b)
{
	first_with_rows(b)->tensor.shape[0] += 100;
}

static void huge_fold(struct bending *b)
{
	b->fold->tensor.rank = 3;
	b->fold->tensor.shape[0] = b->fold->tensor.shape[1] = b->fold->tensor.shape[2] = INT32_MAX;
}

static void fold_without_step(struct bending *b)
{
	b->step->domain = IMAGE_DOMAIN_ONCE;
}

static void step_without_fold(struct bending *b)
{
	b->step[b->image.steps - 1].domain = IMAGE_DOMAIN_BINDING;
}

static void foreign_fold(struct bending *b)
{
	b->source->param = image_params(&b->image);
}

static void state_at_binding(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_STATE)].at_binding = true;
}

static const struct bent fold_bendings[] = {
    {"a folded parameter that lies nowhere", no_place, "no place of its own"},
    {"a folded parameter in another one's place", foreign_place, "no place of its own"},
    {"a place with gaps", place_in_blocks, "no place of its own"},
    {"a place that is too small", small_place, "parameter"},
    {"a folded parameter too large to count", huge_fold, "does not fit 64 bits"},
    {"a folded parameter without a step", fold_without_step, "no step that computes it"},
    {"a step at binding behind others", step_without_fold, "are not the first"},
    {"a recipe of a folded parameter that is not there", foreign_fold, "parameter that does not exist"},
    {"a state that belongs to a binding", state_at_binding, "cannot belong to a binding"},
};

static void test_folds(struct test_run *r)
{
	if (tap_ok(r->image.folds > 2, "there are parameters that are computed at binding"))
		test_bendings(&r->arena, &r->image, fold_bendings,
			      sizeof fold_bendings / sizeof *fold_bendings);
}

/* --- tables of leaves --- */

static struct image_buffer *state_in_table(struct bending *b)
{
	int i = 0;
	while (!b->buffer[i].table)
		i++;
	return &b->buffer[i];
}

static void table_outside(struct bending *b)
{
	state_in_table(b)->table = b->image.buffers + 1;
}

static void table_without_rows(struct bending *b)
{
	state_in_table(b)->read_row = 0;
}

static void table_by_others(struct bending *b)
{
	state_in_table(b)->read_row = buffer_of_kind(&b->image, IMAGE_ROOT) + 1;
}

static void table_that_is_none(struct bending *b)
{
	state_in_table(b)->table = buffer_of_kind(&b->image, IMAGE_OUTPUT) + 1;
}

static void short_table(struct bending *b)
{
	for (int i = 0; i < b->image.inputs; i++)
		b->input[i].limit++;
}

static void rows_of_inner_nodes(struct bending *b)
{
	for (int i = 0; i < b->image.inputs; i++) {
		b->input[i].at_leaf = false;
		b->input[i].at_inner = true;
	}
}

static const struct bent table_bendings[] = {
    {"a table outside of the buffers", table_outside, "in a table that does not have them"},
    {"a table without rows to read", table_without_rows, "in a table that does not have them"},
    {"a table by something else", table_by_others, "in a table that does not have them"},
    {"a table that is no weight", table_that_is_none, "in a table that does not have them"},
    {"a table with fewer rows than tokens", short_table, "in a table that does not have them"},
    {"rows by tokens that leaves do not carry", rows_of_inner_nodes, "not as large as it must be"},
};

/* Rows to read are checked without looking at sorts, of which there may be none. */
static void test_rows_to_read(struct test_run *r)
{
	static const struct image_sort none = {.edges = true};
	struct image image = r->image;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	image.sort = &none;
	tap_ok(!image.sorts && buffer_of_kind(&image, IMAGE_READ_ROW) > 0 && image_check(&image, &diags),
	       "tables of leaves need no sort");
	diags_free(&diags);
}

static void test_tables_of_leaves(struct test_run *r)
{
	test_rows_to_read(r);
	test_bendings(&r->arena, &r->image, table_bendings, sizeof table_bendings / sizeof *table_bendings);
}

/* --- rows of the caller --- */

static struct image_buffer *given_of(struct bending *b)
{
	return &b->buffer[buffer_of_kind(&b->image, IMAGE_GIVEN)];
}

static void padded_rows(struct bending *b)
{
	given_of(b)->row_elements++;
}

static void rows_of_edges(struct bending *b)
{
	given_of(b)->rows = IMAGE_EDGES;
}

static void rows_of_edge_data(struct bending *b)
{
	b->input[given_of(b)->which].on_edge = true;
	b->input[given_of(b)->which].at_leaf = false;
}

static void rows_of_tokens(struct bending *b)
{
	struct image_input *in = &b->input[given_of(b)->which];
	in->token = true;
	in->elements = in->rank = 0;
}

static const struct bent given_bendings[] = {
    {"rows of the caller with padding", padded_rows, "not as large as it must be"},
    {"rows of the caller, one an edge", rows_of_edges, "not as its kind must be"},
    {"rows of the caller that edges carry", rows_of_edge_data, "not as its kind must be"},
    {"rows of the caller that are tokens", rows_of_tokens, "not as large as it must be"},
};

static void test_given_rows(struct test_run *r)
{
	test_bendings(&r->arena, &r->image, given_bendings, sizeof given_bendings / sizeof *given_bendings);
}

/* --- stacks --- */

static void other_instances(struct bending *b)
{
	b->image.stacked++;
}

static void input_of_others(struct bending *b)
{
	b->input->shape[0] = 2 * b->input->shape[0];
	b->input->elements *= 2;
}

static void output_of_others(struct bending *b)
{
	b->output->shape[0]++;
	b->output->elements = b->output->elements / (b->output->shape[0] - 1) * b->output->shape[0];
}

static void scalar_of_stack(struct bending *b)
{
	b->input->rank = 0;
	b->input->elements = 1;
}

static void token_of_stack(struct bending *b)
{
	b->input->token = true;
	b->input->dtype = DTYPE_I32;
	b->input->rank = 0;
	b->input->elements = 0;
}

static void edges_of_stack(struct bending *b)
{
	b->input->on_edge = true;
	b->input->at_leaf = b->input->at_inner = false;
}

static void children_of_stack(struct bending *b)
{
	b->image.children = 2;
}

/* The rows of a program whose rows stay whole. */
static void whole_rows(struct bending *b)
{
	b->image.stacked = 0;
}

static void wide_instance(struct bending *b)
{
	for (int i = 0; i < b->image.buffers; i++)
		if (b->buffer[i].kind == IMAGE_VECTOR || b->buffer[i].kind == IMAGE_GIVEN)
			b->buffer[i].shape[0]++;
}

static const struct bent stack_bendings[] = {
    {"more instances than inputs have", other_instances, "a row is several"},
    {"an input of other instances", input_of_others, "a row is several"},
    {"a result of other instances", output_of_others, "a row is several"},
    {"an input without instances", scalar_of_stack, "a row is several"},
    {"a token of instances", token_of_stack, "a row is several"},
    {"edges that carry instances", edges_of_stack, "a row is several"},
    {"children of instances", children_of_stack, "a row is several"},
    {"buffers for instances where rows are whole", whole_rows, "not as large as it must be"},
    {"a buffer with rows of more than an instance", wide_instance, "not as large as it must be"},
};

static void test_stacks(struct test_run *r)
{
	if (tap_ok(r->image.stacked == 3, "a row is three"))
		test_bendings(&r->arena, &r->image, stack_bendings, sizeof stack_bendings / sizeof *stack_bendings);
}

int main(void)
{
	if (!need_backend("images as bytes"))
		return tap_done();
	with_model(FOLDING_MODEL, test_folds);
	with_model("examples/treefc/treefc.ra", "D=8 V=3", test_tables_of_leaves);
	with_model("examples/gru/gru.ra", "D=64 E=64", test_given_rows);
	with_model("tests/models/instances.ra", "B=3 C=4 H=6 K=5", test_stacks);
	return tap_done();
}
