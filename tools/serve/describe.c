/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Metadata of the server and of models, as the Open Inference Protocol has them. */
#include "request.h"

#include <string.h>

/* By esp_dtype. */
static const char *const datatypes[] = {NULL,	 "FP32",  "FP16",  "BF16",  "INT8",
					"UINT8", "INT16", "INT32", "INT64", "BOOL"};

const char *datatype_name(esp_dtype dtype)
{
	return dtype > 0 && dtype < sizeof datatypes / sizeof *datatypes ? datatypes[dtype] : "UNKNOWN";
}

const char *const structure_tensor[STRUCTURE_TENSORS] = {
    [TENSOR_CHILD_BEGIN] = "child_begin",
    [TENSOR_CHILDREN] = "children",
    [TENSOR_STRUCTURE_BEGIN] = "structure_begin",
    [TENSOR_ROOT] = "root",
    [TENSOR_STRUCTURE] = "structure",
};

char *infer_describe_server(size_t *bytes)
{
	struct body b = {0};
	body_puts(&b, "{\"name\":\"espalier\",\"version\":");
	body_string(&b, esp_version(), strlen(esp_version()));
	body_puts(&b, ",\"extensions\":[]}\n");
	return body_take(&b, bytes);
}

/* A tensor; where it has a row for each node, edge or structure, -1 is the number of these. */
static void put_tensor(struct body *b, const char *name, const char *datatype, bool rows, const size_t *shape,
		       size_t rank)
{
	body_puts(b, "{\"name\":");
	body_string(b, name, strlen(name));
	body_puts(b, ",\"datatype\":\"");
	body_puts(b, datatype);
	body_puts(b, rows ? "\",\"shape\":[-1" : "\",\"shape\":[");
	for (size_t i = 0; i < rank; i++) {
		body_puts(b, i || rows ? "," : "");
		body_integer(b, (int64_t)shape[i]);
	}
	body_puts(b, "]}");
}

static void put_inputs(struct body *b, const struct infer_model *m)
{
	const esp_input *in;
	size_t n = 0;
	for (; (in = esp_program_input(m->program, n)); n++) {
		body_puts(b, n ? "," : "");
		put_tensor(b, in->name, datatype_name(in->dtype), !m->arrays, in->shape, in->rank);
	}
	for (size_t i = 0; !m->arrays && i < STRUCTURE_TENSORS; i++) {
		body_puts(b, n + i ? "," : "");
		put_tensor(b, structure_tensor[i], i == TENSOR_STRUCTURE ? "BYTES" : "INT32", true, NULL, 0);
	}
}

static void put_outputs(struct body *b, const struct infer_model *m)
{
	const esp_output *out;
	size_t n = 0;
	for (; (out = esp_program_output(m->program, n)); n++) {
		body_puts(b, n ? "," : "");
		put_tensor(b, out->name, datatype_name(out->dtype), !m->arrays, out->shape, out->rank);
	}
	if (m->arrays)
		return;
	body_puts(b, n ? "," : "");
	put_tensor(b, structure_tensor[TENSOR_STRUCTURE_BEGIN], "INT64", true, NULL, 0);
}

char *infer_describe_model(const struct infer_model *model, uint64_t generation, size_t *bytes)
{
	struct body b = {0};
	body_puts(&b, "{\"name\":");
	body_string(&b, model->name, strlen(model->name));
	body_puts(&b, ",\"versions\":[\"");
	body_integer(&b, (int64_t)generation);
	body_puts(&b, "\"],\"platform\":\"espalier\",\"inputs\":[");
	put_inputs(&b, model);
	body_puts(&b, "],\"outputs\":[");
	put_outputs(&b, model);
	body_puts(&b, "]}\n");
	return body_take(&b, bytes);
}
