/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arenas at their ends: nothing at all, more than there is. */
#include "base/memory.h"
#include "tests/tap.h"

#include <stdint.h>
#include <string.h>

static void *resize_none(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)p, (void)old_size, (void)new_size;
	return NULL;
}

static void test_nothing(void)
{
	struct arena a;
	jmp_buf escape;
	arena_init(&a, &allocator_default);
	if (arena_guard(&a, &escape)) {
		tap_ok(false, "no bytes can be taken from a new arena");
		return;
	}
	arena_take(&a, 0, 8); /* or it escapes */
	tap_ok(arena_try(&a, 0, 8) && arena_try(&a, 8, 0), "no bytes can be taken from a new arena");
	arena_free(&a);
	tap_ok(arena_try(&a, 0, 0), "and from one that was freed");
	arena_free(&a);
}

static void test_too_much(void)
{
	static const struct allocator none = {resize_none, NULL};
	struct arena a;
	jmp_buf escape;
	volatile bool taken = false;
	arena_init(&a, &allocator_default);
	tap_ok(!arena_try(&a, SIZE_MAX, 2) && !arena_try(&a, 1, SIZE_MAX) && !arena_try(&a, 1, PTRDIFF_MAX),
	       "sizes that cannot be counted are memory that is out");
	arena_free(&a);
	arena_init(&a, &none);
	if (!arena_guard(&a, &escape)) {
		arena_take(&a, 1, 1);
		taken = true;
	}
	tap_ok(!taken, "without memory an arena escapes");
}

/* Counts the bytes that are taken. */
static void *resize_counted(void *context, void *p, size_t old_size, size_t new_size)
{
	*(size_t *)context += new_size - old_size;
	return allocator_default.resize(NULL, p, old_size, new_size);
}

static void test_rewind(void)
{
	size_t taken = 0;
	const struct allocator counted = {resize_counted, &taken};
	struct arena a;
	jmp_buf escape;
	arena_init(&a, &counted);
	if (arena_guard(&a, &escape))
		return;
	char *kept = arena_string(&a, "kept");
	const struct arena before = a;
	const size_t least = taken;
	char *next = arena_take(&a, 8, 1);
	arena_take(&a, 1000, 1000);
	arena_take(&a, 8, 1);
	tap_ok(taken > least && a.bytes == taken, "an arena grows");
	arena_rewind(&a, &before);
	tap_ok(taken == least && a.bytes == taken, "memory taken since then is given back");
	tap_ok(arena_take(&a, 8, 1) == next && strcmp(kept, "kept") == 0, "and taken again behind what was there");
	arena_free(&a);
	arena_init(&a, &counted);
	a.escape = &escape;
	const struct arena empty = a;
	arena_take(&a, 8, 1);
	arena_rewind(&a, &empty);
	tap_ok(!taken && arena_try(&a, 8, 1), "an arena may be empty again");
	arena_free(&a);
}

int main(void)
{
	test_nothing();
	test_rewind();
	test_too_much();
	return tap_done();
}
