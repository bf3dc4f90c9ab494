/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models, as texts say them or a builder made them. */
#include "native.h"

static void end_model(PyObject *self)
{
	esp_model_free(((struct py_model *)self)->at);
	free_object(self);
}

PyObject *new_model(esp_model *made)
{
	allocfunc take = PyType_GetSlot(types.model, Py_tp_alloc);
	struct py_model *m = (struct py_model *)take(types.model, 0);
	if (m)
		m->at = made;
	else
		esp_model_free(made);
	return (PyObject *)m;
}

/* parse(context, name, text): `text` = None reads the file of that name. */
static PyObject *parse_model(PyObject *cls, PyObject *args)
{
	(void)cls;
	PyObject *context, *name = NULL;
	const char *text = NULL;
	Py_ssize_t length = 0;
	if (!PyArg_ParseTuple(args, "OO&z#", &context, PyUnicode_FSConverter, &name, &text, &length))
		return NULL;
	esp_model *made = NULL;
	esp_error *error = NULL;
	esp_status status = ESP_OK;
	bool ok = need_type(context, types.context, "context");
	esp_context *c = ok ? ((struct py_context *)context)->at : NULL;
	const char *file = PyBytes_AsString(name);
	if (ok) {
		WITHOUT_LOCK(status = text ? esp_model_parse(c, file, text, (size_t)length, &made, &error)
					   : esp_model_read(c, file, &made, &error));
	}
	Py_DECREF(name);
	if (status)
		return raise_error(status, error);
	return made ? new_model(made) : NULL;
}

static PyObject *print_model(PyObject *self)
{
	char *text;
	esp_error *error = NULL;
	esp_status status = esp_model_print(((struct py_model *)self)->at, &text, &error);
	return status ? raise_error(status, error) : take_text(text);
}

static PyObject *get_name(PyObject *self, void *none)
{
	(void)none;
	return decode_text(esp_model_describe(((struct py_model *)self)->at)->name);
}

static PyObject *get_structure(PyObject *self, void *none)
{
	(void)none;
	return PyUnicode_FromString(esp_model_describe(((struct py_model *)self)->at)->structure);
}

static PyObject *get_dimensions(PyObject *self, void *none)
{
	(void)none;
	PyObject *list = PyList_New(0);
	const char *name;
	for (size_t i = 0; list && (name = esp_model_dimension(((struct py_model *)self)->at, i)); i++) {
		PyObject *text = decode_text(name);
		if (!text || PyList_Append(list, text))
			Py_CLEAR(list);
		Py_XDECREF(text);
	}
	return list;
}

static PyObject *show_model(PyObject *self)
{
	const esp_model_facts *f = esp_model_describe(((struct py_model *)self)->at);
	return PyUnicode_FromFormat(
	    "<espalier.ModelText %s: %s, %zu inputs, %zu parameters, %zu states, %zu outputs>", f->name,
	    f->structure, f->inputs, f->params, f->states, f->outputs);
}

static PyObject *get_weights(PyObject *self, PyObject *none)
{
	(void)none;
	esp_weights *made;
	esp_error *error = NULL;
	esp_status status = esp_model_weights(((struct py_model *)self)->at, &made, &error);
	return status ? raise_error(status, error) : new_weights(made);
}

static PyMethodDef methods[] = {
    {"parse", parse_model, METH_VARARGS | METH_CLASS, "Of a text, or of a file."},
    {"read", read_onnx, METH_VARARGS | METH_CLASS, "Of a file, with decisions about a graph of ONNX."},
    {"weights", get_weights, METH_NOARGS, "The tensors of a graph of ONNX; a text has none."},
    {0}};
static PyGetSetDef properties[] = {
    {"name", get_name, NULL, "What the text calls it.", NULL},
    {"structure", get_structure, NULL, "sequence, tree, dag or none.", NULL},
    {"dimensions", get_dimensions, NULL, "The dimensions that it names.", NULL},
    {0}};
static PyType_Slot slots[] = {{Py_tp_doc, "A model before it is compiled; str() is its text."},
			      {Py_tp_dealloc, end_model},
			      {Py_tp_methods, methods},
			      {Py_tp_getset, properties},
			      {Py_tp_str, print_model},
			      {Py_tp_repr, show_model},
			      {0}};
static PyType_Spec spec = {"espalier.ModelText", sizeof(struct py_model), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

bool add_model(PyObject *module)
{
	return add_type(module, &spec, &types.model);
}
