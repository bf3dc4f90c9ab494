/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arrays of elements that NumPy and others view: the buffer protocol, and DLPack. */
#include "rows.h"

PyObject *new_rows(PyObject *owner, const struct rows_shape *shape, char *copy)
{
	allocfunc take = PyType_GetSlot(types.rows, Py_tp_alloc);
	struct py_rows *r = (struct py_rows *)take(types.rows, 0);
	int first = shape->rows >= 0, rank = first + (int)shape->row_rank;
	Py_ssize_t *extents = r ? PyMem_Calloc(2 * (size_t)rank + 1, sizeof *extents) : NULL;
	if (!extents) {
		PyMem_Free(copy);
		Py_XDECREF((PyObject *)r);
		return r ? PyErr_NoMemory() : NULL;
	}
	r->owner = Py_NewRef(owner);
	r->copy = copy;
	r->at = shape->at ? shape->at : (const char *)extents;
	r->dtype = shape->dtype;
	r->rank = rank;
	r->shape = extents;
	r->strides = extents + rank;
	Py_ssize_t step = (Py_ssize_t)esp_dtype_size(shape->dtype);
	for (int i = rank - 1; i >= first; i--) {
		r->shape[i] = (Py_ssize_t)shape->row_shape[i - first];
		r->strides[i] = step;
		step *= r->shape[i];
	}
	if (first) {
		r->shape[0] = shape->rows;
		r->strides[0] = shape->stride;
	}
	return (PyObject *)r;
}

static void end_rows(PyObject *self)
{
	struct py_rows *r = (struct py_rows *)self;
	PyMem_Free(r->copy);
	PyMem_Free(r->shape);
	Py_XDECREF(r->owner);
	free_object(self);
}

/* Whether elements follow each other without gaps, the last axis running fastest or, in Fortran's order, the
 * first. */
static bool is_contiguous(const struct py_rows *r, bool fortran)
{
	Py_ssize_t step = (Py_ssize_t)esp_dtype_size(r->dtype);
	for (int i = 0; i < r->rank; i++) {
		int axis = fortran ? i : r->rank - 1 - i;
		if (r->shape[axis] > 1 && r->strides[axis] != step)
			return false;
		step *= r->shape[axis];
	}
	return true;
}

static bool asks(int flags, int what)
{
	return (flags & what) == what;
}

/* Why a request cannot be answered; NULL = it can.  Who does not ask for strides takes elements in C's order.
 */
static const char *find_conflict(const struct py_rows *r, int flags)
{
	bool c = is_contiguous(r, false), fortran = is_contiguous(r, true);
	if (asks(flags, PyBUF_WRITABLE))
		return "results cannot be written";
	if (!c && (!asks(flags, PyBUF_STRIDES) || asks(flags, PyBUF_C_CONTIGUOUS)))
		return "rows of results are not contiguous";
	if (!fortran && asks(flags, PyBUF_F_CONTIGUOUS))
		return "results are not in the order of Fortran";
	if (!c && !fortran && asks(flags, PyBUF_ANY_CONTIGUOUS))
		return "rows of results are not contiguous";
	return NULL;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct py_rows *r = (struct py_rows *)self;
	const char *conflict = find_conflict(r, flags);
	view->obj = NULL;
	if (conflict) {
		PyErr_SetString(PyExc_BufferError, conflict);
		return -1;
	}
	*view = (Py_buffer){.buf = (void *)r->at,
			    .obj = Py_NewRef(self),
			    .itemsize = (Py_ssize_t)esp_dtype_size(r->dtype),
			    .readonly = 1,
			    .ndim = r->rank,
			    .format = asks(flags, PyBUF_FORMAT) ? (char *)dtype_format(r->dtype) : NULL,
			    .shape = asks(flags, PyBUF_ND) ? r->shape : NULL,
			    .strides = asks(flags, PyBUF_STRIDES) ? r->strides : NULL};
	view->len = view->itemsize;
	for (int i = 0; i < r->rank; i++)
		view->len *= r->shape[i];
	return 0;
}

static PyObject *get_shape(PyObject *self, void *none)
{
	(void)none;
	struct py_rows *r = (struct py_rows *)self;
	PyObject *tuple = PyTuple_New(r->rank);
	for (int i = 0; tuple && i < r->rank; i++)
		PyTuple_SetItem(tuple, i, PyLong_FromSsize_t(r->shape[i]));
	return tuple;
}

static PyObject *get_dtype(PyObject *self, void *none)
{
	(void)none;
	return PyUnicode_FromString(esp_dtype_name(((struct py_rows *)self)->dtype));
}

static PyObject *get_is_view(PyObject *self, void *none)
{
	(void)none;
	return PyBool_FromLong(!((struct py_rows *)self)->copy);
}

static PyMethodDef methods[] = {{"__dlpack__", (PyCFunction)(void (*)(void))rows_dlpack,
				 METH_VARARGS | METH_KEYWORDS, "For torch.from_dlpack and the like."},
				{"__dlpack_device__", rows_dlpack_device, METH_NOARGS, "The processor."},
				{0}};
static PyGetSetDef properties[] = {
    {"shape", get_shape, NULL, "Extents.", NULL},
    {"dtype", get_dtype, NULL, "The type of elements, as the model names it.", NULL},
    {"is_view", get_is_view, NULL, "Whether it is the memory of the run, not a copy.", NULL},
    {0}};
static PyType_Slot slots[] = {
    {Py_tp_doc, "An array of elements: memoryview(), numpy.asarray() and from_dlpack() view it."},
    {Py_tp_dealloc, end_rows},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_bf_getbuffer, get_buffer},
    {0}};
static PyType_Spec spec = {"espalier.Rows", sizeof(struct py_rows), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

bool add_rows(PyObject *module)
{
	return add_type(module, &spec, &types.rows);
}
