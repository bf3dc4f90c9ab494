/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sorts rows by a token, so that rows that one weight multiplies stand together.
 *
 * Two counting sorts: the rows by token, then these by the cell that they are in, a batch or a case of it.  Both
 * keep the order of equal rows, so the result is sorted by cell, token and row. */
#include "runtime/shared.h"

#include <string.h>

/* A sort in the course of it.  Positions of a cell are the numbers of its rows. */
struct sorting {
	const struct image_sort *sort;
	const struct lin_order *order;

	int64_t rows, cells, limit;
	int32_t *token;	 /* by row */
	int32_t *cell;	 /* by row */
	int32_t *begin;	 /* of each cell; while rows are placed, where the next one goes */
	int32_t *count;	 /* by token, and one more */
	int32_t *by_token; /* rows */
	struct rt_sorted *to;
};

static int64_t rows_of(const struct image_sort *s, const struct lin_order *o)
{
	return s->edges ? o->edges : o->nodes;
}

/* --- keys --- */

/* The edges of the order's node n begin at this one in the caller's data. */
static int32_t first_edge(const struct lin_order *o, const struct lin_forest *f, int32_t n)
{
	return f->child_begin[o->order[n]];
}

static void read_tokens_of_edges(struct sorting *s, const struct lin_forest *f, const int32_t *token)
{
	int64_t at = 0;
	for (int32_t n = s->order->leaves; n < s->order->nodes; n++)
		for (int32_t e = first_edge(s->order, f, n), end = e + s->order->child_begin[n + 1] - s->order->child_begin[n];
		     e < end; e++)
			s->token[at++] = token[e];
}

static void read_tokens_of_nodes(struct sorting *s, const struct lin_forest *f, const int32_t *token)
{
	const struct lin_order *o = s->order;
	int slot = s->sort->slot;
	for (int32_t n = 0; n < o->nodes; n++)
		if (slot < 0)
			s->token[n] = token[o->order[n]];
		else
			s->token[n] = slot < o->child_begin[n + 1] - o->child_begin[n] ? token[first_edge(o, f, n) + slot] : 0;
}

/* Tokens that nothing reads may be any number. */
static void read_tokens(struct sorting *s, const struct lin_forest *f, const int32_t *token)
{
	if (!token)
		memset(s->token, 0, s->rows * sizeof *s->token);
	else if (s->sort->edges)
		read_tokens_of_edges(s, f, token);
	else
		read_tokens_of_nodes(s, f, token);
	for (int64_t i = 0; i < s->rows; i++)
		s->token[i] = s->token[i] >= 0 && s->token[i] < s->limit ? s->token[i] : 0;
}

/* The first node of a cell; of the one behind the last, the number of nodes. */
static int32_t first_node(const struct sorting *s, int64_t cell)
{
	const struct lin_order *o = s->order;
	return o->cases ? o->case_begin[cell] : o->batch_begin[cell];
}

static int64_t count_cells(const struct lin_order *o)
{
	return (int64_t)o->batches * (o->cases ? o->cases : 1);
}

static void find_cells(struct sorting *s)
{
	for (int64_t c = 0; c <= s->cells; c++) {
		int32_t node = first_node(s, c);
		s->begin[c] = s->sort->edges ? s->order->child_begin[node] : node;
		for (int32_t i = c ? s->begin[c - 1] : 0; c && i < s->begin[c]; i++)
			s->cell[i] = (int32_t)c - 1;
	}
}

/* --- sorting --- */

static void sort_by_token(struct sorting *s)
{
	memset(s->count, 0, (s->limit + 1) * sizeof *s->count);
	for (int64_t i = 0; i < s->rows; i++)
		s->count[s->token[i] + 1]++;
	for (int64_t t = 0; t < s->limit; t++)
		s->count[t + 1] += s->count[t];
	for (int64_t i = 0; i < s->rows; i++)
		s->by_token[s->count[s->token[i]]++] = (int32_t)i;
}

static void sort_by_cell(struct sorting *s)
{
	for (int64_t i = 0; i < s->rows; i++) {
		int32_t row = s->by_token[i];
		s->to->sorted[s->begin[s->cell[row]]++] = row;
	}
}

static void find_segments(struct sorting *s)
{
	int32_t segments = 0, token = -1, cell = -1;
	for (int64_t i = 0; i < s->rows; i++) {
		int32_t row = s->to->sorted[i];
		if (s->token[row] != token || s->cell[row] != cell)
			s->to->segment_begin[segments++] = (int32_t)i;
		token = s->token[row];
		cell = s->cell[row];
		s->to->segment_of[i] = segments - 1;
	}
	s->to->segment_begin[segments] = (int32_t)s->rows;
}

/* --- memory --- */

/* Arrays of int32_t, each from a multiple of 64 bytes on. */
struct places {
	char *memory; /* NULL while they are counted */
	int64_t bytes;
};

/* Counts are below 2^31, and so is a limit that an image has. */
static int32_t *place_array(struct places *p, int64_t count)
{
	int32_t *at = p->memory ? (int32_t *)(p->memory + p->bytes) : NULL;
	p->bytes += (count * (int64_t)sizeof *at + 63) / 64 * 64;
	return at;
}

static void place_results(struct places *p, const struct image_sort *s, const struct lin_order *o, struct rt_sorted *to)
{
	int64_t rows = rows_of(s, o);
	to->sorted = place_array(p, rows);
	to->segment_of = place_array(p, rows);
	to->segment_begin = place_array(p, rows + 1);
}

static void place_keys(struct places *p, struct sorting *s)
{
	s->token = place_array(p, s->rows);
	s->cell = place_array(p, s->rows);
	s->by_token = place_array(p, s->rows);
	s->begin = place_array(p, s->cells + 1);
	s->count = place_array(p, s->limit + 1);
}

static struct sorting sorting_of(const struct rt_session *s, int sort)
{
	const struct image_sort *is = &s->image->sort[sort];
	return (struct sorting){.sort = is,
				.order = &s->order,
				.rows = rows_of(is, &s->order),
				.cells = count_cells(&s->order),
				.limit = s->image->input[is->input].limit,
				.to = &s->sorts.at[sort]};
}

/* Places the results of all sorts, and behind them room for the keys of one after the other; returns all bytes. */
static int64_t place_all(struct rt_session *s, char *memory)
{
	struct places p = {.memory = memory};
	int64_t most = 0;
	for (int i = 0; i < s->image->sorts; i++)
		place_results(&p, &s->image->sort[i], &s->order, &s->sorts.at[i]);
	for (int i = 0; i < s->image->sorts; i++) {
		struct places keys = {.bytes = 0};
		struct sorting sorting = sorting_of(s, i);
		place_keys(&keys, &sorting);
		most = keys.bytes > most ? keys.bytes : most;
	}
	return p.bytes + most;
}

/* Where the results end. */
static int64_t result_bytes(const struct rt_session *s)
{
	struct places p = {.bytes = 0};
	struct rt_sorted none;
	for (int i = 0; i < s->image->sorts; i++)
		place_results(&p, &s->image->sort[i], &s->order, &none);
	return p.bytes;
}

bool rt_sort_rows(struct rt_session *s, const struct rt_minibatch *m, struct diags *diags)
{
	if (!s->image->sorts)
		return true;
	int64_t bytes = place_all(s, NULL), results = result_bytes(s);
	if (!rt_reserve_memory(s->allocator, &s->sorts.memory, &s->sorts.capacity, bytes, rt_allocate, "sorted rows", diags))
		return false;
	place_all(s, s->sorts.memory);
	for (int i = 0; i < s->image->sorts; i++) {
		struct sorting sorting = sorting_of(s, i);
		struct places keys = {.memory = s->sorts.memory, .bytes = results};
		place_keys(&keys, &sorting);
		read_tokens(&sorting, &m->forest, m->data ? m->data[sorting.sort->input] : NULL);
		find_cells(&sorting);
		sort_by_token(&sorting);
		sort_by_cell(&sorting);
		find_segments(&sorting);
	}
	return true;
}
