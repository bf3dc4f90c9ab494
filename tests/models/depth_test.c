/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Long chains of operators: they compile, or are refused with a diagnostic; nothing runs out of stack. */
#include "tests/models/helper.h"
#include "tests/sanitizers.h"

#include <stdlib.h>
#include <sys/resource.h>

/* Each link makes v<i + 1> of v<i>. */
static const struct {
	const char *name, *link;
} chains[] = {
    {"sums", "v%d + x"},
    {"calls", "tanh(v%d)"},
    {"products", "v%d * x"},
    {"matrices", "W @ v%d"},
    {"parts", "concat(v%d[1:], v%d[:1])"},
};

static char text[1 << 20];

static size_t write_chain(const char *link, int length)
{
	int n = sprintf(
	    text,
	    "model chain\nstructure sequence\ninput x[D]\nparam W[D, D]\nstate h[D]\nnode:\nv0 = W @ x\n");
	for (int i = 0; i < length; i++) {
		n += sprintf(text + n, "v%d = ", i + 1);
		n += sprintf(text + n, link, i, i);
		n += sprintf(text + n, "\n");
	}
	return n + sprintf(text + n, "h = v%d + previous.h\noutput y = h\n", length);
}

/* Whether it compiles; `refused`: by the limit on what follows one from another. */
static bool compiles(const char *link, int length, bool *refused)
{
	struct test_model t = {0};
	struct image image;
	jmp_buf jump;
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	*refused = false;
	if (!load_text(&t, "chain", text, write_chain(link, length), "D=9"))
		return false;
	bool ok =
	    !arena_guard(&t.arena, &jump) && compile_image_as(&t.arena, &t.diags, t.model, t.sizes, &o, &image);
	*refused = !ok && t.diags.n == 1 && t.diags.at[0].id == DIAG_MODEL_LARGE && t.diags.at[0].line > 7;
	if (ok)
		image.code.release(&image.code);
	free_model(&t);
	return ok;
}

/* What grows with the kernels of a module, for each of its kernels, took 7 GB. */
static void test_memory(void)
{
	enum { MOST_KB = 1 << 20 };
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	if (SHADOWED)
		tap_skip("sanitizers take memory, too", "memory");
	else
		tap_ok(used.ru_maxrss < MOST_KB, "all that took %ld KB at most", used.ru_maxrss);
}

int main(void)
{
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
		bool refused;
		tap_ok(compiles(chains[i].link, 300, &refused), "300 %s compile", chains[i].name);
		tap_ok(!compiles(chains[i].link, 20000, &refused) && refused, "20000 %s are refused",
		       chains[i].name);
	}
	test_memory();
	return tap_done();
}
