/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights are exchanged while sessions run: every result is that of one generation. Counts grow with
 * ESPALIER_STRESS, as in ESPALIER_STRESS=16x100000 (threads x runs each). */
#include "tests/api/support.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DIMENSION = 48, LEAVES = 5 };

/* All weights of generation g are g % 8 + 1, so that a result tells which weights made it, and whether all
 * were of one generation.  W + W is computed anew at each exchange. */
static const char model[] =
    EMBEDDED("sums", "tree(*)")
    "    h = (W + W) @ sum(k.h for k in children) / 2\n"
    "output result = h at root\n";

enum { SETS = 8 };

static struct {
	esp_context *context;
	esp_weights *weights[SETS];
	esp_program *program;
	esp_binding *binding;
	atomic_int running;
	long runs;
} shared;

static const char *write_set(int set)
{
	static float e[3 * DIMENSION], w[DIMENSION * DIMENSION];
	char name[20];
	for (int i = 0; i < 3 * DIMENSION; i++)
		e[i] = set + 1;
	for (int i = 0; i < DIMENSION * DIMENSION; i++)
		w[i] = set + 1;
	snprintf(name, sizeof name, "w%d.safetensors", set);
	return write_weights(
	    name, (const struct tensor[]){{"E", 3, DIMENSION, e}, {"W", DIMENSION, DIMENSION, w}}, 2);
}

static void open_all(void)
{
	esp_model *m;
	esp_error *error;
	if (esp_context_create(NULL, &shared.context, &error) ||
	    esp_model_parse(shared.context, "sums.ra", model, strlen(model), &m, &error))
		abort();
	for (int i = 0; i < SETS; i++)
		if (esp_weights_open(shared.context, write_set(i), &shared.weights[i], &error))
			abort();
	if (esp_program_create(m, shared.weights[0], NULL, &shared.program, &error) ||
	    esp_binding_create(shared.program, shared.weights[0], &shared.binding, &error)) {
		printf("# %s\n", esp_error_text(error));
		abort();
	}
	esp_model_free(m);
}

static const int32_t begin[] = {0, 0, 0, 0, 0, 0, LEAVES}, children[] = {0, 1, 2, 3, 4},
		     words[] = {0, 1, 2, 1, 0, -1};
static const void *const data[] = {words};
static const esp_structure star = {sizeof star, LEAVES + 1, begin, children, LEAVES, data};

/* Whether the last run used the weights of one generation, and those of the one that it says. */
static bool is_whole(const esp_session *s)
{
	const float *row = esp_session_root(s, 0, 0);
	float v = (esp_session_generation(s) - 1) % SETS + 1;
	for (int i = 0; i < DIMENSION; i++)
		if (row[i] != DIMENSION * LEAVES * v * v)
			return false;
	return true;
}

struct worker {
	long torn, failed, backwards;
};

static void *run_many(void *user)
{
	struct worker *w = user;
	esp_session *s;
	esp_forest *f;
	uint64_t last = 0;
	if (esp_session_create(shared.binding, &s, NULL) || esp_forest_create(shared.program, &f, NULL) ||
	    esp_forest_add(f, &star, NULL))
		abort();
	for (long i = 0; i < shared.runs; i++) {
		if (esp_session_run(s, f, NULL))
			w->failed++;
		else
			w->torn += !is_whole(s);
		w->backwards += esp_session_generation(s) < last;
		last = esp_session_generation(s);
	}
	esp_session_free(s);
	esp_forest_free(f);
	atomic_fetch_sub(&shared.running, 1);
	return NULL;
}

static void read_counts(int *threads, long *runs)
{
	const char *stress = getenv("ESPALIER_STRESS");
	if (!stress || sscanf(stress, "%dx%ld", threads, runs) != 2 || *threads < 1 || *threads > 256)
		*threads = 4, *runs = 500;
}

static void test_load(void)
{
	struct worker workers[256] = {0}, sum = {0};
	pthread_t threads[256];
	int n;
	long swaps = 0, failed = 0;
	read_counts(&n, &shared.runs);
	atomic_init(&shared.running, n);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run_many, &workers[i]);
	while (atomic_load(&shared.running) || swaps < 3 * SETS) {
		swaps++;
		failed += esp_binding_swap(shared.binding, shared.weights[swaps % SETS], NULL) != ESP_OK;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		sum.torn += workers[i].torn;
		sum.failed += workers[i].failed;
		sum.backwards += workers[i].backwards;
	}
	printf("# %d threads, %ld runs each, %ld swaps meanwhile\n", n, shared.runs, swaps);
	tap_is(sum.failed, 0, "runs succeed under exchange");
	tap_is(sum.torn, 0, "no result is of two generations");
	tap_is(sum.backwards, 0, "and no thread goes back to older weights");
	tap_is(failed, 0, "exchanges succeed under load");
	tap_is(esp_binding_generation(shared.binding), swaps + 1, "generations are counted");
}

static void test_memory(void)
{
	size_t before, after;
	esp_binding_swap(shared.binding, shared.weights[0], NULL);
	before = esp_context_memory(shared.context, NULL);
	for (int i = 0; i < 20; i++)
		esp_binding_swap(shared.binding, shared.weights[i % SETS], NULL);
	after = esp_context_memory(shared.context, NULL);
	tap_is(after, before, "weights that nobody uses are freed");
}

/* Another size, and a file that is no weights at all any more. */
static void test_refusals(void)
{
	static const float few[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct tensor small[] = {{"E", 4, 2, few}, {"W", 2, 2, few}};
	esp_weights *w;
	esp_error *error;
	uint64_t generation = esp_binding_generation(shared.binding);
	esp_weights_open(shared.context, write_weights("small.safetensors", small, 2), &w, NULL);
	tap_ok(esp_binding_swap(shared.binding, w, &error) == ESP_ERROR_INPUT &&
		   error_is(error, "size-differs"),
	       "weights of another size are refused");
	tap_ok(esp_binding_swap(NULL, w, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument") &&
		   esp_binding_swap(shared.binding, NULL, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument"),
	       "so is NULL");
	tap_ok(esp_binding_generation(shared.binding) == generation && esp_binding_generation(NULL) == 0,
	       "the old ones stay");
	esp_weights_free(w);
}

static void close_all(void)
{
	static const char *const names[] = {"w0.safetensors", "w1.safetensors", "w2.safetensors",
					    "w3.safetensors", "w4.safetensors", "w5.safetensors",
					    "w6.safetensors", "w7.safetensors", "small.safetensors"};
	for (int i = 0; i < SETS; i++)
		esp_weights_free(shared.weights[i]);
	esp_binding_free(shared.binding);
	esp_program_free(shared.program);
	esp_context_free(shared.context);
	remove_folder(names, 9);
}

int main(void)
{
	make_folder();
	open_all();
	test_load();
	test_memory();
	test_refusals();
	close_all();
	return tap_done();
}
