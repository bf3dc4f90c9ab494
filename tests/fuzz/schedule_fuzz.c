/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Schedules, for one plan: what is read prints, its text reads back as itself, and it can be lowered: the
 * verifier has nothing to say after any pass. */
#include "ilir/passes.h"
#include "ra/ra.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Groups of several stages, a reduction over edges, gates that share an operand, sizes that no tile divides.
 */
static const char model[] =
    "model gated\nstructure tree(*)\ninput x[X]\nparam W[2*D, X], U[D, D]\nstate h[D], m[2*D]\n"
    "node:\n g = W @ x\n s = sum(k.h for k in children)\n r = sigmoid(g[:D]) * s\n"
    " h = tanh(U @ r + g[D:])\n m = concat(h, s)\noutput top = softmax(m) at root\n";
static const int64_t sizes[] = {3, 5};

/* One input in so many is lowered: that takes thousands of times as long as reading it.  Inputs, not what they mean: of
 * those that mean the same, what is new would be lowered each time. */
enum { LOWERED = 1024 };

static struct {
	struct arena arena;
	struct diags diags;
	struct sub_program program;
	struct sched_plan plan;
	struct sched chosen; /* takes a hundred times as long as reading a text */
} fixed;

static void make_plan(void)
{
	jmp_buf escape;
	arena_init(&fixed.arena, &allocator_default);
	diags_init(&fixed.diags, &allocator_default);
	if (arena_guard(&fixed.arena, &escape))
		abort();
	const struct ra_model *m = ra_parse(&fixed.arena, &fixed.diags, "model", model, strlen(model));
	struct sub_program written;
	sub_init(&written, &fixed.arena, "gated");
	sub_init(&fixed.program, &fixed.arena, "gated");
	if (!m || !sub_lower_model(&written, m, sizes, SUB_AT_MODEL, &fixed.diags))
		abort();
	rewrite_contract(&fixed.program, &written, NULL, NULL);
	sched_make_plan(&fixed.plan, &fixed.arena, &fixed.program, target_find("avx2"), &(struct sched_fusion){0});
	sched_choose(&fixed.chosen, &fixed.plan, target_find("avx2"));
}

/* The plan, with the run's own arena for what is made from it. */
static const struct sched_plan *plan_in(struct fuzz *f)
{
	struct sched_plan *plan = arena_copy(&f->arena, &fixed.plan, sizeof fixed.plan);
	struct sub_program *program = arena_copy(&f->arena, &fixed.program, sizeof fixed.program);
	program->arena = &f->arena;
	plan->p = program;
	return plan;
}

#define COPY(f, list)                                                                                        \
	((list).at = arena_copy(&(f)->arena, (list).at, (list).n * sizeof *(list).at),                       \
	 (list).capacity = (list).n)

/* What is chosen, to be changed by a text. */
static struct sched chosen_in(struct fuzz *f)
{
	struct sched s = fixed.chosen;
	COPY(f, s.tiles);
	COPY(f, s.strategies);
	COPY(f, s.states);
	COPY(f, s.intermediates);
	COPY(f, s.tables);
	return s;
}

static const char *printed(struct fuzz *f, const struct sched_plan *plan, const struct sched *s)
{
	struct str text = str_in(&f->arena);
	sched_print(s, plan, &text);
	return str_text(&text);
}

static void lower(struct fuzz *f, const struct sched_plan *plan, const struct sched *s)
{
	struct ilir_module m;
	struct ilir_tiling tiling = {0};
	unsigned properties = 0;
	ilir_init(&m, &f->arena, "gated");
	ilir_lower(&m, &tiling, plan, s);
	fuzz_check(f, ilir_verify(&m, 0, "lower", &f->diags), "any schedule that is read can be lowered");
	for (int i = 0; ilir_pass_at(i); i++) {
		ilir_pass_at(i)->run(&m, &tiling);
		properties |= ilir_pass_at(i)->establishes;
		fuzz_check(f, ilir_verify(&m, properties, ilir_pass_at(i)->name, &f->diags),
			   "passes keep what they promise under any schedule");
	}
}

static bool read_schedule(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	const struct sched_plan *plan = plan_in(f);
	struct sched s = chosen_in(f), again = chosen_in(f);
	if (!sched_read(&s, plan, "fuzz", (const char *)bytes, n, &f->diags))
		return false;
	const char *text = printed(f, plan, &s);
	fuzz_check(f,
		   sched_read(&again, plan, "again", text, strlen(text), &f->diags) &&
		       strcmp(printed(f, plan, &again), text) == 0,
		   "a printed schedule reads back as itself");
	if (fuzz_hash(bytes, n) % LOWERED == 0)
		lower(f, plan, &s);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (!fixed.plan.p)
		make_plan();
	return fuzz_run(read_schedule, bytes, n);
}
