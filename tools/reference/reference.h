/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reference values that another program computed, in a file that is not trusted.
 *
 * Opening a reference reads names and shapes; the caller checks a tensor's shape before it loads the
 * values. Functions return false after a message on stderr. */
#ifndef ESPALIER_TOOLS_REFERENCE_H
#define ESPALIER_TOOLS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { REFERENCE_RANK = 8 };

enum reference_type {
	REFERENCE_F16,
	REFERENCE_BF16,
	REFERENCE_F32,
	REFERENCE_F64,
	REFERENCE_I32,
	REFERENCE_I64,
	REFERENCE_I8,
	REFERENCE_U8,
	REFERENCE_I16,
	REFERENCE_BOOL,
	REFERENCE_TYPES
};

struct reference_tensor {
	char *name; /* "" = the file has no names */
	enum reference_type type;
	bool fortran; /* in the file the first index runs fastest; reference_load reorders the values */
	size_t rank, shape[REFERENCE_RANK], elements;
	uint64_t at;		 /* offset of its values in the file or the member */
	uint64_t member, number; /* of an archive: position in its list */
	void *values;		 /* NULL = not read */
};

struct reference {
	const char *path;
	const struct reference_form *form;
	FILE *file;
	uint64_t size;
	void *archive;
	struct reference_tensor *tensor;
	size_t tensors;
	/* The trees of a text: their number, where their nodes begin (trees + 1) and which is the root
	 * (both NULL when the text has roots only), and the class predicted for each. */
	size_t trees;
	uint64_t *begin;
	long *root;
	int *class;
};

bool reference_open(struct reference *, const char *path);
bool reference_load(struct reference *, struct reference_tensor *);
/* An element of a tensor whose values are loaded. */
double reference_value(const struct reference_tensor *, size_t i);
int64_t reference_integer(const struct reference_tensor *, size_t i);
/* The name that NumPy has for a type, "<f4"; "" = it has none. */
const char *reference_type_name(enum reference_type);
bool reference_is_integer(const struct reference_tensor *);
const char *reference_form_name(const struct reference *);
/* Whether tensors of this form have no names. */
bool reference_is_text(const struct reference *);
void reference_close(struct reference *);

/* --- forms of files --- */

struct reference_form {
	const char *name;
	bool text;
	/* Whether a file with these first bytes, padded with zeros to 16, has this form. */
	bool (*begins)(const unsigned char *bytes);
	bool (*open)(struct reference *);
	/* Reads the values, as they are in the file. */
	bool (*load)(struct reference *, const struct reference_tensor *, void *to, size_t bytes);
};

extern const struct reference_form reference_npz, reference_npy, reference_safetensors, reference_nodes,
    reference_roots;

/* Replaces control characters by question marks, since messages quote the file. */
void reference_clean(char *text);
/* Adds a tensor without shape, its name cleaned; NULL after a message. Pointers to other tensors become
 * invalid. */
struct reference_tensor *reference_add(struct reference *, const char *name);
/* Appends a dimension and counts elements; false, without a message, when there are too many. */
bool reference_add_dimension(struct reference_tensor *, uint64_t extent);
size_t reference_bytes(const struct reference_tensor *);
/* Finds a type by its spelling in one of the formats; false, without a message, when there is none. */
bool reference_find_type(const char *spelling, enum reference_type *);
bool reference_read_at(struct reference *, uint64_t at, void *to, size_t bytes);

/* npy.c: reads the header of an array from a stream whose `read` fills all bytes or returns false. `what`
 * begins messages; `*bytes` is the length of the header. */
struct npy_stream {
	bool (*read)(void *from, void *to, size_t bytes);
	void *from;
	const char *what;
};
bool npy_read_header(const struct npy_stream *, struct reference_tensor *);

#endif
