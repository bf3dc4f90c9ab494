/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures in arrays of the caller's. */
#include "native.h"

#include <string.h>

static const char *const formats[] = {
    [ESP_F32] = "f", [ESP_F16] = "e", [ESP_BF16] = "H", [ESP_I8] = "b",	 [ESP_U8] = "B",
    [ESP_I16] = "h", [ESP_I32] = "i", [ESP_I64] = "q",	[ESP_BOOL] = "?"};

const char *dtype_format(esp_dtype t)
{
	return formats[t];
}

/* --- arrays --- */

static bool has_type(const Py_buffer *b, esp_dtype dtype)
{
	const char *format = b->format ? b->format : "B";
	if (*format == '@' || *format == '=' || *format == '<')
		format++;
	bool is_long =
	    *format == 'l' && b->itemsize == 8 ? dtype == ESP_I64 : *format == 'l' && dtype == ESP_I32;
	return (size_t)b->itemsize == esp_dtype_size(dtype) && format[0] && !format[1] &&
	       (format[0] == formats[dtype][0] || is_long);
}

/* Asks the package, which has NumPy at hand, for an array that can be viewed. */
static PyObject *coerce(PyObject *object, esp_dtype dtype, const char *what)
{
	static PyObject *function;
	if (!function) {
		PyObject *module = PyImport_ImportModule("espalier._arrays");
		function = module ? PyObject_GetAttrString(module, "coerce") : NULL;
		Py_XDECREF(module);
	}
	return function ? PyObject_CallFunction(function, "Oss", object, esp_dtype_name(dtype), what) : NULL;
}

bool view_array(PyObject *object, esp_dtype dtype, const char *what, Py_buffer *out)
{
	if (PyObject_CheckBuffer(object)) {
		if (PyObject_GetBuffer(object, out, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
			if (has_type(out, dtype))
				return true;
			PyBuffer_Release(out);
		}
		PyErr_Clear();
	}
	PyObject *array = coerce(object, dtype, what);
	bool ok = array && PyObject_GetBuffer(array, out, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0;
	Py_XDECREF(array);
	return ok;
}

/* --- the type --- */

static void end_structures(PyObject *self)
{
	struct py_structures *s = (struct py_structures *)self;
	Py_XDECREF(s->node_begin);
	Py_XDECREF(s->child_begin);
	Py_XDECREF(s->children);
	Py_XDECREF(s->root);
	Py_XDECREF(s->data);
	free_object(self);
}

static PyObject *new_structures(PyTypeObject *type, PyObject *args, PyObject *data)
{
	PyObject *child_begin, *children, *node_begin = Py_None, *root = Py_None;
	if (!PyArg_ParseTuple(args, "OO|OO", &child_begin, &children, &node_begin, &root))
		return NULL;
	allocfunc take = PyType_GetSlot(type, Py_tp_alloc);
	struct py_structures *s = (struct py_structures *)take(type, 0);
	if (!s)
		return NULL;
	s->child_begin = Py_NewRef(child_begin);
	s->children = Py_NewRef(children);
	s->node_begin = Py_NewRef(node_begin);
	s->root = Py_NewRef(root);
	s->data = data ? PyDict_Copy(data) : PyDict_New();
	if (!s->data)
		replace_object((PyObject **)&s, NULL);
	return (PyObject *)s;
}

static PyObject *get_member(PyObject *self, void *offset)
{
	return Py_NewRef(*(PyObject **)((char *)self + (size_t)offset));
}

#define MEMBER(name, doc)                                                                                    \
	{                                                                                                    \
#name, get_member, NULL, doc, (void *)offsetof(struct py_structures, name)                   \
	}
static PyGetSetDef properties[] = {MEMBER(node_begin, "Where each structure begins, or None."),
				   MEMBER(child_begin, "Where the children of each node begin."),
				   MEMBER(children, "Children, by their numbers within the structure."),
				   MEMBER(root, "The root of each structure, or None."),
				   MEMBER(data, "What nodes and edges carry, by input."),
				   {0}};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Structures(child_begin, children, node_begin=None, root=None, **data): structures in arrays, as the "
     "struct esp_structures of espalier.h.\n\nNode n has the children children[child_begin[n]] to "
     "children[child_begin[n + 1] - 1], numbered within its structure.  Structure i has the nodes "
     "node_begin[i] "
     "to node_begin[i + 1] - 1; without node_begin there is one.  The last node is the root unless `root` "
     "says "
     "otherwise.  `data` has a row for each node, or child, of each input."},
    {Py_tp_new, new_structures},
    {Py_tp_dealloc, end_structures},
    {Py_tp_getset, properties},
    {0}};
static PyType_Spec spec = {"espalier.Structures", sizeof(struct py_structures), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

bool add_structures(PyObject *module)
{
	return add_type(module, &spec, &types.structures);
}

/* --- adding them --- */

enum { SHAPES = 4 }; /* arrays that say how nodes are connected */

/* Arrays that are viewed for the time of a call.  Those that say how nodes are connected are checked before
 * they are followed, and other threads may write to them meanwhile: they are copied first. */
struct views {
	Py_buffer *at;
	size_t n;
	int32_t *copy[SHAPES];
	size_t copies;
};

static void release_views(struct views *v)
{
	while (v->n)
		PyBuffer_Release(&v->at[--v->n]);
	while (v->copies)
		PyMem_Free(v->copy[--v->copies]);
	PyMem_Free(v->at);
}

/* The next view; NULL with an exception set. */
static const Py_buffer *view_next(struct views *v, PyObject *array, esp_dtype dtype, const char *what)
{
	if (!view_array(array, dtype, what, &v->at[v->n]))
		return NULL;
	return &v->at[v->n++];
}

/* A copy of the next array; NULL with an exception set. */
static const int32_t *copy_next(struct views *v, PyObject *array, const char *what, Py_ssize_t *length)
{
	const Py_buffer *b = view_next(v, array, ESP_I32, what);
	int32_t *copy = b ? PyMem_Malloc((size_t)b->len + 1) : NULL;
	if (!copy)
		return b ? (void *)PyErr_NoMemory() : NULL;
	memcpy(copy, b->buf, (size_t)b->len);
	*length = b->len / (Py_ssize_t)sizeof *copy;
	return v->copy[v->copies++] = copy;
}

static bool refuse_length(const char *what, Py_ssize_t has, Py_ssize_t needs)
{
	return refuse_input("bad-argument", -1, -1, "see help(espalier.Structures)",
			    "'%s' has %zd elements where there must be %zd", what, has, needs);
}

static bool view_shape(struct py_structures *in, struct views *v, int32_t one[2], esp_structures *out)
{
	Py_ssize_t begins = 0, edges = 0, structures = 2, roots = 0;
	out->child_begin = copy_next(v, in->child_begin, "child_begin", &begins);
	out->children = out->child_begin ? copy_next(v, in->children, "children", &edges) : NULL;
	out->node_begin = one;
	if (out->children && in->node_begin != Py_None)
		out->node_begin = copy_next(v, in->node_begin, "node_begin", &structures);
	if (out->children && out->node_begin && in->root != Py_None)
		out->root = copy_next(v, in->root, "root", &roots);
	if (PyErr_Occurred())
		return false;
	if (!begins)
		return refuse_length("child_begin", 0, 1);
	if (!structures)
		return refuse_length("node_begin", 0, 1);
	Py_ssize_t nodes = begins - 1;
	one[1] = (int32_t)nodes;
	out->structures = (size_t)structures - 1;
	if (out->node_begin[out->structures] > nodes)
		return refuse_length("child_begin", begins, out->node_begin[out->structures] + 1);
	if (out->child_begin[nodes] > edges)
		return refuse_length("children", edges, out->child_begin[nodes]);
	return !out->root || roots == (Py_ssize_t)out->structures ||
	       refuse_length("root", roots, (Py_ssize_t)out->structures);
}

/* The array of an input, with a row for each node or each child. */
static bool view_rows(struct py_structures *in, struct views *v, const struct reader *r, const void **out)
{
	const esp_input *i = r->input;
	Py_ssize_t edges = v->at[1].len / 4, nodes = v->at[0].len / 4 - 1, rows = i->on_edges ? edges : nodes;
	PyObject *array = PyDict_GetItemWithError(in->data, r->key);
	if (!array)
		return !PyErr_Occurred() &&
		       ((i->on_edges && !edges) ||
			refuse_input("missing-data", -1, -1, "give an array for each input of the model",
				     "structures in arrays carry no '%s'", i->name));
	const Py_buffer *b = view_next(v, array, i->is_token ? ESP_I32 : i->dtype, i->name);
	if (!b)
		return false;
	Py_ssize_t elements = b->itemsize ? b->len / b->itemsize : 0, needs = rows * (Py_ssize_t)i->elements;
	*out = b->buf;
	return elements == needs || refuse_input("shape-mismatch", -1, -1,
						 i->on_edges ? "there is a row for each of `children`"
							     : "there is a row for each node",
						 "'%s' has %zd elements where there must be %zd rows of %zu",
						 i->name, elements, rows, i->elements);
}

static bool add_viewed(struct py_program *p, esp_forest *forest, struct py_structures *in, struct views *v,
		       const void **data)
{
	int32_t one[2] = {0};
	esp_structures s = {.size = sizeof s, .data = data};
	if (!view_shape(in, v, one, &s))
		return false;
	for (size_t i = 0; i < p->inputs; i++)
		if (!view_rows(in, v, &p->reader[i], &data[i]))
			return false;
	esp_error *error = NULL;
	esp_status status;
	WITHOUT_LOCK(status = esp_forest_add_many(forest, &s, &error));
	return status ? raise_error(status, error) != NULL : true;
}

bool add_arrays(struct py_program *p, esp_forest *forest, struct py_structures *in)
{
	struct views v = {.at = PyMem_Calloc(SHAPES + p->inputs, sizeof *v.at)};
	const void **data = PyMem_Calloc(p->inputs + 1, sizeof *data);
	bool ok = v.at && data ? add_viewed(p, forest, in, &v, data) : PyErr_NoMemory() != NULL;
	release_views(&v);
	PyMem_Free(data);
	return ok;
}
