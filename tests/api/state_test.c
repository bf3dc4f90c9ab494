/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* States of every node: those that outputs copy have the same bits, and nothing is there that was not run. */
#include "tests/api/support.h"
#include "tests/backends.h"

/* Outputs that say what the states are; the last state is needed by nothing. */
static const char model[] =
    "model states\n"
    "structure tree(*)\n"
    "input word : token\n"
    "param E[V, D]\n"
    "param W[D, D]\n"
    "param P[2, D]\n"
    "state h[D], n, M[D, 3], unused[2*D], X[2, D]\n"
    "leaf:\n"
    "    h = E[word]\n"
    "    n = 1\n"
    "    M = 0.5\n"
    "    unused = concat(h, h)\n"
    "    X = P * E[word]\n"
    "inner:\n"
    "    h = tanh(W @ sum(k.h for k in children))\n"
    "    n = sum(k.n for k in children)\n"
    "    M = sum(tanh(k.M + k.n) for k in children)\n"
    "    unused = concat(h, 2 * h)\n"
    "    X = sum(k.X for k in children)\n"
    "output oh = h\n"
    "output on = n\n"
    "output oM = M\n"
    "output ounused = concat(h, h) at root\n"
    "output oX = X\n";

static const char by_parent[] = "layout h parent\nlayout n parent\nlayout M parent\nlayout X parent\n";

static const float table[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6},
		   matrix[] = {0.5f, -0.25f, 0, 1, 0.125f, 0.75f, -1, 0.5f, 0.25f},
		   times[] = {1, 1, 1, 10, 10, 10};

static const struct tensor weights[] = {{"E", 5, 3, table}, {"W", 3, 3, matrix}, {"P", 2, 3, times}};

/* A root in the middle of the numbers. */
static const int32_t begin[] = {0, 0, 0, 3, 3, 5, 5}, children[] = {4, 0, 3, 5, 1},
		     words[] = {0, 1, -1, 2, -1, 3};
static const void *const data[] = {words};
static const esp_structure tree = {sizeof tree, 6, begin, children, 2, data};
static const int32_t one_begin[] = {0, 0}, one_word[] = {4};
static const void *const one_data[] = {one_word};
static const esp_structure one = {sizeof one, 1, one_begin, NULL, 0, one_data};

static bool is_described(const esp_program *p, size_t i, const char *name, size_t elements, size_t rank)
{
	const esp_state *s = esp_program_state(p, i);
	return s && strcmp(s->name, name) == 0 && s->elements == elements && s->rank == rank;
}

static void check_interface(const struct kit *k)
{
	const esp_program *p = k->program;
	tap_ok(esp_program_states(p) == 5 && is_described(p, 0, "h", 3, 1) && is_described(p, 1, "n", 1, 0) &&
		   is_described(p, 2, "M", 9, 2) && is_described(p, 3, "unused", 6, 1) && is_described(p, 4, "X", 6, 2),
	       "a program names its states");
	tap_ok(esp_program_state(p, 2)->shape[0] == 3 && esp_program_state(p, 2)->shape[1] == 3,
	       "with their shapes");
	tap_ok(!esp_program_state(p, 5) && !esp_program_states(NULL) && !esp_program_state(NULL, 0),
	       "and no others");
}

static bool same_states(const struct kit *k)
{
	const esp_session *s = k->session;
	for (size_t i = 0; i < 3; i++)
		for (size_t t = 0; t < 3; t++)
			for (size_t n = 0; n < esp_forest_nodes(k->forest, t); n++) {
				const float *state = esp_session_state(s, i, t, n),
					    *output = esp_session_output(s, i, t, n);
				size_t bytes = esp_program_state(k->program, i)->elements * sizeof *state;
				if (!state || memcmp(state, output, bytes) != 0)
					return false;
			}
	return true;
}

static void check_rows(struct kit *k)
{
	const esp_session *s = k->session;
	esp_forest_add(k->forest, &one, NULL);
	esp_forest_add(k->forest, &tree, NULL);
	esp_forest_add(k->forest, &one, NULL);
	tap_ok(!esp_session_state(s, 0, 0, 0), "there are no states before a run");
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_OK && same_states(k),
	       "states have the bits of the outputs that copy them");
	const float *h = esp_session_state(s, 0, 2, 0), *count = esp_session_state(s, 1, 1, 2);
	tap_ok(h && h[0] == -4 && h[1] == -5 && h[2] == -6, "the row of a leaf is what it looked up");
	tap_ok(count && *count == 4, "that of the root counts the leaves");
	const float *u = esp_session_state(s, 3, 1, 4), *v = esp_session_state(s, 0, 1, 4);
	tap_ok(u && u[0] == v[0] && u[5] == 2 * v[2], "a state that nothing needs can be read, too");
	const float *x = esp_session_state(s, 4, 0, 0), *sum = esp_session_state(s, 4, 1, 2);
	static const float leaf[] = {-4, -5, -6, -40, -50, -60}, root[] = {11, 13, 15, 110, 130, 150};
	bool right = x && sum && memcmp(x, leaf, sizeof leaf) == 0 && memcmp(sum, root, sizeof root) == 0;
	tap_ok(right, "the rows of a matrix follow each other, whatever lies between them inside");
	right = memcmp(sum, esp_session_output(s, 4, 1, 2), 6 * sizeof *sum) == 0;
	tap_ok(right && sum == esp_session_state(s, 4, 1, 2), "and stay where they are");
	tap_ok(!esp_session_state(s, 5, 0, 0) && !esp_session_state(s, 0, 3, 0) &&
		   !esp_session_state(s, 0, 1, 6) && !esp_session_state(s, 0, 0, SIZE_MAX) &&
		   !esp_session_state(NULL, 0, 0, 0),
	       "no others are there");
	static const int32_t bad_words[] = {99};
	static const void *const bad_data[] = {bad_words};
	const esp_structure bad = {sizeof bad, 1, one_begin, NULL, 0, bad_data};
	esp_forest_add(k->forest, &bad, NULL);
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_ERROR_INPUT &&
		   !esp_session_state(s, 0, 0, 0),
	       "nor any after a run that failed");
}

static void check(const char *backend, const char *schedule)
{
	struct kit k = {0};
	esp_error *error = NULL;
	esp_program_options options = {.size = sizeof options, .backend = backend, .schedule = schedule};
	esp_context_options context = {.size = sizeof context, .cache = ESP_CACHE_OFF};
	printf("# %s, %s\n", backend, schedule ? "by parent" : "as chosen");
	esp_context_create(&context, &k.context, NULL);
	esp_model_parse(k.context, "states.ra", model, strlen(model), &k.model, &error);
	esp_weights_open(k.context, path_of("states.safetensors"), &k.weights, NULL);
	esp_program_create(k.model, k.weights, &options, &k.program, &error);
	esp_status s = esp_binding_create(k.program, k.weights, &k.binding, &error);
	if (s)
		printf("# %s", esp_error_text(error));
	if (!tap_ok(s == ESP_OK, "the program is compiled"))
		goto end;
	esp_forest_create(k.program, &k.forest, NULL);
	esp_session_create(k.binding, &k.session, NULL);
	check_interface(&k);
	check_rows(&k);
end:
	esp_error_free(error);
	free_kit(&k);
}

int main(void)
{
	make_folder();
	write_weights("states.safetensors", weights, 3);
	for (int i = 0; i < 2; i++) {
		check("interpreter", i ? by_parent : NULL);
		for (int b = 0; backend_at(b); b++)
			check(backend_at(b), i ? by_parent : NULL);
	}
	skip_backends();
	remove_folder((const char *const[]){"states.safetensors"}, 1);
	return tap_done();
}
