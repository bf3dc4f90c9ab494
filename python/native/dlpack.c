/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* DLPack: tensors handed to PyTorch and others without a copy.  The structs are those of the protocol's
 * version 0.8. */
#include "rows.h"

#include <stdint.h>

enum { DEVICE_CPU = 1, KIND_INT = 0, KIND_UINT = 1, KIND_FLOAT = 2, KIND_BFLOAT = 4, KIND_BOOL = 6 };

struct dl_tensor {
	void *data;
	struct {
		int32_t type, id;
	} device;
	int32_t ndim;
	struct {
		uint8_t code, bits;
		uint16_t lanes;
	} dtype;
	int64_t *shape, *strides; /* strides in elements */
	uint64_t byte_offset;
};

struct dl_managed {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_managed *);
};

/* Called by whoever has taken the tensor, from any thread. */
static void delete_tensor(struct dl_managed *m)
{
	PyGILState_STATE state = PyGILState_Ensure();
	Py_DECREF((PyObject *)m->context);
	PyMem_Free(m);
	PyGILState_Release(state);
}

/* Of a capsule that nobody has taken. */
static void end_capsule(PyObject *capsule)
{
	struct dl_managed *m =
	    PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
	if (m)
		m->deleter(m);
}

static uint8_t kind_of(esp_dtype t)
{
	switch (t) {
	case ESP_BF16:
		return KIND_BFLOAT;
	case ESP_F32:
	case ESP_F16:
		return KIND_FLOAT;
	case ESP_BOOL:
		return KIND_BOOL;
	case ESP_U8:
		return KIND_UINT;
	default:
		return KIND_INT;
	}
}

static struct dl_managed *make_tensor(struct py_rows *r)
{
	size_t extents = 2 * (size_t)r->rank * sizeof(int64_t), size = esp_dtype_size(r->dtype);
	struct dl_managed *m = PyMem_Calloc(1, sizeof *m + extents);
	if (!m)
		return (void *)PyErr_NoMemory();
	struct dl_tensor *t = &m->tensor;
	t->data = (void *)r->at;
	t->device.type = DEVICE_CPU;
	t->ndim = r->rank;
	t->dtype.code = kind_of(r->dtype);
	t->dtype.bits = (uint8_t)(8 * size);
	t->dtype.lanes = 1;
	t->shape = (int64_t *)(m + 1);
	t->strides = t->shape + r->rank;
	for (int i = 0; i < r->rank; i++) {
		t->shape[i] = r->shape[i];
		t->strides[i] = r->strides[i] / (Py_ssize_t)size;
	}
	m->context = Py_NewRef((PyObject *)r);
	m->deleter = delete_tensor;
	return m;
}

/* Whether the consumer can have what it asks for: memory of this processor, and no copy. */
static bool check_request(PyObject *device, PyObject *copy)
{
	int kind = DEVICE_CPU, number = 0, copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
	if (copied < 0 || (device != Py_None &&
			   (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &kind, &number)))) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_TypeError, "dl_device is a pair of numbers");
		return false;
	}
	if (kind != DEVICE_CPU || copied)
		PyErr_SetString(PyExc_BufferError, copied ? "results are not copied: take a copy of the array"
							  : "results lie in the memory of the processor");
	return kind == DEVICE_CPU && !copied;
}

/* Streams mean nothing to the processor, and version 0.8 is older than all that ask for one. */
PyObject *rows_dlpack(PyObject *self, PyObject *args, PyObject *names)
{
	static char *known[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream, *version, *device = Py_None, *copy = Py_None;
	if (!PyArg_ParseTupleAndKeywords(args, names, "|OOOO", known, &stream, &version, &device, &copy) ||
	    !check_request(device, copy))
		return NULL;
	struct dl_managed *m = make_tensor((struct py_rows *)self);
	PyObject *capsule = m ? PyCapsule_New(m, "dltensor", end_capsule) : NULL;
	if (m && !capsule)
		m->deleter(m);
	return capsule;
}

PyObject *rows_dlpack_device(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return Py_BuildValue("(ii)", DEVICE_CPU, 0);
}
