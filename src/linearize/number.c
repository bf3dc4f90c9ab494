/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers: nodes are sorted by batch, and in a batch by case.
 *
 * Heights may contain the mark LIN_CHILD, but not in forests so high that it could be one. */
#include "linearize/linearize.h"

#include <string.h>

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
		if (o->edge_begin)
			sum_counts(o->edge_begin, o->batches);
		return true;
	}
	o->cases = rules->cases->n;
	if (!lin_count_cases(o, f, rules->cases, diags))
		return false;
	sum_counts(o->case_begin, (int64_t)o->batches * o->cases);
	if (o->edge_begin)
		sum_counts(o->edge_begin, (int64_t)o->batches * o->cases);
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
