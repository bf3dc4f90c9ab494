/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sessions over a fake image: the order of calls, what kernels find in the buffers, what is refused. */
#include "runtime/runtime.h"
#include "tests/budget.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

/* --- a log of calls --- */

static char calls[4096];

static bool note_call(void *self, int kernel, const struct image_frame *frame,
		      const struct image_range *range, struct diags *diags)
{
	(void)self, (void)frame, (void)diags;
	size_t n = strlen(calls);
	snprintf(calls + n, sizeof calls - n, "%c%lld-%lld ", 'a' + kernel, (long long)range->begin,
		 (long long)range->end);
	return true;
}

/* Two trees, in the forest's numbering:   4        7
 *                                        / \      / \
 *                                       2   3    5   6
 *                                      / \
 *                                     0   1                  */
static const int32_t child_begin[] = {0, 0, 0, 2, 2, 4, 4, 4, 6}, children[] = {0, 1, 2, 3, 5, 6};
static const int32_t root[] = {4, 7}, input_begin[] = {0, 5};
static const struct lin_forest two_trees = {8, 2, child_begin, children, root, input_begin, NULL, 0};

/* Leaves and inner nodes in two cases each: nodes 1, 5, 6 and 4, 7 have a mark. */
static const int32_t marks[] = {0, 1, 0, 0, 1, 1, 1, 1};
static const void *const marks_of[] = {marks};
static const struct image_match marked[] = {{0, 1}};
static const struct image_case typed[] = {{"a", false, -1, IMAGE_EITHER, 1, marked},
					  {"b", false, -1, IMAGE_EITHER, 0, NULL},
					  {"c", true, -1, IMAGE_EITHER, 1, marked},
					  {"d", true, -1, IMAGE_EITHER, 0, NULL}};
static const struct image_input mark = {.name = "mark", .token = true};
enum { A = 1, B = 2, C = 4, D = 8 };

static struct image steps_image(const struct image_step *steps, int n)
{
	return (struct image){.children = 2,
			      .inputs = 1,
			      .input = &mark,
			      .cases = 4,
			      .case_at = typed,
			      .steps = n,
			      .step = steps,
			      .code = {.call = note_call}};
}

static const char *run_steps(const struct image_step *steps, int n, const struct lin_forest *forest)
{
	struct image image = steps_image(steps, n);
	struct rt_binding binding = {.image = &image};
	struct rt_session s;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	calls[0] = 0;
	if (!rt_session_init(&s, &allocator_default, &image, &diags) ||
	    !rt_session_run(&s, &binding, NULL, &(struct rt_minibatch){*forest, marks_of}, &diags))
		strcpy(calls, "failed");
	rt_session_free(&s);
	diags_free(&diags);
	return calls;
}

static void test_steps(void)
{
	static const struct {
		const char *what, *calls;
		int n;
		struct image_step step[4];
	} cases[] = {
	    {"once sees all nodes", "a0-8 ", 1, {{.kernel = 0, .domain = IMAGE_DOMAIN_ONCE, .blocks = 1}}},
	    {"leaves", "a0-5 ", 1, {{.kernel = 0, .domain = IMAGE_DOMAIN_LEAVES, .blocks = 1}}},
	    {"inner nodes batch by batch",
	     "a5-7 a7-8 ",
	     1,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_INNER, .blocks = 1}}},
	    {"inner steps alternate",
	     "a5-7 b5-7 a7-8 b7-8 ",
	     2,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_INNER, .blocks = 1},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_INNER, .blocks = 1}}},
	    {"all nodes batch by batch",
	     "a0-5 b0-5 a5-7 b5-7 a7-8 b7-8 ",
	     2,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_BATCH, .blocks = 1},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_BATCH, .blocks = 1}}},
	    {"inner nodes one by one",
	     "a5-6 b5-6 a6-7 b6-7 a7-8 b7-8 ",
	     2,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_INNER_NODE, .blocks = 1},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_INNER_NODE, .blocks = 1}}},
	    {"nodes one by one",
	     "a0-1 a1-2 a2-3 a3-4 a4-5 a5-6 a6-7 a7-8 ",
	     1,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_NODE, .blocks = 1}}},
	    {"all nodes", "a0-8 ", 1, {{.kernel = 0, .domain = IMAGE_DOMAIN_NODES, .blocks = 1}}},
	    {"inputs", "a0-2 ", 1, {{.kernel = 0, .domain = IMAGE_DOMAIN_INPUTS, .blocks = 1}}},
	    {"steps of different domains follow each other",
	     "a0-5 b5-7 c5-7 b7-8 c7-8 d0-8 ",
	     4,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_LEAVES, .blocks = 1},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_INNER, .blocks = 1},
	      {.kernel = 2, .domain = IMAGE_DOMAIN_INNER, .blocks = 1},
	      {.kernel = 3, .domain = IMAGE_DOMAIN_NODES, .blocks = 1}}},
	    {"the last batch first",
	     "a7-8 b7-8 a5-7 b5-7 a0-5 b0-5 ",
	     2,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_BATCH_DOWN, .blocks = 1},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_BATCH_DOWN, .blocks = 1}}},
	    {"the last node first",
	     "a7-8 a6-7 a5-6 a4-5 a3-4 a2-3 a1-2 a0-1 ",
	     1,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_NODE_DOWN, .blocks = 1}}},
	    {"leaves of two cases",
	     "a0-3 b3-5 ",
	     2,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_LEAVES, .blocks = 1, .cases = A},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_LEAVES, .blocks = 1, .cases = B}}},
	    {"cases alternate, those of one after each other",
	     "a6-7 b6-7 c5-6 c7-8 ",
	     3,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_INNER, .blocks = 1, .cases = D},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_INNER, .blocks = 1, .cases = D},
	      {.kernel = 2, .domain = IMAGE_DOMAIN_INNER, .blocks = 1, .cases = C}}},
	    {"neighbouring cases are one range, others are not",
	     "a0-5 a5-7 a7-8 ",
	     1,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_BATCH, .blocks = 1, .cases = A | B | C | D}}},
	    {"downwards by cases",
	     "b7-8 a6-7 b5-6 a3-5 b0-3 ",
	     2,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_BATCH_DOWN, .blocks = 1, .cases = B | D},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_BATCH_DOWN, .blocks = 1, .cases = A | C}}},
	    {"node by node by cases",
	     "b0-1 b1-2 b2-3 a3-4 a4-5 b5-6 a6-7 b7-8 ",
	     2,
	     {{.kernel = 0, .domain = IMAGE_DOMAIN_NODE, .blocks = 1, .cases = B | D},
	      {.kernel = 1, .domain = IMAGE_DOMAIN_NODE, .blocks = 1, .cases = A | C}}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *found = run_steps(cases[i].step, cases[i].n, &two_trees);
		if (!tap_ok(strcmp(found, cases[i].calls) == 0, "%s", cases[i].what))
			printf("# found %s\n", found);
	}
	static const struct image_step all[] = {{.kernel = 0, .domain = IMAGE_DOMAIN_ONCE, .blocks = 1},
						{.kernel = 1, .domain = IMAGE_DOMAIN_INNER, .blocks = 1},
						{.kernel = 2, .domain = IMAGE_DOMAIN_INPUTS, .blocks = 1}};
	static const int32_t no_children[] = {0, 0};
	struct lin_forest leaf = {1, 1, no_children, no_children, root + 2, NULL, NULL, 0};
	leaf.root = no_children;
	tap_ok(strcmp(run_steps(all, 3, &leaf), "a0-1 c0-1 ") == 0, "a single leaf has no inner batch");
	struct lin_forest empty = {0, 0, no_children, no_children, no_children, NULL, NULL, 0};
	tap_ok(strcmp(run_steps(all, 3, &empty), "") == 0, "an empty minibatch calls nothing");
}

/* --- buffers --- */

enum { WORD, VALUE, LEFT, RIGHT, ROOT, BATCH_BEGIN, H, SUM, WEIGHT, BUFFERS };

static const struct image_buffer buffers[BUFFERS] = {
    [WORD] = {"word", IMAGE_TOKEN, DTYPE_I32, IMAGE_NODES, 0, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [VALUE] = {"value", IMAGE_VECTOR, DTYPE_F32, IMAGE_NODES, 1, 4, 1, {3}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [LEFT] = {"left", IMAGE_CHILD, DTYPE_I32, IMAGE_NODES, 0, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [RIGHT] = {"right", IMAGE_CHILD, DTYPE_I32, IMAGE_NODES, 1, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [ROOT] = {"root", IMAGE_ROOT, DTYPE_I32, IMAGE_INPUTS, 0, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [BATCH_BEGIN] =
	{"batch_begin", IMAGE_BATCH_BEGIN, DTYPE_I32, IMAGE_BATCHES, 0, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [H] = {"h", IMAGE_OUTPUT, DTYPE_F32, IMAGE_NODES, 0, 16, 1, {1}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [SUM] = {"sum", IMAGE_OUTPUT, DTYPE_F32, IMAGE_INPUTS, 1, 16, 1, {1}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [WEIGHT] = {"w", IMAGE_WEIGHT, DTYPE_F32, IMAGE_ONE, 0, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
};

static const struct image_input inputs[] = {
    {.name = "word", .token = true, .limit = 100, .at_leaf = true},
    {.name = "value", .elements = 3, .at_leaf = true, .at_inner = true},
};
static const struct image_output outputs[] = {{.name = "h", .buffer = H},
					      {.name = "sum", .buffer = SUM, .at_root = true}};

/* h = w * (word + value[0..2]) at a leaf, left + 2 * right + value[0] at an inner node. */
static void compute_h(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
		      int64_t direction)
{
	(void)first, (void)blocks, (void)direction;
	const int32_t *word = b[WORD], *left = b[LEFT], *right = b[RIGHT];
	const float *value = b[VALUE], *w = b[WEIGHT];
	float *h = b[H];
	for (int64_t n = begin; n < end; n++)
		if (left[n] < 0)
			h[16 * n] = w[0] * (word[n] + value[4 * n] + value[4 * n + 1] + value[4 * n + 2]);
		else
			h[16 * n] = h[16 * left[n]] + 2 * h[16 * right[n]] + value[4 * n];
}

static void copy_roots(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
		       int64_t direction)
{
	(void)first, (void)blocks, (void)direction;
	const int32_t *roots = b[ROOT];
	for (int64_t i = begin; i < end; i++)
		((float *)b[SUM])[16 * i] = ((const float *)b[H])[16 * roots[i]];
}

static image_kernel *const kernels[] = {compute_h, copy_roots};
static const struct image_step tree_steps[] = {{.kernel = 0, .domain = IMAGE_DOMAIN_LEAVES, .blocks = 1},
					       {.kernel = 0, .domain = IMAGE_DOMAIN_INNER, .blocks = 1},
					       {.kernel = 1, .domain = IMAGE_DOMAIN_INPUTS, .blocks = 1}};

static const struct image tree_image = {
    .children = 2,
    .inputs = 2,
    .input = inputs,
    .buffers = BUFFERS,
    .buffer = buffers,
    .steps = 3,
    .step = tree_steps,
    .outputs = 2,
    .output = outputs,
    .code = {.kernels = kernels},
};

static float weight = 1;
static void *packed[] = {&weight};
static const struct rt_binding tree_binding = {
    .allocator = &allocator_default, .image = &tree_image, .packed = packed};

static int32_t words[8] = {10, 20, -1, 30, -1, 40, 50, -1};
static const float values[24] = {1, 0, 0, 0, 2, 0, 7, 0, 0, 0, 0, 4, 9, 0, 0, 1, 1, 1, 2, 2, 2, 5, 0, 0};

static struct rt_minibatch minibatch_of(const void *const *data)
{
	return (struct rt_minibatch){two_trees, data};
}

static float row_of(const struct rt_session *s, int output, int64_t n)
{
	const float *p = rt_session_row(s, output, n);
	return p ? *p : -1;
}

static void test_values(struct rt_session *s, struct diags *diags)
{
	const void *const data[] = {words, values};
	struct rt_minibatch m = minibatch_of(data);
	tap_ok(rt_session_run(s, &tree_binding, NULL, &m, diags), "a minibatch runs");
	/* leaves 11, 22, 34, 43, 56; node 2: 11 + 44 + 7; node 4: 62 + 68 + 9; node 7: 43 + 112 + 5 */
	tap_ok(row_of(s, 0, 0) == 11 && row_of(s, 0, 1) == 22 && row_of(s, 0, 3) == 34 &&
		   row_of(s, 0, 5) == 43 && row_of(s, 0, 6) == 56,
	       "leaves found their own words and values");
	tap_ok(row_of(s, 0, 2) == 62 && row_of(s, 0, 4) == 139 && row_of(s, 0, 7) == 160,
	       "inner nodes found their children");
	tap_ok(row_of(s, 1, 0) == 139 && row_of(s, 1, 1) == 160, "outputs at the root have a row an input");
	tap_ok(*(const float *)rt_session_root_row(s, 0, 0) == 139 &&
		   *(const float *)rt_session_root_row(s, 1, 1) == 160,
	       "a root's row is found either way");
	tap_ok(!rt_session_row(s, 0, 8) && !rt_session_row(s, 0, -1) && !rt_session_row(s, 1, 2) &&
		   !rt_session_row(s, 2, 0) && !rt_session_root_row(s, 0, 2),
	       "rows that do not exist are NULL");
	tap_ok(s->runs == 1 && s->structures == 2 && s->nodes == 8 && s->batches == 3, "the run is counted");
	weight = 2;
	tap_ok(rt_session_run(s, &tree_binding, NULL, &m, diags) && row_of(s, 0, 0) == 22,
	       "a run takes the weights that the binding has now");
	weight = 1;
}

static void test_refusal(struct rt_session *s, const void *const *data, enum diag_id id, const char *names,
			 const char *what)
{
	struct diags diags;
	diags_init(&diags, &allocator_default);
	struct rt_minibatch m = minibatch_of(data);
	bool ok = rt_session_run(s, &tree_binding, NULL, &m, &diags);
	tap_ok(!ok && diags.n == 1 && diags.at[0].id == id && strstr(diags.at[0].message, names), "%s", what);
	if (diags.n)
		printf("# %s\n", diags.at[0].message);
	tap_ok(!rt_session_row(s, 0, 0), "and leaves no result");
	diags_free(&diags);
	diags_init(&diags, &allocator_default);
	tap_ok(!rt_check_minibatch(&allocator_default, &tree_image, &m, &diags) && diags.n == 1 &&
		   diags.at[0].id == id,
	       "and is seen without a run");
	diags_free(&diags);
}

static void test_refusals(struct rt_session *s)
{
	const void *const data[] = {words, values}, *const no_words[] = {NULL, values},
			  *const no_values[] = {words, NULL};
	words[6] = 100;
	test_refusal(s, data, DIAG_TOKEN_OUT_OF_RANGE, "node 1 of input 1",
		     "a token past the last row is refused");
	words[6] = -2;
	test_refusal(s, data, DIAG_TOKEN_OUT_OF_RANGE, "-2", "a negative token is refused");
	words[6] = -1;
	test_refusal(s, data, DIAG_MISSING_DATA, "node 1 of input 1", "a leaf without a word is refused");
	words[6] = 50;
	test_refusal(s, no_words, DIAG_MISSING_DATA, "word", "data that are not there at all are refused");
	test_refusal(s, no_values, DIAG_MISSING_DATA, "value", "vectors that are not there are refused");
	words[4] = 12345;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	struct rt_minibatch m = minibatch_of(data);
	tap_ok(rt_session_run(s, &tree_binding, NULL, &m, &diags) && row_of(s, 0, 4) == 139,
	       "a token that no case reads is not looked at");
	words[4] = -1;
	static const int32_t one[] = {0, 0, 1}, first[] = {0};
	m.forest = (struct lin_forest){2, 1, one, first, root + 2, NULL, NULL, 0};
	m.forest.root = first;
	tap_ok(!rt_session_run(s, &tree_binding, NULL, &m, &diags) && diags.n == 1 &&
		   diags.at[0].id == DIAG_WRONG_ARITY,
	       "what the linearizer refuses is refused");
	diags_free(&diags);
}

/* The same image with an array of where the nodes of each input begin: only the forest can say so, of one
 * input nobody need. */
static void test_members(void)
{
	struct image_buffer more[BUFFERS + 1];
	struct image image = tree_image;
	const void *const data[] = {words, values};
	struct rt_minibatch m = minibatch_of(data), one = {{.nodes = 5, .inputs = 1}, data};
	struct rt_binding binding = tree_binding;
	struct rt_session s;
	struct diags diags;
	memcpy(more, buffers, sizeof buffers);
	more[BUFFERS] = (struct image_buffer){.name = "begin",
					      .kind = IMAGE_MEMBER_BEGIN,
					      .dtype = DTYPE_I32,
					      .rows = IMAGE_INPUTS,
					      .row_elements = 1};
	image.buffers = BUFFERS + 1;
	image.buffer = more;
	binding.image = &image;
	one.forest.child_begin = child_begin;
	one.forest.children = children;
	one.forest.root = root;
	diags_init(&diags, &allocator_default);
	tap_ok(rt_session_init(&s, &allocator_default, &image, &diags) &&
		   rt_session_run(&s, &binding, NULL, &m, &diags) &&
		   rt_session_run(&s, &binding, NULL, &one, &diags),
	       "members need to know where their inputs begin");
	m.forest.input_begin = NULL;
	tap_ok(!rt_session_run(&s, &binding, NULL, &m, &diags) && diags.n == 1 &&
		   diags.at[0].id == DIAG_BAD_ARGUMENT && strstr(diags.at[0].message, "input_begin") &&
		   diags.at[0].hint,
	       "and are refused where nobody says");
	diags_free(&diags);
	diags_init(&diags, &allocator_default);
	tap_ok(!rt_check_minibatch(&allocator_default, &image, &m, &diags) && diags.n == 1 &&
		   diags.at[0].id == DIAG_BAD_ARGUMENT,
	       "and that is seen without a run");
	tap_ok(!rt_session_row(&s, 0, 0), "and leaves no result");
	rt_session_free(&s);
	diags_free(&diags);
}

static void test_memory(void)
{
	const void *const data[] = {words, values};
	struct rt_minibatch m = minibatch_of(data);
	bool right = true, ok = false;
	for (int n = 0; !ok && n < 200; n++) {
		struct budget budget = {.left = n};
		struct allocator a = {resize_budget, &budget};
		struct rt_session s;
		struct diags diags;
		diags_init(&diags, &allocator_default);
		ok = rt_session_init(&s, &a, &tree_image, &diags) &&
		     rt_session_run(&s, &tree_binding, NULL, &m, &diags);
		right &= ok || (diags.n == 1 && diags.at[0].id == DIAG_OUT_OF_MEMORY);
		budget.left = 1000;
		if (!ok && s.buffers) {
			diags_free(&diags);
			right &=
			    rt_session_run(&s, &tree_binding, NULL, &m, &diags) && row_of(&s, 0, 7) == 160;
		}
		long before = budget.left;
		right &= !ok || (rt_session_run(&s, &tree_binding, NULL, &m, &diags) && budget.left == before);
		rt_session_free(&s);
		diags_free(&diags);
	}
	tap_ok(ok && right,
	       "memory running out at any place leaves a session that runs later; a second run takes none");
}

int main(void)
{
	struct rt_session s;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	test_steps();
	tap_ok(rt_session_init(&s, &allocator_default, &tree_image, &diags), "a session begins");
	test_values(&s, &diags);
	test_refusals(&s);
	rt_session_free(&s);
	diags_free(&diags);
	test_members();
	test_memory();
	return tap_done();
}
