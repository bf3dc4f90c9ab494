/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Runs through the public interface: results, what is refused, where diagnostics point. */
#include "tests/api/support.h"

#include <pthread.h>

enum { AXES = 8 };

static const char *weights;
static const float swap[] = {0, 1, 1, 0}, twice_as_much[] = {2, 4, 6, 8, 10, 12, 14, 16};

static bool row_is(const float *row, float a, float b)
{
	return row && row[0] == a && row[1] == b;
}

static void test_program(const struct kit *k)
{
	int64_t size = 0;
	const esp_input *word = esp_program_input(k->program, 0);
	const esp_model_facts *facts = esp_model_describe(k->model);
	tap_ok(strcmp(facts->name, "tiny") == 0 && strcmp(facts->structure, "tree") == 0 &&
		   facts->children == 2 && facts->inputs == 1 && facts->params == 2 && facts->states == 1 &&
		   facts->outputs == 2,
	       "a model says what it declares");
	tap_ok(esp_program_inputs(k->program) == 1 && strcmp(word->name, "word") == 0 && word->is_token &&
		   word->limit == 4 && word->dtype == ESP_I32 && !word->rank && !esp_program_input(k->program, 1),
	       "a program names its inputs");
	const esp_output *twice = esp_program_output(k->program, 0),
			 *total = esp_program_output(k->program, 1);
	tap_ok(twice->dtype == ESP_F32 && twice->elements == 2 && twice->rank == 1 && twice->shape[0] == 2 &&
		   !twice->at_root && !twice->labels,
	       "an output at every node has its shape");
	tap_ok(strcmp(total->name, "total") == 0 && total->elements == 1 && total->rank == 0 &&
		   total->at_root,
	       "an output at the root may be a number");
	tap_ok(strcmp(esp_program_size(k->program, 0, &size), "V") == 0 && size == 4 &&
		   strcmp(esp_program_size(k->program, 1, &size), "D") == 0 && size == 2 &&
		   !esp_program_size(k->program, 2, &size),
	       "sizes come from the weights");
}

/* Numbers, names and bytes are what programs were compiled with. */
static void test_types(void)
{
	static const struct {
		int number;
		const char *name;
		size_t size;
	} types[] = {{1, "f32", 4}, {2, "f16", 2}, {3, "bf16", 2}, {4, "i8", 1},  {5, "u8", 1},
		     {6, "i16", 2}, {7, "i32", 4}, {8, "i64", 8},  {9, "bool", 1}};
	bool ok = ESP_F32 == 1 && ESP_BOOL == 9;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		ok &= strcmp(esp_dtype_name((esp_dtype)types[i].number), types[i].name) == 0 &&
		      esp_dtype_size((esp_dtype)types[i].number) == types[i].size;
	tap_ok(ok, "types of elements have numbers, names and sizes");
	tap_ok(!esp_dtype_name((esp_dtype)0) && !esp_dtype_size((esp_dtype)10), "others have none");
}

/* Shapes are as long as the model has axes. */
static void test_shapes(const struct kit *k)
{
	static const char text[] =
	    "model many\nstructure tree(*)\ninput x[2, 1, N]\nparam W[2, 1, 2, 1, 2, 1, 2, N]\n"
	    "state h[2, 3, 1, N]\nnode:\n    h = zeros(2, 3, 1, N) + x[:, 0:1, :][0] * "
	    "W[0][0][0][0][0][0][0]\n"
	    "output o = h at every node\n";
	const int64_t size = 3;
	const esp_program_options options = {.size = sizeof options, .sizes = &size, .backend = "interpreter"};
	esp_model *m = NULL;
	esp_program *p = NULL;
	int64_t shape[AXES] = {0};
	size_t rank = 0;
	esp_context *context = k->context;
	tap_ok(!esp_model_parse(context, "many", text, strlen(text), &m, NULL) &&
		   !esp_program_create(m, NULL, &options, &p, NULL),
	       "a model of many axes");
	const esp_input *x = esp_program_input(p, 0);
	const esp_state *h = esp_program_state(p, 0);
	const esp_output *o = esp_program_output(p, 0);
	tap_ok(x && x->rank == 3 && x->shape[0] == 2 && x->shape[1] == 1 && x->shape[2] == 3 && x->elements == 6 &&
		   x->dtype == ESP_F32,
	       "an input of three axes");
	tap_ok(h && h->rank == 4 && h->shape[1] == 3 && h->shape[3] == 3 && h->dtype == ESP_F32 && o->rank == 4 &&
		   o->shape[3] == 3 && o->elements == 18,
	       "a state and an output of four");
	tap_ok(esp_model_param(m, 0, &size, shape, 2, &rank) && rank == 8 && shape[0] == 2 && shape[1] == 1 &&
		   !shape[2],
	       "no more of a shape is written than there is room for");
	esp_program_free(p);
	esp_model_free(m);
}

static void test_params(const struct kit *k)
{
	const esp_model *m = k->model;
	const int64_t sizes[] = {9, 5}, vast[] = {9, ((int64_t)1 << 62) + 1};
	int64_t shape[AXES];
	size_t rank = 0;
	tap_ok(strcmp(esp_model_dimension(m, 0), "V") == 0 && strcmp(esp_model_dimension(m, 1), "D") == 0 &&
		   !esp_model_dimension(m, 2) && !esp_model_dimension(NULL, 0),
	       "a model names its dimensions");
	tap_ok(strcmp(esp_model_param(m, 0, sizes, shape, AXES, &rank), "E") == 0 && rank == 2 && shape[0] == 9 &&
		   shape[1] == 5,
	       "and its parameters, with the shapes that they have with some sizes");
	tap_ok(esp_model_param(m, 0, vast, shape, AXES, &rank) && shape[0] < 1 && shape[1] < 1,
	       "and with sizes that no model has, none");
	tap_ok(strcmp(esp_model_param(m, 1, NULL, NULL, 0, &rank), "W") == 0 && rank == 2 &&
		   !esp_model_param(m, 2, sizes, shape, AXES, &rank) &&
		   !esp_model_param(NULL, 0, sizes, shape, AXES, &rank) && esp_model_param_dtype(m, 1) == ESP_F32 &&
		   !esp_model_param_dtype(m, 2) && !esp_model_param_dtype(NULL, 0),
	       "or without; past the last there is none");
}

static bool says(const esp_model *m, const char *name, int body, const char *text, int line)
{
	int found = -1;
	const char *statement = esp_model_statement(m, name, body, &found);
	return (text ? statement && strcmp(statement, text) == 0 : !statement) && found == line;
}

static void test_statements(const struct kit *k)
{
	const esp_model *m = k->model;
	tap_ok(says(m, "h", ESP_BODY_LEAF, "h = E[word]", 8) &&
		   says(m, "h", ESP_BODY_INNER, "h = W @ left.h + right.h", 10) &&
		   says(m, "total", ESP_BODY_OUTPUT, "output total = sum(h) at root", 12),
	       "a model says where states and outputs are computed");
	tap_ok(says(m, "h", ESP_BODY_OUTPUT, NULL, 0) && says(m, "total", ESP_BODY_LEAF, NULL, 0) &&
		   says(m, "h", 77, NULL, 0) && says(m, NULL, ESP_BODY_LEAF, NULL, 0) &&
		   says(NULL, "h", ESP_BODY_LEAF, NULL, 0) &&
		   esp_model_statement(m, "h", ESP_BODY_LEAF, NULL),
	       "what it does not have it has no line of");
	static const char both[] =
	    "model m\nstructure tree(*)\nstate h # a comment\nnode:\n"
	    "\th = 1 + \t # of itself\r\noutput x = h";
	esp_model *node = NULL;
	esp_model_parse(k->context, "m.ra", both, strlen(both), &node, NULL);
	tap_ok(!node, "a line goes on in brackets only");
	static const char brackets[] =
	    "model m\nstructure tree(*)\nstate h # a comment\nnode:\n"
	    "\th = (1 + \t \r\n 2)\noutput x = h";
	esp_model_parse(k->context, "m.ra", brackets, strlen(brackets), &node, NULL);
	tap_ok(says(node, "h", ESP_BODY_LEAF, "h = (1 +", 5) &&
		   says(node, "h", ESP_BODY_INNER, "h = (1 +", 5) &&
		   says(node, "x", ESP_BODY_OUTPUT, "output x = h", 7),
	       "a body for all nodes is both; of a long statement there is the first line");
	esp_model_free(node);
}

/* A root first, its leaves after it; word 3 at the left, 2 at the right. */
static const int32_t first_begin[] = {0, 2, 2, 2}, first_children[] = {2, 1}, first_words[] = {-1, 2, 3};
static const void *const first_data[] = {first_words};
static const esp_structure root_first = {sizeof root_first, 3, first_begin, first_children, 0, first_data};

static void test_results(struct kit *k)
{
	esp_error *error;
	tap_ok(!esp_session_root(k->session, 0, 0), "there are no results before a run");
	esp_forest_add(k->forest, &pair, NULL);
	esp_forest_add(k->forest, &root_first, NULL);
	tap_ok(esp_forest_structures(k->forest) == 2 && esp_forest_nodes(k->forest, 0) == 3 &&
		   esp_forest_nodes(k->forest, 1) == 3 && esp_forest_nodes(k->forest, 2) == 0,
	       "a forest counts its structures");
	const esp_forest *f = k->forest;
	tap_ok(esp_forest_child(f, 0, 2, 0) == 0 && esp_forest_child(f, 0, 2, 1) == 1 &&
		   esp_forest_child(f, 1, 0, 0) == 2 && esp_forest_child(f, 1, 0, 1) == 1,
	       "a forest knows the children of its nodes");
	tap_ok(esp_forest_child(f, 0, 2, 2) == -1 && esp_forest_child(f, 0, 0, 0) == -1 &&
		   esp_forest_child(f, 1, 3, 0) == -1 && esp_forest_child(f, 2, 0, 0) == -1 &&
		   esp_forest_child(NULL, 0, 0, 0) == -1,
	       "a child that is not there is -1");
	tap_ok(esp_forest_check(k->forest, &error) == ESP_OK &&
		   esp_session_run(k->session, k->forest, &error) == ESP_OK,
	       "a forest runs");
	const esp_session *s = k->session;
	tap_ok(row_is(esp_session_output(s, 0, 0, 0), 2, 4) && row_is(esp_session_output(s, 0, 0, 1), 6, 8) &&
		   row_is(esp_session_output(s, 0, 0, 2), 10, 10),
	       "outputs of nodes are found by the caller's numbers");
	/* h = swap(7, 8) + (5, 6) = (13, 13) */
	tap_ok(row_is(esp_session_output(s, 0, 1, 0), 26, 26) &&
		   row_is(esp_session_output(s, 0, 1, 2), 14, 16) &&
		   row_is(esp_session_root(s, 0, 1), 26, 26),
	       "whatever the order of nodes");
	tap_ok(*esp_session_root(s, 1, 0) == 10 && *esp_session_output(s, 1, 1, 99) == 26,
	       "outputs of structures as well");
	tap_ok(!esp_session_output(s, 0, 0, 3) && !esp_session_output(s, 0, 2, 0) &&
		   !esp_session_output(s, 2, 0, 0) && !esp_session_root(s, 0, 2),
	       "what does not exist is NULL");
	esp_forest_clear(k->forest);
	tap_ok(row_is(esp_session_root(s, 0, 0), 10, 10), "results stay when the forest is cleared");
	const esp_costs c = *esp_session_costs(s);
	tap_ok(c.runs == 1 && c.structures == 2 && c.nodes == 6 && c.batches == 2 && c.run > 0 &&
		   c.bind > 0 && c.compile > 0,
	       "costs are counted");
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_OK && !esp_session_root(s, 0, 0),
	       "an empty forest runs");
}

static void test_at(const struct kit *k)
{
	static const struct {
		int at, twice_at_root, total_at_root;
	} cases[] = {{ESP_AT_MODEL, 0, 1}, {ESP_AT_ROOT, 1, 1}, {ESP_AT_EVERY_NODE, 0, 0}};
	for (int i = 0; i < 3; i++) {
		esp_program_options options = {
		    .size = sizeof options, .at = cases[i].at, .backend = "interpreter"};
		esp_program *p;
		esp_binding *b;
		esp_session *s;
		esp_forest *f;
		esp_program_create(k->model, k->weights, &options, &p, NULL);
		esp_binding_create(p, k->weights, &b, NULL);
		esp_session_create(b, &s, NULL);
		esp_forest_create(p, &f, NULL);
		esp_forest_add(f, &pair, NULL);
		bool right = esp_session_run(s, f, NULL) == ESP_OK &&
			     esp_program_output(p, 0)->at_root == cases[i].twice_at_root &&
			     esp_program_output(p, 1)->at_root == cases[i].total_at_root &&
			     row_is(esp_session_root(s, 0, 0), 10, 10) && *esp_session_root(s, 1, 0) == 10;
		if (!cases[i].total_at_root)
			right = right && *esp_session_output(s, 1, 0, 1) == 7;
		tap_ok(right, "outputs are computed where %s",
		       i == 0	? "the model says"
		       : i == 1 ? "there is a root"
				: "there is a node");
		esp_forest_free(f);
		esp_session_free(s);
		esp_binding_free(b);
		esp_program_free(p);
	}
}

/* --- what is refused --- */

static void test_structures(struct kit *k)
{
	static const struct {
		const char *what, *id, *message;
		size_t nodes;
		int32_t begin[5], children[4], root, words[4];
		bool at_once; /* refused by esp_forest_add */
	} cases[] = {
	    {"a child that is no node",
	     "dangling-child",
	     "",
	     3,
	     {0, 0, 0, 2},
	     {0, 3},
	     2,
	     {0, 1, -1, 0},
	     true},
	    {"child_begin that descends",
	     "bad-child-begin",
	     "",
	     3,
	     {0, 2, 0, 2},
	     {0, 1},
	     2,
	     {0, 1, -1, 0},
	     true},
	    {"a root that is no node", "bad-root", "", 3, {0, 0, 0, 2}, {0, 1}, 3, {0, 1, -1, 0}, true},
	    {"a structure without nodes", "empty-input", "", 0, {0}, {0}, 0, {0}, true},
	    {"one child where two are wanted",
	     "wrong-arity",
	     "node 1 of input 1",
	     2,
	     {0, 0, 1},
	     {0},
	     1,
	     {0, -1},
	     false},
	    {"a node with two parents",
	     "shared-child",
	     "of input 1",
	     2,
	     {0, 0, 2},
	     {0, 0},
	     1,
	     {0, -1},
	     false},
	    {"a cycle", "cycle", "of input 1", 4, {0, 2, 4, 4, 4}, {1, 2, 0, 3}, 0, {-1, -1, 0, 0}, false},
	    {"a leaf without a word",
	     "missing-data",
	     "node 1 of input 1",
	     3,
	     {0, 0, 0, 2},
	     {0, 1},
	     2,
	     {0, -1, -1},
	     false},
	    {"a word past the last",
	     "token-out-of-range",
	     "node 0 of input 1",
	     3,
	     {0, 0, 0, 2},
	     {0, 1},
	     2,
	     {4, 1, -1},
	     false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		esp_error *error = NULL;
		const void *data[] = {cases[i].words};
		esp_structure s = {sizeof s,	      cases[i].nodes, cases[i].begin,
				   cases[i].children, cases[i].root,  data};
		esp_forest_clear(k->forest);
		esp_forest_add(k->forest, &pair, NULL);
		esp_status status = esp_forest_add(k->forest, &s, &error);
		bool added = status == ESP_OK;
		if (added)
			status = esp_session_run(k->session, k->forest, &error);
		bool named = status && strstr(esp_error_get(error, 0)->message, cases[i].message);
		if (!named)
			printf("# %s\n", esp_error_text(error));
		bool same = !added || esp_forest_check(k->forest, NULL) == ESP_ERROR_INPUT;
		tap_ok(status == ESP_ERROR_INPUT && added != cases[i].at_once && named && same &&
			   error_is(error, cases[i].id) &&
			   esp_forest_structures(k->forest) == 1 + (size_t)added &&
			   (!added || !esp_session_root(k->session, 0, 0)),
		       "%s is refused", cases[i].what);
	}
	esp_forest_clear(k->forest);
	esp_forest_add(k->forest, &pair, NULL);
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_OK &&
		   row_is(esp_session_root(k->session, 0, 0), 10, 10),
	       "a session is of use after all that");
}

static void test_weights(struct kit *k)
{
	static const float values[18] = {0};
	static const struct tensor wide[] = {{"E", 4, 3, values}, {"W", 3, 3, values}},
				   fewer[] = {{"E", 4, 2, values}},
				   doubled[] = {{"E", 4, 2, twice_as_much}, {"W", 2, 2, swap}};
	static const struct {
		const char *what, *id;
		const struct tensor *tensors;
		int n;
	} cases[] = {{"weights of other sizes", "size-differs", wide, 2},
		     {"weights that lack a parameter", "missing-weight", fewer, 1}};
	for (int i = 0; i < 2; i++) {
		esp_weights *w;
		esp_binding *b;
		esp_error *error;
		esp_weights_open(k->context, write_weights("other.safetensors", cases[i].tensors, cases[i].n),
				 &w, NULL);
		tap_ok(esp_binding_create(k->program, w, &b, &error) == ESP_ERROR_INPUT && !b &&
			   error_is(error, cases[i].id),
		       "%s are refused for a program", cases[i].what);
		esp_weights_free(w);
	}
	esp_weights *w;
	esp_binding *b;
	esp_session *s = NULL;
	esp_weights_open(k->context, write_weights("other.safetensors", doubled, 2), &w, NULL);
	tap_ok(esp_binding_create(k->program, w, &b, NULL) == ESP_OK &&
		   esp_session_create(b, &s, NULL) == ESP_OK &&
		   esp_session_run(s, k->forest, NULL) == ESP_OK &&
		   row_is(esp_session_root(s, 0, 0), 20, 20) &&
		   row_is(esp_session_root(k->session, 0, 0), 10, 10),
	       "two bindings of one program keep their own weights");
	esp_session_free(s);
	esp_binding_free(b);
	esp_weights_free(w);
}

/* Whether the states of the leaves of `pair` are so many times the rows of E. */
static bool leaves_are(const esp_session *s, float times)
{
	return row_is(esp_session_state(s, 0, 0, 0), times, 2 * times) &&
	       row_is(esp_session_state(s, 0, 0, 1), 3 * times, 4 * times);
}

/* A leaf's state that is a row of E may be read in the weights of the run, wherever it is. */
static void test_leaves(struct kit *k)
{
	static const struct tensor doubled[] = {{"E", 4, 2, twice_as_much}, {"W", 2, 2, swap}};
	esp_weights *w;
	esp_binding *b;
	esp_session *s = NULL;
	esp_forest_clear(k->forest);
	esp_forest_add(k->forest, &pair, NULL);
	esp_weights_open(k->context, write_weights("other.safetensors", doubled, 2), &w, NULL);
	tap_ok(!esp_binding_create(k->program, k->weights, &b, NULL) && !esp_session_create(b, &s, NULL) &&
		   !esp_session_run(s, k->forest, NULL) && leaves_are(s, 1),
	       "states of leaves are read");
	tap_ok(!esp_binding_swap(b, w, NULL) && leaves_are(s, 1),
	       "also after other weights took the place of those of the run");
	tap_ok(!esp_session_run(s, k->forest, NULL) && leaves_are(s, 2), "the next run has theirs");
	tap_ok(!esp_session_trim(s, NULL) && !esp_session_state(s, 0, 0, 0), "a trimmed session has none");
	esp_session_free(s);
	esp_binding_free(b);
	esp_weights_free(w);
}

static void test_files(struct kit *k)
{
	esp_model *m;
	esp_weights *w;
	esp_error *error;
	tap_ok(esp_model_read(k->context, path_of("none.ra"), &m, &error) == ESP_ERROR_INPUT && !m &&
		   error_is(error, "cannot-read"),
	       "a model that is not there is an error");
	tap_ok(esp_weights_open(k->context, path_of("none"), &w, &error) == ESP_ERROR_INPUT && !w &&
		   error_is(error, "cannot-read"),
	       "so are weights");
	char bad[sizeof tiny_model];
	strcpy(bad, tiny_model);
	memcpy(strstr(bad, "E[word]"), "E[nosu]", 7);
	esp_status status = esp_model_parse(k->context, "x.ra", bad, strlen(bad), &m, &error);
	const esp_diagnostic d = *esp_error_get(error, 0);
	tap_ok(status == ESP_ERROR_INPUT && d.file && strcmp(d.file, "x.ra") == 0 && d.line > 0 && d.source &&
		   strstr(esp_error_text(error), "x.ra:"),
	       "an error in a model has a place");
	esp_error_free(error);
	esp_program *p;
	esp_program_options nowhere = {.size = sizeof nowhere, .backend = "no-such"};
	status = esp_program_create(k->model, k->weights, &nowhere, &p, &error);
	if (status == ESP_OK)
		status = esp_program_prepare(p, &error);
	tap_ok(status == ESP_ERROR_BACKEND && error_is(error, "backend-not-found"),
	       "a back end that is not there is an error");
	esp_program_free(p);
}

/* --- treebanks --- */

static void test_treebank(struct kit *k)
{
	const char *words = write_text("words.txt", "a\nb\n"),
		   *trees = write_text("trees.ptb", "(2 (1 B) (3 A))\n(2 (2 a) (2 zz))\n");
	esp_error *error;
	int more;
	esp_vocab_open(k->context, words, &k->vocab, NULL);
	esp_treebank_open(k->context, trees, &words_are(k->vocab), &k->treebank, NULL);
	esp_forest_clear(k->forest);
	tap_ok(esp_treebank_progress(k->treebank) == 0 &&
		   esp_treebank_next(k->treebank, k->forest, &more, NULL) == ESP_OK && more &&
		   strcmp(esp_treebank_sentence(k->treebank), "B A") == 0 &&
		   esp_treebank_progress(k->treebank) > 0.3,
	       "a tree is read");
	/* swap(3, 4) + (1, 2) */
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_OK &&
		   row_is(esp_session_root(k->session, 0, 0), 10, 10) &&
		   row_is(esp_session_output(k->session, 0, 0, 0), 6, 8),
	       "its words were found whatever their case");
	esp_status status = esp_treebank_next(k->treebank, k->forest, &more, &error);
	const esp_diagnostic d = *esp_error_get(error, 0);
	tap_ok(status == ESP_ERROR_INPUT && !more && d.line == 2 && d.column == 13 &&
		   esp_forest_structures(k->forest) == 1 && error_is(error, "unknown-word"),
	       "a word that is not in the vocabulary is refused where it stands");
	tap_ok(esp_treebank_next(k->treebank, k->forest, &more, NULL) == ESP_OK && !more &&
		   esp_treebank_progress(k->treebank) == 1,
	       "the file has an end");
	esp_vocab *unknown;
	esp_treebank *t;
	esp_vocab_open(k->context, write_text("words.txt", "a\nb\n<unk>\n"), &unknown, NULL);
	esp_treebank_open(k->context, trees, &words_are(unknown), &t, NULL);
	esp_treebank_next(t, k->forest, &more, NULL);
	tap_ok(esp_treebank_next(t, k->forest, &more, NULL) == ESP_OK && more,
	       "<unk> stands for a word that is not there");
	esp_treebank_free(t);
	esp_vocab_free(unknown);
}

static const char vector_model[] =
    "model vectors\n"
    "structure sequence\n"
    "input x[D]\n"
    "param W[D, D]\n"
    "state h[D]\n"
    "leaf:\n"
    "    h = W @ x\n"
    "inner:\n"
    "    h = W @ previous.h + x\n"
    "output last = h at root\n";

static void test_vectors(struct kit *k)
{
	static const struct tensor tensors[] = {{"W", 2, 2, swap}};
	static const int32_t begin[] = {0, 0, 1, 2}, children[] = {0, 1};
	static const float x[] = {1, 2, 10, 20, 100, 200};
	const void *const data[] = {x};
	const esp_structure chain = {sizeof chain, 3, begin, children, 2, data};
	struct kit v = {0};
	esp_error *error = NULL;
	int more;
	esp_model_parse(k->context, "vectors.ra", vector_model, strlen(vector_model), &v.model, &error);
	esp_weights_open(k->context, write_weights("vectors.safetensors", tensors, 1), &v.weights, NULL);
	esp_program_create(v.model, v.weights, &interpreted, &v.program, NULL);
	esp_binding_create(v.program, v.weights, &v.binding, NULL);
	esp_session_create(v.binding, &v.session, NULL);
	esp_forest_create(v.program, &v.forest, NULL);
	tap_ok(esp_program_input(v.program, 0)->elements == 2, "an input may be a vector");
	esp_forest_add(v.forest, &chain, NULL);
	/* (2, 1), (1, 2) + (10, 20), (22, 11) + (100, 200) */
	tap_ok(esp_session_run(v.session, v.forest, NULL) == ESP_OK &&
		   row_is(esp_session_root(v.session, 0, 0), 122, 211),
	       "a sequence of vectors runs");
	esp_treebank_open(k->context, write_text("trees.ptb", "(2 (2 a))"), &words_are(k->vocab), &v.treebank, NULL);
	tap_ok(esp_treebank_next(v.treebank, v.forest, &more, &error) == ESP_ERROR_INPUT &&
		   error_is(error, "input-not-supplied"),
	       "a treebank cannot supply vectors");
	free_kit(&v);
}

/* --- threads --- */

static void *run_thread(void *program)
{
	struct {
		esp_binding *binding;
		esp_session *session;
		esp_forest *forest;
	} own = {0};
	struct kit *k = program;
	bool right = esp_program_prepare(k->program, NULL) == ESP_OK &&
		     esp_binding_create(k->program, k->weights, &own.binding, NULL) == ESP_OK &&
		     esp_session_create(own.binding, &own.session, NULL) == ESP_OK &&
		     esp_forest_create(k->program, &own.forest, NULL) == ESP_OK;
	for (int i = 0; right && i < 100; i++) {
		esp_forest_add(own.forest, i % 2 ? &root_first : &pair, NULL);
		right = esp_session_run(own.session, own.forest, NULL) == ESP_OK &&
			*esp_session_root(own.session, 1, i) == (i % 2 ? 26 : 10);
	}
	esp_forest_free(own.forest);
	esp_session_free(own.session);
	esp_binding_free(own.binding);
	return right ? program : NULL;
}

static void test_threads(struct kit *k)
{
	pthread_t threads[4];
	struct kit shared = *k;
	bool right = true;
	esp_program_create(k->model, k->weights, &interpreted, &shared.program, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run_thread, &shared);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(threads[i], &result);
		right &= result != NULL;
	}
	tap_ok(right, "threads share a program and each run a session");
	esp_program_free(shared.program);
}

int main(void)
{
	struct kit k;
	esp_error *error;
	char path[128];
	make_folder();
	weights = strcpy(path, write_weights("tiny.safetensors", tiny_weights, 2));
	tap_ok(strcmp(esp_version(), ESP_VERSION) == 0, "the library is of its header's version");
	if (!tap_ok(make_kit(&k, NULL, weights, &error) == ESP_OK, "all objects are made"))
		return printf("# %s", esp_error_text(error)), tap_done();
	test_program(&k);
	test_types();
	test_shapes(&k);
	test_params(&k);
	test_statements(&k);
	test_results(&k);
	test_at(&k);
	test_structures(&k);
	test_weights(&k);
	test_leaves(&k);
	test_files(&k);
	test_treebank(&k);
	test_vectors(&k);
	test_threads(&k);
	free_kit(&k);
	remove_folder((const char *const[]){"tiny.safetensors", "other.safetensors", "vectors.safetensors",
					    "trees.ptb", "words.txt"},
		      5);
	return tap_done();
}
