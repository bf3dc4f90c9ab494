/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier_builder.h - a model made by calls; espalier.h includes it.
 *
 * What a text can say, call by call; the result is the very same graph (doc/model-text.md has the language).
 * Shapes and dimensions are given as in the text: "D, E", "4*D"; with a type behind them where it is not f32: "D, E : f16",
 * ": i32".  A cast is a call of the function that is named as the type: "i32".  A value can be used any number of times.
 *
 * Mistakes are collected: a call that is wrong returns the value 0, which may be passed on, and
 * esp_builder_finish reports all of them at the places that esp_builder_at has named, with the ids that a
 * text would get, and memory that ran out in an earlier call. */
#ifndef ESPALIER_BUILDER_H
#define ESPALIER_BUILDER_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct esp_builder esp_builder;
typedef struct esp_value {
	uint32_t id; /* of one builder; 0 = none */
} esp_value;

/* `structure` as in the text: "sequence", "tree(left, right)", "tree(*)", "dag(2)", "none".  With "none" outputs see the values of
 * ESP_BODY_NODE, the only body but ESP_BODY_OUTPUT. */
esp_status esp_builder_create(esp_context *, const char *name, const char *structure, esp_builder **out,
			      esp_error **error);
/* The caller's place, for diagnostics about the calls that follow: esp_builder_at(b, __FILE__, __LINE__). */
void esp_builder_at(esp_builder *, const char *file, int line);

/* Declarations; `shape` = NULL or "" is a number; of a parameter it may say in what products are computed: "D, D products
 * i16" (doc/precision.md), and of an input, also of edges, the largest magnitude of its elements: "D within 1" (doc/model-text.md).  A token input is looked up with, nothing else. */
esp_value esp_builder_param(esp_builder *, const char *name, const char *shape);
esp_value esp_builder_input(esp_builder *, const char *name, const char *shape);
esp_value esp_builder_token(esp_builder *, const char *name);
/* What the edge from a node to a child carries, a vector, a number or a token: read with esp_builder_child,
 * as a state of the child is.  A token is looked up with, and so can a number of i32 be; these are to be
 * declared before they are read. */
void esp_builder_edge(esp_builder *, const char *name, const char *shape);
void esp_builder_edge_token(esp_builder *, const char *name);
void esp_builder_state(esp_builder *, const char *name, const char *shape);

/* A case with a body of its own, which is returned: leaves or inner nodes (`base`: ESP_BODY_LEAF or ESP_BODY_INNER) that
 * fit conditions such as "children == 2 and tag == 1".  A node is of the first case that it fits.  The body is one of
 * traversals up. */
int esp_builder_case(esp_builder *, const char *name, int base, const char *conditions);
/* Which body (ESP_BODY_...) the calls that follow are for.  A value of one body cannot be used in another;
 * parameters, inputs and numbers can. */
void esp_builder_body(esp_builder *, int body);
/* Begins the next traversal, "up" (children before parents) or "down" (parents before children): states that
 * are declared and bodies that are begun from here on belong to it.  Before the first call there is one that
 * goes up.  Of a model without a structure, "up over T" or "down over T" is a scan, T steps inside of each
 * row (doc/model-text.md). */
void esp_builder_traversal(esp_builder *, const char *direction);

/* Values. */
esp_value esp_builder_number(esp_builder *, double);
/* A function of the language or its prelude by name, or an operator: "+", "-" (of one or two), "*", "/", "@".
 * The value of an output stands, once that is declared, for the output: later ones do not compute it again.
 */
esp_value esp_builder_call(esp_builder *, const char *function, const esp_value *arguments, size_t n);
/* The same along another axis than the last, as `axis=` in a text says: axes are counted from 0, or from the end, -1
 * being the last. */
esp_value esp_builder_call_along(esp_builder *, const char *function, int axis, const esp_value *arguments, size_t n);
/* The row of a parameter that a token names; of any value, by a number from 0: that of its first axis. */
esp_value esp_builder_lookup(esp_builder *, esp_value param, esp_value token);
/* A value by index notation, which espalier-model(7) describes, of values that the text names in parentheses:
 * "(W, x)[k, i, j] = sum(W[k, c, u, v] * x[c, 2*i + u - 1, 2*j + v - 1] for c, u, v)", with an axis for each index behind them;
 * or of none, "(a, b) = max(a[i] - b[i] for i)", a number. */
esp_value esp_builder_indexed(esp_builder *, const char *text, const esp_value *arguments, size_t n);
/* x[begin : end] of an axis; NULL = its end. */
esp_value esp_builder_slice(esp_builder *, esp_value x, int axis, const char *begin, const char *end);
esp_value esp_builder_zeros(esp_builder *, const char *shape);
/* The elements of x in row-major order under another shape, "2, D", which has as many; "" or NULL: as a
 * number. */
esp_value esp_builder_reshape(esp_builder *, esp_value x, const char *shape);
esp_value esp_builder_dimension(esp_builder *, const char *dimension);
/* A state of a child, or what the edge to it carries: by slot, from 0, or of each child in turn, to be summed up
 * (or the largest taken) by esp_builder_children with "sum" or "max". */
enum { ESP_EACH_CHILD = -1 };
esp_value esp_builder_child(esp_builder *, int slot, const char *name);
esp_value esp_builder_children(esp_builder *, const char *function, esp_value of_each);
/* In a traversal down, a state of the parent (of a sequence's next node), or of each parent in turn, to be summed up (or
 * the largest taken) by esp_builder_parents with "sum" or "max". */
enum { ESP_THE_PARENT = 0, ESP_EACH_PARENT = -1 };
esp_value esp_builder_parent(esp_builder *, int which, const char *state);
esp_value esp_builder_parents(esp_builder *, const char *function, esp_value of_each);
/* Of each node of the structure in turn, to be summed up (or the largest taken) by esp_builder_members with "sum" or "max":
 * a state of an earlier traversal, or what nodes carry; below ESP_BODY_OUTPUT a state, or an output that every node has. */
esp_value esp_builder_member(esp_builder *, const char *name);
esp_value esp_builder_members(esp_builder *, const char *function, esp_value of_each);
/* A state of the node itself, once it was assigned or an earlier traversal computed it; an output, once it was declared. */
esp_value esp_builder_get(esp_builder *, const char *name);

/* The value of a state in the current body. */
void esp_builder_assign(esp_builder *, const char *state, esp_value);
/* `at`: ESP_AT_ROOT or ESP_AT_EVERY_NODE.  `label`: `labels` names of classes, or NULL and 0. */
void esp_builder_output(esp_builder *, const char *name, esp_value, int at, const char *const *label,
			size_t labels);

/* Checks the model.  The builder can only be freed afterwards. */
esp_status esp_builder_finish(esp_builder *, esp_model **out, esp_error **error);
void esp_builder_free(esp_builder *);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
