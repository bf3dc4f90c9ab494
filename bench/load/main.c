/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* load [NAME=VALUE]... -- MODEL.ra [INPUT] [OPTION]...	  operands and options of `espalier bench`
 *
 * For each server the throughput of a closed loop (its capacity) and the latency without load; then latencies
 * at shares of the capacity, in an open loop, and the rate up to which the 99th percentile stays below five
 * times the least latency without load.  bench/README.md says what the names mean. */
#include "load/load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* --- options --- */

struct name {
	const char *name;
	size_t at; /* in struct load_options */
	char kind; /* t: text, n: number above 0, c: count above 0 */
};

#define NAME(name, kind) {#name, offsetof(struct load_options, name), kind}
static const struct name names[] = {
    NAME(servers, 't'), NAME(tsv, 't'),	   NAME(seconds, 'n'), NAME(rate, 'n'),	   NAME(overload, 'n'),
    NAME(deadline, 'n'), NAME(burst, 'c'), NAME(flight, 'c'),  NAME(streams, 'c'), NAME(rows, 'c'),
    NAME(requests, 'c'), NAME(seed, 'c'),
};

static bool set_value(void *at, char kind, const char *value)
{
	char *end;
	errno = 0;
	if (kind == 't')
		*(const char **)at = value;
	else if (kind == 'n')
		return *(double *)at = strtod(value, &end), !*end && *(double *)at > 0 && *(double *)at < 1e9;
	else
		return *(long *)at = strtol(value, &end, 10), !errno && !*end && *(long *)at > 0;
	return true;
}

static bool read_word(struct load_options *o, const char *word)
{
	const char *equals = strchr(word, '=');
	for (size_t i = 0; equals && i < sizeof names / sizeof *names; i++)
		if (strlen(names[i].name) == (size_t)(equals - word) &&
		    !strncmp(names[i].name, word, (size_t)(equals - word)))
			return set_value((char *)o + names[i].at, names[i].kind, equals + 1) ||
			       complain("'%s' is no number above 0, or too large", word);
	return complain("'%s' is not NAME=VALUE of a name that there is; models come behind --", word);
}

/* Reads the words before --; *first is where the operands of the bench begin, less one. */
static bool read_words(struct load_options *o, int argc, char **argv, int *first)
{
	*o = (struct load_options){.seconds = 2, .burst = 1, .flight = 32, .streams = 1024, .requests = 4096,
				   .seed = 1};
	for (*first = 1; *first < argc && strcmp(argv[*first], "--"); ++*first)
		if (!read_word(o, argv[*first]))
			return false;
	return true;
}

/* --- records --- */

static FILE *tsv;

static void write_record(const struct server *s, const char *what, double share, const struct figures *f)
{
	if (!tsv)
		return;
	fprintf(tsv, "%s\t%s\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f", s->kind->name, what, share, f->rate,
		f->good, f->p50, f->p99, f->p999);
	fprintf(tsv, "\t%zu\t%zu\t%zu\t%zu\t%.1f\t%.1f\t%.4f\n", f->n, f->outcome[OUTCOME_DONE],
		f->outcome[OUTCOME_REFUSED], f->outcome[OUTCOME_EXPIRED], f->jitter, f->jitter_most,
		f->generator);
}

static void open_records(const char *path)
{
	tsv = path ? fopen(path, "w") : NULL;
	if (tsv)
		fputs("server\twhat\tshare\trate\tgood\tp50_us\tp99_us\tp999_us\trequests\tdone\trefused\t"
		      "expired\tjitter_p99_us\tjitter_most_us\tgenerator\n",
		      tsv);
}

static void print_head(const char *title)
{
	printf("\n%s\n%-10s %9s %9s %9s %9s %9s %9s %9s | %9s %9s %6s\n", title, "", "rate/s", "good/s",
	       "requests", "refused", "p50 us", "p99 us", "p99.9 us", "jitter99", "most us", "gen. %");
}

static void print_row(const char *name, const struct figures *f)
{
	printf("%-10s %9.0f %9.0f %9zu %9zu %9.0f %9.0f %9.0f | %9.0f %9.0f %6.1f\n", name, f->rate, f->good,
	       f->n, f->outcome[OUTCOME_REFUSED] + f->outcome[OUTCOME_EXPIRED], f->p50, f->p99, f->p999,
	       f->jitter, f->jitter_most, 100 * f->generator);
	fflush(stdout);
}

/* --- measuring a server --- */

enum { ROUNDS = 3 };

static bool measure_capacity(struct server *s, const struct load_options *o)
{
	double rate[ROUNDS];
	struct figures f = {0};
	long flight = s->kind->streams ? o->streams : o->flight;
	bool ok = measure_closed(s, 1, o->seconds / 2, &f);
	s->unloaded = f.p50;
	s->unloaded_p99 = f.p99;
	write_record(s, "unloaded", 0, &f);
	for (int i = 0; ok && i < ROUNDS; i++) {
		ok = measure_closed(s, flight, o->seconds / 2, &f);
		rate[i] = f.rate;
		write_record(s, "closed", 1, &f);
	}
	if (!ok)
		return false;
	for (int i = 1; i < ROUNDS; i++)
		for (int k = i; k > 0 && rate[k] < rate[k - 1]; k--) {
			double t = rate[k];
			rate[k] = rate[k - 1];
			rate[k - 1] = t;
		}
	s->capacity = rate[ROUNDS / 2];
	printf("%-10s %10.0f %10.0f %8ld %10.0f %10.0f\n", s->kind->name, s->capacity, rate[ROUNDS - 1], flight,
	       s->unloaded, s->unloaded_p99);
	fflush(stdout);
	return s->capacity > 0 || complain("%s answered nothing", s->kind->name);
}

static bool measure_at(struct server *s, const struct load_options *o, const char *what, double rate,
		       struct figures *f)
{
	char name[32];
	if (!measure_open(s, o, rate, 0, f))
		return false;
	write_record(s, what, rate / s->capacity, f);
	snprintf(name, sizeof name, "%.0f %%", 100 * rate / s->capacity);
	print_row(name, f);
	return f->n == f->outcome[OUTCOME_DONE] + f->outcome[OUTCOME_REFUSED] ||
	       complain("%s lost requests", s->kind->name);
}

/* The largest rate found by bisection whose 99th percentile is at most `limit` [us]. */
static bool find_limit(struct server *s, const struct load_options *o, double limit)
{
	enum { STEPS = 6 };
	double low = 0, high = 1.2 * s->capacity;
	struct figures f, best = {0};
	for (int i = 0; i < STEPS; i++) {
		double rate = (low + high) / 2;
		if (!measure_open(s, o, rate, 0, &f))
			return false;
		if (f.p99 <= limit && !f.outcome[OUTCOME_REFUSED])
			low = rate, best = f;
		else
			high = rate;
	}
	write_record(s, "limit", low / s->capacity, &best);
	printf("99th percentile within %.0f us: %.0f requests/s, %.0f %% of the capacity\n", limit, low,
	       100 * low / s->capacity);
	return true;
}

static bool measure_shares(struct server *s, const struct load_options *o, double limit)
{
	static const double shares[] = {0.1, 0.3, 0.5, 0.7, 0.9};
	struct figures f;
	print_head(s->kind->name);
	if (o->rate)
		return measure_at(s, o, "rate", o->rate, &f);
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
		if (!measure_at(s, o, "open", shares[i] * s->capacity, &f))
			return false;
	return find_limit(s, o, limit);
}

/* All requests have a deadline; what is answered in time is to be near the capacity. */
static bool measure_overload(struct server *s, const struct load_options *o, double unloaded)
{
	enum { DEADLINE = 20 };
	struct figures f;
	double deadline = o->deadline ? o->deadline : DEADLINE * unloaded;
	if (!measure_open(s, o, o->overload * s->capacity, deadline, &f))
		return false;
	write_record(s, "overload", o->overload, &f);
	print_row(s->kind->name, &f);
	printf("           in time: %.0f %% of the capacity; %zu refused, %zu expired\n",
	       100 * f.good / s->capacity, f.outcome[OUTCOME_REFUSED], f.outcome[OUTCOME_EXPIRED]);
	return f.n == f.outcome[OUTCOME_DONE] + f.outcome[OUTCOME_REFUSED] + f.outcome[OUTCOME_EXPIRED] ||
	       complain("%s lost requests", s->kind->name);
}

/* --- all servers --- */

const struct server_kind server_kinds[SERVER_KINDS] = {
    {"threads", false, threads_open, queue_submit, queue_close, 0},
    {"window1", false, window_open, queue_submit, queue_close, 1000000},
    {"window5", false, window_open, queue_submit, queue_close, 5000000},
    {"cells", false, cells_open, cells_submit, cells_close, 0},
    {"streams", true, streams_open, streams_submit, streams_close, 0},
};

/* Without a list, all but streams, which not every model has. */
static bool is_wanted(const struct load_options *o, const struct server_kind *k)
{
	size_t n = strlen(k->name);
	for (const char *at = o->servers; at; at = strchr(at, ','), at += at ? 1 : 0)
		if (!strncmp(at, k->name, n) && (!at[n] || at[n] == ','))
			return true;
	return !o->servers && !k->streams;
}

static bool measure_servers(struct server *s, int n, const struct load_options *o)
{
	double unloaded = INFINITY;
	bool ok = true;
	printf("%-10s %10s %10s %8s %10s %10s\n", "", "capacity/s", "most", "flight", "alone us", "p99");
	for (int i = 0; ok && i < n; i++) {
		ok = measure_capacity(&s[i], o);
		unloaded = s[i].unloaded < unloaded ? s[i].unloaded : unloaded;
	}
	for (int i = 0; ok && i < n && !o->overload; i++)
		ok = measure_shares(&s[i], o, 5 * unloaded);
	if (ok && o->overload)
		print_head("overload");
	for (int i = 0; ok && i < n && o->overload; i++)
		ok = measure_overload(&s[i], o, unloaded);
	return ok;
}

static bool measure_all(const struct load *l)
{
	struct server server[SERVER_KINDS] = {0};
	bool ok = true;
	int n = 0;
	for (int i = 0; ok && i < SERVER_KINDS; i++) {
		if (!is_wanted(&l->options, &server_kinds[i]))
			continue;
		server[n] = (struct server){.kind = &server_kinds[i],
					    .self = server_kinds[i].open(l, &server_kinds[i])};
		ok = server[n].self;
		n += ok;
	}
	ok = ok && (n || complain("servers are threads, window1, window5, cells and streams")) &&
	     measure_servers(server, n, &l->options);
	for (int i = 0; i < n; i++)
		server[i].kind->close(server[i].self);
	return ok;
}

static int open_load(struct load *l, const struct options *options)
{
	struct options continuous = *options;
	esp_error *error;
	int status = bench_open(&l->bench, options);
	if (status)
		return status;
	const struct subject *last = &l->bench.subject[l->bench.subjects - 1];
	continuous.continuous = true;
	esp_status failed = subject_join(&l->joined, last, &continuous, NULL, &error);
	if (failed)
		return report_failure(failed, error);
	return requests_make(&l->requests, &l->bench.shapes, l->bench.subject[0].objects.program,
			     l->joined.objects.program)
		   ? 0
		   : EXIT_INPUT;
}

static void close_load(struct load *l)
{
	requests_free(&l->requests);
	if (l->joined.joined)
		subject_close(&l->joined);
	bench_close(&l->bench);
}

int main(int argc, char **argv)
{
	static struct load l;
	struct options options;
	int first;
	if (!read_words(&l.options, argc, argv, &first) ||
	    !options_read(COMMAND_BENCH, argc - first, argv + first, &options))
		return EXIT_USAGE;
	if (options.help || !options.operands) {
		fputs("usage: load [NAME=VALUE]... -- MODEL.ra [INPUT] [OPTION]...\n", stderr);
		return EXIT_USAGE;
	}
	prctl(PR_SET_TIMERSLACK, 1);
	open_records(l.options.tsv);
	int status = l.options.tsv && !tsv ? (complain("cannot write '%s'", l.options.tsv), EXIT_INPUT)
					   : open_load(&l, &options);
	if (!status && !measure_all(&l))
		status = EXIT_INPUT;
	close_load(&l);
	if (tsv && fclose(tsv))
		status = EXIT_INPUT;
	return status;
}
