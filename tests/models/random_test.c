/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random models, each run in many variants: the oracle, the interpreter after every pass, compiled code,
 * other schedules; of passes those in the sample.
 *
 *     random_test [FIRST COUNT [EACH]]     seeds FIRST .. FIRST+COUNT-1; one in EACH is compiled, else all
 *
 * Without arguments ESPALIER_RANDOM says it, as in ESPALIER_RANDOM=1000x400x12; else there are some seeds
 * that are always the same. */
#include "ilir/passes.h"
#include "tests/models/agree.h"
#include "tests/models/bounded_input.h"
#include "tests/models/checked.h"
#include "tests/models/schedules.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

#include <stdlib.h>

/* The first seed is one from which on that many meet all that a schedule does with them; of these, one with scans is compiled. */
enum { SCHEDULES = 4, DRAWN = 4, LINES = 6, FIRST = 120, SEEDS = SHADOWED ? 5 : 8, COMPILE_EACH = SHADOWED ? 5 : 41 };

static int programs, compiled; /* that ran; of these, by a back end */
static int typed, compared;    /* models that have types; of all, those that the oracle computed as well */
/* Lines that were drawn: that were taken, that were refused. */
static int taken, refused;
static int in_bf16, in_f16, integral; /* models that have products in bf16, in f16, in integers */
static int bounded;	      /* of the latter, those that have an input within a bound */
/* Models of which something left the recursion, or went to the children. */
static int hoisted, refactored, localised;

struct subject {
	struct setting setting;
	struct test_model model;
	const char *text, *sizes;
	uint64_t seed;
	int failures;
	bool jumps; /* results may be far from the oracle's */
};

static void print_lines(const char *title, const char *text)
{
	printf("# --- %s\n# ", title);
	for (; *text; text++)
		printf(*text == '\n' && text[1] ? "\n# " : "%c", *text);
	printf("\n");
}

static void report(struct subject *s, const struct option_texts *o)
{
	printf("# seed %llu, %s: backend %s, target %s, last pass %s\n", (unsigned long long)s->seed,
	       s->sizes, o->backend, o->target, o->last_pass ? o->last_pass : "none");
	if (!s->failures++)
		print_lines("model", s->text);
	if (o->schedule)
		print_lines("schedule", o->schedule);
}

static void check(struct subject *s, struct option_texts o)
{
	programs++;
	if (!agrees(&s->setting, &o))
		report(s, &o);
}

/* By each back end. */
static void check_compiled(struct subject *s, struct option_texts o)
{
	for (int i = 0; backend_at(i); i++) {
		o.backend = backend_at(i);
		compiled++;
		check(s, o);
	}
}

/* By one of them, with indices that are looked at before they are used. */
static void check_bounds(struct subject *s, struct option_texts o)
{
	o.backend = backend_at(0);
	programs += o.backend != NULL;
	if (o.backend && !agrees_by(compile_checked, &s->setting, &o))
		report(s, &o);
}

/* --- random schedules --- */

/* The schedule as it is printed, of the plan that is made for the target when it begins so; NULL when that is
 * refused. */
static const char *planned(struct subject *s, struct arena *a, const char *begins, const char *target)
{
	struct option_texts o = {.backend = "interpreter", .target = target, .schedule = begins};
	struct str printed = str_in(a);
	bool ok = compile_dump_as(a, &s->model.diags, s->model.model, s->model.sizes, &o, "sched", &printed);
	return ok ? str_text(&printed) : NULL;
}

static void check_text(struct subject *s, const struct text *schedule, const char *target, bool compile)
{
	struct option_texts o = {.backend = "interpreter", .target = target, .schedule = schedule->at};
	check(s, o);
	if (compile && target_runs_here(target_find(target)))
		check_compiled(s, o);
}

/* One schedule, of the plan that is made for the target as the directive `fuse` says. */
static void check_schedule(struct subject *s, const char *fuse, const char *target, bool compile)
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
static bool takes_line(struct subject *s, struct arena *a, struct text *schedule, size_t before,
		       const char *target)
{
	struct diags *d = &s->model.diags;
	diags_free(d);
	diags_init(d, &allocator_default);
	bool takes = planned(s, a, schedule->at, target) != NULL;
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
static void check_drawn(struct subject *s, const char *target, bool compile)
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
			taken += takes_line(s, &a, &schedule, before, target);
		}
	if (schedule.n)
		check_text(s, &schedule, target, compile);
	arena_free(&a);
}

/* The schedule that is chosen, and n others. */
static void check_schedules(struct subject *s, const char *fuse, int n, bool compile)
{
	check(s, (struct option_texts){.backend = "interpreter", .target = "avx2", .schedule = fuse});
	for (int i = 0; i < n; i++)
		check_schedule(s, fuse, i % 2 ? "avx512" : i % 4 ? "generic" : "avx2", compile);
}

/* Whether a directive finds anything to move: after the stage of its name there is a declaration of that. */
static bool can_move(struct subject *s, const char *schedule, const char *stage, const char *declared)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct arena a;
	jmp_buf jump;
	volatile bool can = false;
	arena_init(&a, &allocator_default);
	struct str text = str_in(&a);
	if (!arena_guard(&a, &jump))
		can = compile_dump_as(&a, &s->model.diags, s->model.model, s->model.sizes, &o, stage, &text) &&
		      strstr(str_text(&text), declared);
	arena_free(&a);
	return can;
}

/* --- one seed --- */

static void check_variants(struct subject *s, bool compile)
{
	static size_t turn;
	turn++;
	for (int i = 1; ilir_pass_at(i); i++)
		if (in_sample(i + turn))
			check(s, (struct option_texts){
				     .backend = "interpreter", .target = "avx2", .last_pass = ilir_pass_at(i)->name});
	check(s, (struct option_texts){.backend = "interpreter", .target = "avx512"});
	check(s, (struct option_texts){.backend = "interpreter", .target = "amx"});
	check(s, (struct option_texts){.backend = "interpreter", .target = "generic"});
	if (compile) {
		check_compiled(s, (struct option_texts){.target = "native"});
		check_compiled(s, (struct option_texts){.target = "generic"});
		check_bounds(s, (struct option_texts){.target = "native"});
	}
	static const char *const planners[] = {"",
					       "fuse grow always\n",
					       "fuse grow never\n",
					       "fuse greedy\n",
					       "fuse none\n",
					       "hoist off\n",
					       "refactor off\n"};
	for (int i = 0; i < 7; i++)
		check_schedules(s, planners[i], i ? 1 : SCHEDULES, compile);
	for (int i = 0; i < DRAWN; i++)
		check_drawn(s, i % 2 ? "generic" : "avx2", compile);
	if (can_move(s, "refactor all\n", "refactor", "\nderived ")) {
		refactored++;
		check_schedules(s, "refactor all\n", 1, compile);
		check_schedules(s, "refactor all\nfuse none\n", 1, compile);
	}
	if (can_move(s, "hoist all\n", "hoist", "\nhoisted ")) {
		hoisted++;
		check_schedules(s, "hoist all\n", 1, compile);
		check_schedules(s, "hoist all\nfuse none\n", 1, compile);
	}
	static const char *const local[] = {"local all\n", "local all\nfuse greedy\n"};
	for (int i = 0; i < 2; i++)
		if (can_move(s, local[i], "sched", ", computed by its readers\n")) {
			localised++;
			check_schedules(s, local[i], 1, compile);
		}
}

/* What has become infinite or huge is no test of anything, but for integers. */
static bool tame(const struct setting *s, const struct test_run *r)
{
	for (int64_t i = 0; i < s->count; i++)
		if (type_of_result(r, s->forest.nodes, s->forest.minibatch.forest.inputs, i) == DTYPE_F32 &&
		    !(fabs(s->expected[i]) < 1e5))
			return false;
	return true;
}

/* Several structures of a few nodes, one of many, many of few; any, deep ones, wide ones. */
static void shape_forest(struct test_forest *f, const struct image *image, uint64_t seed)
{
	static const struct {
		int inputs, size;
		enum forest_shape shape;
	} forests[] = {{3, 9, FOREST_ANY}, {1, 24, FOREST_ANY},	 {2, 14, FOREST_DEEP},
		       {9, 4, FOREST_ANY}, {2, 18, FOREST_WIDE}, {4, 1, FOREST_ANY}};
	size_t i = seed % (sizeof forests / sizeof *forests);
	make_shaped_forest(f, image, forests[i].inputs, forests[i].size, forests[i].shape);
}

static void check_run(struct subject *s, bool compile)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .last_pass = "infer_bounds"};
	struct setting *at = &s->setting;
	struct test_run r;
	double worst;
	programs++;
	if (!start_run(&r, &s->model, &o)) {
		report(s, &o);
		end_run(&r);
		return;
	}
	shape_forest(&at->forest, &r.image, s->seed);
	if (!run_forest(&r, &at->forest.minibatch)) {
		report(s, &o);
	} else {
		at->expected =
		    gather_outputs(&r, at->forest.nodes, at->forest.minibatch.forest.inputs, &at->count);
		if (!tame(at, &r)) {
			printf("# seed %llu: values are not tame\n", (unsigned long long)s->seed);
		} else {
			compared += !s->jumps;
			if (!s->jumps && !near_oracle(at, &r, 1e-3, &worst)) {
				printf("# error %g\n", worst);
				report(s, &o);
			}
			check_variants(s, compile);
		}
	}
	free(at->expected);
	free_forest(&at->forest);
	end_run(&r);
}

/* --- declared products --- */

/* Whether the model with a text can be compiled. */
static bool compiles(const char *text, const char *sizes)
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

/* In what the products of the model of a seed are declared, NULL = in nothing: half of the models, also those without a
 * structure. */
static const char *draw_products(uint64_t seed)
{
	static const char *const drawn[] = {" products i16", " products bf16", " products i8",  " products f16",
					    " products i8",  " products bf16", " products i16", " products f16"};
	return seed % 2 ? drawn[seed / 2 % (sizeof drawn / sizeof *drawn)] : NULL;
}

static bool is_integral(const char *products)
{
	return strstr(products, " i");
}

/* Whether products are declared in integers or in f16, which need a bound of what they multiply. */
static bool needs_bound(const char *products)
{
	return !strstr(products, " bf16");
}

/* Declares in what products with each parameter are, where they can be; returns how many are. */
static int declare_products(struct text *t, const char *products, const char *sizes)
{
	int declared = 0;
	for (char *line = strstr(t->at, "\nparam "); line; line = strstr(line + 1, "\nparam ")) {
		size_t end = line + 1 + strcspn(line + 1, "\n") - t->at, n = strlen(products);
		if (!insert_text(t, end, products))
			break;
		if (compiles(t->at, sizes)) {
			declared++;
			continue;
		}
		memmove(t->at + end, t->at + end + n, t->n + 1 - end - n);
		t->n -= n;
	}
	return declared;
}

/* Declares products as the seed says, in integers or in f16 beside an input within a bound; false where none can be. */
static bool draw_declared(struct text *t, const char *text, uint64_t seed, const char *sizes)
{
	const char *products = draw_products(seed);
	t->n = 0;
	put(t, "%s", text);
	if (products && needs_bound(products))
		put_bounded_input(t, seed, RA_MAX_RANK - 1);
	if (!products || !declare_products(t, products, sizes))
		return false;
	in_bf16 += !needs_bound(products);
	in_f16 += needs_bound(products) && !is_integral(products);
	integral += is_integral(products);
	bounded += needs_bound(products) && strstr(t->at, "input bounded");
	return true;
}

static bool check_seed(uint64_t seed, bool compile)
{
	static struct generator g;
	static struct text declared;
	char sizes[64];
	struct subject s = {.seed = seed, .sizes = sizes};
	s.text = generate_model(&g, seed, sizes);
	s.jumps = g.jumps;
	typed += g.typed;
	if (draw_declared(&declared, s.text, seed, sizes)) {
		s.text = declared.at;
		s.jumps = true; /* what the oracle computes is far from products that are rounded */
	}
	s.setting.model = &s.model;
	if (load_text(&s.model, "random", s.text, strlen(s.text), sizes))
		check_run(&s, compile);
	else
		report(&s, &(struct option_texts){.backend = "none", .target = "none"});
	free_model(&s.model);
	return s.failures == 0;
}

/* FIRST, COUNT and EACH. */
struct seeds {
	unsigned long long first, count, each;
};

static struct seeds asked(int argc, char **argv)
{
	struct seeds usual = {FIRST, SEEDS, COMPILE_EACH}, s = {.each = 1};
	const char *text = getenv("ESPALIER_RANDOM");
	if (argc > 2)
		return (struct seeds){strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10),
				      argc > 3 ? strtoull(argv[3], NULL, 10) : 1};
	return text && sscanf(text, "%llux%llux%llu", &s.first, &s.count, &s.each) >= 2 ? s : usual;
}

int main(int argc, char **argv)
{
	struct seeds s = asked(argc, argv);
	uint64_t right = 0;
	skip_backends();
	for (uint64_t i = s.first; i < s.first + s.count; i++)
		right += check_seed(i, s.each && i % s.each == 0);
	tap_ok(right == s.count,
	       "%llu of %llu random models from seed %llu on agree in the variants of the sample, %d typed, "
	       "%d computed by the oracle, %d with products in bf16, %d in f16, %d in integers (%d of an input within a bound): "
	       "%d programs ran, %d of them compiled",
	       (unsigned long long)right, s.count, s.first, typed, compared, in_bf16, in_f16, integral, bounded, programs,
	       compiled);
	tap_ok(taken && refused, "of the lines that are drawn from directives %d are taken, %d refused",
	       taken, refused);
	if (SAMPLE == 1 && s.first == FIRST && s.count == SEEDS)
		tap_ok(in_bf16 && in_f16 && integral && bounded, "products in bf16, in f16 and in integers are drawn, also of inputs within bounds");
	if (SAMPLE == 1 && s.first == FIRST && s.count == SEEDS)
		tap_ok(hoisted && refactored && localised,
		       "%d programs were hoisted, %d refactored, %d have local groups", hoisted, refactored,
		       localised);
	return tap_done();
}
