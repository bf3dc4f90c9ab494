/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Linking objects that were made by hand: what is right of them, what is refused and why, and that no byte
 * that is wrong does harm. */
#include "tests/image/object.h"

#include <stdlib.h>

static int32_t field_at(const struct image_blob *b, int64_t at)
{
	int32_t x;
	memcpy(&x, b->bytes + at, sizeof x);
	return x;
}

static void test_good(void)
{
	struct object o;
	struct linked l;
	make_object(&o);
	link_object(&l, &o, sizeof o);
	if (tap_ok(l.ok && !l.diags.n, "an object links")) {
		const struct image_blob *b = &l.blob;
		tap_ok(b->kernels == 2 && b->kernel[0] == 0 && b->kernel[1] == 16,
		       "kernels are found by name");
		tap_ok(b->size == 64 + 8 && b->alignment == 64,
		       "sections stand one after the other, aligned");
		tap_ok(memcmp(b->bytes, object_text, 7) == 0 && memcmp(b->bytes + 64, o.constant, 8) == 0,
		       "with what they hold");
		tap_ok(field_at(b, 7) == 64 + 4 - (7 + 4), "constants are reached from where they are used");
		tap_ok(field_at(b, 17) == 0 - (17 + 4), "and functions from where they are called");
		tap_ok(b->machine == EM_X86_64, "the machine is told");
	}
	free_linked(&l);
}

/* --- several objects --- */

/* The second kernel of each object has another name there. */
static bool link_two(struct linked *l, const struct object *a, const struct object *b)
{
	static const char *const kernels[] = {"first", "second"};
	struct image_object objects[] = {{a, sizeof *a}, {b, sizeof *b}};
	jmp_buf escape;
	arena_init(&l->arena, &allocator_default);
	diags_init(&l->diags, &allocator_default);
	return !arena_guard(&l->arena, &escape) &&
	       image_link(&l->arena, objects, 2, "hand", 2, kernels, &l->blob, &l->diags);
}

static void test_two(void)
{
	struct object a, b;
	struct linked l;
	make_object(&a);
	make_object(&b);
	a.symbol[S_SECOND].st_name = a.symbol[S_FIRST].st_name;
	b.symbol[S_FIRST].st_name = 0;
	if (tap_ok(link_two(&l, &a, &b), "two objects link")) {
		const struct image_blob *o = &l.blob;
		tap_ok(o->kernel[0] == 0 && o->kernel[1] == 80 + 16,
		       "each kernel is found in the object that has it");
		tap_ok(o->size == 128 + 8 && memcmp(o->bytes + 80, object_text, 7) == 0,
		       "objects stand one after the other, aligned");
		tap_ok(field_at(o, 80 + 7) == 128 + 4 - (80 + 7 + 4), "and refer to themselves");
	}
	free_linked(&l);
	b.symbol[S_FIRST] = (Elf64_Sym){.st_name = a.symbol[S_FIRST].st_name,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
	if (tap_ok(link_two(&l, &a, &b), "an object may call a function of another"))
		tap_ok(field_at(&l.blob, 80 + 17) == 0 - (80 + 17 + 4), "which is reached from there");
	free_linked(&l);
	b.header.e_machine = EM_S390;
	tap_ok(!link_two(&l, &a, &b) && l.diags.n == 1, "one that cannot be linked is refused");
	free_linked(&l);
}

/* --- what is refused --- */

static void other_class(struct object *o)
{
	o->header.e_ident[EI_CLASS] = ELFCLASS32;
}

static void other_order(struct object *o)
{
	o->header.e_ident[EI_DATA] = ELFDATA2MSB;
}

static void shared_object(struct object *o)
{
	o->header.e_type = ET_DYN;
}

static void other_machine(struct object *o)
{
	o->header.e_machine = EM_S390;
}

static void far_sections(struct object *o)
{
	o->header.e_shoff = (uint64_t)-64;
}

static void many_sections(struct object *o)
{
	o->header.e_shnum = 0xfff0;
}

static void no_sections(struct object *o)
{
	o->header.e_shnum = 0;
}

static void wide_sections(struct object *o)
{
	o->header.e_shentsize = 128;
}

static void writable(struct object *o)
{
	o->section[RODATA].sh_flags |= SHF_WRITE;
}

static void of_threads(struct object *o)
{
	o->section[RODATA].sh_flags |= SHF_TLS;
}

static void zeroed(struct object *o)
{
	o->section[RODATA].sh_type = SHT_NOBITS;
}

static void constructors(struct object *o)
{
	o->section[RODATA].sh_type = SHT_INIT_ARRAY;
}

static void unknown_section(struct object *o)
{
	o->section[COMMENT].sh_type = 0x40000014; /* compact relocations */
}

static void text_outside(struct object *o)
{
	o->section[TEXT].sh_offset = sizeof *o - 4;
}

static void text_endless(struct object *o)
{
	o->section[TEXT].sh_size = (uint64_t)-1;
}

static void shared_bytes(struct object *o)
{
	for (int i = TEXT; i <= RODATA; i++) {
		o->section[i].sh_offset = 0;
		o->section[i].sh_size = sizeof *o;
	}
}

static void odd_alignment(struct object *o)
{
	o->section[TEXT].sh_addralign = 48;
}

static void vast_alignment(struct object *o)
{
	o->section[TEXT].sh_addralign = 1 << 20;
}

static void absolute(struct object *o)
{
	o->rela[CONSTANT].r_info = ELF64_R_INFO((uint64_t)S_RODATA, R_X86_64_64);
}

static void by_table(struct object *o)
{
	o->rela[CONSTANT].r_info = ELF64_R_INFO((uint64_t)S_RODATA, R_X86_64_REX_GOTPCRELX);
}

static void place_outside(struct object *o)
{
	o->rela[CONSTANT].r_offset = sizeof o->text - 3;
}

static void place_far_outside(struct object *o)
{
	o->rela[CONSTANT].r_offset = (uint64_t)-2;
}

static void no_symbol(struct object *o)
{
	o->rela[CALL].r_info = ELF64_R_INFO((uint64_t)SYMBOLS, R_X86_64_PLT32);
}

static void null_symbol(struct object *o)
{
	o->rela[CALL].r_info = ELF64_R_INFO((uint64_t)S_NULL, R_X86_64_PLT32);
}

static void imported(struct object *o)
{
	o->symbol[S_FIRST].st_shndx = SHN_UNDEF;
}

static void absolute_symbol(struct object *o)
{
	o->symbol[S_FIRST].st_shndx = SHN_ABS;
}

static void common_symbol(struct object *o)
{
	o->symbol[S_FIRST].st_shndx = SHN_COMMON;
}

static void indirect(struct object *o)
{
	o->symbol[S_FIRST].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
}

static void symbol_outside(struct object *o)
{
	o->symbol[S_FIRST].st_value = sizeof o->text + 1;
}

static void symbol_in_comment(struct object *o)
{
	o->symbol[S_FIRST].st_shndx = COMMENT;
}

static void too_far(struct object *o)
{
	o->rela[CALL].r_addend = (int64_t)1 << 40;
}

static void beyond_numbers(struct object *o)
{
	o->rela[CALL].r_addend = INT64_MAX;
	o->symbol[S_FIRST].st_value = 16;
}

static void before_numbers(struct object *o)
{
	o->rela[CALL].r_addend = INT64_MIN;
}

static void relocations_outside(struct object *o)
{
	o->section[RELA].sh_offset = sizeof *o;
}

static void relocations_narrow(struct object *o)
{
	o->section[RELA].sh_entsize = 1;
}

static void relocations_alone(struct object *o)
{
	o->section[RELA].sh_link = STRTAB;
}

static void symbols_outside(struct object *o)
{
	o->section[SYMTAB].sh_offset = sizeof *o;
}

static void kernel_missing(struct object *o)
{
	o->symbol[S_SECOND].st_name = 8;
}

static void kernel_is_data(struct object *o)
{
	o->symbol[S_SECOND].st_shndx = RODATA;
	o->symbol[S_SECOND].st_value = 0;
}

static void kernel_at_end(struct object *o)
{
	o->symbol[S_SECOND].st_value = sizeof o->text;
}

static void names_without_end(struct object *o)
{
	o->section[STRTAB].sh_size--;
	o->strings[sizeof o->strings - 2] = 'x';
}

static const struct {
	const char *what;
	void (*bend)(struct object *);
	const char *says;
} refused[] = {
    {"32 bits", other_class, "not a relocatable"},
    {"big-endian", other_order, "not a relocatable"},
    {"a shared object", shared_object, "not a relocatable"},
    {"another machine", other_machine, "machine 22"},
    {"a table of sections outside", far_sections, "table of sections"},
    {"more sections than there are", many_sections, "table of sections"},
    {"no sections", no_sections, "table of sections"},
    {"wider sections", wide_sections, "table of sections"},
    {"data that can be written", writable, "neither code nor constants"},
    {"data of threads", of_threads, "neither code nor constants"},
    {"zeroed data", zeroed, "neither code nor constants"},
    {"constructors", constructors, "neither code nor constants"},
    {"a section of a kind not known", unknown_section, "neither code nor constants"},
    {"a section outside", text_outside, "(.text) lies outside"},
    {"a section without end", text_endless, "(.text) lies outside"},
    {"sections that share their bytes", shared_bytes, "lies outside"},
    {"an odd alignment", odd_alignment, "aligned to 48"},
    {"a vast alignment", vast_alignment, "aligned to 1048576"},
    {"an absolute relocation", absolute, "relocation of type 1,"},
    {"a relocation by a table", by_table, "relocation of type 42,"},
    {"a relocation that leaves its section", place_outside, "relocation outside"},
    {"a relocation far from its section", place_far_outside, "relocation outside"},
    {"a relocation against no symbol", no_symbol, "against no symbol"},
    {"a relocation against the null symbol", null_symbol, "imports ''"},
    {"an import", imported, "imports 'first'"},
    {"an absolute symbol", absolute_symbol, "imports 'first'"},
    {"a common symbol", common_symbol, "imports 'first'"},
    {"an indirect function", indirect, "imports 'first'"},
    {"a symbol outside of its section", symbol_outside, "imports 'first'"},
    {"a symbol of a section that is no part", symbol_in_comment, "imports 'first'"},
    {"a place that is too far", too_far, "too far away"},
    {"a place beyond numbers", beyond_numbers, "too far away"},
    {"a place before numbers", before_numbers, "too far away"},
    {"relocations outside", relocations_outside, "relocations of section 1"},
    {"relocations of another size", relocations_narrow, "relocations of section 1"},
    {"relocations without symbols", relocations_alone, "have no symbols"},
    {"symbols outside", symbols_outside, "against no symbol"},
    {"a kernel that is not there", kernel_missing, "no function 'second'"},
    {"a kernel that is data", kernel_is_data, "no function 'second'"},
    {"a kernel at the end of its section", kernel_at_end, "no function 'second'"},
    {"names without an end", names_without_end, "no function 'first'"},
};

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct object o;
		struct linked l;
		make_object(&o);
		refused[i].bend(&o);
		link_object(&l, &o, sizeof o);
		bool told = !l.ok && l.diags.n == 1 && l.diags.at[0].id == DIAG_COMPILE_FAILED &&
			    strstr(l.diags.at[0].message, refused[i].says) && l.diags.at[0].hint;
		if (!told)
			printf("# %s\n", l.diags.n ? l.diags.at[0].message : "it links");
		tap_ok(told, "refused: %s", refused[i].what);
		free_linked(&l);
	}
}

/* What GCC writes beside code. */
static void test_ignored(void)
{
	struct object o;
	struct linked l;
	make_object(&o);
	o.section[COMMENT].sh_flags = SHF_ALLOC;
	o.section[COMMENT].sh_name = 20;
	link_object(&l, &o, sizeof o);
	tap_ok(l.ok && l.blob.size == 72, "tables of unwinding are left out");
	free_linked(&l);
	o.section[COMMENT].sh_name = 0;
	o.section[COMMENT].sh_type = SHT_NOTE;
	link_object(&l, &o, sizeof o);
	tap_ok(l.ok && l.blob.size == 72, "and notes");
	free_linked(&l);
	o.section[COMMENT] = section_of(0, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0, 0);
	link_object(&l, &o, sizeof o);
	tap_ok(l.ok && l.blob.size == 72, "and empty sections, whatever they are for");
	free_linked(&l);
}

/* --- no harm --- */

/* Blocks of their exact size, so that reading past the end is seen by tools. */
static void link_copy(const struct object *o, size_t bytes, int *links)
{
	void *copy = malloc(bytes ? bytes : 1);
	struct linked l;
	memcpy(copy, o, bytes);
	link_object(&l, copy, bytes);
	*links += l.ok;
	free_linked(&l);
	free(copy);
}

static void test_harmless(void)
{
	struct object o;
	int links = 0;
	make_object(&o);
	for (size_t n = 0; n < sizeof o; n++)
		link_copy(&o, n, &links);
	tap_ok(!links, "no beginning of an object links");
	for (size_t i = 0; i < sizeof o; i++)
		for (int bit = 0; bit < 8; bit++) {
			((unsigned char *)&o)[i] ^= 1 << bit;
			link_copy(&o, sizeof o, &links);
			((unsigned char *)&o)[i] ^= 1 << bit;
		}
	tap_ok(links > 0, "any bit may be wrong; %d such objects link", links);
}

/* --- AArch64 --- */

/* An instruction at byte 8 that refers to the constants, at byte 64, and so many further; 0 = refused. */
static const struct {
	const char *what;
	unsigned type;
	int64_t further;
	uint32_t before, after;
} instructions[] = {
    {"b", R_AARCH64_JUMP26, 0, 0x14000000, 0x14000000 | 56 / 4},
    {"bl backwards", R_AARCH64_CALL26, -60, 0x94000000, 0x94000000 | (0x3ffffff & (-4 / 4))},
    {"bl between words", R_AARCH64_CALL26, 2, 0x94000000, 0},
    {"bl too far", R_AARCH64_CALL26, 1 << 28, 0x94000000, 0},
    {"adrp to its own page", R_AARCH64_ADR_PREL_PG_HI21, 0, 0x90000001, 0x90000001},
    {"adrp to the fifth after", R_AARCH64_ADR_PREL_PG_HI21, 5 * 4096, 0x90000001, 0xb0000021},
    {"adrp to the one before", R_AARCH64_ADR_PREL_PG_HI21, -4096, 0x90000001, 0xf0ffffe1},
    {"adrp too far", R_AARCH64_ADR_PREL_PG_HI21, (int64_t)1 << 33, 0x90000001, 0},
    {"adr", R_AARCH64_ADR_PREL_LO21, 1, 0x10000002, 0x300001c2},
    {"adr too far", R_AARCH64_ADR_PREL_LO21, 1 << 21, 0x10000002, 0},
    {"ldr from here", R_AARCH64_LD_PREL_LO19, 4, 0x9c000000, 0x9c0001e0},
    {"ldr from between words", R_AARCH64_LD_PREL_LO19, 1, 0x9c000000, 0},
    {"add", R_AARCH64_ADD_ABS_LO12_NC, 4096 + 5, 0x91000021, 0x91011421},
    {"ldr of a byte", R_AARCH64_LDST8_ABS_LO12_NC, 1, 0x39400000, 0x39410400},
    {"ldr of two", R_AARCH64_LDST16_ABS_LO12_NC, 2, 0x79400000, 0x79408400},
    {"ldr of four", R_AARCH64_LDST32_ABS_LO12_NC, 4, 0xbd400000, 0xbd404400},
    {"ldr of eight", R_AARCH64_LDST64_ABS_LO12_NC, 8, 0xfd400000, 0xfd402400},
    {"ldr of sixteen", R_AARCH64_LDST128_ABS_LO12_NC, 16, 0x3dc00000, 0x3dc01400},
    {"ldr of sixteen, not aligned", R_AARCH64_LDST128_ABS_LO12_NC, 8, 0x3dc00000, 0},
    {"a distance", R_AARCH64_PREL32, 4, 0, 60},
};

static void test_aarch64(void)
{
	for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
		struct object o;
		struct linked l;
		make_object(&o);
		o.header.e_machine = EM_AARCH64;
		memcpy(o.text + 8, &instructions[i].before, 4);
		o.rela[CALL] = (Elf64_Rela){16, ELF64_R_INFO((uint64_t)S_FIRST, R_AARCH64_CALL26), 0};
		o.rela[CONSTANT] = (Elf64_Rela){8, ELF64_R_INFO((uint64_t)S_RODATA, instructions[i].type),
						instructions[i].further};
		link_object(&l, &o, sizeof o);
		uint32_t after = l.ok ? (uint32_t)field_at(&l.blob, 8) : 0;
		tap_ok(l.ok == (instructions[i].after != 0) && after == instructions[i].after,
		       "aarch64, %s: %08x becomes %08x", instructions[i].what, instructions[i].before, after);
		free_linked(&l);
	}
}

int main(void)
{
	test_good();
	test_two();
	test_aarch64();
	test_refused();
	test_ignored();
	test_harmless();
	return tap_done();
}
