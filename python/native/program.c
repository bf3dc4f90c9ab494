/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs: a model that is compiled for its weights, which are bound to it. */
#include "native.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 }; /* of the bytes of a program */

struct py_program *take_program(PyObject *context)
{
	allocfunc take = PyType_GetSlot(types.program, Py_tp_alloc);
	struct py_program *p = (struct py_program *)take(types.program, 0);
	if (p)
		p->context = Py_NewRef(context);
	return p;
}

static void end_program(PyObject *self)
{
	struct py_program *p = (struct py_program *)self;
	free_runners(p);
	esp_binding_free(p->binding);
	if (p->calibration)
		esp_calibration_free(p->calibration);
	else
		esp_program_free(p->at);
	for (size_t i = 0; p->reader && i < p->inputs; i++) {
		Py_XDECREF(p->reader[i].key);
		Py_XDECREF(p->reader[i].vocab);
	}
	PyMem_Free(p->reader);
	PyMem_Free(p->column);
	PyBuffer_Release(&p->bytes);
	free(p->copy);
	Py_XDECREF(p->kept);
	Py_XDECREF(p->adapt);
	Py_XDECREF(p->texts);
	Py_XDECREF(p->context);
	free_object(self);
}

/* --- creation --- */

static bool is_label(const char *name)
{
	return strcmp(name, "label") == 0 || strcmp(name, "tag") == 0 || strcmp(name, "category") == 0;
}

/* A leaf that stands for itself is the only input that leaves carry, labels apart, or the one named "word".
 */
static void choose_value(struct py_program *p)
{
	struct reader *only = NULL;
	size_t candidates = 0;
	for (size_t i = 0; i < p->inputs; i++) {
		struct reader *r = &p->reader[i];
		if (r->input->on_edges || r->takes_label)
			continue;
		if (!candidates++ || strcmp(r->input->name, "word") == 0)
			only = r;
	}
	if (only && (candidates == 1 || strcmp(only->input->name, "word") == 0))
		only->takes_value = true;
	if (!candidates && p->inputs == 1)
		p->reader[0].takes_value = !p->reader[0].input->on_edges;
}

static bool make_readers(struct py_program *p)
{
	int shared;
	p->sequence = esp_program_children(p->at, &shared) == 1 && !shared;
	p->dag = shared;
	p->rows = !esp_program_children(p->at, NULL);
	p->inputs = esp_program_inputs(p->at);
	p->reader = PyMem_Calloc(p->inputs + 1, sizeof *p->reader);
	p->column = PyMem_Calloc(p->inputs + 1, sizeof *p->column);
	if (!p->reader || !p->column)
		return PyErr_NoMemory() != NULL;
	for (size_t i = 0; i < p->inputs; i++) {
		const esp_input *in = esp_program_input(p->at, i);
		p->reader[i] = (struct reader){.input = in,
					       .key = PyUnicode_FromString(in->name),
					       .takes_label = !in->on_edges && is_label(in->name)};
		if (!p->reader[i].key)
			return false;
		p->has_edges |= in->on_edges;
	}
	choose_value(p);
	p->treebank = (esp_treebank_options){.size = sizeof p->treebank};
	return true;
}

/* Rows of weights in memory may be read later, also by runs that began before a swap; files are kept by the
 * library. */
static bool keep_weights(struct py_program *p, PyObject *weights)
{
	return !p->kept || weights == Py_None || !((struct py_weights *)weights)->bytes.obj ||
	       PyList_Append(p->kept, weights) == 0;
}

/* ESP_OK with an exception set: there was no memory. */
static esp_status bind(struct py_program *p, PyObject *weights, bool lazy, esp_error **error)
{
	esp_weights *w = weights == Py_None ? NULL : ((struct py_weights *)weights)->at;
	esp_status status;
	if ((lazy && !(p->kept = PyList_New(0))) || !keep_weights(p, weights))
		return ESP_OK;
	WITHOUT_LOCK(status = lazy && w ? esp_binding_open(p->at, w, &p->binding, error)
					: esp_binding_create(p->at, w, &p->binding, error));
	return status;
}

PyObject *finish_program(struct py_program *p, esp_status status, esp_error *error)
{
	if (!status && !PyErr_Occurred() && make_readers(p))
		return (PyObject *)p;
	Py_DECREF((PyObject *)p);
	return status ? raise_error(status, error) : NULL;
}

/* compile(context, model, weights, *, lazy=False, ...): the members of esp_program_options. */
static PyObject *compile_program(PyObject *cls, PyObject *args, PyObject *names)
{
	static char *known[] = {"context",     "model",	     "weights",	   "lazy", "at",
				"backend",     "target",     "schedule",   "math", "rules",
				"table_bytes", "weights_as", "precision",  "continuous", "assume", "accelerator", NULL};
	PyObject *context, *model, *weights;
	int lazy = 0;
	unsigned long long table_bytes = 0;
	esp_program_options o = {.size = sizeof o};
	(void)cls;
	if (!PyArg_ParseTupleAndKeywords(args, names, "OOO|$pizzzzzKzzpzz", known, &context, &model, &weights,
					 &lazy, &o.at, &o.backend, &o.target, &o.schedule, &o.math, &o.rules,
					 &table_bytes, &o.weights_as, &o.precision, &o.continuous,
					 &o.assume, &o.accelerator) ||
	    !need_type(context, types.context, "context") || !need_type(model, types.model, "model") ||
	    !need_type(weights, types.weights, "weights"))
		return NULL;
	o.table_bytes = table_bytes;
	struct py_program *p = take_program(context);
	esp_error *error = NULL;
	esp_status status;
	if (!p)
		return NULL;
	WITHOUT_LOCK(status = esp_program_create(((struct py_model *)model)->at,
						 ((struct py_weights *)weights)->at, &o, &p->at, &error));
	if (!status)
		status = bind(p, weights, lazy, &error);
	return finish_program(p, status, error);
}

/* Bytes that cannot be used where they are, because something may change them or they are not aligned. */
static bool copy_bytes(struct py_program *p)
{
	size_t size = ((size_t)p->bytes.len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (p->bytes.readonly && (uintptr_t)p->bytes.buf % ALIGNMENT == 0)
		return true;
	p->copy = aligned_alloc(ALIGNMENT, size ? size : ALIGNMENT);
	if (!p->copy)
		return PyErr_NoMemory() != NULL;
	memcpy(p->copy, p->bytes.buf, (size_t)p->bytes.len);
	return true;
}

static esp_status load_bytes(struct py_program *p, esp_context *c, PyObject *source, esp_error **error)
{
	if (PyObject_GetBuffer(source, &p->bytes, PyBUF_SIMPLE) || !copy_bytes(p))
		return ESP_OK;
	size_t length = (size_t)p->bytes.len;
	if (p->copy)
		PyBuffer_Release(&p->bytes);
	return esp_program_load_memory(c, p->copy ? p->copy : p->bytes.buf, length, &p->at, error);
}

static esp_status load_from(struct py_program *p, esp_context *c, PyObject *source, esp_error **error)
{
	PyObject *path = NULL;
	esp_status status = ESP_OK;
	if (PyObject_CheckBuffer(source)) {
		status = load_bytes(p, c, source, error);
	} else if (PyUnicode_FSConverter(source, &path)) {
		status = esp_program_load(c, PyBytes_AsString(path), &p->at, error);
		Py_DECREF(path);
	}
	return status;
}

/* load(context, source, weights=None, lazy=False): a saved program, of a path or of bytes. */
static PyObject *load_program(PyObject *cls, PyObject *args, PyObject *names)
{
	static char *known[] = {"context", "source", "weights", "lazy", NULL};
	PyObject *context, *source, *weights = Py_None;
	int lazy = 0;
	esp_error *error = NULL;
	(void)cls;
	if (!PyArg_ParseTupleAndKeywords(args, names, "OO|Op", known, &context, &source, &weights, &lazy) ||
	    !need_type(context, types.context, "context") ||
	    (weights != Py_None && !need_type(weights, types.weights, "weights")))
		return NULL;
	struct py_program *p = take_program(context);
	esp_status status = p ? load_from(p, ((struct py_context *)context)->at, source, &error) : ESP_OK;
	if (p && !status && !PyErr_Occurred())
		status = bind(p, weights, lazy, &error);
	return p ? finish_program(p, status, error) : NULL;
}

/* --- reading --- */

/* read(adapt, vocabs, columns, graph, collapse, binarize, cut_labels): how structures are read. */
static PyObject *set_reading(PyObject *self, PyObject *args)
{
	struct py_program *p = (struct py_program *)self;
	PyObject *adapt, *vocabs, *columns;
	esp_treebank_options *t = &p->treebank;
	if (!PyArg_ParseTuple(args, "OO!O!iiii", &adapt, &PyDict_Type, &vocabs, &PyDict_Type, &columns,
			      &t->graph, &t->collapse, &t->binarize, &t->cut_labels))
		return NULL;
	for (size_t i = 0; i < p->inputs; i++) {
		struct reader *r = &p->reader[i];
		PyObject *vocab = PyDict_GetItem(vocabs, r->key), *column = PyDict_GetItem(columns, r->key);
		if (vocab && !need_type(vocab, types.vocab, "vocab"))
			return NULL;
		replace_object(&r->vocab, Py_XNewRef(vocab));
		p->column[i] = (esp_column){.input = r->input->name,
					    .vocab = vocab ? ((struct py_vocab *)vocab)->at : NULL};
		if (column && !(p->column[i].column = PyUnicode_AsUTF8AndSize(column, NULL)))
			return NULL;
	}
	t->column = p->column;
	t->columns = p->inputs;
	replace_object(&p->adapt, Py_NewRef(adapt));
	replace_object(&p->texts, Py_NewRef(columns));
	return Py_NewRef(Py_None);
}

/* --- runs --- */

static esp_status run_session(struct runner *r, bool record, esp_error **error)
{
	esp_status status = record ? esp_session_record(r->session, 1, error) : ESP_OK;
	if (status)
		return status;
	WITHOUT_LOCK(status = esp_session_run(r->session, r->forest, error));
	if (record)
		esp_session_record(r->session, 0, NULL);
	return status;
}

static PyObject *run(struct py_program *p, PyObject *batch, bool record)
{
	struct runner *r = take_runner(p);
	esp_error *error = NULL;
	if (!r)
		return NULL;
	esp_status status = ESP_OK;
	if (read_batch(p, r, batch) && !(status = run_session(r, record, &error)))
		return new_result(p, r, NULL);
	give_runner_back(p, r);
	return status ? raise_error(status, error) : NULL;
}

static PyObject *run_batch(PyObject *self, PyObject *batch)
{
	return run((struct py_program *)self, batch, false);
}

static PyObject *record_batch(PyObject *self, PyObject *batch)
{
	return run((struct py_program *)self, batch, true);
}

static PyObject *make_service(PyObject *self, PyObject *args, PyObject *names)
{
	return new_service((struct py_program *)self, args, names);
}

static PyObject *prepare_program(PyObject *self, PyObject *none)
{
	struct py_program *p = (struct py_program *)self;
	esp_error *error = NULL;
	esp_status status;
	(void)none;
	WITHOUT_LOCK(status = esp_program_prepare(p->at, &error));
	return status ? raise_error(status, error) : Py_NewRef(Py_None);
}

static PyObject *swap_weights(PyObject *self, PyObject *weights)
{
	struct py_program *p = (struct py_program *)self;
	esp_error *error = NULL;
	esp_status status;
	if (!need_type(weights, types.weights, "weights") || !keep_weights(p, weights))
		return NULL;
	WITHOUT_LOCK(status = esp_binding_swap(p->binding, ((struct py_weights *)weights)->at, &error));
	return status ? raise_error(status, error) : Py_NewRef(Py_None);
}

/* save(path, weights): weights = None leaves them out. */
static PyObject *save_program(PyObject *self, PyObject *args)
{
	struct py_program *p = (struct py_program *)self;
	PyObject *path, *weights;
	esp_save_options o = {.size = sizeof o};
	esp_error *error = NULL;
	esp_status status = ESP_OK;
	if (!PyArg_ParseTuple(args, "O&O", PyUnicode_FSConverter, &path, &weights))
		return NULL;
	if (weights == Py_None || need_type(weights, types.weights, "weights")) {
		o.weights = weights == Py_None ? NULL : ((struct py_weights *)weights)->at;
		const char *name = PyBytes_AsString(path);
		WITHOUT_LOCK(status = esp_program_save(p->at, name, &o, &error));
	}
	Py_DECREF(path);
	if (PyErr_Occurred())
		return NULL;
	return status ? raise_error(status, error) : Py_NewRef(Py_None);
}

/* --- texts --- */

static PyObject *finish_text(esp_status status, esp_error *error, char *text)
{
	return status ? raise_error(status, error) : take_text(text);
}

static PyObject *explain_program(PyObject *self, PyObject *args)
{
	int json = 0, layers = 0;
	char *text = NULL;
	esp_error *error = NULL;
	esp_status status;
	if (!PyArg_ParseTuple(args, "|pp", &json, &layers))
		return NULL;
	int form = json ? ESP_FORM_JSON : layers ? ESP_FORM_LAYERS : ESP_FORM_TEXT;
	WITHOUT_LOCK(status = esp_program_explain(((struct py_program *)self)->at, form, &text, &error));
	return finish_text(status, error, text);
}

static PyObject *dump_program(PyObject *self, PyObject *args)
{
	const char *stage;
	char *text = NULL;
	esp_error *error = NULL;
	esp_status status;
	if (!PyArg_ParseTuple(args, "s", &stage))
		return NULL;
	WITHOUT_LOCK(status = esp_program_dump(((struct py_program *)self)->at, stage, &text, &error));
	return finish_text(status, error, text);
}

static PyObject *time_program(PyObject *self, PyObject *none)
{
	(void)none;
	char *text = NULL;
	esp_error *error = NULL;
	esp_status status;
	WITHOUT_LOCK(status = esp_program_times(((struct py_program *)self)->at, &text, &error));
	return finish_text(status, error, text);
}

/* --- the type --- */

static PyMethodDef methods[] = {
    {"compile", (PyCFunction)(void (*)(void))compile_program, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Compiles a model for its weights and binds them."},
    {"calibrate", (PyCFunction)(void (*)(void))calibrate_program, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Compiles a model such that what its weights multiply is observed."},
    {"observe", observe_batch, METH_O, "Runs a minibatch of an observed program, and takes what it observed."},
    {"compare", compare_batch, METH_VARARGS, "Runs a minibatch by two observed programs, and takes how far they differ."},
    {"quantise", quantise_weights, METH_VARARGS, "Writes quantised weights."},
    {"products", list_products, METH_NOARGS, "What is known of products and outputs of an observed program."},
    {"load", (PyCFunction)(void (*)(void))load_program, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Reads a saved program."},
    {"read", set_reading, METH_VARARGS, "How structures are read."},
    {"run", run_batch, METH_O, "Runs a minibatch, or a single structure."},
    {"record", record_batch, METH_O, "The same, and records where its time goes."},
    {"service", (PyCFunction)(void (*)(void))make_service, METH_VARARGS | METH_KEYWORDS, "A service of it."},
    {"prepare", prepare_program, METH_NOARGS, "Makes all of its code now."},
    {"swap", swap_weights, METH_O, "Exchanges the weights."},
    {"save", save_program, METH_VARARGS, "Writes the program, with weights or without."},
    {"explain", explain_program, METH_VARARGS, "What the model was rewritten to."},
    {"dump", dump_program, METH_VARARGS, "The program after a stage of the compiler."},
    {"times", time_program, METH_NOARGS, "Where the time of compiling went."},
    {0}};
static PyType_Slot slots[] = {{Py_tp_doc, "A compiled model with its weights."},
			      {Py_tp_dealloc, end_program},
			      {Py_tp_methods, methods},
			      {Py_tp_getset, program_properties},
			      {0}};
static PyType_Spec spec = {"espalier.Program", sizeof(struct py_program), 0,
			   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

bool add_program(PyObject *module)
{
	return add_type(module, &spec, &types.program);
}
