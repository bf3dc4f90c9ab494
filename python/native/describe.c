/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a program takes and gives. */
#include "native.h"

static esp_program *program_of(PyObject *self)
{
	return ((struct py_program *)self)->at;
}

/* Appends an item, which it takes; false when there is none. */
static bool append(PyObject *list, PyObject *item)
{
	bool ok = item && PyList_Append(list, item) == 0;
	Py_XDECREF(item);
	return ok;
}

static PyObject *get_inputs(PyObject *self, void *none)
{
	(void)none;
	PyObject *list = PyList_New(0);
	const esp_input *in;
	for (size_t i = 0; list && (in = esp_program_input(program_of(self), i)); i++)
		if (!append(list, Py_BuildValue("(sNsNNLd)", in->name, PyBool_FromLong(in->is_token),
						in->is_token ? "i32" : esp_dtype_name(in->dtype),
						shape_tuple(in->shape, in->rank),
						PyBool_FromLong(in->on_edges), (long long)in->limit,
						(double)in->within)))
			Py_CLEAR(list);
	return list;
}

static PyObject *list_labels(const esp_output *o)
{
	PyObject *tuple = PyTuple_New((Py_ssize_t)o->labels);
	for (size_t i = 0; tuple && i < o->labels; i++) {
		PyObject *text = decode_text(o->label[i]);
		if (!text)
			Py_CLEAR(tuple);
		else
			PyTuple_SetItem(tuple, (Py_ssize_t)i, text);
	}
	return tuple;
}

static PyObject *get_outputs(PyObject *self, void *none)
{
	(void)none;
	PyObject *list = PyList_New(0);
	const esp_output *o;
	for (size_t i = 0; list && (o = esp_program_output(program_of(self), i)); i++)
		if (!append(list, Py_BuildValue("(ssNNN)", o->name, esp_dtype_name(o->dtype),
						shape_tuple(o->shape, o->rank), PyBool_FromLong(o->at_root),
						list_labels(o))))
			Py_CLEAR(list);
	return list;
}

static PyObject *get_states(PyObject *self, void *none)
{
	(void)none;
	PyObject *list = PyList_New(0);
	const esp_state *s;
	for (size_t i = 0; list && (s = esp_program_state(program_of(self), i)); i++)
		if (!append(list, Py_BuildValue("(ssN)", s->name, esp_dtype_name(s->dtype),
						shape_tuple(s->shape, s->rank))))
			Py_CLEAR(list);
	return list;
}

static PyObject *get_sizes(PyObject *self, void *none)
{
	(void)none;
	PyObject *sizes = PyDict_New();
	const char *name;
	int64_t size;
	for (size_t i = 0; sizes && (name = esp_program_size(program_of(self), i, &size)); i++) {
		PyObject *number = PyLong_FromLongLong(size);
		if (!number || PyDict_SetItemString(sizes, name, number))
			Py_CLEAR(sizes);
		Py_XDECREF(number);
	}
	return sizes;
}

static PyObject *get_generation(PyObject *self, void *none)
{
	(void)none;
	return PyLong_FromUnsignedLongLong(esp_binding_generation(((struct py_program *)self)->binding));
}

static PyObject *get_structure(PyObject *self, void *none)
{
	const struct py_program *p = (struct py_program *)self;
	(void)none;
	return PyUnicode_FromString(p->rows ? "none" : p->sequence ? "sequence" : p->dag ? "dag" : "tree");
}

static PyObject *get_context(PyObject *self, void *none)
{
	(void)none;
	return Py_NewRef(((struct py_program *)self)->context);
}

static PyObject *get_has_weights(PyObject *self, void *none)
{
	(void)none;
	return PyBool_FromLong(esp_program_has_weights(program_of(self)));
}

PyGetSetDef program_properties[] = {
    {"inputs", get_inputs, NULL, "Name, is_token, type, shape, on_edges, limit, within of each.", NULL},
    {"outputs", get_outputs, NULL, "Name, type, shape, at_root, labels of each.", NULL},
    {"states", get_states, NULL, "Name, type, shape of each.", NULL},
    {"sizes", get_sizes, NULL, "The dimensions of the model.", NULL},
    {"structure", get_structure, NULL, "sequence, tree, dag or none.", NULL},
    {"context", get_context, NULL, "The context that it was made in.", NULL},
    {"generation", get_generation, NULL, "1, and one more with every swap.", NULL},
    {"has_weights", get_has_weights, NULL, "Whether it was loaded with weights.", NULL},
    {0}};
