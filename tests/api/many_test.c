/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Many structures at once, from arrays that stand one after the other; and what else callers with structures of their own
 * ask: words, and what a program takes. */
#include "tests/api/support.h"

static struct kit k;

/* Three structures behind a node, a structure and a child that are not theirs: a pair, a leaf, and a pair whose root is its
 * first node. */
static const int32_t node_begin[] = {1, 4, 5, 8}, child_begin[] = {0, 1, 1, 1, 3, 3, 5, 5, 5}, children[] = {-9, 0, 1, 1, 2},
		     words[] = {-9, 0, 1, -1, 3, -1, 1, 2}, root[] = {2, 0, 0};
static const void *const data[] = {words};
static const esp_structures three = {sizeof three, 3, node_begin, child_begin, children, root, data};

static bool add(const esp_structures *s)
{
	esp_error *error = NULL;
	esp_status status = esp_forest_add_many(k.forest, s, &error);
	if (status)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return !status;
}

/* Whether they are refused, and nothing is added. */
static bool refused(const esp_structures *s, esp_status expected, const char *id)
{
	esp_error *error = NULL;
	size_t before = esp_forest_structures(k.forest);
	esp_status status = esp_forest_add_many(k.forest, s, &error);
	return status == expected && error_is(error, id) && esp_forest_structures(k.forest) == before;
}

static bool total_is(size_t structure, float expected)
{
	const float *row = esp_session_output(k.session, 1, structure, 0);
	return row && *row == expected;
}

static void test_adding(void)
{
	tap_ok(add(&three) && esp_forest_structures(k.forest) == 3 && esp_forest_nodes(k.forest, 0) == 3 &&
		   esp_forest_nodes(k.forest, 1) == 1 && esp_forest_root(k.forest, 2) == 0,
	       "three structures are added by one call");
	tap_ok(esp_forest_child(k.forest, 2, 0, 1) == 2, "children are named by their numbers within the structure");
	tap_ok(esp_session_run(k.session, k.forest, NULL) == ESP_OK && total_is(0, 10) && total_is(1, 15) && total_is(2, 18),
	       "and computed as those that are added one by one");
	tap_ok(add(&three) && esp_forest_structures(k.forest) == 6 && esp_session_run(k.session, k.forest, NULL) == ESP_OK &&
		   total_is(3, 10) && total_is(5, 18),
	       "more are added behind them");
}

static void test_roots(void)
{
	esp_structures s = three;
	s.structures = 2;
	s.root = NULL;
	esp_forest_clear(k.forest);
	tap_ok(add(&s) && esp_forest_root(k.forest, 0) == 2 && esp_forest_root(k.forest, 1) == 0,
	       "without roots the last node of each is its root");
	s.structures = 0;
	tap_ok(add(&s) && esp_forest_structures(k.forest) == 2, "no structure at all is legal");
}

static void test_refusals(void)
{
	static const int32_t falling[] = {1, 5, 4, 8}, negative[] = {-1, 0, 1, 2}, empty[] = {1, 4, 4, 8},
			     descending[] = {0, 1, 1, 1, 3, 2, 5, 5, 5}, dangling[] = {-9, 0, 3, 1, 2}, far[] = {2, 0, 3};
	esp_structures s = three;
	s.node_begin = falling;
	tap_ok(refused(&s, ESP_ERROR_ARGUMENT, "bad-argument"), "node_begin that does not ascend is refused");
	s.node_begin = negative;
	tap_ok(refused(&s, ESP_ERROR_ARGUMENT, "bad-argument"), "node_begin that begins below 0");
	s.node_begin = NULL;
	tap_ok(refused(&s, ESP_ERROR_ARGUMENT, "bad-argument"), "no node_begin");
	s.node_begin = empty;
	tap_ok(refused(&s, ESP_ERROR_INPUT, "empty-input"), "a structure without nodes, the first being right");
	s = three;
	s.child_begin = descending;
	tap_ok(refused(&s, ESP_ERROR_INPUT, "bad-child-begin"), "child_begin that descends");
	s.child_begin = NULL;
	tap_ok(refused(&s, ESP_ERROR_ARGUMENT, "bad-argument"), "no child_begin");
	s = three;
	s.children = dangling;
	tap_ok(refused(&s, ESP_ERROR_INPUT, "dangling-child"), "a child in another structure");
	s.children = NULL;
	tap_ok(refused(&s, ESP_ERROR_ARGUMENT, "bad-argument"), "no children though there are edges");
	s = three;
	s.root = far;
	tap_ok(refused(&s, ESP_ERROR_INPUT, "bad-root"), "a root in another structure");
	s = three;
	s.data = NULL;
	tap_ok(refused(&s, ESP_ERROR_ARGUMENT, "bad-argument"), "no data");
	s = three;
	s.size = 1;
	tap_ok(refused(&s, ESP_ERROR_ARGUMENT, "bad-argument"), "a size that is none");
	tap_ok(refused(NULL, ESP_ERROR_ARGUMENT, "bad-argument"), "NULL");
}

/* Either all memory is there or nothing is added. */
static void test_memory(void)
{
	struct account account = {.left = -1};
	const esp_context_options memory = {.size = sizeof memory, .resize = account_resize, .user = &account};
	struct kit before = k;
	esp_error *error = NULL;
	bool right = !make_kit(&k, &memory, path_of("w.safetensors"), &error);
	int failures = 0;
	for (long n = 0; right && n < 20; n++) {
		account.left = n;
		esp_status status = esp_forest_add_many(k.forest, &three, NULL);
		account.left = -1;
		failures += status == ESP_ERROR_MEMORY;
		right &= esp_forest_structures(k.forest) == (status ? 0 : 3);
		esp_forest_trim(k.forest);
	}
	tap_ok(right && failures > 2, "memory that runs out changes nothing");
	free_kit(&k);
	k = before;
}

static void test_words(void)
{
	const char *path = write_text("words.txt", "red\nGreen\n<unk>\n");
	tap_ok(esp_vocab_open(k.context, path, &k.vocab, NULL) == ESP_OK && esp_vocab_find(k.vocab, "red", 3) == 0 &&
		   esp_vocab_find(k.vocab, "RED", 3) == 0 && esp_vocab_find(k.vocab, "Greenish", 5) == 1,
	       "words are found as files are read");
	tap_ok(esp_vocab_find(k.vocab, "blue", 4) == 2 && esp_vocab_find(k.vocab, NULL, 0) == 2 &&
		   esp_vocab_find(NULL, "red", 3) == -1,
	       "what is not there is <unk>");
}

static void test_description(void)
{
	int shared = 9;
	const esp_input *word = esp_program_input(k.program, 0);
	tap_ok(esp_program_children(k.program, &shared) == 2 && !shared && esp_program_children(k.program, NULL) == 2,
	       "a program says which structures it takes");
	tap_ok(word->at_leaves && !word->at_inner, "and where it reads an input");
}

int main(void)
{
	esp_error *error;
	make_folder();
	if (make_kit(&k, NULL, write_weights("w.safetensors", tiny_weights, 2), &error))
		return tap_ok(false, "%s", esp_error_text(error)), tap_done();
	test_adding();
	test_roots();
	test_refusals();
	test_memory();
	test_words();
	test_description();
	free_kit(&k);
	remove_folder((const char *const[]){"w.safetensors", "words.txt"}, 2);
	return tap_done();
}
