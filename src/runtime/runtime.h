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
#include "runtime/record.h"
#include "runtime/team.h"

/* --- memory --- */

/* 64-byte aligned and not initialized; blocks from 2 MiB on begin at a huge page.  NULL = no memory. */
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
	void *block;   /* of those that runs need */
	bool borrowed; /* they are the image's, and read-only */
	size_t packed_bytes, folded_bytes; /* held for runs; of the parameters that steps computed */
	double folding; /* seconds that these steps took, with the packing of their results */
};

/* Packs the weights and runs the steps at binding, those with enough work on the team, if there is one
 * (NULL = none) and it is free.  The image must have code when it has such steps, and must outlive the binding.
 * The results have the same bits with and without a team. */
bool rt_bind(struct rt_binding *, const struct allocator *, const struct image *, const struct rt_source *,
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

bool rt_session_init(struct rt_session *, const struct allocator *, const struct image *, struct diags *);
/* Linearizes, fills the index and data buffers, runs the steps; those with enough work on the team, if there
 * is one (NULL = none) and it is free.  The image must have code.  After false no result can be read. */
bool rt_session_run(struct rt_session *, const struct rt_binding *, struct rt_team *,
		    const struct rt_minibatch *, struct diags *);
/* The row of an output: of a node (forest numbering) or, for an output at the root, of an input.  NULL = no
 * such row. */
const void *rt_session_row(const struct rt_session *, int output, int64_t row);
/* The row of an input's root, wherever the output is computed. */
const void *rt_session_root_row(const struct rt_session *, int output, int64_t input);
/* The row of a state at a node (forest numbering); NULL = no such row. */
const void *rt_session_state_row(const struct rt_session *, int state, int64_t node);
/* Frees the memory of runs, results included.  The next run allocates what it needs. */
void rt_session_trim(struct rt_session *);
void rt_session_free(struct rt_session *);

/* Whether rt_session_run would accept the minibatch.  The image needs no code. */
bool rt_check_minibatch(const struct allocator *, const struct image *, const struct rt_minibatch *,
			struct diags *);

#endif
