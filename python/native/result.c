/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The results of a run, which stay as they are as long as anybody views them. */
#include "native.h"

#include <string.h>

PyObject *new_result(struct py_program *p, struct runner *r, PyObject *ticket)
{
	allocfunc take = PyType_GetSlot(types.result, Py_tp_alloc);
	struct py_result *result = (struct py_result *)take(types.result, 0);
	if (!result) {
		if (!ticket)
			give_runner_back(p, r);
		return NULL;
	}
	result->program = (struct py_program *)Py_NewRef((PyObject *)p);
	result->runner = r;
	result->ticket = Py_XNewRef(ticket);
	return (PyObject *)result;
}

static void end_result(PyObject *self)
{
	struct py_result *r = (struct py_result *)self;
	if (!r->ticket)
		give_runner_back(r->program, r->runner);
	Py_XDECREF(r->ticket);
	Py_DECREF((PyObject *)r->program);
	free_object(self);
}

/* --- rows --- */

enum kind { OUTPUT, STATE, ROOT };

/* Rows of a result, one after the other. */
struct source {
	const struct runner *runner;
	const esp_ticket *ticket;
	enum kind kind;
	bool per_node;
	size_t index, structure, node, structures; /* the next row; `structures`: where to stop */
};

static const void *row_at(const struct source *s)
{
	const esp_session *session = s->runner->session;
	if (s->ticket)
		return esp_ticket_output_elements(s->ticket, s->index, s->structure, s->node);
	if (s->kind == STATE)
		return esp_session_state_elements(session, s->index, s->structure, s->node);
	if (s->kind == ROOT)
		return esp_session_root_elements(session, s->index, s->structure);
	return esp_session_output_elements(session, s->index, s->structure, s->node);
}

static const void *next_row(struct source *s)
{
	while (s->per_node && s->structure < s->structures &&
	       s->node >= esp_forest_nodes(s->runner->forest, s->structure)) {
		s->structure++;
		s->node = 0;
	}
	if (s->structure >= s->structures)
		return NULL;
	if (s->kind == ROOT)
		s->node = esp_forest_root(s->runner->forest, s->structure);
	const void *row = row_at(s);
	s->node++;
	s->structure += !s->per_node;
	return row;
}

/* Counts the rows and finds whether they lie at equal distances, in which case they can be viewed. */
static bool find_stride(struct source s, struct rows_shape *shape)
{
	const char *before = NULL, *row;
	bool equal = true;
	shape->rows = 0;
	for (; (row = next_row(&s)); before = row, shape->rows++) {
		if (!before)
			shape->at = row;
		else if (shape->rows == 1)
			shape->stride = row - before;
		else
			equal &= row - before == shape->stride;
	}
	return equal;
}

static char *gather(struct source s, struct rows_shape *shape, size_t bytes)
{
	const void *row;
	char *copy = PyMem_Malloc((size_t)shape->rows * bytes + 1), *to = copy;
	if (!copy)
		return (void *)PyErr_NoMemory();
	for (; (row = next_row(&s)); to += bytes)
		memcpy(to, row, bytes);
	shape->at = copy;
	shape->stride = (Py_ssize_t)bytes;
	return copy;
}

/* Describes the elements of a row; false when there is no such output or state. */
static bool describe_rows(const struct py_program *p, struct source *s, struct rows_shape *shape)
{
	const esp_output *o = s->kind == STATE ? NULL : esp_program_output(p->at, s->index);
	const esp_state *t = s->kind == STATE ? esp_program_state(p->at, s->index) : NULL;
	if (!o && !t) {
		PyErr_SetString(PyExc_IndexError, "there is no such output or state");
		return false;
	}
	*shape = (struct rows_shape){.dtype = o ? o->dtype : t->dtype,
				     .row_elements = o ? o->elements : t->elements,
				     .row_shape = o ? o->shape : t->shape,
				     .row_rank = o ? o->rank : t->rank};
	s->per_node = t || (s->kind == OUTPUT && !o->at_root);
	return true;
}

static const esp_ticket *ticket_of(const struct py_result *r)
{
	return r->ticket ? ((struct py_ticket *)r->ticket)->at : NULL;
}

/* rows(kind, index, structure): of all structures (-1) or of one. */
static PyObject *get_rows(PyObject *self, PyObject *args)
{
	struct py_result *r = (struct py_result *)self;
	struct source s = {.runner = r->runner, .ticket = ticket_of(r)};
	struct rows_shape shape;
	int kind, index;
	Py_ssize_t structure, structures = (Py_ssize_t)esp_forest_structures(r->runner->forest);
	if (!PyArg_ParseTuple(args, "iin", &kind, &index, &structure))
		return NULL;
	s.kind = (enum kind)kind;
	s.index = (size_t)index;
	if (structure >= structures || structure < -1) {
		PyErr_Format(PyExc_IndexError, "structure %zd of %zd", structure, structures);
		return NULL;
	}
	s.structure = structure < 0 ? 0 : (size_t)structure;
	s.structures = structure < 0 ? (size_t)structures : (size_t)structure + 1;
	if (!describe_rows(r->program, &s, &shape))
		return NULL;
	if (s.ticket && s.kind == STATE) {
		PyErr_SetString(PyExc_TypeError, "a service keeps no states of nodes: run the model");
		return NULL;
	}
	size_t bytes = shape.row_elements * esp_dtype_size(shape.dtype);
	char *copy = NULL;
	if (!find_stride(s, &shape) && !(copy = gather(s, &shape, bytes)))
		return NULL;
	if (shape.rows < 2)
		shape.stride = (Py_ssize_t)bytes;
	if (structure >= 0 && !s.per_node)
		shape.rows = -1;
	return new_rows(self, &shape, copy);
}

static PyObject *count_nodes(PyObject *self, PyObject *structure)
{
	Py_ssize_t i = PyNumber_AsSsize_t(structure, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	return PyLong_FromSize_t(
	    i < 0 ? 0 : esp_forest_nodes(((struct py_result *)self)->runner->forest, (size_t)i));
}

static PyObject *get_root(PyObject *self, PyObject *structure)
{
	Py_ssize_t i = PyNumber_AsSsize_t(structure, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	return PyLong_FromSize_t(esp_forest_root(((struct py_result *)self)->runner->forest, (size_t)i));
}

/* children(structure): of each node a list of numbers. */
static PyObject *list_children(PyObject *self, PyObject *structure)
{
	const esp_forest *f = ((struct py_result *)self)->runner->forest;
	Py_ssize_t i = PyNumber_AsSsize_t(structure, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	size_t nodes = i < 0 ? 0 : esp_forest_nodes(f, (size_t)i);
	PyObject *all = PyList_New(0);
	for (size_t n = 0; all && n < nodes; n++) {
		PyObject *of_node = PyList_New(0);
		int32_t child;
		for (size_t slot = 0; of_node && (child = esp_forest_child(f, (size_t)i, n, slot)) >= 0;
		     slot++) {
			PyObject *number = PyLong_FromLong(child);
			if (!number || PyList_Append(of_node, number))
				Py_CLEAR(of_node);
			Py_XDECREF(number);
		}
		if (!of_node || PyList_Append(all, of_node))
			Py_CLEAR(all);
		Py_XDECREF(of_node);
	}
	return all;
}

static Py_ssize_t count_structures(PyObject *self)
{
	return (Py_ssize_t)esp_forest_structures(((struct py_result *)self)->runner->forest);
}

static PyObject *get_generation(PyObject *self, void *none)
{
	const struct py_result *r = (struct py_result *)self;
	(void)none;
	return PyLong_FromUnsignedLongLong(r->ticket ? esp_ticket_generation(ticket_of(r))
						     : esp_session_generation(r->runner->session));
}

/* Of a run that was recorded; None of others. */
static PyObject *get_profile(PyObject *self, void *none)
{
	const struct runner *r = ((struct py_result *)self)->runner;
	const esp_profile *profile = r->session ? esp_session_profile(r->session) : NULL;
	(void)none;
	return profile ? describe_profile(profile) : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"rows", get_rows, METH_VARARGS, "The rows of an output (0), a state (1), an output's roots (2)."},
    {"nodes", count_nodes, METH_O, "How many nodes a structure has."},
    {"root", get_root, METH_O, "The number of its root."},
    {"children", list_children, METH_O, "The children of each of its nodes."},
    {0}};
static PyGetSetDef properties[] = {{"generation", get_generation, NULL, "Of the weights of the run.", NULL},
				   {"profile", get_profile, NULL, "Of a run that was recorded.", NULL},
				   {0}};
static PyType_Slot slots[] = {{Py_tp_doc, "Results of a run."}, {Py_tp_dealloc, end_result},
			      {Py_tp_methods, methods},		{Py_tp_getset, properties},
			      {Py_sq_length, count_structures}, {0}};
static PyType_Spec spec = {"espalier.RawResult", sizeof(struct py_result), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

bool add_result(PyObject *module)
{
	return add_type(module, &spec, &types.result);
}
