/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of lines of objects: their sections .debug_line, versions 2 to 5 of DWARF, each a program
 * for a machine that has an address and a line.  There is one source, the listing, so that files and columns
 * are skipped, as is all that cannot be read: code runs without its lines. */
#include "image/linking.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* Relocations by which addresses become places. */
static bool is_absolute(unsigned machine, unsigned type)
{
	return (machine == EM_X86_64 && type == R_X86_64_64) ||
	       (machine == EM_AARCH64 && type == R_AARCH64_ABS64);
}

/* Rows as they are found. */
struct rows {
	struct arena *arena;
	VEC(struct image_line) row;
};

struct reader {
	const unsigned char *at, *end;
	bool failed; /* a number was wanted past the end */
};

/* --- numbers --- */

static uint64_t read_number(struct reader *r, size_t bytes)
{
	uint64_t number = 0;
	if ((size_t)(r->end - r->at) < bytes) {
		r->failed = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&number, r->at, bytes);
	r->at += bytes;
	return number;
}

/* Seven bits a byte, the lowest first; `*bits` are how many there were. */
static uint64_t read_bits(struct reader *r, int *bits)
{
	uint64_t number = 0, byte;
	*bits = 0;
	do {
		byte = read_number(r, 1);
		if (*bits < 64)
			number |= (byte & 0x7f) << *bits;
		*bits += 7;
	} while (byte & 0x80);
	return number;
}

static uint64_t read_unsigned(struct reader *r)
{
	int bits;
	return read_bits(r, &bits);
}

static int64_t read_signed(struct reader *r)
{
	int bits;
	uint64_t number = read_bits(r, &bits);
	if (bits < 64 && number >> (bits - 1) & 1)
		number |= ~UINT64_C(0) << bits;
	return (int64_t)number;
}

/* --- the program of one unit --- */

enum standard {
	EXTENDED,
	COPY,
	ADVANCE_PLACE,
	ADVANCE_LINE,
	FILE_,
	COLUMN,
	STATEMENT,
	BLOCK,
	ADD_CONSTANT,
	ADD_FIXED
};
enum extended { END_SEQUENCE = 1, SET_ADDRESS };

struct program {
	struct reader r;
	struct rows *rows;
	uint64_t least; /* bytes of the shortest instruction */
	int64_t line_base;
	uint64_t line_range, first_special;
	unsigned char operands[256]; /* of each standard operation */
	uint64_t place, line;
};

/* Positions past the end of any blob are kept out, so that sums do not overflow. */
static void add_row(struct program *p, uint64_t line)
{
	if (p->place <= IMAGE_BLOB_LIMIT && line <= INT32_MAX)
		vec_push(p->rows->arena, &p->rows->row,
			 ((struct image_line){(int64_t)p->place, (int64_t)line}));
}

static void run_extended(struct program *p)
{
	uint64_t bytes = read_unsigned(&p->r);
	if (bytes > (size_t)(p->r.end - p->r.at) || !bytes) {
		p->r.failed = true;
		return;
	}
	const unsigned char *next = p->r.at + bytes;
	uint64_t what = read_number(&p->r, 1);
	if (what == SET_ADDRESS && bytes == 1 + sizeof(uint64_t))
		p->place = read_number(&p->r, sizeof(uint64_t));
	if (what == END_SEQUENCE) {
		add_row(p, 0);
		p->place = 0;
		p->line = 1;
	}
	p->r.at = next;
}

static void run_special(struct program *p, uint64_t operation)
{
	operation -= p->first_special;
	p->place += operation / p->line_range * p->least;
	p->line += p->line_base + operation % p->line_range;
	add_row(p, p->line);
}

static void run_standard(struct program *p, uint64_t operation)
{
	switch (operation) {
	case COPY:
		add_row(p, p->line);
		break;
	case ADVANCE_PLACE:
		p->place += read_unsigned(&p->r) * p->least;
		break;
	case ADVANCE_LINE:
		p->line += (uint64_t)read_signed(&p->r);
		break;
	case ADD_CONSTANT:
		p->place += (255 - p->first_special) / p->line_range * p->least;
		break;
	case ADD_FIXED:
		p->place += read_number(&p->r, 2);
		break;
	default:
		for (int i = 0; i < p->operands[operation]; i++)
			read_unsigned(&p->r);
	}
}

static void run_program(struct program *p)
{
	p->line = 1;
	while (p->r.at < p->r.end && !p->r.failed) {
		uint64_t operation = read_number(&p->r, 1);
		if (operation >= p->first_special)
			run_special(p, operation);
		else if (operation == EXTENDED)
			run_extended(p);
		else
			run_standard(p, operation);
	}
}

/* Reads the header of a unit up to the program; false when it is of another form. */
static bool read_header(struct program *p)
{
	struct reader *r = &p->r;
	uint64_t version = read_number(r, 2);
	if (version < 2 || version > 5)
		return false;
	if (version == 5)
		read_number(r, 2); /* bytes of an address, and of a segment */
	uint64_t length = read_number(r, 4);
	if (length > (size_t)(r->end - r->at))
		return false;
	const unsigned char *begin = r->at + length;
	p->least = read_number(r, 1);
	if (version >= 4)
		read_number(r, 1);
	read_number(r, 1);
	p->line_base = (int64_t)(read_number(r, 1) ^ 0x80) - 0x80;
	p->line_range = read_number(r, 1);
	p->first_special = read_number(r, 1);
	for (uint64_t i = 1; i < p->first_special; i++)
		p->operands[i] = read_number(r, 1);
	r->at = begin;
	return !r->failed && p->line_range && p->first_special;
}

static void read_units(struct rows *rows, const unsigned char *bytes, uint64_t n)
{
	struct reader all = {bytes, bytes + n, false};
	while (all.at < all.end && !all.failed) {
		uint64_t length = read_number(&all, 4);
		if (length > (size_t)(all.end - all.at))
			return;
		struct program p = {.r = {all.at, all.at + length, false}, .rows = rows};
		if (read_header(&p))
			run_program(&p);
		all.at += length;
	}
}

/* --- sections --- */

/* Makes places of addresses in a copy of the section; those of what is in no blob are past the end of any. */
static void relocate_lines(const struct linking *l, unsigned section, unsigned char *bytes)
{
	Elf64_Rela r;
	Elf64_Sym symbol;
	for (unsigned i = 0; i < l->sections; i++)
		for (uint64_t k = 0;
		     l->section[i].sh_info == section && link_read_entry(l, i, SHT_RELA, k, &r, sizeof r);
		     k++) {
			if (!is_absolute(l->output->machine, ELF64_R_TYPE(r.r_info)) ||
			    r.r_offset > l->section[section].sh_size ||
			    l->section[section].sh_size - r.r_offset < sizeof(uint64_t))
				continue;
			bool known = link_read_entry(l, l->symbols, SHT_SYMTAB, ELF64_R_SYM(r.r_info),
						     &symbol, sizeof symbol);
			int64_t place = known ? link_symbol_place(l, &symbol) : -1;
			uint64_t target = place < 0 ? UINT32_MAX : (uint64_t)place + (uint64_t)r.r_addend;
			memcpy(bytes + r.r_offset, &target, sizeof target);
		}
}

static void read_sections(struct rows *rows, const struct linking *l)
{
	for (unsigned i = 0; i < l->sections; i++) {
		const Elf64_Shdr *s = &l->section[i];
		if (s->sh_type != SHT_PROGBITS || !link_has_bytes(l, s->sh_offset, s->sh_size) ||
		    strcmp(link_section_name(l, i), ".debug_line") != 0)
			continue;
		unsigned char *bytes = arena_copy(rows->arena, l->object + s->sh_offset, s->sh_size);
		relocate_lines(l, i, bytes);
		read_units(rows, bytes, s->sh_size);
	}
}

/* By place; the end of a sequence before what begins there. */
static int by_place(const void *a, const void *b)
{
	const struct image_line *x = a, *y = b;
	return x->place != y->place ? (x->place > y->place) - (x->place < y->place)
				    : (x->line > y->line) - (x->line < y->line);
}

/* Leaves out rows that repeat the line before them, all of one place but the last, and those behind the code.
 */
static int compress_rows(struct image_line *row, size_t n, int64_t end)
{
	int kept = 0;
	for (size_t i = 0; i < n; i++) {
		if ((i + 1 < n && row[i + 1].place == row[i].place) || row[i].place > end)
			continue;
		if (!kept || row[kept - 1].line != row[i].line)
			row[kept++] = row[i];
	}
	return kept;
}

int link_read_lines(struct arena *arena, const struct linking *l, int objects,
		    const struct image_line **lines)
{
	struct rows rows = {.arena = arena};
	for (int i = 0; i < objects; i++)
		read_sections(&rows, &l[i]);
	*lines = rows.row.at;
	if (!rows.row.n)
		return 0;
	qsort(rows.row.at, rows.row.n, sizeof *rows.row.at, by_place);
	return compress_rows(rows.row.at, rows.row.n, l->output->code);
}
