/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arrays by name: those of a model without a structure, and what is decided about an ONNX graph when it is
 * read. */
#include "native.h"

#include <string.h>

/* --- arrays by the names of inputs --- */

static bool refuse_named(const char *name, const char *hint, const char *what)
{
	return refuse_input("bad-array", -1, -1, hint, "the array '%.100s' %s", name, what);
}

/* Arrays, by input, that are viewed for the time of a call. */
struct named {
	Py_buffer *view;
	const void **data;
	Py_ssize_t rows; /* -1 = not known yet */
};

static bool refuse_shape(const char *name, const Py_buffer *b, const esp_input *in)
{
	PyObject *own = shape_tuple((const size_t *)b->shape, (size_t)b->ndim),
		 *wanted = shape_tuple(in->shape, in->rank),
		 *text = own && wanted ? PyUnicode_FromFormat("has the shape %R, its input %R", own, wanted)
				       : NULL;
	const char *what = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
	if (what)
		refuse_named(name, "several rows have an axis more, before the others", what);
	Py_XDECREF(own);
	Py_XDECREF(wanted);
	Py_XDECREF(text);
	return false;
}

/* The rows of an array that has the shape of its input, or an axis more before it; -1 = it has another one.
 */
static Py_ssize_t count_rows(const Py_buffer *b, const esp_input *in)
{
	size_t rank = (size_t)b->ndim, more = rank - in->rank;
	if (rank != in->rank && rank != in->rank + 1)
		return -1;
	for (size_t d = 0; d < in->rank; d++)
		if ((size_t)b->shape[d + more] != in->shape[d])
			return -1;
	return more ? b->shape[0] : 1;
}

static bool place_array(struct py_program *p, struct named *n, const char *name, PyObject *array)
{
	size_t i = esp_program_find_input(p->at, name);
	const esp_input *in = esp_program_input(p->at, i);
	if (!in)
		return refuse_named(name, "`inputs` of the model lists them", "is of no input");
	if (n->data[i])
		return refuse_named(name, NULL, "comes twice");
	if (!view_array(array, in->is_token ? ESP_I32 : in->dtype, name, &n->view[i]))
		return false;
	n->data[i] = n->view[i].buf;
	Py_ssize_t rows = count_rows(&n->view[i], in);
	if (rows < 0)
		return refuse_shape(name, &n->view[i], in);
	if (n->rows >= 0 && rows != n->rows)
		return refuse_named(name, NULL, "has another number of rows than those before it");
	n->rows = rows;
	return true;
}

static bool place_arrays(struct py_program *p, struct named *n, PyObject *items)
{
	for (Py_ssize_t i = 0; i < PyList_Size(items); i++) {
		PyObject *item = PyList_GetItem(items, i);
		const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(item, 0), NULL);
		if (!name || !place_array(p, n, name, PyTuple_GetItem(item, 1)))
			return false;
	}
	for (size_t i = 0; i < p->inputs; i++)
		if (!n->data[i])
			return refuse_named(esp_program_input(p->at, i)->name, NULL,
					    "is missing: each input needs one");
	return true;
}

static bool add_placed(esp_forest *forest, const struct named *n)
{
	esp_structures s = {
	    .size = sizeof s, .structures = n->rows < 0 ? 1 : (size_t)n->rows, .data = n->data};
	esp_error *error = NULL;
	esp_status status;
	WITHOUT_LOCK(status = esp_forest_add_many(forest, &s, &error));
	return status ? raise_error(status, error) != NULL : true;
}

bool add_named(struct py_program *p, esp_forest *forest, PyObject *arrays)
{
	struct named n = {PyMem_Calloc(p->inputs + 1, sizeof *n.view),
			  PyMem_Calloc(p->inputs + 1, sizeof *n.data), -1};
	PyObject *items = PyDict_Items(arrays);
	bool ok = n.view && n.data ? items && place_arrays(p, &n, items) && add_placed(forest, &n)
				   : PyErr_NoMemory() != NULL;
	for (size_t i = 0; n.view && i < p->inputs; i++)
		PyBuffer_Release(&n.view[i]);
	PyMem_Free(n.view);
	PyMem_Free(n.data);
	Py_XDECREF(items);
	return ok;
}

/* --- what is decided about a graph --- */

/* The options, with the views that they refer to. */
struct decisions {
	esp_read_options options;
	esp_extent *extent;
	esp_array *constant;
	Py_buffer *view;
	const char **exported;
};

static bool find_dtype(const char *name, esp_dtype *dtype)
{
	for (int t = ESP_F32; t <= ESP_BOOL; t++)
		if (strcmp(esp_dtype_name((esp_dtype)t), name) == 0)
			return *dtype = (esp_dtype)t, true;
	PyErr_Format(PyExc_ValueError, "there is no type '%s'", name);
	return false;
}

static bool read_constant(struct decisions *d, PyObject *item)
{
	size_t i = d->options.constants;
	const char *name, *type;
	PyObject *array;
	esp_dtype dtype;
	if (!PyArg_ParseTuple(item, "ssO", &name, &type, &array) || !find_dtype(type, &dtype) ||
	    !view_array(array, dtype, name, &d->view[i]))
		return false;
	const Py_buffer *b = &d->view[i];
	d->constant[i] = (esp_array){name, dtype, (size_t)b->ndim, (const size_t *)b->shape, b->buf};
	d->options.constants++;
	return true;
}

static bool read_extent(struct decisions *d, PyObject *item)
{
	long long size;
	esp_extent *e = &d->extent[d->options.extents++];
	if (!PyArg_ParseTuple(item, "sL", &e->name, &size))
		return false;
	e->size = size;
	return true;
}

static bool read_export(struct decisions *d, PyObject *item)
{
	return (d->exported[d->options.exports++] = PyUnicode_AsUTF8AndSize(item, NULL)) != NULL;
}

static bool read_each(struct decisions *d, PyObject *tuple, bool (*read)(struct decisions *, PyObject *))
{
	for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++)
		if (!read(d, PyTuple_GetItem(tuple, i)))
			return false;
	return true;
}

static bool read_decisions(struct decisions *d, PyObject *sizes, PyObject *constants, PyObject *outputs)
{
	d->extent = PyMem_Calloc((size_t)PyTuple_Size(sizes) + 1, sizeof *d->extent);
	d->constant = PyMem_Calloc((size_t)PyTuple_Size(constants) + 1, sizeof *d->constant);
	d->view = PyMem_Calloc((size_t)PyTuple_Size(constants) + 1, sizeof *d->view);
	d->exported = PyMem_Calloc((size_t)PyTuple_Size(outputs) + 1, sizeof *d->exported);
	if (!d->extent || !d->constant || !d->view || !d->exported)
		return PyErr_NoMemory() != NULL;
	bool ok = read_each(d, sizes, read_extent) && read_each(d, constants, read_constant) &&
		  read_each(d, outputs, read_export);
	d->options.extent = d->extent, d->options.constant = d->constant, d->options.exported = d->exported;
	return ok;
}

static void free_decisions(struct decisions *d)
{
	for (size_t i = 0; i < d->options.constants; i++)
		PyBuffer_Release(&d->view[i]);
	PyMem_Free(d->extent);
	PyMem_Free(d->constant);
	PyMem_Free(d->view);
	PyMem_Free(d->exported);
}

static PyObject *read_decided(esp_context *c, const char *path, const struct decisions *d)
{
	esp_model *made = NULL;
	esp_error *error = NULL;
	esp_status status;
	WITHOUT_LOCK(status = esp_model_read_with(c, path, &d->options, &made, &error));
	return status ? raise_error(status, error) : new_model(made);
}

PyObject *read_onnx(PyObject *cls, PyObject *args)
{
	PyObject *context, *path = NULL, *sizes, *constants, *outputs, *model = NULL;
	struct decisions d = {.options.size = sizeof d.options};
	(void)cls;
	if (!PyArg_ParseTuple(args, "OO&O!O!O!", &context, PyUnicode_FSConverter, &path, &PyTuple_Type,
			      &sizes, &PyTuple_Type, &constants, &PyTuple_Type, &outputs))
		return NULL;
	if (need_type(context, types.context, "context") && read_decisions(&d, sizes, constants, outputs))
		model = read_decided(((struct py_context *)context)->at, PyBytes_AsString(path), &d);
	free_decisions(&d);
	Py_DECREF(path);
	return model;
}
