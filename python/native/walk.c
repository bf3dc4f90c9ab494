/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Trees and DAGs of nested Python objects, without recursion: a chain of a million tuples does not touch the
 * C stack. */
#include "native.h"

/* A node whose children are being read. */
struct frame {
	PyObject *object; /* as it was found, owned */
	struct view view;
	Py_ssize_t next;     /* the child to be read next */
	Py_ssize_t children; /* how many there were when it was first seen */
};

struct walk {
	struct py_program *program;
	struct flat *flat;
	struct array frames;
	struct array done; /* numbers of nodes whose parents are being read, the youngest last */
	PyObject *numbers; /* by address: the number of a node that may be shared, or -1 while it is open */
	PyObject *seen;	   /* nodes of a DAG: their addresses must not become those of others */
	int32_t first;	   /* nodes of the structures before */
};

static struct frame *top(struct walk *w)
{
	return w->frames.bytes ? (struct frame *)(w->frames.at + w->frames.bytes) - 1 : NULL;
}

static void pop(struct walk *w)
{
	struct frame *f = top(w);
	w->frames.bytes -= sizeof *f;
	struct frame old = *f;
	view_free(&old.view);
	Py_DECREF(old.object);
}

static bool add_number(struct array *a, int32_t n)
{
	int32_t *at = array_add(a, sizeof *at);
	if (at)
		*at = n;
	return at;
}

/* --- nodes that are found again --- */

/* Leaves that stand for themselves are nodes by value: only containers can be shared, or lie on a cycle.
 * Tuples of a tree can do neither: equal ones may be one object. */
static bool may_be_found_again(const struct walk *w, PyObject *object)
{
	return PyDict_Check(object) || PyList_Check(object) || (w->program->dag && PyTuple_Check(object));
}

static bool note(struct walk *w, PyObject *object, long number)
{
	if (!may_be_found_again(w, object))
		return true;
	PyObject *key = PyLong_FromVoidPtr(object), *value = PyLong_FromLong(number);
	bool ok = key && value && PyDict_SetItem(w->numbers, key, value) == 0 &&
		  (!w->program->dag || number >= 0 || PyList_Append(w->seen, object) == 0);
	Py_XDECREF(key);
	Py_XDECREF(value);
	return ok;
}

/* Forgets a node of a tree, which may be found again at another place. */
static bool forget(struct walk *w, PyObject *object)
{
	if (!may_be_found_again(w, object))
		return true;
	PyObject *key = PyLong_FromVoidPtr(object);
	bool ok = key && PyDict_DelItem(w->numbers, key) == 0;
	Py_XDECREF(key);
	return ok;
}

/* 1: the node was read before, and its number is noted as that of a child; 0: it is new; -1: an exception is
 * set. */
static int find_again(struct walk *w, PyObject *object)
{
	if (!may_be_found_again(w, object))
		return 0;
	PyObject *key = PyLong_FromVoidPtr(object);
	PyObject *value = key ? PyDict_GetItemWithError(w->numbers, key) : NULL;
	Py_XDECREF(key);
	if (!value)
		return PyErr_Occurred() ? -1 : 0;
	long number = PyLong_AsLong(value);
	if (number >= 0)
		return add_number(&w->done, (int32_t)number) ? 1 : -1;
	refuse_input("cycle", flat_structure(w->flat), -1, "a structure has no cycle",
		     "structure %lld: a node is below itself", (long long)flat_structure(w->flat));
	return -1;
}

/* --- the walk --- */

static bool open_node(struct walk *w, PyObject *object)
{
	struct frame *f = array_add(&w->frames, sizeof *f);
	if (!f)
		return false;
	*f = (struct frame){.object = Py_NewRef(object)};
	struct view v;
	bool ok = view_node(object, &v);
	f = top(w);
	f->view = v;
	f->children = ok && v.children ? PySequence_Size(v.children) : 0;
	return ok && note(w, object, -1);
}

static bool add_children(struct walk *w, struct frame *f)
{
	const int32_t *done = (const int32_t *)(w->done.at + w->done.bytes) - f->children;
	size_t bytes = (size_t)f->children * sizeof *done;
	int32_t *to = array_add(&w->flat->children, bytes);
	for (Py_ssize_t i = 0; to && i < f->children; i++)
		to[i] = done[i];
	w->done.bytes -= bytes;
	return to;
}

/* What a node says of the edge to a child: `edges` of a node that is a dict, borrowed. */
static PyObject *edge_of(PyObject *fields, Py_ssize_t i)
{
	PyObject *edges = fields ? PyDict_GetItemString(fields, "edges") : NULL;
	return edges && PyList_Check(edges) && i < PyList_Size(edges) ? PyList_GetItem(edges, i) : NULL;
}

static bool add_edges(struct walk *w, const struct frame *f, int32_t node)
{
	bool ok = true;
	for (Py_ssize_t i = 0; ok && w->program->has_edges && i < f->children; i++) {
		PyObject *child = PySequence_GetItem(f->view.children, i),
			 *edge = Py_XNewRef(edge_of(f->view.fields, i));
		ok = child && add_edge_rows(w->program, w->flat, child, edge, node);
		Py_XDECREF(child);
		Py_XDECREF(edge);
	}
	return ok;
}

/* Numbers a node whose children have numbers. */
static bool close_node(struct walk *w)
{
	struct flat *flat = w->flat;
	struct frame f = *top(w);
	int32_t node = flat_nodes(flat) - w->first;
	if (!add_number(&flat->child_begin, (int32_t)(flat->children.bytes / sizeof(int32_t))) ||
	    !add_children(w, &f) || !add_node_rows(w->program, flat, &f.view, node) ||
	    !add_edges(w, &f, node) || !add_number(&w->done, node))
		return false;
	bool ok = w->program->dag ? note(w, f.object, node) : forget(w, f.object);
	pop(w);
	return ok;
}

/* Reads the next child of the youngest open node.  Python code may have shortened the list meanwhile. */
static bool read_child(struct walk *w, struct frame *f)
{
	PyObject *child = PySequence_GetItem(f->view.children, f->next++);
	int again = child ? find_again(w, child) : -1;
	bool ok = again > 0 || (again == 0 && open_node(w, child));
	Py_XDECREF(child);
	return ok;
}

static bool read_nodes(struct walk *w, PyObject *root)
{
	if (!open_node(w, root))
		return false;
	for (struct frame *f; (f = top(w));)
		if (!(f->next < f->children ? read_child(w, f) : close_node(w)))
			return false;
	return true;
}

bool walk_tree(struct py_program *p, struct flat *flat, PyObject *root)
{
	struct walk w = {.program = p,
			 .flat = flat,
			 .numbers = PyDict_New(),
			 .seen = PyList_New(0),
			 .first = flat_nodes(flat)};
	bool ok = w.numbers && w.seen && add_number(&flat->node_begin, w.first) && read_nodes(&w, root) &&
		  add_number(&flat->root, flat_nodes(flat) - w.first - 1);
	while (top(&w))
		pop(&w);
	array_free(&w.frames);
	array_free(&w.done);
	Py_XDECREF(w.numbers);
	Py_XDECREF(w.seen);
	return ok;
}

/* --- sequences --- */

/* The child of each element is the one before it. */
static bool add_element(struct py_program *p, struct flat *flat, PyObject *item, int32_t node)
{
	struct view v;
	bool ok = view_node(item, &v) &&
		  add_number(&flat->child_begin, (int32_t)(flat->children.bytes / sizeof(int32_t)));
	if (ok && v.children) {
		ok = refuse_input("bad-argument", flat_structure(flat), node,
				  "an element is a value or a dict of values",
				  "the model takes sequences, and element %d of structure %lld has children",
				  node, (long long)flat_structure(flat));
	} else if (ok && node) {
		v.children = PyTuple_New(0); /* not the first: an inner node */
		ok = v.children && add_number(&flat->children, node - 1) &&
		     add_edge_rows(p, flat, item, NULL, node);
	}
	ok = ok && add_node_rows(p, flat, &v, node);
	view_free(&v);
	return ok;
}

bool walk_sequence(struct py_program *p, struct flat *flat, PyObject *items)
{
	int32_t first = flat_nodes(flat);
	Py_ssize_t n = PySequence_Size(items);
	bool ok = n >= 0 && add_number(&flat->node_begin, first);
	for (Py_ssize_t i = 0; ok && i < n; i++) {
		PyObject *item = PySequence_GetItem(items, i);
		ok = item && add_element(p, flat, item, (int32_t)i);
		Py_XDECREF(item);
	}
	return ok && add_number(&flat->root, (int32_t)n - 1);
}
