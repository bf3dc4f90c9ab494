/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of the linker share. */
#ifndef ESPALIER_IMAGE_LINKING_H
#define ESPALIER_IMAGE_LINKING_H

#include "image/frames.h"
#include "image/link.h"

#include <elf.h>

/* The blob of all objects, and the first problem. */
struct output {
	const struct linking *linking; /* of the objects */
	int objects;
	unsigned machine;
	int64_t size, alignment;
	int64_t code, frames; /* where code ends, and call frame information begins */
	unsigned char *blob;
	char problem[200];
};

/* One object. */
struct linking {
	struct arena *arena;
	struct output *output;
	const unsigned char *object;
	uint64_t bytes;		  /* of the object */
	unsigned sections, names; /* names: the section that holds the names of sections */
	Elf64_Shdr *section;
	int64_t *place;	  /* by section: where it begins in the blob, -1 = it is left out */
	unsigned symbols; /* the section that holds the symbols, 0 = none */
	uint64_t used; /* bytes of sections and relocations so far: sections cannot share bytes without end */
};

/* --- link.c --- */

/* Whether these bytes lie in the object. */
bool link_has_bytes(const struct linking *, uint64_t offset, uint64_t bytes);
/* Entry `i` of a table whose entries have `size` bytes; false when there is none. */
bool link_read_entry(const struct linking *, unsigned table, Elf64_Word type, uint64_t i, void *to,
		     size_t size);
/* The place of a symbol in the blob; -1 = it is not in the blob. */
int64_t link_symbol_place(const struct linking *, const Elf64_Sym *);
/* The name of a section. */
const char *link_section_name(const struct linking *, unsigned section);

/* --- link_lines.c --- */

/* The lines of linked objects by place, in the arena; returns how many rows there are. */
int link_read_lines(struct arena *, const struct linking *, int objects, const struct image_line **);

#endif
