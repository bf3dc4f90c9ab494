/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the writer and the reader of images share: the description of all members, and the header. */
#ifndef ESPALIER_IMAGE_MEMBERS_H
#define ESPALIER_IMAGE_MEMBERS_H

#include "base/checksum.h"
#include "image/image_file.h"

enum kind {
	NUMBER, /* `count` integers of `size` bytes, each within low .. high */
	TEXT,	/* a terminated text */
	BYTES,	/* a pointer to bytes, and their number, an int64_t, at `count` */
	INLINE, /* `count` structs that are part of this one */
	LIST	/* a pointer to structs, and their number at `count` */
};

/* One member of a struct. */
struct member {
	const char *name;
	enum kind kind;
	size_t at, size, count;
	int64_t low, high;
	const struct layout *of;
};

/* One struct, or another element of a list. */
struct layout {
	size_t size;
	int members;
	const struct member *member;
};

/* The description of struct image. */
extern const struct layout image_layout;

enum section { KEY, TABLES, CODE, WEIGHTS, SECTIONS };

struct header {
	char magic[8];
	struct checksum checksum;
	uint64_t stamp, size;
	struct {
		uint64_t offset, size;
	} section[SECTIONS];
};

extern const char image_magic[8];

/* A hash of the description, so that files of another one are recognised. */
uint64_t image_hash_members(void);
/* The checksum of the header covers all that stands between it and the weights.  False when they lie outside. */
bool image_take_checksum(const void *bytes, size_t n, const struct header *, struct checksum *);

/* What packed weights take in the file: whole lines. */
static inline int64_t image_round_to_line(int64_t n)
{
	return (n + IMAGE_LINE - 1) / IMAGE_LINE * IMAGE_LINE;
}

#endif
