/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Runs work in a child process.
 *
 * libgccjit prints, and ends the process, when a disk is full, an assembler fails or memory is out.  So it
 * runs in a child, which has a copy of the memory, a private folder for temporary files and no terminal; the
 * result is a file in that folder. */
#ifndef ESPALIER_JIT_GCCJIT_APART_H
#define ESPALIER_JIT_GCCJIT_APART_H

#include "jit/jit.h"

enum { APART_TIMES = 4 };

/* The child's report to its parent. */
struct apart_report {
	bool ok;
	double seconds[APART_TIMES];
	char culprit[120], reason[600]; /* what failed, and why */
};

struct apart {
	char folder[200];	       /* for temporary files; apart_end removes it */
	char made[240];		       /* the file in it for the child's result */
	int printed;		       /* a file in memory for output, in case the disk is full; -1 = none */
	const struct jit_watch *watch; /* called while the child works; NULL = none */
	struct diags *diags;	       /* of the watch */
	bool stopped;		       /* by the watch: the child was ended */
	struct apart_report report;
};

/* Runs the work in a child, unless the watch ends it; the caller has set the watch and its diagnostics.  The
 * work may use the memory of the parent, malloc, and no lock that another thread might hold.  True when the
 * child reported ok; else report.reason is the reason.  Read the result with apart_read; call apart_end after
 * every apart_run. */
bool apart_run(struct apart *, void (*work)(struct apart *, void *context), void *context);
/* Appends the file.  False when it cannot be read; then report.reason is the reason.  Escapes as its arena
 * does. */
bool apart_read(struct apart *, struct str *);
void apart_end(struct apart *);

#endif
