/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a compiled program depends on, as one text. */
#include "base/cpu.h"
#include "compile/cache.h"
#include "io/file.h"
#include "jit/jit.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

/* --- this library --- */

/* The loaded object that holds an address, and its build-id. */
struct search {
	uintptr_t address;
	const unsigned char *id; /* NULL = it has none */
	size_t bytes;
};

static bool contains_address(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && address >= begin && address - begin < p->p_memsz)
			return true;
	}
	return false;
}

static size_t whole_words(size_t n)
{
	return (n + 3) / 4 * 4;
}

static void find_id(struct search *s, const unsigned char *at, size_t left)
{
	ElfW(Nhdr) n;
	while (left >= sizeof n) {
		memcpy(&n, at, sizeof n);
		size_t name = whole_words(n.n_namesz), bytes = whole_words(n.n_descsz);
		if (name > left - sizeof n || bytes > left - sizeof n - name)
			return;
		at += sizeof n;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(at, "GNU", 4) == 0) {
			s->id = at + name;
			s->bytes = n.n_descsz;
		}
		at += name + bytes;
		left -= sizeof n + name + bytes;
	}
}

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *s = context;
	(void)size;
	if (!contains_address(info, s->address))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			find_id(s, (const unsigned char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
				info->dlpi_phdr[i].p_memsz);
	return 1;
}

/* Adds the path, size and time of a file, which change when the file does. */
static bool add_file(struct str *s, const char *what, const char *path)
{
	int64_t size, modified;
	if (!path || !io_stat(path, &size, &modified))
		return false;
	str_printf(s, "%s %s %lld %lld\n", what, path, (long long)size, (long long)modified);
	return true;
}

/* Adds the build-id, a hash of the content; if there is none, the file of the library. */
static bool add_library(struct str *s)
{
	struct search search = {.address = (uintptr_t)&cache_key};
	dl_iterate_phdr(look_at, &search);
	Dl_info info;
	if (!search.id)
		return dladdr((void *)&cache_key, &info) && add_file(s, "library", info.dli_fname);
	str_puts(s, "library ");
	for (size_t i = 0; i < search.bytes; i++)
		str_printf(s, "%02x", search.id[i]);
	str_puts(s, "\n");
	return true;
}

/* --- options: a line or more for each; false if a dependency of the program cannot be read --- */

static bool put_number(struct str *s, const char *name, int64_t value)
{
	str_printf(s, "%s %lld\n", name, (long long)value);
	return true;
}

/* Writes the length before the text, so that no text can be mistaken for the lines after it. */
static bool put_text(struct str *s, const char *name, const char *text)
{
	str_printf(s, "%s %zu\n%s\n", name, strlen(text), text);
	return true;
}

static bool put_backend(struct str *s, const char *name, const char *backend)
{
	str_printf(s, "%s %s\n", name, backend);
	return add_file(s, "plug-in", jit_backend_path(s->arena, backend));
}

static bool put_target(struct str *s, const char *name, const struct target *target)
{
	str_printf(s, "%s %s %s\n", name, target->name, target->processor ? target->processor : "");
	return true;
}

/* Native code depends on all features of the processor. */
static bool put_native(struct str *s, const char *name, bool native)
{
	str_printf(s, "%s %d ", name, native);
	if (native)
		cpu_print(s);
	str_puts(s, "\n");
	return true;
}

/* machine: NULL = schedules are chosen by the description of the target, which is part of the library. */
static bool put_machine(struct str *s, const char *name, const struct machine_known *machine)
{
	str_puts(s, name);
	if (machine)
		describe_machine_for_key(s, machine);
	str_puts(s, "\n");
	return true;
}

static bool put_math(struct str *s, const char *name, enum rewrite_math math)
{
	str_printf(s, "%s %s\n", name, rewrite_math_spelling(math));
	return true;
}

static bool put_dtype(struct str *s, const char *name, enum dtype dtype)
{
	str_printf(s, "%s %s\n", name, dtype_traits_of(dtype)->spelling);
	return true;
}

static bool put_precision(struct str *s, const char *name, enum precision precision)
{
	str_printf(s, "%s %s\n", name, precision_traits_of(precision)->spelling);
	return true;
}

static bool put_calibration(struct str *s, const char *name, const struct rewrite_calibration *c)
{
	str_printf(s, "%s %zu%s\n", name, c ? c->n : 0, c && c->unfit ? " unfit" : "");
	for (size_t i = 0; c && i < c->n; i++)
		put_text(s, c->product[i].kept ? "kept" : "bounded", c->product[i].name);
	return true;
}

#define IN_KEY(member, print) known = known && (*print)(s, #member, o->member);
#define NOT_IN_KEY(member, why) _Static_assert(sizeof(why "") > 1, "say why " #member " is not in the key");

static bool add_options(struct str *s, const struct compile_options *o)
{
	bool known = true;
#define COMPILE_OPTION(type, member, KEY, how) KEY(member, how)
#include "compile/options.def"
#undef COMPILE_OPTION
	return known;
}

/* --- the program --- */

static void add_model(struct str *s, const struct ra_model *model, const int64_t *sizes)
{
	struct str text = str_in(s->arena);
	ra_print(model, &text);
	for (size_t i = 0; i < model->symbols.n; i++)
		str_printf(s, "%s %lld\n", model->symbols.at[i].name, (long long)sizes[i]);
	put_text(s, "model", str_text(&text));
	for (size_t i = 0; i < model->inputs.n; i++)
		if (model->inputs.at[i].source_name)
			put_text(s, "input", model->inputs.at[i].source_name);
	for (size_t i = 0; i < model->outputs.n; i++)
		if (model->outputs.at[i].source_name)
			put_text(s, "output", model->outputs.at[i].source_name);
}

const char *cache_key(struct arena *a, const struct ra_model *model, const int64_t *sizes,
		      const struct compile_options *o)
{
	struct str s = str_in(a);
	if (compile_interprets(o) || o->last_pass || !add_library(&s) || !add_options(&s, o))
		return NULL;
	add_model(&s, model, sizes);
	return str_text(&s);
}
