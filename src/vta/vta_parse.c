/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the text form of streams, line by line.  A name of a field and its value are found by the table that
 * the printer goes by. */
#include "base/vec.h"
#include "vta/vta.h"

#include <string.h>

struct reader {
	struct arena *arena;
	struct diags *diags;
	const char *file, *at, *line_begin;
	int line;
	VEC(struct vta_insn) insns;
	VEC(struct vta_segment) segments;
	uint64_t bytes;
	bool sized; /* its line has been read */
};

struct word {
	const char *at;
	size_t n;
};

static bool refuse_word(struct reader *r, struct word word, const char *what)
{
	struct diag_at at = {r->file, r->line, (int)(word.at - r->line_begin) + 1, r->line_begin, 0};
	return diag_add(r->diags, DIAG_VTA_TEXT, at, "doc/vta.md has the form of each line",
			"'%.*s' is not %s", (int)(word.n < 40 ? word.n : 40), word.at, what);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line, empty at its end. */
static struct word take_word(struct reader *r)
{
	while (is_space(*r->at))
		r->at++;
	const char *begin = r->at;
	if (*begin != '#')
		while (*r->at && *r->at != '\n' && !is_space(*r->at))
			r->at++;
	return (struct word){begin, (size_t)(r->at - begin)};
}

static bool is_word(struct word word, const char *text)
{
	return text && strlen(text) == word.n && !memcmp(word.at, text, word.n);
}

/* Goes to the next line; false at the end of the text. */
static bool next_line(struct reader *r)
{
	while (*r->at && *r->at != '\n')
		r->at++;
	if (!*r->at)
		return false;
	r->line_begin = ++r->at;
	r->line++;
	return true;
}

static bool end_line(struct reader *r)
{
	struct word rest = take_word(r);
	return !rest.n || refuse_word(r, rest, "expected at the end of a line");
}

static bool read_number(struct word word, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < word.n; i++) {
		if (word.at[i] < '0' || word.at[i] > '9' || *value > UINT64_MAX / 10 - 9)
			return false;
		*value = *value * 10 + (uint64_t)(word.at[i] - '0');
	}
	return word.n > 0;
}

static bool take_number(struct reader *r, uint64_t most, uint64_t *value)
{
	struct word word = take_word(r);
	return (read_number(word, value) && *value <= most) ||
	       refuse_word(r, word, "a number in the range of its place");
}

/* --- instructions --- */

static const struct vta_field *find_field(int sets, struct word name)
{
	for (int i = 1; i < vta_field_count; i++)
		if (vta_fields[i].set & sets && is_word(name, vta_fields[i].name))
			return &vta_fields[i];
	return NULL;
}

/* A flag, or NAME=NUMBER. */
static bool read_field(struct reader *r, struct vta_insn *insn, struct word word)
{
	const char *equals = memchr(word.at, '=', word.n);
	struct word name = {word.at, equals ? (size_t)(equals - word.at) : word.n};
	const struct vta_field *field = find_field(vta_sets_of(insn->opcode), name);
	if (!field || !equals != (field->width == 1))
		return refuse_word(r, word, "a field of this instruction");
	uint64_t value = 1;
	bool negative = equals && equals + 1 < word.at + word.n && equals[1] == '-';
	if (equals) {
		const char *digits = equals + 1 + negative;
		if (!read_number((struct word){digits, (size_t)(word.at + word.n - digits)}, &value) ||
		    value > UINT32_MAX)
			return refuse_word(r, word, "a field and its value");
	}
	uint32_t bits = negative ? (uint32_t)-value : (uint32_t)value;
	if (!vta_field_fits(field, bits) || (negative && value > 1u << 15))
		return refuse_word(r, word, "a value that the field holds");
	vta_field_set(insn, field, bits);
	return true;
}

/* The value of a name; -1 = there is none. */
static int find_name(const char *name_of(uint32_t), struct word word)
{
	for (int i = 0; i < 8; i++)
		if (is_word(word, name_of((uint32_t)i)))
			return i;
	return -1;
}

/* A memory may stand where fields do, and so may the operation of an ALU instruction. */
static bool read_member(struct reader *r, struct vta_insn *insn, struct word word)
{
	int sets = vta_sets_of(insn->opcode);
	int memory = sets & VTA_SET_MOVE ? find_name(vta_memory_name, word) : -1;
	int operation = sets & VTA_SET_ALU ? find_name(vta_alu_name, word) : -1;
	if (memory >= 0)
		insn->memory = (uint32_t)memory;
	else if (operation >= 0)
		insn->operation = (uint32_t)operation;
	else
		return read_field(r, insn, word);
	return true;
}

static bool read_insn(struct reader *r, struct word first, int opcode)
{
	struct vta_insn insn = {.opcode = (uint32_t)opcode};
	for (struct word word; (word = take_word(r)).n;)
		if (!read_member(r, &insn, word))
			return false;
	if (r->insns.n == VTA_INSNS_LIMIT)
		return refuse_word(r, first, "one of the instructions that a stream may have");
	vec_push(r->arena, &r->insns, insn);
	return true;
}

/* --- memory --- */

static bool read_uop(struct reader *r, uint8_t *to)
{
	uint64_t dst, src, wgt;
	if (!take_number(r, 2047, &dst) || !take_number(r, 2047, &src) || !take_number(r, 1023, &wgt))
		return false;
	vta_put_u32(to, vta_encode_uop((struct vta_uop){(uint32_t)dst, (uint32_t)src, (uint32_t)wgt}));
	return true;
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_cell(struct reader *r, uint8_t *to)
{
	struct word word = take_word(r);
	bool good = word.n == 2 * VTA_CELL;
	for (int i = 0; i < VTA_CELL && good; i++) {
		int high = digit_of(word.at[2 * i]), low = digit_of(word.at[2 * i + 1]);
		good = high >= 0 && low >= 0;
		to[i] = good ? (uint8_t)(high * 16 + low) : 0;
	}
	return good || refuse_word(r, word, "sixteen bytes in hexadecimal digits");
}

/* Data stand in lines below the segment, a micro-op or sixteen bytes in each.  So memory is taken as lines
 * come, not as the segment claims. */
static bool read_data(struct reader *r, struct vta_segment *segment)
{
	bool uops = segment->role == VTA_ROLE_UOPS;
	uint64_t step = uops ? 4 : VTA_CELL;
	VEC(uint8_t) data = {0};
	for (uint64_t at = 0; at < segment->bytes; at += step) {
		uint8_t bytes[VTA_CELL] = {0};
		if (!next_line(r))
			return refuse_word(r, take_word(r), "the data of the segment");
		if (!(uops ? read_uop(r, bytes) : read_cell(r, bytes)) || !end_line(r))
			return false;
		for (uint64_t i = 0; i < step; i++)
			vec_push(r->arena, &data, bytes[i]);
	}
	segment->data = data.at;
	return true;
}

static bool read_segment(struct reader *r, int role)
{
	struct vta_segment segment = {.role = (enum vta_role)role};
	struct word name = take_word(r);
	if (!name.n || name.n >= VTA_NAME_BYTES)
		return refuse_word(r, name, "a name of at most 31 bytes");
	memcpy(segment.name, name.at, name.n);
	if (!take_number(r, VTA_MEMORY_LIMIT, &segment.begin) ||
	    !take_number(r, VTA_MEMORY_LIMIT, &segment.bytes))
		return false;
	if (segment.bytes % VTA_CELL)
		return refuse_word(r, name, "a segment of whole cells of 16 bytes");
	if ((role == VTA_ROLE_UOPS || role == VTA_ROLE_CONSTANT) && (!end_line(r) || !read_data(r, &segment)))
		return false;
	vec_push(r->arena, &r->segments, segment);
	return true;
}

static bool read_line(struct reader *r)
{
	struct word word = take_word(r);
	if (!word.n)
		return true;
	int opcode = find_name(vta_opcode_name, word), role = find_name(vta_role_name, word);
	bool good;
	if (opcode >= 0)
		good = read_insn(r, word, opcode);
	else if (role >= 0)
		good = read_segment(r, role);
	else if (is_word(word, "memory") && !r->sized)
		good = r->sized = take_number(r, VTA_MEMORY_LIMIT, &r->bytes);
	else
		return refuse_word(r, word, "an instruction, a segment, or 'memory' for the first time");
	return good && end_line(r);
}

bool vta_parse(struct arena *a, struct diags *diags, const char *file, const char *text,
	       struct vta_stream *out)
{
	struct reader r = {
	    .arena = a, .diags = diags, .file = file, .at = text, .line_begin = text, .line = 1};
	do {
		if (!read_line(&r))
			return false;
	} while (next_line(&r));
	*out = (struct vta_stream){r.insns.at, r.insns.n, r.segments.at, r.segments.n, r.bytes};
	return vta_check_memory(diags, file, out);
}
