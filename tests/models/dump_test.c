/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loops that are dumped after any pass are a text that is read again: as the same loops, and as legal
 * ones. */
#include "ilir/passes.h"
#include "tests/models/helper.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/ra/good/childsum.ra", "D=13 E=10 V=30"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},
};

/* Dumps begin with a comment, which is no part of the module. */
static bool reads_back(struct test_model *t, const char *text, unsigned properties)
{
	struct str again = str_in(&t->arena);
	const char *module = text[0] == '#' ? strchr(text, '\n') + 1 : text;
	struct ilir_module *m = ilir_parse(&t->arena, &t->diags, "dump", text, strlen(text));
	bool ok = m && ilir_verify(m, properties, "dump", &t->diags);
	print_diags(&t->diags);
	if (m)
		ilir_print(m, &again);
	return ok && strcmp(str_text(&again), module) == 0;
}

static void test_stage(struct test_model *t, const char *model, const char *stage, unsigned properties)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	struct str s = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, &s);
	print_diags(&t->diags);
	tap_ok(ok && reads_back(t, str_text(&s), properties), "%s after %s", model, stage);
}

static void test_stages(struct test_model *t, const char *model)
{
	unsigned properties = 0;
	test_stage(t, model, "lower", 0);
	for (int i = 0; ilir_pass_at(i); i++) {
		properties |= ilir_pass_at(i)->establishes;
		test_stage(t, model, ilir_pass_at(i)->name, properties);
	}
	test_stage(t, model, "ilir", properties);
}

static void test_model(const char *path, const char *sizes)
{
	struct test_model t = {0};
	jmp_buf jump;
	if (tap_ok(load_model(&t, path, sizes) && !arena_guard(&t.arena, &jump), "%s parsed", path))
		test_stages(&t, path);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(models[i].path, models[i].sizes);
	return tap_done();
}
