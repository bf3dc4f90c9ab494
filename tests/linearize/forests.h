/* What the tests of this folder share: forests by hand, and the contract of an order, checked the slow way.
 */
#ifndef ESPALIER_TESTS_LINEARIZE_FORESTS_H
#define ESPALIER_TESTS_LINEARIZE_FORESTS_H

#include "linearize/linearize.h"

#include "tests/io/files.h"

static const struct lin_rules any_tree = {-1, false, false, true, false}, any_dag = {-1, true, false, true, false},
			      binary = {2, false, false, true, false}, chain_rules = {1, false, false, true, false};

/* Heights as they are defined, by recursion with memory; -1 = not known yet. */
static inline int32_t naive_height(const struct lin_forest *f, int32_t *height, int32_t n)
{
	if (height[n] < 0) {
		int32_t most = -1;
		for (int32_t i = f->child_begin[n]; i < f->child_begin[n + 1]; i++) {
			int32_t h = naive_height(f, height, f->children[i]);
			most = h > most ? h : most;
		}
		height[n] = most + 1;
	}
	return height[n];
}

/* The numbers that the contract gives: for every height in turn, every node of it. */
static inline int naive_numbers(const struct lin_forest *f, const int32_t *height, int32_t *number,
				int32_t *begin)
{
	int32_t next = 0, batches = 0;
	for (int32_t h = 0; next < f->nodes; h++) {
		begin[batches++] = next;
		for (int32_t n = 0; n < f->nodes; n++)
			if (height[n] == h)
				number[n] = next++;
	}
	begin[batches] = next;
	return batches;
}

static inline bool same(const int32_t *a, const int32_t *b, int64_t n)
{
	return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

/* The definition, edge by edge: the child that edge e leads to has place e, and after the last edge every node that is
 * nobody's child has the next one, by number. */
static inline bool places_right(const struct lin_order *o, const struct lin_forest *f, struct lin_rules rules)
{
	int32_t next = 0, *parents = ARENA_ARRAY(&arena, int32_t, f->nodes + 1);
	if (!rules.places || rules.shared)
		return !o->place;
	bool ok = true;
	for (int32_t n = 0; n < f->nodes; n++)
		for (int32_t e = f->child_begin[o->order[n]]; e < f->child_begin[o->order[n] + 1]; e++) {
			int32_t child = o->number[f->children[e]];
			ok &= o->place[child] == next++ && !parents[child]++;
		}
	for (int32_t n = 0; n < f->nodes; n++)
		ok &= parents[n] || o->place[n] == next++;
	return ok && next == f->nodes;
}

/* That the index arrays say of the new numbers what the forest says of the ids. */
static inline bool indices_right(const struct lin_order *o, const struct lin_forest *f,
				 struct lin_rules rules)
{
	bool linked = !rules.unlinked, ok = (rules.children < 0 && linked) == (o->child_list != NULL) &&
					    (uintptr_t)o->order % 64 == 0 && (linked || o->slots == 0);
	for (int32_t n = 0; ok && n < f->nodes; n++) {
		int32_t to = o->number[n], count = f->child_begin[n + 1] - f->child_begin[n];
		ok = o->order[to] == n && (to < o->leaves) == (count == 0);
		if (rules.children < 0)
			ok &= o->child_begin[to + 1] - o->child_begin[to] == count;
		for (int32_t k = 0; ok && linked && k < count; k++) {
			int32_t child = o->number[f->children[f->child_begin[n] + k]];
			ok =
			    child < to && child == (rules.children < 0 ? o->child_list[o->child_begin[to] + k]
								       : lin_child(o, k)[to]);
		}
		for (int32_t k = 0; ok && linked && k < rules.children && !count; k++)
			ok = lin_child(o, k)[to] == -1;
	}
	for (int64_t i = 0; ok && i < f->inputs; i++)
		ok = o->root[i] == o->number[f->root[i]];
	return ok && places_right(o, f, rules);
}

/* Everything that the contract says, for forests that are not deep. */
static inline bool order_right(const struct lin_order *o, const struct lin_forest *f, struct lin_rules rules)
{
	int32_t *height = ARENA_ARRAY(&arena, int32_t, f->nodes + 1),
		*number = ARENA_ARRAY(&arena, int32_t, f->nodes + 1),
		*begin = ARENA_ARRAY(&arena, int32_t, f->nodes + 1);
	memset(height, -1, f->nodes * sizeof *height);
	for (int32_t n = 0; n < f->nodes; n++)
		naive_height(f, height, n);
	int32_t batches = naive_numbers(f, height, number, begin);
	return o->nodes == f->nodes && o->inputs == f->inputs && o->batches == batches &&
	       same(o->number, number, f->nodes) && same(o->batch_begin, begin, batches + 1) &&
	       o->leaves == (batches ? begin[1] : 0) && indices_right(o, f, rules);
}

#endif
