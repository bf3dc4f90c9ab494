/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs that were compiled, kept for the next process.
 *
 * A program is found by its key, a text of all that it depends on: the library and the back end down to their
 * files, the processor, options, sizes, schedule and model.  Whatever goes wrong here is a notice, never a
 * failure: the model is compiled as if there were no cache. */
#ifndef ESPALIER_COMPILE_CACHE_H
#define ESPALIER_COMPILE_CACHE_H

#include "compile/compile.h"

/* --- key.c --- */

/* The key of a program; NULL when it is not kept: it is interpreted, stops after a pass, or depends on
 * something unknown. */
const char *cache_key(struct arena *, const struct ra_model *, const int64_t *sizes,
		      const struct compile_options *);

/* --- find_machine.c --- */

/* Appends what a program for this machine depends on: the processor, and the description by which its
 * schedule is chosen (NULL = that of the target, which belongs to the library). */
void describe_machine_for_key(struct str *, const struct machine_known *);

/* --- cache.c --- */

enum { CACHE_LIMIT = 256 << 20 }; /* bytes, unless another limit is given */

/* Where programs are kept, by a context's options. */
struct cache {
	bool off;
	const char *folder; /* NULL = the user's own */
	uint64_t limit;	    /* 0 = CACHE_LIMIT */
};

/* The path of a folder of the cache; NULL = there is none.  A process that runs with more rights than its
 * caller takes nothing from the caller's folders. */
const char *cache_folder(const struct cache *, struct arena *, const char *name);
/* The path of a file with the listing that lines of code are of, in the folder "listings"; it is written if
 * it is not there. Without a cache, a name that is no file's.  In the arena. */
const char *cache_listing(const struct cache *, struct arena *, const char *listing, struct diags *notices);
/* Finds the image kept under a key; it has no code yet.  It points into the arena. */
bool cache_find(const struct cache *, struct arena *, const char *key, struct image *, struct diags *notices);
/* Keeps an image under its key.  Uses memory of the allocator, and frees it. */
void cache_keep(const struct cache *, const struct allocator *, const struct image *, struct diags *notices);

#endif
