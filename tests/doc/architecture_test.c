/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The worked example of ARCHITECTURE.md says what the compiler prints.  A fenced block is named by its stage;
 * a line of it that is "..." stands for lines that are left out, "…" at the end of one for the rest of it. */
#include "tests/models/helper.h"

static char *page;

/* The text of the block of this name, to be freed; NULL = there is none. */
static char *find_block(const char *name)
{
	char fence[40];
	snprintf(fence, sizeof fence, "\n```%s\n", name);
	const char *begin = strstr(page, fence);
	const char *end = begin ? strstr(begin + strlen(fence), "```") : NULL;
	return end ? strndup(begin + strlen(fence), end - begin - strlen(fence)) : NULL;
}

static bool same_line(const char *line, size_t length, const char *at)
{
	static const char cut[] = "…";
	size_t n = sizeof cut - 1;
	if (length >= n && memcmp(line + length - n, cut, n) == 0)
		return strncmp(at, line, length - n) == 0;
	return strncmp(at, line, length) == 0 && at[length] == '\n';
}

static const char *next_line(const char *at)
{
	const char *end = strchr(at, '\n');
	return end ? end + 1 : at + strlen(at);
}

/* Whether the text has the lines of a block; those before "..." and behind it may lie apart. */
static bool has_lines(const char *text, const char *block)
{
	bool apart = true;
	for (const char *line = block; *line; line = next_line(line)) {
		size_t length = strcspn(line, "\n");
		bool skips = length == 3 && memcmp(line, "...", 3) == 0;
		while (!skips && apart && *text && !same_line(line, length, text))
			text = next_line(text);
		if (!skips && !same_line(line, length, text)) {
			printf("# '%.*s' is not there, but '%.*s'\n", (int)length, line,
			       (int)strcspn(text, "\n"), text);
			return false;
		}
		apart = skips;
		text = skips ? text : next_line(text);
	}
	return true;
}

static void test_stage(struct test_model *t, const char *stage)
{
	char *block = find_block(stage);
	if (!block)
		return;
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	struct str s = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, &s);
	tap_ok(ok && has_lines(str_text(&s), block), "the page has lines of the stage %s", stage);
	free(block);
}

static void print_numbers(char *to, const char *name, const int32_t *at, int n)
{
	to += sprintf(to, "%-11s", name);
	for (int i = 0; i < n; i++)
		to += sprintf(to, " %d", at[i]);
	strcpy(to, "\n");
}

/* The tree ((0 1) 2) for a model of any number of children. */
static void test_arrays(void)
{
	static const int32_t begin[] = {0, 0, 0, 0, 2, 4}, children[] = {0, 1, 3, 2}, root[] = {4};
	struct lin_forest f = {
	    .nodes = 5, .inputs = 1, .child_begin = begin, .children = children, .root = root};
	struct lin_order order;
	struct diags diags;
	char text[400] = "";
	lin_order_init(&order, &allocator_default);
	diags_init(&diags, &allocator_default);
	bool ok = lin_linearize(&order, &f, (struct lin_rules){.children = -1}, &diags);
	if (ok) {
		print_numbers(text, "batch.begin", order.batch_begin, order.batches + 1);
		print_numbers(text + strlen(text), "child.begin", order.child_begin, order.nodes + 1);
		print_numbers(text + strlen(text), "child.list", order.child_list, order.edges);
		print_numbers(text + strlen(text), "root", order.root, order.inputs);
	}
	char *block = find_block("linearize");
	tap_ok(ok && block && has_lines(text, block), "the page has the arrays of the tree");
	free(block);
	diags_free(&diags);
	lin_order_free(&order);
}

int main(void)
{
	struct test_model t = {0};
	size_t length;
	const char *stage;
	page = read_text(source_path("ARCHITECTURE.md"), &length);
	char *model = page ? find_block("model") : NULL;
	if (tap_ok(model && load_text(&t, "ARCHITECTURE.md", model, strlen(model), "D=64"),
		   "the page has a model"))
		for (size_t i = 0; (stage = compile_stage(i)); i++)
			test_stage(&t, stage);
	free_model(&t);
	test_arrays();
	free(model);
	free(page);
	return tap_done();
}
