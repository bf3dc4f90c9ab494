/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams: sequences whose elements come later. */
#include "native.h"

struct py_stream {
	PyObject_HEAD PyObject *service;
	esp_stream *at;
};

static esp_stream *stream_of(PyObject *self)
{
	return ((struct py_stream *)self)->at;
}

static PyObject *new_stream(PyObject *service, esp_stream *made)
{
	allocfunc take = PyType_GetSlot(types.stream, Py_tp_alloc);
	struct py_stream *s = (struct py_stream *)take(types.stream, 0);
	if (!s) {
		esp_stream_free(made);
		return NULL;
	}
	s->service = Py_NewRef(service);
	s->at = made;
	return (PyObject *)s;
}

static void end_stream(PyObject *self)
{
	struct py_stream *s = (struct py_stream *)self;
	esp_stream_free(s->at);
	Py_DECREF(s->service);
	free_object(self);
}

PyObject *open_stream(PyObject *service, PyObject *saved)
{
	esp_service *s = ((struct py_service *)service)->at;
	esp_stream *made = NULL;
	esp_error *error = NULL;
	Py_buffer bytes;
	esp_status status;
	if (saved == Py_None) {
		status = esp_stream_open(s, &made, &error);
	} else {
		if (PyObject_GetBuffer(saved, &bytes, PyBUF_SIMPLE))
			return NULL;
		status = esp_stream_restore(s, bytes.buf, (size_t)bytes.len, &made, &error);
		PyBuffer_Release(&bytes);
	}
	return status ? raise_error(status, error) : new_stream(service, made);
}

static PyObject *copy(PyObject *self, PyObject *none)
{
	esp_stream *made;
	esp_error *error = NULL;
	(void)none;
	esp_status status = esp_stream_copy(stream_of(self), &made, &error);
	return status ? raise_error(status, error) : new_stream(((struct py_stream *)self)->service, made);
}

/* --- elements --- */

/* Reads elements, and counts them in the forest of the request, of which only that is used. */
static struct runner *read_elements(struct py_program *p, PyObject *elements)
{
	struct runner *r = NULL;
	if (p->has_edges)
		PyErr_SetString(PyExc_TypeError, "elements of streams cannot carry inputs on edges");
	else if (!PySequence_Check(elements))
		PyErr_SetString(PyExc_TypeError,
				"elements are a list, a tuple or an array of what they carry");
	else
		r = new_request(p);
	if (!r || walk_sequence(p, &r->flat, elements))
		return r;
	free_runner(r);
	return NULL;
}

static esp_status push_elements(esp_stream *s, struct runner *r, const esp_submit_options *o,
				esp_ticket **out, esp_error **error)
{
	const void **data = PyMem_Calloc(r->flat.inputs + 1, sizeof *data);
	if (!data)
		return ESP_ERROR_MEMORY;
	for (size_t i = 0; i < r->flat.inputs; i++)
		data[i] = r->flat.data[i].at;
	esp_status status = esp_stream_push(s, (size_t)flat_nodes(&r->flat), data, o, out, error);
	PyMem_Free(data);
	return status;
}

/* push(elements, priority=0, deadline=None, event=False) */
static PyObject *push(PyObject *self, PyObject *args, PyObject *names)
{
	struct py_stream *s = (struct py_stream *)self;
	PyObject *elements;
	esp_submit_options o;
	esp_error *error = NULL;
	if (!PyArg_ParseTuple(args, "O", &elements) || !read_submission(names, &o))
		return NULL;
	struct runner *r = read_elements(((struct py_service *)s->service)->program, elements);
	struct py_ticket *t = r ? new_ticket(s->service, r) : NULL;
	if (!t)
		return NULL;
	expect_ticket(t, &o);
	esp_status status = push_elements(s->at, r, &o, &t->at, &error);
	if (status || flat_flush(&r->flat, r->forest))
		return submitted(t, &o, status, error);
	esp_ticket_cancel(t->at);
	Py_DECREF((PyObject *)t);
	return NULL;
}

static PyObject *save(PyObject *self, PyObject *none)
{
	size_t needed = 0;
	esp_error *error = NULL;
	(void)none;
	esp_status status = esp_stream_save(stream_of(self), NULL, 0, &needed, &error);
	PyObject *bytes = status ? NULL : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)needed);
	if (bytes)
		status = esp_stream_save(stream_of(self), PyBytes_AsString(bytes), needed, &needed, &error);
	if (!status)
		return bytes;
	Py_XDECREF(bytes);
	return raise_error(status, error);
}

static PyMethodDef methods[] = {
    {"push", (PyCFunction)(void (*)(void))push, METH_VARARGS | METH_KEYWORDS, "Submits the next elements."},
    {"copy", copy, METH_NOARGS, "Another stream with the same past."},
    {"save", save, METH_NOARGS, "Its states, as bytes."},
    {0}};
static PyType_Slot slots[] = {{Py_tp_doc, "A sequence whose elements come later."},
			      {Py_tp_dealloc, end_stream},
			      {Py_tp_methods, methods},
			      {0}};
static PyType_Spec spec = {"espalier.RawStream", sizeof(struct py_stream), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

bool add_stream(PyObject *module)
{
	return add_type(module, &spec, &types.stream);
}
