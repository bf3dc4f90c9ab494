/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are compiled when a run needs them: which, how often, and what happens when they cannot be. */
#include "tests/api/support.h"
#include "tests/backends.h"

#include <pthread.h>

enum { THREADS = 16, D = 64, WIDE = 32 };

static const char wide_model[] =
    EMBEDDED("wide", "tree(left, right)")
    "    h = tanh((W @ tanh(W)) @ left.h + W @ right.h)\n"
    "output y = h at root\n";

static int refusing;

static int cancel(void *user)
{
	(void)user;
	return __atomic_load_n(&refusing, __ATOMIC_RELAXED);
}

/* What all tests run; `cached`: whether programs are kept. */
struct wide {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_program *program;
	esp_binding *binding;
};

static const char *weights_path;

static bool open_wide(struct wide *w, bool cached)
{
	const esp_context_options o = {.size = sizeof o,
				       .cache = cached ? ESP_CACHE_ON : ESP_CACHE_OFF,
				       .cache_dir = folder,
				       .threads = 2,
				       .cancel = cancel,
				       .machine = ESP_MACHINE_DEFAULTS};
	memset(w, 0, sizeof *w);
	return !esp_context_create(&o, &w->context, NULL) &&
	       !esp_model_parse(w->context, "wide.ra", wide_model, strlen(wide_model), &w->model, NULL) &&
	       !esp_weights_open(w->context, weights_path, &w->weights, NULL) &&
	       !esp_program_create(w->model, w->weights, NULL, &w->program, NULL) &&
	       !esp_binding_create(w->program, w->weights, &w->binding, NULL);
}

static void close_wide(struct wide *w)
{
	esp_binding_free(w->binding);
	esp_program_free(w->program);
	esp_weights_free(w->weights);
	esp_model_free(w->model);
	esp_context_free(w->context);
}

/* Runs so many pairs in one minibatch; `first` gets the result of the first one. */
static esp_status run_pairs(const struct wide *w, int pairs, float *first, esp_error **error)
{
	esp_forest *f = NULL;
	esp_session *s = NULL;
	esp_status status = esp_forest_create(w->program, &f, NULL);
	for (int i = 0; i < pairs && !status; i++)
		status = esp_forest_add(f, &pair, NULL);
	status = status ? status : esp_session_create(w->binding, &s, NULL);
	status = status ? status : esp_session_run(s, f, error);
	if (!status)
		memcpy(first, esp_session_root(s, 0, 0), D * sizeof *first);
	esp_session_free(s);
	esp_forest_free(f);
	return status;
}

/* How many lines of the program's times tell of a kernel, and whether all are different. */
static int count_kernels(const struct wide *w, bool *once)
{
	char *text, *at;
	int n = 0;
	*once = true;
	if (esp_program_times(w->program, &text, NULL))
		return -1;
	for (at = text; (at = strstr(at, "kernel ")); n++) {
		char line[100] = "";
		snprintf(line, sizeof line, "%.*s\n", (int)strcspn(at, "\n"), at);
		at += strlen(line) - 1;
		*once &= !strstr(at, line);
	}
	esp_text_free(text);
	return n;
}

/* --- what is compiled --- */

static void test_need(void)
{
	struct wide w;
	float one[D], again[D], many[D], whole[D];
	bool once;
	tap_ok(open_wide(&w, true), "a program is bound");
	int none = count_kernels(&w, &once);
	tap_ok(!run_pairs(&w, 1, one, NULL), "a tree runs");
	int few = count_kernels(&w, &once);
	tap_ok(few > none && once, "which has %d kernels and variants compiled", few);
	tap_ok(!run_pairs(&w, 1, again, NULL) && count_kernels(&w, &once) == few, "the same tree needs no others");
	tap_ok(!run_pairs(&w, WIDE, many, NULL), "%d trees run", WIDE);
	int more = count_kernels(&w, &once);
	tap_ok(more > few && once, "they need more: %d", more);
	tap_ok(!esp_program_prepare(w.program, NULL) && count_kernels(&w, &once) >= more && once,
	       "preparing compiles the rest, and nothing twice");
	tap_ok(!run_pairs(&w, 1, whole, NULL) && !memcmp(one, again, sizeof one) && !memcmp(one, many, sizeof one) &&
		   !memcmp(one, whole, sizeof one),
	       "results have the same bits all the time");
	close_wide(&w);
	tap_ok(open_wide(&w, true) && !run_pairs(&w, WIDE, again, NULL) && !memcmp(one, again, sizeof one) &&
		   count_kernels(&w, &once) == 0,
	       "and those of the kept program, of which nothing is compiled");
	close_wide(&w);
}

static void remove_programs(void)
{
	char command[200];
	snprintf(command, sizeof command, "rm -rf '%s/images'", folder);
	if (system(command))
		abort();
}

static void test_keeping(void)
{
	struct wide w;
	float one[D], again[D];
	bool once;
	remove_programs();
	bool ok = open_wide(&w, true) && !run_pairs(&w, 1, one, NULL);
	close_wide(&w);
	tap_ok(ok && open_wide(&w, true) && !run_pairs(&w, WIDE, again, NULL) && !memcmp(one, again, sizeof one) &&
		   count_kernels(&w, &once) == 0,
	       "a program of which a part was needed is kept whole");
	close_wide(&w);
}

static void test_saving(void)
{
	struct wide w;
	float one[D], again[D];
	esp_save_options o = {.size = sizeof o};
	bool ok = open_wide(&w, false) && !run_pairs(&w, 1, one, NULL);
	o.weights = w.weights;
	ok = ok && !esp_program_save(w.program, path_of("saved"), &o, NULL);
	tap_ok(ok && !run_pairs(&w, WIDE, again, NULL) && !memcmp(one, again, sizeof one),
	       "a program of which a part was needed can be saved with weights, and run on");
	close_wide(&w);
}

/* --- what goes wrong --- */

static void test_refusal(void)
{
	struct wide w;
	esp_error *error = NULL;
	float one[D];
	bool opened = open_wide(&w, false);
	__atomic_store_n(&refusing, 1, __ATOMIC_RELAXED);
	esp_status status = run_pairs(&w, 1, one, &error);
	tap_ok(opened && status == ESP_ERROR_BACKEND && error_is(error, "compile-cancelled"),
	       "a run whose kernels are not wanted any more fails");
	__atomic_store_n(&refusing, 0, __ATOMIC_RELAXED);
	tap_ok(!run_pairs(&w, 1, one, NULL), "and the next one compiles them");
	close_wide(&w);
}

/* --- threads --- */

static struct wide shared;
static pthread_barrier_t start;

static void *race(void *result)
{
	pthread_barrier_wait(&start);
	return run_pairs(&shared, 1 + (int)((float *)result)[0] % 3, result, NULL) ? result : NULL;
}

static void test_race(void)
{
	static float result[THREADS][D];
	pthread_t thread[THREADS];
	bool ok = open_wide(&shared, false), same = true, once;
	void *failed;
	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		result[i][0] = (float)i;
		if (pthread_create(&thread[i], NULL, race, result[i]))
			abort();
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &failed);
		ok &= !failed;
		same &= !memcmp(result[0], result[i], sizeof result[i]);
	}
	tap_ok(ok && same, "%d threads run at once before anything is compiled", THREADS);
	tap_ok(count_kernels(&shared, &once) > 0 && once, "what they need is compiled once");
	pthread_barrier_destroy(&start);
	close_wide(&shared);
}

int main(void)
{
	if (!need_backend("kernels that are compiled when they are needed"))
		return tap_done();
	if (strcmp(usual_backend(), "llvm") != 0) {
		tap_skip("the back end compiles all at once", "kernels that are compiled when they are needed");
		return tap_done();
	}
	make_folder();
	weights_path = write_wide_weights("w.safetensors", D);
	test_need();
	test_keeping();
	test_saving();
	test_refusal();
	test_race();
	remove_programs();
	remove_folder((const char *const[]){"w.safetensors", "saved"}, 2);
	return tap_done();
}
