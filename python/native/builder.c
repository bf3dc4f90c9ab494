/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models by calls: the functions esp_builder_*, with values as numbers.  The package gives them operators. */
#include "native.h"

struct py_builder {
	PyObject_HEAD esp_builder *at;
};

static esp_builder *builder_of(PyObject *self)
{
	return ((struct py_builder *)self)->at;
}

static PyObject *number_of(esp_value v)
{
	return PyLong_FromUnsignedLong(v.id);
}

static void end_builder(PyObject *self)
{
	esp_builder_free(builder_of(self));
	free_object(self);
}

static PyObject *new_builder(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *known[] = {"context", "name", "structure", NULL};
	PyObject *context;
	const char *name, *structure;
	esp_error *error = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, names, "Oss", known, &context, &name, &structure) ||
	    !need_type(context, types.context, "context"))
		return NULL;
	allocfunc take = PyType_GetSlot(type, Py_tp_alloc);
	struct py_builder *b = (struct py_builder *)take(type, 0);
	esp_status status =
	    b ? esp_builder_create(((struct py_context *)context)->at, name, structure, &b->at, &error)
	      : ESP_OK;
	if (!status)
		return (PyObject *)b;
	Py_DECREF((PyObject *)b);
	return raise_error(status, error);
}

/* --- declarations --- */

static PyObject *set_place(PyObject *self, PyObject *args)
{
	const char *file;
	int line;
	if (!PyArg_ParseTuple(args, "si", &file, &line))
		return NULL;
	esp_builder_at(builder_of(self), file, line);
	return Py_NewRef(Py_None);
}

/* declare(kind, name, shape): the value of parameters and inputs on nodes, else None. */
static PyObject *declare(PyObject *self, PyObject *args)
{
	esp_builder *b = builder_of(self);
	const char *name, *shape;
	int kind;
	if (!PyArg_ParseTuple(args, "Csz", &kind, &name, &shape))
		return NULL;
	switch (kind) {
	case 'p':
		return number_of(esp_builder_param(b, name, shape));
	case 'i':
		return number_of(esp_builder_input(b, name, shape));
	case 't':
		return number_of(esp_builder_token(b, name));
	case 'e':
		esp_builder_edge(b, name, shape);
		break;
	case 'l':
		esp_builder_edge_token(b, name);
		break;
	default:
		esp_builder_state(b, name, shape);
	}
	return Py_NewRef(Py_None);
}

static PyObject *add_case(PyObject *self, PyObject *args)
{
	const char *name, *conditions;
	int base;
	if (!PyArg_ParseTuple(args, "sis", &name, &base, &conditions))
		return NULL;
	return PyLong_FromLong(esp_builder_case(builder_of(self), name, base, conditions));
}

static PyObject *begin_body(PyObject *self, PyObject *body)
{
	long number = PyLong_AsLong(body);
	if (number == -1 && PyErr_Occurred())
		return NULL;
	esp_builder_body(builder_of(self), (int)number);
	return Py_NewRef(Py_None);
}

static PyObject *begin_traversal(PyObject *self, PyObject *args)
{
	const char *direction;
	if (!PyArg_ParseTuple(args, "s", &direction))
		return NULL;
	esp_builder_traversal(builder_of(self), direction);
	return Py_NewRef(Py_None);
}

/* --- values --- */

enum { ARGUMENTS = 64 };

/* Reads numbers of values; -1 with an exception set. */
static Py_ssize_t read_values(PyObject *tuple, esp_value *to)
{
	Py_ssize_t n = PyTuple_Size(tuple);
	if (n > ARGUMENTS)
		PyErr_SetString(PyExc_ValueError, "a call takes 64 values at most");
	for (Py_ssize_t i = 0; i < n && n <= ARGUMENTS; i++)
		to[i].id = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(tuple, i));
	return PyErr_Occurred() ? -1 : n;
}

static PyObject *number(PyObject *self, PyObject *value)
{
	double x = PyFloat_AsDouble(value);
	return x == -1 && PyErr_Occurred() ? NULL : number_of(esp_builder_number(builder_of(self), x));
}

/* call(function, values, axis=None) */
static PyObject *call(PyObject *self, PyObject *args)
{
	const char *function;
	PyObject *tuple, *axis = Py_None;
	esp_value values[ARGUMENTS];
	if (!PyArg_ParseTuple(args, "sO!|O", &function, &PyTuple_Type, &tuple, &axis))
		return NULL;
	Py_ssize_t n = read_values(tuple, values);
	long along = n < 0 || axis == Py_None ? 0 : PyLong_AsLong(axis);
	if (PyErr_Occurred())
		return NULL;
	return number_of(axis == Py_None ? esp_builder_call(builder_of(self), function, values, (size_t)n)
					 : esp_builder_call_along(builder_of(self), function, (int)along,
								  values, (size_t)n));
}

static PyObject *indexed(PyObject *self, PyObject *args)
{
	const char *text;
	PyObject *tuple;
	esp_value values[ARGUMENTS];
	if (!PyArg_ParseTuple(args, "sO!", &text, &PyTuple_Type, &tuple))
		return NULL;
	Py_ssize_t n = read_values(tuple, values);
	return n < 0 ? NULL : number_of(esp_builder_indexed(builder_of(self), text, values, (size_t)n));
}

static PyObject *lookup(PyObject *self, PyObject *args)
{
	esp_value table, token;
	if (!PyArg_ParseTuple(args, "II", &table.id, &token.id))
		return NULL;
	return number_of(esp_builder_lookup(builder_of(self), table, token));
}

static PyObject *slice(PyObject *self, PyObject *args)
{
	esp_value x;
	int axis;
	const char *begin, *end;
	if (!PyArg_ParseTuple(args, "Iizz", &x.id, &axis, &begin, &end))
		return NULL;
	return number_of(esp_builder_slice(builder_of(self), x, axis, begin, end));
}

static PyObject *reshape(PyObject *self, PyObject *args)
{
	esp_value x;
	const char *shape;
	if (!PyArg_ParseTuple(args, "Is", &x.id, &shape))
		return NULL;
	return number_of(esp_builder_reshape(builder_of(self), x, shape));
}

/* named(kind, name): zeros of a shape, a dimension, a member's state, a state of the node itself. */
static PyObject *named(PyObject *self, PyObject *args)
{
	esp_builder *b = builder_of(self);
	const char *name;
	int kind;
	if (!PyArg_ParseTuple(args, "Cs", &kind, &name))
		return NULL;
	return number_of(kind == 'z'   ? esp_builder_zeros(b, name)
			 : kind == 'd' ? esp_builder_dimension(b, name)
			 : kind == 'm' ? esp_builder_member(b, name)
				       : esp_builder_get(b, name));
}

/* relative(kind, which, name): a state of a child or a parent. */
static PyObject *relative(PyObject *self, PyObject *args)
{
	esp_builder *b = builder_of(self);
	const char *name;
	int kind, which;
	if (!PyArg_ParseTuple(args, "Cis", &kind, &which, &name))
		return NULL;
	return number_of(kind == 'c' ? esp_builder_child(b, which, name)
				     : esp_builder_parent(b, which, name));
}

/* over(kind, function, value): reduces over children, parents or members. */
static PyObject *over(PyObject *self, PyObject *args)
{
	esp_builder *b = builder_of(self);
	const char *function;
	esp_value x;
	int kind;
	if (!PyArg_ParseTuple(args, "CsI", &kind, &function, &x.id))
		return NULL;
	return number_of(kind == 'c'   ? esp_builder_children(b, function, x)
			 : kind == 'p' ? esp_builder_parents(b, function, x)
				       : esp_builder_members(b, function, x));
}

static PyObject *assign(PyObject *self, PyObject *args)
{
	const char *state;
	esp_value x;
	if (!PyArg_ParseTuple(args, "sI", &state, &x.id))
		return NULL;
	esp_builder_assign(builder_of(self), state, x);
	return Py_NewRef(Py_None);
}

/* output(name, value, at, labels) */
static PyObject *output(PyObject *self, PyObject *args)
{
	const char *name, *label[1024];
	esp_value x;
	int at;
	PyObject *labels;
	if (!PyArg_ParseTuple(args, "sIiO!", &name, &x.id, &at, &PyTuple_Type, &labels))
		return NULL;
	Py_ssize_t n = PyTuple_Size(labels);
	if (n > 1024) {
		PyErr_SetString(PyExc_ValueError, "an output has 1024 labels at most");
		return NULL;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		if (!(label[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(labels, i), NULL)))
			return NULL;
	esp_builder_output(builder_of(self), name, x, at, n ? label : NULL, (size_t)n);
	return Py_NewRef(Py_None);
}

static PyObject *finish(PyObject *self, PyObject *none)
{
	esp_model *made = NULL;
	esp_error *error = NULL;
	(void)none;
	esp_status status = esp_builder_finish(builder_of(self), &made, &error);
	return status ? raise_error(status, error) : new_model(made);
}

static PyMethodDef methods[] = {
    {"at", set_place, METH_VARARGS, "The place of the calls that follow: file, line."},
    {"declare", declare, METH_VARARGS, "Declares a parameter, an input or a state."},
    {"case", add_case, METH_VARARGS, "A case with a body of its own."},
    {"body", begin_body, METH_O, "The body of the calls that follow."},
    {"traversal", begin_traversal, METH_VARARGS, "Begins the next traversal: up or down."},
    {"number", number, METH_O, "A constant."},
    {"call", call, METH_VARARGS, "A function or an operator of the language."},
    {"indexed", indexed, METH_VARARGS, "A value by index notation."},
    {"lookup", lookup, METH_VARARGS, "A row of a parameter."},
    {"slice", slice, METH_VARARGS, "A part of an axis."},
    {"reshape", reshape, METH_VARARGS, "The elements under another shape."},
    {"named", named, METH_VARARGS, "Zeros, a dimension, a member's state, a state."},
    {"relative", relative, METH_VARARGS, "A state of a child or a parent."},
    {"over", over, METH_VARARGS, "A reduction over children, parents or members."},
    {"assign", assign, METH_VARARGS, "The value of a state in the current body."},
    {"output", output, METH_VARARGS, "An output."},
    {"finish", finish, METH_NOARGS, "Checks the model and returns it."},
    {0}};
static PyType_Slot slots[] = {{Py_tp_doc, "The functions esp_builder_*; use espalier.Builder."},
			      {Py_tp_new, new_builder},
			      {Py_tp_dealloc, end_builder},
			      {Py_tp_methods, methods},
			      {0}};
static PyType_Spec spec = {"espalier.RawBuilder", sizeof(struct py_builder), 0, Py_TPFLAGS_DEFAULT, slots};

bool add_builder(PyObject *module)
{
	return add_type(module, &spec, &types.builder);
}
