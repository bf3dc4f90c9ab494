/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The interface is that of the manual of GDB, "JIT Compilation Interface": a list of object files in memory, and a function
 * that is called, and in which a debugger stops, when the list has changed. */
#include "image/gdb.h"

#include "base/str.h"
#include "image/symfile.h"

#include <pthread.h>
#include <stdint.h>

/* --- what debuggers look for, by name --- */

struct jit_code_entry {
	struct jit_code_entry *next, *prev;
	const char *symfile_addr;
	uint64_t symfile_size;
};

enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };

struct jit_descriptor {
	uint32_t version, action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};

/* Weak, since compilers in the same process may have them, too; all of them use one list then. */
#define INTERFACE __attribute__((weak, visibility("default"), used))

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are GDB's. */
INTERFACE struct jit_descriptor __jit_debug_descriptor = {.version = 1};
INTERFACE __attribute__((noinline)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}
/* NOLINTEND(bugprone-reserved-identifier) */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tell_debugger(uint32_t action, struct jit_code_entry *e)
{
	__jit_debug_descriptor.relevant_entry = e;
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_register_code();
	__jit_debug_descriptor.action_flag = JIT_NOACTION;
}

static void link_entry(struct jit_code_entry *e)
{
	pthread_mutex_lock(&lock);
	e->next = __jit_debug_descriptor.first_entry;
	if (e->next)
		e->next->prev = e;
	__jit_debug_descriptor.first_entry = e;
	tell_debugger(JIT_REGISTER, e);
	pthread_mutex_unlock(&lock);
}

static void unlink_entry(struct jit_code_entry *e)
{
	pthread_mutex_lock(&lock);
	if (e->prev)
		e->prev->next = e->next;
	else
		__jit_debug_descriptor.first_entry = e->next;
	if (e->next)
		e->next->prev = e->prev;
	tell_debugger(JIT_UNREGISTER, e);
	pthread_mutex_unlock(&lock);
}

/* --- lists --- */

struct gdb_entry {
	struct jit_code_entry entry;
	struct gdb_entry *next;
};

void gdb_add_functions(struct gdb_entry **list, struct arena *arena, const char *model, const char *listing,
		       const struct image_function *f, int n)
{
	for (int i = 0; i < n; i++) {
		struct gdb_entry *e = ARENA_NEW(arena, struct gdb_entry);
		struct str file = str_in(arena);
		image_put_symfile(&file, model, listing, &f[i]);
		e->entry.symfile_addr = file.text;
		e->entry.symfile_size = file.n;
		e->next = *list;
		*list = e;
		link_entry(&e->entry);
	}
}

void gdb_remove_functions(struct gdb_entry **list)
{
	for (; *list; *list = (*list)->next)
		unlink_entry(&(*list)->entry);
}
