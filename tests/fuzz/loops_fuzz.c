/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Loop texts: a module prints, its text reads back as itself, and the verifier comes to a verdict. */
#include "ilir/ilir.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char *printed(struct fuzz *f, const struct ilir_module *m)
{
	struct str s = str_in(&f->arena);
	ilir_print(m, &s);
	return str_text(&s);
}

static void verify(struct fuzz *f, const struct ilir_module *m, unsigned properties)
{
	if (!ilir_verify(m, properties, "fuzz", &f->diags))
		fuzz_check(f, f->diags.n, "what is not verified is explained");
	diags_free(&f->diags);
}

static bool read_loops(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	const struct ilir_module *m = ilir_parse(&f->arena, &f->diags, "fuzz", (const char *)bytes, n);
	if (!m)
		return false;
	fuzz_check(f, !f->diags.n, "a module comes without diagnostics");
	const char *text = printed(f, m);
	const struct ilir_module *again = ilir_parse(&f->arena, &f->diags, "again", text, strlen(text));
	fuzz_check(f, again && strcmp(printed(f, again), text) == 0, "a printed module reads back as itself");
	verify(f, m, 0);
	verify(f, m, ILIR_BOUNDED | ILIR_IN_BOUNDS | ILIR_OUTLINED | ILIR_PRIMITIVE);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_loops, bytes, n);
}
