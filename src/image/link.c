/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/linking.h"

#include "base/vec.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "objects are read as they lie in memory");

/* Not in every <elf.h>. */
enum { UNWIND_X86_64 = 0x70000001, LLVM_ADDRESS_SIGNIFICANCE = 0x6fff4c03 };

__attribute__((format(printf, 2, 3))) static bool refuse_object(const struct linking *l, const char *format,
								...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(l->output->problem, sizeof l->output->problem, format, args);
	va_end(args);
	return false;
}

bool link_has_bytes(const struct linking *l, uint64_t offset, uint64_t bytes)
{
	return offset <= l->bytes && bytes <= l->bytes - offset;
}

/* --- relocations --- */

static bool put_relative32(unsigned char *at, int64_t place, int64_t target)
{
	int32_t distance = target - place;
	memcpy(at, &distance, sizeof distance);
	return distance == target - place;
}

static bool put_relative64(unsigned char *at, int64_t place, int64_t target)
{
	int64_t distance = target - place;
	memcpy(at, &distance, sizeof distance);
	return true;
}

/* AArch64: the field of an instruction, `bits` wide from bit `at`. */
static bool put_field(unsigned char *instruction, int64_t value, int bits, int at)
{
	uint32_t word, mask = (uint32_t)((1ull << bits) - 1);
	memcpy(&word, instruction, sizeof word);
	word = (word & ~(mask << at)) | ((uint32_t)value & mask) << at;
	memcpy(instruction, &word, sizeof word);
	return true;
}

static bool fits_signed(int64_t value, int bits)
{
	return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1);
}

/* b, bl: the distance in words. */
static bool put_branch26(unsigned char *at, int64_t place, int64_t target)
{
	int64_t distance = target - place;
	return distance % 4 == 0 && fits_signed(distance / 4, 26) && put_field(at, distance / 4, 26, 0);
}

/* adrp: the distance in pages of 4096 bytes, the low two bits in a field of their own. */
static bool put_page21(unsigned char *at, int64_t place, int64_t target)
{
	int64_t pages = (target >> 12) - (place >> 12);
	return fits_signed(pages, 21) && put_field(at, pages, 2, 29) && put_field(at, pages >> 2, 19, 5);
}

/* adr, and loads relative to their place: the distance in bytes, or in words. */
static bool put_address21(unsigned char *at, int64_t place, int64_t target)
{
	int64_t distance = target - place;
	return fits_signed(distance, 21) && put_field(at, distance, 2, 29) &&
	       put_field(at, distance >> 2, 19, 5);
}

static bool put_literal19(unsigned char *at, int64_t place, int64_t target)
{
	int64_t distance = target - place;
	return distance % 4 == 0 && fits_signed(distance / 4, 19) && put_field(at, distance / 4, 19, 5);
}

/* The offset of an address in its page, in units of the element that is loaded or stored. */
static bool put_in_page(unsigned char *at, int64_t target, int unit)
{
	int64_t rest = target & 4095;
	return rest % unit == 0 && put_field(at, rest / unit, 12, 10);
}

#define PUT_IN_PAGE(unit)                                                                                    \
	static bool put_in_page##unit(unsigned char *at, int64_t place, int64_t target)                      \
	{                                                                                                    \
		(void)place;                                                                                 \
		return put_in_page(at, target, unit);                                                        \
	}
PUT_IN_PAGE(1)
PUT_IN_PAGE(2)
PUT_IN_PAGE(4)
PUT_IN_PAGE(8)
PUT_IN_PAGE(16)

/* Relocations that can be resolved before the blob has an address, which begins at a page of 4096 bytes or
 * more. `put` writes the distance from `place` to `target`, both offsets in the blob; false when the field is
 * too narrow. */
static const struct relocation {
	unsigned machine, type, bytes;
	bool (*put)(unsigned char *at, int64_t place, int64_t target);
} relocations[] = {
    {EM_X86_64, R_X86_64_PC32, 4, put_relative32},
    {EM_X86_64, R_X86_64_PLT32, 4, put_relative32},
    {EM_X86_64, R_X86_64_PC64, 8, put_relative64},
    {EM_AARCH64, R_AARCH64_PREL32, 4, put_relative32},
    {EM_AARCH64, R_AARCH64_PREL64, 8, put_relative64},
    {EM_AARCH64, R_AARCH64_LD_PREL_LO19, 4, put_literal19},
    {EM_AARCH64, R_AARCH64_ADR_PREL_LO21, 4, put_address21},
    {EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, 4, put_page21},
    {EM_AARCH64, R_AARCH64_ADD_ABS_LO12_NC, 4, put_in_page1},
    {EM_AARCH64, R_AARCH64_LDST8_ABS_LO12_NC, 4, put_in_page1},
    {EM_AARCH64, R_AARCH64_LDST16_ABS_LO12_NC, 4, put_in_page2},
    {EM_AARCH64, R_AARCH64_LDST32_ABS_LO12_NC, 4, put_in_page4},
    {EM_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, 4, put_in_page8},
    {EM_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, 4, put_in_page16},
    {EM_AARCH64, R_AARCH64_JUMP26, 4, put_branch26},
    {EM_AARCH64, R_AARCH64_CALL26, 4, put_branch26},
};

static const struct relocation *find_relocation(unsigned machine, unsigned type)
{
	for (size_t i = 0; i < sizeof relocations / sizeof *relocations; i++)
		if (relocations[i].machine == machine && relocations[i].type == type)
			return &relocations[i];
	return NULL;
}

static bool knows_machine(unsigned machine)
{
	for (size_t i = 0; i < sizeof relocations / sizeof *relocations; i++)
		if (relocations[i].machine == machine)
			return true;
	return false;
}

/* --- sections --- */

static bool read_header(struct linking *l)
{
	Elf64_Ehdr h;
	if (!link_has_bytes(l, 0, sizeof h))
		return refuse_object(l, "it is shorter than the header of an object");
	memcpy(&h, l->object, sizeof h);
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_type != ET_REL)
		return refuse_object(l, "it is not a relocatable 64-bit little-endian ELF object");
	if (!knows_machine(h.e_machine))
		return refuse_object(l, "it is for machine %u of ELF, which cannot be linked here",
				     h.e_machine);
	if (h.e_shentsize != sizeof(Elf64_Shdr) || !h.e_shnum ||
	    !link_has_bytes(l, h.e_shoff, h.e_shnum * sizeof(Elf64_Shdr)))
		return refuse_object(l, "its table of sections lies outside of it");
	if (l->output->machine && l->output->machine != h.e_machine)
		return refuse_object(l, "its objects are for different machines");
	l->output->machine = h.e_machine;
	l->sections = h.e_shnum;
	l->names = h.e_shstrndx;
	l->section = arena_copy(l->arena, l->object + h.e_shoff, h.e_shnum * sizeof(Elf64_Shdr));
	l->place = ARENA_ARRAY(l->arena, int64_t, l->sections);
	memset(l->place, 0xff, l->sections * sizeof *l->place);
	return true;
}

/* Sections that do not matter to code that neither throws nor is debugged. */
static bool is_ignored(const Elf64_Shdr *s)
{
	static const Elf64_Word types[] = {SHT_NULL,  SHT_SYMTAB, SHT_STRTAB,	 SHT_RELA,
					   SHT_GROUP, SHT_NOTE,	  UNWIND_X86_64, LLVM_ADDRESS_SIGNIFICANCE};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (s->sh_type == types[i])
			return true;
	bool content = s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS;
	return content && (!(s->sh_flags & SHF_ALLOC) || !s->sh_size);
}

/* Counts the bytes of a section; false when sections use more than the object has. */
static bool use_bytes(struct linking *l, const Elf64_Shdr *s)
{
	if (!link_has_bytes(l, s->sh_offset, s->sh_size) || s->sh_size > l->bytes - l->used)
		return false;
	l->used += s->sh_size;
	return true;
}

/* A terminated text of a table of strings, "" when there is none. */
static const char *text_at(const struct linking *l, unsigned table, uint64_t offset)
{
	const Elf64_Shdr *s = table < l->sections ? &l->section[table] : NULL;
	if (!s || s->sh_type != SHT_STRTAB || !link_has_bytes(l, s->sh_offset, s->sh_size) ||
	    offset >= s->sh_size)
		return "";
	const char *text = (const char *)l->object + s->sh_offset;
	return text[s->sh_size - 1] ? "" : text + offset;
}

const char *link_section_name(const struct linking *l, unsigned section)
{
	return text_at(l, l->names, l->section[section].sh_name);
}

/* Whether a section is call frame information, which is no code. */
static bool has_frames(const struct linking *l, unsigned i)
{
	const Elf64_Shdr *s = &l->section[i];
	return (s->sh_type == SHT_PROGBITS || s->sh_type == UNWIND_X86_64) && s->sh_size && !(s->sh_flags & SHF_EXECINSTR) &&
	       strcmp(link_section_name(l, i), ".eh_frame") == 0;
}

/* Places a section of code or constants behind those before it. */
static bool place_section(struct linking *l, unsigned i)
{
	struct output *w = l->output;
	const Elf64_Shdr *s = &l->section[i];
	const char *name = link_section_name(l, i);
	uint64_t alignment = s->sh_addralign ? s->sh_addralign : 1;
	if (has_frames(l, i) || is_ignored(s))
		return true;
	if (s->sh_type != SHT_PROGBITS || s->sh_flags & (SHF_WRITE | SHF_TLS))
		return refuse_object(l, "section %u (%.40s) is neither code nor constants", i, name);
	if (!use_bytes(l, s))
		return refuse_object(l, "section %u (%.40s) lies outside of it", i, name);
	if (alignment > IMAGE_BLOB_ALIGNMENT || alignment & (alignment - 1))
		return refuse_object(l, "section %u (%.40s) is aligned to %llu bytes", i, name,
				     (unsigned long long)alignment);
	l->place[i] = (w->size + alignment - 1) / alignment * alignment;
	w->size = l->place[i] + s->sh_size;
	w->alignment = (int64_t)alignment > w->alignment ? (int64_t)alignment : w->alignment;
	return w->size <= IMAGE_BLOB_LIMIT ||
	       refuse_object(l, "it holds more than %d bytes", IMAGE_BLOB_LIMIT);
}

static bool lay_out(struct linking *l)
{
	for (unsigned i = 0; i < l->sections; i++) {
		if (!place_section(l, i))
			return false;
		l->symbols = l->section[i].sh_type == SHT_SYMTAB ? i : l->symbols;
	}
	return true;
}

/* Places call frame information behind all code, without gaps: a zero would end it.  Code runs without it, so
 * what is too large is left out. */
static bool place_frames(struct linking *l, unsigned i)
{
	struct output *w = l->output;
	const Elf64_Shdr *s = &l->section[i];
	if (!has_frames(l, i) || s->sh_size > (uint64_t)(IMAGE_BLOB_LIMIT - w->size))
		return true;
	if (!use_bytes(l, s))
		return refuse_object(l, "section %u (.eh_frame) lies outside of it", i);
	l->place[i] = w->size;
	w->size += s->sh_size;
	return true;
}

static void copy_sections(const struct linking *l)
{
	for (unsigned i = 0; i < l->sections; i++)
		if (l->place[i] >= 0)
			memcpy(l->output->blob + l->place[i], l->object + l->section[i].sh_offset,
			       l->section[i].sh_size);
}

/* --- symbols --- */

bool link_read_entry(const struct linking *l, unsigned table, Elf64_Word type, uint64_t i, void *to,
		     size_t size)
{
	const Elf64_Shdr *s = table < l->sections ? &l->section[table] : NULL;
	if (!s || s->sh_type != type || s->sh_entsize != size ||
	    !link_has_bytes(l, s->sh_offset, s->sh_size) || i >= s->sh_size / size)
		return false;
	memcpy(to, l->object + s->sh_offset + i * size, size);
	return true;
}

int64_t link_symbol_place(const struct linking *l, const Elf64_Sym *s)
{
	unsigned in = s->st_shndx, type = ELF64_ST_TYPE(s->st_info);
	if (in == SHN_UNDEF || in >= l->sections || l->place[in] < 0 || type == STT_TLS ||
	    type == STT_GNU_IFUNC || s->st_value > l->section[in].sh_size)
		return -1;
	return l->place[in] + (int64_t)s->st_value;
}

static bool find_function_symbol(const struct linking *l, const char *name, Elf64_Sym *s)
{
	for (uint64_t k = 0; link_read_entry(l, l->symbols, SHT_SYMTAB, k, s, sizeof *s); k++)
		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && link_symbol_place(l, s) >= 0 &&
		    l->section[s->st_shndx].sh_flags & SHF_EXECINSTR &&
		    s->st_value < l->section[s->st_shndx].sh_size &&
		    strcmp(text_at(l, l->section[l->symbols].sh_link, s->st_name), name) == 0)
			return true;
	return false;
}

/* Where the function of that name begins, -1 = there is none. */
static int64_t find_function(const struct linking *l, const char *name)
{
	Elf64_Sym s;
	return find_function_symbol(l, name, &s) ? link_symbol_place(l, &s) : -1;
}

/* The same of all objects, the first of which counts. */
static int64_t find_function_anywhere(const struct output *w, const char *name)
{
	int64_t place = -1;
	for (int i = 0; i < w->objects && place < 0; i++)
		place = find_function(&w->linking[i], name);
	return place;
}

/* The place of a symbol, which is another object's if this one has it not. */
static int64_t target_place(const struct linking *l, const Elf64_Sym *s)
{
	const char *name = text_at(l, l->section[l->symbols].sh_link, s->st_name);
	return s->st_shndx == SHN_UNDEF && *name ? find_function_anywhere(l->output, name)
						 : link_symbol_place(l, s);
}

/* Targets of relocations are nearer than this, so that differences of places do not overflow. */
#define FARTHEST ((int64_t)1 << 40)

/* One relocation of section `in`. */
static bool apply_relocation(struct linking *l, unsigned in, const Elf64_Rela *r)
{
	const struct relocation *kind = find_relocation(l->output->machine, ELF64_R_TYPE(r->r_info));
	Elf64_Sym symbol;
	int64_t target;
	if (!kind)
		return refuse_object(
		    l, "section %u has a relocation of type %u, which is not relative to its place", in,
		    (unsigned)ELF64_R_TYPE(r->r_info));
	if (r->r_offset > l->section[in].sh_size || kind->bytes > l->section[in].sh_size - r->r_offset)
		return refuse_object(l, "section %u has a relocation outside of it", in);
	if (!link_read_entry(l, l->symbols, SHT_SYMTAB, ELF64_R_SYM(r->r_info), &symbol, sizeof symbol))
		return refuse_object(l, "section %u has a relocation against no symbol", in);
	int64_t place = l->place[in] + (int64_t)r->r_offset, at = target_place(l, &symbol);
	if (at < 0)
		return refuse_object(l, "it imports '%.80s'",
				     text_at(l, l->section[l->symbols].sh_link, symbol.st_name));
	if (__builtin_add_overflow(at, r->r_addend, &target) || target < -FARTHEST || target > FARTHEST ||
	    !kind->put(l->output->blob + place, place, target))
		return refuse_object(l, "section %u refers to a place that is too far away", in);
	return true;
}

static bool relocate_section(struct linking *l, unsigned i)
{
	const Elf64_Shdr *s = &l->section[i];
	bool ok = true;
	if (s->sh_type != SHT_RELA || s->sh_info >= l->sections || l->place[s->sh_info] < 0)
		return true;
	Elf64_Rela r;
	if (s->sh_entsize != sizeof r || !use_bytes(l, s))
		return refuse_object(l, "relocations of section %u lie outside of it", s->sh_info);
	if (s->sh_link != l->symbols)
		return refuse_object(l, "relocations of section %u have no symbols", s->sh_info);
	for (uint64_t k = 0; ok && link_read_entry(l, i, SHT_RELA, k, &r, sizeof r); k++)
		ok = apply_relocation(l, s->sh_info, &r);
	return ok;
}

static bool relocate_all(struct linking *l)
{
	for (unsigned i = 0; i < l->sections; i++)
		if (!relocate_section(l, i))
			return false;
	return true;
}

static bool find_kernels(const struct linking *l, int kernels, const char *const *name, int64_t *place)
{
	for (int i = 0; i < kernels; i++) {
		place[i] = find_function_anywhere(l->output, name[i]);
		if (place[i] < 0)
			return refuse_object(l, "it has no function '%.80s'", name[i]);
	}
	return true;
}

/* --- all objects --- */

enum { FRAME_ALIGNMENT = 8, FRAME_END = 4 };

static bool lay_out_frames(struct linking *l, int objects)
{
	struct output *w = l->output;
	w->size = (w->size + FRAME_ALIGNMENT - 1) / FRAME_ALIGNMENT * FRAME_ALIGNMENT;
	w->frames = w->size;
	for (int i = 0; i < objects; i++)
		for (unsigned k = 0; k < l[i].sections; k++)
			if (!place_frames(&l[i], k))
				return false;
	w->size += FRAME_END;
	return true;
}

static bool lay_out_all(struct linking *l, int objects)
{
	for (int i = 0; i < objects; i++)
		if (!read_header(&l[i]) || !lay_out(&l[i]))
			return false;
	l->output->code = l->output->size;
	return lay_out_frames(l, objects);
}

static bool resolve_all(struct linking *l, int objects)
{
	l->output->blob = arena_take(l->arena, l->output->size, 1);
	for (int i = 0; i < objects; i++) {
		copy_sections(&l[i]);
		if (!relocate_all(&l[i]))
			return false;
	}
	return true;
}

/* Leaves out call frame information that has another form than is used here. */
static void keep_frames(const struct output *w, struct image_blob *blob)
{
	struct image_frames frames = {w->blob + w->frames, w->size - w->frames, w->frames};
	if (frames.size > FRAME_END && image_check_frames(&frames, w->code)) {
		blob->frames = w->frames;
		blob->frame_bytes = frames.size;
	} else {
		blob->size = w->code;
	}
}

/* --- functions --- */

/* The name of the function at a place: a kernel's, or that of a symbol. */
static const char *name_at(const struct output *w, const struct image_blob *blob, const char *const *kernel,
			   int64_t place)
{
	Elf64_Sym s;
	for (int i = 0; i < blob->kernels; i++)
		if (blob->kernel[i] == place)
			return kernel[i];
	for (int i = 0; i < w->objects; i++) {
		const struct linking *l = &w->linking[i];
		for (uint64_t k = 0; link_read_entry(l, l->symbols, SHT_SYMTAB, k, &s, sizeof s); k++)
			if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && link_symbol_place(l, &s) == place)
				return text_at(l, l->section[l->symbols].sh_link, s.st_name);
	}
	return "";
}

/* Every function has call frame information. */
static void list_functions(struct arena *arena, const struct output *w, struct image_blob *blob,
			   const char *const *kernel)
{
	struct image_frames frames = {blob->bytes + blob->frames, blob->frame_bytes, blob->frames};
	VEC(struct image_symbol) list = {0};
	struct image_symbol f;
	int64_t at = 0;
	while (blob->frame_bytes && image_next_frame(&frames, &at, &f.place, &f.bytes)) {
		f.name = arena_string(arena, name_at(w, blob, kernel, f.place));
		vec_push(arena, &list, f);
	}
	blob->functions = list.n;
	blob->function = list.at;
}

bool image_link(struct arena *arena, const struct image_object *object, int objects, const char *what,
		int kernels, const char *const *name, struct image_blob *blob, struct diags *diags)
{
	struct output w = {.alignment = 1};
	struct linking *l = ARENA_ARRAY(arena, struct linking, objects + 1);
	int64_t *place = ARENA_ARRAY(arena, int64_t, kernels);
	w.linking = l;
	w.objects = objects;
	for (int i = 0; i <= objects; i++)
		l[i] = (struct linking){.arena = arena, .output = &w};
	for (int i = 0; i < objects; i++) {
		l[i].object = object[i].bytes;
		l[i].bytes = object[i].size;
	}
	if (lay_out_all(l, objects) && resolve_all(l, objects) &&
	    find_kernels(l, kernels, name, place)) {
		*blob = (struct image_blob){.bytes = w.blob,
					    .size = w.size,
					    .alignment = w.alignment,
					    .machine = w.machine,
					    .kernels = kernels,
					    .kernel = place};
		keep_frames(&w, blob);
		list_functions(arena, &w, blob, name);
		blob->lines = link_read_lines(arena, l, objects, &blob->line);
		return true;
	}
	return diag_add(
	    diags, DIAG_COMPILE_FAILED, (struct diag_at){0},
	    "this is a fault of the back end, not of the model: please report it; another target or "
	    "back end may do meanwhile",
	    "the object made of '%s' cannot be linked: %s", what, w.problem);
}

int64_t image_function_bytes(struct arena *arena, struct image_object object, const char *name)
{
	struct output w = {.alignment = 1};
	struct linking l = {.arena = arena, .output = &w, .object = object.bytes, .bytes = object.size};
	Elf64_Sym s;
	return read_header(&l) && lay_out(&l) && find_function_symbol(&l, name, &s) ? (int64_t)s.st_size : 0;
}

/* The relocations of call frame information only refer to the object itself. */
static bool relocate_frames(struct linking *l)
{
	for (unsigned i = 0; i < l->sections; i++)
		if (l->section[i].sh_type == SHT_RELA && l->section[i].sh_info < l->sections &&
		    has_frames(l, l->section[i].sh_info) && !relocate_section(l, i))
			return false;
	return true;
}

bool image_describe_function(struct arena *arena, struct image_object object, const char *name,
			     struct image_blob *blob)
{
	struct output w = {.alignment = 1};
	struct linking l = {.arena = arena, .output = &w, .object = object.bytes, .bytes = object.size};
	int64_t *place = ARENA_NEW(arena, int64_t);
	Elf64_Sym s;
	w.linking = &l;
	w.objects = 1;
	*blob = (struct image_blob){.kernels = 1, .kernel = place};
	if (!lay_out_all(&l, 1) || !find_function_symbol(&l, name, &s))
		return false;
	w.blob = arena_take(arena, w.size, 1);
	copy_sections(&l);
	blob->bytes = w.blob;
	blob->size = w.size;
	*place = link_symbol_place(&l, &s);
	if (relocate_frames(&l))
		keep_frames(&w, blob);
	blob->lines = link_read_lines(arena, &l, 1, &blob->line);
	return true;
}
