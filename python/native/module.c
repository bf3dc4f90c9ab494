/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The module itself: its types and its functions. */
#include "native.h"

#include <string.h>

struct types types;

void free_object(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = PyType_GetSlot(type, Py_tp_free);
	release(object);
	Py_DECREF(type);
}

void replace_object(PyObject **at, PyObject *by)
{
	PyObject *before = *at;
	*at = by;
	Py_XDECREF(before);
}

bool add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
	*out = (PyTypeObject *)PyType_FromSpec(spec);
	return *out && PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, (PyObject *)*out) == 0;
}

bool need_type(PyObject *argument, PyTypeObject *type, const char *what)
{
	if (argument && PyObject_TypeCheck(argument, type))
		return true;
	PyErr_Format(PyExc_TypeError, "%s must be a %R, not %R", what, type,
		     argument ? Py_TYPE(argument) : Py_TYPE(Py_None));
	return false;
}

PyObject *decode_text(const char *text)
{
	return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

PyObject *take_text(char *text)
{
	PyObject *taken = decode_text(text ? text : "");
	esp_text_free(text);
	return taken;
}

PyObject *shape_tuple(const size_t *shape, size_t rank)
{
	PyObject *tuple = PyTuple_New((Py_ssize_t)rank);
	for (size_t i = 0; tuple && i < rank; i++) {
		PyObject *extent = PyLong_FromSize_t(shape[i]);
		if (!extent)
			Py_CLEAR(tuple);
		else
			PyTuple_SetItem(tuple, (Py_ssize_t)i, extent);
	}
	return tuple;
}

static PyObject *list_texts(const char *(*text_at)(size_t))
{
	PyObject *list = PyList_New(0);
	for (size_t i = 0; list && text_at(i); i++) {
		PyObject *text = decode_text(text_at(i));
		if (!text || PyList_Append(list, text))
			Py_CLEAR(list);
		Py_XDECREF(text);
	}
	return list;
}

static PyObject *targets(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	return list_texts(esp_target);
}

static PyObject *dump_stages(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	return list_texts(esp_dump_stage);
}

static PyObject *explain_error(PyObject *module, PyObject *id)
{
	(void)module;
	PyObject *bytes = PyUnicode_AsUTF8String(id);
	const esp_message *m = bytes ? esp_message_find(PyBytes_AsString(bytes)) : NULL;
	Py_XDECREF(bytes);
	if (m)
		return Py_BuildValue("(sss)", m->message, m->explanation, m->fix);
	if (!PyErr_Occurred())
		PyErr_SetObject(PyExc_KeyError, id);
	return NULL;
}

static PyObject *clock_now(PyObject *module, PyObject *none)
{
	(void)module, (void)none;
	return PyLong_FromLongLong(esp_clock());
}

static PyMethodDef functions[] = {
    {"targets", targets, METH_NOARGS, "The names that `target` takes."},
    {"dump_stages", dump_stages, METH_NOARGS, "The stages of the compiler, in order."},
    {"explain_error", explain_error, METH_O, "Message, explanation and remedy of a diagnostic's id."},
    {"clock", clock_now, METH_NOARGS, "The time of deadlines [ns]."},
    {0}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "espalier._native", .m_size = -1,
    .m_doc = "The C library Espalier, as Python objects; use the package `espalier`.",
    .m_methods = functions};

static bool fill_module(PyObject *m)
{
	return PyModule_AddStringConstant(m, "version", esp_version()) == 0 && add_errors(m) &&
	       add_context(m) && add_model(m) && add_builder(m) && add_weights(m) && add_vocab(m) &&
	       add_structures(m) && add_program(m) && add_result(m) && add_rows(m) && add_service(m) &&
	       add_ticket(m) && add_stream(m);
}

PyMODINIT_FUNC PyInit__native(void)
{
	PyObject *module = PyModule_Create(&definition);
	if (module && !fill_module(module))
		Py_CLEAR(module);
	return module;
}
