/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random expressions: made from the shape that is wanted down to parameters, inputs and states.  Values stay
 * small: what could grow is put through tanh, divisors are at least 1. */
#ifndef ESPALIER_TESTS_MODELS_EXPRESSIONS_H
#define ESPALIER_TESTS_MODELS_EXPRESSIONS_H

#include "tests/models/forms.h"

enum where { IN_LEAF, IN_INNER, IN_NODE, IN_ROOT, IN_BELOW, IN_OUTPUT };

struct named_case {
	char name[8];
	enum where base;
	int children, word, tag; /* what they equal, -1 = anything */
};

struct generator {
	struct text body;
	size_t longest; /* a text so long gets no more operators */
	int size[SYMBOLS];
	int children; /* slots, -1 = any number, 0 = they have names */
	bool sequence, dag;
	bool has_token;
	bool has_edge, edge_token; /* edges carry `e`, a vector or a token */
	struct form edge;
	struct named_case named_case[3];
	int cases;
	/* where the text is */
	bool down; /* the traversal goes from parents to children */
	enum where where;
	int slots;    /* as `children`, of the nodes that the body is for */
	int earlier;  /* states of traversals before this one */
	bool in_sum;  /* over children, parents or nodes */
	bool at_root; /* an output: nodes can be summed over */
	struct named param[600], state[8], vector[2], local[64];
	struct named member[8]; /* outputs that every node has */
	int params, states, vectors, locals, members, names;
};

static inline int extent_of(const struct generator *g, const struct extent *e)
{
	int n = e->plus;
	for (int i = 0; i < SYMBOLS; i++)
		n += e->of[i] * g->size[i];
	return n;
}

static inline int64_t form_elements(const struct generator *g, const struct form *f)
{
	int64_t n = 1;
	for (int d = 0; d < f->rank; d++)
		n *= extent_of(g, &f->dim[d]);
	return n;
}

/* --- what has no arguments --- */

static inline const struct named *pick(const struct named *from, int n, const struct form *f)
{
	int first = n ? random_below(n) : 0;
	for (int i = 0; i < n; i++)
		if (same_form(&from[(first + i) % n].form, f))
			return &from[(first + i) % n];
	return NULL;
}

static inline const struct named *new_param(struct generator *g, const struct form *f, bool table)
{
	struct named *p = &g->param[g->params++];
	p->form = *f;
	p->table = table;
	snprintf(p->name, sizeof p->name, "%c%d", table ? 't' : 'p', g->names++);
	return p;
}

static inline const struct named *param_of(struct generator *g, const struct form *f, bool table)
{
	const struct named *known = random_below(2) ? pick(g->param, g->params, f) : NULL;
	return known && known->table == table ? known : new_param(g, f, table);
}

/* Whether children, or parents, are seen here, and whether one can be named without a sum. */
static inline bool has_neighbours(const struct generator *g)
{
	return g->where == IN_INNER || g->where == IN_NODE || g->where == IN_BELOW;
}

static inline bool has_slots(const struct generator *g)
{
	return g->down ? !g->dag : g->sequence || g->slots >= 0;
}

static inline bool sees_neighbours(const struct generator *g)
{
	return has_neighbours(g) && (g->in_sum || has_slots(g));
}

/* "k.NAME", for any child or parent that is seen here. */
static inline void put_of_neighbour(struct generator *g, const char *name)
{
	if (g->in_sum && (!has_slots(g) || random_below(3)))
		put(&g->body, g->down ? "p.%s" : "k.%s", name);
	else if (g->sequence)
		put(&g->body, g->down ? "next.%s" : "previous.%s", name);
	else if (g->down)
		put(&g->body, "parent.%s", name);
	else if (g->slots == 0)
		put(&g->body, "%s.%s", random_below(2) ? "left" : "right", name);
	else
		put(&g->body, "children[%d].%s", random_below(g->slots), name);
}

/* A state of a child or parent, if one is seen here and has the form. */
static inline bool put_neighbour(struct generator *g, const struct form *f)
{
	const struct named *s = pick(g->state, g->states, f);
	if (!s || !sees_neighbours(g))
		return false;
	put_of_neighbour(g, s->name);
	return true;
}

/* What the edge to a child carries, or the row that it names. */
static inline bool put_edge(struct generator *g, const struct form *f)
{
	if (!g->has_edge || g->down || !sees_neighbours(g))
		return false;
	if (!g->edge_token && !same_form(&g->edge, f))
		return false;
	if (g->edge_token && (f->rank > 2 || form_elements(g, f) >= 400))
		return false;
	if (g->edge_token)
		put(&g->body, "%s[", param_of(g, f, true)->name);
	put_of_neighbour(g, "e");
	put(&g->body, g->edge_token ? "]" : "");
	return true;
}

static inline bool put_named(struct generator *g, const struct named *n)
{
	if (n)
		put(&g->body, "%s", n->name);
	return n != NULL;
}

/* What the node has: its inputs, and states of traversals that are done. */
static inline bool put_held(struct generator *g, const struct form *f)
{
	if (g->where == IN_OUTPUT)
		return put_named(g, pick(g->state, g->states, f));
	return put_named(g, pick(g->vector, g->vectors, f)) || put_named(g, pick(g->state, g->earlier, f));
}

/* In a sum over the nodes of an input: what the one at hand has. */
static inline bool put_member(struct generator *g, const struct form *f)
{
	const struct named *s = pick(g->state, g->states, f), *o = pick(g->member, g->members, f);
	const struct named *chosen = s && (!o || random_below(2)) ? s : o;
	if (!chosen || g->where != IN_OUTPUT || !g->in_sum)
		return false;
	put(&g->body, "n.%s", chosen->name);
	return true;
}

/* The extents of `whole` less those of `part`; false when nothing or less is left. */
static inline bool rest_of(const struct extent *whole, const struct extent *part, struct extent *rest)
{
	bool any = false, fits = true;
	*rest = *whole;
	for (int i = 0; i < SYMBOLS; i++) {
		rest->of[i] -= part->of[i];
		fits &= rest->of[i] >= 0;
		any |= rest->of[i] > 0;
	}
	rest->plus -= part->plus;
	return fits && rest->plus >= 0 && (any || rest->plus > 0);
}

/* The first or the last part of a local that others may want as well. */
static inline bool put_part_of_local(struct generator *g, const struct form *f, int depth)
{
	(void)depth;
	for (int i = 0; f->rank && i < g->locals; i++) {
		const struct named *local = &g->local[i];
		struct form whole = *f;
		struct extent rest;
		if (local->form.rank != f->rank)
			continue;
		whole.dim[f->rank - 1] = local->form.dim[f->rank - 1];
		if (!same_form(&whole, &local->form) ||
		    !rest_of(&whole.dim[f->rank - 1], &f->dim[f->rank - 1], &rest))
			continue;
		bool first = random_below(2);
		put(&g->body, first ? "%s[:" : "%s[", local->name);
		put_extent(&g->body, first ? &f->dim[f->rank - 1] : &rest);
		put(&g->body, first ? "]" : ":]");
		return true;
	}
	return false;
}

static inline void put_atom(struct generator *g, const struct form *f)
{
	bool at_node = g->where != IN_OUTPUT;
	/* what has a name is used again and again */
	if (random_below(3) == 0 &&
	    (put_named(g, pick(g->local, g->locals, f)) || put_part_of_local(g, f, 0)))
		return;
	for (int tries = 0; tries < 8; tries++)
		switch (random_below(9)) {
		case 0:
		case 1:
		case 2:
			if (put_neighbour(g, f) || put_member(g, f))
				return;
			break;
		case 8:
			if (put_edge(g, f))
				return;
			break;
		case 3:
			if (put_named(g, pick(g->local, g->locals, f)))
				return;
			break;
		case 4:
			if (put_held(g, f))
				return;
			break;
		case 5:
			if (at_node && g->has_token && f->rank < 3 && form_elements(g, f) < 400) {
				put(&g->body, "%s[w]", param_of(g, f, true)->name);
				return;
			}
			break;
		case 6:
			if (random_below(3))
				break;
			if (f->rank == 0) {
				put(&g->body, "%d.%d", random_below(2), random_below(10));
			} else {
				put(&g->body, "zeros(");
				put_dims(&g->body, f);
				put(&g->body, ")");
			}
			return;
		default:
			put_named(g, param_of(g, f, false));
			return;
		}
	put_named(g, param_of(g, f, false));
}

/* --- operators: each is tried, and puts nothing when the form does not suit it --- */

static inline void put_value(struct generator *, const struct form *, int depth);

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

static inline void put_either(struct generator *g, const struct form *a, const struct form *b, int depth,
			      const char *const *text)
{
	put(&g->body, "%s", text[0]);
	put_value(g, a, depth);
	put(&g->body, "%s", text[1]);
	put_value(g, b, depth);
	put(&g->body, "%s", text[2]);
}

static const char *const around_two[][3] = {
    {"(", " + ", ")"},	   {"(", " - ", ")"},	    {"(", " * ", ")"},	     {"(", " + ", ")"},
    {"(", " * ", ")"},	   {"maximum(", ", ", ")"}, {"minimum(", ", ", ")"}, {"(", " / (1 + abs(", ")))"},
    {"(", " - 2 * ", ")"},
};

static const struct extent one_element = {{0}, 1};

/* Some axes are of extent 1 in one of the forms, whose other axes are those of `f`. */
static inline void make_ones(const struct form *f, struct form *a, struct form *b)
{
	for (int d = 1; d <= b->rank; d++)
		if (random_below(6) == 0)
			*(random_below(3) ? &b->dim[b->rank - d] : &a->dim[f->rank - d]) = one_element;
}

/* One side may lack leading axes, and either one have a single element along an axis. */
static inline bool put_binary(struct generator *g, const struct form *f, int depth)
{
	struct form less = *f, more = *f;
	int drop = random_below(3) ? 0 : random_below(f->rank + 1);
	less.rank -= drop;
	memmove(less.dim, less.dim + drop, less.rank * sizeof *less.dim);
	make_ones(f, &more, &less);
	int which = random_below(sizeof around_two / sizeof *around_two);
	bool swap = which < 7 && random_below(2);
	put_either(g, swap ? &less : &more, swap ? &more : &less, depth, around_two[which]);
	return true;
}

static inline bool too_large(const struct generator *g, const struct form *f, const struct extent *e)
{
	return form_elements(g, f) * extent_of(g, e) > 6000;
}

/* Of the axes of the form the last one can be the right argument's, the others are the left one's. */
static inline bool put_product(struct generator *g, const struct form *f, int depth)
{
	struct extent k = random_extent();
	if (too_large(g, f, &k))
		return false;
	bool right = f->rank == RA_MAX_RANK || (f->rank && random_below(3) == 0);
	struct form a = {.rank = f->rank - right}, b = {.rank = 1 + right, .dim = {k}};
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
	static const char *const names[] = {"sum", "max", "mean", "max", "dot"};
	struct form more = *f;
	struct extent k = random_extent();
	if (f->rank == RA_MAX_RANK || too_large(g, f, &k))
		return false;
	more.dim[more.rank++] = k;
	int which = random_below(5);
	put(&g->body, "%s(", names[which]);
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
	struct form more = {.rank = f->rank + 1, .dim = {random_extent()}};
	if (f->rank == RA_MAX_RANK || too_large(g, f, &more.dim[0]))
		return false;
	memcpy(more.dim + 1, f->dim, f->rank * sizeof *f->dim);
	put_value(g, &more, depth);
	put(&g->body, "[%d]", random_below(extent_of(g, &more.dim[0])));
	return true;
}

/* A sum or a maximum along any axis, or what keeps that axis. */
static inline bool put_along(struct generator *g, const struct form *f, int depth)
{
	static const char *const names[] = {"sum", "max", "mean", "softmax", "log_softmax"};
	int which = random_below(5), axis = random_below(f->rank + 1);
	struct form more = *f;
	struct extent k = random_extent();
	if (which > 2 ? axis == f->rank : f->rank == RA_MAX_RANK || too_large(g, f, &k))
		return false;
	if (which < 3) {
		memmove(&more.dim[axis + 1], &more.dim[axis], (more.rank++ - axis) * sizeof *more.dim);
		more.dim[axis] = k;
	}
	put(&g->body, "%s(", names[which]);
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

static inline void put_each(struct generator *g, const char *function, const struct form *f, int depth)
{
	static const char *const ranges[] = {"k in children", "p in parents", "n in nodes"};
	g->in_sum = true;
	put(&g->body, "%s(", function);
	put_value(g, f, depth);
	put(&g->body, " for %s)", ranges[g->where == IN_OUTPUT ? 2 : g->down]);
	g->in_sum = false;
}

/* The largest is taken where there is one. */
static inline bool put_over_neighbours(struct generator *g, const struct form *f, int depth)
{
	if (g->in_sum || !has_neighbours(g))
		return false;
	put_each(g, g->where != IN_NODE && random_below(3) == 0 ? "max" : "sum", f, depth);
	return true;
}

/* An average with weights that are a softmax over the nodes of the input. */
static inline void put_attention(struct generator *g, const struct form *f, int depth, const char *score)
{
	int m = g->names++;
	put(&g->body, "(m%d = max(n.%s for n in nodes); sum(exp(n.%s - m%d) * ", m, score, score, m);
	g->in_sum = true;
	put_value(g, f, depth);
	g->in_sum = false;
	put(&g->body, " for n in nodes) / sum(exp(n.%s - m%d) for n in nodes))", score, m);
}

static inline bool put_over_nodes(struct generator *g, const struct form *f, int depth)
{
	static const struct form number;
	const struct named *score = pick(g->member, g->members, &number);
	if (g->in_sum || g->where != IN_OUTPUT || !g->at_root)
		return false;
	if (score && random_below(2))
		put_attention(g, f, depth, score->name);
	else
		put_each(g, random_below(3) ? "sum" : "max", f, depth);
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

static inline bool put_prelude(struct generator *g, const struct form *f, int depth)
{
	struct form less = *f, last = {.rank = 1};
	if (!f->rank || f->rank == RA_MAX_RANK)
		return false;
	last.dim[0] = f->dim[f->rank - 1];
	less.rank--;
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
		put(&g->body, "spread(");
		put_value(g, &less, depth);
		put(&g->body, ", zeros(");
		put_dims(&g->body, f);
		put(&g->body, ")");
	}
	put(&g->body, ")");
	return true;
}

/* The gates of a cell: products of several matrices with one vector, or the parts of one product. */
static inline bool put_gates(struct generator *g, const struct form *f, int depth)
{
	struct form vector = {1, {random_extent()}}, matrix = {2, {f->dim[0], vector.dim[0]}}, twice = matrix;
	if (f->rank != 1 || g->states == 0)
		return false;
	if (random_below(2) && g->state[0].form.rank == 1)
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
	struct form a = {1, {random_extent()}}, b = {1, {random_extent()}};
	struct form p = {3, {f->dim[0], a.dim[0], b.dim[0]}};
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
	if (f->rank != 1 || g->where == IN_OUTPUT || !x || x->rank != 1 || too_large(g, x, &f->dim[0]))
		return false;
	struct form matrix = {2, {f->dim[0], x->dim[0]}};
	put(&g->body, "(%s @ ", param_of(g, &matrix, false)->name);
	put_named(g, pick(g->vector, g->vectors, x));
	put(&g->body, " + ");
	put_value(g, f, depth);
	put(&g->body, ")");
	return true;
}

static bool (*const operators[])(struct generator *, const struct form *, int) = {
    put_unary,	       put_unary,	  put_unary,	 put_binary,	      put_binary,
    put_binary,	       put_product,	  put_product,	 put_product,	      put_reduction,
    put_bilinear,      put_slice,	  put_concat,	 put_over_neighbours, put_over_neighbours,
    put_over_nodes,    put_concat,	  put_transpose, put_prelude,	      put_part_of_local,
    put_part_of_local, put_part_of_local, put_gates,	 put_gates,	      put_gates,
    put_row,	       put_along,	  put_along,	 put_batch,	      put_cut,
};

/* An expression of this form in parentheses or without need of them. */
static inline void put_value(struct generator *g, const struct form *f, int depth)
{
	int tries = depth > 0 && g->body.n < g->longest ? 4 : 0;
	while (tries-- && form_elements(g, f) < 3000)
		if (operators[random_below(sizeof operators / sizeof *operators)](
			g, f, depth - 1 - random_below(2)))
			return;
	put_atom(g, f);
}

#endif
