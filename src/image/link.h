/* From a relocatable object to a blob: the small part of a linker that code needs which imports nothing. */
#ifndef ESPALIER_IMAGE_LINK_H
#define ESPALIER_IMAGE_LINK_H

#include "image/image.h"

/* Lays out what an ELF64 object holds of code and constants, resolves its references to itself, and finds the
 * kernels by name.  The object may hold any bytes, for any machine whose relocations the table in link.c
 * knows.  `what` names the model in diagnostics.  The blob is in the arena; false after `compile-failed`. */
bool image_link(struct arena *, const void *object, size_t bytes, const char *what, int kernels,
		const char *const *name, struct image_blob *, struct diags *);

#endif
