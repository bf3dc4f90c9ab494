/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights: a file that opens can be read whole, in parts and not beyond, and be held against a model. */
#include "io/safetensors.h"
#include "ra/ra.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static const char model[] =
    "model m\nstructure tree(*)\ninput x[E]\nparam W[D, E], U[D, D], b[D]\nstate h[D]\n"
    "leaf:\n h = W @ x + b\ninner:\n h = tanh(U @ sum(k.h for k in children))\noutput o = h\n";

/* The end of the block is the end of the values; those of integers are no weights. */
static void read_values(struct fuzz *f, const struct io_safetensors *w, int i, int64_t first, int64_t count)
{
	enum dtype dtype = w->tensor[i].dtype;
	bool weights = dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16;
	float *to = malloc(count * sizeof *to);
	if (!to)
		return;
	fuzz_check(f, io_safetensors_read_f32(w, &f->diags, i, first, count, to) == weights,
		   "values that are there can be read");
	free(to);
}

static void read_tensor(struct fuzz *f, const struct io_safetensors *w, int i)
{
	int64_t n = tensor_elements(&w->tensor[i]);
	fuzz_check(f, n >= 0, "the number of elements fits");
	fuzz_check(f, io_safetensors_find(w, w->tensor[i].name) == i, "a tensor is found by its name");
	read_values(f, w, i, 0, n);
	read_values(f, w, i, n / 2, n - n / 2);
	float beyond;
	fuzz_check(f, !io_safetensors_read_f32(w, &f->diags, i, n, 1, &beyond),
		   "there is nothing behind the values");
	fuzz_check(f, !io_safetensors_read_f32(w, &f->diags, i, INT64_MAX, INT64_MAX, &beyond),
		   "nor far behind them");
}

/* Parsed once, as it takes longer than reading the weights. */
static const struct ra_model *fixed_model(void)
{
	static const struct ra_model *m;
	static struct arena arena;
	static struct diags diags;
	jmp_buf escape;
	if (m)
		return m;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &escape) || !(m = ra_parse(&arena, &diags, "model", model, strlen(model))))
		abort();
	return m;
}

/* What a file with these bytes is, they are in memory, where nothing behind them may be touched. */
static bool opens_in_memory(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct diags diags;
	diags_init(&diags, &f->allocator);
	uint8_t *own = malloc(n ? n : 1);
	struct io_safetensors *w =
	    own ? io_safetensors_open_memory(&f->arena, &diags, "memory", memcpy(own, bytes, n), n) : NULL;
	for (int i = 0; w && i < w->n; i++)
		read_tensor(f, w, i);
	io_safetensors_close(w);
	diags_free(&diags);
	diags_free(&f->diags);
	free(own);
	return w;
}

static bool read_weights(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	int64_t sizes[2];
	bool in_memory = opens_in_memory(f, bytes, n);
	struct io_safetensors *w = io_safetensors_open(&f->arena, &f->diags, fuzz_file(bytes, n));
	fuzz_check(f, in_memory == !!w, "memory and file are the same weights");
	if (!w)
		return false;
	for (int i = 0; i < w->n; i++)
		read_tensor(f, w, i);
	io_safetensors_close(w);
	diags_free(&f->diags);
	return ra_bind(fixed_model(), &f->diags, w->path, w->tensor, w->n, sizes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_weights, bytes, n);
}
