/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays in an arena, typed: VEC(int) v = {0}; vec_push(arena, &v, 7); v.at[0]; v.n. */
#ifndef ESPALIER_BASE_VEC_H
#define ESPALIER_BASE_VEC_H

#include "base/memory.h"

#include <string.h>

#define VEC(type)                                                                                                     \
	struct {                                                                                                      \
		type *at;                                                                                             \
		size_t n, capacity;                                                                                   \
	}

/* The old array stays in the arena until the arena is freed; doubling keeps the waste below the final size. */
static inline void *vec_grown(struct arena *a, const void *old, size_t n, size_t *capacity, size_t size)
{
	size_t wanted = *capacity ? 2 * *capacity : 8;
	void *p = arena_take(a, wanted, size);
	if (old)
		memcpy(p, old, n * size);
	*capacity = wanted;
	return p;
}

/* The value is computed before the array counts it; it must not push to the same array. */
#define vec_push(arena, v, ...)                                                                                       \
	((v)->n == (v)->capacity                                                                                      \
		 ? (void)((v)->at = vec_grown(arena, (v)->at, (v)->n, &(v)->capacity, sizeof *(v)->at))               \
		 : (void)0,                                                                                           \
	 (v)->at[(v)->n] = (__VA_ARGS__), (v)->n++)

#endif
