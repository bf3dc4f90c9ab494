/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier check: everything that can be refused before a run. */
#include "tool.h"

#include <inttypes.h>

static void print_model(FILE *to, const esp_model *m)
{
	const esp_model_facts *f = esp_model_describe(m);
	if (!f) {
		fputs("OK: a compiled program\n", to);
		return;
	}
	fprintf(to, "OK: %s, a model %s%s", f->name, f->children ? "of a " : "without a structure",
		f->children ? f->structure : "");
	if (f->children < 0)
		fputs(" with any number of children", to);
	else if (f->children)
		fprintf(to, " with %d %s", f->children, f->children == 1 ? "child" : "children");
	fprintf(to, "\n    inputs %zu, states %zu, params %zu, outputs %zu\n", f->inputs, f->states,
		f->params, f->outputs);
}

/* The bytes of elements that a file of weights keeps, by type. */
static void print_weights(FILE *to, const esp_weights *w)
{
	uint64_t all = 0;
	const char *separator = ":";
	for (esp_dtype d = ESP_F32; esp_dtype_name(d); d++)
		all += esp_weights_bytes(w, d, NULL);
	fprintf(to, "    weights of %" PRIu64 " bytes", all);
	for (esp_dtype d = ESP_F32; esp_dtype_name(d); d++) {
		size_t tensors;
		uint64_t bytes = esp_weights_bytes(w, d, &tensors);
		if (!tensors)
			continue;
		fprintf(to, "%s %s %" PRIu64 " (%zu tensor%s)", separator, esp_dtype_name(d), bytes, tensors, tensors == 1 ? "" : "s");
		separator = ",";
	}
	fputc('\n', to);
}

static void print_program(FILE *to, const esp_program *p)
{
	const char *name;
	int64_t size;
	size_t i = 0;
	for (; (name = esp_program_size(p, i, &size)); i++)
		fprintf(to, "%s %s = %" PRId64, i ? "," : "    sizes", name, size);
	if (i)
		fputc('\n', to);
}

/* --- vocabularies: a word of each row of the embedding --- */

/* The i-th input whose tokens are rows and come from a vocabulary, with the numbers of both; NULL past the
 * last. */
static const esp_input *vocab_input(const struct objects *o, size_t i, size_t *words)
{
	const esp_input *in;
	for (size_t k = 0; (in = o->program ? esp_program_input(o->program, k) : NULL); k++) {
		*words = esp_vocab_words(vocab_of(&o->reading, in->name));
		if (in->is_token && in->limit && *words && !i--)
			return in;
	}
	return NULL;
}

static bool check_vocabs(const struct objects *o)
{
	const esp_input *in;
	size_t words;
	for (size_t i = 0; (in = vocab_input(o, i, &words)); i++)
		if (words > (uint64_t)in->limit)
			return complain(
			    "the vocabulary of '%s' has %zu words, but the model has rows for %" PRId64
			    " of them: give the one that the weights were trained with [token-out-of-range]",
			    in->name, words, in->limit);
	return true;
}

static void print_vocabs(FILE *to, const struct objects *o)
{
	const esp_input *in;
	size_t words;
	for (size_t i = 0; (in = vocab_input(o, i, &words)); i++) {
		fprintf(to, "    vocabulary of '%s': %zu words, %" PRId64 " rows", in->name, words,
			in->limit);
		fputs(words < (uint64_t)in->limit ? ": the last rows have no word\n" : "\n", to);
	}
}

/* --- structures --- */

struct count {
	size_t trees, nodes, skipped;
};

struct input {
	const char *path;
	esp_treebank *treebank;
	esp_forest *forest;
	struct count *count;
	bool skip;
};

/* Reports a refusal of the tree that was read last, or that could not be read. */
static int refuse_tree(struct input *i, size_t passed, esp_status status, esp_error *error)
{
	size_t now = esp_treebank_passed(i->treebank);
	int exit_status = report_failure(status, error);
	if (!i->skip || status != ESP_ERROR_INPUT || now == passed)
		return exit_status;
	i->count->skipped++;
	return 0;
}

/* Checks trees one by one, so that a diagnostic can be related to its tree. */
static int check_trees(struct input *i)
{
	int more = 1, exit_status = 0;
	esp_error *error;
	while (!exit_status) {
		size_t passed = esp_treebank_passed(i->treebank);
		esp_forest_clear(i->forest);
		esp_status status = esp_treebank_next(i->treebank, i->forest, &more, &error);
		if (!status && !more)
			break;
		if (!status)
			status = esp_forest_check(i->forest, &error);
		if (status) {
			exit_status = refuse_tree(i, passed, status, error);
			continue;
		}
		i->count->trees++;
		i->count->nodes += esp_forest_nodes(i->forest, 0);
	}
	return exit_status;
}

static int check_input(const struct objects *o, const struct options *options, struct count *count)
{
	esp_error *error;
	struct input i = {.path = options->operand[1], .count = count, .skip = options->skip};
	esp_status status = esp_treebank_open(o->context, i.path, &o->reading.options, &i.treebank, &error);
	if (!status)
		status = esp_forest_create(o->program, &i.forest, &error);
	int exit_status = status ? report_failure(status, error) : check_trees(&i);
	esp_forest_free(i.forest);
	esp_treebank_free(i.treebank);
	return exit_status;
}

/* Checks the weights of a compiled program; those of a model are checked when its program is made. */
static int check_weights(const struct objects *o)
{
	esp_error *error;
	esp_binding *binding = NULL;
	esp_status status =
	    o->weights ? esp_binding_create(o->program, o->weights, &binding, &error) : ESP_OK;
	esp_binding_free(binding);
	return status ? report_failure(status, error) : 0;
}

/* Writes to stdout only after every check has passed. */
static int check_objects(const struct objects *o, const struct options *options)
{
	struct count count = {0};
	bool input = options->operands == 2;
	int status = o->model ? 0 : check_weights(o);
	if (!status && !check_vocabs(o))
		status = EXIT_INPUT;
	if (!status && input)
		status = check_input(o, options, &count);
	if (status)
		return status;
	print_model(stdout, o->model);
	if (o->weights)
		print_weights(stdout, o->weights);
	if (o->program)
		print_program(stdout, o->program);
	print_vocabs(stdout, o);
	if (input)
		printf("    trees %zu, nodes %zu\n", count.trees, count.nodes);
	if (count.skipped)
		printf("    left out %zu\n", count.skipped);
	return 0;
}

int command_check(const struct options *options)
{
	struct objects o;
	if (options->operands == 2 && needs_weights(options, options->operand[0])) {
		complain("an input is checked for a program: give --weights FILE");
		return EXIT_USAGE;
	}
	int status = objects_open_any(&o, options, options->operand[0], ESP_AT_MODEL)
			 ? check_objects(&o, options)
			 : o.status;
	objects_close(&o);
	return status;
}
