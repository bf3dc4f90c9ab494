/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reference values: what another program computed, in a file that nobody vouches for.
 *
 * Opening a reference reads what there is; values are read tensor by tensor, after the caller has seen that a
 * tensor is of the size that it expects.  Everything returns false after a message on stderr. */
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
	REFERENCE_TYPES
};

struct reference_tensor {
	char *name; /* "" = the file does not say */
	enum reference_type type;
	bool fortran; /* in the file the first index runs fastest; reference_load puts that right */
	size_t rank, shape[REFERENCE_RANK], elements;
	uint64_t at;		 /* where its values begin, in the file or the member */
	uint64_t member, number; /* of an archive: where it is listed */
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
	/* What a text says of its trees: how many, where their nodes begin (trees + 1) and which is the root (both
	 * NULL when there are roots only) and the class that was predicted for each. */
	size_t trees;
	uint64_t *begin;
	long *root;
	int *class;
};

bool reference_open(struct reference *, const char *path);
bool reference_load(struct reference *, struct reference_tensor *);
/* An element of a tensor that is loaded. */
double reference_value(const struct reference_tensor *, size_t i);
int64_t reference_integer(const struct reference_tensor *, size_t i);
bool reference_is_integer(const struct reference_tensor *);
const char *reference_form_name(const struct reference *);
/* Whether tensors of this form have no names. */
bool reference_is_text(const struct reference *);
void reference_close(struct reference *);

/* --- for the forms --- */

struct reference_form {
	const char *name;
	bool text;
	/* Whether a file that begins so, followed by zeros to 16 bytes, is of this form. */
	bool (*begins)(const unsigned char *bytes);
	bool (*open)(struct reference *);
	/* Reads the values, as they are in the file. */
	bool (*load)(struct reference *, const struct reference_tensor *, void *to, size_t bytes);
};

extern const struct reference_form reference_npz, reference_npy, reference_safetensors, reference_nodes,
    reference_roots;

/* Bytes that would move a terminal's cursor become question marks: messages say what stands in the file. */
void reference_clean(char *text);
/* A new tensor without shape, its name cleaned; NULL after a message.  Others may move. */
struct reference_tensor *reference_add(struct reference *, const char *name);
/* Appends a dimension and counts elements; false, without a message, when there are too many. */
bool reference_add_dimension(struct reference_tensor *, uint64_t extent);
size_t reference_bytes(const struct reference_tensor *);
/* By its spelling in one of the formats; false, without a message, when there is none. */
bool reference_find_type(const char *spelling, enum reference_type *);
bool reference_read_at(struct reference *, uint64_t at, void *to, size_t bytes);

/* npy.c: the header of an array, from a stream that reads so many bytes or returns false.  `what` begins
 * messages; `*bytes` is the length of the header. */
struct npy_stream {
	bool (*read)(void *from, void *to, size_t bytes);
	void *from;
	const char *what;
};
bool npy_read_header(const struct npy_stream *, struct reference_tensor *);

#endif
