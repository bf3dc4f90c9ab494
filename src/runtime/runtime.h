/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The run leg: a binding is packed weights, a session is one caller's index arrays, states and results.
 *
 * Nothing here knows how an image was made.  Memory comes from a struct allocator; functions report
 * `out-of-memory` and leave their object usable. */
#ifndef ESPALIER_RUNTIME_RUNTIME_H
#define ESPALIER_RUNTIME_RUNTIME_H

#include "base/diag.h"
#include "image/image.h"
#include "linearize/linearize.h"
#include "runtime/drive_calls.h"
#include "runtime/record.h"
#include "runtime/team.h"

/* --- memory --- */

/* 64-byte aligned and not initialized; blocks from 1 MiB on begin at a huge page.  NULL = no memory. */
void *rt_allocate(const struct allocator *, size_t bytes);
/* Frees it; NULL is accepted. */
void rt_free(const struct allocator *, void *);

/* --- binding --- */

/* Reads `count` elements of a parameter (in image order) from `first` on, in the image's type.  False after a
 * diagnostic. */
struct rt_source {
	bool (*read)(void *context, int param, int64_t first, int64_t count, void *to, struct diags *);
	void *context;
};

struct rt_binding {
	const struct allocator *allocator;
	const struct image *image;
	void **packed; /* by recipe, 64-byte aligned, NULL = no run needs it; NULL = freed */
	void *block;   /* of those that runs need, but of lazy tables */
	struct rt_lazy *lazy; /* tables whose rows are read when runs select them; NULL = none */
	bool borrowed; /* they are the image's, and read-only */
	size_t packed_bytes, folded_bytes; /* held for runs; of the parameters that steps computed */
	double folding; /* seconds that these steps took, with the packing of their results */
};

/* Packs the weights and runs the steps at binding, those with enough work on the team, if there is one
 * (NULL = none) and it is free.  The image must have code when it has such steps, and must outlive the binding.
 * The results have the same bits with and without a team. */
bool rt_bind(struct rt_binding *, const struct allocator *, const struct image *, const struct rt_source *,
	     struct rt_team *, struct diags *);
/* The same, but rows of tables that only tokens select are read when a run first selects them.  What the source refers to
 * must last as long as the binding, and may be used by several threads, one at a time. */
bool rt_bind_lazily(struct rt_binding *, const struct allocator *, const struct image *, const struct rt_source *,
		    struct rt_team *, struct diags *);
/* Uses the packed weights that came with the image, where they are. */
bool rt_bind_packed(struct rt_binding *, const struct allocator *, const struct image *, struct diags *);
void rt_binding_free(struct rt_binding *);

/* --- session --- */

/* What the walks of a session keep from run to run. */
struct rt_walk_state {
	bool *downwards; /* by step: the direction of its next sweep over blocks of columns */
	struct rt_choices choices;
	double gained; /* nanoseconds that spans are expected to have gained in the last run */
	int rest;      /* runs that will not look for spans */
	struct rt_stage *stage; /* by step: the stage that begins with it, if one does */
	int64_t *rows;		/* by kernel: the most that a range of this run has */
	struct rt_driver driver;
};

/* The rows of a sort (struct image_sort). */
struct rt_sorted {
	int32_t *sorted, *segment_of, *segment_begin;
};

struct rt_session {
	const struct allocator *allocator;
	const struct image *image;
	struct lin_rules rules; /* of the image */
	struct lin_order order;
	int64_t sizes[IMAGE_SIZES];
	void **buffers;	    /* the pointer table; index arrays are the order's, weights the binding's */
	size_t *capacities; /* bytes of the buffers that have memory of their own, 0 = somebody else's */
	void *scratch;	    /* the memory that intermediates share */
	size_t scratch_capacity;
	struct rt_own {
		void *memory;
		size_t capacity;
		void **tables; /* copies of `buffers`, one a thread */
		size_t tables_capacity;
	} own; /* what threads have for themselves: buffers of the kind local */
	struct rt_sorts {
		struct rt_sorted *at; /* by sort of the image */
		void *memory;
		size_t capacity;
	} sorts;
	struct rt_unstacked {
		int32_t *at;
		size_t capacity;
	} unstacked; /* the structure of the rows that the caller's are (unstack_rows.c) */
	int64_t *offsets; /* by buffer: of an intermediate in `scratch` */
	void **dense;	  /* by buffer: dense copies of result rows that are not dense where they are */
	size_t *dense_capacities;
	struct rt_walk_state walk_state;
	double linearize, run; /* seconds, summed over runs */
	uint64_t runs, structures, nodes, batches;
	struct rt_profile *profile; /* the caller's, which records each run (record.h); NULL = none */
};

/* A minibatch, and its data in the forest's numbering: for each input int32_t[nodes] or
 * float[nodes][elements]; of what edges carry, row e belongs to children[e] of the forest. */
struct rt_minibatch {
	struct lin_forest forest;
	const void *const *data;
};

/* Reads the rows of a lazy binding's tables that a checked minibatch selects, unless they are there, and the first row of each, which
 * nodes select that do not read the input; `seconds` then grows by what that takes, and only then.  False after diagnostics. */
bool rt_need_rows(const struct rt_binding *, const struct rt_minibatch *, double *seconds, struct diags *);

bool rt_session_init(struct rt_session *, const struct allocator *, const struct image *, struct diags *);
/* Linearizes, fills the index and data buffers, runs the steps; those with enough work on the team, if there
 * is one (NULL = none) and it is free.  The image must have code.  After false no result can be read. */
bool rt_session_run(struct rt_session *, const struct rt_binding *, struct rt_team *,
		    const struct rt_minibatch *, struct diags *);
/* The row of an output: of a node (forest numbering) or, for an output at the root, of an input.  NULL = no
 * such row. */
const void *rt_session_row(const struct rt_session *, int output, int64_t row);
/* The rows of all inputs, *stride bytes apart, where an output is at the root, or nodes are numbered in place; NULL where they
 * are not, or there are none. */
const void *rt_session_rows(const struct rt_session *, int output, size_t *stride);
/* The row of an input's root, wherever the output is computed. */
const void *rt_session_root_row(const struct rt_session *, int output, int64_t input);
/* The row of a state at a node (forest numbering); NULL = no such row. */
const void *rt_session_state_row(const struct rt_session *, int state, int64_t node);
/* Frees the memory of runs, results included.  The next run allocates what it needs. */
void rt_session_trim(struct rt_session *);
void rt_session_free(struct rt_session *);

/* --- steps over rows that are given out by somebody else --- */

/* Steps first .. next - 1 of the image's table, and the rows that they run over: those of an order whose batches
 * begin with row batch_begin[0], which need not be 0, and whose numbers are rows. */
struct rt_part {
	int first, next;
	const struct lin_order *order;
};

/* The pointer tables of the threads of a run: that of chunk c begins at buffers + c * stride. */
struct rt_tables {
	void *const *buffers;
	int64_t stride; /* 0 = all threads use one table */
};

/* Walks the steps of one part after the other over the rows that the tables and `sizes` describe, on so many threads
 * of a team that was entered; below 2 alone.  The profile has memory for the run, or is NULL. */
bool rt_run_steps(const struct image *, struct rt_tables, const int64_t *sizes, const struct rt_part *, int parts,
		  struct rt_team *, int threads, struct rt_walk_state *, struct rt_profile *, struct diags *);
/* Enters the team if that is profitable when workers may do so many operations; returns its threads, or 0.
 * NULL is no team. */
int rt_enter_team(struct rt_team *, double operations);
/* The operations of a run over so many nodes that workers may do. */
double rt_worker_operations(const struct image *, int64_t nodes);
/* Has the code of all steps of runs made, for ranges of at most so many rows. */
bool rt_need_all_code(const struct image *, int64_t most, int64_t *rows, struct diags *);
/* Whether the image has a buffer of a kind. */
bool rt_has_buffer(const struct image *, enum image_buffer_kind);
/* Where the nodes of an input end. */
int64_t rt_end_of_input(const struct lin_forest *, int64_t input);
/* The first buffer of a kind; -1 = there is none. */
int rt_find_buffer(const struct image *, enum image_buffer_kind);
/* Pairs of a node and the nodes of its input; -1 = their numbers do not fit in 32 bits. */
int64_t rt_count_pairs(const struct lin_forest *);
/* Assigns each intermediate an offset in the memory that they share, a multiple of 64 bytes, and counts its
 * bytes.  False when they cannot be counted.  Intermediates that are never live at once may overlap. */
bool rt_lay_out_scratch(const struct image *, const int64_t *sizes, int64_t *offset, int64_t *bytes);
/* Gives so many threads local buffers, of the session's sizes; the tables that go with them. */
bool rt_reserve_own(struct rt_session *, int threads, struct diags *);
struct rt_tables rt_tables_of(const struct rt_session *);
/* Bytes of a buffer of the session's own at its sizes; -1 when they cannot be counted. */
int64_t rt_buffer_bytes(const struct rt_session *, const struct image_buffer *);
/* The structures that an image accepts, and the arrays that its kernels read. */
struct lin_rules rt_rules_of(const struct image *);
/* Linearizes a minibatch, and checks it and the data of `given`: the caller's minibatch, each node of which is as many of the
 * first as its rows are (image_stack); the same one where that is 1. */
bool rt_linearize(struct lin_order *, const struct image *, struct lin_rules, const struct rt_minibatch *,
		  const struct rt_minibatch *given, struct diags *);
/* Whether the node of a number reads an input, or its edges do. */
bool rt_reads(const struct image_input *, const struct lin_order *, int32_t number);
/* Copies a dense row into a row of the buffer, and out of one. */
void rt_put_row(const struct image_buffer *, const void *from, int64_t row, void *to);
void rt_get_row(const struct image_buffer *, const void *from, int64_t row, void *to);
/* Which rows of a buffer are copied to which places of dense ones: to each of `n` places, which are place[0 .. n - 1] or, where
 * that is NULL, 0 .. n - 1, the row that row[place] or, where that is NULL, first + place says. */
struct rt_rows {
	int64_t n, first;
	const int32_t *row, *place;
};
void rt_get_rows(const struct image_buffer *, const void *from, const struct rt_rows *, void *to);
/* The time of CLOCK_MONOTONIC, in nanoseconds. */
int64_t rt_nanoseconds(void);
/* rt_allocate, and zeroed. */
void *rt_allocate_zeroed(const struct allocator *, size_t bytes);

/* Whether rt_session_run would accept the minibatch.  The image needs no code. */
bool rt_check_minibatch(const struct allocator *, const struct image *, const struct rt_minibatch *,
			struct diags *);

#endif
