/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* One team for all callers of a context: how many threads there are, what they compute, and how they end. */
#include "tests/api/support.h"
#include "tests/backends.h"
#include "tests/sanitizers.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Large enough for runs to use the team. */
enum { DIMENSION = 192, INNER = 256, NODES = 2 * INNER, CALLERS = 64, RUNS = 12 };

static const char model[] =
    EMBEDDED("pairs", "tree(1)")
    "    h = tanh(W @ children[0].h)\n"
    "output result = h at every node\n";

static struct {
	esp_context *context;
	esp_program *program;
	esp_binding *binding;
	esp_forest *forest;
	const char *weights;
} shared;

static const char *make_weights(void)
{
	static char path[128];
	return strcpy(path, write_wide_weights("pairs.safetensors", DIMENSION));
}

/* One batch of leaves and one of nodes with a leaf each. */
static void add_pairs(esp_forest *f)
{
	static const int32_t begin[] = {0, 0, 1}, children[] = {0};
	for (int i = 0; i < INNER; i++) {
		const int32_t words[] = {i % 4, -1};
		const void *const data[] = {words};
		const esp_structure s = {.size = sizeof s,
					 .nodes = 2,
					 .child_begin = begin,
					 .children = children,
					 .root = 1,
					 .data = data};
		if (esp_forest_add(f, &s, NULL))
			abort();
	}
}

static esp_status open_all(int threads, void (*log)(void *, const esp_diagnostic *))
{
	esp_context_options o = {.size = sizeof o, .threads = threads, .log = log};
	esp_model *m = NULL;
	esp_weights *w = NULL;
	esp_error *error = NULL;
	esp_status s;
	if ((s = esp_context_create(&o, &shared.context, &error)) ||
	    (s = esp_model_parse(shared.context, "pairs.ra", model, strlen(model), &m, &error)) ||
	    (s = esp_weights_open(shared.context, shared.weights, &w, &error)) ||
	    (s = esp_program_create(m, w, NULL, &shared.program, &error)) ||
	    (s = esp_binding_create(shared.program, w, &shared.binding, &error)) ||
	    (s = esp_forest_create(shared.program, &shared.forest, &error)))
		printf("# %s\n", esp_error_text(error));
	else
		add_pairs(shared.forest);
	esp_error_free(error);
	esp_model_free(m);
	esp_weights_free(w);
	return s;
}

static void close_all(void)
{
	esp_forest_free(shared.forest);
	esp_binding_free(shared.binding);
	esp_program_free(shared.program);
	esp_context_free(shared.context);
}

/* But for the thread that ThreadSanitizer keeps from the first other thread on. */
static int os_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n - RACES_SOUGHT;
}

/* A thread that was joined may still exist for a moment. */
static bool falls_to(int threads)
{
	for (int i = 0; i < 2000 && os_threads() > threads; i++)
		usleep(1000);
	return os_threads() <= threads;
}

/* --- many callers --- */

static atomic_int running;
static pthread_barrier_t all; /* of the callers: they begin together, and none ends before the others */

static float *copy_results(const esp_session *s, float *to)
{
	for (int i = 0; i < INNER; i++)
		memcpy(to + i * DIMENSION, esp_session_root(s, 0, i), DIMENSION * sizeof *to);
	return to;
}

static void *call(void *expected)
{
	static _Thread_local float results[INNER * DIMENSION];
	esp_session *s = NULL;
	intptr_t wrong = esp_session_create(shared.binding, &s, NULL) != ESP_OK;
	pthread_barrier_wait(&all);
	for (int i = 0; !wrong && i < RUNS; i++)
		wrong = esp_session_run(s, shared.forest, NULL) != ESP_OK ||
			memcmp(copy_results(s, results), expected, sizeof results) != 0;
	esp_session_free(s);
	pthread_barrier_wait(&all);
	atomic_fetch_sub(&running, 1);
	return (void *)wrong;
}

static void test_callers(void)
{
	static float expected[INNER * DIMENSION];
	pthread_t threads[CALLERS];
	int most = 0, wrong = 0;
	esp_session *s;
	esp_session_create(shared.binding, &s, NULL);
	tap_is(esp_session_run(s, shared.forest, NULL), ESP_OK, "a large run succeeds");
	copy_results(s, expected);
	for (int i = 0; i < 50 && os_threads() < 2; i++)
		esp_session_run(s, shared.forest, NULL);
	tap_is(os_threads(), 2, "a caller that has much to do is given a team");
	atomic_init(&running, CALLERS);
	pthread_barrier_init(&all, NULL, CALLERS);
	for (int i = 0; i < CALLERS; i++)
		if (pthread_create(&threads[i], NULL, call, expected))
			abort();
	while (atomic_load(&running)) {
		int n = os_threads();
		most = n > most ? n : most;
		usleep(200);
	}
	for (int i = 0; i < CALLERS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		wrong += result != NULL;
	}
	printf("# at most %d threads\n", most);
	tap_is(wrong, 0, "64 callers have the results of one");
	tap_ok(most > CALLERS && most <= CALLERS + 2, "with a budget of 2 there are at most 66 threads");
	esp_session_free(s);
}

/* --- another process, and the end --- */

static int child(esp_session *s)
{
	if (esp_session_run(s, shared.forest, NULL) != ESP_ERROR_FORKED)
		return 1;
	esp_session_free(s);
	close_all();
	return os_threads() <= 1 ? 0 : 2;
}

static void test_fork(void)
{
	esp_session *s;
	int status;
	esp_session_create(shared.binding, &s, NULL);
	for (int i = 0; i < 20; i++)
		esp_session_run(s, shared.forest, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(child(s));
	}
	waitpid(pid, &status, 0);
	tap_is(status, 0, "a child is refused and lets go of a team that it does not have");
	tap_is(esp_session_run(s, shared.forest, NULL), ESP_OK, "the parent's team goes on");
	esp_session_free(s);
}

static void test_close(void)
{
	tap_is(esp_context_close(shared.context, NULL), ESP_OK, "the context is closed");
	tap_ok(falls_to(1), "which ends the team");
	close_all();
}

static void test_alone(void)
{
	esp_session *s;
	open_all(1, NULL);
	esp_session_create(shared.binding, &s, NULL);
	for (int i = 0; i < 50; i++)
		esp_session_run(s, shared.forest, NULL);
	tap_is(os_threads(), 1, "with a budget of one there is no team");
	esp_session_free(s);
	close_all();
}

/* --- threads that cannot be made --- */

static int notices;

static void listen(void *user, const esp_diagnostic *d)
{
	(void)user;
	notices += strcmp(d->id, "team-unusable") == 0;
}

/* Keeps the program, in a process of its own. */
static void compile_before(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		open_all(2, NULL);
		close_all();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* In a process without memory for the stack of another thread, nor a stack left by threads that compiled: the
 * program comes from the cache. */
static int run_short(void)
{
	struct rlimit space;
	long pages = 0;
	esp_session *s;
	if (open_all(2, listen) || esp_session_create(shared.binding, &s, NULL))
		return 1;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%ld", &pages) != 1)
		return 2;
	fclose(f);
	getrlimit(RLIMIT_AS, &space);
	space.rlim_cur = pages * sysconf(_SC_PAGESIZE) + (6 << 20);
	if (setrlimit(RLIMIT_AS, &space) != 0)
		return 3;
	for (int i = 0; i < 50; i++)
		if (esp_session_run(s, shared.forest, NULL))
			return 4;
	return notices == 1 && os_threads() == 1 ? 0 : 5;
}

/* Compiles, so that the program is found in the cache: threads that compile leave stacks behind, in which
 * those of a team fit. */
static int prepare(void)
{
	return open_all(1, NULL) || esp_program_prepare(shared.program, NULL);
}

static void test_short(void)
{
	int status;
	if (SHADOWED) {
		tap_skip("a sanitizer needs the address space", "threads that cannot be made are said once");
		return;
	}
	setenv("XDG_CACHE_HOME", folder, 1);
	compile_before();
	pid_t pid = fork();
	if (pid == 0)
		_exit(prepare());
	waitpid(pid, &status, 0);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(run_short());
	}
	waitpid(pid, &status, 0);
	tap_is(status, 0, "threads that cannot be made are said once, and callers compute alone");
}

int main(void)
{
	make_folder();
	shared.weights = make_weights();
	if (need_backend("teams"))
		test_short();
	if (backend_at(0) && tap_ok(!open_all(2, NULL), "a program with a team")) {
		test_callers();
		test_fork();
		test_close();
		test_alone();
	}
	remove_folder((const char *const[]){"pairs.safetensors"}, 1);
	return tap_done();
}
