/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier_service.h - many callers' structures computed together, as they come (doc/serving.md).
 *
 *   service  a queue before one program and its weights    esp_service_create, esp_service_submit
 *   ticket   a request that was submitted, and its results  esp_ticket_wait, esp_ticket_output_elements
 *   stream   a sequence whose elements come later           esp_stream_open, esp_stream_push
 *
 * A session runs one caller's minibatch from end to end.  A service computes, in every *superstep*, the nodes
 * that are ready of all requests at once: a request joins at the next superstep, and leaves when its own
 * nodes are done.  Its results have the bits of esp_session_run with the same program and weights, whatever
 * company it had.
 *
 * Who computes.  A thread that waits for a ticket computes, for all requests in flight, while no other thread
 * does; so a thread that submits and waits alone hands its work to nobody.  The first request with a callback
 * or an event starts a thread of the service, which computes while nobody waits.  Supersteps are divided
 * among the threads of the context, as runs are.  A request with neither, for which nobody waits, is computed
 * when others are.
 *
 * Errors, ownership, threads, processes and growth are as espalier.h says.  Services can be used by any
 * number of threads at once, and a ticket by any number but for esp_ticket_free.  A ticket keeps alive what
 * it was made from. Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef ESPALIER_SERVICE_H
#define ESPALIER_SERVICE_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct esp_service esp_service;
typedef struct esp_ticket esp_ticket;

/* The time now, for deadlines. */
int64_t esp_clock(void);

/* --- services --- */

typedef struct esp_service_options {
	size_t size; /* sizeof(esp_service_options) */
	/* Nodes that have states at once, and nodes that one traversal computes in a superstep: memory is
	 * taken for so many when the service is made.  0 = 4096 and 1024; at most 2^30 - 1.  A structure that
	 * needs more rows at once is refused. */
	int64_t rows, step_rows;
	/* Requests that wait or are in flight at most, and bytes of these, results included; more are refused
	 * (ESP_ERROR_BUSY).  A request that alone exceeds the bytes is taken while there is no other.  0 =
	 * 4096, and no limit. */
	size_t requests, bytes;
	/* How long a request may wait for company while none is in flight [ns]: shorter when a superstep's
	 * nodes are together.  0 = not at all. */
	int64_t company;
	/* What a priority is worth: a request is ahead of one whose priority is less by one if it came at
	 * most so much later [ns].  So no request waits forever for others of higher priorities.  0 = 100 ms.
	 */
	int64_t head_start;
	/* Pairs of a node and a node of its structure that one traversal computes in a superstep, where a
	 * model ranges over nodes at nodes: memory is taken for those of the requests in flight, and for so
	 * many at most.  0 = 262144. A structure of more nodes is refused then. */
	int64_t step_pairs;
} esp_service_options;

/* A service with the program and the weights of a binding; the program must have been created with
 * esp_program_options.continuous.  Makes all of its code, so that no request waits for a compiler.  `options`
 * may be NULL.  Exchanging the weights (esp_binding_swap) is allowed at any time: a request is computed with
 * the generation that was current when it was submitted. ESP_ERROR_ARGUMENT: an option is negative, or the
 * program is not continuous; ESP_ERROR_BACKEND: as esp_program_prepare. */
esp_status esp_service_create(esp_binding *, const esp_service_options *options, esp_service **out,
			      esp_error **error);
/* Tickets keep the service alive.  Its thread ends with it: when all tickets have been freed before, within this
 * call, unless it is made in a callback. */
void esp_service_free(esp_service *);

/* --- requests --- */

typedef struct esp_submit_options {
	size_t size;  /* sizeof(esp_submit_options) */
	int priority; /* larger ones come first, see head_start; from -1000 to 1000 */
	/* Not 0: esp_service_next returns the ticket when it has ended. */
	int event;
	/* A request that has not ended then is computed no further, nor is one that would hardly end in time with
	 * the others in flight, by what supersteps and requests took lately; 0 = none. */
	int64_t deadline;
	/* Called once when the ticket has ended, by the service's thread, one call after the other; not when
	 * the ticket was freed before.  It may call anything but esp_context_close, and may free the ticket;
	 * waiting there for other tickets is allowed.  While it runs the service computes only if another
	 * thread waits for a ticket.  NULL = no call. */
	void (*done)(void *user, esp_ticket *);
	void *user;
} esp_submit_options;

/* Submits the structures of a forest as one request.  `options` may be NULL.  The forest is not copied: it
 * must not be changed before the ticket has ended, but may be freed.  Whether the model takes it is checked
 * when it joins. ESP_ERROR_BUSY: the service is full (service-full); ESP_ERROR_ARGUMENT: the forest is of
 * another program, or a callback and an event are both asked for; ESP_ERROR_SYSTEM: the service's thread
 * could not be made. */
esp_status esp_service_submit(esp_service *, const esp_forest *, const esp_submit_options *options,
			      esp_ticket **out, esp_error **error);

/* A descriptor for poll and the like, which is readable while esp_service_next has a ticket to return.  It
 * belongs to the service: do not read or close it.  ESP_ERROR_SYSTEM: the system gave none. */
esp_status esp_service_descriptor(esp_service *, int *descriptor, esp_error **error);
/* The next ticket with an event that has ended, each once; NULL = there is none now. */
esp_ticket *esp_service_next(esp_service *);

/* Waits until the ticket has ended, or until a time (0 = does not wait, INT64_MAX = no limit), and says how
 * it ended: ESP_OK: there are results; ESP_ERROR_BUSY: it has not ended (request-pending); ESP_ERROR_EXPIRED:
 * its deadline passed; ESP_ERROR_CANCELLED; all else is why it failed, as esp_session_run, and
 * request-too-large and too-many-pairs (ESP_ERROR_INPUT). The calling thread may compute for others
 * meanwhile, and returns at the end of a superstep. */
esp_status esp_ticket_wait(esp_ticket *, int64_t until, esp_error **error);
/* Ends it, if it has not ended, before anything more is computed of it. */
void esp_ticket_cancel(esp_ticket *);
/* Cancels it if it has not ended.  Its results can no longer be read. */
void esp_ticket_free(esp_ticket *);

/* What it was submitted with; the generation of the weights that it is computed with. */
void *esp_ticket_user(const esp_ticket *);
uint64_t esp_ticket_generation(const esp_ticket *);
/* Times of a ticket that has ended with results, as those of esp_clock [ns]: when it was submitted, when it joined
 * those that are computed, and when it had ended.  0 = it has not ended so, or there is no such time. */
enum { ESP_TICKET_SUBMITTED = 0, ESP_TICKET_JOINED = 1, ESP_TICKET_ENDED = 2 };
int64_t esp_ticket_time(const esp_ticket *, int which);
/* A row of an output of a ticket that has ended with results, as esp_session_output_elements; NULL when there
 * is no such row. Valid until the ticket is freed.  The second only where it is ESP_F32. */
const void *esp_ticket_output_elements(const esp_ticket *, size_t output, size_t structure, size_t node);
const float *esp_ticket_output(const esp_ticket *, size_t output, size_t structure, size_t node);

/* --- streams: sequences that go on --- */

/* A sequence whose elements come one after the other: what each is computed from, the states of the one
 * before, is kept between requests, and nothing else is.  Any number of streams advance together, and with
 * other requests.  Results have the bits of one run over the whole sequence. */
typedef struct esp_stream esp_stream;

/* Opens a stream at its beginning.  All of its elements are computed with the weights that are current now.
 * ESP_ERROR_ARGUMENT: structures of the program are no sequences, or need what comes later (no-stream). */
esp_status esp_stream_open(esp_service *, esp_stream **out, esp_error **error);
/* Another stream with the same past, and the weights of its generation.  ESP_ERROR_BUSY: elements are being
 * computed. */
esp_status esp_stream_copy(esp_stream *, esp_stream **out, esp_error **error);
/* Tickets keep the stream alive. */
void esp_stream_free(esp_stream *);

/* Submits the next elements as one request: `data` has for each input of the program a row for each element;
 * a row of an input on edges belongs to the edge from the element to the one before, and that of the first
 * element of all is not read.  They are copied.  Elements are nodes 0 .. elements - 1 of structure 0 of the
 * ticket; an output at the root is that of the last one.  When the ticket ends without results the stream is
 * as before it. ESP_ERROR_BUSY: the elements that were pushed last have not ended (stream-busy), or the
 * service is full; ESP_ERROR_ARGUMENT: as esp_service_submit, no elements, or an array is missing. */
esp_status esp_stream_push(esp_stream *, size_t elements, const void *const *data,
			   const esp_submit_options *options, esp_ticket **out, esp_error **error);

/* Writes the states to `bytes` if there is `capacity` for them; *needed is their size in either case, the
 * same for all streams of a program.  ESP_ERROR_BUSY: elements are being computed. */
esp_status esp_stream_save(esp_stream *, void *bytes, size_t capacity, size_t *needed, esp_error **error);
/* A stream that goes on from saved states, with the weights that are current now: results have the same bits
 * if these are the same.  ESP_ERROR_INPUT: they are damaged, or of another program (bad-stream). */
esp_status esp_stream_restore(esp_service *, const void *bytes, size_t n, esp_stream **out,
			      esp_error **error);

/* --- counters --- */

/* Of values that were counted: quantiles are exact below 32, and at most 3 % above the value otherwise. */
typedef struct esp_distribution {
	uint64_t values;
	double mean;
	int64_t p50, p90, p99, p999, most;
} esp_distribution;

/* Since the service was made, or now. */
typedef struct esp_service_counts {
	size_t size;		     /* sizeof(esp_service_counts), set by the caller */
	uint64_t submitted, refused; /* requests that were taken, and not, as the service was full */
	uint64_t done, failed, expired, cancelled; /* of those that were taken, and have ended */
	uint64_t pending, bytes, most_bytes;	   /* that have not; their bytes, now and at most */
	uint64_t generation;			   /* of the weights that a request would be computed with */
	uint64_t supersteps, nodes;		   /* nodes: once for each traversal */
	uint64_t rows;				   /* states of nodes that are kept */
	esp_distribution step_nodes;		   /* nodes of a superstep */
	/* Of requests that were done [ns]: from submission until they joined, from then on, and both. */
	esp_distribution queued, computed, whole;
	/* Supersteps that were a forest, which computes whole requests together; of the requests that were done and of the
	 * nodes, those that forests have computed. */
	uint64_t forests, forest_requests, forest_nodes;
} esp_service_counts;

/* Fills `counts`, of which `size` is set, as far as it goes.  Takes no lock that computing needs.  Each
 * number is right; numbers that belong together may differ by what happens meanwhile. */
void esp_service_count(const esp_service *, esp_service_counts *counts);
/* The same in the text format of Prometheus (0.0.4), with histograms.  `labels` stands in the braces of every
 * sample, as in model="sentiment",zone="a"; its values must be escaped; NULL = none.  To be freed with
 * esp_text_free. */
esp_status esp_service_metrics(const esp_service *, const char *labels, char **text, esp_error **error);

/* --- trace: which requests shared which superstep --- */

/* Records the last `events` events of requests and supersteps from now on; what was recorded before is freed.
 * A request takes three, and one for each superstep that it is in; a superstep takes one.  Memory, 56 bytes
 * an event, is taken in this call; requests neither wait for nor allocate anything more.  0 = ends recording.
 * ESP_ERROR_MEMORY: the recording of before goes on. */
esp_status esp_service_record(esp_service *, size_t events, esp_error **error);
/* What was recorded, as a list of JSON in Chrome's trace event format, for ui.perfetto.dev, whose brackets
 * are on the first and the last line; times are microseconds of esp_clock, as in those of `espalier profile`.
 *
 * A request is an asynchronous slice with its outcome, number of nodes and generation of weights, in which
 * "queue" and "compute" nest, and in the latter the supersteps that it was in, with the nodes that were
 * computed of it.  Supersteps are slices of a thread, with their rows and how many requests were in them; a
 * flow leads from each to its slices in the requests.  The outcome of a request that has not ended is
 * "pending".  A request whose first event has been overwritten is left out; the event process_labels says how
 * many were (args.dropped).
 *
 * The service is shown as a process with a `name` (NULL = service) and a number, from 1 to 1000000: another
 * one for each service of one picture; that of `espalier profile` is 1.  Computing waits while the events are
 * copied.  *text is to be freed with esp_text_free; NULL after an error.  ESP_ERROR_ARGUMENT: the service is
 * not recorded, or the number is out of range. */
esp_status esp_service_trace(const esp_service *, const char *name, int process, char **text,
			     esp_error **error);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
