/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bindings whose runs read the rows of tables that they select. */
#include "tests/api/support.h"

#include <pthread.h>

/* Rows of the embedding: several are read at once, but far from all. */
enum { WORDS = 6000, ROW = 2, SENTENCES = 300 };

static float embedding[WORDS * ROW];
static const float swap[] = {0, 1, 1, 0};

/* The embedding is also multiplied with. */
static const char tied_model[] =
    EMBEDDED("tied", "tree(left, right)")
    "    h = W @ left.h + right.h\n"
    "output scores = E @ h at root\n";

struct opened {
	esp_context *context;
	esp_weights *weights;
	esp_program *program;
	esp_binding *binding;
};

static const char *write_embedding(const char *name, float scale)
{
	for (int i = 0; i < WORDS * ROW; i++)
		embedding[i] = scale * (i % 1009);
	const struct tensor both[] = {{"E", WORDS, ROW, embedding}, {"W", ROW, ROW, swap}};
	return write_weights(name, both, 2);
}

/* Without tables, which are computed of all rows at binding. */
static const esp_program_options looked_up = {.size = sizeof looked_up, .backend = "interpreter", .rules = "-tables"};

static struct opened open_model(const char *text, const char *path, const void *bytes, size_t n, bool lazy)
{
	struct opened o = {0};
	esp_model *m;
	esp_error *error;
	if (esp_context_create(NULL, &o.context, &error) ||
	    esp_model_parse(o.context, "lazy.ra", text, strlen(text), &m, &error) ||
	    (path ? esp_weights_open(o.context, path, &o.weights, &error)
		  : esp_weights_from_memory(o.context, bytes, n, &o.weights, &error)) ||
	    esp_program_create(m, o.weights, &looked_up, &o.program, &error) ||
	    (lazy ? esp_binding_open : esp_binding_create)(o.program, o.weights, &o.binding, &error)) {
		printf("# %s\n", esp_error_text(error));
		abort();
	}
	esp_model_free(m);
	return o;
}

static void close_model(struct opened *o)
{
	esp_binding_free(o->binding);
	esp_weights_free(o->weights);
	esp_program_free(o->program);
	esp_context_free(o->context);
}

/* Runs a pair of words; the first output goes to `to`. */
static esp_status run_pair(const struct opened *o, int left, int right, float *to, size_t n, esp_error **error)
{
	const int32_t words[] = {left, right, -1};
	const void *const data[] = {words};
	const esp_structure s = {sizeof s, 3, first_pair, pair_children, 2, data};
	esp_session *session;
	esp_forest *forest;
	if (esp_session_create(o->binding, &session, NULL) || esp_forest_create(o->program, &forest, NULL) ||
	    esp_forest_add(forest, &s, NULL))
		abort();
	esp_status status = esp_session_run(session, forest, error);
	if (!status)
		memcpy(to, esp_session_root(session, 0, 0), n * sizeof *to);
	esp_session_free(session);
	esp_forest_free(forest);
	return status;
}

static int words_of(int i)
{
	return (int)(i * 7919L % WORDS);
}

static void test_results(const char *path)
{
	struct opened lazy = open_model(tiny_model, path, NULL, 0, true);
	struct opened eager = open_model(tiny_model, path, NULL, 0, false);
	bool same = true;
	for (int i = 0; i < SENTENCES; i++) {
		float a[ROW], b[ROW];
		same &= !run_pair(&lazy, words_of(i), words_of(i + 5), a, ROW, NULL) &&
			!run_pair(&eager, words_of(i), words_of(i + 5), b, ROW, NULL) && memcmp(a, b, sizeof a) == 0;
	}
	tap_ok(same, "results are those of a binding that has all rows");
	close_model(&lazy);
	close_model(&eager);
}

/* Bytes that change, which callers must not do, tell when they were read. */
static void test_reading(const char *path)
{
	FILE *f = fopen(path, "rb");
	static char bytes[1 << 18];
	size_t n = fread(bytes, 1, sizeof bytes, f), data = n - (WORDS * ROW + ROW * ROW) * sizeof(float);
	float first[ROW], again[ROW], other[ROW], tied[WORDS], score;
	fclose(f);
	struct opened lazy = open_model(tiny_model, NULL, bytes, n, true),
		      used = open_model(tied_model, NULL, bytes, n, true);
	esp_weights_free(lazy.weights);
	lazy.weights = NULL;
	run_pair(&used, 1, 2, tied, WORDS, NULL);
	score = tied[WORDS - 1];
	run_pair(&lazy, 1, 2, first, ROW, NULL);
	memset(bytes + data, 0, WORDS * ROW * sizeof(float));
	tap_ok(!run_pair(&lazy, 1, 2, again, ROW, NULL) && memcmp(first, again, sizeof first) == 0 && first[0] != 0,
	       "a row is read once");
	tap_ok(!run_pair(&lazy, WORDS - 1, WORDS - 2, other, ROW, NULL) && other[0] == 0 && other[1] == 0,
	       "when a run selects it, of weights that the caller has freed");
	tap_ok(!run_pair(&used, 1, 2, tied, WORDS, NULL) && tied[WORDS - 1] == score && score != 0,
	       "a table that is also multiplied with is read at once");
	close_model(&lazy);
	close_model(&used);
}

static void test_change(const char *path)
{
	struct opened lazy = open_model(tiny_model, path, NULL, 0, true);
	float before[ROW], after[ROW];
	esp_error *error = NULL;
	run_pair(&lazy, 1, 2, before, ROW, NULL);
	if (truncate(path, 1000))
		abort();
	tap_ok(run_pair(&lazy, WORDS - 1, 1, after, ROW, &error) == ESP_ERROR_INPUT && error_is(error, "cannot-read"),
	       "a file that became shorter is reported, as it is read and not mapped");
	tap_ok(!run_pair(&lazy, 1, 2, after, ROW, NULL) && memcmp(before, after, sizeof before) == 0,
	       "rows that are there stay");
	esp_weights *other;
	esp_weights_open(lazy.context, write_embedding("other.safetensors", 2), &other, NULL);
	tap_ok(!esp_binding_swap(lazy.binding, other, NULL) && !run_pair(&lazy, 1, 2, after, ROW, NULL) &&
		   after[0] == 2 * before[0] && after[1] == 2 * before[1],
	       "other weights are read anew");
	esp_weights_free(other);
	close_model(&lazy);
}

struct worker {
	const struct opened *lazy;
	const float (*wanted)[ROW];
	long wrong;
};

static void *run_all(void *user)
{
	struct worker *w = user;
	for (int i = 0; i < SENTENCES; i++) {
		float a[ROW];
		w->wrong += run_pair(w->lazy, words_of(i), words_of(i + 5), a, ROW, NULL) ||
			    memcmp(a, w->wanted[i], sizeof a) != 0;
	}
	return NULL;
}

static void test_threads(const char *path)
{
	static float wanted[SENTENCES][ROW];
	struct opened lazy = open_model(tiny_model, path, NULL, 0, true);
	struct opened eager = open_model(tiny_model, path, NULL, 0, false);
	struct worker workers[4];
	pthread_t threads[4];
	long wrong = 0;
	for (int i = 0; i < SENTENCES; i++)
		run_pair(&eager, words_of(i), words_of(i + 5), wanted[i], ROW, NULL);
	for (int i = 0; i < 4; i++) {
		workers[i] = (struct worker){&lazy, (const float(*)[ROW])wanted, 0};
		pthread_create(&threads[i], NULL, run_all, &workers[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		wrong += workers[i].wrong;
	}
	tap_is(wrong, 0, "sessions that select the same rows at the same time all see them");
	close_model(&lazy);
	close_model(&eager);
}

int main(void)
{
	static const char *const names[] = {"embedding.safetensors", "other.safetensors"};
	make_folder();
	const char *path = strdup(write_embedding("embedding.safetensors", 1));
	test_results(path);
	test_threads(path);
	test_reading(path);
	test_change(path);
	free((char *)path);
	remove_folder(names, 2);
	return tap_done();
}
