/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Keys of programs that are kept: the same for what makes the same program, another when anything is another. */
#include "base/cpu.h"
#include "compile/cache.h"
#include "tests/api/support.h"
#include "tests/backends.h"
#include "tests/options.h"

static struct option_texts usual = {.target = "native"}; /* with the usual back end */

static const char other_model[] = EMBEDDED("other", "tree(left, right)") "    h = W @ right.h\noutput last = h at root\n";

struct key_of {
	struct arena arena;
	const char *text;
};

static void make_key(struct key_of *k, const char *model, int64_t d, const struct option_texts *o)
{
	static jmp_buf escape;
	struct diags diags;
	int64_t sizes[2] = {4, d};
	diags_init(&diags, &allocator_default);
	arena_init(&k->arena, &allocator_default);
	k->text = NULL;
	if (!arena_guard(&k->arena, &escape)) {
		const struct ra_model *m = ra_parse(&k->arena, &diags, "m.ra", model, strlen(model));
		const struct compile_options *options = read_option_texts(&k->arena, &diags, o);
		k->text = m && options ? cache_key(&k->arena, m, sizes, options) : NULL;
	}
	diags_free(&diags);
}

/* Whether two programs share a key. */
static bool share(const char *model, int64_t d, struct option_texts o)
{
	struct key_of a, b;
	make_key(&a, tiny_model, 2, &usual);
	make_key(&b, model, d, &o);
	bool same = a.text && b.text && strcmp(a.text, b.text) == 0;
	arena_free(&a.arena);
	arena_free(&b.arena);
	return same;
}

static void test_keys(void)
{
	struct option_texts o = usual;
	char commented[sizeof tiny_model + 20] = "# why\n";
	strcat(commented, tiny_model);
	tap_ok(share(tiny_model, 2, o), "the same program has the same key");
	tap_ok(share(commented, 2, o), "comments are no part of it");
	tap_ok(!share(other_model, 2, o), "another model has another");
	tap_ok(!share(tiny_model, 3, o), "other sizes have another");
	o.at = ESP_AT_ROOT;
	tap_ok(!share(tiny_model, 2, o), "outputs at other places have another");
	o = usual;
	o.math = "reassociate", o.rules = "all", o.table_bytes = 64 << 20;
	tap_ok(share(tiny_model, 2, o), "what is done when nothing is said is the same when it is said");
	o.math = "exact";
	tap_ok(!share(tiny_model, 2, o), "stricter arithmetic has another");
	o = usual;
	o.weights_as = "f32";
	tap_ok(share(tiny_model, 2, o), "weights as the model says have the same");
	o.weights_as = "f16";
	tap_ok(!share(tiny_model, 2, o), "narrow weights have another");
	o = usual;
	o.precision = "f32";
	tap_ok(share(tiny_model, 2, o), "products in f32 have the same");
	o.precision = "i8";
	tap_ok(!share(tiny_model, 2, o), "products in integers have another");
	o = usual;
	o.assume = "nothing";
	tap_ok(share(tiny_model, 2, o), "nothing that is assumed has the same");
	o.assume = "finite";
	tap_ok(!share(tiny_model, 2, o), "an assumption has another");
	o = usual;
	o.accelerator = "host";
	tap_ok(share(tiny_model, 2, o), "what the host computes has the same");
	o.accelerator = "vta";
	tap_ok(!share(tiny_model, 2, o), "an accelerator has another");
	o.accelerator = "vta,-1";
	tap_ok(!share(tiny_model, 2, o), "and one that leaves a product to the host");
	o = usual;
	o.rules = "-tables";
	tap_ok(!share(tiny_model, 2, o), "other rules have another");
	o = usual;
	o.table_bytes = 1;
	tap_ok(!share(tiny_model, 2, o), "another budget for tables has another");
	o = usual;
	o.target = target_find("native")->name;
	tap_ok(!share(tiny_model, 2, o), "a target by name has another than this machine");
	o = usual;
	o.schedule = "vectorize 4";
	tap_ok(!share(tiny_model, 2, o), "another schedule has another");
}

static void test_key_text(const char *backend)
{
	struct option_texts o = {.backend = backend, .target = "native"};
	char begin[60], file[60];
	struct key_of native, generic, none;
	snprintf(begin, sizeof begin, "\nbackend %s\nplug-in /", backend);
	snprintf(file, sizeof file, "espalier-%s.so ", backend);
	make_key(&native, tiny_model, 2, &o);
	o.target = "generic";
	make_key(&generic, tiny_model, 2, &o);
	struct str cpu = str_in(&native.arena);
	cpu_print(&cpu);
	tap_ok(native.text && strstr(native.text, str_text(&cpu)) && cpu.n > 20,
	       "code for this machine names it");
	tap_ok(generic.text && !strstr(generic.text, str_text(&cpu)), "code for any machine does not");
	tap_ok(native.text && strncmp(native.text, "library ", 8) == 0 &&
		   strstr(native.text, begin) && strstr(native.text, file),
	       "library and plug-in are told, %s", backend);
	o.backend = "interpreter";
	make_key(&none, tiny_model, 2, &o);
	tap_ok(!none.text, "what is interpreted has no key");
	arena_free(&none.arena);
	o.backend = "nobody";
	make_key(&none, tiny_model, 2, &o);
	tap_ok(!none.text, "nor has what no back end makes");
	arena_free(&none.arena);
	arena_free(&native.arena);
	arena_free(&generic.arena);
}

int main(void)
{
	if (!need_backend("the cache"))
		return tap_done();
	usual.backend = usual_backend();
	for (int i = 0; backend_at(i); i++)
		test_key_text(backend_at(i));
	skip_backends();
	test_keys();
	return tap_done();
}
