/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers: nodes are sorted by batch, and in a batch by case.
 *
 * Heights may contain the mark LIN_CHILD, but not in forests so high that it could be one. */
#include "linearize/linearize.h"

#include <string.h>

static int32_t height_mask(const struct lin_order *o)
{
	return o->batches > LIN_CHILD ? -1 : ~LIN_CHILD;
}

/* Counting sort by height, stable in the id.  Nodes of height h were counted at h + 2; the sums put the begin
 * of h at h + 1, and numbering advances it to the end of h, which is where h + 1 begins. */
void lin_number(struct lin_order *o)
{
	int32_t *begin = o->batch_begin, mask = height_mask(o);
	begin[0] = begin[1] = 0;
	for (int32_t b = 2; b <= o->batches; b++)
		begin[b] += begin[b - 1];
	for (int32_t n = 0; n < o->nodes; n++) {
		int32_t to = begin[(o->height[n] & mask) + 1]++;
		o->number[n] = to;
		o->order[to] = n;
	}
	o->leaves = o->batches ? begin[1] : 0;
}

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

/* The same counting sort by batch and case. */
static void sort_by_case(struct lin_order *o)
{
	int32_t *begin = o->case_begin, *case_of = o->number, mask = height_mask(o), cases = o->cases;
	int64_t places = (int64_t)o->batches * cases;
	for (int32_t n = 0; n < o->nodes; n++) {
		int64_t at = (int64_t)(o->height[n] & mask) * cases + case_of[n];
		begin[at + 2] += at + 1 < places;
	}
	for (int64_t i = 2; i <= places; i++)
		begin[i] += begin[i - 1];
	for (int32_t n = 0; n < o->nodes; n++) {
		int32_t c = case_of[n], to = begin[(int64_t)(o->height[n] & mask) * cases + c + 1]++;
		o->number[n] = to;
		o->order[to] = n;
		o->case_of[to] = c;
	}
}

bool lin_number_cases(struct lin_order *o, const struct lin_forest *f, const struct lin_rules *rules,
		      struct diags *diags)
{
	const struct lin_cases *cases = rules->cases;
	o->cases = cases->n;
	if (o->nodes)
		find_cases(f, cases, o->case_of, o->number);
	if (!reserve_begins(o, diags))
		return false;
	sort_by_case(o);
	for (int32_t b = 0; b <= o->batches; b++)
		o->batch_begin[b] = o->case_begin[(int64_t)b * o->cases];
	o->leaves = o->batches ? o->batch_begin[1] : 0;
	return true;
}
