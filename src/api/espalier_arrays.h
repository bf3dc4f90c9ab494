/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier_arrays.h - models with choices, and calls by arrays (doc/onnx.md); espalier.h includes it. */
#ifndef ESPALIER_ARRAYS_H
#define ESPALIER_ARRAYS_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* --- models of files of graphs, and what is decided about them --- */

/* The size of an extent of an ONNX graph's inputs by its name (dim_param); one without a name is "x[0]", an axis of an input. */
typedef struct esp_extent {
	const char *name;
	int64_t size;
} esp_extent;

/* An array in row-major order, which is the caller's. */
typedef struct esp_array {
	const char *name; /* of the input that it is for */
	esp_dtype dtype;
	size_t rank;
	const size_t *shape;
	const void *elements;
} esp_array;

/* What is decided about an ONNX graph when it is read. */
typedef struct esp_read_options {
	size_t size; /* sizeof(esp_read_options) */
	const esp_extent *extent; /* sizes that the graph leaves open, `extents` of them */
	size_t extents;
	const esp_array *constant; /* values of inputs, which then are inputs no more: those that decide shapes must be given */
	size_t constants;
	const char *const *exported; /* names of values that are outputs; 0 of them: the graph's own */
	size_t exports;
} esp_read_options;
/* esp_model_read also reads files of ONNX (names that end in .onnx, or bytes that begin as theirs; doc/onnx.md) and of TensorFlow Lite
 * (.tflite; doc/tflite.md), of which nothing is decided:
 * a graph becomes a model without a structure, of whose batches one row has the whole tensors.  Its inputs
 * and outputs have the names of the graph; its text has '_' for what the language has in no name.
 * ESP_ERROR_INPUT: of a model text there is nothing to decide. */
esp_status esp_model_read_with(esp_context *, const char *path, const esp_read_options *options, esp_model **out,
			       esp_error **error);

/* The tensors that a file of a graph has for the parameters of its model, as weights like others: they keep the model alive, and can be
 * exchanged for those of a file with the same names.  ESP_ERROR_ARGUMENT: the model is a text. */
esp_status esp_model_weights(const esp_model *, esp_weights **out, esp_error **error);
/* The elements of a tensor that was read from a file of a graph; NULL of one in a safetensors file.  Belongs to the weights. */
const void *esp_weights_elements(const esp_weights *, size_t i);

/* --- calls by the names of inputs --- */

/* The number of the input or the output of that name, as the graph or the model's text has it; as many
 * as there are when there is none. */
size_t esp_program_find_input(const esp_program *, const char *name);
size_t esp_program_find_output(const esp_program *, const char *name);

/* Runs a model without a structure over arrays, each for the input of its name; results are read as after any other run.  All arrays have
 * the shapes of their inputs: they are one row, number 0.  Or all have an axis more before them, of one extent: a row for each of its indices.  The
 * session keeps what it copies of them for its next call.
 * ESP_ERROR_INPUT: an input has no array or two, or an array is of no input, or its type or shape is not that of its input; else as esp_session_run. */
esp_status esp_session_call(esp_session *, const esp_array *arrays, size_t n, esp_error **error);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
