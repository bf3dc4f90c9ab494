/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures as the readers of all formats return them, with the data of nodes and edges. */
#ifndef ESPALIER_IO_STRUCTURE_H
#define ESPALIER_IO_STRUCTURE_H

#include "io/text.h"
#include "io/vocab.h"

/* The data of each node, or of each edge: texts, or JSON as it stands in the file. */
struct io_column {
	const char *names; /* its names with bars between, the main one first: "form|word" */
	bool on_edges;
	const struct io_span *text; /* one for each row; NULL = see json */
	struct io_span json;	    /* an array as it stands in the text */
};

/* Columns belong to the text and the arena that it was read with. */
struct io_structure {
	int32_t nodes, root;
	const int32_t *child_begin; /* nodes + 1 */
	const int32_t *children;    /* those of node n: child_begin[n] .. child_begin[n + 1]; an edge each */
	const struct io_column *column;
	int columns;	      /* the first is the one for words */
	const char *sentence; /* never NULL */
};

/* Nodes of which each has the one before it as its child; the last is the root.  Without columns. */
struct io_structure io_sequence(int32_t nodes, struct arena *);

/* --- filling in what a program reads --- */

/* What a program needs of an input. */
struct io_wanted {
	const char *input;
	bool token;    /* int32_t; otherwise float */
	bool integer;  /* of tokens: a value, of any 32 bits, instead of an index from 0 */
	bool on_edges; /* a row for each edge, in the order of the children; otherwise for each node */
	int64_t elements;
	int rank; /* axes; `shape` has their extents, of which `elements` is the product */
	const int64_t *shape;
	bool leaf, inner;	      /* of which nodes a vector or an integer must be there */
	const struct io_vocab *vocab; /* for texts; NULL = there is none */
	bool cut; /* a text that it lacks is looked up without its last subtype: nsubj for nsubj:pass */
};

/* The column of that name, on edges rather than on nodes if `on_edges`; NULL = there is none.  A column of
 * nodes gives an edge the value of its child. */
const struct io_column *io_find_column(const struct io_structure *, const char *name, bool on_edges);
/* The names of all columns, "form, lemma"; in the arena. */
const char *io_column_names(const struct io_structure *, struct arena *);

/* Whether the program reads the input at leaves, or else at inner nodes; on edges always. */
static inline bool io_is_read(const struct io_wanted *w, bool leaf)
{
	return w->on_edges || (leaf ? w->leaf : w->inner);
}
/* Writes a row for each node or edge to `to`: tokens (-1 = none) or vectors.  False after a diagnostic. */
bool io_fill(const struct io_text *, const struct io_structure *, const struct io_column *,
	     const struct io_wanted *, struct arena *, void *to, struct diags *);
/* The same for a column of JSON, where tokens may be texts, and null is no value. */
bool io_json_fill(const struct io_text *, const struct io_structure *, const struct io_column *,
		  const struct io_wanted *, struct arena *, void *to, struct diags *);

/* The words that nodes carry, each with a newline behind it, in the arena: of the column for words, or of a
 * column of JSON by one of its names.  Newlines in a word are spaces. */
const char *io_node_words(const struct io_structure *, struct arena *);
/* The same of a column by its name; empty lines where there is none. */
const char *io_node_texts(const struct io_structure *, const char *column, struct arena *);
/* Adds those of a column of JSON. */
void io_json_words(const struct io_structure *, const struct io_column *, struct arena *, struct str *);
void io_add_word(struct str *, struct io_span);

/* The id of a text; `p` is where it stands.  -1 after a diagnostic. */
int32_t io_token(const struct io_text *, const struct io_wanted *, struct io_span, const char *p,
		 struct diags *);

#endif
