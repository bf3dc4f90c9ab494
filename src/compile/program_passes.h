/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of passes over programs of sub-operators, program_passes.def. */
#ifndef ESPALIER_COMPILE_PROGRAM_PASSES_H
#define ESPALIER_COMPILE_PROGRAM_PASSES_H

#include "compile/options.h"
#include "sched/sched.h"

struct compilation;

/* Both fill `to`, an empty program of the same arena, from `from`.  The trace may be NULL. */
typedef void rewrite_pass(struct sub_program *to, const struct sub_program *from,
			  const struct rewrite_options *, struct rewrite_trace *);
typedef void move_pass(struct sub_program *to, const struct sub_program *from, enum move_extent,
		       const struct rewrite_options *, struct rewrite_trace *);

typedef bool sched_pass(struct sub_program *to, const struct sub_program *from, const struct sched_fusion *, bool exact,
			struct diags *);

#define REWRITE_PASS(name, when, meaning) rewrite_pass rewrite_##name;
#define MOVE_PASS(name, when, moving, meaning) move_pass move_##name;
#define SCHED_PASS(name, when, meaning) sched_pass sched_##name;
#include "compile/program_passes.def"
#undef REWRITE_PASS
#undef MOVE_PASS
#undef SCHED_PASS

struct program_pass {
	const char *name;
	bool (*when)(const struct compilation *);
	rewrite_pass *rewrite; /* one of these three */
	move_pass *move;
	sched_pass *choose;
	size_t moving; /* of move: where in struct sched_fusion its directive is */
	const char *meaning;
};
/* Whether the model or the options ask for products in integers, f16 or bf16. */
bool compile_has_integers(const struct ra_model *, const struct compile_options *);
/* The i-th pass, NULL past the last. */
const struct program_pass *program_pass_at(int i);

#endif
