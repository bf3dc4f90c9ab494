/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of passes over programs of sub-operators, program_passes.def. */
#ifndef ESPALIER_COMPILE_PROGRAM_PASSES_H
#define ESPALIER_COMPILE_PROGRAM_PASSES_H

#include "compile/options.h"
#include "sched/sched.h"

/* Both make an empty program of the same arena into what the pass leaves of another one.  The trace may be NULL. */
typedef void sub_pass(struct sub_program *to, const struct sub_program *from, const struct sub_options *,
		      struct sub_trace *);
typedef void sched_pass(struct sub_program *to, const struct sub_program *from, enum sched_moving,
			const struct sub_options *, struct sub_trace *);

#define SUB_PASS(name, when, meaning) sub_pass sub_##name;
#define SCHED_PASS(name, when, moving, meaning) sched_pass sched_##name;
#include "compile/program_passes.def"
#undef SUB_PASS
#undef SCHED_PASS

struct program_pass {
	const char *name;
	bool (*when)(const struct compile_options *);
	sub_pass *sub; /* one of these two */
	sched_pass *sched;
	size_t moving; /* of sched: where in struct sched_fusion its directive is */
	const char *meaning;
};
/* The i-th pass, NULL past the last. */
const struct program_pass *program_pass_at(int i);

#endif
