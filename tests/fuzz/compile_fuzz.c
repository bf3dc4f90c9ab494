/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Model texts through the whole compile leg, with small sizes: what parses and binds compiles, runs, and
 * gives the same bits before the passes that change loops and after them. */
#include "tests/fuzz/program.h"
#include "tests/options.h"

#include <math.h>
#include <string.h>

enum { MOST_NODES = 200 }; /* of a model: compiling takes long enough */

/* The i-th symbol is i % 3 + 1, if the parameters can tell it. */
static const int64_t *sizes_of(struct fuzz *f, const struct ra_model *m)
{
	int64_t *sizes = ARENA_ARRAY(&f->arena, int64_t, m->symbols.n);
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
	return ra_bind(m, &f->diags, "weights", t, m->params.n, sizes) ? sizes : NULL;
}

static bool run(struct fuzz *f, const struct ra_model *m, const int64_t *sizes, const char *last_pass,
		struct fuzz_results *results)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .last_pass = last_pass};
	struct image image;
	if (!compile_image_as(&f->arena, &f->diags, m, sizes, &o, &image))
		return false;
	bool ok = fuzz_run_program(f, &image, results);
	image.code.release(&image.code);
	return ok;
}

/* Which NaN it is may be chosen by the host's own instructions. */
static bool agree(const struct fuzz_results *a, const struct fuzz_results *b)
{
	bool same = a->n == b->n;
	for (size_t i = 0; same && i < a->n; i++)
		same =
		    (isnan(a->at[i]) && isnan(b->at[i])) || memcmp(&a->at[i], &b->at[i], sizeof *a->at) == 0;
	return same;
}

static bool compile_model(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct fuzz_results lowered, finished;
	const struct ra_model *m = ra_parse(&f->arena, &f->diags, "fuzz.ra", (const char *)bytes, n);
	const int64_t *sizes = m ? sizes_of(f, m) : NULL;
	if (!sizes || m->nodes.n > MOST_NODES)
		return m && m->nodes.n > MOST_NODES;
	if (!run(f, m, sizes, "infer_bounds", &lowered))
		return false;
	fuzz_check(f, run(f, m, sizes, NULL, &finished), "what can be lowered can be compiled");
	fuzz_check(f, agree(&lowered, &finished), "passes change no bit of a result");
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(compile_model, bytes, n);
}
