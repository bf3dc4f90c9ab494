/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Memory through the caller's hook: what is taken is given back, in whatever order objects are freed, and
 * when it runs out at the n-th request, for every n, that is a status. */
#include "tests/api/support.h"

static const char *weights, *trees, *words;

/* Everything from the model to a second run. */
static esp_status use_all(struct kit *k, struct account *a, esp_error **error)
{
	esp_context_options memory = {.size = sizeof memory, .resize = account_resize, .user = a};
	char *text = NULL;
	int more;
	esp_status s = make_kit(k, &memory, weights, error);
	if (s || (s = esp_vocab_open(k->context, words, &k->vocab, error)) ||
	    (s = esp_treebank_open(k->context, trees, &words_are(k->vocab), &k->treebank, error)) ||
	    (s = esp_forest_add(k->forest, &pair, error)) ||
	    (s = esp_treebank_next(k->treebank, k->forest, &more, error)) ||
	    (s = esp_forest_check(k->forest, error)) || (s = esp_session_run(k->session, k->forest, error)) ||
	    (s = esp_session_run(k->session, k->forest, error)))
		return s;
	s = esp_model_print(k->model, &text, error);
	esp_text_free(text);
	return s;
}

static bool balanced(const struct account *a)
{
	return a->blocks == 0 && a->bytes == 0 && !a->wrong;
}

static void test_account(void)
{
	struct account a = {.left = -1};
	struct kit k;
	esp_error *error;
	tap_ok(use_all(&k, &a, &error) == ESP_OK, "all is made through the hook");
	tap_ok(a.blocks > 10, "the hook is used");
	long before = a.bytes;
	tap_ok(esp_session_run(k.session, k.forest, NULL) == ESP_OK && a.bytes == before,
	       "a run in the steady state takes nothing");
	a.left = 0;
	tap_ok(esp_session_run(k.session, k.forest, NULL) == ESP_OK, "nor does it ask");
	a.left = -1;
	const float *row = esp_session_root(k.session, 0, 1);
	tap_ok(row && row[0] == 10 && row[1] == 10, "and its results are right");
	free_kit(&k);
	tap_ok(balanced(&a), "all is given back");
}

static void test_failures(void)
{
	long n = 0;
	bool memory = true, kept = true, told = true;
	esp_status s = ESP_ERROR_MEMORY;
	for (; s && n < 100000; n++) {
		struct account a = {.left = n};
		struct kit k;
		esp_error *error;
		s = use_all(&k, &a, &error);
		memory &= s == ESP_OK || s == ESP_ERROR_MEMORY;
		told &= s == ESP_OK ? !error : esp_error_count(error) && *esp_error_text(error);
		if (s && s != ESP_ERROR_MEMORY)
			printf("# request %ld: %s", n, esp_error_text(error));
		esp_error_free(error);
		free_kit(&k);
		kept &= balanced(&a);
	}
	tap_ok(s == ESP_OK, "with enough memory it works, after %ld requests", n - 1);
	tap_ok(memory, "memory running out at any request is ESP_ERROR_MEMORY");
	tap_ok(told, "and an error that can be read");
	tap_ok(kept, "and loses nothing");
}

/* What failed for want of memory works when asked again. */
static void test_retries(void)
{
	struct account a = {.left = -1};
	struct kit k;
	bool right = true;
	int more;
	use_all(&k, &a, NULL);
	esp_program *p;
	esp_binding *b = NULL;
	esp_program_create(k.model, k.weights, &interpreted, &p, NULL);
	for (long n = 0; !b && n < 10000; n++) {
		a.left = n;
		esp_status s = esp_binding_create(p, k.weights, &b, NULL);
		right &= s == (b ? ESP_OK : ESP_ERROR_MEMORY);
	}
	tap_ok(right && b, "a compilation that ran out of memory can be tried again");
	esp_treebank *t;
	esp_forest *f;
	a.left = -1;
	esp_treebank_open(k.context, trees, &words_are(k.vocab), &t, NULL);
	esp_forest_create(k.program, &f, NULL);
	for (long n = 0; !esp_forest_structures(f) && n < 10000; n++) {
		a.left = n;
		esp_treebank_next(t, f, &more, NULL);
	}
	tap_ok(strcmp(esp_treebank_sentence(t), "a b") == 0, "a tree that ran out of memory is read again");
	a.left = -1;
	esp_program_free(p);
	esp_binding_free(b);
	esp_treebank_free(t);
	esp_forest_free(f);
	free_kit(&k);
	tap_ok(balanced(&a), "all is given back");
}

enum { OBJECTS = 9 };

static void free_one(struct kit *k, int i)
{
	struct kit only = {0};
	switch (i) {
	case 0:
		only.context = k->context;
		break;
	case 1:
		only.model = k->model;
		break;
	case 2:
		only.weights = k->weights;
		break;
	case 3:
		only.program = k->program;
		break;
	case 4:
		only.binding = k->binding;
		break;
	case 5:
		only.forest = k->forest;
		break;
	case 6:
		only.session = k->session;
		break;
	case 7:
		only.vocab = k->vocab;
		break;
	case 8:
		only.treebank = k->treebank;
		break;
	}
	free_kit(&only);
}

static void shuffle(int *order, uint32_t *state)
{
	for (int i = 0; i < OBJECTS; i++)
		order[i] = i;
	for (int i = OBJECTS - 1; i > 0; i--) {
		*state = *state * 1664525 + 1013904223;
		int j = (*state >> 8) % (i + 1), was = order[i];
		order[i] = order[j];
		order[j] = was;
	}
}

/* A hundred of the orders that there are. */
static void test_orders(void)
{
	uint32_t state = 1;
	bool right = true;
	for (int round = 0; round < 100; round++) {
		struct account a = {.left = -1};
		struct kit k;
		int order[OBJECTS];
		use_all(&k, &a, NULL);
		shuffle(order, &state);
		for (int i = 0; i < OBJECTS; i++)
			free_one(&k, order[i]);
		right &= balanced(&a);
	}
	tap_ok(right, "objects can be freed in any order");
}

/* A session alone keeps alive all that it runs on; an error and a text outlive the context. */
static void test_survivors(void)
{
	struct account a = {.left = -1};
	struct kit k;
	esp_error *error, *late;
	char *text;
	use_all(&k, &a, NULL);
	esp_model_print(k.model, &text, NULL);
	esp_model_read(k.context, "/nonexistent", NULL, &error);
	esp_context_free(k.context);
	esp_model_free(k.model);
	esp_weights_free(k.weights);
	esp_program_free(k.program);
	esp_binding_free(k.binding);
	esp_vocab_free(k.vocab);
	tap_ok(esp_session_run(k.session, k.forest, &late) == ESP_OK,
	       "a session runs when all it was made from is freed");
	tap_ok(strcmp(esp_treebank_sentence(k.treebank), "a b") == 0, "a treebank keeps its vocabulary");
	esp_session_free(k.session);
	esp_forest_free(k.forest);
	esp_treebank_free(k.treebank);
	tap_ok(esp_error_count(error) == 1 && strncmp(text, "model tiny", 10) == 0,
	       "errors and texts outlive the context");
	esp_error_free(error);
	esp_text_free(text);
	tap_ok(balanced(&a), "all is given back");
}

int main(void)
{
	char path[3][128];
	make_folder();
	weights = strcpy(path[0], write_weights("tiny.safetensors", tiny_weights, 2));
	trees = strcpy(path[1], write_text("trees.ptb", "(2 (2 a) (2 b))\n"));
	words = strcpy(path[2], write_text("words.txt", "a\nb\n"));
	test_account();
	test_failures();
	test_retries();
	test_orders();
	test_survivors();
	remove_folder((const char *const[]){"tiny.safetensors", "trees.ptb", "words.txt"}, 3);
	return tap_done();
}
