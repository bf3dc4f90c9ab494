/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The passes over programs, one after the other. */
#include "compile/program_passes.h"

#include "compile/compilation.h"

#include <stddef.h>
#include <string.h>

/* --- when a pass runs --- */

static bool always(const struct compile_options *o)
{
	(void)o;
	return true;
}

static bool is_exact(const struct compile_options *o)
{
	return o->math == REWRITE_EXACT;
}

static bool is_not_exact(const struct compile_options *o)
{
	return !is_exact(o);
}

static bool is_narrowing(const struct compile_options *o)
{
	return o->weights_as != DTYPE_F32;
}

static bool is_quantising(const struct compile_options *o)
{
	return o->precision != DTYPE_F32;
}

/* --- the table --- */

static const struct program_pass passes[] = {
#define REWRITE_PASS(name, when, meaning) {#name, when, rewrite_##name, NULL, 0, meaning},
#define MOVE_PASS(name, when, moving, meaning)                                                               \
	{#name, when, NULL, move_##name, offsetof(struct sched_fusion, moving), meaning},
#include "compile/program_passes.def"
#undef REWRITE_PASS
#undef MOVE_PASS
};

const struct program_pass *program_pass_at(int i)
{
	return i >= 0 && i < (int)(sizeof passes / sizeof *passes) ? &passes[i] : NULL;
}

/* --- running them --- */

bool compile_check_program(struct compilation *c, const struct sub_program *p)
{
	bool ok = sub_verify(p, c->diags);
	compile_note(c, "subop", "  verify");
	return ok && compile_goes_on(c);
}

static void apply_pass(const struct compilation *c, const struct program_pass *pass, struct sub_program *to,
		       const struct sub_program *from)
{
	struct rewrite_options options = compile_rewrite_options(c->options);
	const char *moving = (const char *)&c->fusion + pass->moving;
	if (pass->rewrite)
		pass->rewrite(to, from, &options, c->trace);
	else
		pass->move(to, from, *(const enum move_extent *)moving, &options, c->trace);
}

static void begin_with(struct compilation *c, const struct sub_program *p)
{
	c->latest = p;
	sub_init(&c->program, c->arena, c->model->name);
	sub_init(&c->spare, c->arena, c->model->name);
}

bool compile_begin_passes(struct compilation *c, const struct sub_program *p)
{
	const char *text = c->options->schedule;
	begin_with(c, p);
	bool ok = sched_read_fusion(&c->fusion, "schedule", text, strlen(text), c->diags);
	if (c->options->continuous)
		c->fusion.sorting = MOVE_OFF;
	return ok;
}

/* Keeps the program that no schedule has steered, so that later passes do not overwrite it. */
static void keep_unsteered(struct compilation *c)
{
	c->unsteered = *c->latest;
	begin_with(c, &c->unsteered);
}

bool compile_run_program_pass(struct compilation *c, const struct program_pass *pass)
{
	struct sub_program next = c->spare;
	sub_clear(&next);
	apply_pass(c, pass, &next, c->latest);
	c->spare = c->program;
	c->program = next;
	c->latest = &c->program;
	compile_note(c, pass->rewrite ? "rewrite" : "move", pass->name);
	return compile_check_program(c, &c->program);
}

/* Whether a later row is of the same pass. */
static bool comes_again(int pass)
{
	for (int i = pass + 1; program_pass_at(i); i++)
		if (strcmp(passes[i].name, passes[pass].name) == 0)
			return true;
	return false;
}

static int first_steered(void)
{
	int i = 0;
	while (program_pass_at(i) && !passes[i].move)
		i++;
	return i;
}

static bool run_from(struct compilation *c, int first, const char *last)
{
	for (int i = first; program_pass_at(i); i++) {
		bool runs = passes[i].when(c->options);
		if (i == first_steered())
			keep_unsteered(c);
		if (runs && !compile_run_program_pass(c, &passes[i]))
			return false;
		if (last && strcmp(passes[i].name, last) == 0 && (runs || !comes_again(i)))
			break;
	}
	return true;
}

bool compile_run_program_passes(struct compilation *c, const char *last)
{
	return compile_begin_passes(c, &c->written) && run_from(c, 0, last);
}

bool compile_run_steered_passes(struct compilation *c)
{
	return compile_begin_passes(c, &c->unsteered) && run_from(c, first_steered(), NULL);
}
