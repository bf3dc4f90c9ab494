/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The compiler, from the model's graph to an image: one list of calls. */
#include "compile/compilation.h"

#include <string.h>

bool compile_goes_on(const struct compilation *c)
{
	const struct jit_watch *w = &c->options->watch;
	return !w->goes_on || w->goes_on(w->context, c->diags);
}

void compile_note(struct compilation *c, const char *stage, const char *what)
{
	if (c->times)
		c->clock = times_since(c->times, stage, what, c->clock);
}

/* --- stages --- */

bool compile_to_written(struct compilation *c)
{
	const char *text = c->options->schedule;
	sub_init(&c->written, c->arena, c->model->name);
	if (!sub_lower_model(&c->written, c->model, c->sizes, c->options->at, c->diags) ||
	    !sched_split_cases(&c->written, "schedule", text, strlen(text), c->diags))
		return false;
	compile_note(c, "subop", "lower");
	return compile_check_program(c, &c->written);
}

bool compile_to_plan(struct compilation *c)
{
	sched_make_plan(&c->plan, c->arena, &c->program, c->options->target, &c->fusion);
	return sched_verify(&c->plan, c->diags) && compile_goes_on(c);
}

bool compile_to_schedule(struct compilation *c)
{
	const char *text = c->options->schedule;
	if (!compile_to_plan(c))
		return false;
	compile_note(c, "sched", "plan");
	sched_choose(&c->sched, &c->plan, c->plan.target);
	if (c->options->continuous)
		sched_place_by_node(&c->sched);
	compile_note(c, "sched", "choose");
	if (!compile_goes_on(c))
		return false;
	return sched_read(&c->sched, &c->plan, "schedule", text, strlen(text), c->diags);
}

bool compile_to_loops(struct compilation *c)
{
	ilir_init(&c->module, c->arena, c->model->name);
	ilir_lower(&c->module, &c->tiling, &c->plan, &c->sched);
	compile_note(c, "ilir", "lower");
	bool ok = ilir_verify(&c->module, 0, "lower", c->diags);
	compile_note(c, "ilir", "  verify");
	return ok;
}

static bool run_pass(struct compilation *c, const struct ilir_pass *pass)
{
	if (!compile_goes_on(c))
		return false;
	pass->run(&c->module, &c->tiling);
	compile_note(c, "ilir", pass->name);
	c->properties |= pass->establishes;
	bool ok = ilir_verify(&c->module, c->properties, pass->name, c->diags);
	compile_note(c, "ilir", "  verify");
	return ok;
}

bool compile_run_passes(struct compilation *c, const char *last)
{
	for (int i = 0; ilir_pass_at(i); i++) {
		if (!run_pass(c, ilir_pass_at(i)))
			return false;
		if (last && strcmp(ilir_pass_at(i)->name, last) == 0)
			break;
	}
	return true;
}

/* --- all stages --- */

bool compile_plan(struct arena *arena, struct diags *diags, const struct ra_model *model,
		  const int64_t *sizes, const struct compile_options *options, struct sub_program *program,
		  struct sched_plan *plan, struct rewrite_trace *trace)
{
	struct compilation c = {.arena = arena,
				.diags = diags,
				.model = model,
				.sizes = sizes,
				.options = options,
				.trace = trace};
	if (!compile_to_written(&c) || !compile_run_program_passes(&c, NULL) || !compile_to_plan(&c))
		return false;
	*program = c.program;
	*plan = c.plan;
	plan->p = program;
	return true;
}

bool compile_to_products(struct arena *arena, struct diags *diags, const struct ra_model *model, const int64_t *sizes,
		      const struct compile_options *options, struct sub_program *program)
{
	struct compile_options unobserved = *options;
	struct compilation c = {.arena = arena, .diags = diags, .model = model, .sizes = sizes, .options = &unobserved};
	unobserved.observing = false;
	if (!compile_to_written(&c) || !compile_run_program_passes(&c, "observe"))
		return false;
	*program = c.program;
	return true;
}

struct compilation *compile_begin(struct arena *arena, struct diags *diags, const struct ra_model *model,
				  const int64_t *sizes, const struct compile_options *options,
				  struct image *image, struct times *times)
{
	struct compilation *c = ARENA_NEW(arena, struct compilation);
	*c = (struct compilation){.arena = arena,
				  .diags = diags,
				  .model = model,
				  .sizes = sizes,
				  .options = options,
				  .times = times,
				  .clock = times_clock()};
	*image = (struct image){0};
	if (!compile_to_written(c) || !compile_run_program_passes(c, NULL) || !compile_to_schedule(c))
		return NULL;
	compile_describe_interface(c, image);
	return c;
}

/* Copies the first half of a compilation; the second half allocates from another arena. */
static struct compilation second_half(const struct compilation *first, struct arena *arena,
				      struct diags *diags, struct times *times)
{
	struct compilation c = *first;
	c.arena = c.program.arena = arena;
	c.diags = diags;
	c.times = times;
	c.clock = times_clock();
	return c;
}

bool compile_finish(const struct compilation *first, struct arena *arena, struct diags *diags,
		    struct image *image, struct times *times)
{
	struct compilation c = second_half(first, arena, diags, times);
	c.plan.p = &c.program;
	const char *last = compile_interprets(c.options) ? c.options->last_pass : NULL;
	*image = (struct image){0};
	if (!compile_to_loops(&c))
		return false;
	if (!(last && strcmp(last, "lower") == 0) && !compile_run_passes(&c, last))
		return false;
	ilir_describe(&c.module, image);
	compile_describe_steps(&c, image);
	compile_describe_interface(&c, image);
	if (!compile_describe_calls(&c, image))
		return false;
	compile_note(&c, "image", "describe");
	return compile_to_code(&c, image);
}

bool compile_image(struct arena *arena, struct diags *diags, const struct ra_model *model,
		   const int64_t *sizes, const struct compile_options *options, struct image *image,
		   struct times *times)
{
	const struct compilation *first = compile_begin(arena, diags, model, sizes, options, image, times);
	return first && compile_runs_here(options, diags) &&
	       compile_finish(first, arena, diags, image, times) &&
	       compile_load(arena->allocator, diags, image, times);
}
