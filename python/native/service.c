/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Services: requests of many callers, computed together. */
#include "native.h"

#include <stddef.h>

PyObject *new_service(struct py_program *p, PyObject *args, PyObject *names)
{
	static char *known[] = {"rows",	   "step_rows",	 "requests",   "bytes",
				"company", "head_start", "step_pairs", NULL};
	esp_service_options o = {.size = sizeof o};
	long long rows = 0, step_rows = 0, company = 0, head_start = 0, step_pairs = 0;
	Py_ssize_t requests = 0, bytes = 0;
	if (!PyArg_ParseTupleAndKeywords(args, names, "|$LLnnLLL", known, &rows, &step_rows, &requests,
					 &bytes, &company, &head_start, &step_pairs))
		return NULL;
	o.rows = rows, o.step_rows = step_rows, o.company = company, o.head_start = head_start,
	o.step_pairs = step_pairs;
	o.requests = (size_t)requests, o.bytes = (size_t)bytes;
	allocfunc take = PyType_GetSlot(types.service, Py_tp_alloc);
	struct py_service *s = (struct py_service *)take(types.service, 0);
	esp_error *error = NULL;
	esp_status status;
	if (!s)
		return NULL;
	s->program = (struct py_program *)Py_NewRef((PyObject *)p);
	WITHOUT_LOCK(status = esp_service_create(p->binding, &o, &s->at, &error));
	if (!status)
		return (PyObject *)s;
	Py_DECREF((PyObject *)s);
	return raise_error(status, error);
}

/* The end of a service may wait for its thread, which never needs the interpreter. */
static void end_service(PyObject *self)
{
	struct py_service *s = (struct py_service *)self;
	esp_service *at = s->at;
	WITHOUT_LOCK(esp_service_free(at));
	Py_XDECREF((PyObject *)s->program);
	free_object(self);
}

/* submit(batch, priority=0, deadline=None, event=False) */
static PyObject *submit(PyObject *self, PyObject *args, PyObject *names)
{
	struct py_service *s = (struct py_service *)self;
	PyObject *batch;
	esp_submit_options o;
	if (!PyArg_ParseTuple(args, "O", &batch) || !read_submission(names, &o))
		return NULL;
	struct runner *r = new_request(s->program);
	if (!r || !read_batch(s->program, r, batch)) {
		if (r)
			free_runner(r);
		return NULL;
	}
	struct py_ticket *t = new_ticket(self, r);
	if (!t)
		return NULL;
	expect_ticket(t, &o);
	esp_error *error = NULL;
	esp_status status;
	WITHOUT_LOCK(status = esp_service_submit(s->at, r->forest, &o, &t->at, &error));
	return submitted(t, &o, status, error);
}

static PyObject *get_descriptor(PyObject *self, PyObject *none)
{
	int descriptor;
	esp_error *error = NULL;
	(void)none;
	esp_status status = esp_service_descriptor(((struct py_service *)self)->at, &descriptor, &error);
	return status ? raise_error(status, error) : PyLong_FromLong(descriptor);
}

/* The next ticket with an event that has ended, whose reference the service held; None = there is none now.
 */
static PyObject *next_ticket(PyObject *self, PyObject *none)
{
	esp_ticket *ended = esp_service_next(((struct py_service *)self)->at);
	(void)none;
	return ended ? esp_ticket_user(ended) : Py_NewRef(Py_None);
}

static PyObject *stream(PyObject *self, PyObject *args)
{
	PyObject *saved = Py_None;
	return PyArg_ParseTuple(args, "|O", &saved) ? open_stream(self, saved) : NULL;
}

static PyObject *get_metrics(PyObject *self, PyObject *none)
{
	char *text;
	esp_error *error = NULL;
	(void)none;
	esp_status status = esp_service_metrics(((struct py_service *)self)->at, NULL, &text, &error);
	return status ? raise_error(status, error) : take_text(text);
}

static PyObject *get_counts(PyObject *self, PyObject *none)
{
	esp_service_counts n = {.size = sizeof n};
	(void)none;
	esp_service_count(((struct py_service *)self)->at, &n);
	return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsKsKsKsK}", "submitted", n.submitted, "refused", n.refused,
			     "done", n.done, "failed", n.failed, "expired", n.expired, "cancelled",
			     n.cancelled, "pending", n.pending, "bytes", n.bytes, "generation", n.generation,
			     "supersteps", n.supersteps, "nodes", n.nodes, "forests", n.forests,
			     "forest_requests", n.forest_requests, "forest_nodes", n.forest_nodes);
}

static PyMethodDef methods[] = {
    {"submit", (PyCFunction)(void (*)(void))submit, METH_VARARGS | METH_KEYWORDS,
     "Submits a minibatch as one request."},
    {"descriptor", get_descriptor, METH_NOARGS, "Readable while next() has a ticket."},
    {"next", next_ticket, METH_NOARGS, "The next ticket with an event that has ended, or None."},
    {"stream", stream, METH_VARARGS, "A sequence whose elements come later; of saved states."},
    {"metrics", get_metrics, METH_NOARGS, "Counters in the text format of Prometheus."},
    {"counts", get_counts, METH_NOARGS, "Counters."},
    {0}};
static PyType_Slot slots[] = {{Py_tp_doc, "Many callers' requests, computed together."},
			      {Py_tp_dealloc, end_service},
			      {Py_tp_methods, methods},
			      {0}};
static PyType_Spec spec = {"espalier.RawService", sizeof(struct py_service), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

bool add_service(PyObject *module)
{
	return add_type(module, &spec, &types.service);
}
