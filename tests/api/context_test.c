/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a context is asked to guarantee: accounts, a cap, an end, and a past in another process. */
#include "tests/api/support.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *weights;

/* --- options --- */

static void test_sizes(void)
{
	struct {
		esp_context_options known;
		long unknown;
	} later = {.known = {.size = sizeof later}};
	esp_context_options none = {0}, early = {.size = offsetof(esp_context_options, cache_limit)};
	esp_context *c;
	esp_error *error;
	tap_ok(esp_context_create(&none, &c, &error) == ESP_ERROR_ARGUMENT && !c &&
		   error_is(error, "bad-argument"),
	       "options without their size are refused");
	early.cache_limit = 1; /* not looked at */
	tap_ok(esp_context_create(&early, &c, &error) == ESP_OK && c,
	       "options of an older version are taken");
	esp_context_free(c);
	tap_ok(esp_context_create(&later.known, &c, &error) == ESP_OK && c,
	       "options of a newer version are taken while they ask for nothing new");
	esp_context_free(c);
	later.unknown = 1;
	tap_ok(esp_context_create(&later.known, &c, &error) == ESP_ERROR_ARGUMENT && !c &&
		   error_is(error, "bad-argument"),
	       "and refused when they do");
}

static void test_values(void)
{
	const esp_context_options wrong[] = {
	    {.size = sizeof *wrong, .threads = -1},
	    {.size = sizeof *wrong, .threads = ESP_THREADS_MAX + 1},
	    {.size = sizeof *wrong, .cache = 7},
	    {.size = sizeof *wrong, .pin = 2},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		esp_context *c;
		esp_error *error;
		tap_ok(esp_context_create(&wrong[i], &c, &error) == ESP_ERROR_ARGUMENT &&
			   error_is(error, "bad-argument"),
		       "option %zu out of range is refused", i);
	}
}

/* Those of no options depend on the machine. */
static void test_threads(void)
{
	esp_context_options o = {.size = sizeof o, .threads = 3};
	esp_context *told = NULL, *usual = NULL;
	esp_context_create(&o, &told, NULL);
	esp_context_create(NULL, &usual, NULL);
	tap_is(esp_context_threads(told), 3, "a context has the threads that it is told");
	cpu_set_t set;
	tap_ok(sched_getaffinity(0, sizeof set, &set) == 0 && esp_context_threads(usual) >= 1 &&
		   esp_context_threads(usual) <= CPU_COUNT(&set),
	       "or no more than there are processors");
	tap_is(esp_context_threads(NULL), 0, "no context has none");
	esp_context_free(told);
	esp_context_free(usual);
}

/* --- memory --- */

static void test_accounts(void)
{
	struct account a = {.left = -1};
	esp_context_options o = {.size = sizeof o, .resize = account_resize, .user = &a};
	struct kit k;
	size_t peak, used;
	make_kit(&k, &o, weights, NULL);
	esp_forest_add(k.forest, &pair, NULL);
	esp_session_run(k.session, k.forest, NULL);
	used = esp_context_memory(k.context, &peak);
	tap_ok(used > 1000 && used < (size_t)a.bytes && peak >= used, "a context counts what is in use");
	esp_context *c = k.context;
	k.context = NULL;
	free_kit(&k);
	tap_ok(esp_context_memory(c, &peak) == 0 && peak >= used, "and nothing is when all was freed");
	esp_context_free(c);
	tap_ok(a.blocks == 0 && a.bytes == 0 && !a.wrong, "all memory went back through the hook");
	tap_ok(esp_context_memory(NULL, &peak) == 0 && peak == 0, "nothing uses nothing");
}

/* Everything up to a run under caps that grow until it succeeds. */
static void test_cap(void)
{
	bool right = true, blamed = true, held = true;
	esp_status status = ESP_ERROR_MEMORY;
	for (size_t cap = 100; status; cap += cap / 4) {
		esp_context_options o = {.size = sizeof o, .memory_cap = cap};
		esp_error *error = NULL;
		struct kit k;
		size_t peak;
		status = make_kit(&k, &o, weights, &error);
		if (!status)
			status = esp_forest_add(k.forest, &pair, &error);
		if (!status)
			status = esp_session_run(k.session, k.forest, &error);
		right &= status == ESP_OK || status == ESP_ERROR_MEMORY;
		blamed &= !status || (esp_error_count(error) == 2 &&
				      strcmp(esp_error_get(error, 1)->id, "memory-cap") == 0);
		esp_context_memory(k.context, &peak);
		held &= peak <= cap;
		esp_error_free(error);
		free_kit(&k);
	}
	tap_ok(right, "under a cap calls run out of memory and nothing else");
	tap_ok(blamed, "and say that it was the cap");
	tap_ok(held, "which is never exceeded");
}

/* --- the end --- */

static void test_closed(void)
{
	struct kit k;
	esp_error *error;
	esp_model *m;
	make_kit(&k, NULL, weights, NULL);
	esp_forest_add(k.forest, &pair, NULL);
	esp_session_run(k.session, k.forest, NULL);
	tap_ok(esp_context_close(k.context, &error) == ESP_OK && esp_context_close(k.context, NULL) == ESP_OK,
	       "a context can be closed, and again");
	tap_ok(esp_session_run(k.session, k.forest, &error) == ESP_ERROR_CLOSED &&
		   error_is(error, "context-closed"),
	       "a closed context runs nothing");
	tap_ok(esp_model_parse(k.context, "x", "", 0, &m, &error) == ESP_ERROR_CLOSED && !m &&
		   error_is(error, "context-closed"),
	       "and makes nothing");
	tap_ok(esp_session_root(k.session, 1, 0) && *esp_session_root(k.session, 1, 0) == 10,
	       "results can still be read");
	free_kit(&k);
	tap_ok(esp_context_close(NULL, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "NULL cannot be closed");
}

/* A hook that holds up the call of one thread. */
struct gate {
	pthread_t held;
	bool armed;
	sem_t reached, open;
};

static void *gated_resize(void *user, void *p, size_t old_size, size_t new_size)
{
	struct gate *g = user;
	(void)old_size;
	if (g->armed && pthread_equal(pthread_self(), g->held)) {
		g->armed = false;
		sem_post(&g->reached);
		sem_wait(&g->open);
	}
	if (new_size)
		return realloc(p, new_size);
	free(p);
	return NULL;
}

struct caller {
	struct kit *kit;
	struct gate *gate;
	esp_status status;
	volatile bool returned;
	char path[140];
};

/* The first run of a session takes memory. */
static void *run_gated(void *user)
{
	struct caller *c = user;
	c->gate->held = pthread_self();
	c->gate->armed = true;
	c->status = esp_session_run(c->kit->session, c->kit->forest, NULL);
	return NULL;
}

static void *close_context(void *user)
{
	struct caller *c = user;
	c->status = esp_context_close(c->kit->context, NULL);
	c->returned = true;
	return NULL;
}

/* --- a call that waits for a pipe --- */

static void *read_pipe(void *user)
{
	struct caller *c = user;
	esp_treebank *t = NULL;
	esp_error *error = NULL;
	int more;
	c->status = esp_treebank_open(c->kit->context, c->path, NULL, &t, &error);
	sem_post(&c->gate->reached);
	if (!c->status)
		c->status = esp_treebank_next(t, c->kit->forest, &more, &error);
	c->returned = error && error_is(error, "context-closed");
	esp_treebank_free(t);
	return NULL;
}

/* Of a pipe, or of a named one that nobody writes to. */
static void test_pipe(bool named)
{
	struct gate gate = {0};
	struct kit k;
	pthread_t reader;
	int ends[2] = {-1, -1};
	sem_init(&gate.reached, 0, 0);
	make_kit(&k, NULL, weights, NULL);
	struct caller read = {.kit = &k, .gate = &gate};
	if (named ? mkfifo(path_of("pipe"), 0600) : pipe(ends))
		abort();
	snprintf(read.path, sizeof read.path, "/dev/fd/%d", ends[0]);
	if (named)
		snprintf(read.path, sizeof read.path, "%s", path_of("pipe"));
	pthread_create(&reader, NULL, read_pipe, &read);
	sem_wait(&gate.reached);
	nanosleep(&(struct timespec){0, 50000000}, NULL);
	tap_ok(esp_context_close(k.context, NULL) == ESP_OK, "a context is closed while a call waits for a %s",
	       named ? "writer of a named pipe" : "pipe");
	pthread_join(reader, NULL);
	tap_ok(read.status == ESP_ERROR_CLOSED && read.returned, "the call ends, and says why");
	if (named) {
		unlink(path_of("pipe"));
	} else {
		close(ends[0]);
		close(ends[1]);
	}
	sem_destroy(&gate.reached);
	free_kit(&k);
}

/* --- a deadline --- */

static void test_create_deadline(void)
{
	esp_context_options o = {.size = sizeof o, .cache = ESP_CACHE_OFF, .compile_seconds = 1e-9};
	struct kit k;
	esp_error *error = NULL;
	tap_ok(make_kit(&k, &o, weights, &error) == ESP_ERROR_BACKEND && !k.program &&
		   error_is(error, "compile-deadline"),
	       "a program that is not made in time is none");
	free_kit(&k);
}

static void test_in_flight(void)
{
	struct gate gate = {0};
	esp_context_options o = {.size = sizeof o, .resize = gated_resize, .user = &gate};
	struct kit k;
	pthread_t runner, closer;
	esp_error *error;
	sem_init(&gate.reached, 0, 0);
	sem_init(&gate.open, 0, 0);
	make_kit(&k, &o, weights, NULL);
	esp_forest_add(k.forest, &pair, NULL);
	struct caller run = {.kit = &k, .gate = &gate}, close = run;
	pthread_create(&runner, NULL, run_gated, &run);
	sem_wait(&gate.reached);
	tap_ok(esp_session_run(k.session, k.forest, &error) == ESP_ERROR_BUSY &&
		   error_is(error, "session-busy"),
	       "a session that is in use refuses a second thread");
	tap_ok(esp_session_trim(k.session, &error) == ESP_ERROR_BUSY && error_is(error, "session-busy"),
	       "also one that would trim it");
	pthread_create(&closer, NULL, close_context, &close);
	esp_model *m = NULL;
	while (esp_model_parse(k.context, "x", tiny_model, strlen(tiny_model), &m, NULL) == ESP_OK)
		esp_model_free(m);
	usleep(20000);
	tap_ok(!close.returned, "closing waits for a call that has begun");
	sem_post(&gate.open);
	pthread_join(runner, NULL);
	pthread_join(closer, NULL);
	tap_ok(run.status == ESP_OK && close.status == ESP_OK && *esp_session_root(k.session, 1, 0) == 10,
	       "which ends as if nothing had been");
	free_kit(&k);
}

/* --- two contexts --- */

static void test_strangers(void)
{
	struct kit a, b;
	esp_error *error;
	esp_program *p;
	esp_binding *binding;
	esp_treebank *t;
	make_kit(&a, NULL, weights, NULL);
	make_kit(&b, NULL, weights, NULL);
	tap_ok(esp_program_create(a.model, b.weights, &interpreted, &p, &error) == ESP_ERROR_ARGUMENT && !p &&
		   error_is(error, "bad-argument"),
	       "weights of another context make no program");
	tap_ok(esp_binding_create(a.program, b.weights, &binding, &error) == ESP_ERROR_ARGUMENT && !binding &&
		   error_is(error, "bad-argument") &&
		   esp_binding_swap(a.binding, b.weights, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument"),
	       "nor are they bound");
	esp_vocab_open(b.context, write_text("words.txt", "a\n"), &b.vocab, NULL);
	tap_ok(esp_treebank_open(a.context, write_text("trees.ptb", "(2 a)\n"), &words_are(b.vocab), &t, &error) ==
		       ESP_ERROR_ARGUMENT &&
		   !t && error_is(error, "bad-argument"),
	       "a vocabulary of another context reads nothing");
	int more;
	esp_treebank_open(b.context, path_of("trees.ptb"), &words_are(b.vocab), &b.treebank, NULL);
	tap_ok(esp_treebank_next(b.treebank, a.forest, &more, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument"),
	       "a treebank fills no forest of another context");
	free_kit(&a);
	free_kit(&b);
}

/* --- another process --- */

static int child(struct kit *k)
{
	esp_error *error;
	esp_model *m;
	struct kit own;
	if (esp_session_run(k->session, k->forest, &error) != ESP_ERROR_FORKED || !error_is(error, "forked"))
		return 1;
	if (esp_model_parse(k->context, "x", "", 0, &m, NULL) != ESP_ERROR_FORKED || m)
		return 2;
	if (esp_context_close(k->context, NULL) != ESP_ERROR_FORKED)
		return 3;
	free_kit(k);
	if (make_kit(&own, NULL, weights, NULL) || esp_forest_add(own.forest, &pair, NULL) ||
	    esp_session_run(own.session, own.forest, NULL) || *esp_session_root(own.session, 1, 0) != 10)
		return 4;
	free_kit(&own);
	return 0;
}

static void test_fork(void)
{
	struct kit k;
	int status;
	make_kit(&k, NULL, weights, NULL);
	esp_forest_add(k.forest, &pair, NULL);
	esp_session_run(k.session, k.forest, NULL);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(child(&k));
	}
	waitpid(pid, &status, 0);
	tap_is(status, 0, "a forked child is refused, can free what it inherited, and works anew");
	tap_ok(esp_session_run(k.session, k.forest, NULL) == ESP_OK, "the parent goes on");
	free_kit(&k);
}

/* --- statuses --- */

static void test_statuses(void)
{
	bool named = true;
	for (int s = ESP_OK; s <= ESP_ERROR_CANCELLED; s++)
		named &= esp_status_name(s) && *esp_status_name(s);
	tap_ok(named && !esp_status_name(ESP_ERROR_CANCELLED + 1) && !esp_status_name(-1),
	       "every status has a name");
	tap_ok(esp_status_is_transient(ESP_ERROR_MEMORY) && esp_status_is_transient(ESP_ERROR_BUSY) &&
		   esp_status_is_transient(ESP_ERROR_SYSTEM) && !esp_status_is_transient(ESP_ERROR_INPUT) &&
		   !esp_status_is_transient(ESP_OK) && !esp_status_is_transient(99),
	       "some may go away");
}

int main(void)
{
	make_folder();
	weights = write_weights("w.safetensors", tiny_weights, 2);
	char path[128];
	weights = strcpy(path, weights);
	test_sizes();
	test_values();
	test_threads();
	test_accounts();
	test_cap();
	test_closed();
	test_pipe(false);
	test_pipe(true);
	test_create_deadline();
	test_in_flight();
	test_strangers();
	test_fork();
	test_statuses();
	remove_folder((const char *const[]){"w.safetensors", "words.txt", "trees.ptb"}, 3);
	return tap_done();
}
