/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures in arrays that grow, until they are added to a forest together. */
#include "native.h"

#include <string.h>

void *array_add(struct array *a, size_t bytes)
{
	if (!a->at || a->bytes + bytes > a->capacity) {
		size_t capacity = 2 * (a->bytes + bytes) + 64;
		char *p = PyMem_Realloc(a->at, capacity);
		if (!p)
			return PyErr_NoMemory();
		a->at = p;
		a->capacity = capacity;
	}
	a->bytes += bytes;
	return a->at + a->bytes - bytes;
}

void array_free(struct array *a)
{
	PyMem_Free(a->at);
	*a = (struct array){0};
}

bool flat_init(struct flat *f, size_t inputs)
{
	*f = (struct flat){.inputs = inputs, .data = PyMem_Calloc(inputs + 1, sizeof(struct array))};
	return f->data || PyErr_NoMemory();
}

void flat_clear(struct flat *f)
{
	f->node_begin.bytes = f->child_begin.bytes = f->children.bytes = f->root.bytes = 0;
	for (size_t i = 0; i < f->inputs; i++)
		f->data[i].bytes = 0;
}

void flat_free(struct flat *f)
{
	array_free(&f->node_begin);
	array_free(&f->child_begin);
	array_free(&f->children);
	array_free(&f->root);
	for (size_t i = 0; f->data && i < f->inputs; i++)
		array_free(&f->data[i]);
	PyMem_Free(f->data);
	f->data = NULL;
}

static size_t count_structures(const struct flat *f)
{
	return f->root.bytes / sizeof(int32_t);
}

int64_t flat_structure(const struct flat *f)
{
	return (int64_t)(f->added + count_structures(f));
}

int32_t flat_nodes(const struct flat *f)
{
	return (int32_t)(f->child_begin.bytes / sizeof(int32_t));
}

static bool add_end(struct array *a, size_t n)
{
	int32_t *end = array_add(a, sizeof *end);
	if (end)
		*end = (int32_t)n;
	return end;
}

bool flat_flush(struct flat *f, esp_forest *forest)
{
	size_t n = count_structures(f);
	if (!n)
		return true;
	const void **data = PyMem_Calloc(f->inputs + 1, sizeof *data);
	if (!data || !add_end(&f->node_begin, (size_t)flat_nodes(f)) ||
	    !add_end(&f->child_begin, f->children.bytes / sizeof(int32_t)) ||
	    !array_add(&f->children, sizeof(int32_t))) {
		PyMem_Free(data);
		PyErr_NoMemory();
		return false;
	}
	for (size_t i = 0; i < f->inputs; i++)
		data[i] = f->data[i].at ? f->data[i].at : (const char *)"";
	const esp_structures s = {sizeof s,
				  n,
				  (const int32_t *)f->node_begin.at,
				  (const int32_t *)f->child_begin.at,
				  (const int32_t *)f->children.at,
				  (const int32_t *)f->root.at,
				  data};
	esp_error *error = NULL;
	esp_status status = esp_forest_add_many(forest, &s, &error);
	PyMem_Free(data);
	flat_clear(f);
	f->added += n;
	return status ? raise_error(status, error) != NULL : true;
}
