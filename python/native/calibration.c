/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Observed programs, which a calibration quantises weights by. */
#include "native.h"

/* calibrate(context, model, weights, *, backend, math, rules, table_bytes, precision): an observed program.
 */
PyObject *calibrate_program(PyObject *cls, PyObject *args, PyObject *names)
{
	static char *known[] = {"context", "model",	  "weights",   "backend", "math",
				"rules",   "table_bytes", "precision", NULL};
	PyObject *context, *model, *weights;
	unsigned long long table_bytes = 0;
	esp_program_options o = {.size = sizeof o};
	esp_error *error = NULL;
	esp_status status;
	(void)cls;
	if (!PyArg_ParseTupleAndKeywords(args, names, "OOO|$zzzKz", known, &context, &model, &weights,
					 &o.backend, &o.math, &o.rules, &table_bytes, &o.precision) ||
	    !need_type(context, types.context, "context") || !need_type(model, types.model, "model") ||
	    !need_type(weights, types.weights, "weights"))
		return NULL;
	o.table_bytes = table_bytes;
	struct py_program *p = take_program(context);
	if (!p)
		return NULL;
	WITHOUT_LOCK(status = esp_calibration_create(((struct py_model *)model)->at,
						     ((struct py_weights *)weights)->at, &o, &p->calibration,
						     &error));
	p->at = esp_calibration_program(p->calibration);
	if (!status)
		WITHOUT_LOCK(status = esp_binding_create(p->at, ((struct py_weights *)weights)->at,
							 &p->binding, &error));
	return finish_program(p, status, error);
}

static bool need_calibration(struct py_program *p)
{
	if (!p->calibration)
		PyErr_SetString(PyExc_TypeError, "the program is not an observed one");
	return p->calibration;
}

/* A session that has run the batch; NULL with an exception, or with *status when the run failed. */
static struct runner *run_observed(struct py_program *p, PyObject *batch, esp_status *status,
				   esp_error **error)
{
	struct runner *r = need_calibration(p) ? take_runner(p) : NULL;
	if (!r)
		return NULL;
	if (read_batch(p, r, batch))
		WITHOUT_LOCK(*status = esp_session_run(r->session, r->forest, error));
	if (!*status && !PyErr_Occurred())
		return r;
	give_runner_back(p, r);
	return NULL;
}

/* observe(batch) */
PyObject *observe_batch(PyObject *self, PyObject *batch)
{
	struct py_program *p = (struct py_program *)self;
	esp_error *error = NULL;
	esp_status status = ESP_OK;
	struct runner *r = run_observed(p, batch, &status, &error);
	if (r) {
		WITHOUT_LOCK(status = esp_calibration_add(p->calibration, r->session, &error));
		give_runner_back(p, r);
	}
	if (status)
		return raise_error(status, error);
	return r ? Py_NewRef(Py_None) : NULL;
}

/* compare(reference, batch): both are observed programs. */
PyObject *compare_batch(PyObject *self, PyObject *args)
{
	struct py_program *p = (struct py_program *)self, *q;
	PyObject *reference, *batch;
	esp_error *error = NULL;
	esp_status status = ESP_OK;
	if (!PyArg_ParseTuple(args, "OO", &reference, &batch) ||
	    !need_type(reference, types.program, "reference"))
		return NULL;
	q = (struct py_program *)reference;
	struct runner *a = run_observed(p, batch, &status, &error),
		      *b = a ? run_observed(q, batch, &status, &error) : NULL;
	if (b)
		WITHOUT_LOCK(status =
				 esp_calibration_compare(p->calibration, a->session, b->session, &error));
	if (a)
		give_runner_back(p, a);
	if (b)
		give_runner_back(q, b);
	if (status)
		return raise_error(status, error);
	return b ? Py_NewRef(Py_None) : NULL;
}

/* The names of a sequence as texts that live as long as it does; NULL with an exception. */
static const char **take_names(PyObject *names, size_t *n)
{
	Py_ssize_t size = PyTuple_Size(names);
	const char **text = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof *text);
	if (size >= 0 && !text)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; text && i < size; i++)
		if (!(text[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL))) {
			PyMem_Free(text);
			return NULL;
		}
	*n = text ? (size_t)size : 0;
	return text;
}

/* quantise(path, precision, keep, weights_only): writes the weights. */
PyObject *quantise_weights(PyObject *self, PyObject *args)
{
	struct py_program *p = (struct py_program *)self;
	esp_quantise_options o = {.size = sizeof o};
	PyObject *path, *keep;
	esp_error *error = NULL;
	esp_status status = ESP_OK;
	if (!need_calibration(p) || !PyArg_ParseTuple(args, "O&zO!p", PyUnicode_FSConverter, &path, &o.precision,
						      &PyTuple_Type, &keep, &o.weights_only))
		return NULL;
	const char **names = take_names(keep, &o.kept);
	const char *file = PyBytes_AsString(path);
	o.keep = names;
	if (names)
		WITHOUT_LOCK(status = esp_calibration_write(p->calibration, &o, file, &error));
	PyMem_Free((void *)names);
	Py_DECREF(path);
	if (status)
		return raise_error(status, error);
	return names ? Py_NewRef(Py_None) : NULL;
}

static PyObject *describe_difference(const esp_difference *d)
{
	return Py_BuildValue("(dddd)", d->largest, d->rms, d->reference_largest, d->reference_rms);
}

/* The error of a product's sums with plain scales and with those that were chosen; None = none were. */
static PyObject *describe_scales(const esp_product *p)
{
	return p->scaled ? Py_BuildValue("(dd)", p->plain_error, p->chosen_error) : Py_NewRef(Py_None);
}

/* One of esp_product, in the order of its members. */
static PyObject *describe_product(const esp_product *p)
{
	static const char *const from[] = {"none", "proved", "calibrated"};
	PyObject *differ = p->compared ? describe_difference(&p->sums_differ) : Py_NewRef(Py_None);
	PyObject *scales = differ ? describe_scales(p) : NULL;
	if (scales)
		return Py_BuildValue("(snnszsOddNN)", p->name, (Py_ssize_t)p->terms, (Py_ssize_t)p->sums, p->computed,
				     p->why, from[p->bound_is], p->per_edge ? Py_True : Py_False, p->bound, p->observed,
				     differ, scales);
	Py_XDECREF(differ);
	return NULL;
}

static bool append_item(PyObject *list, PyObject *item)
{
	bool ok = item && PyList_Append(list, item) == 0;
	Py_XDECREF(item);
	return ok;
}

/* products(): a list of tuples, and a list of how far outputs are from those of the reference. */
PyObject *list_products(PyObject *self, PyObject *none)
{
	struct py_program *p = (struct py_program *)self;
	PyObject *products = PyList_New(0), *outputs = PyList_New(0);
	bool ok = need_calibration(p) && products && outputs;
	(void)none;
	for (size_t i = 0; ok && esp_calibration_product(p->calibration, i); i++)
		ok = append_item(products, describe_product(esp_calibration_product(p->calibration, i)));
	for (size_t i = 0; ok && esp_calibration_output(p->calibration, i); i++)
		ok = append_item(outputs, describe_difference(esp_calibration_output(p->calibration, i)));
	if (ok)
		return Py_BuildValue("(NN)", products, outputs);
	Py_XDECREF(products);
	Py_XDECREF(outputs);
	return NULL;
}
