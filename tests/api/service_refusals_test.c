/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What services refuse, and what is left then: requests that are wrong, a system without descriptors,
 * contexts that are closed, forks, and allocations that fail. */
#include "tests/api/serving.h"
#include "tests/sanitizers.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Never called. */
static void ignore_end(void *user, esp_ticket *t)
{
	(void)user, (void)t;
}

static void test_refusals(void)
{
	struct place p;
	struct kit *k = &p.k;
	esp_error *error;
	esp_program *plain;
	esp_binding *binding;
	esp_service *s;
	esp_ticket *t;
	esp_forest *f;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .rows = 8});
	esp_program_options by_parent = {
	    .size = sizeof by_parent, .backend = "interpreter", .schedule = "layout h parent"};
	esp_program_create(k->model, k->weights, &by_parent, &plain, NULL);
	esp_binding_create(plain, k->weights, &binding, NULL);
	esp_status status = esp_service_create(binding, NULL, &s, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "not-continuous") && !s,
	       "a program for sessions alone");
	status = esp_service_create(
	    k->binding, &(esp_service_options){.size = sizeof(esp_service_options), .company = -1}, &s,
	    &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "a negative option");
	status = esp_service_create(
	    k->binding, &(esp_service_options){.size = sizeof(esp_service_options), .rows = (int64_t)1 << 40},
	    &s, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "more rows than have numbers");
	status = esp_service_create(NULL, NULL, &s, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "no binding");
	esp_forest_create(plain, &f, NULL);
	esp_forest_add(f, &pair, NULL);
	status = esp_service_submit(p.service, f, NULL, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument") && !t,
	       "a forest of another program");
	esp_submit_options both = {.size = sizeof both, .event = 1, .done = ignore_end};
	status = esp_service_submit(p.service, p.forest[0], &both, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "a callback and an event");
	esp_submit_options urgent = {.size = sizeof urgent, .priority = 1001};
	status = esp_service_submit(p.service, p.forest[0], &urgent, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "a priority that is none");
	esp_forest *large;
	esp_forest_create(k->program, &large, NULL);
	for (int i = 0; i < 20; i++)
		add_tree(large, 5);
	esp_service_submit(p.service, large, NULL, &t, NULL);
	status = esp_ticket_wait(t, INT64_MAX, &error);
	tap_ok(refused(status, ESP_ERROR_INPUT, error, "request-too-large"), "more rows than there are");
	esp_ticket_free(t);
	static const int32_t wrong[] = {0, 9, -1};
	const void *data[] = {wrong};
	esp_forest_clear(large);
	esp_structure bad = pair;
	bad.data = data;
	esp_forest_add(large, &bad, NULL);
	esp_service_submit(p.service, large, NULL, &t, NULL);
	status = esp_ticket_wait(t, INT64_MAX, &error);
	tap_ok(esp_error_get(error, 0)->node == 1 &&
		   refused(status, ESP_ERROR_INPUT, error, "token-out-of-range"),
	       "a word that is none: the node is named");
	esp_ticket_free(t);
	esp_ticket_free(NULL);
	esp_ticket_cancel(NULL);
	esp_service_free(NULL);
	tap_ok(!esp_service_next(NULL) && !esp_ticket_user(NULL) && !esp_ticket_output(NULL, 0, 0, 0) &&
		   esp_ticket_generation(NULL) == 0,
	       "no ticket has nothing");
	esp_forest_free(large);
	esp_forest_free(f);
	esp_binding_free(binding);
	esp_program_free(plain);
	close_place(&p);
}

/* A row of two instances; false with an error. */
static bool open_stack(struct kit *k, const esp_program_options *o, esp_error **error)
{
	static const char text[] = "model stack\nstructure none\ninput x[2, D]\nparam W[D, D]\n"
				   "output y[b, k] = sum(W[k, d] * x[b, d] for d)\n";
	memset(k, 0, sizeof *k);
	return !esp_context_create(NULL, &k->context, error) &&
	       !esp_model_parse(k->context, "stack.ra", text, strlen(text), &k->model, error) &&
	       !esp_weights_open(k->context, write_weights("rows.safetensors", tiny_weights + 1, 1), &k->weights, error) &&
	       !esp_program_create(k->model, k->weights, o, &k->program, error) &&
	       !esp_binding_create(k->program, k->weights, &k->binding, error) &&
	       !esp_forest_create(k->program, &k->forest, error);
}

static void test_stack(void)
{
	static const esp_program_options rows = {.size = sizeof rows, .backend = "interpreter", .schedule = "unstack all\n"};
	static const float x[] = {1, 2, 3, 4};
	static const void *const data[] = {x};
	static const int32_t begin[] = {0, 0};
	static const esp_structure row = {.size = sizeof row, .nodes = 1, .child_begin = begin, .data = data};
	struct kit k;
	esp_error *error = NULL;
	esp_service *s = NULL;
	esp_ticket *t = NULL;
	if (tap_ok(open_stack(&k, &rows, &error), "a program for sessions makes rows of instances")) {
		esp_status status = esp_service_create(k.binding, NULL, &s, &error);
		const char *hint = error ? esp_error_get(error, 0)->hint : NULL;
		bool helps = hint && strcmp(hint, "compile it with the option 'continuous'") == 0;
		tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "not-continuous") && helps && !s, "which services do not have");
	}
	free_kit(&k);
	bool served = open_stack(&k, &continuous, &error) && !esp_forest_add(k.forest, &row, &error) &&
		      !esp_service_create(k.binding, NULL, &s, &error) && !esp_service_submit(s, k.forest, NULL, &t, &error) &&
		      !esp_ticket_wait(t, INT64_MAX, &error);
	const float *y = served ? esp_ticket_output(t, 0, 0, 0) : NULL;
	if (!served)
		printf("# %s\n", esp_error_text(error));
	tap_ok(y && y[0] == 2 && y[1] == 1 && y[2] == 4 && y[3] == 3, "the same model with the option is served");
	esp_ticket_free(t);
	esp_service_free(s);
	free_kit(&k);
}

static void test_system(void)
{
	struct place p;
	esp_error *error;
	int descriptor;
	struct rlimit was, none;
	open_full(&p, NULL);
	getrlimit(RLIMIT_NOFILE, &was);
	none = was;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	esp_status s = esp_service_descriptor(p.service, &descriptor, &error);
	setrlimit(RLIMIT_NOFILE, &was);
	tap_ok(refused(s, ESP_ERROR_SYSTEM, error, "system-refused") && descriptor == -1,
	       "no descriptor is left");
	tap_ok(!esp_service_descriptor(p.service, &descriptor, NULL) && descriptor >= 0,
	       "later there is one");
	close_place(&p);
}

/* Counts calls; results of those that were computed before can be read. */
static void note_closed(void *user, esp_ticket *t)
{
	atomic_fetch_add((atomic_int *)user, esp_ticket_wait(t, 0, NULL) == ESP_ERROR_CLOSED);
	esp_ticket_free(t);
}

/* Each is called back, with results or not. */
static void test_close(void)
{
	enum { N = 50 };
	struct place p;
	atomic_int closed = 0;
	esp_error *error;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .company = 200000000});
	for (int i = 0; i < N; i++)
		submit(&p, i % FORESTS, (esp_submit_options){.done = note_closed, .user = &closed});
	esp_context_close(p.k.context, NULL);
	while (count(p.service).pending)
		sleep_briefly();
	esp_ticket *t = NULL;
	esp_status s = esp_service_submit(p.service, p.forest[0], NULL, &t, &error);
	tap_ok(refused(s, ESP_ERROR_CLOSED, error, "context-closed") && !t,
	       "a closed context takes no requests");
	for (int i = 0; i < 20000 && atomic_load(&closed) < N; i++)
		sleep_briefly();
	tap_is(atomic_load(&closed), N, "what was pending when it was closed is called back");
	close_place(&p);
}

static void test_fork(void)
{
	struct place p;
	int status;
	if (HEAP_NOT_FOR_FORKS) {
		tap_skip("the sanitizer's heap is not for forks", "a forked child, and its parent");
		return;
	}
	open_full(&p, NULL);
	esp_ticket *t = submit(&p, 0, (esp_submit_options){.event = 1}),
		   *waits = submit(&p, 1, (esp_submit_options){0});
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		bool right = esp_ticket_wait(waits, INT64_MAX, NULL) == ESP_ERROR_FORKED;
		esp_ticket_free(t);
		esp_ticket_free(waits);
		close_place(&p);
		_exit(right ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	tap_is(status, 0, "a forked child is refused, and frees what it inherited");
	tap_ok(!esp_ticket_wait(waits, INT64_MAX, NULL) && has_bits(&p, waits, 1) &&
		   !esp_ticket_wait(t, INT64_MAX, NULL),
	       "the parent goes on");
	esp_ticket_free(t);
	esp_ticket_free(waits);
	close_place(&p);
}

/* --- memory --- */

static esp_status serve_once(struct account *account, const esp_context_options *memory, esp_error **error)
{
	(void)account; /* what opens the place is refused as well */
	struct place p;
	esp_ticket *t = NULL;
	esp_status s = ESP_ERROR_MEMORY;
	char *text = NULL;
	if (open_place(&p, memory, &(esp_service_options){.size = sizeof(esp_service_options), .rows = 64},
		       error) &&
	    !esp_forest_create(p.k.program, &p.forest[0], error) &&
	    !esp_forest_add(p.forest[0], &pair, error) &&
	    !esp_service_submit(p.service, p.forest[0], NULL, &t, error) &&
	    !esp_ticket_wait(t, INT64_MAX, error))
		s = esp_service_metrics(p.service, NULL, &text, error);
	esp_text_free(text);
	esp_ticket_free(t);
	close_place(&p);
	return s;
}

int main(void)
{
	static const char *const names[] = {"w.safetensors", "v.safetensors", "rows.safetensors"};
	write_generations();
	test_refusals();
	test_stack();
	test_system();
	test_close();
	test_fork();
	test_refusals_of_memory(serve_once, 100);
	remove_folder(names, 3);
	return tap_done();
}
