/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* load: measures servers under a load that does not wait for them.
 *
 * In an open loop, requests come at times that were drawn before, whether earlier ones have been answered or
 * not, and the latency of a request counts from the time at which it was to come: what the generator or a
 * full queue delays is part of it ("coordinated omission" is what leaves that out). */
#ifndef ESPALIER_BENCH_LOAD_H
#define ESPALIER_BENCH_LOAD_H

#include "bench/bench.h"
#include "espalier_service.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- what is asked for: words NAME=VALUE of the command line --- */

struct load_options {
	const char *servers; /* names with commas between; NULL = all */
	const char *tsv;     /* where the records go; NULL = nowhere */
	double seconds;	     /* of each measurement */
	double rate;	     /* requests a second; 0 = shares of the capacity */
	double overload;     /* times the capacity; 0 = no overload is measured */
	double deadline;     /* of requests in overload [us]; 0 = 20 times the latency without load */
	double grain;	     /* the generator wakes at most once in so long [us]; 0 = whenever a request is due */
	long rounds;	     /* of capacity and overload */
	long burst;	     /* requests that come together */
	long flight;	     /* requests in a closed loop, and of a minibatch at most */
	long streams, rows, requests; /* rows, requests: of esp_service_options */
	long seed;
};

/* --- requests --- */

/* The structures that are asked about, one after the other and again from the first. */
struct requests {
	size_t n;
	size_t inputs; /* of the program */
	esp_structure *structure;
	esp_forest **plain, **joined; /* of the first subject, and of the continuous program */
};

/* False after a message. */
bool requests_make(struct requests *, const struct shapes *, esp_program *plain, esp_program *joined);
void requests_free(struct requests *);

/* --- one measurement --- */

enum outcome { OUTCOME_PENDING, OUTCOME_DONE, OUTCOME_REFUSED, OUTCOME_EXPIRED, OUTCOME_FAILED, OUTCOMES };

struct server;

struct arrival {
	struct server *server;
	int64_t due, submitted, ended; /* of esp_clock */
	enum outcome outcome;
};

/* Requests that are submitted, and what became of them. */
struct traffic {
	struct arrival *arrival;
	size_t n;	  /* at most so many are submitted */
	int64_t deadline; /* of a request, after it was due [ns]; 0 = none */
	int64_t stop;	  /* a closed loop submits no more then; 0 = the loop is open */
	atomic_size_t next, ended;
};

/* What a server calls once for each request, in any thread.  In a closed loop submits the next one. */
void traffic_end(struct arrival *, enum outcome);
/* When the request must be answered; 0 = no limit. */
int64_t traffic_deadline(const struct arrival *);

/* --- servers --- */

struct load {
	struct load_options options;
	struct bench bench;
	struct subject joined; /* the continuous program, with the threads of the last subject */
	struct requests requests;
};

struct server_kind {
	const char *name;
	bool streams; /* a request is an element of a stream */
	/* What `submit` and `close` take; NULL after a message. */
	void *(*open)(const struct load *, const struct server_kind *);
	void (*submit)(void *, struct arrival *);
	void (*close)(void *);
	uint64_t (*count)(const void *); /* nodes that were computed so far; NULL = not counted */
	int64_t window;			 /* of one that waits for company [ns] */
};

struct server {
	const struct server_kind *kind;
	void *self;
	const struct requests *requests;
	struct traffic *traffic; /* the current one */
	double unloaded, unloaded_p99; /* latency [us] */
	double capacity;	       /* requests a second */
};

extern const struct server_kind server_kinds[];
enum { SERVER_KINDS = 5 };
/* queue.c and service.c: the functions of server_kinds. */
void *threads_open(const struct load *, const struct server_kind *);
void *window_open(const struct load *, const struct server_kind *);
void queue_submit(void *, struct arrival *);
void queue_close(void *);
void *cells_open(const struct load *, const struct server_kind *);
void cells_submit(void *, struct arrival *);
void cells_close(void *);
uint64_t cells_count(const void *);
void *streams_open(const struct load *, const struct server_kind *);
void streams_submit(void *, struct arrival *);
void streams_close(void *);
uint64_t streams_count(const void *);

/* The request that an arrival asks for, as a number. */
static inline size_t arrival_number(const struct arrival *a)
{
	return (size_t)(a - a->server->traffic->arrival);
}

/* The nodes that are computed for an arrival. */
static inline uint64_t arrival_nodes(const struct arrival *a)
{
	const struct requests *r = a->server->requests;
	return a->server->kind->streams ? 1 : r->structure[arrival_number(a) % r->n].nodes;
}

/* --- measuring --- */

struct figures {
	double rate;			 /* at which requests came; in a closed loop: were answered [1/s] */
	double good;			 /* answered before their deadline [1/s] */
	double p50, p99, p999;		 /* latency of those that were answered [us] */
	size_t n, outcome[OUTCOMES];	 /* requests */
	double good_nodes;		 /* nodes of those answered before their deadline [1/s] */
	double useful;			 /* the share of these in the nodes that were computed; 0 = not counted */
	double jitter, jitter_most;	 /* lateness of a thread that only sleeps: 99th percentile, most [us] */
	double generator;		 /* the generator's share of a processor */
	double late;			 /* median of the time from when a request was due to its submission [us] */
	double idle;			 /* median latency of those submitted while no other was pending [us] */
};

/* Keeps `flight` requests in flight for so long.  All requests have ended when these return; both are false
 * after a message. */
bool measure_closed(struct server *, long flight, double seconds, struct figures *);
/* Submits requests at such a rate, by a Poisson process, `burst` at a time; each has so long until its
 * deadline [us], 0 = none.  Where so many are in `flight` the generator refuses more; 0 = it never does. */
bool measure_open(struct server *, const struct load_options *, double rate, double deadline, long flight,
		  struct figures *);

/* A thread that sleeps for a millisecond again and again, and notes how late it wakes. */
struct jitter {
	pthread_t thread;
	atomic_bool stop;
	size_t n;
	int64_t late[1 << 17];
};
bool jitter_start(struct jitter *);
/* Microseconds: the 99th percentile and the most. */
void jitter_stop(struct jitter *, double *p99, double *most);

/* What a request takes without any queue [us], medians. */
struct alone {
	double session;	     /* a run by a session, one after the other */
	double rested;	     /* the same after a pause of a millisecond */
	double wake, wake_p99; /* from a signal until a thread that waits for it has woken, after such a pause */
};
/* False after a message. */
bool measure_alone(const struct load *, struct alone *);

/* Measure servers one after the other, in turns, and print: capacities, and latencies of closed loops of one; latencies
 * at shares of the capacity, or at the rate of the options.  False after a message. */
bool measure_capacities(struct server *, int n, const struct load_options *);
bool measure_shares(struct server *, int n, const struct load_options *);
bool measure_rate(struct server *, int n, const struct load_options *);
/* Of one server: up to which rate the 99th percentile is at most `limit` [us]; requests with a deadline, at a multiple
 * of the capacity. */
bool measure_limit(struct server *, const struct load_options *, double limit);
bool measure_overload(struct server *, const struct load_options *, double unloaded);

/* --- results: report.c --- */

/* Opens the file of records, NULL = none.  False after a message. */
bool report_open(const char *path);
bool report_close(void);
void report_record(const struct server *, const char *what, double share, const struct figures *);
void report_alone(const struct alone *);
void report_head(const char *title);
void report_row(const char *name, const struct figures *);

/* The value below which such a part of the sorted values lies. */
int64_t percentile(const int64_t *sorted, size_t n, double part);
int compare_times(const void *, const void *);

#endif
