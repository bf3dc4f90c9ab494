/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bracketed trees, as treebanks write them:
 *
 *     (3 (2 It) (4 (2 's) (3 good)))          labels are sentiments
 *     ( (S (NP (PRP It)) (VP (VBZ 's) ...)))  labels are categories
 *
 * `(label word)` is a leaf, `(label subtree ...)` an inner node, whose label may be missing.  A bracket
 * around the whole tree that has neither label nor a second subtree is no node.  Words and labels end at
 * space, tab, CR, LF and brackets only: other bytes, UTF-8 spaces among them, belong to them.  A tree may
 * span lines and share them. */
#ifndef ESPALIER_IO_PTB_H
#define ESPALIER_IO_PTB_H

#include "io/text.h"

/* Nodes in post order: children before their parent, left to right; the last is the root. */
struct io_tree {
	int32_t nodes;
	const struct io_span *label;
	const struct io_span *word; /* of leaves only */
	const int32_t *child_begin; /* nodes + 1 */
	const int32_t *children;    /* those of node n: child_begin[n] .. child_begin[n + 1] */
};

/* The next tree, in the arena (as is the memory that building it takes).  A text without any tree is
 * `empty-input`. After IO_FAILED, which is a diagnostic, only IO_END follows.  Nesting is limited by memory
 * only. */
enum io_next io_ptb_next(struct io_text *, struct arena *, struct diags *, struct io_tree *);

#endif
