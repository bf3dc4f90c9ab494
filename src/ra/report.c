/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics of a model text: each fault once, with the nearest name. */
#include "ra/syntax.h"

#include <stdlib.h>

enum { EXCERPT = 64, NEAR = 3, SHOWN_LINE = 400 }; /* longer lines are not copied into diagnostics */

static bool seen_before(const struct ra_report *r, enum diag_id id, struct diag_at at)
{
	for (size_t i = 0; i < r->seen.n; i++) {
		struct diag_at old = r->seen.at[i].at;
		if (r->seen.at[i].id == id && old.line == at.line && old.column == at.column &&
		    old.call == at.call && (at.line || at.call))
			return true;
	}
	return false;
}

bool ra_is_news(const struct ra_report *r, enum diag_id id, struct diag_at at)
{
	return r->seen.n < RA_REPORT_LIMIT && !seen_before(r, id, at);
}

bool(ra_report)(struct ra_report *r, enum diag_id id, struct diag_at at, const char *hint, const char *format,
		...)
{
	if (!ra_is_news(r, id, at))
		return false;
	struct str message = str_in(r->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&message, format, args);
	va_end(args);
	vec_push(r->arena, &r->seen, (struct ra_seen){id, at});
	if (at.source && strcspn(at.source, "\n") > SHOWN_LINE)
		at.source = NULL;
	return diag_add(r->diags, id, at, hint, "%s", str_text(&message));
}

/* The end of the blanks and comments that begin at p. */
static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n' || *p == '#')) {
		if (*p == '#')
			while (p + 1 < end && p[1] != '\n')
				p++;
		p++;
	}
	return p;
}

const char *ra_line_text(struct arena *a, struct diag_at at)
{
	return at.line ? str_format(a, " (line %d)", at.line) : "";
}

const char *ra_excerpt(struct arena *a, struct ra_span span)
{
	struct str s = str_in(a);
	const char *end = span.text + span.length;
	for (const char *p = span.text; p < end;) {
		const char *next = skip_blanks(p, end);
		if (s.n >= EXCERPT) {
			str_puts(&s, "...");
			break;
		}
		if (next > p && s.n && next < end)
			str_puts(&s, " ");
		else if (next == p)
			str_add(&s, p, 1), next++;
		p = next;
	}
	return str_text(&s);
}

bool ra_span_is(struct ra_span span, const char *text)
{
	return span.length == strlen(text) && memcmp(span.text, text, span.length) == 0;
}

char *ra_span_string(struct arena *a, struct ra_span span)
{
	return arena_text(a, span.length ? span.text : "", span.length);
}

struct ra_nearest ra_nearest_to(const char *wanted, size_t length)
{
	int limit = length / 3 + 1;
	return (struct ra_nearest){
	    .wanted = wanted, .length = length, .distance = (limit < NEAR ? limit : NEAR) + 1};
}

static int min_of(int a, int b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance by rows; b is at most RA_NAME_LIMIT long. */
static int edit_distance(const char *a, size_t n, const char *b, size_t m)
{
	int row[RA_NAME_LIMIT + 1];
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		int diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			int above = row[j];
			row[j] = min_of(diagonal + (a[i - 1] != b[j - 1]), 1 + min_of(above, row[j - 1]));
			diagonal = above;
		}
	}
	return row[m];
}

void ra_consider_name(struct ra_nearest *n, const char *candidate, size_t length)
{
	if (length > RA_NAME_LIMIT || llabs((long long)length - (long long)n->length) >= n->distance)
		return;
	int d = edit_distance(n->wanted, n->length, candidate, length);
	if (d >= n->distance)
		return;
	n->distance = d;
	n->best = candidate;
	n->best_length = length;
}

const char *ra_did_you_mean(struct arena *a, const struct ra_nearest *n, const char *otherwise)
{
	return n->best ? str_format(a, "did you mean '%.*s'?", (int)n->best_length, n->best) : otherwise;
}
