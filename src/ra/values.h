/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inside of the builder: values.c (texts and values) -> builder.c (declarations and calls) -> cones.c (sums,
 * states, outputs, the end). */
#ifndef ESPALIER_RA_VALUES_H
#define ESPALIER_RA_VALUES_H

#include "ra/builder.h"
#include "ra/syntax.h"

enum { RA_VALUE_INDEX = (1 << RA_VALUE_BITS) - 1, RA_SHOWN = 64 };

/* The name of the child, or the parent, in a sum; no name of the caller contains a blank. */
#define RA_EACH_NAME "each child"
/* The name of the node in a sum over the nodes of an input. */
#define RA_MEMBER_NAME "each node"

/* What a value inside of a sum depends on. */
enum ra_each { RA_OF_NONE, RA_OF_CHILD, RA_OF_MEMBER };

struct ra_value {
	uint32_t index;
	struct ra_expr *use;	      /* the expression that uses it; its span is the value as text */
	struct ra_expr *definition;   /* the value of its statement; NULL = it is none */
	enum ra_word body;	      /* RA_WORD_NONE = can be used in any */
	int traversal;		      /* of the body; 0 where outputs are computed */
	bool infix;		      /* its text needs brackets in another */
	enum ra_each each;	      /* whether it depends on the child or node of a sum */
	bool needed;		      /* by a sum, when it depends on each child, or by an output */
	const struct ra_span *output; /* the output whose value it is; NULL = none */
	const uint32_t *arg;	      /* indices of the values that the definition uses */
	size_t args;
	unsigned walk; /* the last walk that visited it */
};

/* An assignment to a state, which may be declared later. */
struct ra_assignment {
	size_t body, statement;
};

struct ra_builder {
	struct arena *arena;
	struct ra_report report;
	struct ra_syntax syntax;
	uint32_t tag;
	const char *file;
	int line, calls;
	enum ra_word body; /* RA_WORD_NONE = none yet, in this traversal */
	VEC(struct ra_value *) values; /* from index 1 */
	VEC(struct ra_assignment) assignments;
	struct map indexed; /* texts of index notation -> which of syntax.defs */
	unsigned walks;
	size_t repeated; /* statements that stand in sums and outputs */
};

/* --- places, and texts that were passed --- */

/* The place of the current call. */
struct diag_at ra_here(const struct ra_builder *);
/* A parser of a text that the caller passed; the place of all its tokens is the current call. */
struct ra_parser ra_arg_parser(struct ra_builder *, const char *text);
bool ra_arg_end(struct ra_parser *);
/* Reads all of the text as a name, a list of dimensions (NULL is an empty one) or a dimension; false after a
 * diagnostic. */
bool ra_arg_name(struct ra_builder *, const char *text, const char *what, struct ra_span *);
bool ra_arg_shape(struct ra_builder *, const char *text, struct ra_declaration *, ra_clause *);
bool ra_arg_dim(struct ra_builder *, const char *text, struct ra_dim_text **);

/* --- values as text, for messages --- */

/* A text, which is not copied, with the place of the current call. */
struct ra_span ra_here_span(const struct ra_builder *, const char *text);
/* The same, clipped, so that texts of texts stay short. */
struct ra_span ra_clipped_span(const struct ra_builder *, struct str *);
__attribute__((format(printf, 2, 3))) struct ra_span ra_show_text(struct ra_builder *, const char *format,
								  ...);
/* Adds the text of a value, in brackets where an operand needs them. */
void ra_show_value(struct str *, const struct ra_value *, bool operand);
const char *ra_body_text(const struct ra_builder *, enum ra_word body);

/* --- values --- */

struct ra_expr *ra_new_expr(struct ra_builder *, enum ra_expr_kind, struct ra_span);
/* Whether it is a value of the body that outputs see, where there is no structure. */
bool ra_is_shared(const struct ra_builder *, const struct ra_value *);
/* The value of an id that the caller has; NULL after a diagnostic, or in silence when an earlier one explains
 * that there is none.  The second: for use in the body that the calls are for. */
struct ra_value *ra_find_value(struct ra_builder *, uint32_t id);
struct ra_value *ra_use_value(struct ra_builder *, uint32_t id);
/* The expression that uses a value, at the place of the current call. */
struct ra_expr *ra_written_value(struct ra_builder *, const struct ra_value *);
/* Whether calls are in a body, else reports it; and that body, NULL where outputs are computed. */
bool ra_has_body(struct ra_builder *);
struct ra_body *ra_current_body(struct ra_builder *);
/* Adds a value with a name of its own, as a statement of the body unless it depends on each child; returns
 * its id.  No argument may be NULL. */
uint32_t ra_add_value(struct ra_builder *, struct ra_expr *definition, struct ra_value *const *arg, size_t n);
/* Adds a value that is written out wherever it is used. */
uint32_t ra_add_plain(struct ra_builder *, struct ra_expr *);

#endif
