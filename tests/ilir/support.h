/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by the loop tests: modules from text and back, diagnostics, memory for buffers. */
#ifndef ESPALIER_TESTS_ILIR_SUPPORT_H
#define ESPALIER_TESTS_ILIR_SUPPORT_H

#include "ilir/ilir.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

struct bench {
	struct arena arena;
	struct diags diags;
	struct ilir_module *m;
	/* for running kernels */
	void *buffers[32];
	int64_t sizes[IMAGE_SIZES];
};

static jmp_buf out_of_memory;

static inline void bench_open(struct bench *b)
{
	*b = (struct bench){0};
	arena_init(&b->arena, &allocator_default);
	b->arena.escape = &out_of_memory;
	diags_init(&b->diags, &allocator_default);
}

static inline void bench_close(struct bench *b)
{
	arena_free(&b->arena);
	diags_free(&b->diags);
}

static inline bool bench_parse(struct bench *b, const char *text)
{
	bench_open(b);
	b->m = ilir_parse(&b->arena, &b->diags, "test", text, strlen(text));
	if (!b->m && b->diags.n)
		printf("# %d:%d: %s\n", b->diags.at[0].line, b->diags.at[0].column, b->diags.at[0].message);
	return b->m;
}

static inline const char *bench_text(struct bench *b)
{
	struct str s = str_in(&b->arena);
	ilir_print(b->m, &s);
	return str_text(&s);
}

/* Whether a diagnostic contains a text. */
static inline bool bench_says(const struct bench *b, const char *words)
{
	for (size_t i = 0; i < b->diags.n; i++)
		if (strstr(b->diags.at[i].message, words))
			return true;
	for (size_t i = 0; i < b->diags.n; i++)
		printf("# says: %s\n", b->diags.at[i].message);
	return false;
}

static inline int64_t bench_elements(const struct bench *b, const struct ilir_buffer_decl *d)
{
	int64_t n = 1;
	for (int i = 0; i < d->rank; i++)
		n *= d->dim[i].rows == IMAGE_ONE ? d->dim[i].padded
						 : b->sizes[d->dim[i].rows] + d->dim[i].extent;
	return n;
}

/* Allocates zeroed memory of exactly the declared size for every buffer. */
static inline void bench_allocate(struct bench *b, int nodes, int leaves, int inputs, int edges, int batches)
{
	int slot = 0;
	int64_t sizes[] = {1, nodes, leaves, inputs, edges, batches};
	memcpy(b->sizes, sizes, sizeof sizes);
	for (size_t i = 1; i < b->m->buffers.n; i++)
		if (b->m->buffers.at[i].kind != ILIR_REGISTER)
			b->buffers[slot++] = arena_take(&b->arena, bench_elements(b, &b->m->buffers.at[i]),
							ilir_bytes(b->m->buffers.at[i].dtype));
}

static inline void *bench_buffer(struct bench *b, const char *name)
{
	for (uint32_t i = 1; i < b->m->buffers.n; i++)
		if (strcmp(b->m->buffers.at[i].name, name) == 0)
			return b->buffers[ilir_buffer_slot(b->m, (ilir_buffer){i})];
	return NULL;
}

static inline bool bench_sweep(struct bench *b, struct image_range range)
{
	struct ilir_interpreter *r = ilir_interpreter_new(&b->arena, b->m);
	struct image_frame frame = {b->buffers, b->sizes};
	return ilir_interpret(r, 0, &frame, &range, &b->diags);
}

static inline bool bench_run(struct bench *b, int64_t begin, int64_t end)
{
	return bench_sweep(b, (struct image_range){begin, end, 0, 1, 1});
}

#endif
