/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants that a schedule chooses:
 *
 *     mutate output.v6 part 0 4 before 3
 *     mutate inner.v9 join 0 inner.v12
 *
 * computes a sum of four images that lie side by side (mutate/image_mutant.h), and two sums as one (mutate/product_mutant.h), before
 * values are planned. */
#include "sched/line.h"

/* Whether there is such a line. */
static bool was_chosen(const struct sched_fusion *f, const struct mutate_choice *c)
{
	for (int i = 0; i < f->mutants; i++)
		if (mutate_same_choice(&f->mutant[i], c))
			return true;
	return false;
}

bool sched_read_mutant(struct line *l, struct sched_fusion *f)
{
	const char *text[LINE_MOST_WORDS];
	struct mutate_choice c;
	if (line_is(l, 1, "off")) {
		f->mutants = 0;
		f->mutants_off = l->at.line;
		return line_ends(l, 2);
	}
	if (l->words < 3)
		return line_refuse(l, l->words - 1, "expects a value and what is done with it");
	for (int i = 0; i < l->words; i++)
		text[i] = l->from + l->column[i] - 1;
	c = (struct mutate_choice){.value = {text[1], (int)strlen(l->word[1])}};
	int right = mutate_read_choice(l->word + 2, text + 2, l->words - 2, &c);
	if (right < l->words - 2)
		return line_refuse(l, 2 + right, "wrong argument");
	if (was_chosen(f, &c))
		return line_refuse(l, 1, "says the same twice");
	if (f->mutants == SCHED_MAX_MUTANTS)
		return line_refuse(l, 0, "too many lines");
	f->mutant_line[f->mutants] = l->at.line;
	f->mutant[f->mutants++] = c;
	return true;
}

bool sched_repeat_mutant(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	(void)s;
	struct sched_fusion f = {.mutants = 0};
	if (!sched_read_mutant(l, &f))
		return false;
	if (!f.mutants || l->at.line <= plan->fusion.mutants_off)
		return true;
	return was_chosen(&plan->fusion, f.mutant) || line_refuse(l, 1, "the program was made without it");
}

void sched_print_mutants(const struct sched_fusion *f, struct str *s)
{
	for (int i = 0; i < f->mutants; i++) {
		str_printf(s, "%s ", sched_spelling(SCHED_MUTATE));
		mutate_print_choice(&f->mutant[i], s);
		str_puts(s, "\n");
	}
}

bool sched_apply_mutants(struct sub_program *to, const struct sub_program *from, const struct sched_fusion *f, bool exact, sub_ref *now,
			 struct diags *diags)
{
	int wrong;
	const char *why = mutate_apply(to, from, f->mutant, f->mutants, exact, now, &wrong);
	if (!why)
		return true;
	struct diag_at at = {.file = "schedule", .line = f->mutant_line[wrong]};
	return diag_add(diags, DIAG_ILLEGAL_SCHEDULE, at,
			"'espalier explain --mutants' lists the lines that there are, or take out the line", "%s %.*s: %s",
			sched_spelling(SCHED_MUTATE), f->mutant[wrong].value.length, f->mutant[wrong].value.text, why);
}

bool sched_mutate(struct sub_program *to, const struct sub_program *from, const struct sched_fusion *f, bool exact,
		  struct diags *diags)
{
	return sched_apply_mutants(to, from, f, exact, ARENA_ARRAY(to->arena, sub_ref, from->values.n), diags);
}

bool sched_cancel(struct sub_program *to, const struct sub_program *from, const struct sched_fusion *f, bool exact,
		  struct diags *diags)
{
	(void)f, (void)exact, (void)diags;
	mutate_cancel_moves(to, from);
	return true;
}
