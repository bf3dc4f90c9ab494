/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A minibatch of Python objects: tuples, mappings, texts, arrays, and what the package turns into these. */
#include "native.h"

static bool add_treebank(esp_treebank *t, esp_forest *forest)
{
	esp_error *error = NULL;
	esp_status status;
	for (int more = 1; more;)
		if ((status = esp_treebank_next(t, forest, &more, &error)))
			return raise_error(status, error) != NULL;
	return true;
}

/* A text may have any number of structures. */
static bool add_text(struct py_program *p, esp_forest *forest, PyObject *object)
{
	Py_ssize_t length;
	const char *text = PyUnicode_AsUTF8AndSize(object, &length);
	esp_treebank *t;
	esp_error *error = NULL;
	if (!text)
		return false;
	esp_status status = esp_treebank_from_memory(((struct py_context *)p->context)->at, "text", text,
						     (size_t)length, &p->treebank, &t, &error);
	if (status)
		return raise_error(status, error) != NULL;
	bool ok = add_treebank(t, forest);
	esp_treebank_free(t);
	return ok;
}

/* Whether the object is of a type that this module reads itself. */
static bool is_known(PyObject *o)
{
	return PyTuple_CheckExact(o) || PyList_CheckExact(o) || PyDict_CheckExact(o) || PyUnicode_Check(o) ||
	       PyLong_Check(o) || PyObject_TypeCheck(o, types.structures) ||
	       (PyList_Check(o) && PyObject_HasAttrString(o, "label"));
}

static bool add_known(struct py_program *p, struct runner *r, PyObject *o)
{
	bool ok;
	if (!PyUnicode_Check(o) && !PyObject_TypeCheck(o, types.structures))
		return p->sequence && !PyDict_Check(o) && PySequence_Check(o) ? walk_sequence(p, &r->flat, o)
									      : walk_tree(p, &r->flat, o);
	if (!flat_flush(&r->flat, r->forest))
		return false;
	ok = PyUnicode_Check(o) ? add_text(p, r->forest, o)
				: add_arrays(p, r->forest, (struct py_structures *)o);
	r->flat.added = esp_forest_structures(r->forest);
	return ok;
}

static bool add_structure(struct py_program *p, struct runner *r, PyObject *o)
{
	if (is_known(o))
		return add_known(p, r, o);
	PyObject *adapted = PyObject_CallFunctionObjArgs(p->adapt, o, NULL);
	bool ok = adapted && add_known(p, r, adapted);
	Py_XDECREF(adapted);
	return ok;
}

static bool add_all(struct py_program *p, struct runner *r, PyObject *batch)
{
	PyObject *iterator = PyObject_GetIter(batch), *item;
	bool ok = iterator;
	while (ok && (item = PyIter_Next(iterator))) {
		ok = add_structure(p, r, item);
		Py_DECREF(item);
	}
	Py_XDECREF(iterator);
	return ok && !PyErr_Occurred();
}

/* Whether an object has arrays by the names of inputs; words stand for tokens, one for a row. */
static bool has_arrays(const struct py_program *p, PyObject *o)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;
	if (!p->rows || !PyDict_CheckExact(o))
		return false;
	while (PyDict_Next(o, &at, &name, &value))
		if (PyUnicode_Check(value))
			return false;
	return true;
}

bool read_batch(struct py_program *p, struct runner *r, PyObject *batch)
{
	bool many = PyList_CheckExact(batch) || PyIter_Check(batch);
	flat_clear(&r->flat);
	r->flat.added = 0;
	if (has_arrays(p, batch))
		return add_named(p, r->forest, batch);
	return (many ? add_all(p, r, batch) : add_structure(p, r, batch)) && flat_flush(&r->flat, r->forest);
}
