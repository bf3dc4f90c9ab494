/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Makes functions of this process from a blob. */
#ifndef ESPALIER_IMAGE_CODE_H
#define ESPALIER_IMAGE_CODE_H

#include "image/image.h"

#include <elf.h>

/* The machine of ELF that this process runs on. */
#if defined __x86_64__
enum { IMAGE_OWN_MACHINE = EM_X86_64 };
#elif defined __aarch64__
enum { IMAGE_OWN_MACHINE = EM_AARCH64 };
#else
enum { IMAGE_OWN_MACHINE = EM_NONE };
#endif

/* Puts a copy of the blob into memory of its own, which is first written, then executable, never both. `what`
 * names the model in diagnostics.  The blob can go afterwards; the code stays until its release.  False after
 * a diagnostic: no memory, code for another machine, or a system that forbids memory to be executable. */
bool image_code_load(const struct image_blob *, const struct allocator *, const char *what,
		     struct image_code *, struct diags *);
/* Frees what a code holds; an empty one is legal. */
void image_code_release(struct image_code *);

#endif
