/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Where the intervals of index variables begin. */
#include "mutate/forms.h"

static int64_t extent_at(const struct mutate_draft *d, int position)
{
	const struct sub_var *v = &d->p->vars.at[d->scope.var[position]];
	return v->set == SUB_DIM || v->set == SUB_ROW ? v->extent : INT32_MAX;
}

void mutate_cut(struct mutate_draft *d, int position, int64_t index)
{
	mutate_cuts *cuts = &d->cuts[position];
	size_t at = cuts->n;
	if (index <= 0 || index >= extent_at(d, position))
		return;
	while (at && cuts->at[at - 1] >= index)
		at--;
	if (at < cuts->n && cuts->at[at] == index)
		return;
	if (cuts->n == MUTATE_MAX_CUTS) {
		d->why = "too many intervals";
		return;
	}
	vec_push(d->p->arena, cuts, index);
	memmove(&cuts->at[at + 1], &cuts->at[at], (cuts->n - 1 - at) * sizeof *cuts->at);
	cuts->at[at] = index;
}

static int64_t divide_down(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The index at which scale*index reaches, or falls below, a bound, for a scale that is not 0; held within 0 .. extent. */
static int64_t find_crossing(struct mutate_draft *d, int64_t scale, int64_t bound, int64_t extent)
{
	if (++d->work > MUTATE_MAX_WORK)
		d->why = "too many intervals";
	int64_t at = scale > 0	 ? -divide_down(-bound, scale)
		     : scale < 0 ? divide_down(-bound, -scale) + 1
				 : 0;
	return at < 0 ? 0 : at > extent ? extent : at;
}

/* For each index of the shorter variable the longer one has one crossing.  It is cut there, and the shorter one where the
 * crossing is another than before. */
void mutate_cut_at_bound(struct mutate_draft *d, const struct mutate_sum *sum, int64_t bound)
{
	int first = sum->scale[0] ? 0 : 1;
	if (!sum->scale[first])
		return;
	if (!sum->scale[!first]) {
		int at = sum->at[first];
		mutate_cut(d, at, find_crossing(d, sum->scale[first], bound, extent_at(d, at)));
		return;
	}
	int fine = extent_at(d, sum->at[0]) < extent_at(d, sum->at[1]) ? 0 : 1;
	int64_t before = -1, extent = extent_at(d, sum->at[!fine]);
	for (int64_t k = 0; k < extent_at(d, sum->at[fine]) && !d->why; k++) {
		int64_t at = find_crossing(d, sum->scale[!fine], bound - k * sum->scale[fine], extent);
		mutate_cut(d, sum->at[!fine], at);
		if (at != before)
			mutate_cut(d, sum->at[fine], k);
		before = at;
	}
}

void mutate_bound_sum(const struct mutate_draft *d, const struct mutate_sum *sum, int64_t *least, int64_t *most)
{
	*least = *most = 0;
	for (int i = 0; i < 2; i++)
		if (sum->scale[i]) {
			int64_t reach = sum->scale[i] * (extent_at(d, sum->at[i]) - 1);
			*(reach < 0 ? least : most) += reach;
		}
}
