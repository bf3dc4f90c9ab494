/* What the files of runtime/ share. */
#ifndef ESPALIER_RUNTIME_INTERNAL_H
#define ESPALIER_RUNTIME_INTERNAL_H

#include "runtime/runtime.h"

/* Zeroed memory, 64-byte aligned; blocks of 2 MiB and more begin at a huge page.  NULL when memory is out. */
void *rt_take(const struct allocator *, size_t bytes);
/* The same, but whatever was there before is in it. */
void *rt_take_raw(const struct allocator *, size_t bytes);
/* Gives back what either returned; NULL is accepted. */
void rt_give(const struct allocator *, void *);

/* Of CLOCK_MONOTONIC, and the same in seconds. */
int64_t rt_nanoseconds(void);
double rt_clock(void);

/* Always false. */
bool rt_out_of_memory(struct diags *, const char *what);

/* Rows of a parameter that are at hand: `from` holds them row-major, without padding, or, when there is a
 * recipe by which they were computed, with that of the recipe. */
struct rt_part {
	int param; /* as image_param counts */
	int64_t first, rows;
	const float *from;
	const struct image_recipe *place; /* NULL = none */
	int held;			  /* the recipe in whose buffer the rows lie already, -1 = none */
};

/* Puts the part into the packed buffers of all recipes that take from the parameter, but that of its place
 * and that which holds it. */
void rt_place(const struct image *, float *const *packed, const struct rt_part *);
/* A recipe that lays the parameter out as it is, and holds nothing else; -1 = there is none. */
int rt_find_plain(const struct image *, int param);
bool rt_uses(const struct image_recipe *, int param);
/* Zero where a recipe has no element. */
void rt_clear_padding(const struct image *, const struct image_recipe *, float *to, int64_t elements);

/* Measured by bench/team.c. */
enum {
	RT_MEETING_NANOSECONDS = 100, /* that a turn takes in which nothing is done, until the team knows */
	RT_OPERATIONS_PER_NANOSECOND = 90, /* of a kernel that waits for nothing */
	/* that members would do: */
	RT_TEAM_OPERATIONS = 300000,   /* for a run to enter the team */
	RT_ROUSE_OPERATIONS = 10000000 /* missed by sleeping members, for them to be roused */
};

/* Walks the step table over the minibatch that `buffers` and `sizes` describe; with the `parts` of a team
 * that was entered, or alone.  The profile has room for the run, or is NULL. */
bool rt_run_steps(const struct image *, void *const *buffers, const int64_t *sizes,
		  const int32_t *batch_begin, struct rt_team *, int parts, struct rt_habits *,
		  struct rt_profile *, struct diags *);
/* Enters the team when members may do so many operations, unless that is not worth it; parts, or 0.  NULL is
 * no team. */
int rt_enter_team(struct rt_team *, double operations);
/* The operations that members may do of a run over so many nodes. */
double rt_shared_operations(const struct image *, int64_t nodes);
/* Runs the step at binding that computes a folded parameter, all its rows. */
bool rt_run_fold(const struct image *, int fold, void *const *buffers, struct rt_team *, int parts,
		 struct diags *);
/* The operations that members may do of all such steps. */
double rt_fold_operations(const struct image *);
/* Whether every node carries what its case reads of input `which`: a value, and a token within its limit. */
bool rt_check_data(const struct image *, const struct lin_order *, const struct rt_minibatch *, int which,
		   struct diags *);
/* Lays checked data out in the order's numbering, rows `row_elements` apart.  A token that is not read
 * becomes 0. */
void rt_permute_tokens(const struct image_input *, const struct lin_order *, const int32_t *from,
		       int32_t *to);
void rt_permute_vectors(const struct image_input *, const struct lin_order *, const float *from,
			int64_t row_elements, float *to);

/* Whether a row of the buffer is row-major without gaps, up to its end. */
bool rt_is_dense(const struct image_buffer *);

#endif
