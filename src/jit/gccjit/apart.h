/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Work in a process of its own.
 *
 * libgccjit prints, and ends the process, when a disk is full, an assembler fails or memory is out.  So it
 * runs in a child, which has a copy of the memory as it was, a private folder for temporary files and no
 * terminal; what it made comes back as a file. */
#ifndef ESPALIER_JIT_GCCJIT_APART_H
#define ESPALIER_JIT_GCCJIT_APART_H

#include "jit/jit.h"

enum { APART_TIMES = 4 };

/* What the child leaves to its parent. */
struct apart_report {
	bool ok;
	double seconds[APART_TIMES];
	char about[120], said[600]; /* of what the child says it, if of anything; why not */
};

struct apart {
	char folder[200]; /* for temporary files; gone when the work has ended */
	char made[240];	  /* in it: where the child leaves what it makes */
	int printed;	  /* a file in memory, which a full disk does not stop; -1 = none */
	const struct jit_watch *watch; /* who is asked while the child works; NULL = nobody */
	struct diags *diags;	       /* what the watch says */
	bool stopped;		       /* by the watch: the child was ended */
	struct apart_report report;
};

/* Does the work in a child, unless the watch, which is filled as are its diagnostics, ends it.  It may use memory as it was, malloc, and no lock that another thread might
 * hold.  True when it said ok; else report.said says why, whatever became of the child.  What was made is
 * read by apart_read; every apart_run has its apart_end. */
bool apart_run(struct apart *, void (*work)(struct apart *, void *context), void *context);
/* Appends the file.  False when it cannot be read; then report.said says why.  Escapes as its arena does. */
bool apart_read(struct apart *, struct str *);
void apart_end(struct apart *);

#endif
