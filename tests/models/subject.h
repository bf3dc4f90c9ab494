/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A random model over one forest, and programs of it by other options and schedules, which must give the bits of the first. */
#ifndef ESPALIER_TESTS_MODELS_SUBJECT_H
#define ESPALIER_TESTS_MODELS_SUBJECT_H

#include "tests/jit/amx.h"
#include "tests/models/anyhow.h"
#include "tests/models/bounded_input.h"
#include "tests/models/schedules.h"

#include <stdlib.h>

enum { LINES = 6 }; /* that are drawn for a schedule */

static int programs, compiled; /* that ran; of these, by a back end */
/* Lines that were drawn: that were taken, that were refused. */
static int taken, refused;
static bool executes_matrices; /* code for the target amx can be run */

struct subject {
	struct setting setting;
	struct test_model model;
	const char *text, *sizes;
	uint64_t seed;
	int failures;
	bool jumps; /* results may be far from the oracle's */
};

static inline void print_lines(const char *title, const char *text)
{
	printf("# --- %s\n# ", title);
	for (; *text; text++)
		printf(*text == '\n' && text[1] ? "\n# " : "%c", *text);
	printf("\n");
}

static inline void report(struct subject *s, const struct option_texts *o)
{
	printf("# seed %llu, %s: backend %s, target %s, last pass %s\n", (unsigned long long)s->seed,
	       s->sizes, o->backend, o->target, o->last_pass ? o->last_pass : "none");
	if (!s->failures++)
		print_lines("model", s->text);
	if (o->schedule)
		print_lines("schedule", o->schedule);
}

/* Whether code for a target can be run: also that for matrix registers, where their instructions are executed in place of the
 * processor. */
static inline bool runs_here(const char *target)
{
	return target_runs_here(target_find(target)) || (executes_matrices && strcmp(target, "amx") == 0);
}

static inline void check(struct subject *s, struct option_texts o)
{
	compile_function *compile = executes_matrices && strcmp(o.target, "amx") == 0 ? compile_anyhow : compile_run;
	programs++;
	if (!agrees_by(compile, &s->setting, &o) || !amx_is_released())
		report(s, &o);
}

/* By each back end. */
static inline void check_compiled(struct subject *s, struct option_texts o)
{
	for (int i = 0; backend_at(i); i++) {
		o.backend = backend_at(i);
		compiled++;
		check(s, o);
	}
}

/* --- random schedules --- */

/* The schedule as it is printed, of the plan that is made for the target when it begins so; NULL when that is
 * refused. */
static inline const char *planned(struct subject *s, struct arena *a, const char *begins, const char *target)
{
	struct option_texts o = {.backend = "interpreter", .target = target, .schedule = begins};
	struct str printed = str_in(a);
	bool ok = compile_dump_as(a, &s->model.diags, s->model.model, s->model.sizes, &o, "sched", &printed);
	return ok ? str_text(&printed) : NULL;
}

static inline void check_text(struct subject *s, const struct text *schedule, const char *target, bool compile)
{
	struct option_texts o = {.backend = "interpreter", .target = target, .schedule = schedule->at};
	check(s, o);
	if (compile && runs_here(target))
		check_compiled(s, o);
}

/* One schedule, of the plan that is made for the target as the directive `fuse` says. */
static inline void check_schedule(struct subject *s, const char *fuse, const char *target, bool compile)
{
	static struct text schedule;
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	const char *printed = arena_guard(&a, &jump) ? NULL : planned(s, &a, fuse, target);
	if (printed) {
		schedule.n = 0;
		put(&schedule, "%s", fuse);
		put_schedule(&schedule, printed, s->model.model);
		check_text(s, &schedule, target, compile);
	} else {
		report(s, &(struct option_texts){.backend = "none", .target = target, .schedule = fuse});
	}
	arena_free(&a);
}

/* Whether the last line is taken; if not it goes again, and there must be a diagnostic that says so. */
static inline bool takes_line(struct subject *s, struct text *schedule, size_t before, const char *target)
{
	struct diags *d = &s->model.diags;
	struct arena a;
	jmp_buf jump;
	diags_free(d);
	diags_init(d, &allocator_default);
	arena_init(&a, &allocator_default);
	bool takes = !arena_guard(&a, &jump) && planned(s, &a, schedule->at, target) != NULL;
	arena_free(&a);
	taken += takes;
	refused += !takes;
	if (!takes && (d->n != 1 || d->at[0].id != DIAG_ILLEGAL_SCHEDULE)) {
		print_diags(d);
		report(s, &(struct option_texts){
			      .backend = "none", .target = target, .schedule = schedule->at});
	}
	if (!takes)
		schedule->at[schedule->n = before] = 0;
	return takes;
}

/* A schedule of lines that are drawn, each of which is legal after those before it or refused. */
static inline void check_drawn(struct subject *s, const char *target, bool compile)
{
	static struct text schedule;
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	schedule.at[schedule.n = 0] = 0;
	if (!arena_guard(&a, &jump))
		for (int i = 0; i < LINES; i++) {
			size_t before = schedule.n;
			put_drawn(&schedule, planned(s, &a, schedule.at, target));
			takes_line(s, &schedule, before, target);
		}
	if (schedule.n)
		check_text(s, &schedule, target, compile);
	arena_free(&a);
}

/* Whether the text after a stage has these words. */
static inline bool stage_has(struct subject *s, const char *target, const char *schedule, const char *stage, const char *words)
{
	struct option_texts o = {.backend = "interpreter", .target = target, .schedule = schedule};
	struct arena a;
	jmp_buf jump;
	volatile bool has = false;
	arena_init(&a, &allocator_default);
	struct str text = str_in(&a);
	if (!arena_guard(&a, &jump))
		has = compile_dump_as(&a, &s->model.diags, s->model.model, s->model.sizes, &o, stage, &text) &&
		      strstr(str_text(&text), words);
	arena_free(&a);
	return has;
}

/* --- the forest --- */

/* What has become infinite or huge is no test of anything, but for integers. */
static inline bool tame(const struct setting *s, const struct test_run *r)
{
	for (int64_t i = 0; i < s->count; i++)
		if (type_of_result(r, s->forest.nodes, s->forest.minibatch.forest.inputs, i) == DTYPE_F32 &&
		    !(fabs(s->expected[i]) < 1e5))
			return false;
	return true;
}

/* Several structures of a few nodes, one of many, many of few; any, deep ones, wide ones; so many times as many. */
static inline void shape_forest(struct test_forest *f, const struct image *image, uint64_t seed, int times)
{
	static const struct {
		int inputs, size;
		enum forest_shape shape;
	} forests[] = {{3, 9, FOREST_ANY}, {1, 24, FOREST_ANY},	 {2, 14, FOREST_DEEP},
		       {9, 4, FOREST_ANY}, {2, 18, FOREST_WIDE}, {4, 1, FOREST_ANY}};
	size_t i = seed % (sizeof forests / sizeof *forests);
	make_shaped_forest(f, image, times * forests[i].inputs, forests[i].size, forests[i].shape);
}

/* What all others are compared with. */
static const struct option_texts base_options = {.backend = "interpreter", .target = "avx2", .last_pass = "infer_bounds"};

/* Runs the model over a forest of so many times the structures of the seed, for the bits that all programs of it must give; false
 * where it does not run, or its values are not tame. */
static inline bool begin_subject(struct subject *s, struct test_run *r, int times)
{
	struct setting *at = &s->setting;
	at->model = &s->model;
	programs++;
	if (!start_run(r, &s->model, &base_options)) {
		report(s, &base_options);
		return false;
	}
	shape_forest(&at->forest, &r->image, s->seed, times);
	if (!begin_setting(at, r)) {
		report(s, &base_options);
		return false;
	}
	bool is_tame = tame(at, r);
	if (!is_tame)
		printf("# seed %llu: values are not tame\n", (unsigned long long)s->seed);
	return is_tame;
}

static inline void end_subject(struct subject *s, struct test_run *r)
{
	end_setting(&s->setting);
	end_run(r);
}

/* --- declared products --- */

/* Whether the model with a text can be compiled. */
static inline bool compiles(const char *text, const char *sizes)
{
	struct subject s = {.sizes = sizes};
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	bool ok = load_text(&s.model, "random", text, strlen(text), sizes) && !arena_guard(&a, &jump) &&
		  planned(&s, &a, NULL, "avx2");
	free_model(&s.model);
	arena_free(&a);
	return ok;
}

/* Declares products with each parameter, where they can be: one after another as n texts say, NULL = does not; returns how many
 * are. */
static inline int declare_products(struct text *t, const char *const *products, int n, const char *sizes)
{
	int declared = 0, param = 0;
	for (char *line = strstr(t->at, "\nparam "); line; line = strstr(line + 1, "\nparam ")) {
		const char *what = products[param++ % n];
		size_t end = line + 1 + strcspn(line + 1, "\n") - t->at, length = what ? strlen(what) : 0;
		if (!what)
			continue;
		if (!insert_text(t, end, what))
			break;
		if (compiles(t->at, sizes)) {
			declared++;
			continue;
		}
		memmove(t->at + end, t->at + end + length, t->n + 1 - end - length);
		t->n -= length;
	}
	return declared;
}

/* --- seeds --- */

/* FIRST, COUNT and EACH. */
struct seeds {
	unsigned long long first, count, each;
};

/* What the arguments say, or ESPALIER_RANDOM, or else the usual ones. */
static inline struct seeds read_seeds(int argc, char **argv, struct seeds usual)
{
	struct seeds s = {.each = 1};
	const char *text = getenv("ESPALIER_RANDOM");
	if (argc > 2)
		return (struct seeds){strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10),
				      argc > 3 ? strtoull(argv[3], NULL, 10) : 1};
	return text && sscanf(text, "%llux%llux%llu", &s.first, &s.count, &s.each) >= 2 ? s : usual;
}

#endif
