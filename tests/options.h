/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The compile leg from options as texts, which tests write down. */
#ifndef ESPALIER_TESTS_OPTIONS_H
#define ESPALIER_TESTS_OPTIONS_H

#include "api/read_options.h"
#include "compile/compile.h"

/* As esp_program_options, and the last pass, with which the interpreter ends a compilation early. */
struct option_texts {
	int at;
	const char *backend, *target, *schedule, *last_pass, *math, *rules, *weights_as, *precision, *assume, *accelerator;
	uint64_t table_bytes;
	bool continuous;
	bool observing;
	const struct rewrite_calibration *calibration;
	const struct machine_known *machine; /* whom TARGET_NATIVE means; NULL = any of its best target */
};

/* In the arena; NULL after a diagnostic. */
static inline struct compile_options *read_option_texts(struct arena *a, struct diags *diags,
							const struct option_texts *t)
{
	struct compile_options *o = ARENA_NEW(a, struct compile_options);
	esp_program_options from = {.at = t->at,
				    .backend = t->backend,
				    .target = t->target,
				    .schedule = t->schedule,
				    .math = t->math,
				    .rules = t->rules,
				    .table_bytes = t->table_bytes,
				    .weights_as = t->weights_as,
				    .precision = t->precision,
				    .assume = t->assume,
				    .accelerator = t->accelerator};
	if (!api_read_options(a, diags, &from, o))
		return NULL;
	o->last_pass = t->last_pass;
	o->continuous = t->continuous;
	o->observing = t->observing;
	o->calibration = t->calibration;
	if (t->machine)
		compile_describe_machine(a, o, t->machine);
	return o;
}

static inline bool compile_image_as(struct arena *a, struct diags *diags, const struct ra_model *model,
				    const int64_t *sizes, const struct option_texts *texts,
				    struct image *image)
{
	const struct compile_options *o = read_option_texts(a, diags, texts);
	return o && compile_image(a, diags, model, sizes, o, image, NULL);
}

static inline bool compile_plan_as(struct arena *a, struct diags *diags, const struct ra_model *model,
				   const int64_t *sizes, const struct option_texts *texts,
				   struct sub_program *p, struct sched_plan *plan)
{
	const struct compile_options *o = read_option_texts(a, diags, texts);
	return o && compile_plan(a, diags, model, sizes, o, p, plan, NULL);
}

static inline bool compile_dump_as(struct arena *a, struct diags *diags, const struct ra_model *model,
				   const int64_t *sizes, const struct option_texts *texts, const char *stage,
				   struct str *s)
{
	const struct compile_options *o = read_option_texts(a, diags, texts);
	return o && compile_dump(a, diags, model, sizes, o, stage, s);
}

#endif
