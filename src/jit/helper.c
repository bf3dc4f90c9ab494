/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Compiles in a helper program: starts it, exchanges messages with it (helper.h), and checks the answer. */
#include "jit/helper.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The interval between calls of the watch, and how long a helper may take to remove its temporary files [ms].
 */
enum { TICK = 10, GRACE = 1000 };
/* The longest answer [bytes]: the output of a stray program must not fill the memory. */
enum { MOST = 1 << 30 };

/* One helper, from its start to its end.  The answer is in the arena, which must not escape meanwhile. */
struct exchange {
	struct arena *arena;
	const struct jit_watch *watch;
	struct diags *diags;
	const char *path;
	pid_t pid;
	int socket, printed; /* printed: a file in memory for its output and errors; -1 = none */
	const char *request;
	size_t left; /* of the request */
	char *reply;
	size_t n, capacity, complete; /* complete: bytes of complete records */
	bool ended;		      /* the last record has arrived */
};

static bool refuse_answer(const struct exchange *x, const char *what)
{
	return diag_add(
	    x->diags, DIAG_COMPILE_HELPER, (struct diag_at){0},
	    "install the helper program that belongs to this version of espalier; if it is there, "
	    "please report what the message says, and compile in the process meanwhile",
	    "the helper program %s: %s", x->path, what);
}

/* --- starting --- */

/* Moves a descriptor above 2: the helper's 0, 1 and 2 are set one after the other, and the host may have
 * closed its own. */
static int above_standard(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return above;
}

static bool make_socket(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	pair[0] = above_standard(pair[0]);
	pair[1] = above_standard(pair[1]);
	return pair[0] >= 0 && pair[1] >= 0;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* The helper inherits no other open file of the host. */
static int add_files(posix_spawn_file_actions_t *files, const struct exchange *x, int socket)
{
	int error = posix_spawn_file_actions_adddup2(files, socket, STDIN_FILENO);
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && !error; fd++)
		error = x->printed < 0 ? posix_spawn_file_actions_addopen(files, fd, "/dev/null", O_WRONLY, 0)
				       : posix_spawn_file_actions_adddup2(files, x->printed, fd);
	return error ? error : posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
}

/* Resets all signals.  The helper has a process group of its own, so that a terminal's signals do not reach
 * it. */
static int add_signals(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setsigmask(attributes, &none);
	return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
							POSIX_SPAWN_SETSIGMASK);
}

extern char **environ;

/* A host with more rights than its caller may pass them on to the helper, which cannot know: the helper then
 * gets none of the caller's variables, such as the folders of plug-ins. */
static char **choose_environment(void)
{
	static char path[] = "PATH=/usr/bin:/bin";
	static char *plain[] = {path, NULL};
	return getauxval(AT_SECURE) ? plain : environ;
}

static int spawn_helper(struct exchange *x, int socket)
{
	char *argv[] = {JIT_HELPER_FILE, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int error = posix_spawn_file_actions_init(&files);
	if (error)
		return error;
	error = posix_spawnattr_init(&attributes);
	if (!error) {
		error = add_files(&files, x, socket);
		error = error ? error : add_signals(&attributes);
		error = error ? error : posix_spawn(&x->pid, x->path, &files, &attributes, argv, choose_environment());
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return error;
}

static bool start_helper(struct exchange *x)
{
	int pair[2] = {-1, -1};
	x->printed = above_standard(memfd_create("espalier", MFD_CLOEXEC));
	int error = make_socket(pair) ? spawn_helper(x, pair[1]) : errno;
	close_one(pair[1]);
	x->socket = pair[0];
	if (!error)
		return true;
	close_one(x->socket);
	close_one(x->printed);
	return diag_add(x->diags, DIAG_COMPILE_HELPER, (struct diag_at){0},
			"it must be a program that this process may start, and the limits on processes and "
			"files must allow it",
			"the helper program %s could not be started: %s", x->path, strerror(error));
}

/* --- messages --- */

/* Errors of a call on the socket that mean that nothing was transferred yet, or that the helper is gone. */
static bool is_pause(int error)
{
	return error == EINTR || error == EAGAIN;
}

static bool is_end(int error)
{
	return error == EPIPE || error == ECONNRESET;
}

/* When the helper has closed the socket, its answer may hold the reason. */
static bool send_some(struct exchange *x)
{
	ssize_t n = send(x->socket, x->request, x->left, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && is_end(errno))
		n = x->left;
	else if (n < 0 && !is_pause(errno))
		return refuse_answer(x, strerror(errno));
	x->request += n > 0 ? n : 0;
	x->left -= n > 0 ? n : 0;
	return true;
}

static bool reserve_space(struct exchange *x)
{
	size_t capacity = x->capacity ? 2 * x->capacity : 1 << 16;
	if (x->n < x->capacity)
		return true;
	char *grown = arena_try(x->arena, capacity, 1);
	if (!grown)
		return diag_add(x->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for the answer of the helper program");
	if (x->n)
		memcpy(grown, x->reply, x->n);
	x->reply = grown;
	x->capacity = capacity;
	return true;
}

static struct helper_record record_at(const struct exchange *x, size_t at)
{
	struct helper_record r;
	memcpy(&r, x->reply + at, sizeof r);
	return r;
}

/* Counts the complete records that have arrived; false when they are malformed. */
static bool pass_records(struct exchange *x)
{
	struct helper_record r;
	while (!x->ended && x->n - x->complete >= sizeof r) {
		r = record_at(x, x->complete);
		if (r.kind < HELPER_DIAGNOSTIC || r.kind > HELPER_END || r.bytes > MOST)
			return refuse_answer(x, "its answer makes no sense");
		if (x->n - x->complete - sizeof r < helper_padded(r.bytes))
			return true;
		x->complete += sizeof r + helper_padded(r.bytes);
		x->ended = r.kind == HELPER_END;
	}
	return true;
}

/* False after a diagnostic, and when nothing more will arrive. */
static bool receive_some(struct exchange *x)
{
	if (!reserve_space(x))
		return false;
	ssize_t n = recv(x->socket, x->reply + x->n, x->capacity - x->n, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && is_end(errno)))
		return false;
	if (n < 0 && !is_pause(errno))
		return refuse_answer(x, strerror(errno));
	x->n += n > 0 ? n : 0;
	if (x->n > MOST)
		return refuse_answer(x, "its answer does not end");
	return pass_records(x);
}

/* Whether the helper has ended.  The socket does not show it: a process forked meanwhile may hold its other
 * end. */
static bool is_gone(const struct exchange *x)
{
	siginfo_t info = {0};
	return waitid(P_PID, x->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

static bool goes_on(const struct exchange *x)
{
	return !x->watch || x->watch->goes_on(x->watch->context, x->diags);
}

/* Runs until the answer is complete.  False after a diagnostic, or when the helper ended without an answer.
 */
static bool exchange_messages(struct exchange *x)
{
	for (bool gone = false; !x->ended;) {
		struct pollfd p = {x->socket, POLLIN | (x->left ? POLLOUT : 0), 0};
		int n = poll(&p, 1, gone ? 0 : TICK);
		if (!goes_on(x) || (n == 0 && gone))
			return false;
		gone = n == 0 && is_gone(x);
		if (n > 0 && p.revents & POLLOUT && !send_some(x))
			return false;
		if (n > 0 && p.revents & ~POLLOUT && !receive_some(x))
			return false;
	}
	return true;
}

/* --- ending --- */

/* Ends the helper, but lets it remove its temporary files. */
static void dismiss_helper(const struct exchange *x)
{
	char rest[4096];
	struct timespec pause = {.tv_nsec = 1000000};
	kill(-x->pid, SIGTERM);
	for (int i = 0; i < GRACE && !is_gone(x); i++) {
		while (recv(x->socket, rest, sizeof rest, MSG_DONTWAIT) > 0)
			;
		nanosleep(&pause, NULL);
	}
}

/* Kills the helper and the processes that it started.  Returns its status; -1: the host ignores its children,
 * or waited for this one itself. */
static int kill_helper(struct exchange *x)
{
	int status = -1;
	pid_t ended;
	kill(-x->pid, SIGKILL);
	do
		ended = waitpid(x->pid, &status, 0);
	while (ended < 0 && errno == EINTR);
	close(x->socket);
	return ended == x->pid ? status : -1;
}

/* --- the answer --- */

/* Reads what the helper printed, as one line. */
static void read_printed(const struct exchange *x, char *line, size_t bytes)
{
	ssize_t n = x->printed < 0 ? 0 : pread(x->printed, line, bytes - 1, 0);
	while (n > 0 && line[n - 1] == '\n')
		n--;
	line[n > 0 ? n : 0] = 0;
	for (; *line; line++)
		if ((unsigned char)*line < ' ' || *line == 0x7f)
			*line = ' ';
}

/* Whether a text is a message of C++, LLVM, GCC or the system that memory is out. */
static bool is_out_of_memory(const char *text)
{
	static const char *const phrases[] = {"bad_alloc", "ut of memory", "no memory",
					      "annot allocate memory", "emory exhausted"};
	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
		if (strstr(text, phrases[i]))
			return true;
	return false;
}

static bool fail_memory(const struct exchange *x, const char *what)
{
	return diag_add(x->diags, DIAG_COMPILE_MEMORY, (struct diag_at){0},
			"raise esp_context_options.compile_memory (--compile-memory) or the limits of the "
			"process, compile on fewer threads, or simplify the model",
			"the compiler needs more memory than the helper program may have: %s", what);
}

/* The helper ended before its answer was complete. */
static bool report_silence(const struct exchange *x, int status)
{
	char printed[400], what[600] = "it ended without an answer";
	read_printed(x, printed, sizeof printed);
	if (status != -1 && WIFSIGNALED(status))
		snprintf(what, sizeof what, "it was ended by signal %d", WTERMSIG(status));
	else if (status != -1)
		snprintf(what, sizeof what, "it ended with status %d and without an answer",
			 WEXITSTATUS(status));
	size_t used = strlen(what);
	if (*printed)
		snprintf(what + used, sizeof what - used, ": %s", printed);
	return is_out_of_memory(printed) ? fail_memory(x, printed) : refuse_answer(x, what);
}

/* The zero-terminated text that begins at *at, which goes past it; NULL when the record does not hold it. */
static const char *next_text(const char **at, const char *record_end)
{
	const char *text = *at, *zero = text < record_end ? memchr(text, 0, record_end - text) : NULL;
	*at = zero ? zero + 1 : record_end;
	return zero ? text : NULL;
}

static bool relay_diagnostic(const struct exchange *x, const char *at, uint64_t bytes)
{
	const char *record_end = at + bytes, *id_text = next_text(&at, record_end),
		   *message = next_text(&at, record_end), *hint = next_text(&at, record_end);
	enum diag_id id;
	if (!hint || !diag_find(id_text, &id))
		return refuse_answer(x, message ? message : "its answer makes no sense");
	if (id == DIAG_OUT_OF_MEMORY || is_out_of_memory(message))
		return fail_memory(x, message);
	return diag_add(x->diags, id, (struct diag_at){0}, *hint ? hint : NULL, "%s", message);
}

/* The answer while it is read. */
struct answer {
	struct jit_objects *objects;
	const char **compiler;
	int units, kernels; /* of the module: it has as many objects, or one */
	bool failed;
};

static bool add_object(struct answer *a, uint32_t which, const char *bytes, uint64_t n)
{
	struct jit_objects *o = a->objects;
	struct helper_seconds seconds;
	if (o->n == a->units || which != (uint32_t)o->n || n < sizeof seconds)
		return false;
	memcpy(&seconds, bytes, sizeof seconds);
	memcpy(o->seconds[o->n], seconds.phase, sizeof seconds.phase);
	o->object[o->n++] = (struct image_object){bytes + sizeof seconds, n - sizeof seconds};
	return true;
}

static bool is_whole(const struct answer *a)
{
	int n = a->objects->n;
	return n == a->units || n == a->kernels || n == 1;
}

/* False when the record is malformed; a record of a failure is not. */
static bool read_record(const struct exchange *x, struct answer *a, struct helper_record r, const char *bytes)
{
	switch (r.kind) {
	case HELPER_DIAGNOSTIC:
		a->failed = true;
		relay_diagnostic(x, bytes, r.bytes);
		return true;
	case HELPER_COMPILER:
		*a->compiler = next_text(&bytes, bytes + r.bytes);
		return *a->compiler;
	case HELPER_OBJECT:
		return add_object(a, r.which, bytes, r.bytes);
	default:
		return a->failed || (r.which == (uint32_t)a->objects->n && is_whole(a));
	}
}

static bool read_answer(const struct exchange *x, struct answer *a)
{
	struct helper_record r;
	for (size_t at = 0; at < x->complete; at += sizeof r + helper_padded(r.bytes)) {
		r = record_at(x, at);
		if (!read_record(x, a, r, x->reply + at + sizeof r))
			return refuse_answer(x, "its answer makes no sense");
	}
	return !a->failed;
}

/* --- compilation --- */

static bool run_helper(struct exchange *x, struct answer *a)
{
	size_t before = x->diags->n;
	if (!start_helper(x))
		return false;
	bool answered = exchange_messages(x), reported = x->diags->n > before || x->diags->lost;
	if (reported)
		dismiss_helper(x);
	int status = kill_helper(x);
	bool ok = answered ? read_answer(x, a) : reported ? false : report_silence(x, status);
	close_one(x->printed);
	return ok;
}

/* The name of a target or a back end, cut off if it is too long, since no such name exists. */
static void put_name(char to[HELPER_NAME], const char *name)
{
	snprintf(to, HELPER_NAME, "%s", name);
}

static struct str make_request(const char *backend, const struct ilir_module *m,
			       const struct jit_options *options, struct jit_threads threads, uint64_t memory,
			       struct arena *arena)
{
	struct str s = str_in(arena);
	struct helper_request r = {.abi = JIT_ABI,
				   .native = options->native,
				   .threads = threads.most,
				   .where_bytes = threads.where ? threads.where_bytes : 0,
				   .memory = memory,
				   .lines = options->lines};
	put_name(r.backend, backend);
	put_name(r.target, options->target->name);
	str_add(&s, (const char *)&r, sizeof r);
	str_add(&s, (const char *)threads.where, r.where_bytes);
	size_t before = s.n;
	ilir_print(m, &s);
	r.text_bytes = s.n - before;
	memcpy(s.text, &r, sizeof r);
	return s;
}

bool jit_compile_apart(const char *backend, const struct ilir_module *m, const struct jit_options *options,
		       struct jit_threads threads, uint64_t memory, struct arena *arena,
		       struct jit_objects *o, const char **compiler, struct diags *d)
{
	struct str looked = str_in(arena),
		   request = make_request(backend, m, options, threads, memory, arena);
	struct exchange x = {.arena = arena,
			     .watch = options->watch,
			     .diags = d,
			     .path = jit_helper_path(arena, &looked),
			     .request = request.text,
			     .left = request.n};
	struct jit_unit *unit;
	struct answer a = {o, compiler, jit_list_units(arena, m, false, &unit), m->kernels.n, false};
	*compiler = NULL;
	*o = (struct jit_objects){.object = ARENA_ARRAY(arena, struct image_object, a.units),
				  .seconds = arena_take(arena, a.units, sizeof *o->seconds)};
	if (!x.path)
		return diag_add(
		    d, DIAG_COMPILE_HELPER, (struct diag_at){0},
		    "install it, name its folder in ESPALIER_BACKEND_PATH, or compile in the process",
		    "there is no helper program " JIT_HELPER_FILE "; looked in: %s", str_text(&looked));
	bool ok = run_helper(&x, &a);
	o->unit = o->n == a.units ? unit : NULL;
	return ok;
}
