/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images that were bent by hand and sealed again do no harm to whoever reads or binds them. */
#include "tests/image/bytes.h"

static void *resize_capped(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context;
	return new_size > (1 << 22) ? NULL : allocator_default.resize(NULL, p, old_size, new_size);
}

static const struct allocator capped = {resize_capped, NULL};

/* Weights as a file has them: not without end. */
static bool read_capped(void *context, int param, int64_t first, int64_t count, void *out, struct diags *d)
{
	float *to = out;
	if (first + count > 1 << 14)
		return diag_add(d, DIAG_BAD_ARGUMENT, (struct diag_at){0}, NULL, "there is no more");
	return read_weight(context, param, first, count, to, d);
}

/* Kernels are not to be trusted: what runs at binding does nothing. */
static bool do_nothing(void *self, int kernel, const struct image_frame *frame,
		       const struct image_range *range, struct diags *d)
{
	(void)self, (void)kernel, (void)frame, (void)range, (void)d;
	return true;
}

/* Everything that is done with an image before it runs. */
static void use(struct image *image)
{
	struct rt_binding binding;
	struct rt_session session;
	struct rt_source source = {read_capped, NULL};
	struct image_code code;
	struct diags d;
	diags_init(&d, &allocator_default);
	image->code.call = do_nothing;
	if (rt_bind(&binding, &capped, image, &source, NULL, &d))
		rt_binding_free(&binding);
	if (rt_session_init(&session, &capped, image, &d))
		rt_session_free(&session);
	if (image_code_load(&image->blob, &capped, "bent", &code, &d))
		image_code_release(&code);
	diags_free(&d);
}

static const int64_t hostile[] = {
    -1, 0, 1, 2, 5, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 32};

static int read_bent(struct file *f)
{
	struct reader r;
	image_seal(f->bytes, f->n);
	read_image(&r, f);
	int ok = r.ok;
	if (ok)
		use(&r.image);
	free_reader(&r);
	return ok;
}

/* Each word in turn becomes each of the hostile numbers, in the frame too, up to where the code begins. */
static void test_words(const struct file *f)
{
	int taken = 0;
	uint64_t code;
	memcpy(&code, f->bytes + 24 + 2 * 8 + 2 * 16, sizeof code);
	for (size_t at = 24; at + 8 <= code; at += 8)
		for (size_t h = 0; h < sizeof hostile / sizeof *hostile; h++) {
			struct file bent = copy_file(f, f->n);
			memcpy(bent.bytes + at, &hostile[h], 8);
			taken += read_bent(&bent);
			free(bent.bytes);
		}
	tap_ok(taken > 0, "words that were bent do no harm, %d such files are read", taken);
}

static void test_random(const struct file *f)
{
	int taken = 0;
	random_state = 11;
	for (int round = 0; round < 3000; round++) {
		struct file bent = copy_file(f, f->n - 8 * (round % 7 == 0) * random_below(40));
		for (int k = 1 + random_below(4); k; k--)
			bent.bytes[24 + random_below(bent.n - 24)] = random_bits() >> 8;
		taken += read_bent(&bent);
		free(bent.bytes);
	}
	tap_ok(taken > 0, "bytes that were bent do no harm, %d such files are read", taken);
}

/* --- images of all kinds --- */

/* With a table that the model's has not. */
static void test_cases(const struct image *plain)
{
	struct image image = *plain;
	image.cases = CASES;
	image.case_at = four_cases;
	struct file f = write_image(&image);
	test_words(&f);
	free(f.bytes);
}

static void test_small(struct test_run *r)
{
	struct file f = write_image(&r->image);
	test_words(&f);
	test_random(&f);
	test_cases(&r->image);
	free(f.bytes);
}

static void test_plain(struct test_run *r)
{
	struct file f = write_image(&r->image);
	test_random(&f);
	free(f.bytes);
}

static void test_packed(struct test_run *r)
{
	struct image image = pack_image(r);
	struct file f = write_image(&image);
	test_random(&f);
	free(f.bytes);
}

int main(void)
{
	if (!need_backend("images as bytes"))
		return tap_done();
	with_model(SMALL_MODEL, test_small);
	with_model(FOLDING_MODEL, test_plain);
	with_model(FOLDING_MODEL, test_packed);
	with_model("examples/treelstm/treelstm.ra", "D=17 E=9 V=30", test_packed);
	return tap_done();
}
