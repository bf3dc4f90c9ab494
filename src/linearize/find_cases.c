/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The cases of nodes, and how many nodes each has in each batch.
 *
 * Which case a node is of cannot be predicted where a token decides it, so there is no branch on it: for a
 * block of nodes, each condition of each case is a loop that vectors compute. */
#include "linearize/linearize.h"

#include <string.h>

enum { BLOCK = 16 };

/* Nodes from `first` on. */
struct nodes {
	const int32_t *has_parent; /* of all nodes; NULL where no case asks for it */
	int32_t first;
	int32_t children[BLOCK];
};

static bool depend_on_parents(const struct lin_cases *cases)
{
	bool any = false;
	for (int c = 0; c < cases->n; c++)
		any |= cases->at[c].parent != IMAGE_EITHER;
	return any;
}

/* Marks the nodes that have a parent, by id. */
static void mark_children(const struct lin_forest *f, int32_t *marks)
{
	memset(marks, 0, f->nodes * sizeof *marks);
	for (int32_t i = f->child_begin[0]; i < f->child_begin[f->nodes]; i++)
		marks[f->children[i]] = 1;
}

/* Puts the number of a case to those of `n` nodes that fit it.  A mask has all bits of a node, or none. */
static inline __attribute__((always_inline)) void put_case(const struct lin_cases *cases, int c,
							   const struct nodes *at, int n,
							   int32_t *restrict case_of)
{
	const struct image_case *k = &cases->at[c];
	int32_t fits[BLOCK], any = -(k->children < 0);
	for (int i = 0; i < n; i++)
		fits[i] = -((at->children[i] > 0) == k->inner) & (any | -(at->children[i] == k->children));
	for (int i = 0; at->has_parent && k->parent != IMAGE_EITHER && i < n; i++)
		fits[i] &= -(at->has_parent[at->first + i] == (k->parent == IMAGE_YES));
	for (int m = 0; m < k->matches; m++) {
		const int32_t *token = cases->token[k->match[m].input] + at->first, value = k->match[m].value;
		for (int i = 0; i < n; i++)
			fits[i] &= -(token[i] == value);
	}
	for (int i = 0; i < n; i++)
		case_of[i] = (c & fits[i]) | (case_of[i] & ~fits[i]);
}

/* A node is of the first case that fits, so that is put last. */
static inline __attribute__((always_inline)) void
put_cases(const struct lin_forest *f, const struct lin_cases *cases, struct nodes *at, int n, int32_t *case_of)
{
	const int32_t *begin = f->child_begin + at->first;
	for (int i = 0; i < n; i++)
		at->children[i] = begin[i + 1] - begin[i];
	for (int i = 0; i < n; i++)
		case_of[i] = cases->n - 1;
	for (int c = cases->n - 1; c-- > 0;)
		put_case(cases, c, at, n, case_of);
}

/* Counts the nodes of key k at k + 2, and likewise their edges. */
static void count_keys(struct lin_order *o, const struct nodes *at, int n)
{
	struct lin_sort s = lin_sort_of(o);
	for (int i = 0; i < n; i++) {
		int64_t key = lin_key(&s, at->first + i) + 2;
		s.begin[key]++;
		if (s.edge_begin)
			s.edge_begin[key] += at->children[i];
	}
}

static bool reserve_begins(struct lin_order *o, struct diags *diags)
{
	size_t n, arrays = o->edge_begin ? 2 : 1;
	if (__builtin_mul_overflow((size_t)o->batches, o->cases, &n) ||
	    !lin_reserve(o, &o->case_block, (n + 2) * arrays * sizeof *o->case_begin, diags))
		return false;
	o->case_begin = lin_block_begin(&o->case_block);
	memset(o->case_begin, 0, (n + 2) * arrays * sizeof *o->case_begin);
	if (o->edge_begin)
		o->edge_begin = o->case_begin + n + 2;
	return true;
}

bool lin_count_cases(struct lin_order *o, const struct lin_forest *f, const struct lin_cases *cases,
		     struct diags *diags)
{
	int32_t *marks = depend_on_parents(cases) ? o->order : NULL;
	struct nodes at;
	if (!reserve_begins(o, diags))
		return false;
	if (marks)
		mark_children(f, marks);
	at.has_parent = marks;
	for (at.first = 0; at.first + BLOCK <= o->nodes; at.first += BLOCK) {
		put_cases(f, cases, &at, BLOCK, o->case_of + at.first);
		count_keys(o, &at, BLOCK);
	}
	if (at.first < o->nodes) {
		put_cases(f, cases, &at, o->nodes - at.first, o->case_of + at.first);
		count_keys(o, &at, o->nodes - at.first);
	}
	return true;
}
