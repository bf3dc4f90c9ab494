/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tickets: requests that were submitted. */
#include "native.h"

#include <math.h>

struct py_ticket *new_ticket(PyObject *service, struct runner *r)
{
	allocfunc take = PyType_GetSlot(types.ticket, Py_tp_alloc);
	struct py_ticket *t = (struct py_ticket *)take(types.ticket, 0);
	if (!t) {
		free_runner(r);
		return NULL;
	}
	t->service = Py_NewRef(service);
	t->runner = r;
	return t;
}

/* Whoever computes may be about to read the forest: the ticket goes first. */
static void end_ticket(PyObject *self)
{
	struct py_ticket *t = (struct py_ticket *)self;
	esp_ticket *at = t->at;
	WITHOUT_LOCK(esp_ticket_free(at));
	free_runner(t->runner);
	Py_DECREF(t->service);
	free_object(self);
}

/* The time that lies a number of seconds from now; None = `without`.  Times beyond the clock's end are the
 * end. */
static bool read_time(PyObject *seconds, int64_t without, int64_t *out)
{
	double s = seconds == Py_None ? 0 : PyFloat_AsDouble(seconds);
	int64_t now = esp_clock();
	*out = without;
	if (PyErr_Occurred())
		return false;
	if (isnan(s)) {
		PyErr_SetString(PyExc_ValueError, "a number of seconds, not NaN");
		return false;
	}
	if (seconds != Py_None)
		*out = s >= (double)(INT64_MAX - now) / 1e9 ? INT64_MAX
		       : s < 0				    ? 1
							    : now + (int64_t)(s * 1e9);
	return true;
}

bool read_submission(PyObject *names, esp_submit_options *o)
{
	static char *known[] = {"priority", "deadline", "event", NULL};
	PyObject *nothing = PyTuple_New(0), *deadline = Py_None;
	*o = (esp_submit_options){.size = sizeof *o};
	bool ok = nothing && PyArg_ParseTupleAndKeywords(nothing, names, "|$iOp", known, &o->priority,
							 &deadline, &o->event);
	Py_XDECREF(nothing);
	return ok && read_time(deadline, 0, &o->deadline);
}

/* The service may return the ticket by next() before the call that submits it has returned. */
void expect_ticket(struct py_ticket *t, esp_submit_options *o)
{
	o->user = t;
	if (o->event)
		Py_INCREF((PyObject *)t);
}

PyObject *submitted(struct py_ticket *t, const esp_submit_options *o, esp_status status, esp_error *error)
{
	if (!status)
		return (PyObject *)t;
	if (o->event)
		Py_DECREF((PyObject *)t);
	Py_DECREF((PyObject *)t);
	return raise_error(status, error);
}

/* --- waiting --- */

enum { SLICE = 100000000 }; /* between looks for signals [ns] */

static esp_status wait_until(esp_ticket *t, int64_t until, esp_error **error)
{
	for (;;) {
		int64_t now = esp_clock(), slice = until - now > SLICE ? now + SLICE : until;
		esp_status status;
		esp_error_free(*error);
		WITHOUT_LOCK(status = esp_ticket_wait(t, slice, error));
		if (status != ESP_ERROR_BUSY || esp_clock() >= until || PyErr_CheckSignals())
			return status;
	}
}

/* result(timeout=None): waits [s], and computes meanwhile. */
static PyObject *get_result(PyObject *self, PyObject *args)
{
	struct py_ticket *t = (struct py_ticket *)self;
	PyObject *timeout = Py_None;
	esp_error *error = NULL;
	int64_t until;
	if (!PyArg_ParseTuple(args, "|O", &timeout) || !read_time(timeout, INT64_MAX, &until))
		return NULL;
	esp_status status = wait_until(t->at, until, &error);
	if (PyErr_Occurred()) {
		esp_error_free(error);
		return NULL;
	}
	if (status)
		return raise_error(status, error);
	return new_result(((struct py_service *)t->service)->program, t->runner, self);
}

static PyObject *cancel(PyObject *self, PyObject *none)
{
	(void)none;
	esp_ticket_cancel(((struct py_ticket *)self)->at);
	return Py_NewRef(Py_None);
}

static PyObject *is_done(PyObject *self, PyObject *none)
{
	(void)none;
	return PyBool_FromLong(esp_ticket_wait(((struct py_ticket *)self)->at, 0, NULL) != ESP_ERROR_BUSY);
}

static PyObject *get_times(PyObject *self, void *none)
{
	const esp_ticket *t = ((struct py_ticket *)self)->at;
	(void)none;
	return Py_BuildValue("(LLL)", (long long)esp_ticket_time(t, ESP_TICKET_SUBMITTED),
			     (long long)esp_ticket_time(t, ESP_TICKET_JOINED),
			     (long long)esp_ticket_time(t, ESP_TICKET_ENDED));
}

static PyMethodDef methods[] = {
    {"result", get_result, METH_VARARGS, "Waits for its results, some seconds at most."},
    {"cancel", cancel, METH_NOARGS, "Ends it, if it has not ended."},
    {"done", is_done, METH_NOARGS, "Whether it has ended."},
    {0}};
static PyGetSetDef properties[] = {
    {"times", get_times, NULL, "When it was submitted, joined and ended [ns]; 0 = it has not.", NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_doc, "A request that was submitted."},
			      {Py_tp_dealloc, end_ticket},
			      {Py_tp_methods, methods},
			      {Py_tp_getset, properties},
			      {0}};
static PyType_Spec spec = {"espalier.RawTicket", sizeof(struct py_ticket), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

bool add_ticket(PyObject *module)
{
	return add_type(module, &spec, &types.ticket);
}
