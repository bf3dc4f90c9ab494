/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rows of a model without a structure, from an array for each of its inputs (--input NAME=FILE). */
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
	size_t inputs, rows, next;
	struct array *of; /* by input of the program */
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

/* Whether the last axes are those of a row, behind one of the batch or none. */
static bool check_shape(struct array *a, const esp_input *in)
{
	const struct array_file *t = &a->file;
	a->single = t->rank == in->rank;
	if (!a->single && t->rank != in->rank + 1)
		return refuse_shape(a, in);
	for (size_t d = 0; d < in->rank; d++)
		if (t->shape[t->rank - in->rank + d] != in->shape[d])
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

static bool open_array(struct arrays *a, esp_context *context, const char *word)
{
	const char *path = strchr(word, '=');
	if (!path || path == word)
		return complain("--input is NAME=FILE.npy or NAME=FILE.pb, not '%s'", word);
	int i = find_input(a, word, (size_t)(path++ - word));
	if (i < 0)
		return false;
	struct array *array = &a->of[i];
	const esp_input *in = esp_program_input(a->program, (size_t)i);
	if (array->given)
		return complain("--input gives '%s' twice", in->name);
	array->given = true;
	if (!array_file_open(&array->file, context, path))
		return false;
	array->row_bytes = in->elements * esp_dtype_size(in->dtype);
	return check_shape(array, in) && check_type(array, in);
}

static size_t rows_of(const struct array *a)
{
	return a->single ? 1 : a->file.shape[0];
}

static bool load_arrays(struct arrays *a)
{
	for (size_t i = 0; i < a->inputs; i++) {
		struct array *array = &a->of[i];
		if (!array->given)
			return complain("no --input gives the input '%s' of the model", esp_program_input(a->program, i)->name);
		if (rows_of(array) != rows_of(&a->of[0]))
			return complain("%s: has %zu rows, but %s has %zu", array->file.path, rows_of(array),
					a->of[0].file.path, rows_of(&a->of[0]));
		if (!array_file_load(&array->file))
			return false;
	}
	a->rows = a->inputs ? rows_of(&a->of[0]) : 0;
	return true;
}

bool arrays_check(const struct options *o)
{
	if (o->input.n && o->operands > 1)
		return complain("--input gives rows in place of the file '%s': leave one of both out", o->operand[1]);
	return o->input.n || o->operands > 1 ||
	       complain("there must be a file of structures or, for a model without a structure, --input NAME=FILE");
}

bool arrays_open(struct arrays **out, const struct words *files, esp_context *context, const esp_program *program)
{
	struct arrays *a = *out = calloc(1, sizeof *a);
	if (!a)
		return complain("no memory for the input");
	a->program = program;
	a->inputs = esp_program_inputs(program);
	a->of = calloc(a->inputs + 1, sizeof *a->of);
	a->data = calloc(a->inputs + 1, sizeof *a->data);
	if (!a->of || !a->data)
		return complain("no memory for the input");
	if (esp_program_children(program, NULL))
		return complain("--input gives rows, and the model is of a structure: give a file of structures");
	for (int i = 0; i < files->n; i++)
		if (!open_array(a, context, files->word[i]))
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
	return a && a->inputs && a->of[0].single;
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
	}
	free(a);
}
