/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = _Alignof(max_align_t), CHUNK = 16 * 1024 };

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	max_align_t bytes[];
};

static void *resize_default(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)old_size;
	if (new_size)
		return realloc(p, new_size);
	free(p);
	return NULL;
}

const struct allocator allocator_default = {resize_default, NULL};

void advise_huge_pages(void *p, size_t bytes)
{
	uintptr_t begin = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uintptr_t end = ((uintptr_t)p + bytes) / HUGE_PAGE * HUGE_PAGE;
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void arena_init(struct arena *a, const struct allocator *allocator)
{
	*a = (struct arena){.allocator = allocator};
}

/* Frees the chunks that are newer than one of them; all when it is NULL. */
static void free_chunks(struct arena *a, const struct arena_chunk *last)
{
	while (a->chunks != last) {
		struct arena_chunk *next = a->chunks->next;
		a->allocator->resize(a->allocator->context, a->chunks, a->chunks->size, 0);
		a->chunks = next;
	}
}

void arena_free(struct arena *a)
{
	free_chunks(a, NULL);
	arena_init(a, a->allocator);
}

void arena_rewind(struct arena *a, const struct arena *before)
{
	free_chunks(a, before->chunks);
	a->free = before->free;
	a->end = before->end;
	a->bytes = before->bytes;
}

static bool exceeds_limit(struct arena *a, size_t bytes)
{
	bool exceeds = a->limit && (a->bytes > a->limit || bytes > a->limit - a->bytes);
	a->full |= exceeds;
	return exceeds;
}

static bool add_chunk(struct arena *a, size_t bytes)
{
	size_t capacity = bytes > CHUNK ? bytes : CHUNK, size = sizeof(struct arena_chunk) + capacity;
	if (size < capacity || exceeds_limit(a, size))
		return false;
	struct arena_chunk *chunk = a->allocator->resize(a->allocator->context, NULL, 0, size);
	if (!chunk)
		return false;
	*chunk = (struct arena_chunk){a->chunks, size};
	a->chunks = chunk;
	a->free = (char *)chunk->bytes;
	a->end = a->free + capacity;
	a->bytes += size;
	return true;
}

void *arena_try(struct arena *a, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - 2 * CHUNK)
		return exceeds_limit(a, PTRDIFF_MAX), NULL;
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if ((!a->free || (size_t)(a->end - a->free) < bytes) && !add_chunk(a, bytes))
		return NULL;
	void *p = a->free;
	a->free += bytes;
	return bytes ? memset(p, 0, bytes) : p;
}

void *arena_take(struct arena *a, size_t count, size_t size)
{
	void *p = arena_try(a, count, size ? size : 1);
	if (!p)
		arena_escape(a);
	return p;
}

void *arena_copy(struct arena *a, const void *from, size_t bytes)
{
	void *p = arena_take(a, bytes, 1);
	return bytes ? memcpy(p, from, bytes) : p;
}

char *arena_text(struct arena *a, const char *text, size_t length)
{
	char *p = arena_take(a, length + 1, 1);
	memcpy(p, text, length);
	return p;
}

char *arena_string(struct arena *a, const char *text)
{
	return arena_text(a, text, strlen(text));
}

void arena_escape(struct arena *a)
{
	if (!a->escape)
		abort(); /* an arena without a guard is a fault of ours */
	longjmp(*a->escape, 1);
}
