/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers: nodes are sorted by batch, and in a batch by case.
 *
 * Heights may contain the mark LIN_CHILD, but not in forests so high that it could be one. */
#include "linearize/linearize.h"

#include <string.h>

/* --- by cases --- */

/* Whether a case depends on whether a node has a parent. */
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

static bool fits_case(const struct image_case *k, const struct lin_cases *cases, int32_t id, int32_t children,
		      bool parent)
{
	if (k->inner != (children > 0) || (k->children >= 0 && k->children != children))
		return false;
	if (k->parent != IMAGE_EITHER && parent != (k->parent == IMAGE_YES))
		return false;
	for (int m = 0; m < k->matches; m++)
		if (cases->token[k->match[m].input][id] != k->match[m].value)
			return false;
	return true;
}

/* The case of each node by id. */
static void find_cases(const struct lin_forest *f, const struct lin_cases *cases, int32_t *marks,
		       int32_t *case_of)
{
	bool parents = depend_on_parents(cases);
	if (parents)
		mark_children(f, marks);
	for (int32_t n = 0; n < f->nodes; n++) {
		int32_t c = 0, children = f->child_begin[n + 1] - f->child_begin[n];
		while (!fits_case(&cases->at[c], cases, n, children, parents && marks[n]))
			c++;
		case_of[n] = c;
	}
}

static bool reserve_begins(struct lin_order *o, struct diags *diags)
{
	size_t n;
	if (__builtin_mul_overflow((size_t)o->batches, o->cases, &n) ||
	    !lin_reserve(o, &o->case_block, (n + 2) * sizeof *o->case_begin, diags))
		return false;
	o->case_begin = lin_block_begin(&o->case_block);
	memset(o->case_begin, 0, (n + 2) * sizeof *o->case_begin);
	return true;
}

/* Counts the nodes of key k at k + 2; of the last key, nobody needs the count. */
static void count_cases(struct lin_order *o)
{
	struct lin_sort s = lin_sort_of(o);
	int64_t keys = (int64_t)o->batches * o->cases;
	for (int32_t n = 0; n < o->nodes; n++) {
		int64_t at = lin_key(&s, n);
		s.begin[at + 2] += at + 1 < keys;
	}
}

/* --- begins and numbers --- */

/* Counts at k + 2 become the first number of key k at k + 1. */
static void sum_counts(int32_t *begin, int64_t keys)
{
	begin[0] = begin[1] = 0;
	for (int64_t k = 2; k <= keys; k++)
		begin[k] += begin[k - 1];
}

bool lin_find_begins(struct lin_order *o, const struct lin_forest *f, const struct lin_rules *rules,
		     struct diags *diags)
{
	o->leaves = o->batches ? o->batch_begin[2] : 0;
	if (!rules->cases) {
		sum_counts(o->batch_begin, o->batches);
		return true;
	}
	o->cases = rules->cases->n;
	if (o->nodes)
		find_cases(f, rules->cases, o->order, o->case_of);
	if (!reserve_begins(o, diags))
		return false;
	count_cases(o);
	sum_counts(o->case_begin, (int64_t)o->batches * o->cases);
	return true;
}

/* `case_of` may be a constant. */
static inline __attribute__((always_inline)) void take_numbers(struct lin_order *o, const int32_t *case_of)
{
	struct lin_sort s = lin_sort_of(o);
	int32_t nodes = o->nodes;
	s.case_of = case_of;
	for (int32_t n = 0; n < nodes; n++)
		lin_take_number(&s, n);
}

void lin_number(struct lin_order *o)
{
	if (o->cases)
		take_numbers(o, o->case_of);
	else
		take_numbers(o, NULL);
}

/* Until now `case_of` was by id. */
void lin_end_cases(struct lin_order *o)
{
	const int32_t *end = o->case_begin + 1;
	int32_t n = 0;
	for (int32_t b = 0; b < o->batches; b++) {
		o->batch_begin[b] = n;
		for (int32_t c = 0; c < o->cases; c++, end++)
			while (n < *end)
				o->case_of[n++] = c;
	}
	o->batch_begin[o->batches] = n;
}
