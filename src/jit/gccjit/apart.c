/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "jit/gccjit/apart.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static bool report_failure(struct apart *a, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(a->report.reason, sizeof a->report.reason, format, args);
	va_end(args);
	return false;
}

/* --- the folder --- */

static bool make_folder(struct apart *a)
{
	const char *where = secure_getenv("TMPDIR");
	int n = snprintf(a->folder, sizeof a->folder, "%s/espalier-XXXXXX", where && *where ? where : "/tmp");
	if (n >= (int)sizeof a->folder) {
		a->folder[0] = 0;
		return report_failure(a, "the name of the folder that TMPDIR names is too long");
	}
	if (!mkdtemp(a->folder)) {
		report_failure(a, "no folder %s: %s", a->folder, strerror(errno));
		a->folder[0] = 0;
		return false;
	}
	snprintf(a->made, sizeof a->made, "%s/made", a->folder);
	return true;
}

/* Removes files and folders down to a depth, which no compiler exceeds. */
static void empty_folder(const char *folder, int depth)
{
	char path[600];
	DIR *d = opendir(folder);
	for (struct dirent *at; d && (at = readdir(d));) {
		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
		if (unlink(path) != 0 && depth > 0) {
			empty_folder(path, depth - 1);
			rmdir(path);
		}
	}
	if (d)
		closedir(d);
}

void apart_end(struct apart *a)
{
	if (a->printed >= 0)
		close(a->printed);
	if (!a->folder[0])
		return;
	empty_folder(a->folder, 2);
	rmdir(a->folder);
}

/* --- the child --- */

extern char **environ;

/* Whether the child keeps a variable of the environment.  The compiler finds its assembler by PATH and
 * others: a process with more rights than its caller keeps none. */
static bool is_kept(const char *variable)
{
	return !getauxval(AT_SECURE) && strncmp(variable, "TMPDIR=", 7) != 0 && strncmp(variable, "LC_ALL=", 7) != 0;
}

/* Sets TMPDIR to the folder, and messages to English.  Does not call setenv, whose lock another thread may
 * have held. */
static void set_environment(struct apart *a)
{
	static char folder[sizeof a->folder + 8], language[] = "LC_ALL=C", path[] = "PATH=/usr/bin:/bin";
	size_t n = 0, kept = 0;
	while (environ && environ[n])
		n++;
	char **all = calloc(n + 4, sizeof *all);
	if (!all)
		_exit(1);
	for (size_t i = 0; i < n; i++)
		if (is_kept(environ[i]))
			all[kept++] = environ[i];
	if (getauxval(AT_SECURE))
		all[kept++] = path;
	snprintf(folder, sizeof folder, "TMPDIR=%s", a->folder);
	all[kept++] = folder;
	all[kept] = language;
	environ = all;
}

/* Keeps the output for the parent; the input is empty. */
static void set_files(const struct apart *a)
{
	int none = open("/dev/null", O_RDWR);
	if (none < 0)
		_exit(1);
	dup2(none, 0);
	dup2(a->printed < 0 ? none : a->printed, 1);
	dup2(a->printed < 0 ? none : a->printed, 2);
}

/* Resets signals: children can be waited for, a full disk is an error and no signal, and the caller's
 * handlers do not run. */
static void set_signals(void)
{
	sigset_t none;
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The last handler that is registered runs first, so that those of the host do not run. */
static void leave_at_once(void)
{
	_exit(1);
}

static _Noreturn void run_child(struct apart *a, int report, void (*work)(struct apart *, void *),
				void *context)
{
	atexit(leave_at_once);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	set_signals();
	set_environment(a);
	set_files(a);
	work(a, context);
	const char *at = (const char *)&a->report;
	for (size_t left = sizeof a->report; left;) {
		ssize_t n = write(report, at, left);
		if (n < 0 && errno != EINTR)
			_exit(1);
		at += n > 0 ? n : 0;
		left -= n > 0 ? n : 0;
	}
	_exit(0);
}

/* --- the parent --- */

/* The interval between calls of the watch [ms]. */
enum { TICK = 10 };

/* Calls the watch until the child reports; kills the child and its processes when the watch stops them. */
static void watch_child(struct apart *a, pid_t child, int report)
{
	const struct jit_watch *w = a->watch;
	struct pollfd p = {report, POLLIN, 0};
	while (w && !a->stopped && poll(&p, 1, TICK) <= 0)
		a->stopped = !w->goes_on(w->context, a->diags);
	if (a->stopped)
		kill(-child, SIGKILL);
}

/* False when the child ended before its report was complete. */
static bool read_report(struct apart *a, int report)
{
	char *at = (char *)&a->report;
	size_t left = sizeof a->report;
	while (left) {
		ssize_t n = read(report, at, left);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		at += n > 0 ? n : 0;
		left -= n > 0 ? n : 0;
	}
	a->report.reason[sizeof a->report.reason - 1] = 0;
	return left == 0;
}

/* Adds the beginning of the output to the report, as one line. */
static void add_output(struct apart *a)
{
	char text[400];
	ssize_t n = a->printed < 0 ? 0 : pread(a->printed, text, sizeof text - 1, 0);
	size_t used = strlen(a->report.reason);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return;
	text[n] = 0;
	for (char *s = text; (s = strchr(s, '\n'));)
		*s = ' ';
	snprintf(a->report.reason + used, sizeof a->report.reason - used, "%s%s", used ? ": " : "", text);
}

static bool wait_for(struct apart *a, pid_t child, int report)
{
	int status = 0;
	setpgid(child, child); /* the child does the same; either may be first */
	watch_child(a, child, report);
	bool complete = read_report(a, report);
	pid_t ended;
	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	if (!complete) {
		a->report = (struct apart_report){0};
		if (ended == child && WIFSIGNALED(status))
			report_failure(a, "the compiler was ended by signal %d", WTERMSIG(status));
		else
			report_failure(a, "the compiler ended");
	}
	if (!a->report.ok)
		add_output(a);
	return a->report.ok;
}

bool apart_run(struct apart *a, void (*work)(struct apart *, void *), void *context)
{
	int report[2];
	*a = (struct apart){
	    .printed = memfd_create("espalier", MFD_CLOEXEC), .watch = a->watch, .diags = a->diags};
	if (!make_folder(a))
		return false;
	if (pipe2(report, O_CLOEXEC) != 0)
		return report_failure(a, "no pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0)
		run_child(a, report[1], work, context);
	int error = errno;
	close(report[1]);
	bool ok = child > 0 ? wait_for(a, child, report[0])
			    : report_failure(a, "no process for the compiler: %s", strerror(error));
	close(report[0]);
	return ok;
}

/* Closes the file after each block, since adding to the text may escape. */
static ssize_t read_block(const struct apart *a, int64_t from, char *block, size_t bytes)
{
	int file = open(a->made, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	if (file < 0)
		return -1;
	do
		n = pread(file, block, bytes, from);
	while (n < 0 && errno == EINTR);
	close(file);
	return n;
}

bool apart_read(struct apart *a, struct str *to)
{
	char block[16384];
	ssize_t n;
	for (int64_t from = 0; (n = read_block(a, from, block, sizeof block)) > 0; from += n)
		str_add(to, block, n);
	return n == 0 || report_failure(a, "what the compiler made cannot be read: %s", strerror(errno));
}
