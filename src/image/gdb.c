/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The interface is that of the manual of GDB, "JIT Compilation Interface": a list of object files in memory, and a function
 * that is called, and in which a debugger stops, when the list has changed. */
#include "image/gdb.h"

#include "image/code.h"

#include <elf.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

/* --- the object file of a function: where it is, and its name --- */

enum { NOTHING, TEXT, SYMBOLS, STRINGS, SECTIONS };
static const char section_names[] = "\0.text\0.symtab\0.strtab";
enum { NAME_TEXT = 1, NAME_SYMBOLS = 7, NAME_STRINGS = 15, NAME_FUNCTION = sizeof section_names };

struct symfile {
	Elf64_Ehdr header;
	Elf64_Shdr section[SECTIONS];
	Elf64_Sym symbol[2];
	char strings[NAME_FUNCTION + 320]; /* of sections, then the function's */
};

struct gdb_entry {
	struct jit_code_entry entry;
	struct gdb_entry *next;
	struct symfile file;
};

static void fill_header(Elf64_Ehdr *h)
{
	*h = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			  .e_type = ET_REL,
			  .e_machine = IMAGE_OWN_MACHINE,
			  .e_version = EV_CURRENT,
			  .e_shoff = offsetof(struct symfile, section),
			  .e_ehsize = sizeof *h,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = SECTIONS,
			  .e_shstrndx = STRINGS};
}

static void fill_sections(Elf64_Shdr *s, const struct image_function *f)
{
	s[TEXT] = (Elf64_Shdr){.sh_name = NAME_TEXT,
			       .sh_type = SHT_NOBITS,
			       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			       .sh_addr = (uintptr_t)f->at,
			       .sh_size = f->bytes,
			       .sh_addralign = 1};
	s[SYMBOLS] = (Elf64_Shdr){.sh_name = NAME_SYMBOLS,
				  .sh_type = SHT_SYMTAB,
				  .sh_offset = offsetof(struct symfile, symbol),
				  .sh_size = sizeof ((struct symfile *)0)->symbol,
				  .sh_link = STRINGS,
				  .sh_info = 1,
				  .sh_addralign = 8,
				  .sh_entsize = sizeof(Elf64_Sym)};
	s[STRINGS] = (Elf64_Shdr){.sh_name = NAME_STRINGS,
				  .sh_type = SHT_STRTAB,
				  .sh_offset = offsetof(struct symfile, strings),
				  .sh_size = sizeof ((struct symfile *)0)->strings,
				  .sh_addralign = 1};
}

static void fill_entry(struct gdb_entry *e, const char *model, const struct image_function *f)
{
	memset(e, 0, sizeof *e);
	e->entry.symfile_addr = (const char *)&e->file;
	e->entry.symfile_size = sizeof e->file;
	fill_header(&e->file.header);
	fill_sections(e->file.section, f);
	e->file.symbol[1] = (Elf64_Sym){.st_name = NAME_FUNCTION,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = TEXT,
					.st_size = f->bytes};
	memcpy(e->file.strings, section_names, sizeof section_names);
	snprintf(e->file.strings + NAME_FUNCTION, sizeof e->file.strings - NAME_FUNCTION, "%.150s:%.150s", model, f->name);
}

/* --- lists --- */

void gdb_add_functions(struct gdb_entry **list, const struct allocator *a, const char *model,
		       const struct image_function *f, int n)
{
	for (int i = 0; i < n; i++) {
		struct gdb_entry *e = a->resize(a->context, NULL, 0, sizeof *e);
		if (!e)
			return;
		fill_entry(e, model, &f[i]);
		e->next = *list;
		*list = e;
		link_entry(&e->entry);
	}
}

void gdb_remove_functions(struct gdb_entry **list, const struct allocator *a)
{
	while (*list) {
		struct gdb_entry *e = *list;
		*list = e->next;
		unlink_entry(&e->entry);
		a->resize(a->context, e, sizeof *e, 0);
	}
}
