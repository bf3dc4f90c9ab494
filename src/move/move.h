/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Passes that move values to other bodies, as the schedule specifies. */
#ifndef ESPALIER_MOVE_MOVE_H
#define ESPALIER_MOVE_MOVE_H

#include "rewrite/rewrite.h"

/* Which values are moved: those for which it is profitable, all that can be, none. */
enum move_extent { MOVE_ON, MOVE_ALL, MOVE_OFF };

/* Refactoring: a value that parents compute of one child's states and of weights, for each of their edges,
 * is computed once by the child, which keeps it as a derived state.  Leaves look it up in a table where
 * they look up their states, as far as the options allow tables.  No bit of a result changes.  `to` is an
 * empty program of the same arena (sub_init); `from` has been folded and not been hoisted.  The trace may
 * be NULL.
 *
 * MOVE_ALL also moves the other way: parents apply the last operator of a child's state, if it is a cheap
 * one, to its operands, which the child keeps as derived states. */
void move_refactor(struct sub_program *to, const struct sub_program *from, enum move_extent,
		   const struct rewrite_options *, struct rewrite_trace *);
/* Whether refactoring moved a value of the program. */
bool move_is_refactored(const struct sub_program *);
/* Why the last operator of each state stays at its node, "; STATE: REASON" for each, in the
 * program's arena. */
const char *move_explain_tails(const struct sub_program *);
/* Hoisting: products of weights with a node's inputs, or with states of earlier traversals, are computed
 * before the recursion of each traversal, in bodies of their own (SUB_AHEAD and SUB_AHEAD_INNER), whose
 * results are inputs of the other bodies.  No bit of a result changes.  `to` is an empty program of the
 * same arena (sub_init); `from` has been folded.  The trace may be NULL. */
void move_hoist(struct sub_program *to, const struct sub_program *from, enum move_extent,
		const struct rewrite_options *, struct rewrite_trace *);
/* Flattening: a traversal whose nodes all compute the same, each without its neighbours, becomes one body ahead of it, over all
 * nodes (SUB_AHEAD).  No bit of a result changes.  `to` is an empty program of the same arena (sub_init).  The trace may
 * be NULL. */
void move_flatten(struct sub_program *to, const struct sub_program *from, enum move_extent,
		  const struct rewrite_options *, struct rewrite_trace *);
/* Whether a body needs neighbours, edges, or a state that its traversal has yet to compute, and so runs in the order of
 * the recursion. */
bool move_needs_order(const struct sub_program *, const struct sub_body *);
/* Whether a traversal of the program was flattened. */
bool move_is_flat(const struct sub_program *);
/* Whether hoisting moved a value of the program, or a traversal was flattened. */
bool move_is_hoisted(const struct sub_program *);
/* Padding: what a reduction reads through windows that may leave it is copied with a border, where each element is
 * read often.  No bit of a result changes.  `to` is an empty program of the same arena (sub_init).  The
 * trace may be NULL. */
void move_pad(struct sub_program *to, const struct sub_program *from, enum move_extent,
	      const struct rewrite_options *, struct rewrite_trace *);
/* Whether padding made a copy in the program. */
bool move_is_padded(const struct sub_program *);
/* Whether a value only shifts the dimensions of a row and fills a border: one that is stored where windows read it. */
bool move_is_padded_copy(const struct sub_program *, sub_ref);

/* Unstacking: where all inputs and results are stacks of as many instances, each computed without the others, these become rows
 * of the program: `stacked` of them are one row of the model.  No bit of a result changes.  `to` is an empty program of the same
 * arena (sub_init).  The trace may be NULL. */
void move_unstack(struct sub_program *to, const struct sub_program *from, enum move_extent,
		  const struct rewrite_options *, struct rewrite_trace *);
/* Whether a row of the model is several rows of the program. */
bool move_is_unstacked(const struct sub_program *);

#endif
