/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Histograms against sorted values, and the text for Prometheus against a reader of its format. */
#include "serve/counters.h"
#include "tests/budget.h"
#include "tests/tap.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- histograms --- */

enum { VALUES = 20000 };

static struct serve_histogram histogram;
static int64_t values[VALUES];

static int compare_values(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Whether a quantile is that of the sorted values, or above it by less than a bucket. */
static bool is_close(int64_t quantile, double share)
{
	int64_t exact = values[(int)(share * VALUES + .999999) - 1];
	return quantile >= exact && quantile <= exact + exact / 32;
}

static void test_histogram(void)
{
	static const int powers[] = {0, 1, 3, 5, 6, 10, 20, 33, 41};
	uint64_t state = 9;
	double sum = 0;
	for (int i = 0; i < VALUES; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		values[i] = (int64_t)(state >> 24) >> (state % 40);
		serve_note_value(&histogram, values[i]);
		sum += (double)values[i];
	}
	qsort(values, VALUES, sizeof *values, compare_values);
	struct serve_distribution d = serve_summarize(&histogram);
	tap_ok(d.values == VALUES && d.most == values[VALUES - 1] && d.mean > sum / VALUES * .999999 &&
		   d.mean < sum / VALUES * 1.000001,
	       "number, greatest and mean of %d values", VALUES);
	tap_ok(is_close(d.p50, .5) && is_close(d.p90, .9) && is_close(d.p99, .99) && is_close(d.p999, .999),
	       "quantiles are known to 1/32");
	bool exact = true;
	for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
		uint64_t below = 0;
		while (below < VALUES && values[below] < INT64_C(1) << powers[i])
			below++;
		exact &= serve_count_below(&histogram, powers[i]) == below;
	}
	tap_ok(exact, "those below powers of two are exact");
	static struct serve_histogram ends;
	serve_note_value(&ends, -5);
	serve_note_value(&ends, INT64_MAX);
	d = serve_summarize(&ends);
	tap_ok(d.values == 2 && d.p50 == 0 && d.most == INT64_MAX,
	       "what is out of range is in the first and last bucket");
	static struct serve_histogram none;
	d = serve_summarize(&none);
	tap_ok(d.values == 0 && d.p999 == 0 && d.mean == 0, "no values have quantiles of 0");
}

/* --- a reader of the text format --- */

struct reader {
	const char *at;
	char family[80], type[20]; /* of the last # TYPE */
	int families, samples;
	double last, sum_seen, count; /* of a histogram: the last bucket; NaN-free */
	char labels[200], le[40];
	bool infinite;
};

static bool take(struct reader *r, const char *text)
{
	size_t n = strlen(text);
	bool is = strncmp(r->at, text, n) == 0;
	r->at += is ? n : 0;
	return is;
}

static bool take_name(struct reader *r, char *to, size_t size)
{
	size_t n = 0;
	for (; isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == ':'; r->at++)
		if (n + 1 < size)
			to[n++] = *r->at;
	to[n] = 0;
	return n && !isdigit((unsigned char)*to);
}

/* Both comments of a family, which come in this order. */
static bool read_family(struct reader *r)
{
	char name[80];
	if (!take(r, "# HELP ") || !take_name(r, name, sizeof name) || *r->at != ' ')
		return false;
	r->at += strcspn(r->at, "\n");
	if (!take(r, "\n# TYPE ") || !take_name(r, r->family, sizeof r->family) || !take(r, " ") ||
	    !take_name(r, r->type, sizeof r->type) || !take(r, "\n"))
		return false;
	r->families++;
	r->last = 0;
	r->infinite = false;
	return strcmp(name, r->family) == 0 &&
	       (strcmp(r->type, "counter") == 0 || strcmp(r->type, "gauge") == 0 ||
		strcmp(r->type, "histogram") == 0);
}

static bool read_labels(struct reader *r)
{
	char name[80];
	*r->le = 0;
	if (!take(r, "{"))
		return true;
	do {
		if (!take_name(r, name, sizeof name) || !take(r, "=\""))
			return false;
		size_t n = strcspn(r->at, "\"\n");
		if (strcmp(name, "le") == 0)
			snprintf(r->le, sizeof r->le, "%.*s", (int)n, r->at);
		r->at += n;
		if (!take(r, "\""))
			return false;
	} while (take(r, ","));
	return take(r, "}");
}

/* Whether a sample has a name that its family may have; of buckets, whether none is less than the one before.
 */
static bool fits_family(struct reader *r, const char *name, double value)
{
	size_t n = strlen(r->family);
	if (strcmp(r->type, "histogram") != 0)
		return strcmp(name, r->family) == 0 && (strcmp(r->type, "gauge") == 0 || value >= 0) &&
		       (strcmp(r->type, "counter") != 0 ||
			strcmp(name + n - strlen("_total"), "_total") == 0);
	if (strncmp(name, r->family, n) != 0)
		return false;
	if (strcmp(name + n, "_sum") == 0)
		return r->infinite;
	if (strcmp(name + n, "_count") == 0)
		return r->infinite && value == r->last;
	bool ascends = strcmp(name + n, "_bucket") == 0 && *r->le && !r->infinite && value >= r->last;
	r->infinite = strcmp(r->le, "+Inf") == 0;
	r->last = value;
	return ascends;
}

static bool read_sample(struct reader *r)
{
	char name[80], *end;
	if (!take_name(r, name, sizeof name) || !read_labels(r) || !take(r, " "))
		return false;
	double value = strtod(r->at, &end);
	if (end == r->at)
		return false;
	r->at = end;
	r->samples++;
	return take(r, "\n") && fits_family(r, name, value);
}

static bool read_all(struct reader *r)
{
	bool ok = true;
	while (ok && *r->at)
		ok = *r->at == '#' ? read_family(r) : read_sample(r);
	if (!ok)
		printf("# at: %.60s\n", r->at);
	return ok;
}

static bool is_legal(const char *text)
{
	struct reader r = {.at = text};
	return read_all(&r);
}

static void test_text(void)
{
	static struct serve_counters c;
	struct arena arena;
	arena_init(&arena, &allocator_default);
	serve_add(&c.submitted, 12);
	serve_add(&c.ended[SERVE_DONE], 10);
	serve_add(&c.full, 3);
	for (int i = 0; i < 10; i++) {
		serve_note_value(&c.step_rows, 1 << i);
		serve_note_value(&c.whole, 1000000 << i);
	}
	struct str plain = str_in(&arena), labelled = str_in(&arena);
	serve_print_metrics(&c, 4, "", &plain);
	serve_print_metrics(&c, 4, "model=\"tiny\",zone=\"a\"", &labelled);
	struct reader r = {.at = str_text(&plain)}, l = {.at = str_text(&labelled)};
	tap_ok(read_all(&r) && r.families == 15 && r.samples > 60, "%d families, %d samples", r.families,
	       r.samples);
	tap_ok(read_all(&l) && l.samples == r.samples, "the same with labels");
	static const char *const lines[] = {
	    "\nespalier_requests_total{outcome=\"done\"} 10\n",
	    "\nespalier_requests_total{outcome=\"refused\"} 3\n",
	    "\nespalier_submitted_total 12\n",
	    "\nespalier_generation 4\n",
	    "\nespalier_superstep_nodes_bucket{le=\"3\"} 2\n",
	    "\nespalier_request_seconds_bucket{le=\"0.001048575\"} 1\n",
	    "\nespalier_request_seconds_bucket{le=\"+Inf\"} 10\n",
	    "\nespalier_request_seconds_sum 1.023\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		tap_ok(strstr(str_text(&plain), lines[i]), "a line%.*s", (int)strlen(lines[i]) - 2,
		       lines[i] + 1);
	tap_ok(strstr(str_text(&labelled),
		      "\nespalier_requests_total{model=\"tiny\",zone=\"a\",outcome=\"done\"} 10\n") &&
		   strstr(str_text(&labelled), "\nespalier_pending{model=\"tiny\",zone=\"a\"} 0\n"),
	       "labels stand before a sample's own");
	tap_ok(!is_legal("a 1\n") && !is_legal("# HELP a x\n# TYPE a gauge\nb 1\n") &&
		   !is_legal(
		       "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 3\na_bucket{le=\"+Inf\"} 2\n") &&
		   !is_legal("# HELP a x\n# TYPE a gauge\na{b=c} 1\n") &&
		   !is_legal("# HELP a x\n# TYPE a gauge\na 1"),
	       "the reader refuses what is wrong");
	arena_free(&arena);
}

int main(void)
{
	test_histogram();
	test_text();
	return tap_done();
}
