/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: how a plan comes about.
 *
 * A planner (grow.c, baseline.c) marks the values that are to be stored and puts values into blocks; plan.c
 * stores what else must be, and makes targets, stages and groups of it.  A step of a chain that the next one
 * alone wants is never stored (chains.c); no plan could change a bit, but it would break a loop nest in two.
 */
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

/* From argument `a` of a value to its elements. */
enum sched_mapping sched_mapping_of(const struct sub_program *, sub_ref, int a);
/* The most complex one of its arguments; what is given from outside and what moves it do not count. */
enum sched_mapping sched_mapping_of_value(const struct sub_program *, sub_ref);
enum sched_relation sched_relation_of(enum sched_mapping first, enum sched_mapping second);
/* Whether fusing `first` into `second`, of so many elements a row, was measured to be no slower than storing.
 */
bool sched_is_fusing_profitable(const struct target *, enum sched_mapping first, enum sched_mapping second,
		       double volume);

/* --- values of a body --- */

enum {
	SCHED_MAX_LOOPS = 40,  /* around one value, reductions among them */
	SCHED_MAX_PLACES = 16, /* at which a target may want one value: parts of parts multiply */
	SCHED_MAX_AGAIN = 64   /* times that something dear may be computed where it was measured to pay */
};

/* What there is to know of a value in a body. */
struct sched_fact {
	bool result;	   /* a state or output */
	bool stored;	   /* read from memory by another group */
	bool expensive;	   /* computing it means work; reading what is stored does not */
	bool recomputed;	   /* computed again, although dear, where it was measured to pay */
	bool dropped;	   /* was stored for nobody once */
	int uses;	   /* by values and results */
	int block;	   /* 0 = of its own */
	int target, group; /* as a target: number + 1, and of its group + 1 */
	sub_ref chain_end;   /* the end of the chain that it is a step of; 0 = stands for itself */
};

/* The values that a body needs, rising.  There may be many bodies, so each has facts of its own values only.
 */
struct sched_values {
	int n;
	const sub_ref *value;
	struct sched_fact *fact;
};

/* The fact of a value that the body needs. */
struct sched_fact *sched_fact(const struct sched_values *, sub_ref);

/* The values of a body; `seen` has an entry for each of the program, false before and after. */
void sched_find_values(struct sched_values *, struct arena *, const struct sub_program *, int body,
		       bool *seen);
/* The value that could be stored where this one is computed: the end of its chain. */
sub_ref sched_chain_end(const struct sched_values *, sub_ref);
/* Data movement with one consumer: nothing but an index. */
bool sched_is_index(const struct sub_program *, const struct sched_values *, sub_ref);
/* Which values mean work to compute, given what is stored. */
void sched_mark_expensive(const struct sub_program *, struct sched_values *);
/* Sets how many operations groups have.  The table is by value, all false before and after. */
void sched_count_operations(struct sched_plan *, bool *wanted);
/* --- planners --- */

/* The loops of a reduction over a dimension.  A loop over edges takes as many turns as a row has edges, so
 * what is in it shares no tile with what is outside: a block has reductions in one of these spaces. */
enum { SCHED_OF_ROWS = 1, SCHED_OF_EDGES = 2 };

struct sched_block {
	int joined;	 /* to this block; itself when to none */
	int reductions;	 /* accumulators */
	int pressure;	 /* vectors that a tile of one row and one vector of columns keeps */
	unsigned spaces; /* in which dimensions are reduced: SCHED_OF_ROWS, SCHED_OF_EDGES */
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
/* Vectors that a block may keep. */
int sched_pressure_limit(const struct target *);
static inline bool sched_spaces_agree(unsigned a, unsigned b)
{
	return (a | b) != (SCHED_OF_ROWS | SCHED_OF_EDGES);
}

/* --- what one target computes and reads --- */

/* How a dimension is indexed, seen from the target's loops.  Two indices with one `id` are the same
 * expression. */
struct sched_index {
	uint64_t loops; /* it depends on these */
	uint64_t id;
};

struct sched_read {
	sub_ref value;
	bool inside; /* at the very element that is being computed */
};

/* A reduction that a target computes itself. */
struct sched_reduction {
	sub_ref value;
	uint64_t instance; /* value and index */
	uint64_t shared;   /* the operand that it has in common with its siblings */
	bool own;	   /* the other one is of the row, or of an edge of it, and read once */
};

struct sched_walk {
	const struct sched_plan *plan;
	const struct sub_program *p;
	struct arena *arena;
	/* the target at hand */
	int body;
	sub_ref target;
	int loops, reducing;		/* around; reductions over a dimension among them */
	int64_t extent[64];		/* of each loop; 0 = the rows */
	uint64_t leading;			/* loops over rows and edges */
	struct map visited;		/* instances */
	int *instances, *counted_in, number; /* of each value; since this turn */
	VEC(struct sched_read) reads;
	VEC(struct sched_reduction) reductions;
	/* Called for each instance of a value that is not stored, and may mark it (plan.c); may be NULL. */
	void (*visit)(struct sched_walk *, sub_ref, const struct sched_index *);
	/* Called for what is chosen by the index, inside of a reduction. */
	void (*visit_choice)(struct sched_walk *, sub_ref);
	void *context;
};

void sched_walk_init(struct sched_walk *, struct arena *, const struct sched_plan *);
/* Walks from a target down to what is stored or given. */
void sched_walk_target(struct sched_walk *, int body, sub_ref);
/* Wanted at just the element that the target at hand is computing, in a nest that computes all of it: the
 * first half of a product may be wanted at such places, but comes from another nest. */
bool sched_is_inside(const struct sched_walk *, sub_ref, const struct sched_index *);
/* How often a value is computed for once that it is wanted: turns of the loops around, other than the rows,
 * that its index does not depend on. */
double sched_times_computed(const struct sched_walk *, sub_ref, const struct sched_index *);

#endif
