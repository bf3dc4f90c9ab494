/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tflite/flatbuffer.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
	MOST_FIELDS = 64, /* of a table's list */
	MOST_TEXT = 4095
};

const struct flat_field_traits *flat_traits_of(enum flat_field field)
{
	static const struct flat_field_traits traits[] = {
#define FLAT_TABLE(table)
#define FLAT_FIELD(table, name, number, kind, otherwise)                                                     \
	{FLAT_##table, #name, number, FLAT_##kind, otherwise},
#include "tflite/schema.def"
	};
	return &traits[field];
}

/* Bytes of a number, or of an element of a list. */
static uint32_t width_of(enum flat_kind kind)
{
	static const uint8_t width[] = {
	    [FLAT_I8] = 1,    [FLAT_U8] = 1,   [FLAT_BOOL] = 1,	 [FLAT_I32] = 4,      [FLAT_U32] = 4,
	    [FLAT_U64] = 8,   [FLAT_F32] = 4,  [FLAT_I32S] = 4,	 [FLAT_I64S] = 8,     [FLAT_F32S] = 4,
	    [FLAT_BYTES] = 1, [FLAT_TEXT] = 1, [FLAT_CHILD] = 4, [FLAT_CHILDREN] = 4, [FLAT_IGNORED] = 1};
	return width[kind];
}

static bool is_list(enum flat_kind kind)
{
	return kind >= FLAT_I32S && kind <= FLAT_CHILDREN;
}

void(flat_refuse)(struct flat_file *f, const char *format, ...)
{
	char text[400];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (!f->failed)
		diag_add(f->diags, DIAG_BAD_TFLITE, (struct diag_at){.file = f->name}, NULL, "'%s': %s",
			 f->name, text);
	f->failed = true;
}

/* --- bytes: callers have checked that they lie in the file --- */

static uint16_t read_16(const struct flat_file *f, size_t at)
{
	return (uint16_t)(f->bytes[at] | f->bytes[at + 1] << 8);
}

static uint32_t read_32(const struct flat_file *f, size_t at)
{
	return read_16(f, at) | (uint32_t)read_16(f, at + 2) << 16;
}

static uint64_t read_64(const struct flat_file *f, size_t at)
{
	return read_32(f, at) | (uint64_t)read_32(f, at + 4) << 32;
}

static bool lies_inside(const struct flat_file *f, uint64_t at, uint64_t bytes)
{
	return at <= f->n && bytes <= f->n - at;
}

static bool has_bit(const uint8_t *map, size_t i)
{
	return map[i / 8] >> i % 8 & 1;
}

/* Takes bytes for a thing of which each byte is its own alone. */
static bool take_bytes(struct flat_file *f, const char *what, size_t at, size_t bytes)
{
	for (size_t i = at; i < at + bytes; i++) {
		if (has_bit(f->taken, i) || has_bit(f->lists, i)) {
			flat_refuse(f, "%s at byte %zu overlaps something else, or is reached twice", what,
				    at);
			return false;
		}
		f->taken[i / 8] |= (uint8_t)(1 << i % 8);
	}
	return true;
}

/* Takes bytes for a list of fields, which tables share. */
static bool take_fields(struct flat_file *f, size_t at, size_t bytes)
{
	for (size_t i = at; i < at + bytes; i++) {
		if (has_bit(f->taken, i)) {
			flat_refuse(f, "the fields at byte %zu overlap something else", at);
			return false;
		}
		f->lists[i / 8] |= (uint8_t)(1 << i % 8);
	}
	return true;
}

/* Where an offset leads: forwards, to a multiple of 4.  0 after a fault. */
static uint32_t follow_offset(struct flat_file *f, const char *what, uint32_t at)
{
	uint64_t to = (uint64_t)at + read_32(f, at);
	if (to > at && to % 4 == 0 && lies_inside(f, to, 4))
		return (uint32_t)to;
	flat_refuse(f, "the offset at byte %u, of %s, leads out of the file or to no multiple of 4", at,
		    what);
	return 0;
}

/* --- tables --- */

/* The field of a table's type with that number; FLAT_FIELDS = there is none. */
static enum flat_field find_field(enum flat_type type, uint32_t number)
{
	for (enum flat_field i = 0; i < FLAT_FIELDS; i++)
		if (flat_traits_of(i)->type == type && flat_traits_of(i)->number == (int)number)
			return i;
	return FLAT_FIELDS;
}

static bool check_field(struct flat_file *f, const struct flat_table *t, uint32_t number)
{
	uint32_t offset = read_16(f, t->fields + 4 + 2 * (size_t)number);
	enum flat_field field = find_field(t->type, number);
	if (!offset)
		return true;
	if (field == FLAT_FIELDS)
		return flat_refuse(f,
				   "the table at byte %u has a field %u that is not known: it is of a newer "
				   "version of the format",
				   t->at, number),
		       false;
	uint32_t width = is_list(flat_traits_of(field)->kind) ? 4 : width_of(flat_traits_of(field)->kind);
	if (offset >= 4 && offset + width <= t->size && (t->at + offset) % width == 0)
		return true;
	return flat_refuse(f,
			   "the field '%s' of the table at byte %u leaves the table, or its place is no "
			   "multiple of its size",
			   flat_traits_of(field)->name, t->at),
	       false;
}

static bool find_fields(struct flat_file *f, struct flat_table *t)
{
	int64_t fields = (int64_t)t->at - (int32_t)read_32(f, t->at);
	if (fields < 4 || fields % 2 || !lies_inside(f, (uint64_t)fields, 4))
		return flat_refuse(f, "the fields of the table at byte %u are outside of the file", t->at),
		       false;
	uint32_t bytes = read_16(f, (size_t)fields);
	t->fields = (uint32_t)fields;
	t->size = read_16(f, t->fields + 2);
	t->count = (bytes - 4) / 2;
	if (bytes < 4 || bytes % 2 || t->count > MOST_FIELDS || t->size < 4)
		return flat_refuse(f, "the fields of the table at byte %u have no proper size", t->at), false;
	if (!lies_inside(f, t->fields, bytes) || !lies_inside(f, t->at, t->size))
		return flat_refuse(f, "the table at byte %u leaves the file", t->at), false;
	return true;
}

static struct flat_table open_table(struct flat_file *f, uint32_t at, enum flat_type type, bool shared)
{
	struct flat_table t = {.type = type, .at = at};
	const struct flat_table none = {.type = type};
	if (f->failed || !at || !find_fields(f, &t))
		return none;
	if (shared && !t.count && has_bit(f->taken, at))
		return t;
	if (!take_bytes(f, "a table", at, t.size) || !take_fields(f, t.fields, 4 + 2 * (size_t)t.count))
		return none;
	for (uint32_t i = 0; i < t.count; i++)
		if (!check_field(f, &t, i))
			return none;
	return t;
}

struct flat_table flat_open(struct flat_file *f, struct arena *arena, struct diags *diags, const char *name,
			    const void *bytes, size_t n, const char identifier[static 5], enum flat_type root)
{
	*f = (struct flat_file){.arena = arena, .diags = diags, .name = name, .bytes = bytes, .n = n};
	if (n < 8 || memcmp(f->bytes + 4, identifier, 4) != 0 || n > INT32_MAX)
		flat_refuse(f, n > INT32_MAX
				   ? "files of 2 GiB and more are not read"
				   : "it does not begin as a file of TensorFlow Lite, version 3, does");
	if (f->failed)
		return (struct flat_table){.type = root};
	f->taken = ARENA_ARRAY(arena, uint8_t, n / 8 + 1);
	f->lists = ARENA_ARRAY(arena, uint8_t, n / 8 + 1);
	take_bytes(f, "the head", 0, 8);
	return open_table(f, follow_offset(f, "the root", 0), root, false);
}

/* Where a field is; 0 = the table lacks it. */
static uint32_t find_place(const struct flat_file *f, const struct flat_table *t, enum flat_field field)
{
	uint32_t number = (uint32_t)flat_traits_of(field)->number;
	uint32_t offset =
	    !f->failed && t->at && number < t->count ? read_16(f, t->fields + 4 + 2 * (size_t)number) : 0;
	return offset ? t->at + offset : 0;
}

bool flat_has(const struct flat_file *f, const struct flat_table *t, enum flat_field field)
{
	return find_place(f, t, field) != 0;
}

static int64_t read_number(const struct flat_file *f, enum flat_kind kind, size_t at)
{
	switch (kind) {
	case FLAT_I8:
		return (int8_t)f->bytes[at];
	case FLAT_U8:
	case FLAT_BOOL:
	case FLAT_BYTES:
		return f->bytes[at];
	case FLAT_I32:
	case FLAT_I32S:
		return (int32_t)read_32(f, at);
	case FLAT_U64:
	case FLAT_I64S:
		return (int64_t)read_64(f, at);
	default:
		return read_32(f, at);
	}
}

int64_t flat_number(const struct flat_file *f, const struct flat_table *t, enum flat_field field)
{
	uint32_t at = find_place(f, t, field);
	return at ? read_number(f, flat_traits_of(field)->kind, at) : flat_traits_of(field)->otherwise;
}

static float read_float(const struct flat_file *f, size_t at)
{
	uint32_t bits = read_32(f, at);
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

float flat_float(const struct flat_file *f, const struct flat_table *t, enum flat_field field)
{
	uint32_t at = find_place(f, t, field);
	return at ? read_float(f, at) : (float)flat_traits_of(field)->otherwise;
}

struct flat_table flat_child(struct flat_file *f, const struct flat_table *t, enum flat_field field,
			     enum flat_type type)
{
	uint32_t at = find_place(f, t, field);
	return open_table(f, at ? follow_offset(f, flat_traits_of(field)->name, at) : 0, type, false);
}

/* --- lists --- */

/* A list and the byte 0 behind a text, in bytes; 0 after a fault. */
static uint64_t measure_list(struct flat_file *f, const struct flat_field_traits *traits, uint32_t at,
			     uint32_t n)
{
	uint32_t width = width_of(traits->kind);
	uint64_t bytes = 4 + (uint64_t)n * width + (traits->kind == FLAT_TEXT);
	if (lies_inside(f, at, bytes) && (at + 4) % width == 0)
		return bytes;
	flat_refuse(f,
		    "the list '%s' at byte %u, of %u elements, leaves the file, or its place is no multiple "
		    "of their size",
		    traits->name, at, n);
	return 0;
}

struct flat_list flat_list(struct flat_file *f, const struct flat_table *t, enum flat_field field)
{
	const struct flat_field_traits *traits = flat_traits_of(field);
	uint32_t place = find_place(f, t, field), at = place ? follow_offset(f, traits->name, place) : 0;
	struct flat_list list = {traits->kind, at + 4, at ? read_32(f, at) : 0};
	uint64_t bytes = at ? measure_list(f, traits, at, list.n) : 0;
	if (!bytes || !take_bytes(f, traits->name, at, bytes))
		list.n = 0;
	return list;
}

static bool is_text(const struct flat_file *f, const struct flat_list *l)
{
	const char *text = (const char *)f->bytes + l->at;
	for (size_t i = 0, length; i < l->n; i += length)
		if (!text[i] || !(length = utf8_length(text + i, l->n - i)))
			return false;
	return !text[l->n];
}

const char *flat_text(struct flat_file *f, const struct flat_table *t, enum flat_field field)
{
	struct flat_list l = flat_list(f, t, field);
	if (l.n && (l.n > MOST_TEXT || !is_text(f, &l)))
		flat_refuse(
		    f, "the text '%s' at byte %u is no UTF-8 that ends with a zero, or longer than %d bytes",
		    flat_traits_of(field)->name, l.at, MOST_TEXT);
	return f->failed || !l.n ? "" : arena_text(f->arena, (const char *)f->bytes + l.at, l.n);
}

int64_t flat_integer_at(const struct flat_file *f, const struct flat_list *l, uint32_t i)
{
	return f->failed ? 0 : read_number(f, l->kind, l->at + (size_t)i * width_of(l->kind));
}

float flat_float_at(const struct flat_file *f, const struct flat_list *l, uint32_t i)
{
	return f->failed ? 0 : read_float(f, l->at + (size_t)i * 4);
}

struct flat_table flat_child_at(struct flat_file *f, const struct flat_list *l, uint32_t i,
				enum flat_type type, bool shared)
{
	return open_table(f, f->failed ? 0 : follow_offset(f, "a list of tables", l->at + 4 * i), type,
			  shared);
}
