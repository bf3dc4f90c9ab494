/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bodies of a model: their statements, which of them is a node's, and locals that are kept as states. */
#include "tests/api/support.h"

static const char model[] =
    "model cased\n"
    "structure tree(*)\n"
    "input word : token, kind : token\n"
    "param E[V, D], W[D, D]\n"
    "case one = inner when children == 1 and kind == 2\n"
    "case odd = leaf when kind == 1\n"
    "state h[D]\n"
    "leaf:\n"
    "    x = E[word]\n"
    "    h = x\n"
    "one:\n"
    "    x = W @ children[0].h\n"
    "    n = sum(x)\n"
    "    h = x\n"
    "inner:\n"
    "    h = sum(k.h for k in children)\n"
    "traversal down\n"
    "state g[D]\n"
    "node:\n"
    "    x = h + parent.g\n"
    "    g = x\n"
    "traversal up\n"
    "state r[D]\n"
    "node:\n"
    "    r = g\n"
    "odd:\n"
    "    r = g + h\n"
    "output y = sum(g) at every node\n";

/* Node 0 is the root; 1 is below it, and 2 and 3 are below that. */
static const int32_t begin[] = {0, 1, 3, 3, 3}, children[] = {1, 2, 3}, words[] = {-1, -1, 0, 1},
		     kinds[] = {2, 2, 1, 0};
static const void *const data[] = {words, kinds};
static const esp_structure four = {sizeof four, 4, begin, children, 0, data};

static esp_context *context;

static bool says(const esp_model *m, const char *name, int body, const char *text, int line)
{
	int found = -1;
	const char *statement = esp_model_statement(m, name, body, &found);
	return (text ? statement && strcmp(statement, text) == 0 : !statement) && found == line;
}

static void test_statements(const esp_model *m)
{
	size_t traversal = 9;
	tap_ok(strcmp(esp_model_traversal(m, 0), "up") == 0 &&
		   strcmp(esp_model_traversal(m, 1), "down") == 0 &&
		   strcmp(esp_model_traversal(m, 2), "up") == 0 && !esp_model_traversal(m, 3) &&
		   !esp_model_traversal(NULL, 0),
	       "traversals are listed");
	tap_ok(strcmp(esp_model_state(m, 0, &traversal), "h") == 0 && traversal == 0 &&
		   strcmp(esp_model_state(m, 1, &traversal), "g") == 0 && traversal == 1 &&
		   esp_model_state(m, 2, NULL) && !esp_model_state(m, 3, NULL) &&
		   !esp_model_state(NULL, 0, NULL),
	       "states are of traversals");
	tap_ok(says(m, "h", ESP_BODY_CASE, "h = x", 14) &&
		   says(m, "h", ESP_BODY_INNER, "h = sum(k.h for k in children)", 16),
	       "a case has statements of its own");
	tap_ok(says(m, "h", ESP_BODY_CASE + 1, "h = x", 10), "or, without a body, those of leaves");
	tap_ok(says(m, "h", ESP_BODY_CASE + 2, NULL, 0) && says(m, "g", ESP_BODY_CASE, NULL, 0) &&
		   says(m, "h", ESP_BODY_ROOT, NULL, 0) && says(m, "g", ESP_BODY_ROOT, "g = x", 21),
	       "other bodies have none");
}

static bool is_local(const esp_local *l, const char *name, size_t traversal, int body, const char *shape,
		     int line)
{
	return l && strcmp(l->name, name) == 0 && l->traversal == traversal && l->body == body &&
	       strcmp(l->shape, shape) == 0 && l->line == line && l->statement;
}

static void test_locals(const esp_model *m)
{
	tap_ok(is_local(esp_model_local(m, 0), "x", 0, ESP_BODY_LEAF, "[D]", 9) &&
		   is_local(esp_model_local(m, 1), "x", 0, ESP_BODY_CASE, "[D]", 12) &&
		   is_local(esp_model_local(m, 2), "n", 0, ESP_BODY_CASE, "", 13) &&
		   is_local(esp_model_local(m, 3), "x", 1, ESP_BODY_ROOT, "[D]", 20) &&
		   is_local(esp_model_local(m, 4), "x", 1, ESP_BODY_BELOW, "[D]", 20) &&
		   !esp_model_local(m, 5) && !esp_model_local(NULL, 0),
	       "locals are listed by traversal and body");
	tap_ok(strcmp(esp_model_local(m, 2)->statement, "n = sum(x)") == 0, "with their statements");
}

/* Runs a model over the structure; the session is the caller's, NULL after a failure. */
static esp_session *run_model(const esp_model *m, const char *weights, esp_forest **forest)
{
	esp_weights *w = NULL;
	esp_program *p = NULL;
	esp_binding *b = NULL;
	esp_session *s = NULL;
	esp_error *error = NULL;
	bool ok = !esp_weights_open(context, weights, &w, &error) &&
		  !esp_program_create(m, w, &interpreted, &p, &error) &&
		  !esp_binding_create(p, w, &b, &error) && !esp_forest_create(p, forest, &error) &&
		  !esp_forest_add(*forest, &four, &error) && !esp_session_create(b, &s, &error) &&
		  !esp_session_run(s, *forest, &error);
	if (!ok)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	esp_weights_free(w);
	esp_program_free(p);
	esp_binding_free(b);
	if (ok)
		return s;
	esp_session_free(s);
	return NULL;
}

static bool row_is(const esp_session *s, size_t state, size_t node, float a, float b)
{
	const float *row = esp_session_state(s, state, 0, node);
	return row && row[0] == a && row[1] == b;
}

static void test_body_of_a_node(const esp_model *m, const esp_forest *f)
{
	tap_ok(esp_model_body(m, f, 0, 0) == ESP_BODY_CASE && esp_model_body(m, f, 0, 1) == ESP_BODY_INNER &&
		   esp_model_body(m, f, 0, 2) == ESP_BODY_CASE + 1 &&
		   esp_model_body(m, f, 0, 3) == ESP_BODY_LEAF,
	       "a node is of the first case that it fits");
	tap_ok(!esp_model_body(m, f, 0, 4) && !esp_model_body(m, f, 1, 0) && !esp_model_body(NULL, f, 0, 0) &&
		   !esp_model_body(m, NULL, 0, 0),
	       "what is not there is of none");
}

/* h: leaves (1, 2) and (3, 4), their parent (4, 6), and W swaps that for the root. */
static void test_keep(const esp_model *m, const char *weights)
{
	static const size_t local[] = {0, 1, 2, 3, 4};
	static const char *const state[] = {"x", "x", "n", "x.2", "x.2"};
	esp_model *kept = NULL;
	esp_forest *f = NULL;
	if (!tap_ok(!esp_model_keep(m, local, state, 5, &kept, NULL) && kept, "locals are kept as states"))
		return;
	size_t traversal = 9;
	tap_ok(esp_model_describe(kept)->states == 6 &&
		   strcmp(esp_model_state(kept, 2, &traversal), "n") == 0 && traversal == 0 &&
		   strcmp(esp_model_state(kept, 4, &traversal), "x.2") == 0 && traversal == 1,
	       "they stand behind those of their traversal");
	tap_ok(says(kept, "x", ESP_BODY_LEAF, "x = E[word]", 9) &&
		   says(kept, "x", ESP_BODY_CASE, "x = W @ children[0].h", 12) &&
		   says(kept, "x", ESP_BODY_INNER, NULL, 0) && says(kept, "n", ESP_BODY_LEAF, NULL, 0),
	       "and have statements where they are computed");
	esp_session *s = run_model(kept, weights, &f);
	if (tap_ok(s, "the model runs")) {
		tap_ok(row_is(s, 0, 0, 6, 4) && row_is(s, 3, 0, 6, 4) && row_is(s, 3, 3, 13, 14),
		       "states are what they were");
		tap_ok(row_is(s, 1, 0, 6, 4) && row_is(s, 1, 1, 0, 0) && row_is(s, 1, 2, 1, 2) &&
			   row_is(s, 1, 3, 3, 4) && *esp_session_state(s, 2, 0, 0) == 10 &&
			   *esp_session_state(s, 2, 0, 3) == 0 && row_is(s, 4, 1, 10, 10),
		       "locals have their values, and zeros elsewhere");
	}
	test_body_of_a_node(m, f);
	esp_session_free(s);
	esp_forest_free(f);
	esp_model_free(kept);
	tap_ok(!esp_model_keep(m, local, state, 0, &kept, NULL) && esp_model_describe(kept)->states == 3,
	       "nothing may be kept");
	esp_model_free(kept);
}

static void test_wrong(const esp_model *m)
{
	static const struct {
		size_t local[2];
		const char *state[2], *what;
	} wrong[] = {
	    {{0, 5}, {"x", "z"}, "a local that is not there"},
	    {{0, 1}, {"x", NULL}, "a state without a name"},
	    {{0, 1}, {"x", "g"}, "the name of a state"},
	    {{0, 1}, {"y", "x"}, "the name of an output"},
	    {{0, 1}, {"W", "x"}, "the name of a parameter"},
	    {{0, 1}, {"word", "x"}, "the name of an input"},
	    {{0, 1}, {"", "x"}, "an empty name"},
	    {{0, 1}, {"a b", "x"}, "two words"},
	    {{0, 1}, {"state", "x"}, "a word of the language"},
	    {{1, 2}, {"x", "x"}, "two shapes in one state"},
	    {{0, 3}, {"x", "x"}, "two traversals in one state"},
	    {{0, 0}, {"x", "x"}, "a local twice in one state"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		esp_model *kept = (esp_model *)&kept;
		esp_error *error = NULL;
		esp_status status = esp_model_keep(m, wrong[i].local, wrong[i].state, 2, &kept, &error);
		tap_ok(status == ESP_ERROR_ARGUMENT && !kept && error_is(error, "bad-argument"),
		       "%s is refused", wrong[i].what);
	}
	esp_model *kept = NULL;
	tap_ok(esp_model_keep(NULL, wrong[0].local, wrong[0].state, 1, &kept, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_model_keep(m, NULL, wrong[0].state, 1, &kept, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_model_keep(m, wrong[0].local, NULL, 1, &kept, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_model_keep(m, wrong[0].local, wrong[0].state, 1, NULL, NULL) == ESP_ERROR_ARGUMENT,
	       "so is NULL");
}

/* A model that has no text keeps nothing, and none of its nodes is of a case by what edges carry. */
static void test_others(const esp_model *m, const char *weights)
{
	esp_builder *b;
	esp_model *made = NULL, *kept = (esp_model *)&kept, *edged = NULL;
	if (!esp_builder_create(context, "made", "sequence", &b, NULL)) {
		esp_builder_state(b, "h", NULL);
		esp_builder_body(b, ESP_BODY_NODE);
		esp_builder_assign(b, "h", esp_builder_number(b, 1));
		esp_builder_body(b, ESP_BODY_OUTPUT);
		esp_builder_output(b, "o", esp_builder_get(b, "h"), ESP_AT_ROOT, NULL, 0);
		esp_builder_finish(b, &made, NULL);
		esp_builder_free(b);
	}
	tap_ok(made && esp_model_keep(made, NULL, NULL, 0, &kept, NULL) == ESP_ERROR_ARGUMENT && !kept,
	       "a model that was built by calls has no locals to keep");
	esp_model_free(made);

	static const char text[] =
	    "model edged\nstructure tree(*)\ninput word : token\nedge kind : token\nparam E[V, D], W[D, D]\n"
	    "state h[D]\nleaf:\n h = E[word]\ninner:\n h = sum(W @ k.h + E[k.kind] for k in "
	    "children)\noutput y = h\n";
	esp_weights *w = NULL;
	esp_program *program = NULL;
	esp_forest *forest = NULL;
	esp_error *e = NULL;
	static const int32_t kind[] = {1, 1, 1};
	static const void *const carried[] = {words, kind};
	esp_structure s = {sizeof s, 4, begin, children, 0, carried};
	bool ok = !esp_model_parse(context, "edged.ra", text, strlen(text), &edged, &e) &&
		  !esp_weights_open(context, weights, &w, &e) &&
		  !esp_program_create(
		      edged, w,
		      &(esp_program_options){.size = sizeof(esp_program_options), .backend = "interpreter"},
		      &program, &e) &&
		  !esp_forest_create(program, &forest, &e) && !esp_forest_add(forest, &s, &e);
	if (e)
		printf("# %s\n", esp_error_text(e));
	esp_error_free(e);
	for (size_t node = 0; node < 4; node++)
		ok &= esp_model_body(m, forest, 0, node) < ESP_BODY_CASE;
	tap_ok(ok, "what edges carry is nothing that a node has");
	esp_forest_free(forest);
	esp_program_free(program);
	esp_weights_free(w);
	esp_model_free(edged);
}

static void test_tensors(const char *weights)
{
	esp_weights *w = NULL;
	esp_weights_open(context, weights, &w, NULL);
	const esp_tensor *e = esp_weights_tensor(w, 0), *last = esp_weights_tensor(w, 1);
	tap_ok(e && strcmp(e->name, "E") == 0 && e->dtype == ESP_F32 && e->rank == 2 && e->shape[0] == 4 &&
		   e->shape[1] == 2 && last && strcmp(last->name, "W") == 0,
	       "weights say what they hold");
	tap_ok(!esp_weights_tensor(w, 2) && !esp_weights_tensor(NULL, 0), "and nothing else");
	esp_weights_free(w);
}

/* What is made by calls has no names for its values. */
static void test_built(void)
{
	esp_builder *b = NULL;
	esp_model *m = NULL;
	esp_builder_create(context, "built", "sequence", &b, NULL);
	esp_builder_state(b, "h", NULL);
	esp_builder_body(b, ESP_BODY_NODE);
	esp_value one = esp_builder_number(b, 1), twice[] = {one, one};
	esp_value sum = esp_builder_call(b, "+", twice, 2), sums[] = {sum, sum};
	esp_builder_assign(b, "h", esp_builder_call(b, "*", sums, 2));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "y", esp_builder_get(b, "h"), ESP_AT_ROOT, NULL, 0);
	tap_ok(!esp_builder_finish(b, &m, NULL) && !esp_model_local(m, 0),
	       "a model that was built has no locals");
	esp_model_free(m);
	esp_builder_free(b);
}

int main(void)
{
	esp_model *m = NULL;
	esp_error *error = NULL;
	make_folder();
	const char *weights = write_weights("w.safetensors", tiny_weights, 2);
	if (!tap_ok(!esp_context_create(NULL, &context, NULL) &&
			!esp_model_parse(context, "cased.ra", model, strlen(model), &m, &error),
		    "a model with cases and two traversals"))
		printf("# %s\n", esp_error_text(error));
	if (m) {
		test_statements(m);
		test_locals(m);
		test_keep(m, weights);
		test_wrong(m);
		test_built();
		test_others(m, weights);
		test_tensors(weights);
	}
	esp_model_free(m);
	esp_context_free(context);
	remove_folder((const char *const[]){"w.safetensors"}, 1);
	return tap_done();
}
