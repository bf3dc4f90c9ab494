/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The names of targets and processors are those of base/target.c wherever they are listed. */
#include "tests/options.h"
#include "tests/tap.h"

#include <string.h>

/* What the command offers. */
static const char *target_words(void)
{
	static const struct {
		const char *name, *words;
	} rows[] = {
#define OPTION(name, commands, kind, member, argument, most, help) {name, argument},
#include "tools/options.def"
#undef OPTION
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, "target-cpu") == 0)
			return rows[i].words;
	return "";
}

static void test_command(struct arena *a)
{
	struct str s = str_in(a);
	str_puts(&s, "native");
	for (int i = 0; target_at(i); i++)
		str_printf(&s, "|%s", target_at(i)->name);
	for (enum target_processor p = 0; target_processor_name(p); p++)
		str_printf(&s, "|%s", target_processor_name(p));
	tap_ok(strcmp(target_words(), str_text(&s)) == 0, "the command offers %s", str_text(&s));
}

static void test_library(struct arena *a)
{
	struct diags diags;
	struct option_texts texts = {.target = "pdp11"};
	diags_init(&diags, &allocator_default);
	tap_ok(!read_option_texts(a, &diags, &texts) && diags.n == 1 && diags.at[0].id == DIAG_BAD_ARGUMENT,
	       "a target that does not exist is refused");
	const char *at = diags.n ? strstr(diags.at[0].message, "native") : NULL;
	for (int i = 0; at && target_at(i); i++)
		at = strstr(at, target_at(i)->name);
	tap_ok(at, "the library names those that do, in their order");
	diags_free(&diags);
}

int main(void)
{
	struct arena arena;
	jmp_buf jump;
	arena_init(&arena, &allocator_default);
	if (!arena_guard(&arena, &jump)) {
		test_command(&arena);
		test_library(&arena);
	}
	arena_free(&arena);
	return tap_done();
}
