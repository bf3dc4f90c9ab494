/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What nodes and edges carry, from Python objects to rows of elements. */
#include "native.h"

#include <string.h>

void view_free(struct view *v)
{
	Py_CLEAR(v->children);
	Py_CLEAR(v->value);
	Py_CLEAR(v->fields);
	Py_CLEAR(v->label);
}

static bool is_sequence(PyObject *o)
{
	return PyTuple_Check(o) || PyList_Check(o);
}

static bool view_fields(PyObject *object, struct view *v)
{
	PyObject *children = PyDict_GetItemString(object, "children");
	v->fields = Py_NewRef(object);
	if (!children || children == Py_None)
		return true;
	if (!is_sequence(children)) {
		PyErr_Format(PyExc_TypeError, "'children' of a node must be a list or a tuple, not %R",
			     Py_TYPE(children));
		return false;
	}
	if (PySequence_Size(children))
		v->children = Py_NewRef(children);
	return true;
}

/* A tree of nltk: a list with a label.  One over a single word is a leaf, as in brackets. */
static bool view_labelled(PyObject *object, struct view *v)
{
	v->label = PyObject_CallMethod(object, "label", NULL);
	if (!v->label)
		return false;
	Py_ssize_t n = PyList_Size(object);
	PyObject *only = n == 1 ? PyList_GetItem(object, 0) : NULL;
	if (only && !is_sequence(only) && !PyDict_Check(only))
		v->value = Py_NewRef(only);
	else if (n)
		v->children = Py_NewRef(object);
	return true;
}

bool view_node(PyObject *object, struct view *v)
{
	*v = (struct view){0};
	if (PyDict_Check(object))
		return view_fields(object, v);
	if (PyList_Check(object) && !PyList_CheckExact(object) && PyObject_HasAttrString(object, "label"))
		return view_labelled(object, v);
	if (is_sequence(object)) {
		if (PySequence_Size(object))
			v->children = Py_NewRef(object);
		return true;
	}
	if (object != Py_None)
		v->value = Py_NewRef(object);
	return true;
}

/* --- tokens --- */

/* Where an error is. */
struct place {
	int64_t structure, node;
};

static bool refuse_value(const struct reader *r, PyObject *value, struct place at, const char *hint,
			 const char *what)
{
	PyObject *shown = PyObject_ASCII(value), *bytes = shown ? PyUnicode_AsUTF8String(shown) : NULL;
	if (bytes)
		refuse_input("bad-argument", at.structure, at.node, hint,
			     "'%s' of node %lld of structure %lld %s: %.80s", r->input->name,
			     (long long)at.node, (long long)at.structure, what, PyBytes_AsString(bytes));
	Py_XDECREF(shown);
	Py_XDECREF(bytes);
	return false;
}

static bool read_word(const struct reader *r, PyObject *word, struct place at, int32_t *token)
{
	Py_ssize_t length;
	const char *text = PyUnicode_AsUTF8AndSize(word, &length);
	if (!text)
		return false;
	if (!r->vocab)
		return refuse_value(r, word, at, "give vocab= to espalier.load, or numbers",
				    "is a word, and there is no vocabulary");
	*token = esp_vocab_find(((struct py_vocab *)r->vocab)->at, text, (size_t)length);
	if (*token >= 0)
		return true;
	refuse_input("unknown-word", at.structure, at.node, "add the word, or <unk>, to the vocabulary",
		     "'%.200s' is not in the vocabulary, nor is <unk>", text);
	return false;
}

static bool read_token(const struct reader *r, PyObject *value, struct place at, int32_t *token)
{
	if (PyUnicode_Check(value))
		return read_word(r, value, at, token);
	PyObject *number = PyIndex_Check(value) ? PyNumber_Index(value) : NULL;
	if (!number) {
		PyErr_Clear();
		return refuse_value(r, value, at, "tokens are numbers, or words of a vocabulary",
				    "is no token");
	}
	long n = PyLong_AsLong(number);
	Py_DECREF(number);
	if ((n == -1 && PyErr_Occurred()) || n != (int32_t)n) {
		PyErr_Clear();
		return refuse_value(r, value, at, "tokens have 32 bits", "is too large");
	}
	*token = (int32_t)n;
	return true;
}

/* --- vectors and numbers --- */

static bool read_vector(const struct reader *r, PyObject *value, struct place at, char *to)
{
	Py_buffer view;
	size_t bytes = r->input->elements * esp_dtype_size(r->input->dtype);
	if (!view_array(value, r->input->dtype, r->input->name, &view))
		return false;
	bool fits = (size_t)view.len == bytes;
	if (fits)
		memcpy(to, view.buf, bytes);
	else
		refuse_input("shape-mismatch", at.structure, at.node,
			     "each node carries as many as the model's shape says",
			     "'%s' of node %lld of structure %lld has %zd elements; the model takes %zu",
			     r->input->name, (long long)at.node, (long long)at.structure,
			     view.itemsize ? view.len / view.itemsize : 0, r->input->elements);
	PyBuffer_Release(&view);
	return fits;
}

static bool add_row(const struct reader *r, struct array *rows, PyObject *value, struct place at)
{
	size_t bytes =
	    r->input->is_token ? sizeof(int32_t) : r->input->elements * esp_dtype_size(r->input->dtype);
	int32_t token = -1;
	/* Reading a value runs Python code, which must not see memory that may move. */
	if (value && r->input->is_token && !read_token(r, value, at, &token))
		return false;
	char *to = array_add(rows, bytes);
	if (!to)
		return false;
	if (r->input->is_token)
		memcpy(to, &token, bytes);
	else if (!value)
		memset(to, 0, bytes);
	else
		return read_vector(r, value, at, to);
	return true;
}

/* --- nodes and edges --- */

/* The value of an input, borrowed; NULL = there is none. */
static PyObject *find_value(const struct reader *r, const struct view *v)
{
	PyObject *found = v->fields ? PyDict_GetItemWithError(v->fields, r->key) : NULL;
	if (!found && r->takes_label)
		found = v->label;
	if (!found && r->takes_value)
		found = v->value;
	return found == Py_None ? NULL : found;
}

static bool refuse_missing(const struct py_program *p, const struct reader *r, const struct view *v,
			   struct place at)
{
	return refuse_input(
	    "missing-data", at.structure, at.node,
	    p->rows    ? "give arrays by the names of the inputs: model(x=array, y=array)"
	    : v->value ? "give the node as a dict, {'input': value, ...}: the model has several inputs"
		       : "give the node a value: a dict {'input': value, 'children': [...]}",
	    "node %lld of structure %lld carries no '%s'", (long long)at.node, (long long)at.structure,
	    r->input->name);
}

bool add_node_rows(struct py_program *p, struct flat *f, const struct view *v, int64_t node)
{
	struct place at = {flat_structure(f), node};
	for (size_t i = 0; i < p->inputs; i++) {
		const struct reader *r = &p->reader[i];
		if (r->input->on_edges)
			continue;
		PyObject *value = find_value(r, v);
		if (PyErr_Occurred())
			return false;
		if (!value && (v->children ? r->input->at_inner : r->input->at_leaves))
			return refuse_missing(p, r, v, at);
		Py_XINCREF(value);
		bool ok = add_row(r, &f->data[i], value, at);
		Py_XDECREF(value);
		if (!ok)
			return false;
	}
	return true;
}

static PyObject *find_field(PyObject *object, PyObject *key)
{
	return object && PyDict_Check(object) ? PyDict_GetItemWithError(object, key) : NULL;
}

bool add_edge_rows(struct py_program *p, struct flat *f, PyObject *child, PyObject *edge, int64_t node)
{
	struct place at = {flat_structure(f), node};
	for (size_t i = 0; i < p->inputs; i++) {
		const struct reader *r = &p->reader[i];
		if (!r->input->on_edges)
			continue;
		PyObject *value = find_field(edge, r->key);
		if (!value && !PyErr_Occurred())
			value = find_field(child, r->key);
		if (PyErr_Occurred())
			return false;
		if (!value || value == Py_None)
			return refuse_input("missing-data", at.structure, at.node,
					    "a child is a dict that also has what its edge carries",
					    "an edge of node %lld of structure %lld carries no '%s'",
					    (long long)node, (long long)at.structure, r->input->name);
		Py_INCREF(value);
		bool ok = add_row(r, &f->data[i], value, at);
		Py_DECREF(value);
		if (!ok)
			return false;
	}
	return true;
}
