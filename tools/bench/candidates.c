/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "bench/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line is "tile GROUP nodes|rows SIZE... columns N ...", sizes in falling order. */
struct parts {
	const char *sizes, *rest; /* from the space before the first size, and from that before "columns" */
	bool nodes;
};

static bool split_line(const char *line, struct parts *p)
{
	const char *nodes = strstr(line, " nodes "), *rows = strstr(line, " rows ");
	p->rest = strstr(line, " columns ");
	p->nodes = nodes && (!p->rest || nodes < p->rest);
	p->sizes = p->nodes ? nodes + strlen(" nodes") : rows ? rows + strlen(" rows") : NULL;
	return p->sizes && p->rest && p->sizes < p->rest;
}

/* The sizes from the first on that is at most `rows`. */
static const char *sizes_within(const struct parts *p, int64_t rows)
{
	const char *size = p->sizes;
	while (p->nodes && size < p->rest && strtol(size, NULL, 10) > rows)
		size += 1 + strcspn(size + 1, " ");
	return size;
}

/* Whether two tiles compute ranges of at most so many rows by the same loops. */
static bool are_same(const char *x, const char *y, int64_t rows)
{
	struct parts a, b;
	return split_line(x, &a) && split_line(y, &b) && a.nodes == b.nodes &&
	       strcmp(sizes_within(&a, rows), sizes_within(&b, rows)) == 0;
}

static bool have_same_greatest(const char *x, const char *y)
{
	struct parts a, b;
	return split_line(x, &a) && split_line(y, &b) && a.nodes == b.nodes && strcmp(a.rest, b.rest) == 0 &&
	       strtol(a.sizes, NULL, 10) == strtol(b.sizes, NULL, 10);
}

/* Whether the chosen tile, or an earlier one, is the same. */
static bool is_repeated(const struct candidates *c, const char *chosen, const char *line, int64_t rows)
{
	if (are_same(chosen, line, rows))
		return true;
	for (size_t i = 0; i < c->n; i++)
		if (are_same(c->at[i].option->line, line, rows))
			return true;
	return false;
}

bool candidates_list(struct candidates *c, const struct block *b, const struct limits *l)
{
	*c = (struct candidates){calloc(b->options, sizeof *c->at), 0};
	if (!c->at)
		return complain("no memory for the tiles of a group");
	for (size_t i = 1; i < b->options; i++) {
		const struct option *o = &b->option[i];
		if (isnan(o->predicted))
			continue;
		bool same = is_repeated(c, b->option[0].line, o->line, l->rows);
		enum fate fate = same ? FATE_SAME
				 : o->predicted > l->within * b->option[0].predicted ? FATE_PREDICTED
										      : FATE_TIMED;
		c->at[c->n++] = (struct candidate){o, fate, INFINITY, INFINITY};
	}
	return true;
}

bool candidate_stands_for_others(const struct candidates *c, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (c->at[k].fate == FATE_TIMED && have_same_greatest(c->at[k].option->line, c->at[i].option->line))
			return false;
	return true;
}

double candidate_ratio(const struct candidate *c)
{
	return isfinite(c->challenger) ? c->challenger / c->holder : INFINITY;
}

static bool stands_for(const struct candidate *stands, const struct candidate *other)
{
	return other->fate == FATE_TIMED && isinf(other->challenger) &&
	       have_same_greatest(stands->option->line, other->option->line);
}

void candidates_drop(struct candidates *c, double margin)
{
	double best = 1;
	for (size_t i = 0; i < c->n; i++)
		best = fmin(best, candidate_ratio(&c->at[i]));
	for (size_t i = 0; i < c->n; i++) {
		double ratio = candidate_ratio(&c->at[i]);
		if (c->at[i].fate != FATE_TIMED || isinf(ratio) || ratio <= margin * best)
			continue;
		c->at[i].fate = FATE_SLOWER;
		for (size_t k = 0; k < c->n; k++)
			if (stands_for(&c->at[i], &c->at[k]))
				c->at[k].fate = FATE_GREATEST;
	}
}

static int compare_candidates(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	double first = candidate_ratio(a), second = candidate_ratio(b);
	if ((a->fate == FATE_TIMED) != (b->fate == FATE_TIMED))
		return a->fate == FATE_TIMED ? -1 : 1;
	return (first > second) - (first < second);
}

void candidates_sort(struct candidates *c)
{
	qsort(c->at, c->n, sizeof *c->at, compare_candidates);
}

void candidates_print(const struct candidates *c, FILE *to)
{
	static const char *const names[] = {
#define FATE(id, name) name,
	    EACH_FATE(FATE)
#undef FATE
	};
	for (int fate = 0; fate < FATES; fate++) {
		size_t n = 0;
		for (size_t i = 0; i < c->n; i++)
			n += c->at[i].fate == (enum fate)fate;
		fprintf(to, "%s\"%s\": %zu", fate ? ", " : "{", names[fate], n);
	}
	fputc('}', to);
}

void candidates_free(struct candidates *c)
{
	free(c->at);
	*c = (struct candidates){0};
}
