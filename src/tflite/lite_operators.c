/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of operators, as the importer and the reader see it. */
#include "tflite/lite.h"
#include "tflite/requantise.h"

#include <string.h>

static const struct onnx_operator rows[] = {
#define TFLITE_OP(name, last, union, options, attributes, write, text)                                       \
	{#name, "tflite", 1, last, attributes, ONNX_ANY, ONNX_SAME, onnx_write_tflite_##write, text},
#include "tflite/tflite_ops.def"
};

const struct onnx_table tflite_table = {rows, sizeof rows / sizeof *rows, "doc/tflite.md", "version"};

const struct tflite_options *tflite_find_options(const char *name)
{
	static const struct tflite_options options[] = {
#define TFLITE_OP(name, last, union, options, attributes, write, text) {#name, union, FLAT_##options},
#include "tflite/tflite_ops.def"
	};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}
