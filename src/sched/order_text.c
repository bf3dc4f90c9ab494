/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The order of dimensions as text: `0/8 1 0%8`, `1*0`.  See sched.def, the directive `layout`. */
#include "sched/sched.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

static const char halves[] = {[SCHED_OUTER] = '/', [SCHED_INNER] = '%'};

void sched_print_order(const struct sched_order *order, struct str *s)
{
	for (int i = 0; order->parts > 1 && i < order->parts; i++) {
		const struct sched_part *part = &order->part[i];
		str_printf(s, "%c%d", part->joined ? '*' : ' ', part->dim);
		if (part->half != SCHED_WHOLE)
			str_printf(s, "%c%" PRId64, halves[part->half], part->factor);
	}
}

/* --- reading --- */

struct reader {
	struct sched_order order;
	int64_t extent[SUB_MAX_VARS];
	struct arena *arena;
};

/* The extents of the dimensions, which an order has whatever it is. */
static void find_extents(struct reader *r, const struct sched_order *order)
{
	for (int d = 0; d < order->rank; d++)
		r->extent[d] = 1;
	for (int i = 0; i < order->parts; i++)
		r->extent[order->part[i].dim] *= order->part[i].extent;
}

static const char *out_of_range(const struct reader *r)
{
	struct str s = str_in(r->arena);
	str_printf(&s, "wants a number from 0 to %d", r->order.rank - 1);
	return str_text(&s);
}

/* Why two parts cannot be of one order. */
static const char *why_not_with(const struct sched_part *a, const struct sched_part *b)
{
	if (a->dim != b->dim)
		return NULL;
	if (a->half == b->half || a->half == SCHED_WHOLE || b->half == SCHED_WHOLE)
		return "names a dimension twice";
	return a->factor != b->factor ? "splits a dimension in two ways" : NULL;
}

/* The factor of a half. */
static const char *read_factor(const char **at, struct sched_part *part)
{
	char *end;
	bool number = isdigit((unsigned char)**at);
	part->factor = strtoll(*at, &end, 10);
	*at = end;
	if (!number || part->factor < 1 || part->extent % part->factor)
		return "splits a dimension by what does not divide it";
	part->extent = part->half == SCHED_INNER ? part->factor : part->extent / part->factor;
	return NULL;
}

/* D, D/F or D%F; goes past it. */
static const char *read_part(const struct reader *r, const char **at, struct sched_part *part)
{
	if (!isdigit((unsigned char)**at) || isdigit((unsigned char)(*at)[1]) || **at - '0' >= r->order.rank)
		return out_of_range(r);
	part->dim = *(*at)++ - '0';
	part->extent = r->extent[part->dim];
	for (int half = SCHED_OUTER; half <= SCHED_INNER; half++)
		if (**at == halves[half]) {
			part->half = half;
			(*at)++;
			return read_factor(at, part);
		}
	return NULL;
}

static const char *add_part(struct reader *r, const struct sched_part *part)
{
	int most = r->order.rank > SCHED_MAX_PARTS ? r->order.rank : SCHED_MAX_PARTS;
	for (int i = 0; i < r->order.parts; i++) {
		const char *problem = why_not_with(&r->order.part[i], part);
		if (problem)
			return problem;
	}
	if (r->order.parts == most)
		return "has too many parts";
	r->order.part[r->order.parts++] = *part;
	return NULL;
}

/* The parts of a word, joined by stars. */
static const char *read_word(struct reader *r, const char *at)
{
	for (bool joined = false;; joined = true, at++) {
		struct sched_part part = {.joined = joined};
		const char *problem = read_part(r, &at, &part);
		problem = problem ? problem : add_part(r, &part);
		if (problem || *at == 0)
			return problem;
		if (*at != '*')
			return "is none of D, D/F and D%F, nor some of them with * between them";
	}
}

static const char *why_not_all(const struct sched_order *order)
{
	int count[SUB_MAX_VARS] = {0};
	for (int i = 0; i < order->parts; i++)
		count[order->part[i].dim] += order->part[i].half == SCHED_WHOLE ? 2 : 1;
	for (int d = 0; d < order->rank; d++)
		if (count[d] < 2)
			return count[d] ? "wants both halves of a dimension that is split, D/F and D%F"
					: "wants each dimension once, counted from 0, and has more or less";
	return NULL;
}

const char *sched_read_order(struct sched_order *order, char *const *word, int words, int *wrong,
			     struct arena *arena)
{
	struct reader r = {.order = {.rank = order->rank}, .arena = arena};
	find_extents(&r, order);
	for (*wrong = 0; *wrong < words; ++*wrong) {
		const char *problem = read_word(&r, word[*wrong]);
		if (problem)
			return problem;
	}
	*wrong = 0;
	const char *problem = why_not_all(&r.order);
	if (!problem)
		*order = r.order;
	return problem;
}
