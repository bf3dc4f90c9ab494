/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How files of structures are read: the options, with the vocabularies open. */
#include "tool.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Length of INPUT in INPUT=REST; 0 = the word has another form. INPUT must be a name, so a path may
 * contain an equals sign after a slash or a dot. */
static size_t input_length(const char *word)
{
	size_t n = 0;
	while (isalnum((unsigned char)word[n]) || word[n] == '_')
		n++;
	return word[n] == '=' ? n : 0;
}

/* The column of an input, added when it is new; NULL after a message when memory is out. */
static esp_column *column_for(struct reading *r, const char *word, size_t length)
{
	for (size_t i = 0; i < r->options.columns; i++)
		if (strlen(r->column[i].input) == length && memcmp(r->column[i].input, word, length) == 0)
			return &r->column[i];
	char *input = strndup(word, length);
	if (!input) {
		complain("no memory for the name of an input");
		return NULL;
	}
	esp_column *c = &r->column[r->options.columns++];
	*c = (esp_column){.input = input};
	return c;
}

static int add_column(struct reading *r, const char *word)
{
	size_t n = input_length(word);
	if (!n) {
		complain("--column is INPUT=COLUMN, not '%s'", word);
		return EXIT_USAGE;
	}
	esp_column *c = column_for(r, word, n);
	if (c)
		c->column = word + n + 1;
	return c ? 0 : EXIT_INPUT;
}

static int add_vocab(struct reading *r, esp_context *context, const char *word)
{
	esp_error *error;
	size_t n = input_length(word);
	esp_vocab **vocab = &r->vocab[r->vocabs];
	esp_status status = esp_vocab_open(context, n ? word + n + 1 : word, vocab, &error);
	if (status)
		return report_failure(status, error);
	r->vocabs++;
	esp_column *c = n ? column_for(r, word, n) : NULL;
	if (n && !c)
		return EXIT_INPUT;
	if (n)
		c->vocab = *vocab;
	else
		r->options.vocab = *vocab;
	return 0;
}

int reading_open(struct reading *r, esp_context *context, const struct options *o)
{
	int status = 0;
	r->options = (esp_treebank_options){.size = sizeof r->options,
					    .column = r->column,
					    .format = o->from,
					    .graph = o->graph,
					    .collapse = o->collapse,
					    .binarize = o->binarize,
					    .cut_labels = o->cut_labels};
	for (int i = 0; i < o->vocab.n && !status; i++)
		status = add_vocab(r, context, o->vocab.word[i]);
	for (int i = 0; i < o->column.n && !status; i++)
		status = add_column(r, o->column.word[i]);
	return status;
}

void reading_close(struct reading *r)
{
	for (int i = 0; i < r->vocabs; i++)
		esp_vocab_free(r->vocab[i]);
	for (size_t i = 0; i < r->options.columns; i++)
		free((char *)r->column[i].input);
}

/* --- inputs that the model has --- */

static void put_program_inputs(FILE *to, const esp_program *p)
{
	const esp_input *in;
	for (size_t i = 0; (in = esp_program_input(p, i)); i++)
		fprintf(to, "%s'%s'", i ? ", " : "", in->name);
}

/* Lists inputs from the model's printed text, which has a line for each: without weights there is no
 * program to ask. */
static void put_text_inputs(FILE *to, const char *text)
{
	const char *comma = "";
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *name = strncmp(line, "input ", 6) == 0  ? line + 6
				   : strncmp(line, "edge ", 5) == 0 ? line + 5
								    : NULL;
		if (!name)
			continue;
		fprintf(to, "%s'%.*s'", comma, (int)strcspn(name, " :["), name);
		comma = ", ";
	}
}

/* Names of the model's inputs in quotes; the caller frees the text, NULL = no memory. */
static char *list_inputs(const struct objects *o)
{
	char *list = NULL, *text = NULL;
	size_t length;
	FILE *to = open_memstream(&list, &length);
	if (!to)
		return NULL;
	if (o->program)
		put_program_inputs(to, o->program);
	else if (!esp_model_print(o->model, &text, NULL))
		put_text_inputs(to, text);
	esp_text_free(text);
	fclose(to);
	return list;
}

static bool check_input_name(const char *list, const char *name)
{
	char quoted[256];
	snprintf(quoted, sizeof quoted, "'%s'", name);
	return strstr(list, quoted) ||
	       complain("--vocab and --column name inputs of the model: '%s' is none of them (%s)", name,
			*list ? list : "it has none");
}

bool reading_check(const struct reading *r, const struct objects *o)
{
	char *list = r->options.columns ? list_inputs(o) : NULL;
	bool ok = true;
	for (size_t i = 0; list && ok && i < r->options.columns; i++)
		ok = check_input_name(list, r->column[i].input);
	free(list);
	return ok;
}

const esp_vocab *vocab_of(const struct reading *r, const char *input)
{
	for (size_t i = 0; i < r->options.columns; i++)
		if (r->column[i].vocab && strcmp(r->column[i].input, input) == 0)
			return r->column[i].vocab;
	return r->options.vocab;
}
