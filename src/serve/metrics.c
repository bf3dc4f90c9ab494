/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Counters as text for Prometheus. */
#include "serve/counters.h"

#include <stdio.h>

struct writer {
	struct str *to;
	const char *labels;
};

static void put_family(const struct writer *w, const char *name, const char *type, const char *help)
{
	str_printf(w->to, "# HELP espalier_%s %s\n# TYPE espalier_%s %s\n", name, help, name, type);
}

/* A sample with the labels of all, and the beginning of one of its own, name=", which the caller completes;
 * "" = none. */
static void begin_sample(const struct writer *w, const char *name, const char *own)
{
	bool labels = *w->labels || *own;
	str_printf(w->to, "espalier_%s%s%s%s%s", name, labels ? "{" : "", w->labels,
		   *w->labels && *own ? "," : "", own);
	if (labels && !*own)
		str_puts(w->to, "}");
}

static void end_sample(const struct writer *w, double value)
{
	const double exact = 9007199254740992; /* integers below are */
	bool whole_number = value < exact && value == (double)(int64_t)value;
	str_puts(w->to, " ");
	if (whole_number)
		str_printf(w->to, "%lld", (long long)value);
	else
		str_double(w->to, value);
	str_puts(w->to, "\n");
}

static void put_sample(const struct writer *w, const char *name, double value)
{
	begin_sample(w, name, "");
	end_sample(w, value);
}

static void put_labelled(const struct writer *w, const char *name, const char *own, const char *label,
			 double value)
{
	begin_sample(w, name, own);
	str_printf(w->to, "%s\"}", label);
	end_sample(w, value);
}

static void put_one(const struct writer *w, const char *name, const char *type, const char *help,
		    double value)
{
	put_family(w, name, type, help);
	put_sample(w, name, value);
}

static void put_answers(const struct writer *w, const struct serve_counters *c)
{
	static const char *const answers[SERVE_ANSWERS] = {
	    [SERVE_DONE] = "done",
	    [SERVE_REJECTED] = "failed",
	    [SERVE_EXPIRED] = "expired",
	    [SERVE_CANCELLED] = "cancelled",
	};
	put_family(w, "requests_total", "counter", "Requests that have ended, by outcome.");
	for (int i = SERVE_DONE; i < SERVE_ANSWERS; i++)
		put_labelled(w, "requests_total", "outcome=\"", answers[i], (double)serve_read(&c->ended[i]));
	put_labelled(w, "requests_total", "outcome=\"", "refused", (double)serve_read(&c->full));
}

/* What a family of samples of a histogram is called, its unit, and the powers of two at which buckets end:
 * the greatest value of one is the power less 1, which the histogram knows exactly. */
struct family {
	const char *name, *help;
	double units; /* of the histogram, in one of the samples */
	int first, last, step;
};

static void put_bucket(const struct writer *w, const char *name, double end, uint64_t below)
{
	begin_sample(w, name, "le=\"");
	str_double(w->to, end);
	str_puts(w->to, "\"}");
	end_sample(w, (double)below);
}

static void put_histogram(const struct writer *w, const struct family *f, const struct serve_histogram *h)
{
	char name[80];
	uint64_t all = 0;
	put_family(w, f->name, "histogram", f->help);
	snprintf(name, sizeof name, "%s_bucket", f->name);
	for (int power = f->first; power <= f->last; power += f->step) {
		uint64_t below = serve_count_below(h, power);
		all = below > all ? below : all;
		put_bucket(w, name, (double)((INT64_C(1) << power) - 1) / f->units, all);
	}
	uint64_t values = serve_summarize(h).values;
	all = values > all ? values : all; /* values may have come meanwhile */
	put_labelled(w, name, "le=\"", "+Inf", (double)all);
	snprintf(name, sizeof name, "%s_sum", f->name);
	put_sample(w, name, (double)serve_read(&h->sum) / f->units);
	snprintf(name, sizeof name, "%s_count", f->name);
	put_sample(w, name, (double)all);
}

#define TIMES 1e9, 12, 36, 2 /* in seconds: 4 us to 69 s */

static const struct family step_rows = {"superstep_nodes", "Cells that a superstep computed.", 1, 1, 16, 1},
			   queued = {"queue_seconds", "Time from submission until a request is computed.",
				     TIMES},
			   computed = {"compute_seconds", "Time in which a request is computed with others.",
				       TIMES},
			   whole = {"request_seconds", "Time from submission to the result.", TIMES};

void serve_print_metrics(const struct serve_counters *c, uint64_t generation, const char *labels,
			 struct str *to)
{
	const struct writer w = {to, labels};
	put_answers(&w, c);
	put_one(&w, "submitted_total", "counter", "Requests that were taken.",
		(double)serve_read(&c->submitted));
	put_one(&w, "pending", "gauge", "Requests that wait or are computed.",
		(double)atomic_load(&c->pending));
	put_one(&w, "pending_bytes", "gauge", "Bytes of these requests and their results.",
		(double)atomic_load(&c->bytes));
	put_one(&w, "rows", "gauge", "Rows of states that requests have.", (double)atomic_load(&c->rows));
	put_one(&w, "nodes_total", "counter", "Cells that were computed.", (double)serve_read(&c->nodes));
	put_one(&w, "supersteps_total", "counter", "Supersteps.", (double)serve_read(&c->supersteps));
	put_one(&w, "forests_total", "counter", "Supersteps that ran whole requests as one forest.",
		(double)serve_read(&c->forests));
	put_one(&w, "forest_requests_total", "counter", "Requests that forests have computed.",
		(double)serve_read(&c->forest_requests));
	put_one(&w, "forest_nodes_total", "counter", "Cells that forests have computed.",
		(double)serve_read(&c->forest_nodes));
	put_one(&w, "generation", "gauge", "Generation of the weights.", (double)generation);
	put_histogram(&w, &step_rows, &c->step_rows);
	put_histogram(&w, &queued, &c->queued);
	put_histogram(&w, &computed, &c->computed);
	put_histogram(&w, &whole, &c->whole);
}
