/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Changes the arity of trees.  All of them stay in post order. */
#ifndef ESPALIER_IO_RESHAPE_H
#define ESPALIER_IO_RESHAPE_H

#include "io/ptb.h"

/* Removes nodes with only one child; the label of such a node, if it has one, becomes the child's. */
struct io_tree io_collapse(const struct io_tree *, struct arena *);

enum io_side { IO_LEFT = 1, IO_RIGHT = 2 };

/* A node with more than two children gets two, one of them new: to the left, (a b c) becomes ((a b) c), to
 * the right (a (b c)).  New nodes have the label of the old one and no word. */
struct io_tree io_binarize(const struct io_tree *, enum io_side, struct arena *);

#endif
