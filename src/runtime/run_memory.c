/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/shared.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

enum { LINE = 64 };

/* Stands right before an aligned block. */
struct header {
	void *base;
	size_t size;
};

size_t rt_whole_pages(size_t bytes)
{
	size_t rest = bytes % HUGE_PAGE;
	return rest < HUGE_PAGE / 2 || bytes > PTRDIFF_MAX ? bytes : bytes - rest + HUGE_PAGE;
}

static void *allocate_aligned(const struct allocator *a, size_t bytes, size_t alignment)
{
	size_t size;
	if (__builtin_add_overflow(bytes, alignment + sizeof(struct header), &size) || size > PTRDIFF_MAX)
		return NULL;
	void *base = a->resize(a->context, NULL, 0, size);
	if (!base)
		return NULL;
	uintptr_t first = (uintptr_t)base + sizeof(struct header);
	char *p = (char *)((first + alignment - 1) / alignment * alignment);
	((struct header *)p)[-1] = (struct header){base, size};
	return p;
}

void *rt_allocate(const struct allocator *a, size_t bytes)
{
	size_t rounded = rt_whole_pages(bytes);
	void *p = allocate_aligned(a, rounded, rounded >= HUGE_PAGE ? HUGE_PAGE : LINE);
	if (p)
		advise_huge_pages(p, rounded);
	return p;
}

void *rt_allocate_sparse(const struct allocator *a, size_t bytes)
{
	return allocate_aligned(a, bytes, LINE);
}

void *rt_allocate_zeroed(const struct allocator *a, size_t bytes)
{
	void *p = rt_allocate(a, bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

void rt_free(const struct allocator *a, void *p)
{
	if (!p)
		return;
	struct header h = ((struct header *)p)[-1];
	a->resize(a->context, h.base, h.size, 0);
}

int64_t rt_nanoseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

double rt_seconds(void)
{
	return rt_nanoseconds() * 1e-9;
}

bool(rt_out_of_memory)(struct diags *diags, const char *what)
{
	return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for %s", what);
}
