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
    NAME(deadline, 'n'), NAME(grain, 'n'), NAME(rounds, 'c'),  NAME(burst, 'c'),   NAME(flight, 'c'),
    NAME(streams, 'c'),	 NAME(rows, 'c'),  NAME(requests, 'c'), NAME(seed, 'c'),
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
	*o = (struct load_options){.seconds = 2, .rounds = 3, .burst = 1, .flight = 32, .streams = 1024,
				   .requests = 4096, .seed = 1};
	for (*first = 1; *first < argc && strcmp(argv[*first], "--"); ++*first)
		if (!read_word(o, argv[*first]))
			return false;
	return true;
}

/* --- all servers --- */

const struct server_kind server_kinds[SERVER_KINDS] = {
    {"threads", false, threads_open, queue_submit, queue_close, NULL, 0},
    {"window1", false, window_open, queue_submit, queue_close, NULL, 1000000},
    {"window5", false, window_open, queue_submit, queue_close, NULL, 5000000},
    {"cells", false, cells_open, cells_submit, cells_close, cells_count, 0},
    {"streams", true, streams_open, streams_submit, streams_close, streams_count, 0},
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
	struct load_options first = *o;
	first.rounds = o->overload ? 1 : o->rounds; /* each round of an overload measures its own capacity */
	if (!measure_capacities(s, n, &first))
		return false;
	for (int i = 0; i < n; i++)
		unloaded = fmin(unloaded, s[i].unloaded);
	if (o->rate)
		return measure_rate(s, n, o);
	if (o->overload)
		report_head("overload");
	else if (!measure_shares(s, n, o))
		return false;
	for (int i = 0; i < n; i++)
		if (!(o->overload ? measure_overload(&s[i], o, unloaded) : measure_limit(&s[i], o, 5 * unloaded)))
			return false;
	return true;
}

static bool measure_all(const struct load *l)
{
	struct server server[SERVER_KINDS] = {0};
	struct alone alone;
	bool ok = measure_alone(l, &alone);
	if (ok)
		report_alone(&alone);
	int n = 0;
	for (int i = 0; ok && i < SERVER_KINDS; i++) {
		if (!is_wanted(&l->options, &server_kinds[i]))
			continue;
		server[n] = (struct server){.kind = &server_kinds[i],
					    .self = server_kinds[i].open(l, &server_kinds[i]),
					    .requests = &l->requests};
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
	int status = report_open(l.options.tsv) ? open_load(&l, &options) : EXIT_INPUT;
	if (!status && !measure_all(&l))
		status = EXIT_INPUT;
	close_load(&l);
	if (!report_close())
		status = EXIT_INPUT;
	return status;
}
