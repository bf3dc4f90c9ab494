/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A relocatable object made by hand: two kernels for x86-64, of which the second calls the first.  Tests bend
 * it. */
#ifndef ESPALIER_TESTS_IMAGE_OBJECT_H
#define ESPALIER_TESTS_IMAGE_OBJECT_H

#include "image/link.h"
#include "tests/tap.h"

#include <elf.h>
#include <string.h>

enum { NONE, TEXT, RODATA, RELA, SYMTAB, STRTAB, COMMENT, SECTIONS };
enum { S_NULL, S_RODATA, S_FIRST, S_SECOND, SYMBOLS };
enum { CALL, CONSTANT, RELOCATIONS };

/* first: *(float *)buffers[0] = 2.5; second: the same, by a call. */
static const unsigned char object_text[] = {
    0x48, 0x8b, 0x07,				    /* mov (%rdi), %rax */
    0xf3, 0x0f, 0x10, 0x05, 0x00, 0x00, 0x00, 0x00, /* movss constant(%rip), %xmm0 */
    0xf3, 0x0f, 0x11, 0x00,			    /* movss %xmm0, (%rax) */
    0xc3,					    /* ret */
    0xe8, 0x00, 0x00, 0x00, 0x00,		    /* call first */
    0xc3,					    /* ret */
};
static const float object_constant = 2.5f;
static const char object_strings[] = "\0first\0second\0.text\0.eh_frame";

struct object {
	Elf64_Ehdr header;
	unsigned char text[24];
	float constant[2];
	Elf64_Rela rela[RELOCATIONS];
	Elf64_Sym symbol[SYMBOLS];
	char strings[sizeof object_strings];
	Elf64_Shdr section[SECTIONS];
};

#define AT(member) offsetof(struct object, member), sizeof((struct object *)0)->member

static inline Elf64_Shdr section_of(unsigned name, unsigned type, uint64_t flags, uint64_t offset,
				    uint64_t size)
{
	return (Elf64_Shdr){.sh_name = name,
			    .sh_type = type,
			    .sh_flags = flags,
			    .sh_offset = offset,
			    .sh_size = size,
			    .sh_addralign = 4};
}

static inline void make_object(struct object *o)
{
	memset(o, 0, sizeof *o);
	memcpy(o->header.e_ident, ELFMAG, SELFMAG);
	o->header.e_ident[EI_CLASS] = ELFCLASS64;
	o->header.e_ident[EI_DATA] = ELFDATA2LSB;
	o->header.e_type = ET_REL;
	o->header.e_machine = EM_X86_64;
	o->header.e_shoff = offsetof(struct object, section);
	o->header.e_shentsize = sizeof(Elf64_Shdr);
	o->header.e_shnum = SECTIONS;
	o->header.e_shstrndx = STRTAB;
	memcpy(o->text, object_text, sizeof object_text);
	o->constant[1] = object_constant;
	o->rela[CALL] = (Elf64_Rela){17, ELF64_R_INFO((uint64_t)S_FIRST, R_X86_64_PLT32), -4};
	o->rela[CONSTANT] = (Elf64_Rela){7, ELF64_R_INFO((uint64_t)S_RODATA, R_X86_64_PC32), 4 - 4};
	o->symbol[S_RODATA] =
	    (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION), .st_shndx = RODATA};
	o->symbol[S_FIRST] =
	    (Elf64_Sym){.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = TEXT};
	o->symbol[S_SECOND] = (Elf64_Sym){
	    .st_name = 7, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = TEXT, .st_value = 16};
	memcpy(o->strings, object_strings, sizeof object_strings);
	o->section[TEXT] = section_of(14, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, AT(text));
	o->section[TEXT].sh_addralign = 16;
	o->section[RODATA] = section_of(0, SHT_PROGBITS, SHF_ALLOC | SHF_MERGE, AT(constant));
	o->section[RODATA].sh_addralign = 64;
	o->section[RELA] = section_of(0, SHT_RELA, SHF_INFO_LINK, AT(rela));
	o->section[RELA].sh_link = SYMTAB;
	o->section[RELA].sh_info = TEXT;
	o->section[RELA].sh_entsize = sizeof(Elf64_Rela);
	o->section[SYMTAB] = section_of(0, SHT_SYMTAB, 0, AT(symbol));
	o->section[SYMTAB].sh_link = STRTAB;
	o->section[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	o->section[STRTAB] = section_of(0, SHT_STRTAB, 0, AT(strings));
	o->section[COMMENT] = section_of(0, SHT_PROGBITS, 0, AT(strings));
}

/* --- linking --- */

struct linked {
	struct arena arena;
	struct diags diags;
	struct image_blob blob;
	bool ok;
};

static inline void link_object(struct linked *l, const void *object, size_t bytes)
{
	static const char *const kernels[] = {"first", "second"};
	jmp_buf escape;
	arena_init(&l->arena, &allocator_default);
	diags_init(&l->diags, &allocator_default);
	l->ok =
	    !arena_guard(&l->arena, &escape) && image_link(&l->arena, &(struct image_object){object, bytes},
							   1, "hand", 2, kernels, &l->blob, &l->diags);
}

static inline void free_linked(struct linked *l)
{
	diags_free(&l->diags);
	arena_free(&l->arena);
}

#endif
