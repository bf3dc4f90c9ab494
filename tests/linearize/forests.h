/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder share: forests by hand, and the contract of an order, checked the slow way.
 */
#ifndef ESPALIER_TESTS_LINEARIZE_FORESTS_H
#define ESPALIER_TESTS_LINEARIZE_FORESTS_H

#include "linearize/linearize.h"

#include "tests/io/files.h"

static const struct lin_rules any_tree = {.children = -1,
					  .places = true,
					  .parent = true,
					  .parents = true,
					  .origins = true,
					  .edge_nodes = true},
			      any_dag = {.children = -1,
					 .shared = true,
					 .places = true,
					 .parent = true,
					 .parents = true},
			      binary = {.children = 2, .places = true, .parent = true},
			      chain_rules = {.children = 1, .places = true, .parent = true, .parents = true};

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

/* The first case that a node fits, by the definition; 0 where there are none. */
static inline int32_t naive_case(const struct lin_forest *f, const struct lin_cases *cases, int32_t n)
{
	int32_t children = f->child_begin[n + 1] - f->child_begin[n];
	bool parent = false;
	for (int32_t e = f->child_begin[0]; e < f->child_begin[f->nodes]; e++)
		parent |= f->children[e] == n;
	for (int32_t c = 0; cases && c < cases->n; c++) {
		const struct image_case *k = &cases->at[c];
		bool fits = k->inner == (children > 0) && (k->children < 0 || k->children == children) &&
			    (k->parent == IMAGE_EITHER || (k->parent == IMAGE_YES) == parent);
		for (int m = 0; m < k->matches; m++)
			fits &= cases->token[k->match[m].input][n] == k->match[m].value;
		if (fits)
			return c;
	}
	return 0;
}

/* The numbers that the contract gives: for every height in turn and every case, every node of them. */
static inline int naive_numbers(const struct lin_forest *f, const struct lin_cases *cases, const int32_t *height,
				const int32_t *case_of, int32_t *number, int32_t *begin)
{
	int32_t next = 0, batches = 0;
	for (int32_t h = 0; next < f->nodes; h++) {
		begin[batches++] = next;
		for (int32_t c = 0; c < (cases ? cases->n : 1); c++)
			for (int32_t n = 0; n < f->nodes; n++)
				if (height[n] == h && case_of[n] == c)
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

/* The parents of a node are those whose children name it, by id, once for each edge. */
static inline bool parents_right(const struct lin_order *o, const struct lin_forest *f, struct lin_rules rules)
{
	bool ok = (o->parent != NULL) == (rules.parent && !rules.shared) && (o->parent_begin != NULL) == rules.parents;
	int32_t *seen = ARENA_ARRAY(&arena, int32_t, f->nodes + 1);
	for (int32_t p = 0; ok && p < f->nodes; p++)
		for (int32_t e = f->child_begin[p]; ok && e < f->child_begin[p + 1]; e++) {
			int32_t child = o->number[f->children[e]], at = seen[child]++;
			ok = !o->parent || o->parent[child] == o->number[p];
			ok &= !rules.parents || o->parent_list[o->parent_begin[child] + at] == o->number[p];
		}
	for (int32_t n = 0; ok && n < f->nodes; n++) {
		ok = seen[n] || !o->parent || o->parent[n] == -1;
		ok &= !rules.parents || o->parent_begin[n + 1] - o->parent_begin[n] == seen[n];
	}
	return ok && (!rules.parents || o->parent_begin[0] == 0);
}

/* Without spans: where the batch of each node begins, and which node each edge is of. */
static inline bool origins_right(const struct lin_order *o, struct lin_rules rules)
{
	bool ok = (o->origin != NULL) == rules.origins && (o->edge_node != NULL) == rules.edge_nodes;
	for (int32_t b = 0; ok && rules.origins && b < o->batches; b++)
		for (int32_t n = o->batch_begin[b]; n < o->batch_begin[b + 1]; n++)
			ok &= o->origin[n] == o->batch_begin[b];
	for (int32_t n = 0; ok && rules.edge_nodes && n < o->nodes; n++)
		for (int32_t e = o->child_begin[n]; e < o->child_begin[n + 1]; e++)
			ok &= o->edge_node[e] == n;
	return ok;
}

/* That the index arrays say of the new numbers what the forest says of the ids. */
static inline bool indices_right(const struct lin_order *o, const struct lin_forest *f,
				 struct lin_rules rules)
{
	bool linked = !rules.unlinked || o->span, fixed = rules.children >= 0, edges = !fixed || rules.edges,
	     ok = (edges && linked) == (o->child_list != NULL) && edges == (o->child_begin != NULL) &&
		  (uintptr_t)o->order % 64 == 0 && o->slots == (fixed && linked ? rules.children : 0);
	for (int32_t n = 0; ok && n < f->nodes; n++) {
		int32_t to = o->number[n], count = f->child_begin[n + 1] - f->child_begin[n];
		ok = o->order[to] == n && (to < o->leaves) == (count == 0);
		if (edges)
			ok &= o->child_begin[to + 1] - o->child_begin[to] == count;
		for (int32_t k = 0; ok && linked && k < count; k++) {
			int32_t child = o->number[f->children[f->child_begin[n] + k]];
			ok = child < to && (!edges || child == o->child_list[o->child_begin[to] + k]) &&
			     (!fixed || child == lin_child(o, k)[to]);
		}
		for (int32_t k = 0; ok && linked && k < rules.children && !count; k++)
			ok = lin_child(o, k)[to] == -1;
	}
	for (int64_t i = 0; ok && i < f->inputs; i++)
		ok = o->root[i] == o->number[f->root[i]];
	return ok && places_right(o, f, rules) && parents_right(o, f, rules) && (o->span || origins_right(o, rules));
}

/* That each case of each batch is where it is said to be. */
static inline bool cases_right(const struct lin_order *o, const struct lin_cases *cases, const int32_t *height,
			       const int32_t *case_of)
{
	if (!cases)
		return !o->cases && !o->case_of && !o->case_begin;
	bool ok = o->cases == cases->n && o->case_begin[o->batches * o->cases] == o->nodes;
	for (int32_t n = 0; ok && n < o->nodes; n++) {
		int32_t id = o->order[n], at = height[id] * o->cases + case_of[id];
		ok = o->case_of[n] == case_of[id] && o->case_begin[at] <= n && n < o->case_begin[at + 1];
	}
	return ok;
}

/* Everything that the contract says, for forests that are not deep. */
static inline bool order_right(const struct lin_order *o, const struct lin_forest *f, struct lin_rules rules)
{
	int32_t *height = ARENA_ARRAY(&arena, int32_t, f->nodes + 1),
		*number = ARENA_ARRAY(&arena, int32_t, f->nodes + 1),
		*begin = ARENA_ARRAY(&arena, int32_t, f->nodes + 1),
		*case_of = ARENA_ARRAY(&arena, int32_t, f->nodes + 1);
	memset(height, -1, f->nodes * sizeof *height);
	for (int32_t n = 0; n < f->nodes; n++) {
		naive_height(f, height, n);
		case_of[n] = naive_case(f, rules.cases, n);
	}
	int32_t batches = naive_numbers(f, rules.cases, height, case_of, number, begin);
	return o->nodes == f->nodes && o->inputs == f->inputs && o->batches == batches &&
	       same(o->number, number, f->nodes) && same(o->batch_begin, begin, batches + 1) &&
	       o->leaves == (batches ? begin[1] : 0) && indices_right(o, f, rules) &&
	       cases_right(o, rules.cases, height, case_of);
}

#endif
