/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Copies of an image, each with one of its tables bent, which must be refused. */
#ifndef ESPALIER_TESTS_BENDING_H
#define ESPALIER_TESTS_BENDING_H

#include "tests/image/bytes.h"

struct bending {
	struct image image;
	struct image_buffer *buffer;
	struct image_recipe *recipe;
	struct image_pack_source *source;
	struct image_output *output;
	struct image_state *state;
	struct image_step *step;
	int64_t *kernel;
	struct image_fold *fold;
	struct image_input *input;
	struct tensor_info *param;
};

static int buffer_of_kind(const struct image *image, enum image_buffer_kind kind)
{
	for (int i = 0; i < image->buffers; i++)
		if (image->buffer[i].kind == kind)
			return i;
	return 0;
}

struct bent {
	const char *what;
	void (*bend)(struct bending *);
	const char *says;
};

#define OWN(member, n)                                                                                       \
	b.member = arena_copy(a, image->member, (n) * sizeof *image->member), b.image.member = b.member

/* A copy whose first tables can be bent. */
static struct bending copy_image(struct arena *a, const struct image *image)
{
	struct bending b = {.image = *image};
	OWN(buffer, image->buffers);
	OWN(recipe, image->recipes);
	OWN(output, image->outputs);
	OWN(state, image->states);
	OWN(step, image->steps);
	OWN(fold, image->folds);
	OWN(input, image->inputs);
	OWN(param, image->params);
	b.source = arena_copy(a, image->recipe->source, image->recipe->sources * sizeof *b.source);
	b.recipe->source = b.source;
	b.kernel = arena_copy(a, image->blob.kernel, image->blob.kernels * sizeof *b.kernel);
	b.image.blob.kernel = b.kernel;
	return b;
}

static void test_bendings(struct arena *a, const struct image *image, const struct bent *bent, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bending b = copy_image(a, image);
		struct reader r;
		bent[i].bend(&b);
		struct file f = write_image(&b.image);
		read_image(&r, &f);
		tap_ok(says(&r, bent[i].says), "refused: %s", bent[i].what);
		free_reader(&r);
		free(f.bytes);
	}
}

#endif
