/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of runtime/ share. */
#ifndef ESPALIER_RUNTIME_SHARED_H
#define ESPALIER_RUNTIME_SHARED_H

#include "runtime/runtime.h"

/* As rt_take_raw, but zeroed. */
void *rt_take(const struct allocator *, size_t bytes);

/* Of CLOCK_MONOTONIC, and the same in seconds. */
int64_t rt_nanoseconds(void);
double rt_clock(void);

/* Always false. */
bool rt_out_of_memory(struct diags *, const char *what);
#define rt_out_of_memory(...) diag_false(rt_out_of_memory(__VA_ARGS__))

/* Rows of a parameter that are at hand: `from` holds them row-major, without padding, or, when there is a
 * recipe by which they were computed, with that of the recipe. */
struct rt_part {
	int param; /* as image_param counts */
	int64_t first, rows;
	const void *from;
	const struct image_recipe *place; /* NULL = none */
	int held;			  /* the recipe in whose buffer the rows lie already, -1 = none */
};

/* Puts the part into the packed buffers of all recipes that take from the parameter, but that of its place
 * and that which holds it. */
void rt_place(const struct image *, void *const *packed, const struct rt_part *);
/* A recipe that lays the parameter out as it is, and holds nothing else; -1 = there is none. */
int rt_find_plain(const struct image *, int param);
bool rt_uses(const struct image_recipe *, int param);
/* Zero where a recipe has no element. */
void rt_clear_padding(const struct image *, const struct image_recipe *, void *to, int64_t elements);

/* Walks the step table over the minibatch that `buffers`, `sizes` and the order describe; with the `parts` of
 * a team that was entered, or alone.  The profile has room for the run, or is NULL. */
bool rt_run_steps(const struct image *, void *const *buffers, const int64_t *sizes, const struct lin_order *,
		  struct rt_team *, int parts, struct rt_habits *, struct rt_profile *, struct diags *);
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
/* Whether every node, or every edge, carries what is read of input `which`: a value, and a token within its
 * limit. */
bool rt_check_data(const struct image *, const struct lin_order *, const struct rt_minibatch *, int which,
		   struct diags *);
/* Whether the data of input `which` are there, if there are nodes. */
bool rt_check_present(const struct image *, const struct rt_minibatch *, int which, struct diags *);
/* Lays checked data out in a buffer of its kind, in the order's numbering.  A token that is not read becomes
 * 0. */
void rt_permute_data(const struct image *, const struct lin_order *, const struct rt_minibatch *,
		     const struct image_buffer *, void *to);

/* Where the intermediates begin in the memory that they share, at multiples of 64 bytes: an offset each, and
 * the bytes of all.  False when they cannot be counted.  Those that are never needed at once may overlap. */
bool rt_lay_out_scratch(const struct image *, const int64_t *sizes, int64_t *offset, int64_t *bytes);

/* Whether a row of the buffer is row-major without gaps, up to its end. */
bool rt_is_dense(const struct image_buffer *);
/* Writes a dense row where the buffer has the elements of one. */
void rt_put_row(const struct image_buffer *, const void *from, int64_t row, void *to);

#endif
