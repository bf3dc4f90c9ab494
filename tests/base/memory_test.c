/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arenas at their ends: nothing at all, more than there is. */
#include "base/memory.h"
#include "tests/tap.h"

#include <stdint.h>

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

int main(void)
{
	test_nothing();
	test_too_much();
	return tap_done();
}
