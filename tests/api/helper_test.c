/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Compiling in a helper program, and its limits.  Helpers that misbehave are this very program, under the
 * name of the helper: what the environment asks for is how. */
#include "tests/api/support.h"
#include "tests/backends.h"
#include "tests/sanitizers.h"

#include "jit/helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* --- helpers that misbehave --- */

static void say(const void *bytes, size_t n)
{
	send(STDIN_FILENO, bytes, n, MSG_NOSIGNAL);
}

static void say_record(uint32_t kind, uint32_t which, uint64_t claimed, const char *bytes, size_t n)
{
	struct helper_record r = {kind, which, claimed};
	char padded[512] = {0};
	memcpy(padded, bytes, n);
	say(&r, sizeof r);
	say(padded, helper_padded(n));
}

/* By a signal that no sanitizer catches. */
static void crash(void)
{
	raise(SIGKILL);
}

static void give_up(void)
{
	fputs("no heart for it\n", stderr);
	exit(7);
}

static void run_dry(void)
{
	fputs("terminate called after throwing an instance of 'std::bad_alloc'\n", stderr);
	raise(SIGABRT);
}

static void babble(void)
{
	for (int i = 0; i < 10000; i++)
		say("everything but a record\n", 24);
}

static void stop_short(void)
{
	say_record(HELPER_OBJECT, 0, 4096, "half", 4);
}

static void promise_much(void)
{
	say_record(HELPER_OBJECT, 0, UINT64_MAX - 8, "", 0);
}

static void end_empty(void)
{
	say_record(HELPER_END, 0, 0, "", 0);
}

static void miscount(void)
{
	char object[64] = {0};
	say_record(HELPER_OBJECT, 5, sizeof object, object, sizeof object);
	say_record(HELPER_END, 1, 0, "", 0);
}

static void leave_text_open(void)
{
	say_record(HELPER_DIAGNOSTIC, 0, 14, "compile-failed", 14);
	say_record(HELPER_END, 0, 0, "", 0);
}

static void invent_id(void)
{
	static const char text[] = "nobody-knows\0and so\0";
	say_record(HELPER_DIAGNOSTIC, 0, sizeof text, text, sizeof text);
	say_record(HELPER_END, 0, 0, "", 0);
}

/* What looks like an answer, but for the objects: the linker looks at these. */
static void forge(void)
{
	char object[sizeof(struct helper_seconds) + 64] = {0};
	memcpy(object + sizeof(struct helper_seconds), "\177ELF", 4);
	say_record(HELPER_OBJECT, 0, sizeof object, object, sizeof object);
	say_record(HELPER_END, 1, 0, "", 0);
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

static void ignore_signals(void)
{
	signal(SIGTERM, SIG_IGN);
	sleep_on();
}

/* Silent, and what it has started holds the socket. */
static void leave_child(void)
{
	if (fork() == 0)
		sleep_on();
}

static const struct manner {
	const char *name, *id, *says;
	void (*behave)(void);
} manners[] = {
    {"crash", "compile-helper", "signal 9", crash},
    {"give-up", "compile-helper", "status 7 and without an answer: no heart for it", give_up},
    {"run-dry", "compile-memory", "bad_alloc", run_dry},
    {"babble", "compile-helper", "makes no sense", babble},
    {"stop-short", "compile-helper", "without an answer", stop_short},
    {"promise-much", "compile-helper", "makes no sense", promise_much},
    {"end-empty", "compile-helper", "makes no sense", end_empty},
    {"miscount", "compile-helper", "makes no sense", miscount},
    {"leave-text-open", "compile-helper", "makes no sense", leave_text_open},
    {"invent-id", "compile-helper", "and so", invent_id},
    {"forge", "compile-failed", "object", forge},
    {"leave-child", "compile-helper", "without an answer", leave_child},
    {"sleep", "compile-deadline", "not made within", sleep_on},
    {"ignore-signals", "compile-deadline", "not made within", ignore_signals},
};
enum { MANNERS = sizeof manners / sizeof *manners };

static int misbehave(const char *how)
{
	for (int i = 0; i < MANNERS; i++)
		if (strcmp(manners[i].name, how) == 0)
			manners[i].behave();
	return 0;
}

/* --- compiling --- */

/* The usual one, found while the folders are as they were. */
static const char *backend_used;

static const esp_context_options in_helper = {
    .size = sizeof in_helper, .cache = ESP_CACHE_OFF, .threads = 1, .compile_in = ESP_COMPILE_IN_HELPER};

static esp_model *read_text(esp_context *context, const char *text)
{
	esp_model *model = NULL;
	if (esp_model_parse(context, "text", text, strlen(text), &model, NULL))
		abort();
	return model;
}

static esp_status make_program(esp_model *model, const char *backend, int64_t size, esp_program **program,
			       esp_error **error)
{
	int64_t sizes[16];
	for (int i = 0; i < 16; i++)
		sizes[i] = size + i;
	esp_program_options o = {.size = sizeof o, .backend = backend, .sizes = sizes};
	return esp_program_create(model, NULL, &o, program, error);
}

static esp_status prepare_in(esp_context *context, const char *text, int64_t size, esp_error **error)
{
	esp_model *model = read_text(context, text);
	esp_program *program = NULL;
	esp_status s = make_program(model, backend_used, size, &program, error);
	s = s ? s : esp_program_prepare(program, error);
	esp_program_free(program);
	esp_model_free(model);
	return s;
}

static esp_status prepare(const esp_context_options *o, const char *text, int64_t size, esp_error **error)
{
	esp_context *context;
	if (esp_context_create(o, &context, error))
		return ESP_ERROR_ARGUMENT;
	esp_status s = prepare_in(context, text, size, error);
	esp_context_free(context);
	return s;
}

static bool works(void)
{
	esp_error *e = NULL;
	esp_status s = prepare(&in_helper, tiny_model, 8, &e);
	if (s)
		printf("# %s\n", esp_error_text(e));
	esp_error_free(e);
	return s == ESP_OK;
}

/* A hundred layers, each with a kernel of its own. */
static const char *deep_model(void)
{
	static char text[8000];
	size_t n = snprintf(text, sizeof text,
			    "model deep\nstructure sequence\ninput x[D]\nparam W[D, D]\nstate h[D]\nnode:\n"
			    "    a0 = x + previous.h\n");
	for (int i = 1; i <= 100; i++)
		n += snprintf(text + n, sizeof text - n, "    a%d = tanh(W @ a%d)\n", i, i - 1);
	snprintf(text + n, sizeof text - n, "    h = a100\noutput y = h at root\n");
	return text;
}

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- the same code --- */

static const char *const models[] = {
    "treelstm/treelstm", "childsum/childsum", "attention/attention", "mvrnn/mvrnn",
    "updown/updown",	 "typed/typed",	      "bilstm/bilstm2",	     "gru/gru"};
enum { MODELS = sizeof models / sizeof *models };

static esp_status save(int where, const char *model_path, const char *backend, const char *to)
{
	esp_context_options o = in_helper;
	esp_context *context;
	esp_model *model = NULL;
	esp_program *program = NULL;
	esp_error *e = NULL;
	o.compile_in = where;
	o.threads = 2;
	esp_status s = esp_context_create(&o, &context, &e);
	s = s ? s : esp_model_read(context, model_path, &model, &e);
	s = s ? s : make_program(model, backend, 20, &program, &e);
	s = s ? s : esp_program_save(program, to, NULL, &e);
	if (s)
		printf("# %s\n", esp_error_text(e));
	esp_error_free(e);
	esp_program_free(program);
	esp_model_free(model);
	esp_context_free(context);
	return s;
}

static bool same_files(const char *a, const char *b)
{
	FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
	int x = 0, y = 0;
	while (f && g && x == y && x != EOF) {
		x = getc(f);
		y = getc(g);
	}
	bool same = f && g && x == y;
	if (f)
		fclose(f);
	if (g)
		fclose(g);
	return same;
}

static void compare_code(const char *backend, int i)
{
	char path[300];
	const char *source = getenv("srcdir");
	snprintf(path, sizeof path, "%s/examples/%s.ra", source ? source : ".", models[i]);
	bool made = !save(ESP_COMPILE_IN_PROCESS, path, backend, path_of("here")) &&
		    !save(ESP_COMPILE_IN_HELPER, path, backend, path_of("apart"));
	tap_ok(made && same_files(path_of("here"), path_of("apart")),
	       "%s, by %s: the helper's program is that of the process to the byte", models[i], backend);
}

static void test_code(void)
{
	for (int i = 0; i < MODELS; i += SHADOWED ? 4 : 1)
		if (has_backend("llvm"))
			compare_code("llvm", i);
	for (int i = 0; i < MODELS; i += 4)
		if (has_backend("gccjit"))
			compare_code("gccjit", i);
	skip_backends();
}

/* --- what can go wrong --- */

static void use_folder(const char *first)
{
	static char original[1000];
	char all[1200];
	if (!*original)
		snprintf(original, sizeof original, "%s", getenv("ESPALIER_BACKEND_PATH"));
	snprintf(all, sizeof all, "%s%s%s", first, *first ? ":" : "", original);
	setenv("ESPALIER_BACKEND_PATH", all, 1);
}

static bool refused(const esp_context_options *o, const char *id, const char *says)
{
	esp_error *e = NULL;
	esp_status s = prepare(o, tiny_model, 8, &e);
	bool said = s && strstr(esp_error_text(e), says);
	if (s && !said)
		printf("# %s\n", esp_error_text(e));
	return error_is(e, id) && said;
}

/* The host's children, which are none: nothing may remain of a helper. */
static bool childless(void)
{
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static int count_files(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void test_manners(const char *self)
{
	use_folder(folder);
	if (symlink(self, path_of(JIT_HELPER_FILE)) != 0)
		abort();
	for (int i = 0; i < MANNERS; i++) {
		esp_context_options o = in_helper;
		bool late = strcmp(manners[i].id, "compile-deadline") == 0;
		o.compile_seconds = late ? 0.3 * (SHADOWED ? 10 : 1) : 0;
		setenv("MANNER", manners[i].name, 1);
		double begin = seconds_now();
		bool as_told = refused(&o, manners[i].id, manners[i].says);
		tap_ok(as_told && seconds_now() - begin < 20 && childless(),
		       "a helper may %s: %s, and it is gone", manners[i].name, manners[i].id);
	}
	unsetenv("MANNER");
	unlink(path_of(JIT_HELPER_FILE));
	use_folder("");
	tap_ok(works(), "then another helper compiles");
}

static void test_absence(void)
{
	write_text(JIT_HELPER_FILE, "no program");
	use_folder(folder);
	tap_ok(refused(&in_helper, "compile-helper", "could not be started"),
	       "a helper that is no program: compile-helper");
	chmod(path_of(JIT_HELPER_FILE), 0755);
	tap_ok(refused(&in_helper, "compile-helper", "could not be started"),
	       "nor one that the system does not know: compile-helper");
	unlink(path_of(JIT_HELPER_FILE));
	use_folder("");
	char plugins[1000];
	snprintf(plugins, sizeof plugins, "%s", getenv("ESPALIER_BACKEND_PATH"));
	setenv("ESPALIER_BACKEND_PATH", folder, 1);
	if (access(PKGLIBEXECDIR "/" JIT_HELPER_FILE, F_OK) == 0)
		tap_skip("one is installed", "no helper");
	else
		tap_ok(refused(&in_helper, "compile-helper", "looked in"), "no helper: compile-helper");
	setenv("ESPALIER_BACKEND_PATH", plugins, 1);
}

/* A sanitizer's own memory counts: what happens then is told, too, but differently. */
static void test_memory(void)
{
	for (uint64_t bytes = 1 << 12; bytes <= 1 << 17; bytes <<= 5) {
		esp_context_options o = in_helper;
		esp_error *e = NULL;
		o.compile_memory = bytes;
		esp_status s = prepare(&o, tiny_model, 8, &e);
		tap_ok(SHADOWED ? s == ESP_ERROR_MEMORY || s == ESP_ERROR_BACKEND : s == ESP_ERROR_MEMORY,
		       "a helper of %llu bytes does not compile", (unsigned long long)bytes);
		tap_ok(error_is(e, "compile-memory") || SHADOWED, "and says compile-memory");
	}
	esp_context_options o = in_helper;
	o.compile_memory = SHADOWED ? 0 : 1 << 30;
	tap_is(prepare(&o, tiny_model, 8, NULL), ESP_OK, "one of enough does");
}

/* --- time, and who gives up --- */

static void test_deadline(void)
{
	for (int where = ESP_COMPILE_IN_PROCESS; where <= ESP_COMPILE_IN_HELPER; where++) {
		esp_context_options o = in_helper;
		esp_error *e = NULL;
		o.compile_in = where;
		o.compile_seconds = 0.5;
		double begin = seconds_now();
		esp_status s = prepare(&o, deep_model(), 32, &e);
		printf("# after %.2f s\n", seconds_now() - begin);
		tap_is(s, ESP_ERROR_BACKEND,
		       where ? "100 tanh in half a second, in a helper"
			     : "100 tanh in half a second, in the process");
		tap_ok(error_is(e, "compile-deadline") && childless(), "compile-deadline");
	}
}

/* A deadline is for the code alone: what is asked of the program later has time. */
static void test_later(void)
{
	esp_context_options o = {.size = sizeof o, .threads = 1, .cache = ESP_CACHE_OFF, .compile_seconds = 1};
	esp_context *context = NULL;
	esp_model *model = NULL;
	esp_program *program = NULL;
	char *text = NULL;
	esp_error *e = NULL;
	esp_status s = esp_context_create(&o, &context, &e);
	s = s ? s : esp_model_parse(context, "tiny.ra", tiny_model, strlen(tiny_model), &model, &e);
	s = s ? s : make_program(model, "interpreter", 8, &program, &e);
	s = s ? s : esp_program_prepare(program, &e);
	nanosleep(&(struct timespec){1, 100000000}, NULL);
	s = s ? s : esp_program_dump(program, "ilir", &text, &e);
	tap_ok(!s && text, "the loops of a program are told when its deadline is long past");
	if (s)
		printf("# %s\n", esp_error_text(e));
	esp_error_free(e);
	esp_text_free(text);
	esp_program_free(program);
	esp_model_free(model);
	esp_context_free(context);
}

/* How often who may give up is asked, and at which of these he does; 0 = never. */
static atomic_int asked, patience;

static int give_up_at(void *user)
{
	(void)user;
	return atomic_fetch_add(&asked, 1) + 1 == atomic_load(&patience);
}

static esp_status cancel_at(int question, int where, esp_error **error)
{
	esp_context_options o = in_helper;
	o.compile_in = where;
	o.cancel = give_up_at;
	atomic_store(&asked, 0);
	atomic_store(&patience, question);
	return prepare(&o, tiny_model, 8, error);
}

static void test_cancel_at(int where, const char *what)
{
	esp_error *e = NULL;
	tap_is(cancel_at(0, where, NULL), ESP_OK, what);
	int most = atomic_load(&asked), refusals = 0;
	/* Another helper may answer at another time: the last questions may not be asked. */
	int sure = where == ESP_COMPILE_IN_PROCESS ? most : 12;
	for (int question = 1; question <= sure; question++, e = NULL)
		refusals +=
		    cancel_at(question, where, &e) == ESP_ERROR_BACKEND && error_is(e, "compile-cancelled");
	tap_is(refusals, sure, "given up at any time: compile-cancelled");
	tap_ok(sure > 1 && childless(), "nothing remains");
}

static atomic_bool fed_up;

static int ask_flag(void *user)
{
	(void)user;
	return atomic_load(&fed_up);
}

static void *raise_flag(void *context)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	if (context)
		esp_context_close(context, NULL);
	else
		atomic_store(&fed_up, true);
	return NULL;
}

/* While a helper is silent, another thread closes the context, or says so by the hook. */
static void test_other_thread(const char *self, bool close_it)
{
	esp_context_options o = in_helper;
	esp_context *context;
	esp_error *e = NULL;
	pthread_t thread;
	o.cancel = ask_flag;
	atomic_store(&fed_up, false);
	use_folder(folder);
	setenv("MANNER", "sleep", 1);
	if (symlink(self, path_of(JIT_HELPER_FILE)) != 0 || esp_context_create(&o, &context, NULL) ||
	    pthread_create(&thread, NULL, raise_flag, close_it ? context : NULL) != 0)
		abort();
	tap_is(prepare_in(context, tiny_model, 8, &e), close_it ? ESP_ERROR_CLOSED : ESP_ERROR_BACKEND,
	       close_it ? "another thread closes the context" : "another thread has the hook say so");
	tap_ok(error_is(e, close_it ? "context-closed" : "compile-cancelled") && childless(),
	       "the compilation is given up");
	pthread_join(thread, NULL);
	esp_context_free(context);
	unlink(path_of(JIT_HELPER_FILE));
	unsetenv("MANNER");
	use_folder("");
}

/* --- hosts of all kinds --- */

static void *work(void *context)
{
	return (void *)(intptr_t)prepare_in(context, tiny_model, 8, NULL);
}

static void test_threads(void)
{
	enum { THREADS = 6 };
	pthread_t thread[THREADS];
	esp_context *context;
	void *status, *all = NULL;
	if (esp_context_create(&in_helper, &context, NULL))
		abort();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, context) != 0)
			abort();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &status);
		all = status ? status : all;
	}
	tap_ok(!all && childless(), "six threads compile at once");
	esp_context_free(context);
}

static void reap_all(int signal)
{
	int error = errno;
	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = error;
}

/* In a process of its own. */
static bool in_child(bool (*test)(void))
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(!test());
	return waitpid(child, &status, 0) == child && status == 0;
}

static bool test_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	return works();
}

static bool test_reaped(void)
{
	struct sigaction action = {.sa_handler = reap_all};
	sigaction(SIGCHLD, &action, NULL);
	return works();
}

static bool test_closed(void)
{
	close(0);
	close(1);
	close(2);
	return works() && open("/dev/null", O_RDONLY) == 0;
}

static bool test_blocked(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	return works();
}

static void test_hosts(void)
{
	tap_ok(in_child(test_ignored), "a host that ignores the end of its children");
	tap_ok(in_child(test_reaped), "one that waits for all of them itself");
	tap_ok(in_child(test_closed), "one without standard input, output and error");
	tap_ok(in_child(test_blocked), "one that blocks all signals");
}

static void test_arguments(void)
{
	esp_context *context;
	esp_error *e = NULL;
	esp_context_options o = in_helper;
	o.compile_in = 2;
	tap_ok(esp_context_create(&o, &context, &e) == ESP_ERROR_ARGUMENT && error_is(e, "bad-argument"),
	       "compile_in is one of two");
	o = in_helper;
	o.compile_seconds = -1;
	tap_ok(esp_context_create(&o, &context, &e) == ESP_ERROR_ARGUMENT && error_is(e, "bad-argument"),
	       "compile_seconds is not negative");
	o = (esp_context_options){.size = sizeof o, .compile_memory = 1 << 20};
	tap_ok(esp_context_create(&o, &context, &e) == ESP_ERROR_ARGUMENT && error_is(e, "bad-argument"),
	       "compile_memory limits helpers only");
}

int main(int argc, char **argv)
{
	char self[300] = {0};
	(void)argc;
	if (strcmp(argv[0], JIT_HELPER_FILE) == 0)
		return misbehave(getenv("MANNER"));
	if (!need_backend("compiling in a helper"))
		return tap_done();
	if (!make_folder() || readlink("/proc/self/exe", self, sizeof self - 1) < 0)
		abort();
	backend_used = usual_backend();
	test_arguments();
	test_hosts();
	tap_ok(works(), "a helper compiles");
	int files = count_files();
	test_manners(self);
	test_absence();
	test_memory();
	test_other_thread(self, false);
	test_other_thread(self, true);
	test_threads();
	test_cancel_at(ESP_COMPILE_IN_HELPER, "nobody gives up a helper");
	tap_ok(count_files() == files && childless(), "no file and no process is left");
	test_cancel_at(ESP_COMPILE_IN_PROCESS, "nobody gives up in the process");
	test_deadline();
	test_later();
	test_code();
	remove_folder((const char *const[]){"here", "apart"}, 2);
	return tap_done();
}
