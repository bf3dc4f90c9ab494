/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sections: neighbouring steps of a chunk that run over some of its rows, all steps, before the next rows.
 *
 *     whole      step 1 of rows 0 .. 7, step 2 of rows 0 .. 7, ...     each reads weights once; what a step stores of all rows is no
 *                                                                      longer in the second-level cache when the next one reads it
 *     sections   steps 1, 2, ... of row 0, steps 1, 2, ... of row 1    each reads its weights again for each piece of rows
 *
 * A chunk's rows are independent (split.h), so each order gives the same.  A step is in a section where its intermediates, which
 * are stored and read, are more than the weights that it reads again. */
#include "runtime/section.h"

#include "runtime/shared.h"

bool rt_may_be_cut(const struct image_step *s)
{
	return s->domain == IMAGE_DOMAIN_NODES || s->domain == IMAGE_DOMAIN_INPUTS || s->domain == IMAGE_DOMAIN_LEAVES ||
	       s->domain == IMAGE_DOMAIN_PAST_LEAVES;
}

/* Whether the intermediates that stay in a cache, as the steps that store and read them follow each other, are more than the weights
 * that further pieces read again. */
static bool is_in_section(const struct image_step *s, int64_t rows, int64_t pieces)
{
	return 2.0 * (double)s->read_bytes * (double)rows > (double)s->weight_bytes * (double)(pieces - 1);
}

/* The rows of a piece: as many whole tiles as half the second-level cache has space for, at least one, and so many that there are
 * RT_PIECES at most. */
static int64_t choose_piece(int64_t row_bytes, int64_t tile, int64_t rows, double l2_bytes)
{
	int64_t fit = (int64_t)(l2_bytes / 2) / row_bytes / tile, most = tile * RT_PIECES, least = (rows + most - 1) / most;
	return tile * (fit > least ? fit : least);
}

/* The longest one: it ends before a step that reads too many weights.  Steps of which nothing is cut are one, too, so that each is
 * looked at once. */
struct rt_section rt_find_section(const struct image_step *step, int steps, int64_t rows, double l2_bytes)
{
	struct rt_section section = {0, rows};
	int64_t tile = 1, most = 0;
	for (int i = 0; i < steps && rt_may_be_cut(&step[i]); i++) {
		tile = step[i].rows > tile ? step[i].rows : tile;
		most = step[i].read_bytes > most ? step[i].read_bytes : most;
		int64_t piece = most ? choose_piece(most, tile, rows, l2_bytes) : rows;
		if (piece < rows && !is_in_section(&step[i], rows, (rows + piece - 1) / piece))
			break;
		section = (struct rt_section){i + 1, piece};
	}
	return section.steps > 1 ? section : (struct rt_section){1, rows};
}
