/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Every argument that the documentation excludes is a `bad-argument` that names the function and the
 * argument. */
#include "api/espalier_vta.h"
#include "tests/api/support.h"

static struct kit k;
static esp_error *error;

/* Whether a call was refused for this argument of this function, and *out (the address of what the call sets)
 * is NULL. */
static void refused(esp_status status, const void *out, const char *function, const char *argument)
{
	void *made = NULL;
	if (out)
		memcpy(&made, out, sizeof made);
	const esp_diagnostic *d = esp_error_get(error, 0);
	bool named = d && strcmp(d->id, "bad-argument") == 0 && strstr(d->message, function) &&
		     strstr(d->message, argument);
	tap_ok(status == ESP_ERROR_ARGUMENT && named && !made, "%s refuses a wrong '%s'", function, argument);
	if (!named)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	error = NULL;
}

static void *const rubbish = &k; /* what *out holds before a call */

static void test_creation(const char *weights)
{
	esp_model *model = rubbish;
	esp_weights *w = rubbish;
	esp_program *program = rubbish;
	esp_binding *binding = rubbish;
	esp_forest *forest = rubbish;
	esp_session *session = rubbish;
	esp_program_options at = {.size = sizeof at, .at = 3},
			    target = {.size = sizeof target, .target = "pdp11"};
	refused(esp_context_create(NULL, NULL, &error), NULL, "esp_context_create", "out");
	refused(esp_model_read(NULL, "x", &model, &error), &model, "esp_model_read", "context");
	refused(esp_model_read(k.context, NULL, &model, &error), &model, "esp_model_read", "path");
	refused(esp_model_read(k.context, "x", NULL, &error), NULL, "esp_model_read", "out");
	model = rubbish;
	refused(esp_model_parse(NULL, "x", "", 0, &model, &error), &model, "esp_model_parse", "context");
	refused(esp_model_parse(k.context, NULL, "", 0, &model, &error), &model, "esp_model_parse", "name");
	refused(esp_model_parse(k.context, "x", NULL, 0, &model, &error), &model, "esp_model_parse", "text");
	refused(esp_model_parse(k.context, "x", "", 0, NULL, &error), NULL, "esp_model_parse", "out");
	refused(esp_weights_open(NULL, weights, &w, &error), &w, "esp_weights_open", "context");
	refused(esp_weights_open(k.context, NULL, &w, &error), &w, "esp_weights_open", "path");
	refused(esp_weights_open(k.context, weights, NULL, &error), NULL, "esp_weights_open", "out");
	refused(esp_weights_from_memory(NULL, "", 0, &w, &error), &w, "esp_weights_from_memory", "context");
	refused(esp_weights_from_memory(k.context, NULL, 0, &w, &error), &w, "esp_weights_from_memory",
		"bytes");
	refused(esp_weights_from_memory(k.context, "", 0, NULL, &error), NULL, "esp_weights_from_memory",
		"out");
	refused(esp_weights_from_memory(k.context, "", SIZE_MAX, &w, &error), &w, "esp_weights_from_memory",
		"n");
	refused(esp_program_create(NULL, k.weights, NULL, &program, &error), &program, "esp_program_create",
		"model");
	refused(esp_program_create(k.model, NULL, NULL, &program, &error), &program, "esp_program_create",
		"weights");
	refused(esp_program_create(k.model, k.weights, NULL, NULL, &error), NULL, "esp_program_create",
		"out");
	refused(esp_program_create(k.model, k.weights, &at, &program, &error), &program, "esp_program_create",
		"at");
	refused(esp_program_create(k.model, k.weights, &target, &program, &error), &program,
		"esp_program_create", "target");
	refused(esp_program_prepare(NULL, &error), NULL, "esp_program_prepare", "program");
	refused(esp_binding_create(NULL, k.weights, &binding, &error), &binding, "esp_binding_create",
		"program");
	refused(esp_binding_create(k.program, NULL, &binding, &error), &binding, "esp_binding_create",
		"weights");
	refused(esp_binding_create(k.program, k.weights, NULL, &error), NULL, "esp_binding_create", "out");
	refused(esp_binding_open(NULL, k.weights, &binding, &error), &binding, "esp_binding_open", "program");
	refused(esp_binding_open(k.program, NULL, &binding, &error), &binding, "esp_binding_open", "weights");
	refused(esp_binding_open(k.program, k.weights, NULL, &error), NULL, "esp_binding_open", "out");
	refused(esp_forest_create(NULL, &forest, &error), &forest, "esp_forest_create", "program");
	refused(esp_forest_create(k.program, NULL, &error), NULL, "esp_forest_create", "out");
	refused(esp_session_create(NULL, &session, &error), &session, "esp_session_create", "binding");
	refused(esp_session_create(k.binding, NULL, &error), NULL, "esp_session_create", "out");
}

static void test_texts(void)
{
	char *text = rubbish;
	refused(esp_model_print(NULL, &text, &error), &text, "esp_model_print", "model");
	refused(esp_model_print(k.model, NULL, &error), NULL, "esp_model_print", "text");
	refused(esp_program_dump(NULL, "ra", &text, &error), &text, "esp_program_dump", "program");
	refused(esp_program_dump(k.program, NULL, &text, &error), &text, "esp_program_dump", "stage");
	refused(esp_program_dump(k.program, "ra", NULL, &error), NULL, "esp_program_dump", "text");
	tap_ok(esp_program_dump(k.program, "gimple", &text, &error) == ESP_ERROR_ARGUMENT && !text &&
		   error_is(error, "unknown-stage"),
	       "a stage that does not exist is refused");
	error = NULL;
}

static void test_structures(void)
{
	esp_structure s = pair;
	refused(esp_forest_add(NULL, &pair, &error), NULL, "esp_forest_add", "forest");
	refused(esp_forest_add(k.forest, NULL, &error), NULL, "esp_forest_add", "structure");
	s.child_begin = NULL;
	refused(esp_forest_add(k.forest, &s, &error), NULL, "esp_forest_add", "child_begin");
	s = pair;
	s.children = NULL;
	refused(esp_forest_add(k.forest, &s, &error), NULL, "esp_forest_add", "children");
	s = pair;
	s.data = NULL;
	refused(esp_forest_add(k.forest, &s, &error), NULL, "esp_forest_add", "data");
	s.data = (const void *const[]){NULL};
	refused(esp_forest_add(k.forest, &s, &error), NULL, "esp_forest_add", "data");
	s = pair;
	s.nodes = (size_t)1 << 31;
	refused(esp_forest_add(k.forest, &s, &error), NULL, "esp_forest_add", "nodes");
	s.nodes = INT32_MAX;
	tap_ok(esp_forest_add(k.forest, &s, &error) == ESP_ERROR_INPUT && error_is(error, "too-many-nodes"),
	       "more nodes than can be numbered are no lack of memory");
	error = NULL;
	tap_ok(esp_forest_structures(k.forest) == 0, "what was refused was not added");
	refused(esp_forest_check(NULL, &error), NULL, "esp_forest_check", "forest");
	refused(esp_session_run(NULL, k.forest, &error), NULL, "esp_session_run", "session");
	refused(esp_session_run(k.session, NULL, &error), NULL, "esp_session_run", "forest");
	esp_program *other;
	esp_forest *foreign;
	esp_program_create(k.model, k.weights, &interpreted, &other, NULL);
	esp_forest_create(other, &foreign, NULL);
	refused(esp_session_run(k.session, foreign, &error), NULL, "esp_session_run", "forest");
	esp_program_free(other);
	esp_forest_free(foreign);
}

static void test_streams(void)
{
	const char *path = write_text("s.vta", "memory 256\ninput x 0 16\nfinish\n");
	esp_vta_stream *stream = rubbish;
	char *text = rubbish, memory[256] = {0};
	refused(esp_vta_open(NULL, path, &stream, &error), &stream, "esp_vta_open", "context");
	refused(esp_vta_open(k.context, NULL, &stream, &error), &stream, "esp_vta_open", "path");
	refused(esp_vta_open(k.context, path, NULL, &error), NULL, "esp_vta_open", "out");
	if (esp_vta_open(k.context, path, &stream, NULL))
		return;
	refused(esp_vta_print(NULL, ESP_VTA_TEXT, &text, &error), &text, "esp_vta_print", "stream");
	refused(esp_vta_print(stream, ESP_VTA_TEXT, NULL, &error), NULL, "esp_vta_print", "text");
	text = rubbish;
	refused(esp_vta_print(stream, 2, &text, &error), &text, "esp_vta_print", "form");
	refused(esp_vta_save(NULL, path, &error), NULL, "esp_vta_save", "stream");
	refused(esp_vta_save(stream, NULL, &error), NULL, "esp_vta_save", "path");
	refused(esp_vta_run(NULL, memory, 256, &error), NULL, "esp_vta_run", "stream");
	refused(esp_vta_run(stream, NULL, 256, &error), NULL, "esp_vta_run", "memory");
	refused(esp_vta_run(stream, memory, 255, &error), NULL, "esp_vta_run", "bytes");
	esp_vta_free(stream);
}

static void test_treebanks(void)
{
	const char *trees = write_text("trees.ptb", "(2 (2 a) (2 b))\n"),
		   *words = write_text("words.txt", "a\nb\n");
	esp_vocab *vocab = rubbish;
	esp_treebank *treebank = rubbish;
	int more = 7;
	refused(esp_vocab_open(NULL, words, &vocab, &error), &vocab, "esp_vocab_open", "context");
	refused(esp_vocab_open(k.context, NULL, &vocab, &error), &vocab, "esp_vocab_open", "path");
	refused(esp_vocab_open(k.context, words, NULL, &error), NULL, "esp_vocab_open", "out");
	refused(esp_treebank_open(NULL, trees, NULL, &treebank, &error), &treebank, "esp_treebank_open",
		"context");
	refused(esp_treebank_open(k.context, NULL, NULL, &treebank, &error), &treebank, "esp_treebank_open",
		"path");
	refused(esp_treebank_open(k.context, trees, NULL, NULL, &error), NULL, "esp_treebank_open", "out");
	refused(esp_treebank_from_memory(NULL, "t", "", 0, NULL, &treebank, &error), &treebank,
		"esp_treebank_from_memory", "context");
	refused(esp_treebank_from_memory(k.context, NULL, "", 0, NULL, &treebank, &error), &treebank,
		"esp_treebank_from_memory", "name");
	refused(esp_treebank_from_memory(k.context, "t", NULL, 0, NULL, &treebank, &error), &treebank,
		"esp_treebank_from_memory", "bytes");
	refused(esp_treebank_from_memory(k.context, "t", "", SIZE_MAX, NULL, &treebank, &error), &treebank,
		"esp_treebank_from_memory", "n");
	refused(esp_treebank_from_memory(k.context, "t", "", 0, NULL, NULL, &error), NULL,
		"esp_treebank_from_memory", "out");
	refused(esp_treebank_from_memory(k.context, "t", "", 0,
					 &(esp_treebank_options){.size = sizeof(esp_treebank_options), .graph = 9},
					 &treebank, &error),
		&treebank, "esp_treebank_from_memory", "options->graph");
	esp_treebank_open(k.context, trees, NULL, &k.treebank, NULL);
	refused(esp_treebank_next(NULL, k.forest, &more, &error), NULL, "esp_treebank_next", "treebank");
	refused(esp_treebank_next(k.treebank, NULL, &more, &error), NULL, "esp_treebank_next", "forest");
	refused(esp_treebank_next(k.treebank, k.forest, NULL, &error), NULL, "esp_treebank_next", "more");
	refused(esp_treebank_next(k.treebank, k.forest, &more, &error), NULL, "esp_treebank_open", "vocab");
	tap_ok(more == 0, "no more trees are promised after a refusal");
}

static void test_null(void)
{
	size_t n = esp_error_count(NULL) + esp_program_inputs(NULL) + esp_program_outputs(NULL) +
		   esp_forest_structures(NULL) + esp_forest_nodes(NULL, 0) + esp_forest_root(NULL, 0);
	tap_ok(n == 0 && !esp_error_get(NULL, 0) && !*esp_error_text(NULL), "there is nothing in NULL");
	tap_ok(!esp_program_input(NULL, 0) && !esp_program_output(NULL, 0) &&
		   !esp_program_size(NULL, 0, NULL) && !esp_model_describe(NULL) &&
		   !*esp_treebank_sentence(NULL) && esp_treebank_progress(NULL) == 1,
	       "nor are names");
	tap_ok(!esp_session_output(NULL, 0, 0, 0) && !esp_session_root(NULL, 0, 0) &&
		   !esp_session_costs(NULL),
	       "nor results");
	esp_error_free(NULL);
	esp_text_free(NULL);
	esp_forest_clear(NULL);
	free_kit(&(struct kit){0});
	tap_ok(true, "NULL can be freed");
	tap_ok(esp_model_read(NULL, NULL, NULL, NULL) == ESP_ERROR_ARGUMENT,
	       "nobody has to ask for the error");
}

int main(void)
{
	make_folder();
	const char *weights = write_weights("tiny.safetensors", tiny_weights, 2);
	if (!tap_ok(make_kit(&k, NULL, weights, &error) == ESP_OK, "all objects are made"))
		return printf("# %s", esp_error_text(error)), tap_done();
	tap_ok(!error, "success leaves no error");
	test_creation(weights);
	test_texts();
	test_structures();
	test_streams();
	test_treebanks();
	test_null();
	free_kit(&k);
	remove_folder((const char *const[]){"tiny.safetensors", "trees.ptb", "words.txt"}, 3);
	return tap_done();
}
