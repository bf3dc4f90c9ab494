/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Links relocatable objects to a blob.  Their code imports nothing, so little of a linker is needed. */
#ifndef ESPALIER_IMAGE_LINK_H
#define ESPALIER_IMAGE_LINK_H

#include "image/image.h"

/* A relocatable object. */
struct image_object {
	const void *bytes;
	size_t size;
};

/* Lays out the code and constants of ELF64 objects, one object after the other, resolves the references
 * of each to itself and to functions of the others, and finds the kernels by name, in the first object that has one.  The objects may hold
 * any bytes, for any machine whose relocations the table in link.c knows.  `what` names the model in
 * diagnostics.  The blob is in the arena; false after `compile-failed`. */
bool image_link(struct arena *, const struct image_object *, int objects, const char *what, int kernels,
		const char *const *name, struct image_blob *, struct diags *);

/* The bytes of a function of an object, 0 = the object has no such function. */
int64_t image_function_bytes(struct arena *, struct image_object, const char *name);
/* A blob of an object whose code somebody else has linked: it has one kernel, that function, its lines and
 * its call frame information.  Only those can be used, and places relative to the function.  False when there
 * is no such function. */
bool image_describe_function(struct arena *, struct image_object, const char *name, struct image_blob *);

#endif
