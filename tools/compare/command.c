/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier compare: reads and checks all inputs first, then runs as many trees as the reference has. */
#include "compare/compare.h"

#include <stdlib.h>
#include <string.h>

/* --- the input --- */

static bool count_nodes(struct trees *t, const struct batch *b)
{
	uint64_t *begin = realloc(t->begin, (t->n + b->sentences + 1) * sizeof *begin);
	if (!begin)
		return complain("no memory for %zu trees", t->n + b->sentences);
	t->begin = begin;
	begin[0] = 0;
	for (size_t i = 0; i < b->sentences; i++, t->n++)
		begin[t->n + 1] = begin[t->n] + esp_forest_nodes(b->forest, i);
	return true;
}

static int read_batch(struct comparison *c, int *more)
{
	struct trees *t = &c->trees;
	struct batch *grown = realloc(t->batch, (t->batches + 1) * sizeof *grown);
	if (!grown) {
		complain("no memory for %zu minibatches", t->batches + 1);
		return EXIT_INPUT;
	}
	t->batch = grown;
	struct batch *b = &grown[t->batches++];
	*b = (struct batch){0};
	int status = batches_read(&c->batches, b, more);
	return status ? status : count_nodes(t, b) ? 0 : EXIT_INPUT;
}

static int read_input(struct comparison *c)
{
	int more, status;
	do
		status = read_batch(c, &more);
	while (!status && more);
	return status;
}

/* --- runs --- */

static int run_batch(struct comparison *c, struct batch *b)
{
	int status = batches_run(&c->batches, b);
	if (!status && !measure_batch(c, b))
		status = EXIT_INPUT;
	size_t done = b->first + b->sentences;
	batches_show(&c->batches, done, (double)done / (double)c->covered);
	return status;
}

static int run_all(struct comparison *c)
{
	int status = 0;
	for (size_t i = 0; i < c->trees.batches && !status; i++)
		if (c->trees.batch[i].first < c->covered)
			status = run_batch(c, &c->trees.batch[i]);
	batches_hide(&c->batches);
	return status;
}

static int compare_files(struct comparison *c)
{
	const struct options *o = c->options;
	if (!objects_open(&c->objects, o, c->model, ESP_AT_EVERY_NODE))
		return c->objects.status;
	if (!reference_open(&c->reference, o->ref))
		return EXIT_INPUT;
	int status = locals_show(c);
	if (!status)
		status = batches_open(&c->batches, o, &c->objects, o->operands > 1 ? c->input : NULL, true);
	if (!status)
		status = read_input(c);
	if (!status && !match_reference(c))
		status = EXIT_INPUT;
	if (!status)
		status = run_all(c);
	if (!status)
		status = bounds_find(c);
	if (status)
		return status;
	(o->format == FORMAT_JSON ? say_json : say_text)(c, stdout);
	return is_equal(c) ? 0 : EXIT_INPUT;
}

static void close_all(struct comparison *c)
{
	for (size_t i = 0; i < c->trees.batches; i++)
		batch_free(&c->trees.batch[i]);
	free(c->trees.batch);
	free(c->trees.begin);
	free(c->quantity);
	free(c->pair);
	free(c->ignored);
	levels_free(&c->levels);
	locals_free(c);
	reference_close(&c->reference);
	batches_close(&c->batches);
	objects_close(&c->objects);
}

int command_compare(const struct options *options)
{
	if (needs_weights(options, options->operand[0]) || !options->ref) {
		complain("compare needs --weights FILE and --ref FILE");
		return EXIT_USAGE;
	}
	if (!arrays_check(options))
		return EXIT_USAGE;
	struct options chosen = *options;
	leave_out_tables(&chosen);
	const char *input = options->operands > 1 ? options->operand[1] : options->input.n ? options->input.word[0] : options->operand[0];
	struct comparison c = {.options = &chosen, .model = options->operand[0], .input = input};
	int status = compare_files(&c);
	close_all(&c);
	return status;
}
