/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier quantise: observes what weights multiply, writes them in 8 bits, and shows what that changes. */
#include "calibrate.h"

#include <stdlib.h>
#include <string.h>

/* --- one pass over a file --- */

/* Reads the next structures for the first `n` programs, with the labels that are right for the first. */
static int read_all(struct quantising *q, int n, int *more)
{
	int status = 0;
	for (int i = 0; i < n && !status; i++)
		status = batches_read(&q->batches[i], &q->batch[i], more);
	return status;
}

static int run_all(struct quantising *q, int n)
{
	int status = 0;
	for (int i = 0; i < n && !status; i++)
		status = batches_run(&q->batches[i], &q->batch[i]);
	return status;
}

static int observe_structures(struct quantising *q)
{
	esp_error *error;
	esp_status status = esp_calibration_add(q->calibration[0], q->batches[0].session, &error);
	q->structures += q->batch[0].sentences;
	return status ? batches_refuse(&q->batches[0], status, error) : 0;
}

static int compare_outputs(struct quantising *q)
{
	esp_error *error;
	esp_status status =
	    esp_calibration_compare(q->calibration[1], q->batches[1].session, q->batches[0].session, &error);
	if (status)
		return batches_refuse(&q->batches[0], status, error);
	count_labels(q);
	return 0;
}

/* Opens a file of structures, or the arrays of rows where the model has no structure. */
static int open_files(struct quantising *q, int i, const struct words *files)
{
	const struct objects *objects = i ? &q->quantised : &q->objects;
	struct options options = *q->options;
	if (esp_program_children(objects->program, NULL))
		return batches_open(&q->batches[i], &options, objects, files->word[0], true);
	for (int k = 0; k < files->n; k++)
		if (!strchr(files->word[k], '='))
			return complain("%s: the model has no structure, so that --calibrate and --evaluate are NAME=FILE.npy for each input",
					files->word[k]),
			       EXIT_INPUT;
	options.input = *files;
	options.input_option = files == &q->options->evaluate ? "evaluate" : "calibrate";
	return batches_open(&q->batches[i], &options, objects, NULL, true);
}

/* Runs structures by the first `n` programs, minibatch by minibatch. */
static int run_files(struct quantising *q, int n, const struct words *files, int (*take)(struct quantising *))
{
	int more = 1, status = 0;
	for (int i = 0; i < n && !status; i++)
		status = open_files(q, i, files);
	q->batches[0].texts = q->options->label ? q->options->label : "label";
	q->batches[0].words = n > 1;
	while (!status && more) {
		status = read_all(q, n, &more);
		if (!status && q->batch[0].sentences)
			status = run_all(q, n);
		if (!status && q->batch[0].sentences)
			status = take(q);
		batches_show(&q->batches[0], q->batches[0].read, batches_progress(&q->batches[0]));
	}
	batches_hide(&q->batches[0]);
	for (int i = 0; i < n; i++) {
		batch_free(&q->batch[i]);
		batches_close(&q->batches[i]);
	}
	return status;
}

/* --- the two programs --- */

static int make_calibration(struct quantising *q, int i, struct objects *o)
{
	const struct options *options = q->options;
	esp_program_options p = {.size = sizeof p,
				 .backend = options->backend,
				 .target = options->target,
				 .math = options->math,
				 .rules = options->rules,
				 .table_bytes = options->table_bytes,
				 .precision = i ? NULL : "f32"};
	esp_error *error;
	esp_status status = esp_calibration_create(o->model, o->weights, &p, &q->calibration[i], &error);
	o->program = esp_calibration_program(q->calibration[i]);
	return status ? report_failure(status, error) : 0;
}

size_t count_outputs(const struct quantising *q)
{
	size_t n = 0;
	while (esp_calibration_output(q->calibration[0], n))
		n++;
	return n;
}

static int write_weights(struct quantising *q)
{
	const struct options *o = q->options;
	esp_quantise_options options = {.size = sizeof options,
					.precision = o->precision,
					.keep = o->kept.word,
					.kept = (size_t)o->kept.n,
					.weights_only = o->weights_only};
	esp_error *error;
	sigset_t before;
	bool hold = interrupt_hold_writing(o->output, &before);
	esp_status status = esp_calibration_write(q->calibration[0], &options, o->output, &error);
	if (hold)
		interrupt_release(&before, NULL);
	return status ? report_failure(status, error) : 0;
}

/* Opens the weights that were written, as any program would. */
static int open_quantised(struct quantising *q)
{
	esp_error *error;
	q->quantised = q->objects;
	q->quantised.weights = NULL;
	esp_status status =
	    esp_weights_open(q->objects.context, q->options->output, &q->quantised.weights, &error);
	return status ? report_failure(status, error) : make_calibration(q, 1, &q->quantised);
}

static int quantise_weights(struct quantising *q)
{
	const struct options *o = q->options;
	int status = make_calibration(q, 0, &q->objects);
	if (!status && !reading_check(&q->objects.reading, &q->objects))
		status = EXIT_USAGE;
	if (!status)
		status = run_files(q, 1, &o->calibrate, observe_structures);
	if (!status)
		status = write_weights(q);
	if (!status)
		status = open_quantised(q);
	if (status)
		return status;
	q->accuracy = calloc(count_outputs(q) + 1, sizeof *q->accuracy);
	if (!q->accuracy)
		return complain("no memory for counts of labels"), EXIT_INPUT;
	status = run_files(q, 2, o->evaluate.n ? &o->evaluate : &o->calibrate, compare_outputs);
	if (!status)
		write_quantise_report(stdout, q);
	return status || fflush(stdout) == 0 ? status : EXIT_INPUT;
}

/* --- the command --- */

/* One file of structures; several are arrays, which are looked at when the model is known to take them. */
static bool check_words(const char *option, const struct words *files)
{
	for (int i = 0; i < files->n; i++) {
		if (strcmp(files->word[i], "-") == 0)
			return complain("quantise reads its structures twice: give files, not standard input");
		if (files->n > 1 && !strchr(files->word[i], '='))
			return complain("--%s takes one file of structures or, of a model without a structure, NAME=FILE.npy for each input", option);
	}
	return true;
}

static bool check_files(const struct options *o)
{
	if (!o->output || strcmp(o->output, "-") == 0)
		return complain("quantise needs -o FILE, where the weights go");
	if (!o->calibrate.n)
		return complain("quantise needs --calibrate FILE, typical structures");
	if (o->weights_only && (o->kept.n || o->precision))
		return complain("--weights-only computes products in f32: leave out --%s", o->kept.n ? "keep" : "precision");
	if (!check_words("calibrate", &o->calibrate) || !check_words("evaluate", &o->evaluate))
		return false;
	return !needs_weights(o, o->operand[0]) || complain("quantise needs --weights FILE");
}

static void close_quantising(struct quantising *q)
{
	q->objects.program = NULL; /* it is the calibration's */
	esp_weights_free(q->quantised.weights);
	for (int i = 0; i < 2; i++)
		esp_calibration_free(q->calibration[i]);
	free(q->accuracy);
	objects_close(&q->objects);
}

int command_quantise(const struct options *options)
{
	struct options chosen = *options;
	if (!check_files(options))
		return EXIT_USAGE;
	leave_out_tables(&chosen);
	struct quantising q = {.options = &chosen};
	int status = objects_open_model(&q.objects, &chosen, options->operand[0]) ? quantise_weights(&q) : q.objects.status;
	close_quantising(&q);
	return status;
}
