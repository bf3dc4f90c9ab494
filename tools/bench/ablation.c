/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Times models with the primitives of the schedule turned on one after the other. */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct step {
	const char *name, *without, *with;
} steps[] = {
#define STEP(name, without, with) {name, without, with},
#include "bench/ablation.def"
#undef STEP
};
enum { STEPS = sizeof steps / sizeof *steps, ROWS = STEPS + 1 /* nothing is on in the first row */ };

/* In the order of ablation.def. They are listed again because a macro cannot include a file. */
static const char *const texts[] = {
#include "bench/models/childsum.inc"
    ,
#include "bench/models/treegru.inc"
    ,
#include "bench/models/simpletreegru.inc"
    ,
#include "bench/models/treernn.inc"
    ,
#include "bench/models/treefc.inc"
    ,
#include "examples/dagrnn/dagrnn.inc"
    ,
#include "examples/mvrnn/mvrnn.inc"
    ,
#include "examples/lstm/lstm.inc"
    ,
#include "examples/gru/gru.inc"
};

static const struct field {
	char *name;
	enum form form;
	long length;
	const char *sizes;
} field[] = {
#define FIELD(name, form, length, sizes) {name, form, length, sizes},
#include "bench/ablation.def"
#undef FIELD
};
enum { FIELDS = sizeof field / sizeof *field };
_Static_assert(sizeof texts / sizeof *texts == FIELDS, "a text for each model");

enum { GROUP = 3, LEAST_GROUPS = 4 };
static const double usual_seconds = 0.15; /* for each minibatch of each row */

/* The subjects of one model, and the gains of all models. */
struct ablation {
	struct bench *bench;
	struct subject row[ROWS];
	int rows; /* that were opened */
	double log_gain[ROWS];
	int cases;
};

/* --- opening --- */

/* The schedule of the row in which the first `on` steps are on. */
static void put_schedule(int on, char *to, size_t size)
{
	*to = 0;
	for (int i = 0; i < STEPS; i++)
		strncat(to, i < on ? steps[i].with : steps[i].without, size - strlen(to) - 1);
}

static esp_status open_row(struct ablation *a, int on, esp_error **error)
{
	char schedule[1000];
	put_schedule(on, schedule, sizeof schedule);
	return subject_join(&a->row[a->rows], &a->bench->subject[0], a->bench->options, schedule, error);
}

/* A step that is illegal for a model, as unrolling is for DAGs, repeats the row before. */
static int open_rows(struct ablation *a)
{
	esp_error *error;
	for (int on = 0; a->rows < ROWS; a->rows++) {
		esp_status status = open_row(a, a->rows, &error);
		if (status == ESP_ERROR_INPUT && a->rows) {
			esp_error_free(error);
			status = open_row(a, on, &error);
		} else {
			on = a->rows;
		}
		if (status)
			return report_failure(status, error);
	}
	return 0;
}

static void close_rows(struct ablation *a)
{
	while (a->rows)
		subject_close(&a->row[--a->rows]);
}

/* --- measuring --- */

static int fill_rows(struct ablation *a, size_t first, size_t count, double *slowest)
{
	int status = 0;
	*slowest = 0;
	for (int i = 0; i < ROWS && !status; i++) {
		struct timing t = {0};
		status = subject_fill(&a->row[i], first, count);
		if (!status)
			status = subject_run(&a->row[i], &t);
		*slowest = fmax(*slowest, t.whole);
	}
	return status;
}

/* Alternates between the rows, so that a disturbance of the machine hits all of them. */
static int measure_minibatch(struct ablation *a, size_t first, size_t count, double *seconds)
{
	struct stretches least[ROWS] = {{0}};
	double slowest;
	int status = fill_rows(a, first, count, &slowest);
	long groups = fmax(LEAST_GROUPS, fmin(a->bench->options->runs, usual_seconds / GROUP / slowest));
	for (long done = 0; done < groups; done++)
		for (int i = 0; i < ROWS && !status; i++)
			status = subject_stretches(&a->row[i], GROUP, &least[i]);
	for (int i = 0; i < ROWS; i++) {
		seconds[i] += fmin(stretches_sum(&least[i]), least[i].whole);
		stretches_free(&least[i]);
	}
	return status;
}

/* --- the table --- */

static void print_head(void)
{
	printf("%-24s %6s %10s", "model", "batch", "none, us");
	for (int i = 0; i < STEPS; i++)
		printf(" %*s", (int)strlen(steps[i].name) + 2, steps[i].name);
	printf(" %8s\n", "together");
}

static void print_gains(const double *log_gain, int cases)
{
	double together = 0;
	for (int i = 1; i < ROWS; i++) {
		printf(" %*.2f", (int)strlen(steps[i - 1].name) + 2, exp(log_gain[i] / cases));
		together += log_gain[i] / cases;
	}
	printf(" %8.2f\n", exp(together));
}

static void print_case(struct ablation *a, const char *name, long batch, const double *seconds)
{
	double log_gain[ROWS] = {0};
	for (int i = 1; i < ROWS; i++) {
		log_gain[i] = log(seconds[i - 1] / seconds[i]);
		a->log_gain[i] += log_gain[i];
	}
	a->cases++;
	printf("%-24s %6ld %10.1f", name, batch, seconds[0] / a->bench->options->minibatches * 1e6);
	print_gains(log_gain, 1);
	fflush(stdout);
}

/* --- a model --- */

static int measure_batch(struct ablation *a, const char *name, long batch)
{
	double seconds[ROWS] = {0};
	int status = 0;
	for (long i = 0; i < a->bench->options->minibatches && !status; i++)
		status = measure_minibatch(a, i * batch, batch, seconds);
	if (!status)
		print_case(a, name, batch, seconds);
	return status;
}

static int measure_model(struct ablation *a, const struct options *options)
{
	int status = bench_open(a->bench, options);
	if (!status)
		status = open_rows(a);
	for (int i = 0; !status && i < a->bench->batches.n; i++)
		status = measure_batch(a, esp_model_describe(a->bench->subject[0].objects.model)->name,
				       a->bench->batches.at[i]);
	close_rows(a);
	bench_close(a->bench);
	return status;
}

/* --- the field --- */

/* Of the sizes in --sizes, those that each model has a dimension for. */
struct asked {
	char own[FIELDS][200];
	unsigned had; /* a bit for each size that some model has */
};

static struct options options_of(const struct options *options, int i, char **operand)
{
	struct options one = *options;
	operand[0] = (char *)field[i].name;
	operand[1] = NULL;
	one.operand = operand;
	one.operands = 1;
	one.model_text = texts[i];
	one.structures = field[i].form;
	one.length = one.length ? one.length : field[i].length;
	one.sizes = field[i].sizes;
	return one;
}

static bool share_sizes(struct asked *asked, const esp_model *m, int i, const char *text)
{
	char *own = asked->own[i];
	for (unsigned bit = 1; text && *text; bit <<= 1) {
		size_t length = strcspn(text, ",");
		if (!bit || strlen(own) + length + 2 > sizeof asked->own[i])
			return complain("--sizes is too long");
		if (sizes_has(m, text)) {
			sprintf(own + strlen(own), "%s%.*s", *own ? "," : "", (int)length, text);
			asked->had |= bit;
		}
		text += length + (text[length] == ',');
	}
	return true;
}

/* Refuses a dimension that no model has, before anything is measured. Returns the exit status. */
static int ask_sizes(struct asked *asked, const struct options *options)
{
	unsigned bit = 1;
	int status = 0;
	for (int i = 0; i < FIELDS && !status; i++) {
		struct objects objects;
		char *operand[2];
		struct options one = options_of(options, i, operand);
		one.weights = NULL;
		status = objects_open(&objects, &one, field[i].name, ESP_AT_MODEL) ? 0 : objects.status;
		if (!status && !share_sizes(asked, objects.model, i, options->sizes))
			status = EXIT_USAGE;
		objects_close(&objects);
	}
	for (const char *p = options->sizes; p && *p && !status;
	     p += strcspn(p, ","), p += *p == ',', bit <<= 1)
		if (!(asked->had & bit)) {
			complain("no model has a dimension '%.*s'", (int)strcspn(p, "=,"), p);
			status = EXIT_USAGE;
		}
	return status;
}

static int measure_field(struct ablation *a, const struct options *options)
{
	struct asked asked = {.had = 0};
	int status = ask_sizes(&asked, options);
	if (!status)
		print_head();
	for (int i = 0; i < FIELDS && !status; i++) {
		char *operand[2];
		struct options one = options_of(options, i, operand);
		one.sizes = asked.own[i][0] ? asked.own[i] : one.sizes;
		status = measure_model(a, &one);
	}
	return status;
}

int bench_ablation(struct bench *b, const struct options *options)
{
	struct ablation a = {.bench = b};
	if (options->operands)
		print_head();
	int status = options->operands ? measure_model(&a, options) : measure_field(&a, options);
	if (!status) {
		printf("%-24s %6s %10s", "geometric mean", "", "");
		print_gains(a.log_gain, a.cases);
	}
	return status;
}
