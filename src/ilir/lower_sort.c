/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows in the order of a token, so that rows that one weight multiplies are tiles of a dense product.
 *
 *     for s in segment.of[begin]..segment.of[max(end - 1, begin)] + 1
 *       let token = rel[sorted[segment.begin[s]]]
 *       for p in max(begin, segment.begin[s])..min(end, segment.begin[s + 1])
 *         let e = sorted[p]
 *         .. W[token, i, k] .. h[child[e], k] ..
 *
 * A range of positions may begin and end in the middle of a segment, so it can be cut anywhere. */
#include "ilir/lower.h"

static ilir_buffer index_array(struct lowering *l, const char *base, size_t sort, enum image_buffer_kind kind,
			       const char *dim, bool edges)
{
	struct str name = str_in(l->m->arena);
	str_printf(&name, "%s.%zu", base, sort);
	return lower_index_buffer(l, str_text(&name), kind, (int)sort, dim, edges ? IMAGE_EDGES : IMAGE_NODES);
}

void lower_declare_sorts(struct lowering *l)
{
	size_t n = l->plan->sorts.n;
	l->sorted = ARENA_ARRAY(l->m->arena, struct lower_sorted, n);
	for (size_t i = 0; i < n; i++) {
		const struct sched_sort *s = &l->plan->sorts.at[i];
		vec_push(l->m->arena, &l->m->sorts, (struct image_sort){s->input, s->slot, s->edges});
		l->sorted[i] = (struct lower_sorted){
		    index_array(l, "sorted", i, IMAGE_SORTED, "position", s->edges),
		    index_array(l, "segment.of", i, IMAGE_SEGMENT_OF, "position", s->edges),
		    index_array(l, "segment.begin", i, IMAGE_SEGMENT_BEGIN, "segment", s->edges)};
	}
}

static const struct lower_sorted *arrays_of(const struct lowering *l)
{
	return &l->sorted[l->sort - l->plan->sorts.at];
}

struct ilir_stmt *lower_sorted_row(struct lowering *l, ilir_var row, ilir_expr at, struct ilir_stmt *block)
{
	return ilir_append(ilir_let(l->m, row, ilir_load_index(l->m, arrays_of(l)->sorted, &at, 1)), block);
}

void lower_segment_bounds(struct lowering *l, ilir_expr segment, ilir_expr *first, ilir_expr *last)
{
	ilir_buffer begin = arrays_of(l)->segment_begin;
	ilir_expr next = ilir_binary(l->m, ILIR_ADD, segment, ilir_index(l->m, 1));
	*first = ilir_binary(l->m, ILIR_MAX, ilir_load_index(l->m, begin, &segment, 1), ilir_var_ref(l->m, ilir_begin));
	*last = ilir_binary(l->m, ILIR_MIN, ilir_load_index(l->m, begin, &next, 1), ilir_var_ref(l->m, ilir_end));
}

/* The row of the token that the rows of a segment carry: their own, or that of their edge in a slot. */
static ilir_expr token_row(struct lowering *l, ilir_expr row)
{
	if (l->sort->slot < 0)
		return row;
	return ilir_binary(l->m, ILIR_ADD, ilir_load_index(l->m, l->child_begin, &row, 1),
			   ilir_index(l->m, l->sort->slot));
}

struct ilir_stmt *lower_segments(struct lowering *l, ilir_var segment, ilir_var token, struct ilir_stmt *block)
{
	struct ilir_module *m = l->m;
	const struct lower_sorted *a = arrays_of(l);
	ilir_expr at = ilir_var_ref(m, segment), one = ilir_index(m, 1);
	ilir_expr first = ilir_load_index(m, a->segment_begin, &at, 1);
	ilir_expr row = token_row(l, ilir_load_index(m, a->sorted, &first, 1));
	ilir_expr begin = ilir_var_ref(m, ilir_begin), before = ilir_binary(m, ILIR_SUB, ilir_var_ref(m, ilir_end), one);
	ilir_expr last = ilir_binary(m, ILIR_MAX, before, begin); /* the verifier does not know that there are rows */
	ilir_expr end = ilir_binary(m, ILIR_ADD, ilir_load_index(m, a->segment_of, &last, 1), one);
	struct ilir_stmt *let = ilir_let(m, token, ilir_load_index(m, l->input[l->sort->input], &row, 1));
	return ilir_for(m, segment, ilir_load_index(m, a->segment_of, &begin, 1), end, 1, ilir_dim_name(m, "segment"),
			ILIR_SERIAL, ilir_append(let, block));
}

bool lower_is_sorting_token(const struct lowering *l, const struct sub_map *map, ilir_expr at)
{
	const struct sched_sort *s = l->sort;
	return s && map->function == SUB_TOKEN && map->which == s->input && (s->slot < 0 || map->slot == s->slot) &&
	       at.i == (s->edges ? l->edge.i : l->row.i);
}
