/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Passes that move values to other bodies, as a schedule says. */
#ifndef ESPALIER_MOVE_MOVE_H
#define ESPALIER_MOVE_MOVE_H

#include "rewrite/rewrite.h"

/* What is moved to another body: what pays, what can be, nothing. */
enum move_extent { MOVE_ON, MOVE_ALL, MOVE_OFF };

/* Into an empty program of the same arena (sub_init): what parents compute of one child's states and weights,
 * for each of their edges, the child computes, once, and keeps as a state that is derived; at leaves it is
 * looked up where their states are, as far as the options allow tables.  No bit of a result changes.  `from`
 * has been folded and not been hoisted.  The trace may be NULL. */
void move_refactor(struct sub_program *to, const struct sub_program *from, enum move_extent,
		   const struct rewrite_options *, struct rewrite_trace *);
/* Whether anything moved. */
bool move_is_refactored(const struct sub_program *);
/* Into an empty program of the same arena (sub_init): what a node carries, and what earlier traversals
 * computed of it, is multiplied by weights ahead of the recursion of each traversal, in bodies of their own,
 * SUB_AHEAD and SUB_AHEAD_INNER; what they compute is an input to the others.  No bit of a result changes.
 * `from` has been folded.  The trace may be NULL. */
void move_hoist(struct sub_program *to, const struct sub_program *from, enum move_extent,
		const struct rewrite_options *, struct rewrite_trace *);
/* Whether anything left. */
bool move_is_hoisted(const struct sub_program *);

#endif
