/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Removes a half-written file when the command is interrupted. */
#include "tool.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const int signals[] = {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};

enum { SIGNALS = sizeof signals / sizeof *signals };

static _Atomic(const char *) doomed;

/* The signal's default action is restored (SA_RESETHAND), so raising it again ends the process. */
static void on_signal(int signal)
{
	const char *path = atomic_load(&doomed);
	if (path)
		unlink(path);
	raise(signal);
}

/* Signals that are ignored, as under nohup, stay ignored. */
static void catch_signals(void)
{
	struct sigaction now, action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
	sigfillset(&action.sa_mask);
	for (int i = 0; i < SIGNALS; i++)
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
}

void interrupt_hold(sigset_t *before)
{
	sigset_t held;
	sigemptyset(&held);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&held, signals[i]);
	sigprocmask(SIG_BLOCK, &held, before);
}

void interrupt_release(const sigset_t *before, const char *path)
{
	if (path) {
		atomic_store(&doomed, path);
		catch_signals();
	}
	sigprocmask(SIG_SETMASK, before, NULL);
}

bool interrupt_hold_writing(const char *path, sigset_t *before)
{
	struct stat s;
	if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
		return false;
	interrupt_hold(before);
	return true;
}

static volatile sig_atomic_t noted;
static atomic_bool gives_up;
static _Atomic double deadline = INFINITY; /* of the monotonic clock */

double read_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int interrupt_waits(void *user)
{
	sigset_t pending;
	bool waits = atomic_load(&gives_up) && (noted || read_clock() > atomic_load(&deadline));
	(void)user;
	sigemptyset(&pending);
	sigpending(&pending);
	for (int i = 0; i < SIGNALS; i++)
		waits |= sigismember(&pending, signals[i]);
	return waits;
}

void interrupt_give_up(bool on, double from)
{
	atomic_store(&deadline, from);
	atomic_store(&gives_up, on);
}

static void note_signal(int signal)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
	sigfillset(&action.sa_mask);
	noted = 1;
	sigaction(signal, &action, NULL);
}

void interrupt_note(void)
{
	static const int polite[] = {SIGHUP, SIGINT, SIGTERM};
	struct sigaction now, action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof polite / sizeof *polite; i++)
		if (sigaction(polite[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaction(polite[i], &action, NULL);
}

bool interrupt_noted(void)
{
	return noted;
}

void interrupt_forget(void)
{
	atomic_store(&doomed, NULL);
}
