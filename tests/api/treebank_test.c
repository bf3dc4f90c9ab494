/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from files, as a caller of the library reads them: which input is which column, what is passed,
 * what is refused, and what happens when memory runs out on the way. */
#include "tests/api/support.h"

/* Adds up what nodes carry. */
static const char sums_model[] =
    "model sums\n"
    "structure dag(*)\n"
    "input word : token, x[2]\n"
    "param E[V, 2]\n"
    "state h[2]\n"
    "node:\n"
    "    h = E[word] + x + sum(k.h for k in children)\n"
    "output total = h at root\n";
static const char words_model[] =
    "model words\n"
    "structure dag(*)\n"
    "input first : token, second : token\n"
    "param E[V, 2], F[U, 2]\n"
    "state h[2]\n"
    "node:\n"
    "    h = E[first] + F[second] + sum(k.h for k in children)\n"
    "output total = h at root\n";
static const char edges_model[] = "model edges\n"
				  "structure dag(*)\n"
				  "input word : token\n"
				  "edge rel : token\n"
				  "param E[V, 2], F[U, 2]\n"
				  "state h[2]\n"
				  "node:\n"
				  "    h = E[word] + sum(k.h + F[k.rel] for k in children)\n"
				  "output total = h at root\n";
static const float rows[] = {1, 0, 0, 1, 10, 0, 0, 10};
static const struct tensor tensors[] = {{"E", 4, 2, rows}, {"F", 4, 2, rows}};

static struct kit make(const char *model, int params, const esp_context_options *context)
{
	struct kit k = {0};
	esp_context_create(context, &k.context, NULL);
	esp_model_parse(k.context, "model.ra", model, strlen(model), &k.model, NULL);
	esp_weights_open(k.context, write_weights("w.safetensors", tensors, params), &k.weights, NULL);
	esp_program_create(k.model, k.weights, &interpreted, &k.program, NULL);
	esp_binding_create(k.program, k.weights, &k.binding, NULL);
	esp_forest_create(k.program, &k.forest, NULL);
	esp_session_create(k.binding, &k.session, NULL);
	esp_vocab_open(k.context, write_text("words.txt", "a\nb\nc\nd\n"), &k.vocab, NULL);
	return k;
}

static bool row_is(const float *row, float a, float b)
{
	return row && row[0] == a && row[1] == b;
}

/* Whether the next structure can be run and the sum at its root is this. */
static bool next_is(struct kit *k, float a, float b)
{
	int more;
	esp_forest_clear(k->forest);
	return esp_treebank_next(k->treebank, k->forest, &more, NULL) == ESP_OK && more &&
	       esp_session_run(k->session, k->forest, NULL) == ESP_OK &&
	       row_is(esp_session_root(k->session, 0, 0), a, b);
}

static bool next_fails(struct kit *k, esp_status status, const char *id)
{
	int more = 1;
	esp_error *error = NULL;
	return esp_treebank_next(k->treebank, k->forest, &more, &error) == status && !more &&
	       error_is(error, id);
}

static void open_text(struct kit *k, const char *name, const char *text, const esp_treebank_options *options)
{
	esp_treebank_free(k->treebank);
	esp_treebank_open(k->context, write_text(name, text), options, &k->treebank, NULL);
}

static void test_json(void)
{
	struct kit k = make(sums_model, 1, NULL);
	esp_column columns[] = {{"word", "w", k.vocab}, {"word_of_no_model", NULL, NULL}};
	esp_treebank_options o = {.size = sizeof o, .column = columns, .columns = 2};
	open_text(&k, "trees.json",
		  "[{\"children\": [[1, 1], []], \"root\": 0, \"data\": {\"w\": [3, \"b\"], \"x\": [[1, 1], "
		  "[0.5, 0]]}},\n"
		  " {\"children\": [[]], \"data\": {\"w\": [0], \"x\": [[1]]}},\n"
		  " {\"children\": [[]], \"data\": {\"w\": [0]}},\n"
		  " {\"children\": [[]], \"data\": {\"w\": [4], \"x\": [[0, 0]]}, \"text\": \"last\"}]",
		  &o);
	tap_ok(next_is(&k, 2, 13), "JSON supplies tokens and vectors");
	tap_ok(next_fails(&k, ESP_ERROR_INPUT, "bad-json") && esp_treebank_passed(k.treebank) == 2,
	       "data that is not what the model reads is refused");
	tap_ok(next_fails(&k, ESP_ERROR_INPUT, "input-not-supplied"), "so is data that is not there");
	int more;
	esp_error *error;
	esp_forest_clear(k.forest);
	tap_ok(esp_treebank_next(k.treebank, k.forest, &more, NULL) == ESP_OK && more &&
		   strcmp(esp_treebank_sentence(k.treebank), "last") == 0 &&
		   esp_treebank_passed(k.treebank) == 4,
	       "what is refused is passed");
	tap_ok(esp_session_run(k.session, k.forest, &error) == ESP_ERROR_INPUT &&
		   error_is(error, "token-out-of-range"),
	       "tokens are checked when the forest runs");
	free_kit(&k);
}

#define LINE(id, form, tag, head, deps) id "\t" form "\t_\t" tag "\t_\t_\t" head "\tdep\t" deps "\t_\n"
static const char sentences[] = LINE("1", "A", "c", "2", "2:x|3:x") LINE("2", "b", "d", "0", "0:root") LINE(
    "3", "b", "c", "2", "2:y") "\n" LINE("1", "a", "a", "2", "_") "\n" LINE("1", "b", "b", "0", "0:root");

static void test_conllu(void)
{
	struct kit k = make(words_model, 2, NULL);
	esp_column columns[] = {{"first", "form", NULL}, {"second", "upos", NULL}};
	esp_treebank_options o = {.size = sizeof o, .vocab = k.vocab, .column = columns, .columns = 2};
	open_text(&k, "trees.conllu", sentences, &o);
	tap_ok(next_is(&k, 21, 12), "each input has its column");
	tap_ok(next_fails(&k, ESP_ERROR_INPUT, "bad-head"), "a sentence that is no tree is refused");
	tap_ok(next_is(&k, 0, 2), "the one after it is read");
	int more = 1;
	for (int i = 0; i < 2; i++)
		tap_ok(esp_treebank_next(k.treebank, k.forest, &more, NULL) == ESP_OK && !more &&
			   esp_treebank_passed(k.treebank) == 3,
		       "its end passes nothing, however often it is met");
	o.graph = ESP_GRAPH_ENHANCED;
	open_text(&k, "trees.conllu", sentences, &o);
	tap_ok(next_is(&k, 32, 12), "in the graph a word counts for each of its heads");
	columns[1].column = "nothing";
	open_text(&k, "trees.conllu", sentences, &o);
	tap_ok(next_fails(&k, ESP_ERROR_INPUT, "input-not-supplied"), "a column must be there");
	o.columns = 1;
	open_text(&k, "trees.conllu", sentences, &o);
	tap_ok(next_fails(&k, ESP_ERROR_INPUT, "input-not-supplied"),
	       "an input by another name has no column");
	columns[1].column = "upos";
	o.columns = 2;
	o.vocab = NULL;
	open_text(&k, "trees.conllu", sentences, &o);
	tap_ok(next_fails(&k, ESP_ERROR_ARGUMENT, "bad-argument"), "texts need a vocabulary");
	free_kit(&k);
}

static void test_edges(void)
{
	struct kit k = make(edges_model, 2, NULL);
	esp_vocab *labels;
	esp_vocab_open(k.context, write_text("words.txt", "dep\nx\ny\n"), &labels, NULL);
	esp_column columns[] = {{"word", NULL, k.vocab}, {"rel", NULL, labels}};
	esp_treebank_options o = {.size = sizeof o, .column = columns, .columns = 2};
	open_text(&k, "trees.conllu", sentences, &o);
	tap_ok(next_is(&k, 3, 2), "an edge of a tree carries the relation of the dependent");
	o.graph = ESP_GRAPH_ENHANCED;
	open_text(&k, "trees.conllu", sentences, &o);
	tap_ok(next_is(&k, 12, 4), "an edge of a graph carries its own label");
	open_text(&k, "trees.json",
		  "{\"children\": [[1, 2], [], [1]], \"root\": 0,"
		  " \"data\": {\"word\": [0, 1, 2], \"rel\": [[\"x\", 3], [], [0]]}}\n"
		  "{\"children\": [[1], []], \"data\": {\"word\": [0, 1], \"rel\": [[1, 2], []]}}\n"
		  "{\"children\": [[1], []], \"root\": 0, \"data\": {\"word\": [0, 1], \"rel\": [[1], []]}}\n",
		  &o);
	tap_ok(next_is(&k, 12, 13), "JSON has a list of labels for each node");
	tap_ok(next_fails(&k, ESP_ERROR_INPUT, "bad-json"), "which is as long as the list of children");
	tap_ok(next_is(&k, 1, 2), "an object that is passed leaves nothing behind");
	esp_vocab_free(labels);
	free_kit(&k);
}

/* --- sequences, words, places --- */

static const char chain_model[] =
    "model chain\n"
    "structure sequence\n"
    "input word : token\n"
    "param E[V, 2]\n"
    "state h[2]\n"
    "node:\n"
    "    h = E[word] + 2 * previous.h\n"
    "output total = h at root\n";

static bool carries(struct kit *k, const char *want)
{
	char *words = NULL;
	bool ok = esp_treebank_words(k->treebank, &words, NULL) == ESP_OK && strcmp(words, want) == 0;
	esp_text_free(words);
	return ok;
}

static void test_sequences(void)
{
	struct kit k = make(chain_model, 1, NULL);
	esp_treebank_options o = {.size = sizeof o, .vocab = k.vocab};
	open_text(&k, "words.txt", "a  b\n\nc\n", &o);
	tap_ok(carries(&k, ""), "before the first structure there are no words");
	tap_ok(next_is(&k, 2, 1) && carries(&k, "a\nb\n"),
	       "a line is a sequence for a program that takes some");
	tap_ok(next_is(&k, 10, 0) && carries(&k, "c\n"), "and the next one");
	o.format = ESP_FORMAT_PLAIN;
	open_text(&k, "trees.ptb", "b", &o);
	tap_ok(next_is(&k, 0, 1), "the format can be given");
	o.format = ESP_FORMAT_AUTO;
	open_text(&k, "trees.json", "{\"data\": {\"word\": [\"a\\n\", 1]}}{\"data\": {\"word\": [0, \"b\"]}}",
		  &o);
	tap_ok(next_fails(&k, ESP_ERROR_INPUT, "unknown-word") && carries(&k, ""),
	       "JSON without children is one, too");
	tap_ok(next_is(&k, 2, 1) && carries(&k, "0\nb\n"), "its words are texts and numbers");
	int more;
	open_text(&k, "trees.json", "{\"data\": {\"id\": \"s1\", \"word\": [-1, \"b\"]}}", &o);
	tap_ok(esp_treebank_next(k.treebank, k.forest, &more, NULL) == ESP_OK && more && carries(&k, "\nb\n"),
	       "but -1 is none");
	tap_ok(esp_vocab_words(k.vocab) == 4 && esp_vocab_words(NULL) == 0,
	       "a vocabulary tells how many words it has");
	free_kit(&k);
}

/* A diagnostic of the forest that is about a place of a file. */
static bool fails_at(struct kit *k, const char *id, size_t structure, int line, const char *said)
{
	esp_error *error = NULL;
	bool ok =
	    esp_session_run(k->session, k->forest, &error) == ESP_ERROR_INPUT && esp_error_count(error) == 1;
	const esp_diagnostic *d = esp_error_get(error, 0);
	ok = ok && strcmp(d->id, id) == 0 && d->structure == (int64_t)structure && d->line == line &&
	     (line ? d->file && strstr(d->file, "trees.ptb") : !d->file) && strstr(d->message, said);
	if (!ok)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return ok;
}

static void test_places(void)
{
	struct kit k = make(chain_model, 1, NULL);
	int more;
	int32_t begin[] = {0, 0}, word = 7;
	const void *data[] = {&word};
	esp_structure one = {.size = sizeof one, .nodes = 1, .child_begin = begin, .data = data};
	esp_treebank_options o = {.size = sizeof o, .vocab = k.vocab};
	open_text(&k, "trees.ptb", "(S a)\n(S a)\n\n(S (A a)\n (B b))", &o);
	for (int i = 0; i < 3; i++)
		esp_treebank_next(k.treebank, k.forest, &more, NULL);
	esp_treebank_free(k.treebank);
	k.treebank = NULL;
	tap_ok(fails_at(&k, "wrong-arity", 2, 4, "node 2 of structure 2 has 2 children"),
	       "a node is named by its file, also after the treebank is gone");
	esp_forest_remove(k.forest, 0);
	tap_ok(fails_at(&k, "wrong-arity", 1, 4, "node 2 of structure 2"),
	       "also when it moved up in the minibatch");
	esp_forest_remove(k.forest, 1);
	esp_forest_add(k.forest, &one, NULL);
	tap_ok(fails_at(&k, "token-out-of-range", 1, 0, "node 0 of input 1"),
	       "one that was added counts in the minibatch");
	esp_forest_clear(k.forest);
	esp_forest_add(k.forest, &one, NULL);
	tap_ok(fails_at(&k, "token-out-of-range", 0, 0, "node 0 of input 0"),
	       "also in the place of one that was read");
	open_text(&k, "trees.ptb", "\n(S a)\n", &o);
	esp_treebank_next(k.treebank, k.forest, &more, NULL);
	esp_forest_remove(k.forest, 0);
	tap_ok(esp_session_run(k.session, k.forest, NULL) == ESP_OK, "what is left runs");
	free_kit(&k);
}

/* A chain whose root stands first, one whose root is below it, and one with a node beside it. */
static const char chains[] =
    "{\"children\": [[1], []], \"root\": 0, \"data\": {\"word\": [1, 0]}}\n"
    "{\"children\": [[1], []], \"data\": {\"word\": [1, 0]}}\n"
    "{\"children\": [[], [], [0]], \"data\": {\"word\": [1, 0, 0]}}\n"
    "{\"children\": [[2]], \"data\": {\"word\": [1]}}\n";

static void test_reach(void)
{
	struct kit tree = make(chain_model, 1, NULL), graph = make(words_model, 2, NULL);
	open_text(&tree, "trees.json", chains, NULL);
	tap_ok(next_is(&tree, 2, 1), "the root may have any number");
	tap_ok(next_fails(&tree, ESP_ERROR_INPUT, "unreached-node"), "but no parent");
	tap_ok(next_fails(&tree, ESP_ERROR_INPUT, "unreached-node"), "a node beside the tree is refused");
	tap_ok(next_fails(&tree, ESP_ERROR_INPUT, "dangling-child"), "a child must be there");
	esp_column columns[] = {{"first", "word", NULL}, {"second", "word", NULL}};
	esp_treebank_options o = {.size = sizeof o, .column = columns, .columns = 2};
	open_text(&graph, "trees.json", chains, &o);
	tap_ok(next_is(&graph, 2, 2), "a graph is read");
	tap_ok(next_is(&graph, 2, 0), "its root may have parents, of which it knows nothing");
	tap_ok(next_is(&graph, 2, 2), "and it may have nodes beside it");
	free_kit(&tree);
	free_kit(&graph);
}

static void test_options(void)
{
	struct kit k = make(words_model, 2, NULL);
	const char *path = write_text("trees.ptb", "(a b)");
	esp_column nameless = {NULL, "form", NULL};
	const esp_treebank_options wrong[] = {{.size = sizeof *wrong, .format = 5},
					      {.size = sizeof *wrong, .graph = -1},
					      {.size = sizeof *wrong, .binarize = 3},
					      {.size = sizeof *wrong, .columns = 1},
					      {.size = sizeof *wrong, .columns = 1, .column = &nameless},
					      {.size = 3}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		esp_error *error = NULL;
		tap_ok(esp_treebank_open(k.context, path, &wrong[i], &k.treebank, &error) ==
			       ESP_ERROR_ARGUMENT &&
			   !k.treebank && error_is(error, "bad-argument"),
		       "options that make no sense: %zu", i);
	}
	free_kit(&k);
}

/* Opens and reads, with memory that runs out at the n-th request from there on. */
static esp_status read_all(struct kit *k, const esp_treebank_options *o, const char *path, size_t *structures)
{
	int more = 1;
	esp_status s = esp_treebank_open(k->context, path, o, &k->treebank, NULL);
	esp_forest_clear(k->forest);
	while (!s && more)
		s = esp_treebank_next(k->treebank, k->forest, &more, NULL);
	*structures = esp_forest_structures(k->forest);
	esp_treebank_free(k->treebank);
	k->treebank = NULL;
	return s;
}

static void test_memory(void)
{
	struct account a = {.left = -1};
	esp_context_options memory = {.size = sizeof memory, .resize = account_resize, .user = &a};
	struct kit k = make(words_model, 2, &memory);
	esp_column columns[] = {{"first", "form", k.vocab}, {"second", "upos", k.vocab}};
	esp_treebank_options o = {.size = sizeof o, .column = columns, .columns = 2};
	const char *path = write_text("trees.conllu", LINE("1", "a", "b", "0", "_"));
	esp_status s = ESP_ERROR_MEMORY;
	bool told = true;
	size_t structures = 0;
	long n = 0;
	for (; s && n < 1000; n++) {
		a.left = n;
		s = read_all(&k, &o, path, &structures);
		told &= s == ESP_OK || s == ESP_ERROR_MEMORY;
	}
	a.left = -1;
	tap_ok(told && s == ESP_OK && n > 5 && structures == 1,
	       "memory that runs out is told, at every request");
	for (int more, i = 0; i < 5; i++) {
		open_text(&k, "trees.conllu", LINE("1", "a", "b", "0", "_"), &o);
		esp_treebank_next(k.treebank, k.forest, &more, NULL);
	}
	tap_ok(esp_forest_structures(k.forest) == 6, "a forest takes structures of several files");
	free_kit(&k);
	tap_ok(a.blocks == 0 && a.bytes == 0 && !a.wrong, "and all is given back");
}

/* A text in memory, whose end is followed by what is none of it. */
static void test_text_in_memory(void)
{
	static const char text[] = "{\"children\": [[]], \"data\": {\"word\": [\"b\"], \"x\": [[0, 0]]}}\n"
				   "{\"children\": [[]], \"data\": {\"word\": [\"z\"], \"x\": [[0, 0]]}}{";
	struct kit k = make(sums_model, 1, NULL);
	char *bytes = malloc(sizeof text - 2), name[] = "body";
	esp_error *error;
	int more = 0;
	memcpy(bytes, text, sizeof text - 2);
	tap_ok(esp_treebank_from_memory(k.context, name, bytes, sizeof text - 2, &words_are(k.vocab), &k.treebank,
					&error) == ESP_OK,
	       "a text in memory is opened");
	memset(name, 'x', 4);
	tap_ok(esp_treebank_progress(k.treebank) == 0 && next_is(&k, 0, 1), "and its structures are read");
	tap_ok(esp_treebank_next(k.treebank, k.forest, &more, &error) == ESP_ERROR_INPUT &&
		   strcmp(esp_error_get(error, 0)->file, "body") == 0 && esp_error_get(error, 0)->line == 2,
	       "what is refused has the place, by a name that was copied");
	esp_error_free(error);
	tap_ok(esp_treebank_next(k.treebank, k.forest, &more, NULL) == ESP_OK && !more &&
		   esp_treebank_progress(k.treebank) == 1,
	       "nothing behind its end is read");
	esp_treebank_free(k.treebank);
	esp_treebank_from_memory(k.context, "none", bytes, 0, NULL, &k.treebank, NULL);
	tap_ok(esp_treebank_next(k.treebank, k.forest, &more, NULL) == ESP_ERROR_INPUT && !more,
	       "a text without bytes is refused as an empty file is");
	free(bytes);
	free_kit(&k);
}

int main(void)
{
	static const char *const files[] = {"w.safetensors", "words.txt", "trees.json", "trees.conllu",
					    "trees.ptb"};
	if (!make_folder()) {
		puts("Bail out! no temporary folder");
		return 99;
	}
	test_json();
	test_conllu();
	test_edges();
	test_sequences();
	test_places();
	test_reach();
	test_options();
	test_text_in_memory();
	test_memory();
	remove_folder(files, 5);
	return tap_done();
}
