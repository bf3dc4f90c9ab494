/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Times the tiles that the cost model chose against all others that it may choose.
 *
 * Groups are separate loop nests, so the best tile of each is searched alone. All tiles of a group run for
 * a short time against the chosen one. The best of them run again for longer, at several places in memory,
 * and the best of these is tried with other unrolling factors. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FINAL = 6 /* tiles of the second round */ };

static const double matters = 0.02; /* of a run's time: groups that take less are left out */

struct exhaustive {
	struct bench *bench;
	struct subject *chosen;
	struct contest quick, thorough;
	struct directives best; /* of all groups so far */
};

/* A tile, and its time over that of the chosen tile. */
struct tried {
	const struct option *option;
	double ratio;
};

/* A schedule that the library refuses has the ratio INFINITY. */
static int measure_schedule(const struct exhaustive *x, const struct contest *c, const char *schedule,
			    double *ratio)
{
	struct subject s;
	struct outcome o;
	esp_error *error;
	*ratio = INFINITY;
	if (subject_join(&s, x->chosen, x->bench->options, schedule, &error)) {
		esp_error_free(error);
		return 0;
	}
	int status = contest_run(c, x->chosen, &s, &o);
	if (!status && o.differs)
		complain("'%s' changes results", schedule);
	else if (!status)
		*ratio = o.challenger / o.holder;
	subject_close(&s);
	return status;
}

static int by_ratio(const void *x, const void *y)
{
	const struct tried *a = x, *b = y;
	return (a->ratio > b->ratio) - (a->ratio < b->ratio);
}

static int measure_all(const struct exhaustive *x, const struct contest *c, struct tried *all, size_t n)
{
	int status = 0;
	for (size_t i = 0; i < n && !status && !interrupt_noted(); i++)
		status = measure_schedule(x, c, all[i].option->line, &all[i].ratio);
	qsort(all, n, sizeof *all, by_ratio);
	return status;
}

/* Times the tiles of a block and sorts them, the fastest first; *n is their number. */
static int search_block(const struct exhaustive *x, const struct block *b, struct tried *all, size_t *n)
{
	*n = 0;
	for (size_t i = 1; i < b->options; i++)
		if (!isnan(b->option[i].predicted))
			all[(*n)++] = (struct tried){&b->option[i], INFINITY};
	int status = measure_all(x, &x->quick, all, *n);
	if (!status)
		status = measure_all(x, &x->thorough, all, *n < FINAL ? *n : FINAL);
	return status;
}

static void print_group(const struct block *b, size_t tried, const struct tried *best, double share)
{
	const struct option *chosen = &b->option[0], *found = best->ratio < 1 ? best->option : chosen;
	printf("{\"group\": ");
	write_json_string(stdout, block_group(b));
	printf(", \"share\": %.3f, \"tiles\": %zu, \"chosen\": ", share, tried + 1);
	write_json_string(stdout, chosen->line);
	printf(", \"predicted\": %.4f, \"best\": ", chosen->predicted);
	write_json_string(stdout, found->line);
	printf(", \"best_predicted\": %.4f, \"time_over_chosen\": %.4f}\n", found->predicted,
	       fmin(1, best->ratio));
	fflush(stdout);
}

/* Tries other unrolling factors of the best tile. The library lists them only for the tile that a schedule
 * has, so a program with that tile is made first. */
static int unroll_best(struct exhaustive *x, const char *key, const char *line, double ratio)
{
	struct space space;
	struct subject s;
	esp_error *error;
	esp_status refused = subject_join(&s, x->chosen, x->bench->options, line, &error);
	int status = refused ? report_failure(refused, error) : space_of(&space, s.objects.program);
	if (refused)
		return status;
	const struct block *b = status ? NULL : space_find(&space, key);
	for (size_t i = 0; b && i < b->options && !status; i++) {
		double found = ratio;
		if (i && b->option[i].predicted == b->option[0].predicted)
			status = measure_schedule(x, &x->thorough, b->option[i].line, &found);
		if (found < ratio && directives_set(&x->best, key, b->option[i].line, false))
			ratio = found;
	}
	space_free(&space);
	subject_close(&s);
	return status;
}

static int search_group(struct exhaustive *x, const struct block *b, double share)
{
	size_t n = 0;
	struct tried *all = calloc(b->options, sizeof *all);
	if (!all) {
		complain("no memory for the tiles of a group");
		return EXIT_INPUT;
	}
	int status = search_block(x, b, all, &n);
	if (!status && n) {
		print_group(b, n, &all[0], share);
		bool better =
		    all[0].ratio < 1 && directives_set(&x->best, b->key, all[0].option->line, false);
		status = unroll_best(x, b->key, (better ? all[0].option : &b->option[0])->line,
				     better ? all[0].ratio : 1);
	}
	free(all);
	return status;
}

static int search_groups(struct exhaustive *x)
{
	struct space space;
	int status = space_of(&space, x->chosen->objects.program);
	for (size_t i = 0; i < space.blocks && !status && !interrupt_noted(); i++) {
		const struct block *b = &space.block[i];
		double share = 0;
		if (block_group(b) && !isnan(b->option[0].predicted))
			status = contest_share(&x->quick, x->chosen, block_group(b), &share);
		if (!status && share >= matters)
			status = search_group(x, b, share);
	}
	space_free(&space);
	return status;
}

/* Times the best tiles of all groups together. */
static int judge_best(struct exhaustive *x)
{
	double ratio = 1;
	char *text = directives_text(&x->best);
	struct contest last = x->thorough;
	last.places *= 2;
	int status = text ? 0 : EXIT_INPUT;
	if (!status && x->best.n)
		status = measure_schedule(x, &last, text, &ratio);
	free(text);
	if (status)
		return status;
	printf("{\"model\": ");
	write_json_string(stdout, esp_model_describe(x->chosen->objects.model)->name);
	printf(", \"best_over_chosen\": %.4f, \"loss_percent\": %.2f}\n", ratio,
	       100 * fmax(0, 1 / ratio - 1));
	return 0;
}

int bench_exhaustive(struct bench *b)
{
	struct contest c = {.batch = b->batches.at[0],
			    .minibatches = b->options->minibatches,
			    .seconds = 0.03,
			    .hopeless = 1.05};
	struct exhaustive x = {.bench = b, .chosen = &b->subject[0], .quick = c, .thorough = c};
	x.thorough.seconds = 0.1;
	x.thorough.places = 4;
	x.thorough.hopeless = 2;
	interrupt_note();
	int status = search_groups(&x);
	if (!status)
		status = judge_best(&x);
	directives_free(&x.best);
	return status;
}
