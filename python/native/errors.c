/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Exceptions: one for each status, which carry the diagnostics and print as the command does. */
#include "native.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static PyTypeObject *diagnostic_type;
static PyObject *base;

/* By status.  `also` is the exception of Python that means the same. */
static struct {
	esp_status status;
	const char *name;
	PyObject **also;
	const char *doc;
	PyObject *type;
} errors[] = {
    {ESP_ERROR_INPUT, "InputError", &PyExc_ValueError,
     "A file, model, structure or weight is not as it must be.", NULL},
    {ESP_ERROR_ARGUMENT, "ArgumentError", &PyExc_ValueError, "A call itself is wrong.", NULL},
    {ESP_ERROR_MEMORY, "OutOfMemoryError", &PyExc_MemoryError, "Memory ran out, or the cap is reached.",
     NULL},
    {ESP_ERROR_BACKEND, "BackendError", &PyExc_RuntimeError,
     "Code could not be made: no back end, or it failed.", NULL},
    {ESP_ERROR_SYSTEM, "SystemRefusedError", &PyExc_OSError, "The system refused.", NULL},
    {ESP_ERROR_BUSY, "BusyError", &PyExc_RuntimeError, "A service is full, or a stream has not ended.", NULL},
    {ESP_ERROR_CLOSED, "ClosedError", &PyExc_RuntimeError, "The context was closed.", NULL},
    {ESP_ERROR_FORKED, "ForkedError", &PyExc_RuntimeError,
     "The object belongs to the process that forked this one.", NULL},
    {ESP_ERROR_EXPIRED, "ExpiredError", &PyExc_TimeoutError, "The deadline of a request passed.", NULL},
    {ESP_ERROR_CANCELLED, "CancelledError", &PyExc_RuntimeError, "The request was cancelled.", NULL},
};
enum { ERRORS = sizeof errors / sizeof *errors };

static PyStructSequence_Field fields[] = {
    {"id", "A stable word; `espalier.explain_error(id)` says more."},
    {"message", "What is wrong."},
    {"hint", "What to do, or None."},
    {"file", "Where, or None."},
    {"line", "From 1; 0 = unknown."},
    {"column", "In bytes, from 1; 0 = unknown."},
    {"source", "The line itself, or None."},
    {"structure", "The number of a structure of a minibatch; -1 = none."},
    {"node", "The number of a node of it; -1 = none."},
    {0}};
static PyStructSequence_Desc description = {"espalier.Diagnostic", "One diagnostic of an error.", fields, 9};

PyObject *python_diagnostic(const esp_diagnostic *d)
{
	PyObject *all[] = {
	    decode_text(d->id),		 decode_text(d->message),
	    decode_text(d->hint),	 d->file ? PyUnicode_DecodeFSDefault(d->file) : Py_NewRef(Py_None),
	    PyLong_FromLong(d->line),	 PyLong_FromLong(d->column),
	    decode_text(d->source),	 PyLong_FromLongLong(d->structure),
	    PyLong_FromLongLong(d->node)};
	PyObject *made = PyStructSequence_New(diagnostic_type);
	for (int i = 0; i < 9; i++)
		if (made && all[i])
			PyStructSequence_SetItem(made, i, all[i]);
		else
			Py_XDECREF(all[i]);
	if (PyErr_Occurred())
		Py_CLEAR(made);
	return made;
}

static PyObject *type_of(esp_status status)
{
	for (int i = 0; i < ERRORS; i++)
		if (errors[i].status == status)
			return errors[i].type;
	return base;
}

/* Raises an exception with the text and the diagnostics, which it takes. */
static void raise_with(PyObject *type, const char *text, PyObject *diagnostics)
{
	size_t length = strlen(text);
	while (length && text[length - 1] == '\n')
		length--;
	PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
	PyObject *exception =
	    message && diagnostics ? PyObject_CallFunctionObjArgs(type, message, NULL) : NULL;
	if (exception && PyObject_SetAttrString(exception, "diagnostics", diagnostics) == 0)
		PyErr_SetObject(type, exception);
	Py_XDECREF(exception);
	Py_XDECREF(message);
	Py_XDECREF(diagnostics);
}

PyObject *raise_error(esp_status status, esp_error *error)
{
	size_t n = esp_error_count(error);
	PyObject *diagnostics = PyTuple_New((Py_ssize_t)n);
	for (size_t i = 0; diagnostics && i < n; i++) {
		PyObject *d = python_diagnostic(esp_error_get(error, i));
		if (!d)
			Py_CLEAR(diagnostics);
		else
			PyTuple_SetItem(diagnostics, (Py_ssize_t)i, d);
	}
	const char *text = error ? esp_error_text(error) : NULL;
	raise_with(type_of(status), text ? text : esp_status_name(status), diagnostics);
	esp_error_free(error);
	return NULL;
}

bool refuse_input(const char *id, int64_t structure, int64_t node, const char *hint, const char *format, ...)
{
	char message[600], text[1200];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	snprintf(text, sizeof text, "error: %s [%s]%s%s", message, id, hint ? "\n    hint: " : "",
		 hint ? hint : "");
	PyObject *d = python_diagnostic(&(esp_diagnostic){
	    .id = id, .message = message, .hint = hint, .structure = structure, .node = node});
	raise_with(type_of(ESP_ERROR_INPUT), text, d ? PyTuple_Pack(1, d) : NULL);
	Py_XDECREF(d);
	return false;
}

static bool add_base(PyObject *module)
{
	PyObject *attributes = Py_BuildValue("{s()}", "diagnostics");
	base = attributes ? PyErr_NewExceptionWithDoc(
				"espalier.Error",
				"What the library refused; `diagnostics` says what, where and what "
				"to do.",
				NULL, attributes)
			  : NULL;
	Py_XDECREF(attributes);
	return base && PyModule_AddObjectRef(module, "Error", base) == 0;
}

bool add_errors(PyObject *module)
{
	diagnostic_type = PyStructSequence_NewType(&description);
	if (!diagnostic_type || PyModule_AddObjectRef(module, "Diagnostic", (PyObject *)diagnostic_type) ||
	    !add_base(module))
		return false;
	for (int i = 0; i < ERRORS; i++) {
		char name[64];
		snprintf(name, sizeof name, "espalier.%s", errors[i].name);
		PyObject *bases = PyTuple_Pack(2, base, *errors[i].also);
		errors[i].type = bases ? PyErr_NewExceptionWithDoc(name, errors[i].doc, bases, NULL) : NULL;
		Py_XDECREF(bases);
		if (!errors[i].type || PyModule_AddObjectRef(module, errors[i].name, errors[i].type))
			return false;
	}
	return true;
}
