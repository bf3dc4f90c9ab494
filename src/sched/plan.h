/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How a plan is made; for this folder only.
 *
 * A planner (grow.c, baseline.c) marks the values to be stored and assigns values to blocks; plan.c stores
 * what else must be stored, and makes targets, supersteps and groups.  A step of a chain whose only consumer
 * is the next step is never stored (chains.c): storing it would change no bit, but split a loop nest in
 * two. */
#ifndef ESPALIER_SCHED_PLAN_H
#define ESPALIER_SCHED_PLAN_H

#include "base/map.h"
#include "sched/sched.h"

/* --- mapping types --- */

enum sched_mapping {
#define SCHED_MAPPING(name, spelling, meaning) SCHED_##name,
#include "sched/mapping.def"
#undef SCHED_MAPPING
	SCHED_MAPPINGS
};

enum sched_relation { SCHED_FUSE, SCHED_MAY, SCHED_NEVER };

/* How elements of argument `a` map to elements of the value. */
enum sched_mapping sched_mapping_of(const struct sub_program *, sub_ref, int a);
/* The most complex mapping of the value's arguments.  Sources, and data movement of them alone, do not
 * count. */
enum sched_mapping sched_mapping_of_value(const struct sub_program *, sub_ref);
enum sched_relation sched_relation_of(enum sched_mapping first, enum sched_mapping second);
/* How many times as long fusing `first` into `second` was measured to take as storing, on the target's processor or, where it
 * has no rows in fusion_cost.def, on another; `volume` is the elements that `second` visits per row.  1 where no such pair was
 * measured. */
double sched_fusion_cost(const struct target *, enum sched_mapping first, enum sched_mapping second, double volume);
/* Whether that is no slower than storing. */
bool sched_is_fusing_profitable(const struct target *, enum sched_mapping first, enum sched_mapping second,
				double volume);

/* --- values of a body --- */

enum {
	SCHED_MAX_LOOPS = 40,  /* around one value, reductions included */
	SCHED_MAX_PLACES = 16, /* at which a target may read one value: concatenations multiply them */
	SCHED_MAX_AGAIN = 64   /* times that an expensive value may be computed, where profitable */
};

/* Facts about a value in a body. */
struct sched_fact {
	bool result;	   /* is stored to a state, an output or another result of the body */
	bool stored;	   /* read from memory by another group */
	bool expensive;	   /* a reduction or transcendental function is in it, or in what is fused into it */
	bool recomputed;   /* computed several times although expensive: measured to be profitable */
	bool dropped;	   /* was stored once although no other group read it */
	bool apart;	   /* has a group of its own, because its readers would store it again without one */
	bool copied;	   /* is stored although it is data movement: what windows read, with a border, or what is arranged */
	bool arranged;	   /* is stored in another order, so that what reads it has vectors */
	bool in_place;	   /* a word, or the upper bytes of one, that is read where its bytes are stored */
	int uses;	   /* by other values and by stores */
	int block;	   /* 0 = a block of its own */
	int target, group; /* the number of its target + 1, and of its group + 1; 0 = none */
	sub_ref chain_end; /* of the chain that it is a step of; 0 = it is a step of none */
};

/* The values that a body needs, in rising order.  Facts are kept for these only, because a program may
 * have many bodies. */
struct sched_values {
	int n;
	const sub_ref *value;
	struct sched_fact *fact;
};

/* The facts about a value; the body must need it. */
struct sched_fact *sched_fact(const struct sched_values *, sub_ref);

/* Finds the values of a body; `seen` has an entry for each value of the program, false before and after. */
void sched_find_values(struct sched_values *, struct arena *, const struct sub_program *, int body,
		       bool *seen);
/* The end of the chain that a value is a step of; the value itself where it is a step of none. */
sub_ref sched_chain_end(const struct sched_values *, sub_ref);
/* Stores a value, or in its place the last integers that are computed of an i32 alone, element by element; returns what is
 * stored (narrow_end.c). */
sub_ref sched_store_narrow_end(const struct sub_program *, const struct sched_values *, sub_ref);
/* Whether a value is data movement with one consumer, which becomes an index expression. */
bool sched_is_index(const struct sub_program *, const struct sched_values *, sub_ref);
/* Marks the values that are expensive to compute, given what is stored. */
void sched_mark_expensive(const struct sub_program *, struct sched_values *);
/* Sets the number of operations of each group.  The table is by value, all false before and after. */
void sched_count_operations(struct sched_plan *, struct arena *, bool *needed);
/* A word of four bytes that are neighbours along a dimension: each is APPEND8 of the next and of a part. */
struct sched_word {
	sub_ref link[3]; /* the first is the whole word */
	sub_ref bytes;
	int dim; /* of the bytes */
};

/* Finds what a value is the words of; false if it is none. */
bool sched_find_word(const struct sub_program *, sub_ref, struct sched_word *);
/* Whether an integer of a range is stored as a byte. */
bool sched_fits_byte(const struct rewrite_range *);
/* Chooses the types of what is stored (stored_types.c). */
void sched_choose_stored_types(struct sched_plan *, struct arena *);
/* Finds what groups read of each other, and makes groups local as the schedule says (local.c). */
void sched_make_local(struct sched_plan *, struct arena *);
/* Whether a group has no products, and rows that are larger than the first-level cache, such as images. */
bool sched_moves_images(const struct sched *, const struct sched_group *);
/* Whether each element of a node's row has operands of its own but for small ones, as in a depthwise convolution: what it
 * reads is read in the order in which it lies. */
bool sched_reads_images(const struct sched_group *);
/* Whether a directive `store` names the value. */
bool sched_is_named(const struct sched_plan *, int body, sub_ref);
/* --- planners --- */

/* Where a reduction over a dimension runs.  A loop over edges has as many iterations as a row has edges,
 * so it shares no tile with reductions outside it: all reductions of a block are in one of these spaces. */
enum { SCHED_OF_ROWS = 1, SCHED_OF_EDGES = 2 };

struct sched_block {
	int joined;	 /* the block that it has joined; its own number while it has joined none */
	int reductions;	 /* accumulators */
	int pressure;	 /* vectors that a tile of one row and one vector of columns keeps */
	unsigned spaces; /* a mask: SCHED_OF_ROWS, SCHED_OF_EDGES */
};

struct sched_planner {
	struct sched_plan *plan;
	const struct sub_program *p;
	struct arena *arena;
	struct sched_values *values;	/* by body */
	VEC(struct sched_block) blocks; /* [0] unused */
};

int sched_new_block(struct sched_planner *, struct sched_block);
void sched_grow(struct sched_planner *, int body);
void sched_greedy(struct sched_planner *, int body);
void sched_store_all(struct sched_planner *, int body);
/* Stores the products of a body's edges whose weights a token selects, as the schedule says, so that groups of their own
 * compute them (sort.c). */
void sched_store_selected(struct sched_planner *, int body);
/* The most vectors that a block may keep live. */
int sched_pressure_limit(const struct target *);
static inline bool sched_spaces_agree(unsigned a, unsigned b)
{
	return (a | b) != (SCHED_OF_ROWS | SCHED_OF_EDGES);
}

/* --- what one target computes and reads --- */

/* The index of a dimension, in terms of the target's loops.  Two indices with one `id` are the same
 * expression. */
struct sched_index {
	uint64_t loops; /* a mask of the loops that it depends on */
	uint64_t next;	/* of those, the ones whose next iteration has the next index */
	uint64_t id;
	double span; /* numbers from the least to the greatest that it takes; 0 = not known */
};

struct sched_read {
	sub_ref value;
	bool inside; /* at the same element that the target is computing */
};

/* A reduction that a target computes in its own nest. */
struct sched_reduction {
	sub_ref value;
	uint64_t instance; /* identifies the value and its index */
	uint64_t shared, columns; /* identify the operands that other reductions of the group may share: that of the rows, and of products for matrix registers that of
				   * the columns; 0 = none */
	unsigned operand[2]; /* what those of a product, or the one, depend on: dimensions of a row, a mask, and SCHED_ROW */
	int64_t shift[SUB_MAX_VARS]; /* as of the loop */
	int64_t step[2];	     /* likewise */
};

struct sched_walk {
	const struct sched_plan *plan;
	const struct sub_program *p;
	struct arena *arena;
	/* the current target */
	int body;
	sub_ref target;
	int loops, reducing; /* loops around the current value, and reductions over dimensions among them */
	int64_t extent[64];  /* of each loop; 0 = the loop over rows */
	uint64_t leading;    /* a mask of the loops over rows and edges */
	struct map visited;  /* instances (a value at an index) that were walked */
	int *instances, *counted_in, number; /* of each value; the walk that counted them; the current walk */
	VEC(struct sched_read) reads;
	VEC(struct sched_reduction) reductions;
	/* Called for each instance of a value that is not stored; may store it (plan.c).  May be NULL. */
	void (*visit)(struct sched_walk *, sub_ref, const struct sched_index *);
	/* Called inside reductions for an operand that a condition on the index chooses.  May be NULL. */
	void (*visit_choice)(struct sched_walk *, sub_ref);
	void *context;
};

void sched_walk_init(struct sched_walk *, struct arena *, const struct sched_plan *);
/* Walks from a target down to stored values and sources. */
void sched_walk_target(struct sched_walk *, int body, sub_ref);
/* Whether a value is read at the very element that the current target is computing, in a nest with the
 * same loops.  The operands of a concatenation have elements at the same positions, but in other nests. */
bool sched_is_inside(const struct sched_walk *, sub_ref, const struct sched_index *);
/* How many times a value is computed for each element of it that is used, on average: the product of the
 * extents of all surrounding loops, rows excepted, that its index does not depend on, times as many
 * iterations of the others as come to one element, as those of windows that overlap do. */
double sched_times_computed(const struct sched_walk *, sub_ref, const struct sched_index *);

#endif
