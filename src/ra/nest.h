/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of index notation share: a nest while it is expanded. */
#ifndef ESPALIER_RA_NEST_H
#define ESPALIER_RA_NEST_H

#include "ra/syntax.h"

/* An index variable of the current nest. */
struct ra_nest_variable {
	int index; /* of the model's */
	struct ra_span span;
	bool known;	     /* the extent */
	struct ra_span from; /* what told it */
};

struct ra_nest_element {
	ra_ref node;
	struct ra_span span;
};

/* Index notation while it is expanded: of one value, or one reduction outside of any. */
struct ra_nest {
	int first,
	    number; /* the position of its first variable in ra_node.free; which nest of the model it is */
	VEC(struct ra_nest_variable) variables;
	VEC(struct ra_nest_element) elements;
	enum ra_op reduction; /* the innermost around; RA_CONST = none */
	int around;	      /* variables in scope */
	bool failed;
};

/* nest.c */
/* Marks the nest as one with a fault, which is reported at the name or index; always false. */
bool ra_refuse_index(struct ra_graph *, struct ra_span, const char *hint, const char *message);
/* The scope in which a name is introduced, and which of its names it is; NULL = it is no local name. */
const struct ra_scope *ra_find_scope(const struct ra_scope *, struct ra_span name, int *which);
/* The variable of the current nest that has this name; -1 = none.  Those of a nest around it are out of
 * reach: `foreign`. */
int ra_find_variable(struct ra_graph *, const struct ra_scope *, struct ra_span name, bool *foreign);
/* What an element outside of its axis is to a reduction over indices; false of another operator. */
bool ra_find_neutral(enum ra_op, double *neutral);
/* False after a diagnostic: a value has axes. */
bool ra_is_number(struct ra_graph *, ra_ref, const struct ra_expr *);

/* nest_elements.c: false after a diagnostic, where an element that has no fill lies outside whatever the
 * sizes. */
bool ra_check_inside(struct ra_graph *, const struct ra_nest_element *);

/* nest_extents.c: finds the extents of all variables of a nest.  False after a diagnostic. */
bool ra_find_extents(struct ra_graph *, struct ra_nest *);

#endif
