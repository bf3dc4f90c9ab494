/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Memory: the allocator hook and the arena.
 *
 * An arena belongs to one compilation or one linearized minibatch; what is taken from it is freed with it and
 * never singly.  When memory runs out an arena does not return NULL: it jumps to the `escape` that the entry
 * point of the library has set (see arena_guard), which frees the arena and reports `out-of-memory`.  Code that
 * holds anything else than arena memory (a file descriptor, a lock) must therefore use arena_try. */
#ifndef ESPALIER_BASE_MEMORY_H
#define ESPALIER_BASE_MEMORY_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

/* One function does all: grow, shrink, take (p == NULL) and give back (new_size == 0).  Returns NULL when memory
 * is out; the old block is then untouched. */
struct allocator {
	void *(*resize)(void *context, void *p, size_t old_size, size_t new_size);
	void *context;
};

extern const struct allocator allocator_default; /* realloc and free */

/* Asks the system for huge pages where the block has entire ones; the system may ignore it. */
enum { HUGE_PAGE = 2 << 20 };
void advise_huge_pages(void *, size_t bytes);

struct arena {
	const struct allocator *allocator;
	struct arena_chunk *chunks; /* newest first */
	char *free, *end;           /* unused part of the newest chunk */
	size_t bytes;               /* taken from the allocator so far */
	size_t limit;               /* of `bytes`: beyond it memory is out; 0 = none */
	bool full;                  /* memory was out because of the limit */
	jmp_buf *escape;	    /* jumped to when memory is out */
};

void arena_init(struct arena *, const struct allocator *);
void arena_free(struct arena *);
/* Gives back what was taken since `before` was a copy of the arena; the limit and the escape stay. */
void arena_rewind(struct arena *, const struct arena *before);

/* Zeroed memory, aligned for any type; escapes when memory is out or the product overflows. */
__attribute__((returns_nonnull)) void *arena_take(struct arena *, size_t count, size_t size);
/* The same, but NULL when memory is out. */
void *arena_try(struct arena *, size_t count, size_t size);
__attribute__((returns_nonnull)) void *arena_copy(struct arena *, const void *from, size_t bytes);
/* A terminated copy of the first `length` bytes of `text`. */
__attribute__((returns_nonnull)) char *arena_text(struct arena *, const char *text, size_t length);
__attribute__((returns_nonnull)) char *arena_string(struct arena *, const char *text);
/* Jumps to the escape, as when memory is out. */
_Noreturn void arena_escape(struct arena *);

/* The general form of an entry point: if (arena_guard(a, &jump)) { arena_free(a); return out of memory; } */
#define arena_guard(arena, jump) ((arena)->escape = (jump), setjmp(*(jump)))

#define ARENA_NEW(arena, type) ((type *)arena_take(arena, 1, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_take(arena, count, sizeof(type)))

#endif
