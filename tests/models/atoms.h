/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a random model has declared so far, and expressions without arguments: parameters, inputs, states,
 * constants. */
#ifndef ESPALIER_TESTS_MODELS_ATOMS_H
#define ESPALIER_TESTS_MODELS_ATOMS_H

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
	bool typed;   /* values are of all types, not of f32 alone */
	bool careful; /* what jumps depends on exact values alone */
	bool jumps;   /* a jump depends on what is rounded, so that results may be far from the oracle's */
	bool has_token, token_number; /* the token `w` is an i32, too */
	bool has_edge, edge_token;    /* edges carry `e`, a vector or a token */
	bool edge_number;	      /* the token is an i32, too */
	struct form edge;
	enum dtype edge_stored;
	struct named_case named_case[3];
	int cases;
	/* where the text is */
	bool down; /* the traversal goes from parents to children */
	enum where where;
	int slots;    /* as `children`, of the nodes that the body is for */
	int earlier;  /* states of traversals before this one */
	bool in_sum;  /* over children, parents or nodes */
	bool over_nodes; /* in that, which is over nodes */
	bool at_root; /* an output */
	/* of a model without a structure */
	bool flat, scanning; /* it is one; the body is of a step */
	struct extent steps; /* of the scan */
	struct named param[600], state[16], vector[2], local[64];
	struct named member[8]; /* outputs that every node has, and that are of the node alone */
	const char *ranging[8]; /* names of the others, which sums over nodes cannot read */
	int params, states, vectors, locals, members, rangings, names;
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

static const struct extent one_element = {{0}, 1};

static inline void drop_axes(struct form *f, int n)
{
	f->rank -= n;
	memmove(f->dim, f->dim + n, f->rank * sizeof *f->dim);
}

static inline void insert_axis(struct form *f, int axis, struct extent e)
{
	memmove(&f->dim[axis + 1], &f->dim[axis], (f->rank++ - axis) * sizeof *f->dim);
	f->dim[axis] = e;
}

static inline bool too_large(const struct generator *g, const struct form *f, const struct extent *e)
{
	return form_elements(g, f) * extent_of(g, e) > 6000;
}

/* --- types --- */

/* What operators there are for values of a form. */
enum kind { ROUNDED, EXACT, INTEGER, TRUTH, KINDS };

static inline enum kind kind_of(const struct form *f)
{
	if (f->dtype == DTYPE_F32)
		return f->exact ? EXACT : ROUNDED;
	return f->dtype == DTYPE_BOOL ? TRUTH : INTEGER;
}

/* Whether elements can be added up: sums of what is exact are rounded. */
static inline bool has_sums(const struct form *f)
{
	return kind_of(f) == ROUNDED || kind_of(f) == INTEGER;
}

/* The same shape with elements of another type.  A jump asks for exact values, unless the model is not
 * careful. */
static inline struct form with_type(struct generator *g, const struct form *f, enum dtype dtype)
{
	struct form other = *f;
	other.dtype = dtype;
	other.exact = dtype == DTYPE_F32 && g->careful;
	g->jumps |= dtype == DTYPE_F32 && !g->careful;
	return other;
}

/* Of a state, a local or an output. */
static inline void draw_type(const struct generator *g, struct form *f)
{
	static const enum dtype types[] = {DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F32,
					   DTYPE_I32, DTYPE_I32, DTYPE_I64, DTYPE_BOOL};
	if (!g->typed)
		return;
	f->dtype = types[random_below(8)];
	f->exact = f->dtype == DTYPE_F32 && g->careful && random_below(3) == 0;
}

/* What memory has of a type: itself, or one that is widened to it. */
static inline enum dtype draw_stored(const struct generator *g, enum dtype dtype)
{
	static const enum dtype floats[] = {DTYPE_F32, DTYPE_F32, DTYPE_F16, DTYPE_BF16},
				integers[] = {DTYPE_I32, DTYPE_I32, DTYPE_I8, DTYPE_U8, DTYPE_I16};
	if (!g->typed || dtype == DTYPE_I64 || dtype == DTYPE_BOOL)
		return dtype;
	return dtype == DTYPE_F32 ? floats[random_below(4)] : integers[random_below(5)];
}

/* --- what has no arguments --- */

static inline const struct named *pick(const struct named *from, int n, const struct form *f)
{
	int first = n ? random_below(n) : 0;
	for (int i = 0; i < n; i++)
		if (fits_form(&from[(first + i) % n].form, f))
			return &from[(first + i) % n];
	return NULL;
}

static inline const struct named *new_param(struct generator *g, const struct form *f, bool table)
{
	struct named *p = &g->param[g->params++];
	p->form = *f;
	p->form.exact = g->typed;
	p->stored = draw_stored(g, f->dtype);
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
	return (!g->flat || g->scanning) && (g->where == IN_INNER || g->where == IN_NODE || g->where == IN_BELOW);
}

static inline bool has_slots(const struct generator *g)
{
	return g->down ? !g->dag : g->sequence || g->slots >= 0;
}

static inline bool sees_neighbours(const struct generator *g)
{
	return has_neighbours(g) && ((g->in_sum && !g->over_nodes) || has_slots(g));
}

/* "k.NAME", for any child or parent that is seen here. */
static inline void put_of_neighbour(struct generator *g, const char *name)
{
	if (g->in_sum && !g->over_nodes && (!has_slots(g) || random_below(3)))
		put(&g->body, g->down ? "p.%s" : "k.%s", name);
	else if (g->flat && !g->down && random_below(4) == 0)
		put(&g->body, "children[0].%s", name);
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
	int own = g->scanning ? g->earlier : 0; /* states of earlier scans have all their steps */
	const struct named *s = pick(g->state + own, g->states - own, f);
	if (!s || !sees_neighbours(g))
		return false;
	put_of_neighbour(g, s->name);
	return true;
}

/* Whether a form is that of a token which is a number, too. */
static inline bool is_index(const struct form *f)
{
	return f->rank == 0 && f->dtype == DTYPE_I32;
}

/* What the edge to a child carries, or the row that it names. */
static inline bool put_edge(struct generator *g, const struct form *f)
{
	if (!g->has_edge || g->down || !sees_neighbours(g))
		return false;
	if (g->edge_number && is_index(f) && random_below(2)) {
		put_of_neighbour(g, "e");
		return true;
	}
	if (!g->edge_token && !fits_form(&g->edge, f))
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

/* Whether inputs are seen here: by bodies, and by outputs of models without a structure. */
static inline bool sees_inputs(const struct generator *g)
{
	return g->where != IN_OUTPUT || g->flat;
}

/* What the node has: its inputs, and states of traversals that are done. */
static inline bool put_held(struct generator *g, const struct form *f)
{
	int done = g->where == IN_OUTPUT ? g->states : g->earlier;
	if (!sees_inputs(g) || (g->where == IN_OUTPUT && random_below(2)))
		return put_named(g, pick(g->state, done, f));
	if (g->token_number && is_index(f) && random_below(2)) {
		put(&g->body, "w");
		return true;
	}
	return put_named(g, pick(g->vector, g->vectors, f)) || put_named(g, pick(g->state, done, f));
}

/* The form of which a step of the scan has a row of this one; false in other bodies, and when it is too large. */
static inline bool form_of_steps(const struct generator *g, const struct form *f, struct form *all)
{
	*all = *f;
	if (!g->scanning || f->rank == RA_MAX_RANK || too_large(g, f, &g->steps))
		return false;
	insert_axis(all, 0, g->steps);
	return true;
}

/* In a scan: the row at the step of what the row has, or of a parameter. */
static inline bool put_row_of_step(struct generator *g, const struct form *f)
{
	struct form all;
	if (!form_of_steps(g, f, &all))
		return false;
	put(&g->body, "at_step(");
	if (!put_held(g, &all))
		put_named(g, param_of(g, &all, false));
	put(&g->body, ")");
	return true;
}

/* Of two that were picked, NULL = none, either. */
static inline const struct named *one_of(const struct named *a, const struct named *b)
{
	return a && (!b || random_below(2)) ? a : b;
}

/* What the node at hand carries, or a row that it names. */
static inline bool put_token_of_member(struct generator *g, const struct form *f)
{
	if (!g->has_token || g->where == IN_OUTPUT)
		return false;
	if (g->token_number && is_index(f))
		put(&g->body, "n.w");
	else if (f->rank < 3 && form_elements(g, f) < 400)
		put(&g->body, "%s[n.w]", param_of(g, f, true)->name);
	else
		return false;
	return true;
}

/* In a sum over the nodes of an input: what the one at hand has.  Bodies see inputs, and states of traversals that are done. */
static inline bool put_member(struct generator *g, const struct form *f)
{
	bool output = g->where == IN_OUTPUT;
	if (!g->over_nodes)
		return false;
	if (random_below(4) == 0 && put_token_of_member(g, f))
		return true;
	const struct named *s = pick(g->state, output ? g->states : g->earlier, f),
			   *other = output ? pick(g->member, g->members, f) : pick(g->vector, g->vectors, f);
	const struct named *chosen = one_of(s, other);
	if (chosen)
		put(&g->body, "n.%s", chosen->name);
	return chosen;
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
		if (!fits_form(&local->form, &whole) ||
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

/* A number alone is an f32. */
static inline void put_constant(struct generator *g, const struct form *f)
{
	if (f->rank) {
		put(&g->body, "zeros(");
		put_dims(&g->body, f);
		put_type(&g->body, f->dtype);
		put(&g->body, ")");
	} else if (f->dtype == DTYPE_F32) {
		put(&g->body, "%d.%d", random_below(2), random_below(10));
	} else {
		put(&g->body, "cast(%d, %s)", random_below(20), dtype_traits_of(f->dtype)->spelling);
	}
}

static inline void put_atom(struct generator *g, const struct form *f)
{
	bool at_node = sees_inputs(g);
	/* what has a name is used again and again */
	if (random_below(3) == 0 &&
	    (put_named(g, pick(g->local, g->locals, f)) || put_part_of_local(g, f, 0)))
		return;
	for (int tries = 0; tries < 8; tries++)
		switch (random_below(9)) {
		case 0:
		case 1:
		case 2:
			if ((g->scanning && random_below(3) == 0 && put_row_of_step(g, f)) || put_neighbour(g, f) ||
			    put_member(g, f))
				return;
			break;
		case 8:
			if (put_row_of_step(g, f) || put_edge(g, f))
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
			put_constant(g, f);
			return;
		default:
			put_named(g, param_of(g, f, false));
			return;
		}
	put_named(g, param_of(g, f, false));
}

/* --- arguments --- */

/* An expression of this form in parentheses or without need of them. */
static inline void put_value(struct generator *, const struct form *, int depth);

static inline void put_either(struct generator *g, const struct form *a, const struct form *b, int depth,
			      const char *const *text)
{
	put(&g->body, "%s", text[0]);
	put_value(g, a, depth);
	put(&g->body, "%s", text[1]);
	put_value(g, b, depth);
	put(&g->body, "%s", text[2]);
}

/* Some axes are of extent 1 in one of the forms, whose other axes are those of `f`. */
static inline void make_ones(const struct form *f, struct form *a, struct form *b)
{
	for (int d = 1; d <= b->rank; d++)
		if (random_below(6) == 0)
			*(random_below(3) ? &b->dim[b->rank - d] : &a->dim[f->rank - d]) = one_element;
}

static inline void put_each(struct generator *g, const char *function, const struct form *f, int depth)
{
	g->in_sum = true;
	put(&g->body, "%s(", function);
	put_value(g, f, depth);
	put(&g->body, " for %s)", g->over_nodes ? "n in nodes" : g->down ? "p in parents" : "k in children");
	g->in_sum = g->over_nodes = false;
}

#endif
