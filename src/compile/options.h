/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a compilation is told, as values: texts are read once (api/read_options.c). */
#ifndef ESPALIER_COMPILE_OPTIONS_H
#define ESPALIER_COMPILE_OPTIONS_H

#include "base/diag.h"
#include "base/target.h"
#include "jit/jit.h"
#include "rewrite/rewrite.h"

/* The description of the machine at hand. */
struct machine_known {
	struct target target;
	const char *processor; /* a text that differs where code or its schedule may differ */
};

struct compile_options {
#define COMPILE_OPTION(type, member, KEY, how) type member;
#include "compile/options.def"
#undef COMPILE_OPTION
};

/* Says what is known of this machine, which counts if code is made for it. */
void compile_describe_machine(struct compile_options *, const struct machine_known *);
/* Those that the rewriting of a program goes by. */
struct rewrite_options compile_rewrite_options(const struct compile_options *);
/* Whether the interpreter takes the place of a back end. */
bool compile_interprets(const struct compile_options *);

#endif
