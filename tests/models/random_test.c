/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random models, each run in many variants: the oracle, the interpreter after every pass, compiled code,
 * other schedules; of passes those in the sample.
 *
 *     random_test [FIRST COUNT [EACH]]     seeds FIRST .. FIRST+COUNT-1; one in EACH is compiled, else all
 *
 * Without arguments ESPALIER_RANDOM says it, as in ESPALIER_RANDOM=1000x400x12; else there are some seeds
 * that are always the same. */
#include "ilir/passes.h"
#include "tests/models/bounded_input.h"
#include "tests/models/checked.h"
#include "tests/models/subject.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

/* The first seed is one from which on that many meet all that a schedule does with them; of these, one with scans is compiled. */
enum { SCHEDULES = 4, DRAWN = 4, FIRST = 120, SEEDS = SHADOWED ? 5 : 8, COMPILE_EACH = SHADOWED ? 5 : 41 };

static int typed, compared;    /* models that have types; of all, those that the oracle computed as well */
static int in_bf16, in_f16, integral; /* models that have products in bf16, in f16, in integers */
static int bounded;	      /* of the latter, those that have an input within a bound */
/* Models of which something left the recursion, or went to the children. */
static int hoisted, refactored, localised;

/* By one of them, with indices that are looked at before they are used. */
static void check_bounds(struct subject *s, struct option_texts o)
{
	o.backend = backend_at(0);
	programs += o.backend != NULL;
	if (o.backend && !agrees_by(compile_checked, &s->setting, &o))
		report(s, &o);
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
	return stage_has(s, "avx2", schedule, stage, declared);
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

static void check_run(struct subject *s, bool compile)
{
	struct test_run r;
	double worst;
	if (begin_subject(s, &r, 1)) {
		compared += !s->jumps;
		if (!s->jumps && !near_oracle(&s->setting, &r, 1e-3, &worst)) {
			printf("# error %g\n", worst);
			report(s, &base_options);
		}
		check_variants(s, compile);
	}
	end_subject(s, &r);
}

/* --- declared products --- */

/* In what the products of the model of a seed are declared, NULL = in nothing: half of the models, also those without a
 * structure. */
static const char *draw_products(uint64_t seed)
{
	static const char *const drawn[] = {" products i16", " products bf16", " products i8",  " products f16", " products bf16x1",
					    " products i8",  " products i8x3", " products i16", " products f16", " products bf16x3"};
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

/* Declares products as the seed says, in integers or in f16 beside an input within a bound; false where none can be. */
static bool draw_declared(struct text *t, const char *text, uint64_t seed, const char *sizes)
{
	const char *products = draw_products(seed);
	t->n = 0;
	put(t, "%s", text);
	if (products && needs_bound(products))
		put_bounded_input(t, seed, RA_MAX_RANK - 1, 1);
	if (!products || !declare_products(t, &products, 1, sizes))
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
	if (load_text(&s.model, "random", s.text, strlen(s.text), sizes))
		check_run(&s, compile);
	else
		report(&s, &(struct option_texts){.backend = "none", .target = "none"});
	free_model(&s.model);
	return s.failures == 0;
}

int main(int argc, char **argv)
{
	struct seeds s = read_seeds(argc, argv, (struct seeds){FIRST, SEEDS, COMPILE_EACH});
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
