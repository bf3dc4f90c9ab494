/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From a relocatable object to a blob: the small part of a linker that code needs which imports nothing. */
#ifndef ESPALIER_IMAGE_LINK_H
#define ESPALIER_IMAGE_LINK_H

#include "image/image.h"

/* A relocatable object. */
struct image_object {
	const void *bytes;
	size_t size;
};

/* Lays out what ELF64 objects hold of code and constants, one object after the other, resolves the references
 * of each to itself, and finds the kernels by name, in the first object that has one.  The objects may hold
 * any bytes, for any machine whose relocations the table in link.c knows.  `what` names the model in
 * diagnostics.  The blob is in the arena; false after `compile-failed`. */
bool image_link(struct arena *, const struct image_object *, int objects, const char *what, int kernels,
		const char *const *name, struct image_blob *, struct diags *);

#endif
