/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of serve/ share. */
#ifndef ESPALIER_SERVE_ENGINE_H
#define ESPALIER_SERVE_ENGINE_H

#include "serve/choose_way.h"
#include "serve/forecast.h"
#include "serve/give_rows.h"
#include "serve/serve.h"

/* The steps of one traversal: what is hoisted ahead of it, the recursion, and behind the last one the outputs
 * of nodes.  A traversal of no steps gives nodes rows. */
struct serve_traversal {
	int first, next;
	bool down;
	bool flat;	  /* nodes need no other node of it, so that it has no levels */
	bool brief;	  /* a level costs less than a superstep does besides its cells */
	bool reads_nodes; /* nodes read what all nodes of their input have of earlier traversals */
};

enum { SERVE_TRAVERSALS = 64 };

struct serve_plan_of_steps {
	struct serve_traversal traversal[SERVE_TRAVERSALS];
	int traversals;
	int inputs; /* the first of the steps over inputs, which are the last */
};

/* Divides the image's table of steps.  False after a diagnostic: it cannot be run by supersteps. */
bool serve_find_traversals(const struct image *, struct serve_plan_of_steps *, struct diags *);

enum serve_state { SERVE_GATHERED, SERVE_IN_FLIGHT, SERVE_ENDED, SERVE_FAILED };

struct serve_request {
	struct serve_request *before, *after; /* in the list of those in flight, ended or spare */
	struct rt_minibatch minibatch;
	const struct rt_binding *binding;
	int64_t rank;
	enum serve_state state;
	void *owner;
	struct lin_order order;
	int traversal;	     /* the current one */
	int32_t level;	     /* in the order of the traversal: batches are levels, downwards from the last */
	int32_t done;	     /* nodes of the level that were computed */
	int32_t *row;	     /* by id: the row of a node, -1 = it has none */
	int32_t *uses;	     /* by id: how often the row will be read in the last traversal */
	size_t capacity;     /* of both */
	int64_t rows, edges, pairs; /* that were reserved for it */
	int64_t widest;		    /* nodes of its largest input */
	int64_t width;	     /* what it adds to a superstep, about [nodes] */
	int64_t joined;	     /* when [ns] */
	double expected;     /* how long it was expected to take then [ns]; 0 = unknown */
	char *result;	     /* outputs one after the other */
	size_t result_capacity;
	size_t *output_at; /* by output: where it begins */
	const struct image *image;
	struct serve_carry *carry; /* NULL = it is no part of a stream */
};

struct serve_list {
	struct serve_request *first, *last;
};

/* Nodes of a request that are computed in this superstep: numbers begin .. end - 1 of its order, which are
 * some of one batch, or all of several, level after level; in a flat traversal some of all batches. */
struct serve_pick {
	struct serve_request *request;
	int32_t batch, batches, begin, end;
	bool last; /* whether it ends its request */
};

/* The most levels that a request is computed by in one superstep, and how long those of one without company may
 * take [ns]: a request that joins meanwhile waits for them. */
enum { SERVE_LEVELS = 64, SERVE_LEVELS_TIME = 1000000 };

/* How long a forest may take [ns], for which a request that comes meanwhile waits; and those in flight to end before one,
 * for which those wait that it is for.  One of two requests that measures anew how long they take may take longer. */
enum { SERVE_FOREST_TIME = 2000000 };

/* The picks of a traversal, and their rows. */
struct serve_part {
	size_t first, next; /* picks */
	int32_t levels;	    /* the most that one of them has */
	int64_t pairs; /* of its rows; each part has numbers of its own, as no other reads what is stored of
			  them */
	struct lin_order order;
	int32_t batch_begin[SERVE_LEVELS + 2]; /* one more, as batch 0 is that of leaves */
	int32_t *case_begin;
};

/* Requests that are run together as one minibatch, and the arrays of that. */
struct serve_forest {
	struct rt_session session;
	struct serve_list gathered;
	struct lin_forest forest; /* sums, while requests are gathered */
	int32_t *index;		  /* memory of its arrays */
	size_t index_capacity;
	void **data;	    /* by input of the image: memory, and what the minibatch has */
	const void **given;
	size_t *data_capacity;
	int64_t edges, pairs;
	int64_t deadline; /* the first of their deadlines [ns]; INT64_MAX = none */
	struct serve_forecast forecast;
	int64_t drain_begin; /* since when others wait for those in flight to end [ns]; 0 = none do */
	int failures; /* attempts to gather a forest since the last one that was run; see gather_requests.c */
	uint64_t runs, requests, nodes; /* that were run: forests, and what was in them */
};

struct serve_engine {
	const struct allocator *allocator;
	const struct image *image;
	const struct rt_binding *binding; /* of this superstep */
	struct serve_limits limits;
	struct lin_rules rules;
	struct serve_plan_of_steps steps;
	bool has_members;	   /* something reads all nodes of an input */
	struct rt_session session; /* the buffers of all requests, and the tables of threads */
	/* index arrays among the buffers, by kind, NULL = the image has none; those of children by slot */
	int32_t *index[IMAGE_BUFFER_KINDS];
	int32_t **child;
	int *data, data_buffers; /* the buffers of what nodes and edges carry */
	struct serve_rows pool;
	int64_t rows, edges, inputs, pairs; /* that are reserved for requests in flight */
	int64_t width, nodes_in_flight; /* of these */
	struct serve_list in_flight, ended, spare;
	struct serve_pick *pick;
	size_t picks, pick_capacity;
	struct serve_part part[SERVE_TRAVERSALS];
	int32_t *case_begins;
	double level_time; /* of a request without company [ns], averaged; 0 = unknown */
	struct serve_forecast forecast;
	struct serve_ways ways;
	enum serve_way way; /* that was chosen for requests that have company */
	bool company;	    /* whether several are pending */
	int64_t drive_begin; /* when the way was chosen [ns] */
	struct serve_forest forest;
	int64_t ended_at;  /* when the last superstep ended, if requests were left in flight [ns]; 0 = none were */
	int64_t step_begin, step_end; /* of the last superstep [ns] */
	int64_t next_edge, next_parent, next_input, next_member; /* of the index arrays, in this superstep */
	int64_t ending_inputs; /* of requests that end with it, whose numbers come first */
	uint64_t supersteps, nodes, requests;
};

/* The cases that nodes of the image are sorted by; leaves and inner nodes count as two. */
static inline int serve_cases(const struct image *image)
{
	return image->cases ? image->cases : 2;
}

/* Whether nodes of a case are inner ones. */
static inline bool serve_is_inner(const struct image *image, int node_case)
{
	return image->cases ? image->case_at[node_case].inner : node_case;
}

/* Whether rows are returned as soon as nothing reads them: in the last traversal, unless something reads all
 * nodes of an input. */
static inline bool serve_returns_rows(const struct serve_engine *e, int traversal)
{
	return traversal + 1 == e->steps.traversals && !e->has_members;
}

/* Supersteps that so many levels of a traversal take in company if none of them is cut. */
static inline int64_t serve_supersteps_of(const struct serve_traversal *t, int64_t levels)
{
	return t->flat ? 1 : t->brief ? (levels + SERVE_LEVELS - 1) / SERVE_LEVELS : levels;
}

/* The same of a request of so many levels. */
static inline int64_t serve_count_supersteps(const struct serve_engine *e, int64_t levels)
{
	int64_t all = 0;
	for (int t = 0; t < e->steps.traversals; t++)
		all += serve_supersteps_of(&e->steps.traversal[t], levels);
	return all;
}

static inline const struct serve_traversal *serve_traversal_of(const struct serve_engine *e,
							       const struct serve_request *r)
{
	return &e->steps.traversal[r->traversal];
}

/* Where a row of an output of the request is. */
char *serve_place(const struct serve_request *, int output, int64_t row);
/* Returns all rows of a request in flight, and removes it from the list. */
void serve_end(struct serve_engine *, struct serve_request *, enum serve_state);

void serve_append(struct serve_list *, struct serve_request *);
/* Puts a request first, as what was used last is most likely in a cache. */
void serve_prepend(struct serve_list *, struct serve_request *);
void serve_insert(struct serve_list *, struct serve_request *);
void serve_remove(struct serve_list *, struct serve_request *);

/* Enlarges the buffers that have rows of edges, inputs or pairs; of the latter up to the limit.  Their
 * content is lost.  False after a diagnostic. */
bool serve_reserve_rows(struct serve_engine *, int64_t edges, int64_t inputs, int64_t pairs, struct diags *);
/* Sets how often the rows of the current traversal will be read, by node. */
void serve_count_uses(const struct serve_engine *, struct serve_request *);
/* Called for each node whose row the cell of a node reads. */
typedef void serve_visit(struct serve_request *, int32_t id, void *context);
/* In the header, so that the visitor is inlined: each edge is visited twice. */
static inline void serve_visit_read(struct serve_request *r, bool down, int32_t number, serve_visit *visit,
				    void *context)
{
	const struct lin_order *o = &r->order;
	const struct lin_forest *f = &r->minibatch.forest;
	int32_t id = o->order[number];
	if (down)
		for (int32_t i = o->parent_begin[number]; i < o->parent_begin[number + 1]; i++)
			visit(r, o->order[o->parent_list[i]], context);
	else if (number >= o->leaves)
		for (int32_t i = f->child_begin[id]; i < f->child_begin[id + 1]; i++)
			visit(r, f->children[i], context);
}

/* Gives the first node of a request a row, with the states that are carried to it. */
void serve_load_carry(struct serve_engine *, struct serve_request *);
/* Carries the states of the last node on. */
void serve_store_carry(const struct serve_engine *, const struct serve_request *);

/* A request that is not used, in no list; NULL when memory is out. */
struct serve_request *serve_new_request(struct serve_engine *);
/* Makes memory for the outputs of a request; false when there is none. */
bool serve_reserve_results(const struct serve_engine *, struct serve_request *);
/* A pick for each request of a list at most. False after a diagnostic. */
bool serve_reserve_picks(struct serve_engine *, const struct serve_list *, struct diags *);

bool serve_forest_init(struct serve_engine *, struct diags *);
void serve_forest_free(struct serve_engine *);
/* Makes one minibatch of the requests that were gathered, valid until the next one.  False where one of them is not what it
 * must be, perhaps after a diagnostic. */
bool serve_merge_requests(struct serve_engine *, struct rt_minibatch *, struct diags *);
/* Runs them.  False as above: then they are still gathered. */
bool serve_run_forest(struct serve_engine *, struct rt_team *, struct diags *);
/* Notes what cells have taken from when the way was chosen until now, if it was this one: called when what has ended has its
 * results, and rows were returned. */
void serve_note_drive(struct serve_engine *, enum serve_way, int64_t cells);

/* Chooses another binding than in the last superstep, if a request has one. */
void serve_choose_binding(struct serve_engine *);
/* Picks nodes that are ready, at most so many as there are rows for: of a brief traversal, and of a request without
 * company, those of several levels. */
void serve_pick_cells(struct serve_engine *);
/* The levels of a request without company that the superstep computes, if their time counts; 0 = it has company, or
 * they are brief. */
int32_t serve_levels_alone(const struct serve_engine *);
/* Whether a batch of a part may have leaves, or inner nodes: leaves of all levels are in the first one.  Upwards they
 * are of no other level than the first, and downwards nothing reads them. */
static inline bool serve_batch_has(bool down, bool inner, int32_t batch)
{
	return inner ? down || batch : !batch;
}
/* The level of a pick whose leaves, or inner nodes, are in a batch of its part, as a pick of one batch, which has no
 * nodes if there is no such level.  Inner nodes of the first level that is computed are upwards in batch 1, and downwards in the last. */
static inline struct serve_pick serve_level_of(const struct serve_pick *p, const struct serve_part *part, bool down,
					       bool inner, int32_t batch)
{
	int32_t number = !inner ? 0 : down ? p->batch + p->batches - part->levels + batch : p->batch + batch - 1;
	struct serve_pick level = {p->request, number, 1, p->begin, p->end, false};
	const int32_t *begin = p->request->order.batch_begin;
	if (number < p->batch || number >= p->batch + p->batches)
		level.batch = p->batch, level.end = level.begin;
	else if (p->batches > 1)
		level.begin = begin[number], level.end = begin[number + 1];
	return level;
}
/* Numbers of a pick of one batch that are of a case. */
static inline void serve_case_range(const struct serve_pick *p, int cases, int node_case, int32_t *begin,
				    int32_t *end)
{
	const struct lin_order *o = &p->request->order;
	*begin = p->begin;
	*end = p->end;
	if (!o->cases) {
		if (node_case != (p->batch > 0))
			*end = *begin;
		return;
	}
	const int32_t *at = o->case_begin + (int64_t)p->batch * cases + node_case;
	*begin = at[0] > *begin ? at[0] : *begin;
	*end = at[1] < *end ? at[1] : *end;
	*end = *end < *begin ? *begin : *end;
}
/* Fills the index arrays and the data of the rows of a part. */
void serve_fill_part(struct serve_engine *, int traversal);
static inline void serve_set_index(struct serve_engine *e, enum image_buffer_kind kind, int64_t at,
				   int64_t value)
{
	if (e->index[kind])
		e->index[kind][at] = (int32_t)value;
}
/* Fills those of inputs, for picks that end their request or read all nodes of an input.  All nodes have the
 * rows that they have in this superstep. */
void serve_fill_inputs(struct serve_engine *);

#endif
