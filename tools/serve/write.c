/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Responses: a tensor for each output, or a line for each structure. */
#include "request.h"

#include <string.h>

const char *infer_type(const struct infer_request *r)
{
	return r->lines ? "application/x-ndjson" : "application/json";
}

/* The elements of an output in the order of structures and, of one at nodes, of their nodes. */
static void put_elements(struct body *b, const struct infer_request *r, const esp_ticket *t, size_t o,
			 const esp_output *output)
{
	bool first = true;
	for (size_t s = 0; s < r->structures; s++) {
		size_t rows = output->at_root ? 1 : esp_forest_nodes(r->forest, s);
		for (size_t n = 0; n < rows; n++, first = false) {
			body_add(b, ",", first || !output->elements ? 0 : 1);
			body_elements(b, esp_ticket_output_elements(t, o, s, n), output->dtype,
				      output->elements);
		}
	}
}

static void put_header(struct body *b, const char *name, const char *datatype)
{
	body_puts(b, "{\"name\":");
	body_string(b, name, strlen(name));
	body_puts(b, ",\"datatype\":\"");
	body_puts(b, datatype);
	body_puts(b, "\",\"shape\":[");
}

static void put_output(struct body *b, const struct infer_request *r, const esp_ticket *t,
		       const struct asked *asked)
{
	const esp_output *output = esp_program_output(r->program, asked->number);
	put_header(b, asked->name ? asked->name : output->name, datatype_name(output->dtype));
	if (!r->single)
		body_integer(b, (int64_t)(output->at_root ? r->structures : r->nodes));
	for (size_t i = 0; i < output->rank; i++) {
		body_puts(b, i || !r->single ? "," : "");
		body_integer(b, (int64_t)output->shape[i]);
	}
	body_puts(b, "],\"data\":[");
	put_elements(b, r, t, asked->number, output);
	body_puts(b, "]}");
}

static void put_begins(struct body *b, const struct infer_request *r)
{
	int64_t begin = 0;
	put_header(b, structure_tensor[TENSOR_STRUCTURE_BEGIN], "INT64");
	body_integer(b, (int64_t)r->structures + 1);
	body_puts(b, "],\"data\":[0");
	for (size_t s = 0; s < r->structures; s++) {
		body_puts(b, ",");
		body_integer(b, begin += (int64_t)esp_forest_nodes(r->forest, s));
	}
	body_puts(b, "]}");
}

static void put_response(struct body *b, const struct infer_request *r, const esp_ticket *t, const char *name,
			 uint64_t generation)
{
	body_puts(b, "{\"model_name\":");
	body_string(b, name, strlen(name));
	body_puts(b, ",\"model_version\":\"");
	body_integer(b, (int64_t)generation);
	body_puts(b, "\"");
	if (r->id) {
		body_puts(b, ",\"id\":");
		body_string(b, r->id, r->id_length);
	}
	body_puts(b, ",\"outputs\":[");
	for (size_t i = 0; i < r->outputs; i++) {
		body_puts(b, i ? "," : "");
		if (r->output[i].number == OUTPUT_BEGINS)
			put_begins(b, r);
		else
			put_output(b, r, t, &r->output[i]);
	}
	body_puts(b, "]}\n");
}

/* --- lines, as `espalier run --format json` has them --- */

static void put_row(struct body *b, const esp_ticket *t, size_t o, const esp_output *output, size_t s,
		    size_t node)
{
	body_puts(b, "[");
	body_elements(b, esp_ticket_output_elements(t, o, s, node), output->dtype, output->elements);
	body_puts(b, "]");
}

static void put_rows(struct body *b, const struct infer_request *r, const esp_ticket *t, size_t o, size_t s)
{
	const esp_output *output = esp_program_output(r->program, o);
	body_string(b, output->name, strlen(output->name));
	body_puts(b, ":");
	if (output->at_root) {
		put_row(b, t, o, output, s, 0);
		return;
	}
	for (size_t node = 0; node < esp_forest_nodes(r->forest, s); node++) {
		body_puts(b, node ? "," : "[");
		put_row(b, t, o, output, s, node);
	}
	body_puts(b, "]");
}

static void put_line(struct body *b, const struct infer_request *r, const esp_ticket *t, size_t s)
{
	body_puts(b, "{\"tree\":");
	body_integer(b, (int64_t)s);
	body_puts(b, ",\"nodes\":");
	body_integer(b, (int64_t)esp_forest_nodes(r->forest, s));
	body_puts(b, ",\"sentence\":");
	body_string(b, r->sentence[s], strlen(r->sentence[s]));
	body_puts(b, ",\"outputs\":{");
	for (size_t o = 0; o < r->outputs; o++) {
		body_puts(b, o ? "," : "");
		put_rows(b, r, t, r->output[o].number, s);
	}
	body_puts(b, "}}\n");
}

char *infer_write(const struct infer_request *r, const esp_ticket *t, const char *name, uint64_t generation,
		  size_t *bytes)
{
	struct body b = {0};
	if (!r->lines)
		put_response(&b, r, t, name, generation);
	for (size_t s = 0; r->lines && s < r->structures; s++)
		put_line(&b, r, t, s);
	return body_take(&b, bytes);
}
