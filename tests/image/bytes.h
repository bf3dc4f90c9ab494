/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images as bytes: written, read, refused. */
#ifndef ESPALIER_TESTS_IMAGE_BYTES_H
#define ESPALIER_TESTS_IMAGE_BYTES_H

#include "image/code.h"
#include "image/image_file.h"
#include "tests/models/helper.h"

#include <stdlib.h>

/* --- images --- */

/* Paths and sizes; the second has constants. */
#define SMALL_MODEL "examples/treelstm/treelstm.ra", "D=1 E=1 V=3"
#define FOLDING_MODEL "tests/models/constants.ra", "V=9 D=11 X=19 L=30"

/* Whether the model becomes a program with weights. */
static inline bool compile_model(struct test_model *t, struct test_run *r, const char *path,
				 const char *sizes)
{
	struct option_texts o = {.backend = usual_backend(), .target = "native"};
	return load_model(t, path, sizes) && start_run(r, t, &o);
}

/* Calls for one with a key. */
static inline void with_model(const char *path, const char *sizes, void (*test)(struct test_run *))
{
	struct test_model t = {0};
	struct test_run r;
	if (!tap_ok(compile_model(&t, &r, path, sizes), "%s %s: compiled", path, sizes))
		return;
	r.image.key = "key";
	test(&r);
	end_run(&r);
	free_model(&t);
}

/* The image that was bound, with the weights that it was bound to; they are in the arena of the run. */
static inline struct image pack_image(struct test_run *r)
{
	struct image image = r->image;
	struct image_packed *packed = ARENA_ARRAY(&r->arena, struct image_packed, image.recipes);
	for (int i = 0; i < image.recipes; i++)
		packed[i] = image_pack(&image, i, r->binding.packed[i]);
	image.packs = image.recipes;
	image.packed = packed;
	return image;
}

/* Leaves with a parent and without, inner nodes with a word and others. */
enum { CASES = 4 };
static const struct image_match word_match[] = {{0, 1}};
static const struct image_case four_cases[CASES] = {{"top", false, -1, IMAGE_NO, 0, NULL},
						    {"leaf", false, -1, IMAGE_YES, 0, NULL},
						    {"word", true, -1, IMAGE_EITHER, 1, word_match},
						    {"inner", true, -1, IMAGE_EITHER, 0, NULL}};

/* --- their bytes --- */

/* Bytes in a block of their exact size, so that tools see who reads past the end. */
struct file {
	unsigned char *bytes;
	size_t n;
};

static inline struct file copy_file(const struct file *f, size_t n)
{
	struct file copy = {NULL, n};
	if (posix_memalign((void **)&copy.bytes, IMAGE_LINE, n ? n : 1))
		abort();
	memcpy(copy.bytes, f->bytes, n < f->n ? n : f->n);
	return copy;
}

static inline void write_guarded(struct arena *a, const struct image *image, struct file *f)
{
	jmp_buf escape;
	if (arena_guard(a, &escape))
		return;
	struct str s = str_in(a);
	image_write(image, &s);
	*f = copy_file(&(struct file){(unsigned char *)s.text, s.n}, s.n);
}

static inline struct file write_image(const struct image *image)
{
	struct arena a;
	struct file f = {0};
	arena_init(&a, &allocator_default);
	write_guarded(&a, image, &f);
	arena_free(&a);
	return f;
}

struct reader {
	struct arena arena;
	struct diags diags;
	struct image image;
	bool ok;
};

static inline void read_image(struct reader *r, const struct file *f)
{
	static jmp_buf escape;
	arena_init(&r->arena, &allocator_default);
	diags_init(&r->diags, &allocator_default);
	r->ok =
	    !arena_guard(&r->arena, &escape) && image_read(&r->arena, f->bytes, f->n, &r->image, &r->diags);
}

static inline void free_reader(struct reader *r)
{
	diags_free(&r->diags);
	arena_free(&r->arena);
}

static inline bool says(const struct reader *r, const char *what)
{
	bool ok = !r->ok && r->diags.n == 1 && r->diags.at[0].id == DIAG_BAD_IMAGE &&
		  strstr(r->diags.at[0].message, what) && r->diags.at[0].hint;
	if (!ok)
		printf("# %s\n", r->diags.n ? r->diags.at[0].message : "it was read");
	return ok;
}

#endif
