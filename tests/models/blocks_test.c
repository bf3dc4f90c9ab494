/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the steps of an image say of their blocks of columns. */
#include "tests/models/helper.h"

static const struct image_step *step_of(const struct test_run *r, const char *kernel)
{
	for (int i = 0; i < r->image.steps; i++)
		if (strcmp(r->image.kernel_name[r->image.step[i].kernel], kernel) == 0)
			return &r->image.step[i];
	return NULL;
}

static bool start(struct test_model *t, struct test_run *r, const char *path, const char *sizes,
		  const char *schedule)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	memset(r, 0, sizeof *r);
	return load_model(t, path, sizes) && compile_run(r, t, &o);
}

static void finish(struct test_model *t, struct test_run *r)
{
	end_run(r);
	free_model(t);
}

/* Five gates, a matrix for each child and a bias each, their columns padded to whole blocks. */
static void test_weights(int d, int columns, int blocks)
{
	struct test_model t = {0};
	struct test_run r;
	char sizes[40], schedule[80];
	snprintf(sizes, sizeof sizes, "D=%d E=8 V=9", d);
	snprintf(schedule, sizeof schedule, "tile inner.0 nodes 2 1 columns %d unroll 1\n", columns);
	bool ok = start(&t, &r, "tests/ra/good/treelstm.ra", sizes, schedule);
	const struct image_step *inner = ok ? step_of(&r, "inner") : NULL;
	int64_t block = 4 * 5 * (2 * d + 1) * 8 * columns;
	tap_ok(inner && inner->blocks == blocks && inner->block_bytes == block &&
		   inner->weight_bytes == block * blocks,
	       "TreeLSTM of %d in blocks of %d: %d blocks that read %lld bytes each", d, 8 * columns,
	       inner ? inner->blocks : 0, inner ? (long long)inner->block_bytes : 0);
	finish(&t, &r);
}

/* A group each, and where a concatenation falls into two parts, each of these. */
static void test_groups(void)
{
	static const char *const kernels[] = {"inner.0", "inner.1", "inner.2", "inner.3.part1", "inner.3.part2"};
	struct test_model t = {0};
	struct test_run r;
	bool ok = start(&t, &r, "tests/golden/gated.ra", "D=3 X=2", "tile inner.3 by columns\n");
	for (size_t i = 0; ok && i < sizeof kernels / sizeof *kernels; i++) {
		const struct image_step *s = step_of(&r, kernels[i]);
		tap_ok(s && s->domain == IMAGE_DOMAIN_INNER && s->blocks == 1 && s->operations > 0 &&
			   s->rows > 0,
		       "%s is a kernel and a step", kernels[i]);
	}
	const struct image_step *first = ok ? step_of(&r, "inner.0") : NULL;
	tap_ok(first && first->operations < 100, "with the operations of its own group: %d",
	       first ? first->operations : 0);
	finish(&t, &r);
}

/* Without weights rows are outside, and all parts of a row inside. */
static void test_by_rows(void)
{
	struct test_model t = {0};
	struct test_run r;
	bool ok = start(&t, &r, "tests/golden/gated.ra", "D=64 X=2", NULL);
	const struct image_step *s = ok ? step_of(&r, "inner.3") : NULL;
	tap_ok(s && s->blocks == 1 && !step_of(&r, "inner.3.part1"),
	       "an elementwise kernel goes row by row, in one block");
	s = ok ? step_of(&r, "inner.0") : NULL;
	tap_ok(s && s->blocks > 1, "beside one of products, in %d", s ? s->blocks : 0);
	finish(&t, &r);
}

/* One kernel for both cases tests each node: rows are outside. */
static void test_one_block(void)
{
	struct test_model t = {0};
	struct test_run r;
	bool ok = start(&t, &r, "tests/ra/good/treelstm.ra", "D=40 E=8 V=9", "specialize none\n");
	const struct image_step *node = ok ? step_of(&r, "node") : NULL;
	tap_ok(node && node->blocks == 1 && node->block_bytes >= 4 * 5 * (2 * 40 + 1) * 40,
	       "a kernel whose rows are outside has one block, of all weights");
	finish(&t, &r);
}

/* Each of the blocks multiplies other rows of the states by the same matrix. */
static void test_shared_weights(void)
{
	enum { D = 64 };
	struct test_model t = {0};
	struct test_run r;
	bool ok = start(&t, &r, "tests/models/matrices.ra", "D=64 V=4", "tile inner.1 nodes 2 1 along 1\n");
	const struct image_step *s = ok ? step_of(&r, "inner.1") : NULL;
	tap_ok(s && s->blocks > D && s->block_bytes * s->blocks == 4 * D * D * D && s->weight_bytes == 4 * D * D,
	       "weights that %d blocks share are counted once: %lld bytes", s ? s->blocks : 0,
	       s ? (long long)s->weight_bytes : 0);
	finish(&t, &r);
}

/* The four matrices of an edge's label, besides the rows of tables that a word selects. */
static void test_edges(void)
{
	enum { D = 48 };
	struct test_model t = {0};
	struct test_run r;
	bool ok = start(&t, &r, "examples/labelled/matrix.ra", "D=48 E=8 V=9 R=3 C=2", NULL);
	const struct image_step *s = ok ? step_of(&r, "inner.0") : NULL;
	tap_ok(s && s->sort && s->edge_bytes == 4 * 4 * D * D && s->edge_input == 1,
	       "weights that an edge selects by its label: %lld bytes", s ? (long long)s->edge_bytes : 0);
	s = ok ? step_of(&r, "leaf") : NULL;
	tap_ok(s && s->edge_bytes == 0, "leaves have no edges");
	finish(&t, &r);
}

/* A leaf of a depthwise convolution asks for lines of the state ahead of storing to them, and reads none. */
static void test_prefetched(void)
{
	struct test_model t = {0};
	struct test_run r;
	bool ok = start(&t, &r, "tests/golden/depthwise.ra", "C=16 H=32", "pad off\n");
	const struct image_step *s = ok ? step_of(&r, "leaf") : NULL;
	tap_ok(s && s->state_bytes == 0 && s->read_bytes == 0, "what is only prefetched is not read: %lld bytes of states",
	       s ? (long long)s->state_bytes : -1);
	s = ok ? step_of(&r, "inner") : NULL;
	tap_ok(s && s->state_bytes >= 2 * 4 * 16 * 32 * 32, "the states of two children are: %lld",
	       s ? (long long)s->state_bytes : -1);
	finish(&t, &r);
}

/* The products that a child keeps for its parents are read in the columns that a parent computes, so that the
 * gates of a level need not wait for those of the level below; the reset gate of a GRU is read whole. */
static void test_joins(void)
{
	struct test_model t = {0};
	struct test_run r;
	bool ok = start(&t, &r, "bench/models/childsum.ra", "D=64 V=9", NULL);
	const struct image_step *gates = ok ? step_of(&r, "inner.1") : NULL;
	const struct image_step *kept = ok ? step_of(&r, "inner.2") : NULL;
	tap_ok(gates && kept && gates->after == kept - r.image.step + 1 && !kept->after &&
		   gates->columns * gates->blocks == 64,
	       "gates follow the products of the level below: step %d", gates ? gates->after : -1);
	finish(&t, &r);
	memset(&t, 0, sizeof t);
	ok = start(&t, &r, "bench/models/treegru.ra", "D=64 V=9", NULL);
	for (int i = 0; ok && i < r.image.steps; i++)
		ok = !r.image.step[i].after;
	tap_ok(ok, "no step of a GRU follows another without a barrier");
	finish(&t, &r);
}

int main(void)
{
	test_edges();
	test_weights(64, 1, 8);
	test_weights(64, 2, 4);
	test_weights(60, 1, 8);
	test_weights(150, 2, 10);
	test_groups();
	test_by_rows();
	test_one_block();
	test_shared_weights();
	test_prefetched();
	test_joins();
	return tap_done();
}
