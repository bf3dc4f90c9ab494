/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arrays by the names of the inputs that they are for. */
#include "api/objects.h"
#include "onnx/graph.h"

#include <string.h>

/* --- names: those of an ONNX graph before those that the language has for them --- */

size_t esp_program_find_input(const esp_program *p, const char *name)
{
	size_t n = esp_program_inputs(p);
	for (size_t i = 0; name && i < n; i++)
		if (strcmp(p->inputs[i].name, name) == 0)
			return i;
	for (size_t i = 0; name && i < n; i++)
		if (onnx_is_spelled(name, p->inputs[i].name))
			return i;
	return n;
}

size_t esp_program_find_output(const esp_program *p, const char *name)
{
	size_t n = esp_program_outputs(p);
	for (size_t i = 0; name && i < n; i++)
		if (strcmp(p->outputs[i].name, name) == 0)
			return i;
	for (size_t i = 0; name && i < n; i++)
		if (onnx_is_spelled(name, p->outputs[i].name))
			return i;
	return n;
}

/* --- arrays --- */

static bool refuse(struct diags *diags, const char *name, const char *what, const char *hint)
{
	return diag_add(diags, DIAG_BAD_ARRAY, (struct diag_at){0}, hint, "the array '%.100s' %s", name,
			what);
}

static void print_shape(struct str *s, const size_t *shape, size_t rank, const char *before)
{
	str_printf(s, "[%s", before);
	for (size_t d = 0; d < rank; d++)
		str_printf(s, "%s%zu", d || *before ? ", " : "", shape[d]);
	str_puts(s, "]");
}

static bool refuse_shape(struct arena *arena, struct diags *diags, const esp_array *a, const esp_input *in)
{
	struct str what = str_in(arena);
	str_puts(&what, "has the shape ");
	print_shape(&what, a->shape, a->rank, "");
	str_puts(&what, ", its input ");
	print_shape(&what, in->shape, in->rank, "");
	str_puts(&what, ", for several rows ");
	print_shape(&what, in->shape, in->rank, "rows");
	return refuse(diags, a->name, str_text(&what), NULL);
}

static bool refuse_type(struct arena *arena, struct diags *diags, const esp_array *a, const esp_input *in)
{
	struct str what = str_in(arena);
	const char *own = esp_dtype_name(a->dtype);
	str_printf(&what, "is %s, its input %s", own ? own : "of no type", esp_dtype_name(in->dtype));
	return refuse(diags, a->name, str_text(&what), "convert it: nothing is converted by itself");
}

/* The rows that an array has, -1 = its shape is not that of its input; *single: it has no axis for them. */
static int64_t count_rows(const esp_array *a, const esp_input *in, bool *single)
{
	*single = a->rank == in->rank;
	if (!*single && a->rank != in->rank + 1)
		return -1;
	for (size_t d = 0; d < in->rank; d++)
		if (a->shape[a->rank - in->rank + d] != in->shape[d])
			return -1;
	return *single ? 1 : (int64_t)a->shape[0];
}

struct calling {
	esp_forest *forest;
	const esp_array *array;
	size_t n;
	struct diags *diags;
	struct arena arena; /* data by input, and texts */
	const void **data;
	int64_t rows; /* -1 = not known yet */
};

static bool place_array(struct calling *c, const esp_array *a)
{
	esp_program *p = c->forest->program;
	if (!a->name || !a->elements || (a->rank && !a->shape))
		return api_bad_argument(c->diags, "esp_session_call", "arrays",
					"must have a name, a shape and elements each");
	size_t i = esp_program_find_input(p, a->name);
	if (i == esp_program_inputs(p))
		return refuse(c->diags, a->name, "is of no input",
			      "espalier check lists the inputs of a model");
	const esp_input *in = esp_program_input(p, i);
	bool single;
	int64_t rows = count_rows(a, in, &single);
	if (c->data[i])
		return refuse(c->diags, a->name, "comes twice", NULL);
	if (a->dtype != in->dtype)
		return refuse_type(&c->arena, c->diags, a, in);
	if (rows < 0)
		return refuse_shape(&c->arena, c->diags, a, in);
	if (c->rows >= 0 && rows != c->rows)
		return refuse(c->diags, a->name, "has another number of rows than those before it", NULL);
	c->data[i] = a->elements;
	c->rows = rows;
	return true;
}

static bool place_arrays(void *job)
{
	struct calling *c = job;
	esp_program *p = c->forest->program;
	c->data = ARENA_ARRAY(&c->arena, const void *, esp_program_inputs(p) + 1);
	for (size_t i = 0; i < c->n; i++)
		if (!place_array(c, &c->array[i]))
			return false;
	for (size_t i = 0; i < esp_program_inputs(p); i++)
		if (!c->data[i])
			return refuse(c->diags, esp_program_input(p, i)->name,
				      "is missing: each input needs one", NULL);
	return forest_add_rows(c->forest, c->rows < 0 ? 1 : (size_t)c->rows, c->data, c->diags);
}

bool forest_add_called(esp_forest *f, const esp_array *arrays, size_t n, struct diags *diags)
{
	struct calling c = {.forest = f, .array = arrays, .n = n, .diags = diags, .rows = -1};
	if (f->program->interface.children)
		return api_bad_argument(diags, "esp_session_call", "session",
					"is of a model with a structure: esp_session_run runs it");
	arena_init(&c.arena, &f->object.context->allocator);
	bool ok = api_guarded(&c.arena, diags, place_arrays, &c);
	arena_free(&c.arena);
	return ok;
}
