/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Times and errors of each precision of products, and each type that weights can be kept in, against f32: a table to choose
 * from.  All programs run over the same minibatches, one run of each after the other, so that other work of the machine
 * disturbs them alike. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAST_ROUNDS = 5,
	MOST_ROUNDS = 200,
	SECONDS = 10 /* about how long all programs run together, without --seconds */
};

/* A program takes less time if its median is below this fraction of that of f32. */
static const double faster = 0.98;

static const struct kind {
	const char *name, *precision, *weights_as;
} kinds[] = {
#define PRECISION(name, spelling, bytes, places, meaning) {spelling, spelling, "f32"},
#include "base/precision.def"
	     {"weights f16", "f32", "f16"},
	     {"weights bf16", "f32", "bf16"},
	     {"weights i8", "f32", "i8"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* How far the rows of one output are from those of f32. */
struct difference {
	double most;	     /* of f32; infinite where one of both is not finite */
	size_t rows, changed; /* changed: whose largest element is another one, or whose integers differ */
};

struct entry {
	struct subject *subject;
	double *seconds; /* of each round, of the current minibatch */
	double least, median; /* sums over minibatches */
	struct difference *difference; /* by output */
};

struct survey {
	const struct contest *contest;
	struct entry entry[KINDS];
	struct subject joined[KINDS];
	size_t outputs;
	long rounds;
	double seconds; /* for all */
};

/* --- errors --- */

static size_t find_largest(const float *x, size_t n)
{
	size_t at = 0;
	for (size_t i = 1; i < n; i++)
		at = x[i] > x[at] ? i : at;
	return at;
}

static void compare_floats(const float *ours, const float *theirs, size_t n, struct difference *d)
{
	for (size_t i = 0; i < n; i++) {
		double far = ours[i] == theirs[i] || (isnan(ours[i]) && isnan(theirs[i])) ? 0 : fabs((double)ours[i] - theirs[i]);
		d->most = fmax(d->most, isnan(far) ? INFINITY : far);
	}
	d->changed += find_largest(ours, n) != find_largest(theirs, n);
}

static void compare_rows(const esp_output *output, const void *ours, const void *theirs, struct difference *d)
{
	if (!ours || !theirs)
		return;
	d->rows++;
	if (output->dtype == ESP_F32)
		compare_floats(ours, theirs, output->elements, d);
	else
		d->changed += memcmp(ours, theirs, output->elements * esp_dtype_size(output->dtype)) != 0;
}

static void compare_outputs(const struct survey *s, struct entry *e)
{
	const struct subject *with = s->entry[0].subject;
	for (size_t o = 0; o < s->outputs; o++) {
		const esp_output *output = esp_program_output(with->objects.program, o);
		for (size_t i = 0; i < esp_forest_structures(with->forest); i++)
			for (size_t node = 0; node < (output->at_root ? 1 : esp_forest_nodes(with->forest, i)); node++)
				compare_rows(output, esp_session_output_elements(e->subject->session, o, i, node),
					     esp_session_output_elements(with->session, o, i, node), &e->difference[o]);
	}
}

/* --- times --- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Runs each program until its code and caches are warm, and compares the results. */
static int begin_minibatch(struct survey *s, size_t minibatch, double *seconds)
{
	int status = 0;
	*seconds = 0;
	for (int k = 0; k < KINDS && !status; k++) {
		struct timing t = {0};
		status = subject_fill(s->entry[k].subject, minibatch * s->contest->batch, s->contest->batch);
		for (int i = 0; i < 2 && !status; i++)
			status = subject_run(s->entry[k].subject, &t);
		if (!status)
			compare_outputs(s, &s->entry[k]);
		*seconds += t.whole;
	}
	return status;
}

/* One round after the other, each beginning with another program. */
static int run_rounds(struct survey *s, long rounds, const struct search *interrupted)
{
	int status = 0;
	long done = 0;
	for (; done < rounds && !status && (done < LEAST_ROUNDS || !search_is_over(interrupted)); done++)
		for (int i = 0; i < KINDS && !status; i++) {
			struct entry *e = &s->entry[(i + done) % KINDS];
			struct timing t = {0};
			status = subject_run(e->subject, &t);
			e->seconds[done] = t.whole;
		}
	for (int k = 0; k < KINDS && !status; k++) {
		struct entry *e = &s->entry[k];
		qsort(e->seconds, done, sizeof *e->seconds, compare_doubles);
		e->least += e->seconds[0];
		e->median += e->seconds[done / 2];
	}
	s->rounds = s->rounds && s->rounds < done ? s->rounds : done;
	return status;
}

static int run_all(struct survey *s, const struct search *interrupted)
{
	int status = 0;
	for (size_t m = 0; m < s->contest->minibatches && !status; m++) {
		double once;
		status = begin_minibatch(s, m, &once);
		double rounds = s->seconds / (double)s->contest->minibatches / fmax(once, 1e-9);
		if (!status)
			status = run_rounds(s, (long)fmax(LEAST_ROUNDS, fmin(MOST_ROUNDS, rounds)), interrupted);
	}
	return status;
}

/* --- the table --- */

static int find_fastest(const struct survey *s)
{
	int best = 0;
	for (int k = 1; k < KINDS; k++)
		if (s->entry[k].median < s->entry[best].median && s->entry[k].median < faster * s->entry[0].median)
			best = k;
	return best;
}

static void put_entry(const struct survey *s, int kind, size_t output, FILE *to)
{
	const struct entry *e = &s->entry[kind];
	const struct difference *d = &e->difference[output];
	const esp_output *o = esp_program_output(e->subject->objects.program, output);
	if (output == 0)
		fprintf(to, "%-14s %10.3f %10.3f %7.2f", kinds[kind].name, e->median * 1e3, e->least * 1e3,
			s->entry[0].median / e->median);
	else
		fprintf(to, "%-14s %10s %10s %7s", "", "", "", "");
	fputs("  ", to);
	if (o->dtype == ESP_F32)
		fprintf(to, "%10.2g", d->most);
	else
		fprintf(to, "%10s", "");
	if (o->dtype != ESP_F32 || o->elements > 1)
		fprintf(to, " %8zu of %-8zu", d->changed, d->rows);
	else
		fprintf(to, " %8s    %-8s", "", "");
	put_masked(to, o->name);
	fputc('\n', to);
}

static void put_choice(const struct survey *s, FILE *to)
{
	int best = find_fastest(s);
	if (best)
		fprintf(to, "fastest: %s (--%s %s), %.2f times as fast as f32\n", kinds[best].name,
			strcmp(kinds[best].precision, "f32") != 0 ? "precision" : "weights-as",
			strcmp(kinds[best].precision, "f32") != 0 ? kinds[best].precision : kinds[best].weights_as,
			s->entry[0].median / s->entry[best].median);
	else
		fputs("f32: nothing is faster, which is what is chosen without --precision\n", to);
}

static void put_table(const struct survey *s, FILE *to)
{
	fprintf(to, "%zu minibatch%s of %zu, %ld rounds or more; milliseconds\n", s->contest->minibatches,
		s->contest->minibatches == 1 ? "" : "es", s->contest->batch, s->rounds);
	fprintf(to, "%-14s %10s %10s %7s  %10s %20s%s\n", "", "median", "least", "x f32", "largest |d|", "other class     ",
		"output");
	for (int k = 0; k < KINDS; k++)
		for (size_t o = 0; o < s->outputs; o++)
			put_entry(s, k, o, to);
	put_choice(s, to);
}

/* --- opening --- */

static int open_entry(struct survey *s, struct subject *first, const struct options *options, int kind)
{
	struct options mine = *options;
	struct entry *e = &s->entry[kind];
	esp_error *error;
	mine.precision = kinds[kind].precision;
	mine.weights_as = kinds[kind].weights_as;
	esp_status status = kind ? subject_join(&s->joined[kind], first, &mine, NULL, &error) : ESP_OK;
	if (status)
		return report_failure(status, error);
	e->subject = kind ? &s->joined[kind] : first;
	e->seconds = calloc(MOST_ROUNDS, sizeof *e->seconds);
	e->difference = calloc(s->outputs + 1, sizeof *e->difference);
	if (e->seconds && e->difference)
		return 0;
	complain("no memory for times");
	return EXIT_INPUT;
}

static void close_entries(struct survey *s)
{
	for (int k = 0; k < KINDS; k++) {
		if (s->entry[k].subject == &s->joined[k])
			subject_close(&s->joined[k]);
		free(s->entry[k].seconds);
		free(s->entry[k].difference);
	}
}

int precisions_measure(const struct search *search, FILE *to)
{
	struct survey s = {.contest = &search->contest,
			   .outputs = esp_program_outputs(search->first->objects.program),
			   .seconds = search->options->seconds ? search->options->seconds : SECONDS};
	int status = 0;
	for (int k = 0; k < KINDS && !status; k++)
		status = open_entry(&s, search->first, search->options, k);
	if (!status)
		status = run_all(&s, search);
	if (!status)
		put_table(&s, to);
	close_entries(&s);
	return status;
}
