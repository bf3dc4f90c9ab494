/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The options of a compilation, as values: texts are read once (api/read_options.c). */
#ifndef ESPALIER_COMPILE_OPTIONS_H
#define ESPALIER_COMPILE_OPTIONS_H

#include "base/diag.h"
#include "base/target.h"
#include "image/image.h"
#include "jit/jit.h"
#include "rewrite/rewrite.h"

/* A description of this machine. */
struct machine_known {
	struct target target;
	const char *processor; /* text of cpu_print, which differs where code or its schedule may differ */
};

struct compile_options {
#define COMPILE_OPTION(type, member, KEY, how) type member;
#include "compile/options.def"
#undef COMPILE_OPTION
};

/* Sets the description of this machine, by which schedules are chosen if code is made for it.  The target stays the one that was chosen with the
 * permissions that it needs, which a description does not tell of, unless the description is of a machine with other vector registers.
 * The arena and the description last as long as the options. */
void compile_describe_machine(struct arena *, struct compile_options *, const struct machine_known *);
/* The options of rewriting among them. */
struct rewrite_options compile_rewrite_options(const struct compile_options *);
/* Whether the interpreter is used instead of a back end. */
bool compile_interprets(const struct compile_options *);

#endif
