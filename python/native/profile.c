/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What was recorded of a run, as a dict of lists. */
#include "native.h"

/* Appends an item, which it takes. */
static bool append(PyObject *list, PyObject *item)
{
	bool ok = item && PyList_Append(list, item) == 0;
	Py_XDECREF(item);
	return ok;
}

static PyObject *list_steps(const esp_profile *p)
{
	PyObject *list = PyList_New(0);
	const esp_step *s;
	for (size_t i = 0; list && (s = esp_profile_step(p, i)); i++)
		if (!append(list, Py_BuildValue("(siLLLL)", s->name, s->over, (long long)s->operations,
						(long long)s->blocks, (long long)s->tile,
						(long long)s->weight_bytes)))
			Py_CLEAR(list);
	return list;
}

static PyObject *list_ranges(const esp_profile *p)
{
	PyObject *list = PyList_New(0);
	const esp_range *r;
	for (size_t i = 0; list && (r = esp_profile_range(p, i)); i++)
		if (!append(list, Py_BuildValue("(nnLLLiLL)", (Py_ssize_t)r->step, (Py_ssize_t)r->steps,
						(long long)r->level, (long long)r->row, (long long)r->rows,
						r->split, (long long)r->start, (long long)r->stop)))
			Py_CLEAR(list);
	return list;
}

static PyObject *list_events(const esp_profile *p)
{
	PyObject *list = PyList_New(0);
	const esp_event *e;
	for (size_t i = 0; list && (e = esp_profile_event(p, i)); i++)
		if (!append(list, Py_BuildValue("(Ninnn LLLL)", PyBool_FromLong(e->kind == ESP_EVENT_WAIT),
						e->thread, (Py_ssize_t)e->share, (Py_ssize_t)e->range,
						(Py_ssize_t)e->step, (long long)e->row, (long long)e->rows,
						(long long)e->start, (long long)e->stop)))
			Py_CLEAR(list);
	return list;
}

PyObject *describe_profile(const esp_profile *p)
{
	const esp_profile_facts *f = esp_profile_describe(p);
	return Py_BuildValue("{sLsLsLsisnsnsnsnsnsKsKsKsNsNsN}", "linearize", (long long)f->linearize, "fill",
			     (long long)f->fill, "run", (long long)f->run, "threads", f->threads,
			     "structures", (Py_ssize_t)f->structures, "nodes", (Py_ssize_t)f->nodes, "edges",
			     (Py_ssize_t)f->edges, "leaves", (Py_ssize_t)f->leaves, "levels",
			     (Py_ssize_t)f->levels, "weight_bytes", (unsigned long long)f->weight_bytes,
			     "state_bytes", (unsigned long long)f->state_bytes, "code_bytes",
			     (unsigned long long)f->code_bytes, "steps", list_steps(p), "ranges",
			     list_ranges(p), "events", list_events(p));
}
