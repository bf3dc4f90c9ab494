/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The lowest range that is long enough is taken, so that the rows in use stay close together, and in the
 * caches. */
#include "serve/give_rows.h"

#include <string.h>

enum { WORD = 64 };

static size_t words_of(int64_t rows)
{
	return (size_t)(rows + WORD - 1) / WORD;
}

bool serve_rows_init(struct serve_rows *p, const struct allocator *a, int64_t rows)
{
	*p = (struct serve_rows){.allocator = a, .rows = rows};
	p->free_at = a->resize(a->context, NULL, 0, words_of(rows) * sizeof *p->free_at);
	if (!p->free_at)
		return false;
	memset(p->free_at, 0, words_of(rows) * sizeof *p->free_at);
	for (int64_t row = 0; row < rows; row++)
		p->free_at[row / WORD] |= UINT64_C(1) << row % WORD;
	return true;
}

void serve_rows_free(struct serve_rows *p)
{
	if (p->free_at)
		p->allocator->resize(p->allocator->context, p->free_at,
				     words_of(p->rows) * sizeof *p->free_at, 0);
	p->free_at = NULL;
}

/* The first row from `row` on that is free, or is not; the number of rows when there is none. */
static int64_t find_row(const struct serve_rows *p, int64_t row, bool is_free)
{
	uint64_t flip = is_free ? 0 : ~UINT64_C(0);
	while (row < p->rows) {
		uint64_t left = (p->free_at[row / WORD] ^ flip) >> row % WORD;
		if (left) {
			row += __builtin_ctzll(left);
			return row < p->rows ? row : p->rows;
		}
		row = (row / WORD + 1) * WORD;
	}
	return p->rows;
}

int64_t serve_give_rows(struct serve_rows *p, int64_t wanted, int64_t *given)
{
	int64_t first = 0;
	*given = 0;
	p->lowest = find_row(p, p->lowest, true);
	for (int64_t begin = p->lowest, end; begin < p->rows && *given < wanted;
	     begin = find_row(p, end, true)) {
		end = find_row(p, begin, false);
		if (end - begin > *given) {
			first = begin;
			*given = end - begin < wanted ? end - begin : wanted;
		}
	}
	for (int64_t row = first; row < first + *given; row++)
		p->free_at[row / WORD] &= ~(UINT64_C(1) << row % WORD);
	p->used += *given;
	p->most = p->used > p->most ? p->used : p->most;
	return first;
}

void serve_return_row(struct serve_rows *p, int64_t row)
{
	p->free_at[row / WORD] |= UINT64_C(1) << row % WORD;
	p->used--;
	p->lowest = row < p->lowest ? row : p->lowest;
}
