/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Times the tiles that the cost model chose against all others that it may choose.
 *
 * Groups are separate loop nests, so the best tile of each is searched alone. Of the tiles with the same
 * greatest size the most promising one runs first, for a short time, alternately with the chosen tile.
 * Where it is slower than the best by a margin, the others with that size are dropped; elsewhere they run as
 * well. The best run again for longer, at several places in memory, until no round finds a less time, and the
 * best of these is tried with other unrolling factors. */
#include "bench/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	FINAL = 6,	/* tiles that run for longer */
	MOST_ROUNDS = 5 /* of these */
};

static const double matters = 0.02; /* of a run's time: groups that take less are left out */
static const double settled = 0.995; /* a round that lowers no time by more is the last */

struct exhaustive {
	struct bench *bench;
	struct subject *chosen;
	struct contest quick, thorough;
	double margin;		/* times the best: what takes longer is dropped */
	struct directives best; /* of all groups so far */
};

/* A schedule that the library refuses, or that changes results, has times of INFINITY. */
static int measure_schedule(const struct exhaustive *x, const struct contest *c, const char *schedule,
			    struct outcome *o)
{
	struct subject s;
	esp_error *error;
	*o = (struct outcome){.holder = INFINITY, .challenger = INFINITY};
	if (subject_join(&s, x->chosen, x->bench->options, schedule, &error)) {
		esp_error_free(error);
		return 0;
	}
	int status = contest_run(c, x->chosen, &s, o);
	if (!status && o->differs) {
		complain("'%s' changes results", schedule);
		o->challenger = INFINITY;
	}
	subject_close(&s);
	return status;
}

/* Lowers the times of a tile; *lower, whether it or the chosen one ran much faster than before. */
static int measure_candidate(const struct exhaustive *x, const struct contest *c, struct candidate *of,
			     bool *lower)
{
	struct outcome o;
	int status = measure_schedule(x, c, of->option->line, &o);
	if (status || isinf(o.challenger)) {
		of->fate = FATE_REFUSED;
		of->challenger = INFINITY;
		return status;
	}
	*lower |= o.challenger < settled * of->challenger || o.holder < settled * of->holder;
	of->challenger = fmin(of->challenger, o.challenger);
	of->holder = fmin(of->holder, o.holder);
	return 0;
}

/* Times, for a short time, the tiles that stand for others, or those that are left. */
static int race(const struct exhaustive *x, struct candidates *all, bool first)
{
	bool lower = false;
	int status = 0;
	for (size_t i = 0; i < all->n && !status && !interrupt_noted(); i++) {
		struct candidate *c = &all->at[i];
		bool due = !first || candidate_stands_for_others(all, i);
		if (due && c->fate == FATE_TIMED && isinf(c->challenger))
			status = measure_candidate(x, &x->quick, c, &lower);
	}
	candidates_drop(all, x->margin);
	return status;
}

/* Times the best for longer, until their times are settled. */
static int settle(const struct exhaustive *x, struct candidates *all)
{
	bool lower = true;
	int status = 0;
	candidates_sort(all);
	for (int round = 0; round < MOST_ROUNDS && lower && !status; round++) {
		lower = false;
		for (size_t i = 0; i < all->n && i < FINAL && !status && !interrupt_noted(); i++) {
			struct candidate *c = &all->at[i];
			if (round == 0)
				c->challenger = c->holder = INFINITY;
			if (c->fate == FATE_TIMED)
				status = measure_candidate(x, &x->thorough, c, &lower);
		}
	}
	candidates_sort(all);
	return status;
}

/* What is dropped of a group whose calls compute at most so many rows. A call of another thread, or of a
 * minibatch that was not recorded, may have more. */
static struct limits limits_of(const struct exhaustive *x, int64_t rows)
{
	const struct options *options = x->bench->options;
	bool known = x->chosen->threads == 1 && options->minibatches == 1;
	double within = options->within > 0 ? 1 + options->within / 100 : INFINITY;
	return (struct limits){within, known ? rows : INT64_MAX};
}

/* Sorts the tiles of a block, the fastest first. */
static int search_block(const struct exhaustive *x, const struct block *b, int64_t rows,
			struct candidates *all)
{
	struct limits l = limits_of(x, rows);
	if (!candidates_list(all, b, &l))
		return EXIT_INPUT;
	int status = race(x, all, true);
	if (!status)
		status = race(x, all, false);
	return status ? status : settle(x, all);
}

/* The best tile of a group: the fastest that was found, or the chosen one. */
struct winner {
	const struct option *option; /* before its unrolling factor was searched */
	double ratio;		     /* its time over that of the chosen one */
};

static const char *best_line(const struct exhaustive *x, const struct block *b)
{
	for (size_t i = 0; i < x->best.n; i++)
		if (strcmp(x->best.at[i].key, b->key) == 0)
			return x->best.at[i].line;
	return b->option[0].line;
}

static double loss_percent(double ratio)
{
	return 100 * fmax(0, 1 / ratio - 1);
}

static void print_group(const struct exhaustive *x, const struct block *b, const struct candidates *all,
			const struct winner *w, double share)
{
	if (loss_percent(w->ratio) < x->bench->options->above)
		return;
	printf("{\"group\": ");
	write_json_string(stdout, block_group(b));
	printf(", \"share\": %.3f, \"tiles\": %zu, \"fates\": ", share, all->n + 1);
	candidates_print(all, stdout);
	printf(", \"chosen\": ");
	write_json_string(stdout, b->option[0].line);
	printf(", \"predicted\": %.4f, \"best\": ", b->option[0].predicted);
	write_json_string(stdout, best_line(x, b));
	printf(", \"best_predicted\": %.4f, \"time_over_chosen\": %.4f, \"loss_percent\": %.2f}\n",
	       w->option->predicted, w->ratio, loss_percent(w->ratio));
	fflush(stdout);
}

/* Makes a line the best so far when it is. */
static void keep_faster(struct exhaustive *x, const char *key, const char *line, double ratio,
			struct winner *w)
{
	if (ratio < w->ratio && directives_set(&x->best, key, line, false))
		w->ratio = ratio;
}

/* Tries other unrolling factors of the best tile, but for the chosen line. The library lists them only for
 * the tile that a schedule has, so a program with that tile is made first. */
static int unroll_best(struct exhaustive *x, const struct block *searched, struct winner *w)
{
	const char *key = searched->key, *chosen = searched->option[0].line;
	struct space space;
	struct subject s;
	esp_error *error;
	esp_status refused = subject_join(&s, x->chosen, x->bench->options, w->option->line, &error);
	int status = refused ? report_failure(refused, error) : space_of(&space, s.objects.program);
	if (refused)
		return status;
	const struct block *b = status ? NULL : space_find(&space, key);
	for (size_t i = 1; b && i < b->options && !status; i++) {
		struct outcome o;
		if (b->option[i].predicted != b->option[0].predicted || strcmp(b->option[i].line, chosen) == 0)
			continue;
		status = measure_schedule(x, &x->thorough, b->option[i].line, &o);
		if (!status && isfinite(o.challenger))
			keep_faster(x, key, b->option[i].line, o.challenger / o.holder, w);
	}
	space_free(&space);
	subject_close(&s);
	return status;
}

static int search_group(struct exhaustive *x, const struct block *b, const struct kernels *k)
{
	struct candidates all;
	struct winner w = {&b->option[0], 1};
	int status = search_block(x, b, k->rows, &all);
	if (!status && all.n && candidate_ratio(&all.at[0]) < 1) {
		w.option = all.at[0].option;
		keep_faster(x, b->key, w.option->line, candidate_ratio(&all.at[0]), &w);
	}
	if (!status && all.n)
		status = unroll_best(x, b, &w);
	if (!status && all.n && !interrupt_noted())
		print_group(x, b, &all, &w, k->share);
	candidates_free(&all);
	return status;
}

static int search_groups(struct exhaustive *x)
{
	struct space space;
	int status = space_of(&space, x->chosen->objects.program);
	for (size_t i = 0; i < space.blocks && !status && !interrupt_noted(); i++) {
		const struct block *b = &space.block[i];
		struct kernels k = {0};
		if (block_group(b) && !isnan(b->option[0].predicted))
			status = contest_kernels(&x->quick, x->chosen, block_group(b), &k);
		if (!status && k.share >= matters)
			status = search_group(x, b, &k);
	}
	space_free(&space);
	return status;
}

/* Times the best tiles of all groups together. */
static int judge_best(struct exhaustive *x)
{
	struct outcome o = {.holder = 1, .challenger = 1};
	char *text = directives_text(&x->best);
	struct contest last = x->thorough;
	last.places *= 2;
	int status = text ? 0 : EXIT_INPUT;
	if (!status && x->best.n)
		status = measure_schedule(x, &last, text, &o);
	free(text);
	if (status)
		return status;
	double ratio = isfinite(o.challenger) ? o.challenger / o.holder : 1;
	printf("{\"model\": ");
	write_json_string(stdout, esp_model_describe(x->chosen->objects.model)->name);
	printf(", \"best_over_chosen\": %.4f, \"loss_percent\": %.2f}\n", ratio,
	       loss_percent(ratio));
	return 0;
}

int bench_exhaustive(struct bench *b)
{
	struct contest c = {.batch = b->batches.at[0],
			    .minibatches = b->options->minibatches,
			    .seconds = 0.03,
			    .hopeless = 1 + b->options->margin / 100};
	struct exhaustive x = {
	    .bench = b, .chosen = &b->subject[0], .quick = c, .thorough = c, .margin = c.hopeless};
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
