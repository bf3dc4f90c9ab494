/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Runs a program in which the system refuses something: the n-th call of a kind fails, or does a part of what
 * it was asked for.  The calls are the kernel's, so nothing that the program is linked with escapes. */
#ifndef ESPALIER_TESTS_FAULTS_INJECT_H
#define ESPALIER_TESTS_FAULTS_INJECT_H

#include <stdbool.h>

enum inject_kind {
	INJECT_OPEN,
	INJECT_READ,
	INJECT_WRITE,
	INJECT_MAP,
	INJECT_RENAME,
	INJECT_LOOK,
	INJECT_CHANGE,
	INJECT_SYNC,
	INJECT_TALK,
	INJECT_SPAWN,
	INJECT_THREAD
};

struct inject {
	const char *what; /* for people */
	enum inject_kind kind;
	int error; /* that the call fails with; 0 = it transfers half of its bytes, but one at least */
	bool
	    on; /* so do all calls after the n-th.  Of threads: n is how many there may be beside the first */
};

struct outcome {
	bool hit;  /* the fault happened */
	bool hung; /* it was ended after half a minute */
	int status, signal;
};

/* Processes that the program starts are part of it.  Calls count from the first that opens a file whose path
 * ends with `after`: what the loader does before is not the program's affair.  Standard output and error go
 * to files; what is written to the latter never fails.  False: processes cannot be traced here. */
bool inject_run(const struct inject *, long n, const char *after, char *const *argv, const char *out,
		const char *err, struct outcome *);

#endif
