/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

/* --- opening --- */

static esp_status make_session(struct subject *s, esp_error **error)
{
	esp_status status = esp_binding_create(s->objects.program, s->objects.weights, &s->binding, error);
	if (!status)
		status = esp_program_prepare(s->objects.program, error);
	if (!status)
		status = esp_session_create(s->binding, &s->session, error);
	if (!status)
		status = esp_forest_create(s->objects.program, &s->forest, error);
	return status;
}

int subject_open(struct subject *s, const struct options *options, int at, long threads,
		 const struct shapes *shapes)
{
	esp_error *error;
	struct options mine = *options;
	*s = (struct subject){.shapes = shapes, .at = at, .threads = threads};
	mine.threads = threads;
	if (!objects_open(&s->objects, &mine, options->operand[0], at))
		return s->objects.status;
	esp_status status = make_session(s, &error);
	if (status)
		return report_failure(status, error);
	if (esp_program_inputs(s->objects.program) <= MOST_INPUTS)
		return 0;
	complain("models with more than %d inputs are not timed", MOST_INPUTS);
	return EXIT_INPUT;
}

esp_status subject_join(struct subject *s, const struct subject *with, const struct options *options,
			const char *schedule, esp_error **error)
{
	*s = (struct subject){.objects = with->objects,
			      .shapes = with->shapes,
			      .trees = with->trees,
			      .arrays = with->arrays,
			      .structures = with->structures,
			      .at = with->at,
			      .threads = with->threads,
			      .joined = true};
	esp_status status =
	    objects_program(&with->objects, options, schedule, with->at, &s->objects.program, error);
	if (status)
		return status;
	status = make_session(s, error);
	if (status)
		subject_close(s);
	return status;
}

static void free_session(struct subject *s)
{
	esp_forest_free(s->forest);
	esp_session_free(s->session);
	esp_binding_free(s->binding);
}

/* Frees the old ones only after making the new ones, so that the addresses differ. */
int subject_move(struct subject *s)
{
	struct subject moved = *s;
	esp_error *error;
	esp_status status = make_session(&moved, &error);
	if (!status) {
		free_session(s);
		*s = moved;
		return 0;
	}
	if (moved.session != s->session)
		esp_session_free(moved.session);
	if (moved.binding != s->binding)
		esp_binding_free(moved.binding);
	return report_failure(status, error);
}

void subject_close(struct subject *s)
{
	for (int i = 0; i < MOST_INPUTS; i++)
		free(s->carried[i].values);
	free_session(s);
	if (s->joined)
		esp_program_free(s->objects.program);
	else
		objects_close(&s->objects);
	*s = (struct subject){0};
}

/* --- values of inputs --- */

static bool reserve_carried(struct carried *c, size_t bytes)
{
	if (bytes <= c->bytes)
		return true;
	void *values = realloc(c->values, bytes);
	if (!values)
		return complain("no memory for what nodes and edges carry");
	c->values = values;
	c->bytes = bytes;
	return true;
}

static int32_t rows_of(const esp_input *input, const struct shape *shape)
{
	return input->on_edges ? shape->begin[shape->nodes] : shape->nodes;
}

static uint32_t word_of(const esp_input *input, const struct shape *shape, int row)
{
	return input->on_edges ? shape_edge_word(shape, row) : shape->word[row];
}

/* A token without a limit selects a case of the model. Its values are not known here, but they are small. */
enum { TAGS = 4 };

static bool carry_tokens(struct carried *c, const esp_input *input, const struct shape *shape)
{
	int32_t rows = rows_of(input, shape);
	int64_t limit = input->limit ? input->limit : TAGS;
	if (!reserve_carried(c, rows * sizeof(int32_t)))
		return false;
	for (int i = 0; i < rows; i++)
		((int32_t *)c->values)[i] = word_of(input, shape, i) % limit;
	return true;
}

/* Draws the vector of a node from a generator seeded with its word, so that other programs can compute it
 * from the word.  They are from -1 to 1, or in the bound that the model declares. */
static bool carry_vectors(struct carried *c, const esp_input *input, const struct shape *shape)
{
	int32_t rows = rows_of(input, shape);
	if (!reserve_carried(c, rows * input->elements * sizeof(float)))
		return false;
	float *to = c->values, scale = input->within > 0 && input->within < 1 ? input->within : 1;
	for (int i = 0; i < rows; i++) {
		struct random r = {word_of(input, shape, i)};
		for (size_t e = 0; e < input->elements; e++)
			*to++ = random_float(&r) * scale;
	}
	return true;
}

static int add_structure(struct subject *s, size_t index)
{
	const struct shape *shape = &s->shapes->at[index % s->shapes->n];
	const void *data[MOST_INPUTS];
	const esp_input *input;
	esp_error *error;
	for (int i = 0; (input = esp_program_input(s->objects.program, i)); i++) {
		struct carried *c = &s->carried[i];
		if (!(input->is_token ? carry_tokens : carry_vectors)(c, input, shape))
			return EXIT_INPUT;
		data[i] = c->values;
	}
	esp_structure structure = {.size = sizeof structure,
				   .nodes = shape->nodes,
				   .child_begin = shape->begin,
				   .children = shape->children,
				   .root = shape->nodes - 1,
				   .data = data};
	esp_status status = esp_forest_add(s->forest, &structure, &error);
	return status ? report_failure(status, error) : 0;
}

/* --- running --- */

/* Reads the file once and appends at most *left structures; those before `first` are skipped. */
static esp_status read_through(struct subject *s, size_t first, size_t *left, esp_error **error)
{
	esp_treebank *bank;
	esp_status status = input_begin(s->trees, &s->objects, &bank, error);
	int more = 1;
	for (size_t i = 0; *left && more && !status; i++) {
		if (i && i == first)
			esp_forest_clear(s->forest);
		status = esp_treebank_next(bank, s->forest, &more, error);
		*left -= more && i >= first;
	}
	esp_treebank_free(bank);
	return status;
}

static int fill_from_file(struct subject *s, size_t first, size_t count)
{
	esp_error *error;
	size_t begin = s->structures ? first % s->structures : first;
	esp_status status = read_through(s, begin, &count, &error);
	while (s->structures && count && !status)
		status = read_through(s, 0, &count, &error);
	return status ? report_failure(status, error) : 0;
}

static int fill_from_arrays(struct subject *s, size_t first, size_t count)
{
	esp_error *error = NULL;
	esp_status status = ESP_OK;
	size_t rows = arrays_rows(s->arrays), at = s->structures ? first % rows : first;
	while (count && at < rows && !status) {
		size_t n = count < rows - at ? count : rows - at;
		status = arrays_add(s->arrays, s->forest, at, n, &error);
		count -= n;
		at = s->structures ? 0 : rows;
	}
	return status ? report_failure(status, error) : 0;
}

/* Whether a structure could not be read because a vocabulary, a column or vectors are missing. */
static bool lacks_data(esp_status status, const esp_error *error)
{
	const esp_diagnostic *d = esp_error_get(error, 0);
	return status == ESP_ERROR_ARGUMENT || (d && strcmp(d->id, "input-not-supplied") == 0);
}

int subject_can_read(struct subject *s, const char *path, bool *can)
{
	esp_treebank *bank;
	esp_error *error;
	int more;
	const struct reading *r = &s->objects.reading;
	esp_status status = input_begin(path, &s->objects, &bank, &error);
	if (!status)
		status = esp_treebank_next(bank, s->forest, &more, &error);
	esp_treebank_free(bank);
	esp_forest_clear(s->forest);
	*can = !status;
	if (!status || r->vocabs || r->options.columns || !lacks_data(status, error))
		return status ? report_failure(status, error) : 0;
	esp_error_free(error);
	return 0;
}

int subject_fill(struct subject *s, size_t first, size_t count)
{
	int status = 0;
	esp_forest_clear(s->forest);
	s->first = first;
	if (s->arrays)
		return fill_from_arrays(s, first, count);
	if (s->trees)
		return fill_from_file(s, first, count);
	for (size_t i = 0; i < count && !status; i++)
		status = add_structure(s, first + i);
	return status;
}

int subject_run(struct subject *s, struct timing *t)
{
	esp_error *error;
	double linearize = esp_session_costs(s->session)->linearize, begin = read_clock();
	esp_status status = esp_session_run(s->session, s->forest, &error);
	t->whole = read_clock() - begin;
	t->linearize = esp_session_costs(s->session)->linearize - linearize;
	return status ? report_failure(status, error) : 0;
}

size_t subject_nodes(const struct subject *s)
{
	size_t n = 0;
	for (size_t i = 0; i < esp_forest_structures(s->forest); i++)
		n += esp_forest_nodes(s->forest, i);
	return n;
}
