/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Model texts: a model prints, its text reads back as the same text, and sizes are found that fit. */
#include "ra/ra.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char *printed(struct fuzz *f, const struct ra_model *m)
{
	struct str s = str_in(&f->arena);
	ra_print(m, &s);
	return str_text(&s);
}

/* The tensors that the model's parameters would be if the i-th symbol were i % 3 + 1. */
static struct tensor_info *tensors_of(struct fuzz *f, const struct ra_model *m, int64_t *sizes)
{
	struct tensor_info *t = ARENA_ARRAY(&f->arena, struct tensor_info, m->params.n);
	for (size_t i = 0; i < m->symbols.n; i++)
		sizes[i] = i % 3 + 1;
	ra_compute_sizes(m, sizes);
	for (size_t i = 0; i < m->params.n; i++) {
		const struct ra_param *p = &m->params.at[i];
		t[i] = (struct tensor_info){.name = p->name, .rank = p->shape.rank};
		for (int axis = 0; axis < t[i].rank; axis++)
			t[i].shape[axis] = ra_dim_value(&p->shape.dim[axis], sizes);
	}
	return t;
}

/* Sizes may be refused (a symbol that no parameter tells), but never be wrong. */
static void bind(struct fuzz *f, const struct ra_model *m)
{
	int64_t *sizes = ARENA_ARRAY(&f->arena, int64_t, m->symbols.n),
		*found = ARENA_ARRAY(&f->arena, int64_t, m->symbols.n);
	const struct tensor_info *t = tensors_of(f, m, sizes);
	if (!ra_bind(m, &f->diags, "weights", t, m->params.n, found)) {
		fuzz_check(f, f->diags.n, "weights are refused with a reason");
		return;
	}
	for (size_t i = 0; i < m->params.n; i++)
		for (int axis = 0; axis < t[i].rank; axis++)
			fuzz_check(f,
				   ra_dim_value(&m->params.at[i].shape.dim[axis], found) == t[i].shape[axis],
				   "sizes give the shapes that they were found from");
}

static bool read_model(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	const struct ra_model *m = ra_parse(&f->arena, &f->diags, "fuzz.ra", (const char *)bytes, n);
	if (!m)
		return false;
	fuzz_check(f, !f->diags.n, "a model comes without diagnostics");
	const char *text = printed(f, m);
	const struct ra_model *again = ra_parse(&f->arena, &f->diags, "again.ra", text, strlen(text));
	fuzz_check(f, again && strcmp(printed(f, again), text) == 0, "a printed model reads back as itself");
	bind(f, m);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_model, bytes, n);
}
