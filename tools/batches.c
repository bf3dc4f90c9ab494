/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the trees of a file and runs them minibatch by minibatch, showing progress. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- progress --- */

/* Shows progress on a terminal only, and only after a second. */
void batches_show(struct batches *b, size_t trees, double fraction)
{
	double t = read_clock();
	if (b->quiet || t - b->begin < 1 || t - b->shown < 0.1 || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%zu trees, ", trees);
	if (fraction > 0)
		fprintf(stderr, "%.0f %%, ", 100 * fraction);
	fprintf(stderr, "%.0f trees/s\033[K", (double)trees / (t - b->begin));
	b->shown = t;
}

void batches_hide(struct batches *b)
{
	if (b->shown > 0)
		fputs("\r\033[K", stderr);
	b->shown = 0;
}

int batches_refuse(struct batches *b, esp_status status, esp_error *error)
{
	batches_hide(b);
	return report_failure(status, error);
}

/* --- one minibatch --- */

static void forget_tree(struct batch *batch, size_t i)
{
	free(batch->sentence[i]);
	esp_text_free(batch->words[i]);
}

static void forget_sentences(struct batch *batch)
{
	for (size_t i = 0; i < batch->sentences; i++)
		forget_tree(batch, i);
	batch->sentences = 0;
}

void batch_free(struct batch *batch)
{
	forget_sentences(batch);
	free(batch->sentence);
	free(batch->words);
	free(batch->tree);
	esp_forest_free(batch->forest);
	*batch = (struct batch){0};
}

static int create_batch(const struct batches *b, struct batch *batch)
{
	esp_error *error;
	if (batch->forest)
		return 0;
	esp_status status = esp_forest_create(b->objects->program, &batch->forest, &error);
	if (status)
		return report_failure(status, error);
	batch->sentence = calloc(b->size, sizeof *batch->sentence);
	batch->words = calloc(b->size, sizeof *batch->words);
	batch->tree = calloc(b->size, sizeof *batch->tree);
	if (batch->sentence && batch->words && batch->tree)
		return 0;
	complain("no memory for %ld sentences", b->size);
	return EXIT_INPUT;
}

/* Reports a refusal and returns true if reading can go on: the reader has passed the refused tree. */
static bool may_skip(struct batches *b, size_t passed, esp_status status, esp_error *error)
{
	if (!b->skip || status != ESP_ERROR_INPUT || esp_treebank_passed(b->treebank) == passed)
		return false;
	b->skipped++;
	batches_refuse(b, status, error);
	return true;
}

static esp_status next_tree(struct batches *b, struct batch *batch, int *more, esp_error **error)
{
	for (;;) {
		size_t passed = esp_treebank_passed(b->treebank);
		esp_status status = esp_treebank_next(b->treebank, batch->forest, more, error);
		if (!status || !may_skip(b, passed, status, *error))
			return status;
	}
}

/* Keeps a failure for batches_tell; reports it at once when no tree of the batch comes before it. */
static int hold_failure(struct batches *b, const struct batch *batch, esp_status status, esp_error *error)
{
	if (!b->hold || !batch->sentences)
		return batches_refuse(b, status, error);
	b->failure = (struct failure){.status = status, .error = error};
	return 0;
}

static esp_status read_words(const struct batches *b, char **words, esp_error **error)
{
	return b->texts ? esp_treebank_texts(b->treebank, b->texts, words, error)
			: esp_treebank_words(b->treebank, words, error);
}

static int read_tree(struct batches *b, struct batch *batch, int *more)
{
	esp_error *error;
	esp_status status = next_tree(b, batch, more, &error);
	if (status)
		return hold_failure(b, batch, status, error);
	if (!*more)
		return 0;
	char *sentence = strdup(esp_treebank_sentence(b->treebank));
	if (!sentence) {
		complain("no memory for a sentence");
		return EXIT_INPUT;
	}
	batch->words[batch->sentences] = NULL;
	if (b->words && (status = read_words(b, &batch->words[batch->sentences], &error))) {
		free(sentence);
		return batches_refuse(b, status, error);
	}
	batch->tree[batch->sentences] = esp_treebank_passed(b->treebank) - 1;
	batch->sentence[batch->sentences++] = sentence;
	b->read++;
	return 0;
}

/* Rows have neither sentences nor words. */
static int read_rows(struct batches *b, struct batch *batch, int *more)
{
	esp_error *error;
	size_t added;
	esp_status status = arrays_next(b->arrays, batch->forest, (size_t)b->size, &added, &error);
	if (status)
		return batches_refuse(b, status, error);
	for (size_t i = 0; i < added; i++) {
		batch->words[i] = NULL;
		batch->tree[i] = b->read++;
		batch->sentence[i] = strdup("");
		batch->sentences += batch->sentence[i] != NULL;
		if (!batch->sentence[i])
			return complain("no memory for the rows of a minibatch"), EXIT_INPUT;
	}
	*more = arrays_have_more(b->arrays);
	return 0;
}

double batches_progress(const struct batches *b)
{
	return b->arrays ? arrays_progress(b->arrays) : esp_treebank_progress(b->treebank);
}

int batches_read(struct batches *b, struct batch *batch, int *more)
{
	int status = create_batch(b, batch);
	forget_sentences(batch);
	esp_forest_clear(batch->forest);
	batch->first = b->read;
	*more = !status;
	if (!status && b->arrays)
		return read_rows(b, batch, more);
	for (long i = 0; i < b->size && *more && !status && !b->failure.status; i++)
		status = read_tree(b, batch, more);
	return status;
}

/* The structure that a message is about, by its index in the minibatch; their number = it names none. */
static size_t refused_structure(const struct batch *batch, const esp_error *error)
{
	const esp_diagnostic *d = esp_error_get(error, 0);
	return d && d->structure >= 0 ? (size_t)d->structure : batch->sentences;
}

/* Removes the refused structure `i` and those after it from the batch, so that those before it still run. */
static void cut_batch(struct batches *b, struct batch *batch, size_t i, esp_status status, esp_error *error)
{
	esp_error_free(b->failure.error);
	b->failure = (struct failure){status, error};
	while (batch->sentences > i) {
		forget_tree(batch, --batch->sentences);
		esp_forest_remove(batch->forest, batch->sentences);
	}
}

int batches_tell(struct batches *b)
{
	struct failure f = b->failure;
	b->failure = (struct failure){0};
	return f.status ? batches_refuse(b, f.status, f.error) : 0;
}

static void leave_out(struct batches *b, struct batch *batch, size_t i)
{
	size_t behind = --batch->sentences - i;
	forget_tree(batch, i);
	memmove(&batch->sentence[i], &batch->sentence[i + 1], behind * sizeof *batch->sentence);
	memmove(&batch->words[i], &batch->words[i + 1], behind * sizeof *batch->words);
	memmove(&batch->tree[i], &batch->tree[i + 1], behind * sizeof *batch->tree);
	esp_forest_remove(batch->forest, i);
	b->skipped++;
	b->refused++;
}

/* A run names only the first structure that it refuses, so it is repeated without that one. */
int batches_run(struct batches *b, struct batch *batch)
{
	esp_error *error;
	while (batch->sentences) {
		esp_status status = esp_session_run(b->session, batch->forest, &error);
		if (!status)
			return 0;
		size_t i = refused_structure(batch, error);
		bool skip = b->skip && status == ESP_ERROR_INPUT;
		if (b->hold && !skip && i > 0 && i < batch->sentences) {
			cut_batch(b, batch, i, status, error);
			continue;
		}
		int exit_status = batches_refuse(b, status, error);
		if (!skip || i == batch->sentences)
			return exit_status;
		leave_out(b, batch, i);
	}
	return 0;
}

/* --- before and after --- */

/* In the end, since runs may compile. */
static void show_times(const struct objects *o)
{
	char *text;
	if (esp_program_times(o->program, &text, NULL) == ESP_OK)
		fputs(text, stderr);
	esp_text_free(text);
}

int batches_open(struct batches *b, const struct options *options, const struct objects *objects,
		 const char *input, bool lazy)
{
	esp_error *error;
	*b = (struct batches){
	    .objects = objects, .size = options->batch, .skip = options->skip, .begin = read_clock()};
	const char *option = options->input_option ? options->input_option : "input";
	if ((options->input.n || !input) && !arrays_open(&b->arrays, option, &options->input, objects))
		return EXIT_INPUT;
	esp_status status = b->arrays ? ESP_OK
				      : esp_treebank_open(objects->context, input, &objects->reading.options,
							  &b->treebank, &error);
	if (!status)
		status = (lazy ? esp_binding_open : esp_binding_create)(objects->program, objects->weights, &b->binding, &error);
	if (!status)
		status = esp_session_create(b->binding, &b->session, &error);
	b->times = !status && options->time_passes;
	return status ? report_failure(status, error) : 0;
}

void batches_close(struct batches *b)
{
	if (b->times)
		show_times(b->objects);
	esp_error_free(b->failure.error);
	esp_treebank_free(b->treebank);
	arrays_close(b->arrays);
	esp_session_free(b->session);
	esp_binding_free(b->binding);
	*b = (struct batches){0};
}
