/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random models with products in integers that matrix registers compute, by schedules with tiles of up to as many rows as these
 * have: interpreted, and as code of each back end where the processor has AVX-512.  It need not have AMX (tests/jit/amx.h).  All give
 * the bits of the interpreter for a machine without matrix registers.
 *
 *     random_matrices_test [FIRST COUNT [EACH]]     seeds FIRST .. FIRST+COUNT-1; one in EACH is compiled, else all
 *
 * Without arguments ESPALIER_RANDOM says it, as for random_test. */
#include "ilir/passes.h"
#include "tests/models/cells.h"
#include "tests/models/subject.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

/* Structures: so many that levels fill matrix registers. */
enum { TIMES = 4 };
enum { FIRST = 1, SEEDS = 4, COMPILE_EACH = 4, DRAWN = 2, FEW = 5 };

static int by_matrices; /* models of which matrix registers compute a product */
static int wide;	/* tiles of more rows than vector registers hold that were taken */

/* --- schedules --- */

/* Whether a line is the tile of a group with sums, as the comment before it says. */
static bool is_tile_of_sums(const char *line, const char *comment)
{
	return strncmp(line, "tile ", 5) == 0 && !line_has(comment, " 0 reductions");
}

static int count_tiles(const char *printed)
{
	int n = 0;
	for (const char *line = printed, *before = line; line; before = line, line = behind(line, '\n'))
		n += is_tile_of_sums(line, before);
	return n;
}

/* A tile of rows of a matrix register for each group with sums, or for some of many, which may be refused, after a random schedule or
 * none. */
static void put_wide_tiles(struct subject *s, struct text *schedule, const char *printed, bool drawn)
{
	int tiles = count_tiles(printed);
	if (drawn) {
		put_schedule(schedule, printed, s->model.model);
		put(schedule, "vectorize 16\n");
	}
	for (const char *line = printed, *comment = line; line; comment = line, line = behind(line, '\n'))
		if (is_tile_of_sums(line, comment) && (tiles <= FEW || random_below(tiles) < FEW)) {
			size_t before = schedule->n;
			int rows = put_wide_tile(schedule, line);
			wide += takes_line(s, schedule, before, "amx") && rows > SCHED_MAX_NODES;
		}
}

static void check_wide_tiles(struct subject *s, const char *fuse, bool drawn, bool compile)
{
	static struct text schedule;
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	schedule.n = 0;
	put(&schedule, "%s", fuse);
	const char *printed = arena_guard(&a, &jump) ? NULL : planned(s, &a, fuse, "amx");
	if (printed) {
		put_wide_tiles(s, &schedule, printed, drawn);
		check_text(s, &schedule, "amx", compile);
	} else {
		report(s, &(struct option_texts){.backend = "none", .target = "amx", .schedule = fuse});
	}
	arena_free(&a);
}

/* --- one seed --- */

static void check_variants(struct subject *s, bool compile)
{
	static const char *const planners[] = {"", "fuse greedy\n", "fuse none\n", "hoist off\n", "refactor off\n", "local all\n"};
	static size_t turn;
	turn++;
	for (int i = 1; ilir_pass_at(i); i++)
		if (in_sample(i + turn))
			check(s, (struct option_texts){
				     .backend = "interpreter", .target = "amx", .last_pass = ilir_pass_at(i)->name});
	check(s, (struct option_texts){.backend = "interpreter", .target = "amx"});
	if (compile && executes_matrices)
		check_compiled(s, (struct option_texts){.target = "amx"});
	for (size_t i = 0; i < sizeof planners / sizeof *planners; i++) {
		if (in_sample(i + turn))
			check_schedule(s, planners[i], "amx", compile);
		if (!i || in_sample(i + turn + 1))
			check_wide_tiles(s, planners[i], i % 2, compile);
	}
	for (int i = 0; i < DRAWN; i++)
		check_drawn(s, "amx", compile);
}

/* A model with an input within a bound and of products in integers of 8, 16, or both numbers of bits, or of
 * two bytes, or in blocks of one or three products of bf16, or in part in f32: cells, or one of any operators. */
static const char *draw_narrow_model(struct text *t, uint64_t seed, char sizes[64])
{
	static struct generator g;
	static struct cells c;
	static const char *const products[3][5] = {{" products i8", " products i16", " products i8", NULL, " products i16"},
						   {" products i8x3", " products i8", " products i8x3", NULL, " products i16"},
						   {" products bf16x1", " products bf16x3", " products bf16x1", NULL, " products bf16x3"}};
	bool any = seed % 8 == 7;
	const char *text = any ? generate_model(&g, seed, sizes) : generate_cells(&c, seed, sizes);
	t->n = 0;
	put(t, "%s", text);
	if (any)
		put_bounded_input(t, seed, RA_MAX_RANK - 1, 1 + (int)(seed / 8 % 9));
	declare_products(t, products[seed / 16 % 3] + seed / 2 % 2, seed / 4 % 2 ? 1 : 4, sizes);
	return t->at;
}

static bool check_seed(uint64_t seed, bool compile)
{
	static struct text text;
	char sizes[64];
	struct subject s = {.seed = seed, .sizes = sizes};
	struct test_run r;
	s.text = draw_narrow_model(&text, seed, sizes);
	if (!load_text(&s.model, "random", s.text, strlen(s.text), sizes)) {
		report(&s, &(struct option_texts){.backend = "none", .target = "none"});
	} else if (stage_has(&s, "amx", "", "use_matrices", "matrix dot")) {
		by_matrices++;
		if (begin_subject(&s, &r, TIMES))
			check_variants(&s, compile);
		end_subject(&s, &r);
	}
	free_model(&s.model);
	return s.failures == 0;
}

int main(int argc, char **argv)
{
	struct seeds s = read_seeds(argc, argv, (struct seeds){FIRST, SEEDS, COMPILE_EACH});
	uint64_t right = 0;
	executes_matrices = amx_begin();
	skip_backends();
	for (uint64_t i = s.first; i < s.first + s.count; i++)
		right += check_seed(i, s.each && i % s.each == 0);
	tap_ok(right == s.count, "%llu of %llu random models from seed %llu on agree in the variants of the sample, %d programs ran, %d of them compiled",
	       (unsigned long long)right, s.count, s.first, programs, compiled);
	tap_ok(by_matrices && wide, "matrix registers compute products of %d models, %d tiles of more rows than vector registers hold are taken",
	       by_matrices, wide);
	if (executes_matrices && !cpu_permits_matrices() && compiled)
		tap_ok(amx.products, "%ld products were executed in place of the processor", amx.products);
	return tap_done();
}
