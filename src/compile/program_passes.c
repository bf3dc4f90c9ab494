/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The passes over programs, one after the other. */
#include "compile/program_passes.h"

#include "compile/compilation.h"
#include "split/target_split.h"

#include <stddef.h>
#include <string.h>

/* --- when a pass runs --- */

static bool always(const struct compilation *c)
{
	(void)c;
	return true;
}

static bool is_exact(const struct compilation *c)
{
	return c->options->math == REWRITE_EXACT;
}

static bool is_not_exact(const struct compilation *c)
{
	return !is_exact(c);
}

static bool is_narrowing(const struct compilation *c)
{
	return c->options->weights_as != DTYPE_F32;
}

bool compile_has_integers(const struct ra_model *m, const struct compile_options *o)
{
	bool any = o->precision != PRECISION_F32;
	for (size_t i = 0; i < m->params.n; i++)
		any |= m->params.at[i].declared && m->params.at[i].products != PRECISION_F32;
	struct rewrite_options options = compile_rewrite_options(o);
	return any && !rewrite_observes_f32(&options);
}

static bool is_quantising(const struct compilation *c)
{
	return compile_has_integers(c->model, c->options);
}

static bool is_splitting(const struct compilation *c)
{
	return c->options->accelerator == IMAGE_TARGET_VTA;
}

/* A service gives rows to requests by their own count. */
static bool is_not_continuous(const struct compilation *c)
{
	return !c->options->continuous;
}

static bool is_observing(const struct compilation *c)
{
	return c->options->observing;
}

static bool has_mutants(const struct compilation *c)
{
	return c->fusion.mutants > 0;
}

/* --- the table --- */

static const struct program_pass passes[] = {
#define REWRITE_PASS(name, when, meaning) {#name, when, rewrite_##name, NULL, NULL, 0, meaning},
#define MOVE_PASS(name, when, moving, meaning)                                                               \
	{#name, when, NULL, move_##name, NULL, offsetof(struct sched_fusion, moving), meaning},
#define SCHED_PASS(name, when, meaning) {#name, when, NULL, NULL, sched_##name, 0, meaning},
#include "compile/program_passes.def"
#undef REWRITE_PASS
#undef MOVE_PASS
#undef SCHED_PASS
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

/* False after a diagnostic. */
static bool apply_pass(const struct compilation *c, const struct program_pass *pass, struct sub_program *to,
		       const struct sub_program *from)
{
	struct rewrite_options options = compile_rewrite_options(c->options);
	const char *moving = (const char *)&c->fusion + pass->moving;
	if (pass->choose)
		return pass->choose(to, from, &c->fusion, c->options->math == REWRITE_EXACT, c->diags);
	if (pass->rewrite)
		pass->rewrite(to, from, &options, c->trace);
	else
		pass->move(to, from, *(const enum move_extent *)moving, &options, c->trace);
	return true;
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

bool compile_check_declared(struct arena *arena, struct diags *diags, const struct ra_model *model,
			    const struct sub_program *program, const struct rewrite_options *options)
{
	struct rewrite_refused r;
	if (!rewrite_find_refused(program, options, arena, &r))
		return true;
	const struct ra_param *p = &model->params.at[r.param];
	return diag_add(diags, DIAG_PRODUCTS_REFUSED, p->at, r.hint,
			"products with '%s' cannot be computed in %s: %s%s%s", p->name,
			precision_traits_of(p->products)->spelling, r.why, r.value ? ", here of " : "",
			r.value ? r.value : "");
}

static bool check_products(const struct compilation *c)
{
	struct rewrite_options options = compile_rewrite_options(c->options);
	return compile_check_declared(c->arena, c->diags, c->model, c->latest, &options);
}

bool compile_check_kept(const struct compilation *c)
{
	struct rewrite_options options = compile_rewrite_options(c->options);
	size_t products = 0;
	long unknown = split_find_unknown(c->latest, &options, c->arena, &products);
	if (unknown < 0)
		return true;
	struct str numbers = str_in(c->arena);
	if (products > 1)
		str_printf(&numbers, "its products have the numbers 0 to %zu; ", products - 1);
	else if (products == 1)
		str_puts(&numbers, "its one product has the number 0; ");
	str_puts(&numbers, "'espalier dump split' lists what the accelerator computes and what the host");
	return diag_add(c->diags, DIAG_NO_PRODUCT, (struct diag_at){0}, str_text(&numbers),
			"the host is to keep product %ld, but '%s' has %s", unknown, c->model->name,
			products ? "none of this number" : "no quantised products");
}

bool compile_run_program_pass(struct compilation *c, const struct program_pass *pass)
{
	struct sub_program next = c->spare;
	if (pass->rewrite == rewrite_quantise && !check_products(c))
		return false;
	if (pass->rewrite == rewrite_cut && !compile_check_kept(c))
		return false;
	sub_clear(&next);
	if (!apply_pass(c, pass, &next, c->latest))
		return false;
	c->spare = c->program;
	c->program = next;
	c->latest = &c->program;
	compile_note(c, pass->move ? "move" : pass->choose ? "sched" : "rewrite", pass->name);
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
		bool runs = passes[i].when(c);
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
