/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A strict reader of FlatBuffers, by the tables and fields of schema.def.
 *
 * Every byte that is read lies in the file, at a multiple of its size; tables, lists and texts do not
 * overlap, and none is reached twice, so that what is read takes no more than a multiple of the file. Offsets
 * lead forwards alone, but from a table to its list of fields, which leads nowhere: so nothing contains
 * itself.  After the first fault, which is reported, all that is read is 0 or empty, and `failed` is to be
 * looked at before anything is believed. */
#ifndef ESPALIER_TFLITE_FLATBUFFER_H
#define ESPALIER_TFLITE_FLATBUFFER_H

#include "base/diag.h"
#include "base/memory.h"

enum flat_type {
#define FLAT_TABLE(table) FLAT_##table,
#define FLAT_FIELD(table, name, number, kind, otherwise)
#include "tflite/schema.def"
	FLAT_TYPES
};

enum flat_field {
#define FLAT_TABLE(table)
#define FLAT_FIELD(table, name, number, kind, otherwise) FLAT_##table##_##name,
#include "tflite/schema.def"
	FLAT_FIELDS
};

enum flat_kind {
	FLAT_I8,
	FLAT_U8,
	FLAT_BOOL,
	FLAT_I32,
	FLAT_U32,
	FLAT_U64,
	FLAT_F32,
	FLAT_I32S,
	FLAT_I64S,
	FLAT_F32S,
	FLAT_BYTES,
	FLAT_TEXT,
	FLAT_CHILD,
	FLAT_CHILDREN,
	FLAT_IGNORED
};

struct flat_file {
	struct arena *arena;
	struct diags *diags;
	const char *name;
	const uint8_t *bytes;
	size_t n;
	uint8_t *taken,
	    *lists; /* a bit for each byte: it was read as part of something, of a table's list of fields */
	bool failed;
};

/* A table, or none: then each of its fields is what a table has that lacks it. */
struct flat_table {
	enum flat_type type;
	uint32_t at, fields;  /* of the table, of its list of fields; 0 = none */
	uint32_t size, count; /* bytes of the table; fields that the list has room for */
};

struct flat_list {
	enum flat_kind kind;
	uint32_t at, n;
};

/* Opens a file, whose bytes stay the caller's, at its root.  Escapes as the arena does. */
struct flat_table flat_open(struct flat_file *, struct arena *, struct diags *, const char *name,
			    const void *bytes, size_t n, const char identifier[static 5],
			    enum flat_type root);
/* Reports a fault of the file; the message begins with its name. */
__attribute__((format(printf, 2, 3))) void flat_refuse(struct flat_file *, const char *format, ...);

/* Fields of a table.  Lists, texts and tables are read once. */
int64_t flat_number(const struct flat_file *, const struct flat_table *, enum flat_field);
float flat_float(const struct flat_file *, const struct flat_table *, enum flat_field);
struct flat_list flat_list(struct flat_file *, const struct flat_table *, enum flat_field);
/* A text of at most 4095 bytes, copied; "" where there is none. */
const char *flat_text(struct flat_file *, const struct flat_table *, enum flat_field);
bool flat_has(const struct flat_file *, const struct flat_table *, enum flat_field);
struct flat_table flat_child(struct flat_file *, const struct flat_table *, enum flat_field, enum flat_type);

/* Elements of a list. */
int64_t flat_integer_at(const struct flat_file *, const struct flat_list *, uint32_t);
float flat_float_at(const struct flat_file *, const struct flat_list *, uint32_t);
/* One of a list of tables.  With `shared` it may be reached again, if it has no fields: as all empty buffers
 * may be one table. */
struct flat_table flat_child_at(struct flat_file *, const struct flat_list *, uint32_t, enum flat_type,
				bool shared);

/* The fields of a table of that type, in their order: `first` up to, but without, `last`. */
struct flat_field_traits {
	enum flat_type type;
	const char *name;
	int number;
	enum flat_kind kind;
	int64_t otherwise;
};
const struct flat_field_traits *flat_traits_of(enum flat_field);

#endif
