/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Memory of intermediates: rows of one batch, places that are shared, and never by what is needed at once. */
#include "ilir/passes.h"
#include "runtime/shared.h"
#include "tests/models/agree.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"tests/golden/gated.ra", "D=16 X=4"},
    {"tests/golden/edges.ra", "D=16 V=9"},
    {"tests/ra/good/gru.ra", "D=18 E=7"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},
    {"tests/models/nested.ra", "A=5 B=9 C=15 F=6 G=5 V=9"},
};

/* Intermediates that are needed between the same steps, or in some of the same, have bytes of their own,
 * unless one stands in the place of the other. */
static bool is_apart(const struct test_run *r)
{
	const struct image *image = &r->image;
	int64_t offset[200], bytes;
	if (image->buffers > 200 || !rt_lay_out_scratch(image, r->session.sizes, offset, &bytes))
		return false;
	for (int i = 0; i < image->buffers; i++)
		for (int k = 0; k < i; k++) {
			const struct image_buffer *a = &image->buffer[i], *b = &image->buffer[k];
			bool both = a->kind == IMAGE_SCRATCH && b->kind == IMAGE_SCRATCH && !a->at_binding &&
				    !b->at_binding;
			int64_t row = 4 * a->row_elements, other = 4 * b->row_elements;
			if (both && a->home != b->home && a->last >= b->first && b->last >= a->first &&
			    offset[i] < offset[k] + other * r->session.sizes[b->rows] &&
			    offset[k] < offset[i] + row * r->session.sizes[a->rows])
				return false;
		}
	return bytes <= (int64_t)r->session.scratch_capacity;
}

/* What all intermediates come to. */
static int64_t bytes_of(const struct test_run *r)
{
	int64_t bytes = 0;
	for (int i = 0; i < r->image.buffers; i++) {
		const struct image_buffer *b = &r->image.buffer[i];
		if (b->kind == IMAGE_SCRATCH && !b->at_binding)
			bytes += 4 * b->row_elements * r->session.sizes[b->rows];
	}
	return bytes;
}

/* Runs one variant of storing, against the results of the first; writes the bytes of all intermediates. */
static bool same(struct setting *s, const char *schedule, int64_t *bytes)
{
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	bool ok = start_run(&r, s->model, &o) && run_forest(&r, &s->forest.minibatch) && same_bits(s, &r) &&
		  is_apart(&r);
	*bytes = ok ? bytes_of(&r) : -1;
	end_run(&r);
	return ok;
}

static void test_model(const char *path, const char *sizes)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = "fuse none\n"};
	if (!tap_ok(load_model(&t, path, sizes) && start_run(&r, &t, &o), "%s compiled", path))
		return;
	random_state = 7;
	make_forest(&s.forest, &r.image, 9, 30);
	if (tap_ok(run_forest(&r, &s.forest.minibatch), "%s run", path)) {
		int64_t dense = 0, by_node = 0, tested = 0, one_by_one = 0;
		s.expected = gather_outputs(&r, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
		tap_ok(is_apart(&r) && (int64_t)r.session.scratch_capacity <= bytes_of(&r),
		       "%s: %zu bytes for %lld of intermediates", path, r.session.scratch_capacity,
		       (long long)bytes_of(&r));
		bool ok =
		    same(&s, "fuse none\n", &dense) && same(&s, "fuse none\ndense_index off\n", &by_node);
		tap_ok(ok && dense < by_node, "%s: batches need %lld bytes, nodes %lld", path,
		       (long long)dense, (long long)by_node);
		tap_ok(same(&s, "fuse none\nspecialize none\n", &tested) && tested <= by_node,
		       "%s: cases in one kernel", path);
		tap_ok(same(&s, "fuse none\ndynamic_batch off\n", &one_by_one), "%s: node by node", path);
	}
	end_run(&r);
	free(s.expected);
	free_forest(&s.forest);
	free_model(&t);
}

/* In a chain of products each is read by the next one only: places alternate. */
static void test_homes(void)
{
	static const char text[] =
	    "model chain\nstructure sequence\ninput x[8]\nparam A[D, 8], B[D, D], C[D, D], E[D, D]\nstate "
	    "h[D]\n"
	    "node:\n    h = tanh(E @ tanh(C @ tanh(B @ tanh(B @ previous.h))) + A @ x)\n"
	    "output y = h\n";
	struct test_model t = {0};
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = "refactor off\n"};
	if (!tap_ok(load_text(&t, "chain", text, strlen(text), "D=16") && start_run(&r, &t, &o),
		    "chain compiled"))
		return;
	int stored = 0, homes = 0;
	for (int i = 0; i < r.image.buffers; i++)
		if (r.image.buffer[i].kind == IMAGE_SCRATCH && r.image.buffer[i].rows == IMAGE_WIDEST_INNER) {
			stored++;
			homes += r.image.buffer[i].home == i;
		}
	tap_ok(stored >= 3 && homes == 2, "%d intermediates of a chain have %d places", stored, homes);
	end_run(&r);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(models[i].path, models[i].sizes);
	test_homes();
	return tap_done();
}
