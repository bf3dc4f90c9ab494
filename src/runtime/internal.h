/* What the files of runtime/ share. */
#ifndef ESPALIER_RUNTIME_INTERNAL_H
#define ESPALIER_RUNTIME_INTERNAL_H

#include "runtime/runtime.h"

/* Zeroed memory, 64-byte aligned; blocks of 2 MiB and more begin at a huge page.  NULL when memory is out. */
void *rt_take(const struct allocator *, size_t bytes);
/* The same, but whatever was there before is in it. */
void *rt_take_raw(const struct allocator *, size_t bytes);
/* Gives back what either returned; NULL is accepted. */
void rt_give(const struct allocator *, void *);

/* Always false. */
bool rt_out_of_memory(struct diags *, const char *what);

/* Walks the step table over the minibatch that `buffers` and `sizes` describe. */
bool rt_run_steps(const struct image *, void *const *buffers, const int64_t *sizes,
		  const int32_t *batch_begin, struct diags *);

/* Whether every node carries what its case reads of input `which`: a value, and a token within its limit. */
bool rt_check_data(const struct image *, const struct lin_order *, const struct rt_minibatch *, int which,
		   struct diags *);
/* Lays checked data out in the order's numbering, rows `row_elements` apart.  A token that is not read
 * becomes 0. */
void rt_permute_tokens(const struct image_input *, const struct lin_order *, const int32_t *from,
		       int32_t *to);
void rt_permute_vectors(const struct image_input *, const struct lin_order *, const float *from,
			int64_t row_elements, float *to);

#endif
