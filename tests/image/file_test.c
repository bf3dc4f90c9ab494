/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images as bytes: what is written is read again and runs alike; bytes that are damaged are refused. */
#include "tests/image/bytes.h"
#include "tests/sample.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {SMALL_MODEL},
    {"examples/treelstm/treelstm.ra", "D=64 E=64 V=20"},
    {"tests/models/ternary.ra", "D=19 X=6 V=30"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/ra/good/childsum.ra", "D=13 E=10 V=30"},
    {"tests/ra/good/gru.ra", "D=18 E=7"},
    {"tests/ra/good/lstm.ra", "D=20 E=6 V=30 C=4"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},
    {"tests/ra/good/matrix.ra", "D=5 V=30"},
    {"tests/models/nested.ra", "A=5 B=9 C=15 F=6 G=5 V=9"},
    {"tests/models/nested.ra", "A=2 B=1 C=1 F=6 G=5 V=9"},
    {"tests/models/parts.ra", "D=9"},
    {"tests/models/order.ra", "D=5"},
    {"tests/models/members.ra", "V=30 D=18 A=10"},
    {"examples/labelled/matrix.ra", "D=17 E=9 V=30 R=5 C=3"},
    {FOLDING_MODEL},
};
enum { MODELS = sizeof models / sizeof *models };

/* --- round trips --- */

static bool same_bytes(const struct file *a, const struct file *b)
{
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

/* The same program from the file instead of the compiler. */
static bool runs_alike(struct test_run *compiled, struct reader *read)
{
	struct test_forest forest;
	struct test_run again = {.image = read->image};
	struct rt_source source = {read_weight, NULL};
	int64_t count, n;
	diags_init(&again.diags, &allocator_default);
	arena_init(&again.arena, &allocator_default);
	random_state = 5;
	make_forest(&forest, &compiled->image, 4, 30);
	again.bound =
	    image_code_load(&read->image.blob, &allocator_default, "again", &again.image.code,
			    &again.diags) &&
	    (read->image.packs
		 ? rt_bind_packed(&again.binding, &allocator_default, &again.image, &again.diags)
		 : rt_bind(&again.binding, &allocator_default, &again.image, &source, NULL, &again.diags));
	again.open =
	    again.bound && rt_session_init(&again.session, &allocator_default, &again.image, &again.diags);
	bool ok =
	    again.open && run_forest(compiled, &forest.minibatch) && run_forest(&again, &forest.minibatch);
	int64_t inputs = forest.minibatch.forest.inputs;
	double *wanted = ok ? gather_outputs(compiled, forest.nodes, inputs, &count) : NULL;
	double *found = ok ? gather_outputs(&again, forest.nodes, inputs, &n) : NULL;
	ok = ok && count == n && count > 0 && memcmp(wanted, found, n * sizeof *found) == 0;
	free(wanted);
	free(found);
	end_run(&again);
	free_forest(&forest);
	return ok;
}

static bool has_interface(const struct image *image, const struct ra_model *m, const int64_t *sizes)
{
	bool ok = image->states == (int)m->states.n && image->outputs == (int)m->outputs.n &&
		  image->dimensions == (int)m->symbols.n && strcmp(image->name, m->name) == 0;
	for (int i = 0; ok && i < image->states; i++)
		ok = strcmp(image->state[i].name, m->states.at[i].name) == 0 &&
		     image->state[i].rank == m->states.at[i].shape.rank;
	for (int i = 0; ok && i < image->outputs; i++)
		ok = image->output[i].labels == m->outputs.at[i].labels;
	for (int i = 0; ok && i < image->dimensions; i++)
		ok = image->dimension[i].size == sizes[i];
	return ok;
}

static void test_round_trip(int i)
{
	struct test_model t = {0};
	struct test_run r;
	struct reader read;
	char name[120];
	snprintf(name, sizeof name, "%s %s", strrchr(models[i].path, '/') + 1, models[i].sizes);
	if (!tap_ok(compile_model(&t, &r, models[i].path, models[i].sizes), "%s: compiled", name))
		return;
	tap_ok(has_interface(&r.image, t.model, t.sizes), "%s: the image says what the model says", name);
	r.image.key = "the key";
	struct file f = write_image(&r.image);
	read_image(&read, &f);
	for (size_t k = 0; k < read.diags.n; k++)
		printf("# %s\n", read.diags.at[k].message);
	if (tap_ok(read.ok, "%s: what was written is read, %zu bytes", name, f.n)) {
		struct file again = write_image(&read.image);
		tap_ok(same_bytes(&f, &again), "%s: and written the same", name);
		tap_ok(runs_alike(&r, &read), "%s: and gives the same bits", name);
		tap_ok(strcmp(read.image.key, "the key") == 0, "%s: the key is told", name);
		free(again.bytes);
	}
	free_reader(&read);
	free(f.bytes);
	end_run(&r);
	free_model(&t);
}

/* --- damage --- */

static void test_lengths(const struct file *f)
{
	bool refused = true;
	for (size_t n = 0; n < f->n; n += n < f->n / SAMPLE ? 1 : SAMPLE) {
		struct file part = copy_file(f, n);
		struct reader r;
		read_image(&r, &part);
		refused &= !r.ok && r.diags.n == 1 && r.diags.at[0].id == DIAG_BAD_IMAGE;
		free_reader(&r);
		free(part.bytes);
	}
	tap_ok(refused, "every beginning of a file is refused");
	struct file longer = copy_file(f, f->n + 1);
	struct reader r;
	read_image(&r, &longer);
	tap_ok(says(&r, "not as long"), "and a file with something behind it");
	free_reader(&r);
	free(longer.bytes);
}

static void test_bits(const struct file *f)
{
	bool refused = true;
	for (size_t i = 0; i < f->n; i += SAMPLE) {
		struct file bent = copy_file(f, f->n);
		struct reader r;
		bent.bytes[i] ^= 1 << i / SAMPLE % 8;
		read_image(&r, &bent);
		refused &= !r.ok && r.diags.n == 1 && r.diags.at[0].id == DIAG_BAD_IMAGE;
		free_reader(&r);
		free(bent.bytes);
	}
	tap_ok(refused, "a bit that is wrong is found, wherever it is");
}

/* The stamp stands behind magic and checksum. */
static void test_version(const struct file *f)
{
	struct file bent = copy_file(f, f->n);
	struct reader r;
	bent.bytes[24] ^= 1;
	image_seal(bent.bytes, bent.n);
	read_image(&r, &bent);
	tap_ok(says(&r, "another version"), "a file of another version is refused");
	free_reader(&r);
	free(bent.bytes);
}

static void test_damage(struct test_run *r)
{
	struct file f = write_image(&r->image);
	test_lengths(&f);
	test_bits(&f);
	test_version(&f);
	free(f.bytes);
}

/* --- packed weights --- */

static bool says_of(struct file *f, size_t at, int bit, const char *what)
{
	struct reader r;
	f->bytes[at] ^= bit;
	read_image(&r, f);
	bool ok = says(&r, what);
	free_reader(&r);
	f->bytes[at] ^= bit;
	return ok;
}

static void test_packed(struct test_run *r)
{
	struct reader read;
	struct image image = pack_image(r);
	struct file f = write_image(&image), plain = write_image(&r->image);
	read_image(&read, &f);
	tap_ok(read.ok && read.image.packs == image.recipes && runs_alike(r, &read),
	       "weights that were written give the same bits");
	struct file again = write_image(&read.image);
	tap_ok(same_bytes(&f, &again), "and are written the same");
	size_t head = (plain.n + 8 * 3 * image.recipes + IMAGE_PAGE) / IMAGE_PAGE * IMAGE_PAGE;
	tap_ok(f.n > head && says_of(&f, head + 4, 16, "checksum of its weights"),
	       "a wrong bit in them is found");
	tap_ok(says_of(&f, 24 + 16 + 3 * 16, 64, "its checksum is wrong"), "and one in their place");
	free_reader(&read);
	free(again.bytes);
	free(plain.bytes);
	free(f.bytes);
}

int main(void)
{
	if (!need_backend("images as bytes"))
		return tap_done();
	for (int i = 0; i < MODELS; i++)
		test_round_trip(i);
	with_model(SMALL_MODEL, test_damage);
	with_model(models[0].path, models[0].sizes, test_packed);
	with_model(FOLDING_MODEL, test_packed);
	return tap_done();
}
