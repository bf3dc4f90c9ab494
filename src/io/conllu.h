/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sentences in CoNLL-U, the format of Universal Dependencies: a line of ten columns between tabs for each
 * word,
 *
 *     ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC
 *
 * comments before them, an empty line after them.  Words are nodes, numbered from 0 in their order; children
 * are in the order of the words.  Lines of a range (3-4) are skipped.
 *
 * The basic view is the tree of HEAD and DEPREL; lines of empty nodes (3.1) are skipped.  The enhanced view
 * is the graph of DEPS: empty nodes are nodes, too, numbered with the words as their lines stand, and a word
 * has an edge from each of its heads.  Of several roots the first is the structure's; what it does not reach
 * is in the structure nevertheless. */
#ifndef ESPALIER_IO_CONLLU_H
#define ESPALIER_IO_CONLLU_H

#include "io/structure.h"

/* The next sentence; a text without any is `empty-input`.  A sentence that is refused is skipped: the next
 * call reads on behind it.  A cycle is refused, and in the basic view anything that is no tree. */
enum io_next io_conllu_next(struct io_text *, bool enhanced, struct arena *, struct diags *,
			    struct io_structure *);

#endif
