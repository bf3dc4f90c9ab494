/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of the extension module share.  It is written against Python's limited API, so that one
 * binary serves every Python from 3.11 on, and against the public headers of the library.
 *
 * Every function that returns a PyObject * returns a new reference, or NULL with an exception set; one that
 * returns a bool returns false with an exception set.  The interpreter's lock is released around calls that
 * compile, bind or run. */
#ifndef ESPALIER_NATIVE_H
#define ESPALIER_NATIVE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include "espalier.h"
#include "espalier_service.h"

#include <stdbool.h>

/* Runs a statement with the interpreter's lock released. */
#define WITHOUT_LOCK(...)                                                                                    \
	do {                                                                                                 \
		Py_BEGIN_ALLOW_THREADS __VA_ARGS__;                                                          \
		Py_END_ALLOW_THREADS                                                                         \
	} while (0)

/* --- module.c --- */

/* The types of the module, made when it is imported. */
struct types {
	PyTypeObject *context, *model, *builder, *weights, *vocab, *program, *structures, *result, *rows,
	    *profile, *service, *ticket, *stream;
};
extern struct types types;

/* Makes a type and adds it to the module under the last part of its name. */
bool add_type(PyObject *module, PyType_Spec *, PyTypeObject **);
/* Ends an object of such a type. */
void free_object(PyObject *);
/* Puts a new reference, which may be NULL, in place of one. */
void replace_object(PyObject **, PyObject *);
/* Whether an argument is of the type; None and NULL are not.  Raises TypeError. */
bool need_type(PyObject *argument, PyTypeObject *, const char *what);

/* --- errors.c --- */

bool add_errors(PyObject *module);
/* Raises the exception of a status with the diagnostics of the error, which it frees.  Always NULL. */
PyObject *raise_error(esp_status, esp_error *);
/* Raises `InputError` with one diagnostic, whose id is of the library's registry.  `structure` and `node` as
 * in esp_diagnostic.  Always false. */
__attribute__((format(printf, 5, 6))) bool refuse_input(const char *id, int64_t structure, int64_t node,
							const char *hint, const char *format, ...);
PyObject *python_diagnostic(const esp_diagnostic *);

/* --- objects --- */

struct py_context {
	PyObject_HEAD esp_context *at;
};
struct py_model {
	PyObject_HEAD esp_model *at;
};
struct py_weights {
	PyObject_HEAD esp_weights *at;
	Py_buffer bytes; /* of weights in memory */
};
struct py_vocab {
	PyObject_HEAD esp_vocab *at;
};

bool add_context(PyObject *module);
bool add_model(PyObject *module);
bool add_builder(PyObject *module);
bool add_weights(PyObject *module);
bool add_vocab(PyObject *module);
bool add_structures(PyObject *module);
bool add_result(PyObject *module);
bool add_rows(PyObject *module);

PyObject *new_model(esp_model *);
PyObject *new_weights(esp_weights *);
/* A text of the library's, which may quote a file; what is no UTF-8 is replaced.  NULL becomes None. */
PyObject *decode_text(const char *text);
/* The same of a text that the library made, which is freed; NULL becomes an empty one. */
PyObject *take_text(char *text);
/* A tuple of the extents. */
PyObject *shape_tuple(const size_t *shape, size_t rank);

/* --- flat.c: structures in arrays --- */

/* An array that grows. */
struct array {
	char *at;
	size_t bytes, capacity;
};
/* Adds bytes, which the caller fills, at the end; NULL with MemoryError. */
void *array_add(struct array *, size_t bytes);
void array_free(struct array *);

/* Structures that wait to be added to a forest, as esp_forest_add_many takes them. */
struct flat {
	struct array node_begin, child_begin, children, root;
	struct array *data; /* for each input of the program */
	size_t inputs;
	size_t added; /* structures that the forest has already */
};
bool flat_init(struct flat *, size_t inputs);
void flat_clear(struct flat *);
void flat_free(struct flat *);
/* The number, in the minibatch, of the structure that is being read. */
int64_t flat_structure(const struct flat *);
int32_t flat_nodes(const struct flat *);
/* Adds the structures to the forest and forgets them. */
bool flat_flush(struct flat *, esp_forest *);

/* --- program.c, describe.c, runner.c --- */

/* The working memory of a run.  Its results stay in it until it is given back. */
struct runner {
	esp_session *session;
	esp_forest *forest;
	struct flat flat;
	struct runner *next;
};

/* How an input is read from Python objects. */
struct reader {
	const esp_input *input;
	PyObject *key;	  /* its name */
	PyObject *vocab;  /* a Vocab, or NULL */
	bool takes_label; /* the label of a node of nltk.Tree */
	bool takes_value; /* the value of a leaf that stands for itself */
};

struct py_program {
	PyObject_HEAD esp_program *at;
	esp_calibration *calibration; /* whose program it is; NULL = it is its own */
	PyObject *context;
	esp_binding *binding;
	PyObject *kept;	 /* a list of weights in memory that runs may read; NULL = they were copied */
	Py_buffer bytes; /* that a program was loaded from and uses where they are */
	void *copy;	 /* of those that it cannot use there, or NULL */
	PyObject *texts; /* of the columns */
	PyObject *adapt; /* turns objects of other libraries into structures that this module knows */
	struct reader *reader;
	size_t inputs;
	bool sequence, dag, rows, has_edges; /* rows: there is no structure; has_edges: edges carry inputs */
	esp_treebank_options treebank;
	esp_column *column;
	struct runner *idle; /* that nobody holds results of */
	int idle_count;
};
bool add_program(PyObject *module);
/* An empty program; NULL with an exception. */
struct py_program *take_program(PyObject *context);
/* The program once it is bound, or the exception of what failed. */
PyObject *finish_program(struct py_program *, esp_status, esp_error *);

/* --- calibration.c: methods of programs --- */

PyObject *calibrate_program(PyObject *cls, PyObject *args, PyObject *names);
PyObject *observe_batch(PyObject *self, PyObject *batch);
PyObject *compare_batch(PyObject *self, PyObject *args);
PyObject *quantise_weights(PyObject *self, PyObject *args);
PyObject *list_products(PyObject *self, PyObject *none);

/* --- runner.c --- */

struct runner *take_runner(struct py_program *);
/* One without a session: the structures of a request. */
struct runner *new_request(struct py_program *);
void free_runner(struct runner *);
void give_runner_back(struct py_program *, struct runner *);
void free_runners(struct py_program *);
extern PyGetSetDef program_properties[]; /* describe.c */

/* --- read_batch.c, walk.c, values.c --- */

/* Adds a minibatch, or a single structure, to the forest of a runner, which is empty. */
bool read_batch(struct py_program *, struct runner *, PyObject *batch);
/* Adds a structure of tuples, lists, mappings and leaves. */
bool walk_tree(struct py_program *, struct flat *, PyObject *root);
bool walk_sequence(struct py_program *, struct flat *, PyObject *items);

/* What an object says of a node. */
struct view {
	PyObject *children; /* a list or tuple; NULL = a leaf */
	PyObject *value;    /* of a leaf that stands for itself, else NULL */
	PyObject *fields;   /* a dict, or NULL */
	PyObject *label;    /* or NULL */
};
bool view_node(PyObject *object, struct view *);
void view_free(struct view *);
/* Appends the row of each input of nodes. */
bool add_node_rows(struct py_program *, struct flat *, const struct view *, int64_t node);
/* Appends the row of each input on edges of the edge to a child: what `edge`, which may be NULL, says or else
 * the child. */
bool add_edge_rows(struct py_program *, struct flat *, PyObject *child, PyObject *edge, int64_t node);

/* --- arrays.c --- */

/* Views an object as a contiguous array of `dtype`, converting integers of other types; a GPU's is refused.
 * `what` names it in errors. */
bool view_array(PyObject *object, esp_dtype dtype, const char *what, Py_buffer *out);

struct py_structures {
	PyObject_HEAD PyObject *node_begin, *child_begin, *children, *root, *data; /* data: a dict by input */
};
bool add_arrays(struct py_program *, esp_forest *, struct py_structures *);

/* --- named.c --- */

/* Adds the rows that a dict of arrays, by the names of inputs, has for a model without a structure. */
bool add_named(struct py_program *, esp_forest *, PyObject *arrays);
/* read(context, path, sizes, constants, outputs): a model of a file, and what is decided about a graph of ONNX: tuples
 * of (name, size), of (name, type, array) and of names. */
PyObject *read_onnx(PyObject *cls, PyObject *args);

/* --- result.c, rows.c --- */

struct py_result {
	PyObject_HEAD struct py_program *program;
	struct runner *runner;
	PyObject *ticket; /* whose results they are, with its runner; NULL = the session's */
};
/* Takes the runner, unless it is a ticket's. */
PyObject *new_result(struct py_program *, struct runner *, PyObject *ticket);

/* An array of elements: a view of memory that `owner` keeps, or `copy`. */
struct rows_shape {
	const char *at;
	esp_dtype dtype;
	size_t row_elements;
	const size_t *row_shape;
	size_t row_rank;
	Py_ssize_t rows,
	    stride; /* stride: bytes from a row to the next; rows < 0: one row, without a first axis */
};
PyObject *new_rows(PyObject *owner, const struct rows_shape *, char *copy);
/* The letter of NumPy's and the struct module's formats. */
const char *dtype_format(esp_dtype);

/* --- service.c, ticket.c, stream.c --- */

struct py_service {
	PyObject_HEAD struct py_program *program;
	esp_service *at;
};
struct py_ticket {
	PyObject_HEAD PyObject *service;
	struct runner *runner; /* the structures, and where results are counted */
	esp_ticket *at;
};
bool add_service(PyObject *module);
bool add_ticket(PyObject *module);
bool add_stream(PyObject *module);
PyObject *new_service(struct py_program *, PyObject *args, PyObject *names);
/* A ticket that is still to be submitted, with these structures, which it takes. */
struct py_ticket *new_ticket(PyObject *service, struct runner *);
/* How requests are submitted: keyword arguments priority, deadline (seconds from now), event. */
bool read_submission(PyObject *names, esp_submit_options *);
/* Prepares the options: a ticket with an event is held by the service until next() has returned it. */
void expect_ticket(struct py_ticket *, esp_submit_options *);
/* Returns the ticket that was submitted or, after a failure, ends it. */
PyObject *submitted(struct py_ticket *, const esp_submit_options *, esp_status, esp_error *);
PyObject *open_stream(PyObject *service, PyObject *saved);

/* --- profile.c --- */

PyObject *describe_profile(const esp_profile *);

/* --- dlpack.c --- */

PyObject *rows_dlpack(PyObject *rows, PyObject *args, PyObject *names);
PyObject *rows_dlpack_device(PyObject *rows, PyObject *none);

#endif
