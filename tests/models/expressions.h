/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random expressions: made from the shape that is wanted down to parameters, inputs and states.  Values stay
 * small: what could grow is put through tanh, divisors are at least 1. */
#ifndef ESPALIER_TESTS_MODELS_EXPRESSIONS_H
#define ESPALIER_TESTS_MODELS_EXPRESSIONS_H

#include "tests/models/index_notation.h"
#include "tests/models/typed_operators.h"

/* --- operators: each is tried, and puts nothing when the form does not suit it --- */

/* The text around one argument of the same form; every one keeps small values small. */
static const char *const around_one[][2] = {
    {"tanh(", ")"},
    {"sigmoid(", ")"},
    {"(-", ")"},
    {"relu(", ")"},
    {"exp(-abs(", "))"},
    {"exp(tanh(", "))"},
    {"log(1 + abs(", "))"},
    {"sqrt(0.25 + abs(", "))"},
    {"(0.3 * ", ")"},
    {"silu(", ")"},
    {"gelu(tanh(", "))"},
    {"gelu_tanh(tanh(", "))"},
    {"erf(", ")"},
    {"log1p(abs(", "))"},
    {"log1p(-0.9 * sigmoid(", "))"},
    {"leaky_relu(", ", 0.1)"},
    {"softplus(", ")"},
    {"square(tanh(", "))"},
    {"abs(", ")"},
    {"tanh(", ")"},
    {"(1 - ", ")"},
    {"minimum(1, ", ")"},
    {"(q = tanh(", "); q * q + q)"},
    {"(0.5 / (1 + abs(", ")))"},
};

static inline bool put_unary(struct generator *g, const struct form *f, int depth)
{
	const char *const *around = around_one[random_below(sizeof around_one / sizeof *around_one)];
	put(&g->body, "%s", around[0]);
	put_value(g, f, depth);
	put(&g->body, "%s", around[1]);
	return true;
}

static const char *const around_two[][3] = {
    {"(", " + ", ")"},	   {"(", " - ", ")"},	    {"(", " * ", ")"},	     {"(", " + ", ")"},
    {"(", " * ", ")"},	   {"maximum(", ", ", ")"}, {"minimum(", ", ", ")"}, {"(", " / (1 + abs(", ")))"},
    {"(", " - 2 * ", ")"},
};

/* One side may lack leading axes, and either one have a single element along an axis. */
static inline bool put_binary(struct generator *g, const struct form *f, int depth)
{
	struct form less = *f, more = *f;
	int drop = random_below(3) ? 0 : random_below(f->rank + 1);
	drop_axes(&less, drop);
	make_ones(f, &more, &less);
	int which = random_below(sizeof around_two / sizeof *around_two);
	bool swap = which < 7 && random_below(2);
	put_either(g, swap ? &less : &more, swap ? &more : &less, depth, around_two[which]);
	return true;
}

/* Of the axes of the form the last one can be the right argument's, the others are the left one's. */
static inline bool put_product(struct generator *g, const struct form *f, int depth)
{
	struct extent k = random_extent();
	if (!has_sums(f) || too_large(g, f, &k))
		return false;
	bool right = f->rank == RA_MAX_RANK || (f->rank && random_below(3) == 0);
	struct form a = {.rank = f->rank - right, .dtype = f->dtype},
		    b = {.rank = 1 + right, .dim = {k}, .dtype = f->dtype};
	memcpy(a.dim, f->dim, a.rank * sizeof *a.dim);
	a.dim[a.rank++] = k;
	if (right)
		b.dim[1] = f->dim[f->rank - 1];
	static const char *const text[] = {"(", " @ ", ")"};
	put_either(g, &a, &b, depth, text);
	return true;
}

static inline bool put_reduction(struct generator *g, const struct form *f, int depth)
{
	static const char *const names[KINDS][6] = {[ROUNDED] = {"sum", "max", "mean", "max", "dot", "min"},
						    [EXACT] = {"max", "min"},
						    [INTEGER] = {"sum", "max", "prod", "min", "dot"}};
	const int counts[KINDS] = {[ROUNDED] = g->typed ? 6 : 5, [EXACT] = 2, [INTEGER] = 5};
	struct form more = *f;
	struct extent k = random_extent();
	if (f->rank == RA_MAX_RANK || too_large(g, f, &k))
		return false;
	more.dim[more.rank++] = k;
	int which = random_below(counts[kind_of(f)]);
	put(&g->body, "%s(", names[kind_of(f)][which]);
	put_value(g, &more, depth);
	if (which == 4) {
		put(&g->body, ", ");
		put_value(g, &more, depth);
	}
	put(&g->body, ")");
	return true;
}

static inline bool put_row(struct generator *g, const struct form *f, int depth)
{
	struct form more = *f;
	struct extent rows = random_extent();
	if (f->rank == RA_MAX_RANK || too_large(g, f, &rows))
		return false;
	insert_axis(&more, 0, rows);
	put_value(g, &more, depth);
	put(&g->body, "[%d]", random_below(extent_of(g, &more.dim[0])));
	return true;
}

/* In a scan: the row at the step of a value that is computed of anything. */
static inline bool put_at_step(struct generator *g, const struct form *f, int depth)
{
	struct form all;
	if (!form_of_steps(g, f, &all))
		return false;
	put(&g->body, "at_step(");
	put_value(g, &all, depth);
	put(&g->body, ")");
	return true;
}

/* A sum or a maximum along any axis, or, behind the fourth, what keeps that axis. */
static inline bool put_along(struct generator *g, const struct form *f, int depth)
{
	static const char *const names[KINDS][7] = {
	    [ROUNDED] = {"sum", "max", "mean", "min", "softmax", "log_softmax", "cumsum"},
	    [EXACT] = {"max", "min"},
	    [INTEGER] = {"sum", "max", "min", "prod", "cumsum"}};
	static const int counts[KINDS] = {[ROUNDED] = 7, [EXACT] = 2, [INTEGER] = 5};
	int which = random_below(counts[kind_of(f)]), axis = random_below(f->rank + 1);
	struct form more = *f;
	struct extent k = random_extent();
	if (which > 3 ? axis == f->rank : f->rank == RA_MAX_RANK || too_large(g, f, &k))
		return false;
	if (which < 4)
		insert_axis(&more, axis, k);
	put(&g->body, "%s(", names[kind_of(f)][which]);
	put_value(g, &more, depth);
	put(&g->body, ", axis=%d)", random_below(2) ? axis : axis - more.rank);
	return true;
}

/* Matrices on both sides, as many or one for all. */
static inline bool put_batch(struct generator *g, const struct form *f, int depth)
{
	static const char *const text[] = {"(", " @ ", ")"};
	struct form a = *f, b = *f;
	struct extent k = random_extent();
	if (f->rank < 3 || too_large(g, f, &k))
		return false;
	a.dim[f->rank - 1] = b.dim[f->rank - 2] = k;
	struct form *less = random_below(2) ? &a : &b;
	int drop = random_below(f->rank - 1);
	less->rank -= drop;
	memmove(less->dim, less->dim + drop, less->rank * sizeof *less->dim);
	put_either(g, &a, &b, depth, text);
	return true;
}

/* A part of any axis, and the axes in another order. */
static inline bool put_cut(struct generator *g, const struct form *f, int depth)
{
	struct form more = *f;
	int axis = f->rank ? random_below(f->rank) : 0;
	struct extent e = random_extent();
	if (!f->rank || form_elements(g, f) > 500)
		return false;
	for (int i = 0; i < SYMBOLS; i++)
		more.dim[axis].of[i] += e.of[i];
	more.dim[axis].plus += e.plus;
	struct form turned = more;
	memmove(turned.dim, turned.dim + 1, (f->rank - 1) * sizeof *turned.dim);
	turned.dim[f->rank - 1] = more.dim[0];
	put(&g->body, "transpose(");
	put_value(g, &turned, depth);
	for (int d = 0; d < f->rank; d++)
		put(&g->body, ", %d", (d + f->rank - 1) % f->rank);
	put(&g->body, ")[");
	put_extent(&g->body, &e);
	put(&g->body, ":");
	for (int d = axis + 1; d < f->rank; d++)
		put(&g->body, ", :");
	put(&g->body, "]");
	return true;
}

/* The largest is taken where there is one. */
static inline bool put_over_neighbours(struct generator *g, const struct form *f, int depth)
{
	if (g->in_sum || g->flat || !has_neighbours(g) || (!has_sums(f) && g->where == IN_NODE))
		return false;
	bool max = g->where != IN_NODE && random_below(3) == 0;
	put_each(g, max || !has_sums(f) ? "max" : "sum", f, depth);
	return true;
}

/* Puts what was put since the text was so long, once more. */
static inline void put_again(struct generator *g, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++)
		put(&g->body, "%c", g->body.at[i]);
}

/* An average with weights that are a softmax over the nodes of the input, of scores of pairs of nodes. */
static inline void put_attention(struct generator *g, const struct form *f, int depth)
{
	static const struct form number;
	int m = g->names++;
	put(&g->body, "(m%d = max(", m);
	g->in_sum = g->over_nodes = true;
	size_t begin = g->body.n;
	put_value(g, &number, depth < 2 ? depth : 2);
	size_t end = g->body.n;
	put(&g->body, " for n in nodes); sum(exp(");
	put_again(g, begin, end);
	put(&g->body, " - m%d) * ", m);
	put_value(g, f, depth);
	g->in_sum = g->over_nodes = false;
	put(&g->body, " for n in nodes) / sum(exp(");
	put_again(g, begin, end);
	put(&g->body, " - m%d) for n in nodes))", m);
}

static inline bool put_over_nodes(struct generator *g, const struct form *f, int depth)
{
	if (g->in_sum || g->flat)
		return false;
	if (kind_of(f) == TRUTH)
		return put_any(g, f, depth);
	if (kind_of(f) == ROUNDED && random_below(2)) {
		put_attention(g, f, depth);
		return true;
	}
	g->over_nodes = true;
	put_each(g, random_below(3) && has_sums(f) ? "sum" : "max", f, depth);
	return true;
}

static inline bool put_slice(struct generator *g, const struct form *f, int depth)
{
	struct form more = *f;
	if (!f->rank || form_elements(g, f) > 1000)
		return false;
	struct extent e = random_extent(), *last = &more.dim[f->rank - 1];
	struct extent wanted = *last;
	for (int i = 0; i < SYMBOLS; i++)
		last->of[i] += e.of[i];
	last->plus += e.plus;
	if (extent_of(g, last) > 60)
		return false;
	put_value(g, &more, 0);
	put(&g->body, "[");
	if (random_below(2)) {
		put(&g->body, ":");
		put_extent(&g->body, &wanted);
	} else {
		put_extent(&g->body, &e);
		put(&g->body, ":");
	}
	put(&g->body, "]");
	(void)depth;
	return true;
}

static inline bool put_concat(struct generator *g, const struct form *f, int depth)
{
	if (!f->rank)
		return false;
	struct form a = *f, b = *f;
	struct extent *x = &a.dim[f->rank - 1], *y = &b.dim[f->rank - 1];
	*y = (struct extent){{0}, 0};
	for (int i = 0; i < SYMBOLS; i++)
		if (x->of[i] && random_below(2))
			x->of[i]--, y->of[i]++;
	if (x->plus > 1)
		x->plus--, y->plus++;
	if (extent_of(g, x) < 1 || extent_of(g, y) < 1 || form_elements(g, &a) * form_elements(g, &b) == 0)
		return false;
	static const char *const text[] = {"concat(", ", ", ")"};
	put_either(g, &a, &b, depth, text);
	return true;
}

static inline bool put_transpose(struct generator *g, const struct form *f, int depth)
{
	struct form t = *f;
	if (f->rank < 2)
		return false;
	t.dim[f->rank - 1] = f->dim[f->rank - 2];
	t.dim[f->rank - 2] = f->dim[f->rank - 1];
	put(&g->body, "transpose(");
	put_value(g, &t, depth);
	put(&g->body, ")");
	return true;
}

static inline bool put_spread(struct generator *g, const struct form *f, int depth)
{
	struct form less = *f;
	if (f->rank != 2)
		return false;
	less.rank--;
	put(&g->body, "spread(");
	put_value(g, &less, depth);
	put(&g->body, ", zeros(");
	put_dims(&g->body, f);
	put_type(&g->body, f->dtype);
	put(&g->body, "))");
	return true;
}

static inline bool put_prelude(struct generator *g, const struct form *f, int depth)
{
	struct form last = {.rank = 1};
	if (!f->rank || f->rank == RA_MAX_RANK)
		return false;
	last.dim[0] = f->dim[f->rank - 1];
	switch (random_below(f->rank == 2 ? 4 : 3)) {
	case 0:
		put(&g->body, "softmax(");
		put_value(g, f, depth);
		break;
	case 1:
		put(&g->body, "log_softmax(");
		put_value(g, f, depth);
		break;
	case 2:
		put(&g->body, "layer_norm(");
		put_value(g, f, depth);
		put(&g->body, ", ");
		put_value(g, &last, 0);
		put(&g->body, ", %s, 0.5", param_of(g, &last, false)->name);
		break;
	default:
		return put_spread(g, f, depth);
	}
	put(&g->body, ")");
	return true;
}

/* The gates of a cell: products of several matrices with one vector, or the parts of one product. */
static inline bool put_gates(struct generator *g, const struct form *f, int depth)
{
	struct form vector = {.rank = 1, .dim = {random_extent()}};
	struct form matrix = {.rank = 2, .dim = {f->dim[0], vector.dim[0]}}, twice = matrix;
	if (f->rank != 1 || g->states == 0)
		return false;
	if (random_below(2) && g->state[0].form.rank == 1 && g->state[0].form.dtype == DTYPE_F32)
		vector = g->state[0].form, matrix.dim[1] = twice.dim[1] = vector.dim[0];
	if (too_large(g, &vector, &f->dim[0]))
		return false;
	int name = g->names++;
	put(&g->body, "(r%d = ", name);
	put_value(g, &vector, depth > 1 ? 1 : 0);
	if (random_below(3)) {
		put(&g->body, "; sigmoid(%s @ r%d + ", param_of(g, &matrix, false)->name, name);
		put_atom(g, f);
		put(&g->body, ") * tanh(%s @ r%d) + ", param_of(g, &matrix, false)->name, name);
		put(&g->body, "%s @ r%d)", new_param(g, &matrix, false)->name, name);
		return true;
	}
	for (int i = 0; i < SYMBOLS; i++)
		twice.dim[0].of[i] *= 2;
	twice.dim[0].plus *= 2;
	put(&g->body, "; g%d = %s @ r%d; tanh(g%d[:", name, param_of(g, &twice, false)->name, name, name);
	put_dims(&g->body, f);
	put(&g->body, "]) * g%d[", name);
	put_dims(&g->body, f);
	put(&g->body, ":])");
	return true;
}

/* A parameter of three axes, times two vectors. */
static inline bool put_bilinear(struct generator *g, const struct form *f, int depth)
{
	struct form a = {.rank = 1, .dim = {random_extent()}, .dtype = f->dtype},
		    b = {.rank = 1, .dim = {random_extent()}, .dtype = f->dtype};
	struct form p = {.rank = 3, .dim = {f->dim[0], a.dim[0], b.dim[0]}, .dtype = f->dtype};
	if (f->rank != 1 || form_elements(g, &p) > 3000)
		return false;
	put(&g->body, "((%s @ ", param_of(g, &p, false)->name);
	put_value(g, &b, depth > 1 ? 1 : 0);
	put(&g->body, ") @ ");
	put_value(g, &a, depth > 1 ? 1 : 0);
	put(&g->body, ")");
	return true;
}

/* What a node carries, times weights: what can leave the recursion. */
static inline bool put_carried(struct generator *g, const struct form *f, int depth)
{
	const struct form *x = g->vectors ? &g->vector[random_below(g->vectors)].form : NULL;
	if (f->rank != 1 || !sees_inputs(g) || !x || x->rank != 1 || x->dtype != f->dtype ||
	    !has_sums(f) || too_large(g, x, &f->dim[0]))
		return false;
	struct form matrix = {.rank = 2, .dim = {f->dim[0], x->dim[0]}, .dtype = f->dtype};
	put(&g->body, "(%s @ ", param_of(g, &matrix, false)->name);
	put_named(g, pick(g->vector, g->vectors, x));
	put(&g->body, " + ");
	put_value(g, f, depth);
	put(&g->body, ")");
	return true;
}

typedef bool put_operator(struct generator *, const struct form *, int depth);

static put_operator *const rounded_operators[] = {
    put_unary,	       put_unary,	  put_unary,	 put_binary,	      put_binary,
    put_binary,	       put_product,	  put_product,	 put_product,	      put_reduction,
    put_bilinear,      put_slice,	  put_concat,	 put_over_neighbours, put_over_neighbours,
    put_over_nodes,    put_concat,	  put_transpose, put_prelude,	      put_part_of_local,
    put_part_of_local, put_part_of_local, put_gates,	 put_gates,	      put_gates,
    put_row,	       put_along,	  put_along,	 put_batch,	      put_cut,
    put_turned,	       put_shifted,	  put_window,	 put_reshaped,	      put_gathered,
    put_after,
};

static put_operator *const integer_operators[] = {
    put_typed,	    put_typed,	   put_typed,  put_typed,     put_typed,	   put_typed,
    put_product,    put_product,   put_argmax, put_argmax,    put_over_neighbours, put_over_neighbours,
    put_over_nodes, put_reduction, put_along,  put_slice,     put_concat,	   put_part_of_local,
    put_bilinear,   put_batch,	   put_row,    put_transpose, put_spread,	   put_cut,
    put_turned,	    put_shifted,   put_window, put_reshaped,  put_gathered,	   put_after,
};

static put_operator *const exact_operators[] = {
    put_typed,	    put_typed,	   put_typed,  put_typed, put_typed,  put_over_neighbours,
    put_over_nodes, put_reduction, put_along,  put_slice, put_concat, put_part_of_local,
    put_row,	    put_transpose, put_spread, put_cut,	  put_turned, put_shifted,
    put_window,	    put_reshaped,  put_gathered, put_after,
};

static put_operator *const truth_operators[] = {
    put_typed, put_typed,  put_typed,	      put_typed, put_typed,	put_any,
    put_slice, put_concat, put_part_of_local, put_row,	 put_transpose, put_cut,
    put_turned, put_reshaped, put_gathered,
};

#define OPERATORS(list) {list, sizeof(list) / sizeof *(list)}
static const struct {
	put_operator *const *at;
	int n;
} operators[KINDS] = {[ROUNDED] = OPERATORS(rounded_operators),
		      [EXACT] = OPERATORS(exact_operators),
		      [INTEGER] = OPERATORS(integer_operators),
		      [TRUTH] = OPERATORS(truth_operators)};

static inline put_operator *draw_operator(const struct generator *g, enum kind kind)
{
	if (g->typed && kind == ROUNDED && random_below(5) == 0)
		return put_typed;
	if (g->scanning && random_below(10) == 0)
		return put_at_step;
	return operators[kind].at[random_below(operators[kind].n)];
}

static inline void put_value(struct generator *g, const struct form *f, int depth)
{
	int tries = depth > 0 && g->body.n < g->longest ? 4 : 0;
	while (tries-- && form_elements(g, f) < 3000)
		if (draw_operator(g, kind_of(f))(g, f, depth - 1 - random_below(2)))
			return;
	put_atom(g, f);
}

#endif
