/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Contexts: threads, memory and the cache of compiled programs. */
#include "native.h"

static void end_context(PyObject *self)
{
	esp_context_free(((struct py_context *)self)->at);
	free_object(self);
}

static PyObject *new_context(PyTypeObject *type, PyObject *args, PyObject *names)
{
	static char *known[] = {"threads", "memory_cap", "cache",     "cache_dir",	"cache_limit",
				"pin",	   "operators",	 "in_helper", "compile_memory", "compile_seconds",
				"machine", "perf_map",	 "lines",     "jitdump",	NULL};
	esp_context_options o = {.size = sizeof o};
	unsigned long long cap = 0, limit = 0, memory = 0, operators = 0;
	int cache = 1;
	if (!PyArg_ParseTupleAndKeywords(args, names, "|$iKpzKpKpKdippp", known, &o.threads, &cap, &cache,
					 &o.cache_dir, &limit, &o.pin, &operators, &o.compile_in, &memory,
					 &o.compile_seconds, &o.machine, &o.perf_map, &o.lines, &o.jitdump))
		return NULL;
	o.memory_cap = (size_t)cap, o.cache_limit = limit, o.compile_memory = memory,
	o.operators = (size_t)operators;
	o.cache = cache ? ESP_CACHE_ON : ESP_CACHE_OFF;
	allocfunc take = PyType_GetSlot(type, Py_tp_alloc);
	struct py_context *c = (struct py_context *)take(type, 0);
	esp_error *error = NULL;
	esp_status status = c ? esp_context_create(&o, &c->at, &error) : ESP_OK;
	if (!status)
		return (PyObject *)c;
	Py_DECREF((PyObject *)c);
	return raise_error(status, error);
}

static PyObject *close_context(PyObject *self, PyObject *none)
{
	(void)none;
	esp_error *error = NULL;
	esp_status status;
	WITHOUT_LOCK(status = esp_context_close(((struct py_context *)self)->at, &error));
	return status ? raise_error(status, error) : Py_NewRef(Py_None);
}

static PyObject *describe_machine(PyObject *self, PyObject *args, PyObject *names)
{
	static char *known[] = {"measure", NULL};
	int measure = 0;
	char *text = NULL;
	esp_error *error = NULL;
	esp_status status;
	if (!PyArg_ParseTupleAndKeywords(args, names, "|$p", known, &measure))
		return NULL;
	WITHOUT_LOCK(status = esp_context_machine(((struct py_context *)self)->at, measure, &text, &error));
	return status ? raise_error(status, error) : take_text(text);
}

static PyObject *get_threads(PyObject *self, void *none)
{
	(void)none;
	return PyLong_FromLong(esp_context_threads(((struct py_context *)self)->at));
}

static PyObject *get_memory(PyObject *self, void *none)
{
	(void)none;
	return PyLong_FromSize_t(esp_context_memory(((struct py_context *)self)->at, NULL));
}

static PyObject *show_context(PyObject *self)
{
	esp_context *c = ((struct py_context *)self)->at;
	return PyUnicode_FromFormat("<espalier.Context: %d threads, %zu bytes in use>",
				    esp_context_threads(c), esp_context_memory(c, NULL));
}

static PyMethodDef methods[] = {{"close", close_context, METH_NOARGS,
				 "Refuses all calls with its objects from now on, and ends its threads."},
				{"machine", (PyCFunction)(void (*)(void))describe_machine,
				 METH_VARARGS | METH_KEYWORDS,
				 "The description of this machine, as text; measure=True measures it anew."},
				{0}};
static PyGetSetDef properties[] = {
    {"threads", get_threads, NULL, "How many threads may compute one run.", NULL},
    {"memory", get_memory, NULL, "Bytes in use.", NULL},
    {0}};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Threads, memory and cache, which all objects made from it share; its keyword arguments "
     "are the members of esp_context_options."},
    {Py_tp_new, new_context},
    {Py_tp_dealloc, end_context},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_repr, show_context},
    {0}};
static PyType_Spec spec = {"espalier.Context", sizeof(struct py_context), 0, Py_TPFLAGS_DEFAULT, slots};

bool add_context(PyObject *module)
{
	return add_type(module, &spec, &types.context);
}
