/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "onnx/reading.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "elements are little-endian in the file and in memory");

/* A tensor that is being made. */
struct making {
	struct onnx_reading *reading;
	const char *what; /* its name for people */
	const Onnx__TensorProto *from;
	struct onnx_tensor *to;
};

/* Elements as they lie in a message: as bytes, or each in one of a list of numbers of the message. */
struct elements {
	const char *name; /* of the field */
	size_t n;
	const void *at;
	int bits; /* of one of the list */
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct making *m, const char *format, ...)
{
	char text[400];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return onnx_report(m->reading, DIAG_BAD_ONNX,
			   "write the file again: what wrote this one has a fault, or it is damaged",
			   "%.200s: %s", m->what, text);
}

/* The elements that one of these takes: 4-bit ones are packed two by two, complex ones are two numbers. */
static int64_t ceil_bytes(int64_t elements, int bits)
{
	return bits < 8 ? elements / (8 / bits) + (elements % (8 / bits) != 0) : elements * (bits / 8);
}

static bool read_extents(struct making *m)
{
	struct onnx_tensor *t = m->to;
	int64_t bits;
	if (m->from->n_dims > ONNX_MAX_RANK)
		return refuse(m, "it has %zu axes; at most %d are supported", m->from->n_dims, ONNX_MAX_RANK);
	t->rank = m->from->n_dims;
	t->elements = 1;
	for (int i = 0; i < t->rank; i++) {
		t->dim[i] = m->from->dims[i];
		if (t->dim[i] < 0)
			return refuse(m, "the extent of its axis %d is %lld", i, (long long)t->dim[i]);
		if (__builtin_mul_overflow(t->elements, t->dim[i], &t->elements))
			return refuse(m, "its number of elements does not fit 64 bits");
	}
	int width = onnx_type_traits_of(t->type)->bits;
	if (__builtin_mul_overflow(t->elements, width ? width : (int)(8 * sizeof(struct onnx_text)), &bits) ||
	    bits > ONNX_MAX_BYTES * 8)
		return refuse(m, "it has %lld elements, more than %lld bytes", (long long)t->elements,
			      (long long)ONNX_MAX_BYTES);
	t->bytes = width ? ceil_bytes(t->elements, width) : t->elements * (int64_t)sizeof(struct onnx_text);
	return true;
}

static bool read_type(struct making *m)
{
	int32_t type = m->from->data_type;
	if (m->from->segment)
		return refuse(m, "it is a segment of a tensor, which is not supported");
	if (!m->from->has_data_type || type <= ONNX_UNKNOWN_TYPE || type >= ONNX_TYPES)
		return refuse(
		    m, "its elements have type number %d, which is not known; known are 1 (float) to %d (%s)",
		    type, ONNX_TYPES - 1, onnx_type_traits_of(ONNX_TYPES - 1)->name);
	m->to->type = type;
	return true;
}

/* --- where the elements are --- */

/* The list that elements of a type are in when they are not bytes: what the standard says. */
static const char *field_of(enum onnx_type type)
{
	static const char *const fields[ONNX_TYPES] = {
	    [ONNX_FLOAT] = "float_data",       [ONNX_COMPLEX64] = "float_data", [ONNX_DOUBLE] = "double_data",
	    [ONNX_COMPLEX128] = "double_data", [ONNX_INT64] = "int64_data",	[ONNX_UINT32] = "uint64_data",
	    [ONNX_UINT64] = "uint64_data",     [ONNX_STRING] = "string_data",
	};
	return fields[type] ? fields[type] : "int32_data";
}

/* The one field that has elements; a name of NULL = none has.  False when there are several. */
static bool find_elements(struct making *m, struct elements *e)
{
	const Onnx__TensorProto *t = m->from;
	const struct elements all[] = {
	    {"raw_data", t->has_raw_data ? t->raw_data.len : 0, t->raw_data.data, 8},
	    {"float_data", t->n_float_data, t->float_data, 32},
	    {"int32_data", t->n_int32_data, t->int32_data, 32},
	    {"int64_data", t->n_int64_data, t->int64_data, 64},
	    {"uint64_data", t->n_uint64_data, t->uint64_data, 64},
	    {"double_data", t->n_double_data, t->double_data, 64},
	    {"string_data", t->n_string_data, t->string_data, 0},
	};
	*e = (struct elements){0};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (!all[i].n)
			continue;
		if (e->name)
			return refuse(m, "it has elements in '%s' and in '%s'", e->name, all[i].name);
		*e = all[i];
	}
	return true;
}

/* --- elements into memory --- */

static bool copy_texts(struct making *m)
{
	struct arena *a = m->reading->arena;
	struct onnx_text *text = ARENA_ARRAY(a, struct onnx_text, m->to->elements + 1);
	for (int64_t i = 0; i < m->to->elements; i++)
		text[i] = onnx_text_of_bytes(a, m->from->string_data[i]);
	m->to->data = text;
	return true;
}

/* Whether a number of an int32_data can be an element of so many bits, with a sign or without. */
static bool fits(int64_t x, int bits)
{
	return bits >= 32 || (x >= -((int64_t)1 << (bits - 1)) && x < (int64_t)1 << bits);
}

/* Each number of the list holds one element, or one byte of two elements of 4 bits, in its lowest bytes. */
static bool narrow_numbers(struct making *m, const struct elements *e, int bytes)
{
	char *to = arena_take(m->reading->arena, e->n, bytes);
	for (size_t i = 0; i < e->n; i++) {
		const char *from = (const char *)e->at + i * (e->bits / 8);
		int64_t x = e->bits == 32 ? *(const int32_t *)from : *(const int64_t *)from;
		if (e->bits == 64 ? x != (int64_t)(uint32_t)x : !fits(x, 8 * bytes))
			return refuse(m, "element %zu of its '%s' is %lld, which is no %s", i, e->name,
				      (long long)x, onnx_type_traits_of(m->to->type)->name);
		memcpy(to + i * bytes, from, bytes);
	}
	m->to->data = to;
	return true;
}

/* Truth values of any program become 0 and 1. */
static void normalise_truths(struct onnx_tensor *t)
{
	unsigned char *truth = (unsigned char *)t->data;
	for (int64_t i = 0; i < t->elements; i++)
		truth[i] = truth[i] != 0;
}

static bool place_elements(struct making *m, const struct elements *e)
{
	struct onnx_tensor *t = m->to;
	int bits = onnx_type_traits_of(t->type)->bits;
	bool raw = e->name && strcmp(e->name, "raw_data") == 0;
	/* How many numbers of the list make the tensor. */
	int64_t wanted = raw || bits < 8						  ? (int64_t)t->bytes
			 : strncmp(onnx_type_traits_of(t->type)->name, "complex", 7) == 0 ? 2 * t->elements
											  : t->elements;
	if (e->name && (raw ? t->type == ONNX_STRING : strcmp(e->name, field_of(t->type)) != 0))
		return refuse(m, "elements of type %s cannot be in '%s'", onnx_type_traits_of(t->type)->name,
			      e->name);
	if (t->type == ONNX_STRING)
		wanted = t->elements;
	if ((int64_t)e->n != wanted)
		return refuse(m, "its extents and its type take %lld %s, it has %zu", (long long)wanted,
			      raw ? "bytes" : "elements", e->n);
	if (!e->n)
		return t->data = arena_take(m->reading->arena, 1, 1), true;
	if (t->type == ONNX_STRING)
		return copy_texts(m);
	int stored = bits < 8 ? 8 : bits; /* of a number of the list */
	if (!raw && stored < e->bits)
		return narrow_numbers(m, e, stored / 8);
	t->data = e->at;
	return true;
}

static bool place_external(struct making *m)
{
	struct elements e;
	if (!find_elements(m, &e))
		return false;
	if (e.name)
		return refuse(m, "it has elements in '%s' and in another file", e.name);
	if (m->to->type == ONNX_STRING)
		return refuse(m, "texts cannot be in another file");
	return onnx_read_external(m->reading, m->what, m->from, m->to);
}

bool onnx_make_tensor(struct onnx_reading *r, const char *what, const Onnx__TensorProto *from,
		      struct onnx_tensor *to)
{
	struct making m = {r, what, from, to};
	struct elements e;
	*to = (struct onnx_tensor){.name = onnx_text_of(from->name)};
	if (!read_type(&m) || !read_extents(&m))
		return false;
	bool external =
	    from->has_data_location && from->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	if (!(external ? place_external(&m) : find_elements(&m, &e) && place_elements(&m, &e)))
		return false;
	if (to->type == ONNX_BOOL)
		normalise_truths(to);
	return true;
}
