/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/object.h"

#include <elf.h>
#include <string.h>

/* Sections in the order of the file. */
enum section { NOTHING, CONTENT, NOTE, SYMBOLS, STRINGS, NAMES, SECTIONS };
enum { CONTENT_ALIGNMENT = 64 };

static const char section_names[] = "\0.rodata\0.note.GNU-stack\0.symtab\0.strtab\0.shstrtab";
enum { NAME_CONTENT = 1, NAME_NOTE = 9, NAME_SYMBOLS = 25, NAME_STRINGS = 33, NAME_NAMES = 41 };

/* A file consists of the header, the content, its length, and this. */
_Static_assert(sizeof(Elf64_Ehdr) % CONTENT_ALIGNMENT == 0, "the content begins behind it");
struct rest {
	Elf64_Sym symbol[3];
	Elf64_Shdr section[SECTIONS];
	char names[sizeof section_names];
};

int64_t object_bytes(const struct io_piece *piece, int n)
{
	int64_t bytes = 0;
	for (int i = 0; i < n; i++)
		bytes += piece[i].n;
	return bytes;
}

static Elf64_Ehdr *head_of(struct arena *a, int machine, int64_t sections)
{
	Elf64_Ehdr *head = ARENA_NEW(a, Elf64_Ehdr);
	*head =
	    (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_REL,
			 .e_machine = machine,
			 .e_version = EV_CURRENT,
			 .e_shoff = sections,
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = SECTIONS,
			 .e_shstrndx = NAMES};
	return head;
}

static Elf64_Sym symbol_of(size_t name, int64_t at, int64_t bytes)
{
	return (Elf64_Sym){.st_name = name,
			   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			   .st_shndx = CONTENT,
			   .st_value = at,
			   .st_size = bytes};
}

static Elf64_Shdr section_of(int name, int type, int64_t at, int64_t bytes)
{
	return (Elf64_Shdr){
	    .sh_name = name, .sh_type = type, .sh_offset = at, .sh_size = bytes, .sh_addralign = 1};
}

/* `at`: where the rest begins, `data`: bytes of the content with its length.  Strings follow the rest. */
static void fill_sections(struct rest *r, int64_t at, int64_t data, size_t strings)
{
	Elf64_Shdr *s = r->section;
	s[CONTENT] = section_of(NAME_CONTENT, SHT_PROGBITS, sizeof(Elf64_Ehdr), data);
	s[CONTENT].sh_flags = SHF_ALLOC;
	s[CONTENT].sh_addralign = CONTENT_ALIGNMENT;
	s[NOTE] = section_of(NAME_NOTE, SHT_PROGBITS, at, 0);
	s[SYMBOLS] = section_of(NAME_SYMBOLS, SHT_SYMTAB, at, sizeof r->symbol);
	s[SYMBOLS].sh_addralign = sizeof(int64_t);
	s[SYMBOLS].sh_link = STRINGS;
	s[SYMBOLS].sh_info = 1; /* the first that is not local */
	s[SYMBOLS].sh_entsize = sizeof *r->symbol;
	s[STRINGS] = section_of(NAME_STRINGS, SHT_STRTAB, at + sizeof *r, strings);
	s[NAMES] = section_of(NAME_NAMES, SHT_STRTAB, at + offsetof(struct rest, names), sizeof r->names);
	memcpy(r->names, section_names, sizeof r->names);
}

int object_pieces(struct arena *a, int machine, const char *name, const struct io_piece *content, int n,
		  const struct io_piece **pieces)
{
	struct io_piece *piece = ARENA_ARRAY(a, struct io_piece, n + 5);
	int64_t *size = ARENA_NEW(a, int64_t), bytes = object_bytes(content, n);
	int64_t word = (bytes + sizeof *size - 1) / sizeof *size * sizeof *size;
	int64_t at = sizeof(Elf64_Ehdr) + word + sizeof *size;
	struct rest *r = ARENA_NEW(a, struct rest);
	struct str strings = str_in(a);
	str_add(&strings, "", 1);
	size_t program = strings.n;
	str_printf(&strings, "%s_program", name);
	str_add(&strings, "", 1);
	size_t length = strings.n;
	str_printf(&strings, "%s_size", name);
	str_add(&strings, "", 1);
	*size = bytes;
	fill_sections(r, at, word + sizeof *size, strings.n);
	r->symbol[1] = symbol_of(program, 0, bytes);
	r->symbol[2] = symbol_of(length, word, sizeof *size);
	piece[0] =
	    (struct io_piece){head_of(a, machine, at + offsetof(struct rest, section)), sizeof(Elf64_Ehdr)};
	memcpy(piece + 1, content, n * sizeof *content);
	piece[n + 1] = (struct io_piece){arena_take(a, 1, sizeof *size), word - bytes};
	piece[n + 2] = (struct io_piece){size, sizeof *size};
	piece[n + 3] = (struct io_piece){r, sizeof *r};
	piece[n + 4] = (struct io_piece){strings.text, strings.n};
	*pieces = piece;
	return n + 5;
}
