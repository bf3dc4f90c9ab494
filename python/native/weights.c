/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights, of a file or in memory, and vocabularies. */
#include "native.h"

static void end_weights(PyObject *self)
{
	struct py_weights *w = (struct py_weights *)self;
	esp_weights_free(w->at);
	if (w->bytes.obj)
		PyBuffer_Release(&w->bytes);
	free_object(self);
}

/* Opens a path, or views bytes, which stay where they are. */
static esp_status open_weights(struct py_weights *w, esp_context *c, PyObject *source, esp_error **error)
{
	esp_status status = ESP_OK;
	if (PyObject_CheckBuffer(source)) {
		if (PyObject_GetBuffer(source, &w->bytes, PyBUF_SIMPLE))
			return ESP_OK;
		return esp_weights_from_memory(c, w->bytes.buf, (size_t)w->bytes.len, &w->at, error);
	}
	PyObject *path = NULL;
	if (!PyUnicode_FSConverter(source, &path))
		return ESP_OK;
	const char *name = PyBytes_AsString(path);
	WITHOUT_LOCK(status = esp_weights_open(c, name, &w->at, error));
	Py_DECREF(path);
	return status;
}

static PyObject *make_weights(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *known[] = {"context", "source", NULL};
	PyObject *context, *source;
	if (!PyArg_ParseTupleAndKeywords(args, names, "OO", known, &context, &source) ||
	    !need_type(context, types.context, "context"))
		return NULL;
	allocfunc take = PyType_GetSlot(type, Py_tp_alloc);
	struct py_weights *w = (struct py_weights *)take(type, 0);
	esp_error *error = NULL;
	if (!w)
		return NULL;
	esp_status status = open_weights(w, ((struct py_context *)context)->at, source, &error);
	if (w->at)
		return (PyObject *)w;
	Py_DECREF((PyObject *)w);
	return PyErr_Occurred() ? NULL : raise_error(status, error);
}

PyObject *new_weights(esp_weights *made)
{
	allocfunc take = PyType_GetSlot(types.weights, Py_tp_alloc);
	struct py_weights *w = (struct py_weights *)take(types.weights, 0);
	if (w)
		w->at = made;
	else
		esp_weights_free(made);
	return (PyObject *)w;
}

/* A list of names, types and shapes. */
static PyObject *list_tensors(PyObject *self, PyObject *none)
{
	(void)none;
	PyObject *list = PyList_New(0);
	const esp_tensor *t;
	for (size_t i = 0; list && (t = esp_weights_tensor(((struct py_weights *)self)->at, i)); i++) {
		PyObject *item =
		    Py_BuildValue("(ssN)", t->name, esp_dtype_name(t->dtype), shape_tuple(t->shape, t->rank));
		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

static PyMethodDef weights_methods[] = {
    {"tensors", list_tensors, METH_NOARGS, "Name, type and shape of each tensor."}, {0}};
static PyType_Slot weights_slots[] = {
    {Py_tp_doc, "Tensors of a safetensors file, or of its bytes in memory."},
    {Py_tp_new, make_weights},
    {Py_tp_dealloc, end_weights},
    {Py_tp_methods, weights_methods},
    {0}};
static PyType_Spec weights_spec = {"espalier.Weights", sizeof(struct py_weights), 0, Py_TPFLAGS_DEFAULT,
				   weights_slots};

bool add_weights(PyObject *module)
{
	return add_type(module, &weights_spec, &types.weights);
}

/* --- vocabularies --- */

static void end_vocab(PyObject *self)
{
	esp_vocab_free(((struct py_vocab *)self)->at);
	free_object(self);
}

static PyObject *new_vocab(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *known[] = {"context", "path", NULL};
	PyObject *context, *path = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, names, "OO&", known, &context, PyUnicode_FSConverter, &path))
		return NULL;
	allocfunc take = PyType_GetSlot(type, Py_tp_alloc);
	struct py_vocab *v =
	    need_type(context, types.context, "context") ? (struct py_vocab *)take(type, 0) : NULL;
	esp_error *error = NULL;
	esp_status status =
	    v ? esp_vocab_open(((struct py_context *)context)->at, PyBytes_AsString(path), &v->at, &error)
	      : ESP_OK;
	Py_DECREF(path);
	if (!status)
		return (PyObject *)v;
	Py_DECREF((PyObject *)v);
	return raise_error(status, error);
}

static PyObject *find_word(PyObject *self, PyObject *word)
{
	Py_ssize_t length;
	const char *text = PyUnicode_AsUTF8AndSize(word, &length);
	return text ? PyLong_FromLong(esp_vocab_find(((struct py_vocab *)self)->at, text, (size_t)length))
		    : NULL;
}

static Py_ssize_t count_words(PyObject *self)
{
	return (Py_ssize_t)esp_vocab_words(((struct py_vocab *)self)->at);
}

static PyMethodDef vocab_methods[] = {
    {"find", find_word, METH_O, "The token of a word; -1 = it is not there, nor is <unk>."}, {0}};
static PyType_Slot vocab_slots[] = {
    {Py_tp_doc, "A vocabulary: one word a line, the number of the line is its token."},
    {Py_tp_new, new_vocab},
    {Py_tp_dealloc, end_vocab},
    {Py_tp_methods, vocab_methods},
    {Py_sq_length, count_words},
    {0}};
static PyType_Spec vocab_spec = {"espalier.Vocab", sizeof(struct py_vocab), 0, Py_TPFLAGS_DEFAULT,
				 vocab_slots};

bool add_vocab(PyObject *module)
{
	return add_type(module, &vocab_spec, &types.vocab);
}
