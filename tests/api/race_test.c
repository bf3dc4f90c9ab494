/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Code that many threads need at once is made once. */
#include "tests/api/support.h"
#include "tests/backends.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 64 };

static struct {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_program *program;
	pthread_barrier_t start;
} shared;

static atomic_int *compilations(void)
{
	char path[4096];
	setenv("COUNTED_BACKEND", usual_backend(), 1);
	snprintf(path, sizeof path, "%s/.libs/espalier-counting.so", getenv("builddir"));
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return handle ? dlsym(handle, "compilations") : NULL;
}

/* A request from nothing but the program. */
static bool answer(void)
{
	esp_binding *b = NULL;
	esp_session *s = NULL;
	esp_forest *f = NULL;
	bool right = esp_binding_create(shared.program, shared.weights, &b, NULL) == ESP_OK &&
		     esp_session_create(b, &s, NULL) == ESP_OK &&
		     esp_forest_create(shared.program, &f, NULL) == ESP_OK &&
		     esp_forest_add(f, &pair, NULL) == ESP_OK && esp_session_run(s, f, NULL) == ESP_OK &&
		     *esp_session_root(s, 1, 0) == 10;
	esp_forest_free(f);
	esp_session_free(s);
	esp_binding_free(b);
	return right;
}

static void *race(void *prepare)
{
	pthread_barrier_wait(&shared.start);
	if (prepare && esp_program_prepare(shared.program, NULL))
		return &shared;
	return answer() ? NULL : &shared;
}

static int run_race(void)
{
	static const esp_program_options counting = {.size = sizeof counting, .backend = "counting"};
	pthread_t threads[THREADS];
	int wrong = 0;
	esp_program_create(shared.model, shared.weights, &counting, &shared.program, NULL);
	pthread_barrier_init(&shared.start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, race, i % 2 ? &shared : NULL))
			abort();
	for (int i = 0; i < THREADS; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		wrong += failed != NULL;
	}
	pthread_barrier_destroy(&shared.start);
	esp_program_free(shared.program);
	return wrong;
}

int main(void)
{
	atomic_int *count = compilations();
	if (!need_backend("races") || !tap_ok(count != NULL, "a back end that counts"))
		return tap_done();
	const esp_context_options no_cache = {.size = sizeof no_cache, .cache = ESP_CACHE_OFF};
	make_folder();
	esp_context_create(&no_cache, &shared.context, NULL);
	esp_model_parse(shared.context, "tiny.ra", tiny_model, strlen(tiny_model), &shared.model, NULL);
	esp_weights_open(shared.context, write_weights("w.safetensors", tiny_weights, 2), &shared.weights,
			 NULL);
	tap_is(run_race(), 0, "64 threads that need one program at once are answered");
	tap_is(atomic_load(count), 1, "it was compiled once");
	tap_is(run_race(), 0, "so are those of another program");
	tap_is(atomic_load(count), 2, "which was compiled once as well");
	esp_model_free(shared.model);
	esp_weights_free(shared.weights);
	esp_context_free(shared.context);
	remove_folder((const char *const[]){"w.safetensors"}, 1);
	return tap_done();
}
