/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Program images, well formed but for some words: what is read can be written again, bound, loaded and run,
 * as far as that goes without running its code.
 *
 * The input is not the image, which would be refused for its checksum, but a list of changes to one that the
 * compiler made: a byte of options, then four bytes a change (see `change`).  So inputs do not depend on how
 * images are laid out, and every byte of one has a meaning. */
#include "image/code.h"
#include "image/image_file.h"
#include "tests/fuzz/program.h"
#include "tests/options.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static const char *const models[] = {
    "model gated\nstructure tree(*)\ninput x[X]\nparam W[2*D, X], U[D, D]\nstate h[D], m[2*D]\nnode:\n g = W "
    "@ x\n"
    " s = sum(k.h for k in children)\n r = sigmoid(g[:D]) * s\n h = tanh(U @ r + g[D:])\n m = concat(h, s)\n"
    "output top = softmax(m) at root\n",
    "model pairs\nstructure tree(left, right)\ninput word : token\nparam E[V, D], L[D, D], R[D, D], "
    "b[D]\nstate h[D]\n"
    "leaf:\n h = E[word]\ninner:\n h = tanh(sigmoid(L) @ left.h + R @ right.h + b * b)\n"
    "output o = softmax(h) labels \"a\", \"b\", \"c\"\n",
};
static const int64_t sizes[] = {3, 3, 3};
enum {
	TEXTS = sizeof models / sizeof *models,
	MODELS = 2 * TEXTS, /* once more with packed weights */
	MOST_MEMORY = 8 << 20,
	MOST_DATA = 1 << 14,
	MOST_CHILDREN = 50
};

/* --- an image to change --- */

static struct {
	uint8_t *bytes;
	size_t n;
} made[MODELS];

static bool read_weight(void *context, int param, int64_t first, int64_t count, void *out, struct diags *d)
{
	float *to = out;
	(void)context, (void)param, (void)d;
	for (int64_t k = 0; k < count; k++)
		to[k] = (first + k) % 5 - 2;
	return true;
}

/* Packs weights into the image; they are as long as the program. */
static void pack_image(struct arena *a, struct diags *d, struct image *image)
{
	static struct rt_binding bindings[TEXTS];
	static int packed_ones;
	struct rt_binding *b = &bindings[packed_ones++];
	struct image_packed *packed = ARENA_ARRAY(a, struct image_packed, image->recipes);
	if (!rt_bind(b, &allocator_default, image, &(struct rt_source){read_weight, NULL}, NULL, d))
		abort();
	for (int i = 0; i < image->recipes; i++)
		packed[i] = image_pack(image, i, b->packed[i]);
	image->packs = image->recipes;
	image->packed = packed;
}

/* Images are read where weights may lie; tools see who reads past the end. */
static uint8_t *aligned_block(size_t n)
{
	void *block;
	if (posix_memalign(&block, IMAGE_LINE, n ? n : 1))
		abort();
	return block;
}

/* The interpreter's image with a place in some code for each kernel, for none is called. */
static void make_image(struct arena *a, struct diags *d, int i)
{
	static const struct option_texts options = {.backend = "interpreter", .target = "generic"};
	static const unsigned char code[32];
	struct image image;
	struct str file = str_in(a);
	const char *text = models[i % TEXTS];
	const struct ra_model *m = ra_parse(a, d, "model", text, strlen(text));
	if (!m || !compile_image_as(a, d, m, sizes, &options, &image))
		abort();
	if (i >= TEXTS)
		pack_image(a, d, &image);
	int64_t *places = ARENA_ARRAY(a, int64_t, image.kernels);
	image.blob = (struct image_blob){.bytes = code,
					.size = sizeof code,
					.alignment = 16,
					.machine = EM_X86_64,
					.kernels = image.kernels,
					.kernel = places};
	image.key = "key";
	image_write(&image, &file);
	image_code_release(&image.code);
	made[i].n = file.n;
	made[i].bytes = aligned_block(file.n);
	memcpy(made[i].bytes, file.text, file.n);
}

static void make_images(void)
{
	struct arena arena;
	struct diags diags;
	jmp_buf escape;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &escape))
		abort();
	for (int i = 0; i < MODELS; i++)
		make_image(&arena, &diags, i);
	diags_free(&diags);
	arena_free(&arena);
}

/* --- changes --- */

enum { CHANGE = 4, WORD = 8, MOST_CHANGES = 40, MOST_WORDS = 16 };
/* Words of the header, see image/image_file.h. */
enum {
	SIZE = 4,
	TABLES_SIZE = 8,
	CODE_OFFSET = 9,
	WEIGHTS_OFFSET = 11,
	HEADER = 13,
	LINE_WORDS = IMAGE_LINE / WORD
};

/* The block ends with the image; one more is left when memory runs out, and is found again. */
static uint8_t *file;
static size_t file_bytes;

static int64_t get(size_t word)
{
	int64_t value;
	memcpy(&value, file + word * WORD, WORD);
	return value;
}

static void put(size_t word, int64_t value)
{
	memcpy(file + word * WORD, &value, WORD);
}

/* Takes words out or, when negative, puts zeros in, so that the tables stay where the header says; weights
 * stand at the next line. */
static void remove_words(size_t at, int64_t n)
{
	size_t words = file_bytes / WORD, head = get(WEIGHTS_OFFSET) / WORD;
	if (head > words || head < HEADER)
		head = words;
	if (at < HEADER || at > head || (n > 0 && (size_t)n > head - at) ||
	    (n < 0 && words > made[0].n + made[1].n))
		return;
	size_t zeros = n < 0 ? -n : 0, gone = n > 0 ? n : 0, new_head = head - gone + zeros;
	bool weighs = (size_t)get(WEIGHTS_OFFSET) < file_bytes;
	if (weighs)
		new_head = (new_head + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS;
	size_t rest = file_bytes - head * WORD, kept = (head - at - gone) * WORD;
	uint8_t *changed = aligned_block(new_head * WORD + rest);
	memset(changed, 0, new_head * WORD);
	memcpy(changed, file, at * WORD);
	memcpy(changed + (at + zeros) * WORD, file + (at + gone) * WORD, kept);
	memcpy(changed + new_head * WORD, file + head * WORD, rest);
	free(file);
	file = changed;
	file_bytes = new_head * WORD + rest;
	put(TABLES_SIZE, (uint64_t)get(TABLES_SIZE) - n * WORD);
	put(CODE_OFFSET, (uint64_t)get(CODE_OFFSET) - n * WORD);
	put(WEIGHTS_OFFSET, weighs ? (int64_t)(new_head * WORD) : (int64_t)file_bytes);
}

/* Bytes 0 and 1 say where, 2 what, 3 how. */
static void change(const uint8_t *c)
{
	static const int64_t limits[] = {
	    INT32_MAX,	      INT32_MIN, INT64_MAX,	   INT64_MIN,  (int64_t)1 << 48, 1 << 24, 1 << 16,
	    (int64_t)1 << 31, 1 << 28,	 (int64_t)1 << 40, UINT16_MAX, (int64_t)1 << 62, 4096,	  1 << 29};
	size_t words = file_bytes / WORD, at = (c[0] + 256u * c[1]) % words;
	int8_t n = c[3];
	switch (c[2] % 8) {
	case 0:
		put(at, n);
		break;
	case 1:
		put(at, limits[c[3] % (sizeof limits / sizeof *limits)]);
		break;
	case 2:
		put(at, (uint64_t)get(at) + n);
		break;
	case 3:
		put(at, get((at + c[3]) % words));
		break;
	case 4:
		put(at, get(at) ^ (uint64_t)1 << c[3] % 64);
		break;
	case 5:
		remove_words(at, c[3] % MOST_WORDS + 1);
		break;
	case 6:
		remove_words(at, -(c[3] % MOST_WORDS + 1));
		break;
	case 7:
		file[at * WORD + c[2] / 8 % WORD] = c[3];
		break;
	}
}

/* Options: which model; whether the size and the checksum are put right. */
static void make_file(const uint8_t *bytes, size_t n)
{
	int options = n ? bytes[0] : 0, model = options % MODELS;
	free(file);
	file_bytes = made[model].n;
	file = aligned_block(file_bytes);
	memcpy(file, made[model].bytes, file_bytes);
	for (size_t i = 1; i + CHANGE <= n && i < MOST_CHANGES * CHANGE; i += CHANGE)
		change(bytes + i);
	if (options < 0xf0)
		put(SIZE, file_bytes);
	if (options < 0xf8)
		image_seal(file, file_bytes);
}

/* --- what a reader of images does with one --- */

static const char *written(struct fuzz *f, const struct image *image, size_t *n)
{
	struct str s = str_in(&f->arena);
	image_write(image, &s);
	char *bytes = arena_take(&f->arena, s.n + IMAGE_LINE, 1);
	bytes += -(uintptr_t)bytes % IMAGE_LINE;
	*n = s.n;
	return memcpy(bytes, s.text, s.n);
}

static void write_again(struct fuzz *f, const struct image *image)
{
	struct image again;
	size_t n, m;
	const char *first = written(f, image, &n);
	fuzz_check(f, image_read(&f->arena, first, n, &again, &f->diags),
		   "what was read and written can be read");
	const char *second = written(f, &again, &m);
	fuzz_check(f, n == m && memcmp(first, second, n) == 0, "and is written the same way");
}

/* Stands in for a kernel: touches the ends of all that it could touch. */
static bool touch(void *self, int kernel, const struct image_frame *frame, const struct image_range *range,
		  struct diags *d)
{
	const struct image *image = self;
	bool binding = !frame->sizes[IMAGE_NODES]; /* there are no structures */
	(void)kernel, (void)range, (void)d;
	for (int i = 0; i < image->buffers; i++) {
		const struct image_buffer *b = &image->buffer[i];
		const struct image_buffer_traits *t = image_traits_of(b->kind);
		bool own = t->memory != IMAGE_IN_ORDER && t->memory != IMAGE_IN_CALLER;
		int64_t n = frame->sizes[b->rows] * (own ? b->row_elements : 1) + t->more;
		volatile int32_t *at = frame->buffers[i];
		if (!n || (b->at_binding ? !binding : binding && b->kind != IMAGE_WEIGHT))
			continue;
		int32_t first = at[0], last = at[n - 1];
		if (own) {
			at[0] = first;
			at[n - 1] = last;
		}
	}
	return true;
}

static void load(struct fuzz *f, const struct image *image)
{
	struct image_code code;
	if (!image_code_load(&image->blob, &f->allocator, image->name, &code, &f->diags))
		return;
	for (int i = 0; i < image->blob.kernels; i++)
		fuzz_check(
		    f, *(volatile unsigned char *)code.kernels[i] == image->blob.bytes[image->blob.kernel[i]],
		    "kernels lie in the code");
	image_code_release(&code);
}

static bool read_image(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct image image;
	f->most = MOST_MEMORY;
	make_file(bytes, n);
	if (!image_read(&f->arena, file, file_bytes, &image, &f->diags))
		return false;
	write_again(f, &image);
	load(f, &image);
	image.code = (struct image_code){.call = touch, .self = &image};
	return fuzz_run_program(f, &image, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (!made[0].n)
		make_images();
	return fuzz_run(read_image, bytes, n);
}
