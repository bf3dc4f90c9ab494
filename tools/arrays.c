/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rows of a model without a structure, from an array for each of its inputs (--input NAME=FILE, or another option). */
#include "array_file.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

struct array {
	struct array_file file;
	bool given, single; /* single: it has no axis of the batch, and is one row */
	size_t row_bytes;
};

struct arrays {
	const esp_program *program;
	const esp_model *model; /* NULL = the program was saved without it */
	const char *option;	/* that gives the files, for messages */
	size_t inputs, rows, next;
	const char *first; /* the file that the rows are counted in, NULL = none so far */
	bool single;	   /* none has an axis of the batch */
	struct array *of; /* by input of the program */
	bool *unread;	  /* by input that no output depends on: it was given */
	const void **data;
};

/* --- what a file has to hold --- */

static const char *shape_text(const size_t *shape, size_t rank, char *to, size_t room)
{
	size_t n = 0;
	for (size_t d = 0; d < rank && n < room; d++)
		n += (size_t)snprintf(to + n, room - n, "%s%zu", d ? ", " : "", shape[d]);
	to[n < room ? n : room - 1] = 0;
	return to;
}

static bool refuse_shape(const struct array *a, const esp_input *in)
{
	char has[200] = "", wanted[200] = "";
	const struct array_file *t = &a->file;
	shape_text(in->shape, in->rank, wanted, sizeof wanted);
	return complain("%s: its shape is [%s], but rows of the input '%s' are [%s]: [batch%s%s] or [%s] is read", a->file.path,
			shape_text(t->shape, t->rank, has, sizeof has), in->name, wanted, in->rank ? ", " : "", wanted, wanted);
}

/* Whether the last axes are those of a row, behind one of the batch or none.  An extent of 0 is any. */
static bool check_shape(struct array *a, const esp_input *in)
{
	const struct array_file *t = &a->file;
	a->single = t->rank == in->rank;
	if (!a->single && t->rank != in->rank + 1)
		return refuse_shape(a, in);
	for (size_t d = 0; d < in->rank; d++)
		if (in->shape[d] && t->shape[t->rank - in->rank + d] != in->shape[d])
			return refuse_shape(a, in);
	return true;
}

static bool check_type(const struct array *a, const esp_input *in)
{
	return a->file.dtype == in->dtype ||
	       complain("%s: its values are %s, but the input '%s' is %s: %s", a->file.path,
			esp_dtype_name(a->file.dtype), in->name, esp_dtype_name(in->dtype),
			array_file_hint(&a->file, in->dtype));
}

/* --- the files of the options --- */

static bool is_named(const esp_input *in, const char *name, size_t length)
{
	return strlen(in->name) == length && memcmp(in->name, name, length) == 0;
}

/* The number of an input of the graph that no output depends on, or of such inputs if there is none of the name. */
static size_t find_unread(const struct arrays *a, const char *name, size_t length)
{
	const esp_input *in;
	size_t i = 0;
	while ((in = esp_model_unread_input(a->model, i)) && !(name && is_named(in, name, length)))
		i++;
	return i;
}

/* The number of the input of that name; -1 after a message. */
static int find_input(const struct arrays *a, const char *name, size_t length)
{
	struct nearest near = {.wanted = name};
	char *wanted = strndup(name, length);
	int found = -1;
	near.wanted = wanted ? wanted : "";
	for (size_t i = 0; wanted && i < a->inputs; i++)
		nearest_offer(&near, esp_program_input(a->program, i)->name);
	size_t at = wanted ? esp_program_find_input(a->program, wanted) : a->inputs;
	if (at < a->inputs)
		found = (int)at;
	if (found < 0)
		complain_unknown("input", &near, "espalier dump ra");
	free(wanted);
	return found;
}

static bool open_file(struct array *array, esp_context *context, const char *path, const esp_input *in)
{
	array->row_bytes = in->elements * esp_dtype_size(in->dtype);
	return array_file_open(&array->file, context, path) && check_shape(array, in) && check_type(array, in);
}

/* Whether a file has rows that are of some elements: else any number of rows takes no bytes, and no file bounds it. */
static bool check_elements(const struct array *array, const esp_input *in)
{
	bool any = true;
	for (size_t d = 1; !array->single && d < array->file.rank; d++)
		any &= array->file.shape[d] > 0;
	return any || complain("%s: its rows have no elements, so that the input '%s' does not say how many there are",
			       array->file.path, in->name);
}

/* Counts the rows of the first file; those of others must be as many. */
static bool count_rows(struct arrays *a, const struct array *array, const esp_input *in)
{
	size_t rows = array->single ? 1 : array->file.shape[0];
	if (!check_elements(array, in))
		return false;
	if (a->first && rows != a->rows)
		return complain("%s: has %zu rows, but %s has %zu", array->file.path, rows, a->first, a->rows);
	if (!a->first)
		a->single = array->single;
	a->first = array->file.path;
	a->rows = rows;
	return true;
}

/* A file for an input that nothing depends on must fit it, and is not read. */
static bool check_unread(struct arrays *a, esp_context *context, const char *path, const esp_input *in)
{
	struct array array = {0};
	bool good = open_file(&array, context, path, in) && (a->inputs || count_rows(a, &array, in));
	if (good)
		complain("%s is not read: no output depends on the input '%s'", path, in->name);
	array_file_close(&array.file);
	return good;
}

/* Notes that an input is given; false after a message if it was before. */
static bool give_once(const struct arrays *a, bool *given, const esp_input *in)
{
	if (*given)
		return complain("--%s gives '%s' twice", a->option, in->name);
	return *given = true;
}

static bool open_array(struct arrays *a, esp_context *context, const char *word)
{
	const char *path = strchr(word, '=');
	if (!path || path == word)
		return complain("--%s is NAME=FILE.npy or NAME=FILE.pb, not '%s'", a->option, word);
	size_t length = (size_t)(path++ - word), unread = find_unread(a, word, length);
	const esp_input *in = esp_model_unread_input(a->model, unread);
	if (in)
		return give_once(a, &a->unread[unread], in) && check_unread(a, context, path, in);
	int i = find_input(a, word, length);
	if (i < 0)
		return false;
	in = esp_program_input(a->program, (size_t)i);
	return give_once(a, &a->of[i].given, in) && open_file(&a->of[i], context, path, in);
}

/* A program without inputs computes one row, or as many as a file has that is not read. */
static bool load_arrays(struct arrays *a)
{
	for (size_t i = 0; i < a->inputs; i++) {
		struct array *array = &a->of[i];
		const esp_input *in = esp_program_input(a->program, i);
		if (!array->given)
			return complain("no --%s NAME=FILE gives the input '%s' of the model", a->option, in->name);
		if (!count_rows(a, array, in) || !array_file_load(&array->file))
			return false;
	}
	if (!a->inputs && !a->first) {
		a->rows = 1;
		a->single = true;
	}
	return true;
}

bool arrays_check(const struct options *o)
{
	if (o->input.n && o->operands > 1)
		return complain("--input gives rows in place of the file '%s': leave one of both out", o->operand[1]);
	return o->input.n || o->operands > 1 || is_graph(o->operand[0]) ||
	       complain("there must be a file of structures or, for a model without a structure, --input NAME=FILE");
}

bool arrays_open(struct arrays **out, const char *option, const struct words *files, const struct objects *objects)
{
	struct arrays *a = *out = calloc(1, sizeof *a);
	if (!a)
		return complain("no memory for the input");
	a->program = objects->program;
	a->model = objects->model;
	a->option = option;
	a->inputs = esp_program_inputs(a->program);
	a->of = calloc(a->inputs + 1, sizeof *a->of);
	a->data = calloc(a->inputs + 1, sizeof *a->data);
	a->unread = calloc(find_unread(a, NULL, 0) + 1, sizeof *a->unread);
	if (!a->of || !a->data || !a->unread)
		return complain("no memory for the input");
	if (esp_program_children(a->program, NULL))
		return files->n ? complain("--%s gives rows, and the model is of a structure: give a file of structures", option)
				: complain("the model is of a structure: give a file of structures");
	for (int i = 0; i < files->n; i++)
		if (!open_array(a, objects->context, files->word[i]))
			return false;
	return load_arrays(a);
}

/* --- rows --- */

size_t arrays_rows(const struct arrays *a)
{
	return a->rows;
}

esp_status arrays_add(struct arrays *a, esp_forest *forest, size_t first, size_t count, esp_error **error)
{
	for (size_t i = 0; i < a->inputs; i++)
		a->data[i] = (const char *)a->of[i].file.elements + first * a->of[i].row_bytes;
	const esp_structures rows = {.size = sizeof rows, .structures = count, .data = a->data};
	return esp_forest_add_many(forest, &rows, error);
}

esp_status arrays_next(struct arrays *a, esp_forest *forest, size_t most, size_t *added, esp_error **error)
{
	size_t left = a->rows - a->next;
	*added = left < most ? left : most;
	esp_status status = arrays_add(a, forest, a->next, *added, error);
	if (!status)
		a->next += *added;
	return status;
}

bool arrays_are_single(const struct arrays *a)
{
	return a && a->single;
}

bool arrays_have_more(const struct arrays *a)
{
	return a->next < a->rows;
}

double arrays_progress(const struct arrays *a)
{
	return a->rows ? (double)a->next / (double)a->rows : 1;
}

void arrays_close(struct arrays *a)
{
	for (size_t i = 0; a && a->of && i < a->inputs; i++)
		if (a->of[i].given)
			array_file_close(&a->of[i].file);
	if (a) {
		free(a->of);
		free(a->data);
		free(a->unread);
	}
	free(a);
}
