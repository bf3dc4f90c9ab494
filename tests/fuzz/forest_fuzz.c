/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures given as arrays: a byte is an element, so that cycles, dangling children and children of many
 * are all a byte away from a tree. */
#include "linearize/linearize.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

struct bytes {
	const uint8_t *at, *end;
};

static int take(struct bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

/* Small negative numbers, and all that a structure of up to a hundred nodes needs. */
static int32_t *take_array(struct fuzz *f, struct bytes *b, int n)
{
	int32_t *a = ARENA_ARRAY(&f->arena, int32_t, n);
	for (int i = 0; i < n; i++)
		a[i] = (int8_t)take(b);
	return a;
}

static void check_batches(const struct fuzz *f, const struct lin_forest *in, const struct lin_order *o)
{
	fuzz_check(f, o->batch_begin[0] == 0 && o->batch_begin[o->batches] == o->nodes,
		   "every node is in a batch");
	for (int32_t b = 0; b < o->batches; b++)
		for (int32_t n = o->batch_begin[b]; n < o->batch_begin[b + 1]; n++) {
			int32_t id = o->order[n];
			fuzz_check(f, o->number[id] == n, "order and number are inverse");
			fuzz_check(f, (in->child_begin[id] == in->child_begin[id + 1]) == (n < o->leaves),
				   "leaves come first");
			for (int32_t e = in->child_begin[id]; e < in->child_begin[id + 1]; e++)
				fuzz_check(f, o->number[in->children[e]] < o->batch_begin[b],
					   "children lie in earlier batches");
		}
}

static void check_children(const struct fuzz *f, const struct lin_forest *in, const struct lin_order *o)
{
	for (int32_t n = 0; n < o->nodes; n++) {
		int32_t first = in->child_begin[o->order[n]];
		for (int32_t slot = 0; slot < o->slots; slot++)
			fuzz_check(f,
				   lin_child(o, slot)[n] ==
				       (n < o->leaves ? -1 : o->number[in->children[first + slot]]),
				   "a slot holds the child's number");
		for (int32_t e = 0; o->child_list && e < o->child_begin[n + 1] - o->child_begin[n]; e++)
			fuzz_check(f,
				   o->child_list[o->child_begin[n] + e] == o->number[in->children[first + e]],
				   "a list holds the children's numbers");
	}
}

static void check_places(const struct fuzz *f, const struct lin_forest *in, const struct lin_order *o)
{
	int32_t edge = 0;
	for (int32_t n = 0; o->place && n < o->nodes; n++)
		for (int32_t e = in->child_begin[o->order[n]]; e < in->child_begin[o->order[n] + 1]; e++, edge++)
			fuzz_check(f, o->place[o->number[in->children[e]]] == edge, "a child has its edge's place");
	for (int32_t n = 0; o->place && n < o->nodes; n++)
		fuzz_check(f, o->place[n] >= 0 && o->place[n] < o->nodes, "a place is a row");
}

/* Caches that no forest fits, so that small forests take the passes of large ones. */
enum { NO_L2 = 1, NO_L3 = 2 };

/* A second time, in the memory of the first: the order must not depend on what it was. */
static bool linearize(struct fuzz *f, const struct lin_forest *in, struct lin_rules rules, int caches)
{
	struct lin_order o;
	lin_order_init(&o, &f->allocator);
	if (caches & NO_L2)
		o.l2_bytes = 0;
	if (caches & NO_L3)
		o.l3_bytes = 0;
	bool ok = lin_linearize(&o, in, rules, &f->diags);
	if (ok) {
		check_batches(f, in, &o);
		check_children(f, in, &o);
		check_places(f, in, &o);
	}
	fuzz_check(f, lin_linearize(&o, in, rules, &f->diags) == ok, "the same forest has the same fate");
	lin_order_free(&o);
	return ok;
}

/* The same nodes as inputs of their own, one by one and joined. */
static void collect(struct fuzz *f, const struct lin_forest *in, struct lin_rules rules, int caches)
{
	struct lin_collect c;
	struct diags d;
	lin_collect_init(&c, &f->allocator);
	diags_init(&d, &f->allocator);
	bool ok = lin_collect_add(&c, in->nodes, in->child_begin, in->children, &d) &&
		  lin_collect_add_rooted(&c, in->nodes, in->child_begin, in->children, in->root[0], &d);
	fuzz_check(f, ok || d.n, "a structure is refused with a reason");
	if (ok) {
		struct lin_forest both = lin_collect_forest(&c);
		linearize(f, &both, rules, caches);
	}
	diags_free(&d);
	lin_collect_free(&c);
}

static bool read_forest(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct bytes b = {bytes, bytes + n};
	int kind = take(&b), size = take(&b), nodes = size % 64, caches = size / 64, inputs = 1 + take(&b) % 4;
	struct lin_rules rules = {.children = kind % 5 - 1,
				  .shared = kind / 5 % 2,
				  .edges = kind / 10 % 2,
				  .places = kind / 20 % 2,
				  .unlinked = kind / 40 % 2,
				  .span = kind / 80};
	int32_t *child_begin = take_array(f, &b, nodes + 1), *root = take_array(f, &b, inputs);
	int32_t *children = take_array(f, &b, 128);
	struct lin_forest in = {nodes, kind / 20 % 4 ? inputs : 0, child_begin, children, root, NULL, NULL,
				0};
	bool ok = linearize(f, &in, rules, caches);
	collect(f, &in, rules, caches);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(read_forest, bytes, n);
}
