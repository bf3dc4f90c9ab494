/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Safetensors: 8 bytes of length, a header in JSON, values (github.com/huggingface/safetensors). */
#include "reference/reference.h"

#include "tool.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PREAMBLE = 8, HEADER_LIMIT = 100000000 };

/* The length is below 2^56, so its last byte is zero, which no text contains. */
static bool begins_header(const unsigned char *bytes)
{
	return bytes[PREAMBLE - 1] == 0 && bytes[PREAMBLE] == '{';
}

static bool refuse_tensor(const struct reference *r, const struct reference_tensor *t, const char *what)
{
	return complain("%s: '%s' %s", r->path, t->name, what);
}

static bool read_shape(struct reference_tensor *t, const json_t *shape)
{
	if (!json_is_array(shape))
		return false;
	for (size_t i = 0; i < json_array_size(shape); i++) {
		const json_t *extent = json_array_get(shape, i);
		if (!json_is_integer(extent) || json_integer_value(extent) < 0 ||
		    !reference_add_dimension(t, json_integer_value(extent)))
			return false;
	}
	return true;
}

static bool read_offsets(const struct reference *r, struct reference_tensor *t, const json_t *offsets,
			 uint64_t data)
{
	const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
	if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
		return false;
	json_int_t begin = json_integer_value(first), end = json_integer_value(last);
	if (begin < 0 || end < begin || (uint64_t)end > r->size - data)
		return false;
	t->at = data + begin;
	return (uint64_t)(end - begin) == reference_bytes(t);
}

static bool add_tensor(struct reference *r, const char *name, const json_t *entry, uint64_t data)
{
	struct reference_tensor *t = reference_add(r, name);
	const char *type = json_string_value(json_object_get(entry, "dtype"));
	if (!t)
		return false;
	if (!type || !reference_find_type(type, &t->type) || *type == '<')
		return refuse_tensor(r, t, "has a type that cannot be compared; F16, BF16, F32 and F64 can");
	if (!read_shape(t, json_object_get(entry, "shape")))
		return refuse_tensor(r, t, "has a shape that is no list of extents, or too large");
	return read_offsets(r, t, json_object_get(entry, "data_offsets"), data) ||
	       refuse_tensor(r, t, "has data_offsets that do not lie in the file or do not fit its shape");
}

static bool add_all(struct reference *r, json_t *header, uint64_t data)
{
	const char *name;
	json_t *entry;
	json_object_foreach(header, name, entry)
	{
		if (strcmp(name, "__metadata__") != 0 && !add_tensor(r, name, entry, data))
			return false;
	}
	return true;
}

static bool parse_header(struct reference *r, const char *text, size_t length)
{
	json_error_t why;
	json_t *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
	bool ok = json_is_object(header);
	if (!header)
		complain("%s: its header is no JSON: %s at byte %d", r->path, why.text,
			 PREAMBLE + why.position);
	else if (!ok)
		complain("%s: its header is no JSON object", r->path);
	ok = ok && add_all(r, header, PREAMBLE + length);
	json_decref(header);
	return ok;
}

static bool open_safetensors(struct reference *r)
{
	unsigned char n[PREAMBLE];
	uint64_t length = 0;
	if (!reference_read_at(r, 0, n, PREAMBLE))
		return false;
	for (int i = PREAMBLE; i-- > 0;)
		length = length << 8 | n[i];
	if (length > HEADER_LIMIT || length > r->size - PREAMBLE)
		return complain("%s: says that its header has %llu bytes, but the file has %llu after it",
				r->path, (unsigned long long)length,
				(unsigned long long)(r->size - PREAMBLE));
	char *text = malloc(length + 1);
	if (!text)
		return complain("%s: no memory for its header", r->path);
	bool ok = reference_read_at(r, PREAMBLE, text, length) && parse_header(r, text, length);
	free(text);
	return ok;
}

static bool load_values(struct reference *r, const struct reference_tensor *t, void *to, size_t bytes)
{
	return reference_read_at(r, t->at, to, bytes);
}

const struct reference_form reference_safetensors = {"safetensors", false, begins_header, open_safetensors,
						     load_values};
