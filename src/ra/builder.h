/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A model made by calls.  What the calls say is kept as the syntax that a text would have been read to, and
 * goes the same way from there: the graph is that of the text.
 *
 * A value that is used more than once is a name in that syntax, so that its use costs one expression however
 * large it is.  Nothing here recurses.
 *
 * Every call but ra_builder_new and ra_builder_finish reports to the builder's diagnostics and goes on; one
 * that is wrong gives 0, and what uses 0 gives 0 in silence.  Memory escapes through the arena, after which
 * the builder cannot be used. */
#ifndef ESPALIER_RA_BUILDER_H
#define ESPALIER_RA_BUILDER_H

#include "ra/ra.h"

struct ra_builder;

/* A value of a builder: 0 = none.  The upper bits are the builder's tag. */
enum { RA_VALUE_BITS = 20, RA_VALUE_TAGS = 1 << 12 };

enum ra_place { RA_AT_ROOT, RA_AT_EVERY_NODE };
/* The body of the i-th case that was declared is RA_BODY_CASE + i. */
enum ra_builder_body {
	RA_BODY_LEAF,
	RA_BODY_INNER,
	RA_BODY_NODE,
	RA_BODY_OUTPUT,
	RA_BODY_ROOT,
	RA_BODY_BELOW,
	RA_BODY_CASE
};

/* NULL after a diagnostic: the name or the structure.  `tag` is 1 .. RA_VALUE_TAGS - 1 and tells the values
 * of builders apart.  The arena and the diagnostics must outlive the builder; the model stays in the arena.
 */
struct ra_builder *ra_builder_new(struct arena *, struct diags *, unsigned tag, const char *name,
				  const char *structure);
/* Where the calls that follow stand; `file` may be NULL. */
void ra_builder_at(struct ra_builder *, const char *file, int line);
/* Parameters and inputs that nothing needs are no fault: the model does not have them. */
void ra_builder_drop_unused(struct ra_builder *);
/* An argument that shows to be wrong before there is a call. */
void ra_builder_refuse(struct ra_builder *, const char *function, const char *argument, const char *what);

/* Texts are never NULL, except for a shape and the ends of a slice. */
uint32_t ra_builder_param(struct ra_builder *, const char *name, const char *shape);
uint32_t ra_builder_input(struct ra_builder *, const char *name, const char *shape);
uint32_t ra_builder_token(struct ra_builder *, const char *name);
/* What edges carry; tokens are to be declared before they are used. */
void ra_builder_edge(struct ra_builder *, const char *name, const char *shape);
void ra_builder_edge_token(struct ra_builder *, const char *name);
void ra_builder_state(struct ra_builder *, const char *name, const char *shape);
/* States and bodies from here on belong to the next traversal: "up" or "down". */
void ra_builder_traversal(struct ra_builder *, const char *direction);
/* Leaves or inner nodes that fit conditions, as a text has them behind `when`; the body's number, -1
 * without a name.  Cases come
 * after the inputs that they ask for and before their bodies. */
int ra_builder_case(struct ra_builder *, const char *name, enum ra_builder_body base, const char *conditions);
void ra_builder_body(struct ra_builder *, int);

uint32_t ra_builder_number(struct ra_builder *, double);
uint32_t ra_builder_call(struct ra_builder *, const char *function, const uint32_t *arguments, size_t n);
/* Along an axis, from 0 or from the end. */
uint32_t ra_builder_call_along(struct ra_builder *, const char *function, int axis, const uint32_t *arguments,
			       size_t n);
uint32_t ra_builder_lookup(struct ra_builder *, uint32_t param, uint32_t token);
/* `(a, b)[i, j] = sum(a[i, k] * b[k, j] for k)`, or `(a, b) = ...` for a number: index notation of named values. */
uint32_t ra_builder_indexed(struct ra_builder *, const char *text, const uint32_t *arguments, size_t n);
uint32_t ra_builder_slice(struct ra_builder *, uint32_t, int axis, const char *begin, const char *end);
uint32_t ra_builder_zeros(struct ra_builder *, const char *shape);
/* The elements of a value under another shape, which has as many; NULL or "": as a number. */
uint32_t ra_builder_reshape(struct ra_builder *, uint32_t, const char *shape);
uint32_t ra_builder_dimension(struct ra_builder *, const char *dimension);
/* A state of a child or what the edge to it carries; `slot` may be RA_EACH_CHILD. */
uint32_t ra_builder_child(struct ra_builder *, int slot, const char *name);
/* Of the parent, or of each parent that a sum is at. */
uint32_t ra_builder_parent(struct ra_builder *, bool each, const char *state);
uint32_t ra_builder_children(struct ra_builder *, const char *function, uint32_t of_each);
uint32_t ra_builder_parents(struct ra_builder *, const char *function, uint32_t of_each);
/* A state or output of each node of the input, and a sum or maximum over them. */
uint32_t ra_builder_member(struct ra_builder *, const char *name);
uint32_t ra_builder_members(struct ra_builder *, const char *function, uint32_t of_each);
uint32_t ra_builder_get(struct ra_builder *, const char *name);

/* Whether the body at hand can use a value as it is.  One that another body of a model without a structure
 * computes is kept in a state of that body's traversal, of this name and shape, and got by its name. */
bool ra_builder_is_here(struct ra_builder *, uint32_t);
void ra_builder_keep(struct ra_builder *, uint32_t, const char *state, const char *shape);

void ra_builder_assign(struct ra_builder *, const char *state, uint32_t);
void ra_builder_output(struct ra_builder *, const char *name, uint32_t, enum ra_place,
		       const char *const *label, size_t labels);

/* NULL after diagnostics: of the calls before, or of the whole.  To be called once. */
struct ra_model *ra_builder_finish(struct ra_builder *);

#endif
