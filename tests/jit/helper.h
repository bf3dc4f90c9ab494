/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the back ends share: short names for constructors, compiling, running. */
#ifndef ESPALIER_TESTS_JIT_HELPER_H
#define ESPALIER_TESTS_JIT_HELPER_H

#include "base/str.h"
#include "image/code.h"
#include "image/link.h"
#include "tests/backends.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
	struct arena arena;
	struct diags diags;
	struct ilir_module m;
	const struct jit_backend *backend;
};

/* The back end at hand. */
static const char *backend_name = "llvm";

/* False when there is no such back end here; the caller skips. */
static inline bool fixture_init(struct fixture *f, const char *name)
{
	arena_init(&f->arena, &allocator_default);
	diags_init(&f->diags, &allocator_default);
	ilir_init(&f->m, &f->arena, name);
	f->backend = has_backend(backend_name) ? jit_backend_load(backend_name, &f->diags) : NULL;
	return f->backend != NULL;
}

static inline void fixture_free(struct fixture *f)
{
	diags_free(&f->diags);
	arena_free(&f->arena);
}

/* Runs the tests with each back end that is here. */
static inline int over_backends(void (*tests)(void))
{
	for (int i = 0; jit_backend_name(i); i++) {
		backend_name = jit_backend_name(i);
		printf("# back end %s\n", backend_name);
		if (has_backend(backend_name))
			tests();
	}
	skip_backends();
	return tap_done();
}

static inline void show_diags(const struct diags *d)
{
	for (size_t i = 0; i < d->n; i++)
		printf("# %s: %s\n", diag_spelling(d->at[i].id), d->at[i].message);
}

/* Links what the back end made. */
static inline bool link_objects(struct fixture *f, const struct jit_objects *o, struct image_blob *blob)
{
	int kernels = f->m.kernels.n;
	const char **name = ARENA_ARRAY(&f->arena, const char *, kernels);
	for (int i = 0; i < kernels; i++)
		name[i] = f->m.kernels.at[i].name;
	return image_link(&f->arena, o->object, o->n, f->m.name, kernels, name, blob, &f->diags);
}

static inline bool compile_for(struct fixture *f, const char *target, bool native, struct image_code *code)
{
	struct jit_options o = {.target = target_find(target), .native = native};
	struct jit_objects objects;
	struct image_blob blob;
	bool ok = jit_compile(f->backend, &f->m, &o, (struct jit_threads){.most = 2}, &f->arena, &objects,
			      &f->diags) &&
		  link_objects(f, &objects, &blob) &&
		  image_code_load(&blob, &allocator_default, f->m.name, code, &f->diags);
	show_diags(&f->diags);
	return ok;
}

/* --- constructors --- */

enum { ROWS = -1 };

/* Extents padded as they are; ROWS = one per node. */
static inline ilir_buffer buffer_of(struct fixture *f, const char *name, int kind, enum ilir_dtype dtype,
				    int rank, const int *extent)
{
	struct ilir_buffer_decl b = {.name = name, .kind = kind, .dtype = dtype, .rank = rank};
	for (int i = 0; i < rank; i++) {
		int64_t n = extent[i] == ROWS ? 0 : extent[i];
		b.dim[i] = (struct ilir_dim){0, extent[i] == ROWS ? IMAGE_NODES : IMAGE_ONE, n, n};
	}
	return ilir_new_buffer(&f->m, b);
}

#define EXTENTS(...)                                                                                         \
	(int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), (const int[])                                       \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}
#define INDICES(...)                                                                                         \
	(const ilir_expr[]){__VA_ARGS__}, (int)(sizeof(ilir_expr[]){__VA_ARGS__} / sizeof(ilir_expr))

static inline void kernel(struct fixture *f, const char *name, struct ilir_stmt *body)
{
	vec_push(&f->arena, &f->m.kernels,
		 (struct ilir_kernel){.name = name, .domain = IMAGE_DOMAIN_NODES, .body = body});
}

static inline ilir_var index_var(struct fixture *f, const char *name)
{
	return ilir_new_var(&f->m, name, (struct ilir_type){ILIR_INDEX, 1});
}

static inline ilir_expr ref(struct fixture *f, ilir_var v)
{
	return ilir_var_ref(&f->m, v);
}

static inline ilir_expr num(struct fixture *f, int64_t i)
{
	return ilir_index(&f->m, i);
}

static inline ilir_expr ramp(struct fixture *f, ilir_expr from, int lanes)
{
	return ilir_spread(&f->m, ILIR_RAMP, from, lanes);
}

static inline ilir_expr splat(struct fixture *f, ilir_expr x, int lanes)
{
	return ilir_spread(&f->m, ILIR_BROADCAST, x, lanes);
}

static inline ilir_expr plus(struct fixture *f, ilir_expr a, ilir_expr b)
{
	return ilir_binary(&f->m, ILIR_ADD, a, b);
}

static inline struct ilir_stmt *loop(struct fixture *f, ilir_var v, ilir_expr begin, ilir_expr end,
				     int64_t step, struct ilir_stmt *body)
{
	return ilir_for(&f->m, v, begin, end, step, 0, ILIR_SERIAL, body);
}

/* for v = begin, begin + step, ... while < end: the kernel's own rows. */
static inline struct ilir_stmt *over_rows(struct fixture *f, ilir_var v, int64_t step, struct ilir_stmt *body)
{
	return loop(f, v, ref(f, ilir_begin), ref(f, ilir_end), step, body);
}

/* --- numbers --- */

static inline void *aligned(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	memset(p, 0, bytes);
	return p;
}

/* Small numbers with many bits, the same in every run. */
static inline void fill(float *x, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (int)(seed >> 8 & 0xffff) / 65536.0f - 0.5f;
	}
}

#endif
