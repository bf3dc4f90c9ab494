/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inside the importer: nodes of a graph are written, one after the other, as calls of a builder.  Which
 * function writes an operator, and its attributes, are in onnx_ops.def.  All sizes are numbers. */
#ifndef ESPALIER_ONNX_OPERATORS_H
#define ESPALIER_ONNX_OPERATORS_H

#include "base/map.h"
#include "onnx/graph.h"
#include "ra/builder.h"

struct onnx_shape {
	int rank;
	int64_t dim[RA_MAX_RANK];
};

/* What is declared when it is first used, so that nothing is declared in vain: an input of the graph, or a
 * constant.  All operands that are copies of each other have one. */
struct onnx_source {
	const struct onnx_tensor *constant;
	const struct onnx_value *input;
	const struct onnx_target *target; /* where it is declared; NULL = nowhere yet */
	uint32_t id;			  /* there */
};

/* A value of the graph as far as it is written. */
struct onnx_operand {
	bool given; /* false: an input that is left out, or a fault was reported */
	enum onnx_type type;
	struct onnx_shape shape;
	const struct onnx_tensor *constant; /* its elements where they are known, else NULL */
	struct onnx_source *source;	    /* NULL: what a node computes */
	uint32_t id; /* of the builder, without a source; 0 = there was a fault, which it reports */
};

/* What is known of a name of a target. */
enum { ONNX_NAME_TAKEN, ONNX_NAME_OF_INPUT /* which is not declared yet */ };

/* A model that is being written: the whole one, or that of one node with constant inputs. */
struct onnx_target {
	struct ra_builder *builder;
	struct map names; /* of parameters, inputs and outputs */
	VEC(struct onnx_tensor) weights;
	const char *axis, *reduced; /* the names of indices, before their number */
	int added;		    /* parameters that no tensor of the file gives a name */
	struct map kept; /* numbers of the builder -> state that keeps the value for other bodies */
	VEC(const char *) state;
	bool scanning; /* the body at hand is of a step of a scan, in which there can be no scan */
};

struct onnx_importer;

/* A node while it is written. */
struct onnx_op {
	struct onnx_importer *importer;
	struct arena *arena;
	struct diags *diags;
	const struct onnx_graph *graph;
	const struct onnx_node *node;
	const struct onnx_operator *row;
	struct onnx_target *target;
	struct onnx_operand *in, *out;
	int ins, outs;
};

/* False after a diagnostic.  Sets the operands of all outputs that the node has. */
typedef bool onnx_write_function(struct onnx_op *);

enum {
	ONNX_OUTPUT_LIMIT = 64, /* outputs that a node may have */
	ONNX_INPUT_ROOM = 16	/* operands behind those that it has: inputs that are left out */
};

enum onnx_takes { ONNX_ANY, ONNX_FLOATS, ONNX_INTEGERS, ONNX_NUMBERS, ONNX_TRUTHS };
enum onnx_gives { ONNX_SAME, ONNX_TRUTH };

struct onnx_operator {
	const char *name, *domain;
	int since, last;
	const char *attributes;
	enum onnx_takes takes;
	enum onnx_gives gives;
	onnx_write_function *write;
	const char *text;
};

extern const struct onnx_operator onnx_operators[];
extern const int onnx_operator_count;
/* The row that writes a node whose first input has this type.  NULL after a diagnostic. */
const struct onnx_operator *onnx_find_operator(struct diags *, const struct onnx_graph *,
					       const struct onnx_node *, enum onnx_type first);

/* --- attributes: those of the node, else as the table says --- */

bool onnx_check_attributes(const struct onnx_op *);
bool onnx_has(const struct onnx_op *, const char *name);
int64_t onnx_int(const struct onnx_op *, const char *name);
double onnx_float(const struct onnx_op *, const char *name);
const char *onnx_string(const struct onnx_op *, const char *name);
/* A list, of which the rest are what `otherwise` says; each number is bounded.  False after a diagnostic
 * where it has more than n numbers. */
bool onnx_ints(const struct onnx_op *, const char *name, int n, int64_t otherwise, int64_t *);
/* NULL = it is not there. */
const struct onnx_attribute *onnx_attribute(const struct onnx_op *, const char *name);
/* An axis from 0; -1 after a diagnostic. */
int onnx_axis(const struct onnx_op *, int64_t axis, int rank);

/* --- operands --- */

enum dtype onnx_computed(enum onnx_type); /* f32, i32, i64 or bool */
bool onnx_given(const struct onnx_op *, int input);
/* At most 2^40, which no memory holds. */
int64_t onnx_elements(const struct onnx_shape *);
/* A product of extents; 2^40, more than a value has elements, where it is more. */
int64_t onnx_times(int64_t a, int64_t b);
/* The nearest number within +-INT32_MAX: what is beyond means the end of an axis, or an extent that no value
 * has. */
int64_t onnx_bounded(int64_t);
/* Whether a value can have the extents, as far as they are not too large. */
bool onnx_has_extents(const struct onnx_shape *);
/* The same; false after a diagnostic. */
bool onnx_check_extents(const struct onnx_op *, const struct onnx_shape *);
bool onnx_same_shape(const struct onnx_shape *, const struct onnx_shape *);
/* Whether a value is a tensor of a type and of a rank that values can have.  False after a diagnostic. */
bool onnx_check_value(struct arena *, struct diags *, const struct onnx_graph *, const struct onnx_value *,
		      int rank);
/* An input of the graph, which must have a shape.  False after a diagnostic. */
bool onnx_take_input(struct arena *, struct diags *, const struct onnx_graph *, const struct onnx_value *,
		     struct onnx_operand *);
/* The number of the builder: declares an input, or a parameter for a constant, at its first use.  Of what the
 * body of another traversal computes, that of a state which keeps it. */
uint32_t onnx_use(const struct onnx_op *, const struct onnx_operand *);
/* A name of a parameter or state like this one that nothing else has. */
const char *onnx_free_name(const struct onnx_op *, const char *);
/* The shape and type of a state that keeps a value. */
const char *onnx_state_text(const struct onnx_op *, const struct onnx_operand *);
/* A tensor that is not of the file.  Its elements are to be set. */
struct onnx_tensor *onnx_new_tensor(const struct onnx_op *, enum onnx_type, const struct onnx_shape *);
struct onnx_operand onnx_constant(const struct onnx_op *, const struct onnx_tensor *);
/* i64 or f32, which are copied. */
struct onnx_operand onnx_integers(const struct onnx_op *, const struct onnx_shape *, const int64_t *);
struct onnx_operand onnx_floats(const struct onnx_op *, const struct onnx_shape *, const float *);
/* 0, 1, ... as integers of the type. */
struct onnx_operand onnx_count(const struct onnx_op *, enum onnx_type, int64_t n);
/* The type in which elements that are computed at import are kept. */
enum onnx_type onnx_kept_type(enum onnx_type);
/* Sets an element of a tensor of such a type. */
void onnx_set_number(const struct onnx_tensor *, int64_t, double);
int64_t onnx_integer_at(const struct onnx_tensor *, int64_t);
double onnx_number_at(const struct onnx_tensor *, int64_t);
/* The integers of a list that must be known, bounded.  False after a diagnostic. */
bool onnx_known_ints(const struct onnx_op *, int input, int most, int64_t *, int *n);
bool onnx_known_floats(const struct onnx_op *, int input, int most, float *, int *n);

/* --- writing --- */

/* `(a, b) = TEXT`, of values. */
struct onnx_operand onnx_formula(const struct onnx_op *, enum onnx_type, const struct onnx_shape *,
				 struct onnx_operand *const *, int n, const char *text);
/* The text with the numbers of attributes, $name. */
const char *onnx_fill_in(const struct onnx_op *, const char *text);
/* `(a, b)[i0 in 2, i1 in 3] = TEXT`, of elements. */
struct onnx_operand onnx_nest(const struct onnx_op *, enum onnx_type, const struct onnx_shape *,
			      struct onnx_operand *const *, int n, const char *text);
/* The text with the names of indices: @0 is that of axis 0 of the value, #0 one that is reduced. */
const char *onnx_name_indices(const struct onnx_op *, const char *text);
/* One argument. */
struct onnx_operand onnx_map(const struct onnx_op *, struct onnx_operand, enum onnx_type, const char *text);
struct onnx_operand onnx_two(const struct onnx_op *, struct onnx_operand, struct onnx_operand, enum onnx_type,
			     const char *text);
/* `[i0, i1]`, of an argument whose axes are those of the value. */
void onnx_put_axes(const struct onnx_op *, struct str *, int rank);
/* `[i0, i1]` of an argument that is broadcast to a shape. */
void onnx_put_broadcast(const struct onnx_op *, struct str *, const struct onnx_shape *from,
			const struct onnx_shape *to);
bool onnx_broadcast(const struct onnx_op *, const struct onnx_shape *, const struct onnx_shape *,
		    struct onnx_shape *);
struct onnx_operand onnx_reshape(const struct onnx_op *, struct onnx_operand, const struct onnx_shape *);
struct onnx_operand onnx_transpose(const struct onnx_op *, struct onnx_operand, const int *order);
struct onnx_operand onnx_slice(const struct onnx_op *, struct onnx_operand, int axis, int64_t begin,
			       int64_t end);
/* One element of an axis, which goes. */
struct onnx_operand onnx_select(const struct onnx_op *, struct onnx_operand, int axis, int64_t at);
/* A new axis of extent 1; the rank is below the limit. */
struct onnx_operand onnx_insert_axis(const struct onnx_op *, struct onnx_operand, int axis);
/* begin, begin + step, ... of one axis. */
struct onnx_operand onnx_stride(const struct onnx_op *, struct onnx_operand, int axis, int64_t begin,
				int64_t step, int64_t n);
struct onnx_operand onnx_concat(const struct onnx_op *, struct onnx_operand *, int n, int axis);
struct onnx_operand onnx_expand(const struct onnx_op *, struct onnx_operand, const struct onnx_shape *);
/* In another type. */
struct onnx_operand onnx_cast(const struct onnx_op *, struct onnx_operand, enum onnx_type);
/* In the type that an attribute gives by its number; not given after a diagnostic. */
struct onnx_operand onnx_cast_to(const struct onnx_op *, struct onnx_operand, enum onnx_type);
/* A number as an operand of that type. */
struct onnx_operand onnx_number(const struct onnx_op *, enum onnx_type, double);
/* Of the axes in the mask: "sum", "prod", "max" or "min" of TEXT, in which $ is the element.  They are kept
 * with an extent of 1. */
struct onnx_operand onnx_reduce(const struct onnx_op *, struct onnx_operand, const char *function,
				unsigned mask, const char *text);
struct onnx_operand onnx_softmax(const struct onnx_op *, struct onnx_operand, unsigned mask, bool logarithm);
/* Along an axis, of which n elements are made: each the sum of `taps` elements, those at `at`, times `share`.
 */
struct onnx_operand onnx_weighted_sum(const struct onnx_op *, struct onnx_operand, int axis, int64_t n,
				      int64_t taps, const int64_t *at, const float *share);

/* --- windows --- */

/* The sum over each window of a pool, where elements outside of the value are 0. */
struct onnx_pooled {
	struct onnx_operand sum;
	struct onnx_operand count; /* of the elements that are averaged, in f32: a single number, or one for each place */
	bool whole;		   /* there is one window, which is the whole space */
};

/* By the attributes of the node, of a value [batch, channels, ...].  False after a diagnostic. */
bool onnx_sum_windows(const struct onnx_op *, struct onnx_operand, struct onnx_pooled *);
/* Adds an input, which has a number for each channel, where it is given. */
struct onnx_operand onnx_add_bias(const struct onnx_op *, struct onnx_operand, int input);

/* --- scans --- */

/* A scan while it is written, over the first axis of what it reads: begin_scan, begin_step for the first step
 * and for the others, end_scan. */
struct onnx_scan {
	const struct onnx_op *o;
	int64_t steps;
	bool down;  /* from the last element of the axis to the first */
	bool first; /* the body at hand is that of the first step */
};

/* What a scan carries from step to step. */
struct onnx_carried {
	const char *name;
	enum onnx_type type;
	struct onnx_shape shape;
};

void onnx_begin_scan(const struct onnx_scan *);
void onnx_begin_step(struct onnx_scan *, bool first);
void onnx_end_scan(const struct onnx_scan *);
/* The element of the first axis at the step. */
struct onnx_operand onnx_at_step(const struct onnx_scan *, struct onnx_operand);
/* Of the type and shape of an operand; the name is made free. */
struct onnx_carried onnx_declare_carried(const struct onnx_scan *, const char *name,
					 const struct onnx_operand *like);
/* Of the step before, in a step that is not the first. */
struct onnx_operand onnx_carried_before(const struct onnx_scan *, const struct onnx_carried *);
/* Gives it to the next step. */
void onnx_carry(const struct onnx_scan *, const struct onnx_carried *, struct onnx_operand);
/* Behind the scan: of all steps, along a first axis, each at its element. */
struct onnx_operand onnx_carried_all(const struct onnx_scan *, const struct onnx_carried *);

/* Writes the nodes of a graph of the node's attribute.  `in` are operands of its inputs, `out` of all its
 * outputs.  False after a diagnostic. */
bool onnx_write_graph(const struct onnx_op *, const struct onnx_graph *, const struct onnx_operand *in, int ins,
		      struct onnx_operand *out);

__attribute__((format(printf, 4, 5))) bool onnx_op_refuse(const struct onnx_op *, enum diag_id,
							  const char *hint, const char *format, ...);
#define onnx_op_refuse(...) diag_false(onnx_op_refuse(__VA_ARGS__))
__attribute__((format(printf, 2, 3))) const char *onnx_format(const struct onnx_op *, const char *format,
							      ...);

#define ONNX_OP(name, domain, since, last, attributes, takes, gives, write, text)                            \
	onnx_write_function onnx_write_##write;
#include "onnx/onnx_ops.def"

#endif
