/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lines are written as DWARF 4: a unit of the function alone, and a program for its lines that advances place
 * and line by their own operations. */
#include "image/symfile.h"

#include "base/str.h"
#include "image/code.h"

#include <elf.h>
#include <string.h>

enum { TEXT = 1, FRAMES, ABBREVIATIONS, INFO, LINES, SYMBOLS, STRINGS, SECTIONS };

static const char *const names[SECTIONS] = {
    "", ".text", ".eh_frame", ".debug_abbrev", ".debug_info", ".debug_line", ".symtab", ".strtab"};

struct symfile {
	struct str *to;
	size_t begin; /* of the file in the text */
	const struct image_function *function;
	const char *name, *listing;
	struct str strings;
	Elf64_Shdr section[SECTIONS];
};

/* --- numbers --- */

static void put_bytes(struct str *s, uint64_t number, size_t bytes)
{
	str_add(s, (const char *)&number, bytes);
}

static void put_unsigned(struct str *s, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		put_bytes(s, (number & 0x7f) | 0x80, 1);
	put_bytes(s, number, 1);
}

static void put_signed(struct str *s, int64_t number)
{
	for (; number < -0x40 || number > 0x3f; number >>= 7)
		put_bytes(s, ((uint64_t)number & 0x7f) | 0x80, 1);
	put_bytes(s, (uint64_t)number & 0x7f, 1);
}

static void put_text(struct str *s, const char *text)
{
	str_add(s, text, strlen(text) + 1);
}

/* Writes the length in front of what was put since, which has room for it. */
static void set_length(struct str *s, size_t at)
{
	uint32_t length = s->n - at - sizeof length;
	memcpy(s->text + at, &length, sizeof length);
}

static uint64_t address_of(const struct image_function *f)
{
	return (uintptr_t)f->at;
}

/* --- DWARF --- */

/* Numbers of the standard that are used here. */
enum { COMPILE_UNIT = 0x11, SUBPROGRAM = 0x2e };
enum {
	AT_NAME = 0x03,
	AT_STATEMENTS = 0x10,
	AT_LOW = 0x11,
	AT_HIGH = 0x12,
	AT_LANGUAGE = 0x13,
	AT_DIRECTORY = 0x1b
};
enum { FORM_ADDRESS = 0x01, FORM_DATA2 = 0x05, FORM_DATA8 = 0x07, FORM_TEXT = 0x08, FORM_OFFSET = 0x17 };
enum { C99 = 0x0c, ADDRESS = 8, VERSION = 4 };

static void put_abbreviations(struct str *s)
{
	/* clang-format off */
	static const unsigned char table[] = {
	    1, COMPILE_UNIT, 1,
	    AT_LANGUAGE, FORM_DATA2, AT_NAME, FORM_TEXT, AT_DIRECTORY, FORM_TEXT, AT_LOW, FORM_ADDRESS, AT_HIGH, FORM_DATA8,
	    AT_STATEMENTS, FORM_OFFSET, 0, 0,
	    2, SUBPROGRAM, 0,
	    AT_NAME, FORM_TEXT, AT_LOW, FORM_ADDRESS, AT_HIGH, FORM_DATA8, 0, 0,
	    0};
	/* clang-format on */
	str_add(s, (const char *)table, sizeof table);
}

static void put_info(const struct symfile *f, struct str *s)
{
	size_t begin = s->n;
	put_bytes(s, 0, 4);
	put_bytes(s, VERSION, 2);
	put_bytes(s, 0, 4);
	put_bytes(s, ADDRESS, 1);
	put_unsigned(s, 1);
	put_bytes(s, C99, 2);
	put_text(s, f->listing);
	put_text(s, "/");
	put_bytes(s, address_of(f->function), ADDRESS);
	put_bytes(s, f->function->bytes, 8);
	put_bytes(s, 0, 4);
	put_unsigned(s, 2);
	put_text(s, f->name);
	put_bytes(s, address_of(f->function), ADDRESS);
	put_bytes(s, f->function->bytes, 8);
	put_unsigned(s, 0);
	set_length(s, begin);
}

enum { COPY = 1, ADVANCE_PLACE, ADVANCE_LINE, EXTENDED = 0, END_SEQUENCE = 1, SET_ADDRESS = 2 };

static void put_line_header(const struct symfile *f, struct str *s)
{
	/* bytes of an instruction, instructions at once, statements begin, line base and range, operands of
	 * operations */
	static const unsigned char machine[] = {1, 1, 1, 0xff, 1, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1};
	put_bytes(s, VERSION, 2);
	size_t length = s->n;
	put_bytes(s, 0, 4);
	str_add(s, (const char *)machine, sizeof machine);
	put_bytes(s, 0, 1); /* no folders */
	put_text(s, f->listing);
	put_bytes(s, 0, 4); /* its folder, time and size; no more files */
	set_length(s, length);
}

static void put_rows(const struct image_function *f, struct str *s)
{
	const struct image_line *line;
	int n = image_lines_of(f, &line);
	int64_t place = f->place, now = 1;
	for (int i = 0; i < n; i++) {
		int64_t at = line[i].place > f->place ? line[i].place : f->place;
		put_bytes(s, ADVANCE_PLACE, 1);
		put_unsigned(s, at - place);
		put_bytes(s, ADVANCE_LINE, 1);
		put_signed(s, line[i].line - now);
		put_bytes(s, COPY, 1);
		place = at;
		now = line[i].line;
	}
	put_bytes(s, ADVANCE_PLACE, 1);
	put_unsigned(s, f->place + f->bytes - place);
}

static void put_lines(const struct symfile *f, struct str *s)
{
	size_t begin = s->n;
	put_bytes(s, 0, 4);
	put_line_header(f, s);
	put_bytes(s, EXTENDED, 1);
	put_unsigned(s, 1 + ADDRESS);
	put_bytes(s, SET_ADDRESS, 1);
	put_bytes(s, address_of(f->function), ADDRESS);
	put_rows(f->function, s);
	put_bytes(s, EXTENDED, 1);
	put_unsigned(s, 1);
	put_bytes(s, END_SEQUENCE, 1);
	set_length(s, begin);
}

/* --- sections --- */

static size_t put_string(struct symfile *f, const char *text)
{
	size_t at = f->strings.n;
	put_text(&f->strings, text);
	return at;
}

static Elf64_Shdr *begin_section(struct symfile *f, int which, int type)
{
	Elf64_Shdr *s = &f->section[which];
	str_add(f->to, "\0\0\0\0\0\0\0", -(f->to->n - f->begin) % 8);
	*s = (Elf64_Shdr){.sh_name = put_string(f, names[which]),
			  .sh_type = type,
			  .sh_offset = f->to->n - f->begin,
			  .sh_addralign = 8};
	return s;
}

static void end_section(struct symfile *f, int which)
{
	f->section[which].sh_size = f->to->n - f->begin - f->section[which].sh_offset;
}

static void put_code(struct symfile *f)
{
	Elf64_Shdr *s = begin_section(f, TEXT, SHT_NOBITS);
	s->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s->sh_addr = address_of(f->function);
	s->sh_size = f->function->bytes;
	s->sh_addralign = 1;
}

/* The copy is written as if it lay behind the function, whose address it says as a distance of 32 bits. */
static void put_frames(struct symfile *f)
{
	struct image_frames frames = image_frames_of(f->function);
	int64_t distance = (f->function->bytes + 7) / 8 * 8;
	int64_t bytes = image_copy_frame(&frames, f->function->place, distance, NULL);
	Elf64_Shdr *s = begin_section(f, FRAMES, bytes ? SHT_PROGBITS : SHT_NULL);
	unsigned char *copy = arena_take(f->to->arena, bytes + 1, 1);
	image_copy_frame(&frames, f->function->place, distance, copy);
	s->sh_flags = SHF_ALLOC;
	s->sh_addr = address_of(f->function) + distance;
	str_add(f->to, (const char *)copy, bytes);
	end_section(f, FRAMES);
}

static void put_debugging(struct symfile *f)
{
	bool any = f->listing && f->function->blob->lines;
	begin_section(f, ABBREVIATIONS, any ? SHT_PROGBITS : SHT_NULL);
	if (any)
		put_abbreviations(f->to);
	end_section(f, ABBREVIATIONS);
	begin_section(f, INFO, any ? SHT_PROGBITS : SHT_NULL);
	if (any)
		put_info(f, f->to);
	end_section(f, INFO);
	begin_section(f, LINES, any ? SHT_PROGBITS : SHT_NULL);
	if (any)
		put_lines(f, f->to);
	end_section(f, LINES);
}

static void put_symbols(struct symfile *f)
{
	Elf64_Sym symbol[2] = {{0}};
	Elf64_Shdr *s = begin_section(f, SYMBOLS, SHT_SYMTAB);
	s->sh_link = STRINGS;
	s->sh_info = 1;
	s->sh_entsize = sizeof *symbol;
	symbol[1] = (Elf64_Sym){.st_name = put_string(f, f->name),
				.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				.st_shndx = TEXT,
				.st_size = f->function->bytes};
	str_add(f->to, (const char *)symbol, sizeof symbol);
	end_section(f, SYMBOLS);
}

static void put_strings(struct symfile *f)
{
	begin_section(f, STRINGS, SHT_STRTAB);
	str_add(f->to, f->strings.text, f->strings.n);
	end_section(f, STRINGS);
}

static void put_header(struct symfile *f)
{
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_REL,
			.e_machine = IMAGE_OWN_MACHINE,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof h,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = SECTIONS,
			.e_shstrndx = STRINGS};
	str_add(f->to, "\0\0\0\0\0\0\0", -(f->to->n - f->begin) % 8);
	h.e_shoff = f->to->n - f->begin;
	memcpy(f->to->text + f->begin, &h, sizeof h);
	str_add(f->to, (const char *)f->section, sizeof f->section);
}

void image_put_symfile(struct str *to, const char *model, const char *listing,
		       const struct image_function *function)
{
	static const Elf64_Ehdr room;
	struct str name = str_in(to->arena);
	str_printf(&name, "%.150s:%.150s", model, function->name);
	struct symfile f = {to, to->n, function, name.text, listing, str_in(to->arena), {{0}}};
	put_text(&f.strings, "");
	str_add(to, (const char *)&room, sizeof room);
	put_code(&f);
	put_frames(&f);
	put_debugging(&f);
	put_symbols(&f);
	put_strings(&f);
	put_header(&f);
}
