/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a compiled program depends on, as one text. */
#include "api/cache.h"
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

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
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
	if (!holds(info, s->address))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			find_id(s, (const unsigned char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
				info->dlpi_phdr[i].p_memsz);
	return 1;
}

/* A file by its path and what tells it from what it was. */
static bool add_file(struct str *s, const char *what, const char *path)
{
	int64_t size, modified;
	if (!path || !io_stat(path, &size, &modified))
		return false;
	str_printf(s, "%s %s %lld %lld\n", what, path, (long long)size, (long long)modified);
	return true;
}

/* The build-id is made of the content; without one, the file that was loaded has to do. */
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

/* --- the program --- */

static void add_target(struct str *s, const struct compile_options *o)
{
	const struct target *target = target_find(o->target);
	str_printf(s, "target %s %s", o->target, target ? target->name : "");
	if (target_is_native(o->target))
		describe_machine_for_key(s, o->machine);
	str_puts(s, "\n");
}

/* Texts are told with their lengths, so that no text can look like what follows it. */
static void add_text(struct str *s, const char *what, const char *text)
{
	str_printf(s, "%s %zu\n%s\n", what, text ? strlen(text) : 0, text ? text : "");
}

static void add_model(struct str *s, struct arena *a, const struct ra_model *model, const int64_t *sizes)
{
	struct str text = str_in(a);
	ra_print(model, &text);
	for (size_t i = 0; i < model->symbols.n; i++)
		str_printf(s, "%s %lld\n", model->symbols.at[i].name, (long long)sizes[i]);
	add_text(s, "model", str_text(&text));
}

const char *cache_key(struct arena *a, const struct ra_model *model, const int64_t *sizes,
		      const struct compile_options *o)
{
	struct str s = str_in(a);
	struct sub_options rewriting;
	struct diags unheard;
	diags_init(&unheard, a->allocator);
	bool known = compile_rewriting(o, &rewriting, &unheard);
	diags_free(&unheard);
	if (!known || strcmp(o->backend, "interpreter") == 0 || o->last_pass)
		return NULL;
	str_printf(&s, "backend %s\n", o->backend);
	if (!add_library(&s) || !add_file(&s, "plug-in", jit_backend_path(a, o->backend)))
		return NULL;
	add_target(&s, o);
	str_printf(&s, "at %d\nmath %s\nfamilies off %x\ntable bytes %lld\n", o->at,
		   sub_math_spelling(rewriting.math), rewriting.off, (long long)rewriting.table_bytes);
	add_text(&s, "schedule", o->schedule);
	add_model(&s, a, model, sizes);
	return str_text(&s);
}
