/* Random model texts, valid by construction: expressions are made from the shape that is wanted down to
 * parameters, inputs and states.  Values stay small: what could grow is put through tanh, divisors are at
 * least 1. */
#ifndef ESPALIER_TESTS_MODELS_GENERATE_H
#define ESPALIER_TESTS_MODELS_GENERATE_H

#include "tests/models/helper.h"

#include <ctype.h>
#include <stdarg.h>

/* --- text --- */

struct text {
	char at[1 << 16];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static inline void put(struct text *t, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int n = vsnprintf(t->at + t->n, sizeof t->at - t->n, format, list);
	va_end(list);
	t->n += t->n + n < sizeof t->at ? (size_t)n : 0;
}

/* --- shapes --- */

enum { SYMBOLS = 3 };

struct extent {
	int of[SYMBOLS], plus; /* of[0]*A + of[1]*B + of[2]*C + plus */
};

struct form {
	int rank;
	struct extent dim[RA_MAX_RANK];
};

struct named {
	char name[24];
	struct form form;
	bool table; /* of a parameter: it has an axis V before these */
};

enum where { IN_LEAF, IN_INNER, IN_NODE, IN_OUTPUT };

struct generator {
	struct text body;
	int size[SYMBOLS];
	int children; /* slots, -1 = any number, 0 = they have names */
	bool sequence;
	bool has_token;
	enum where where;
	bool in_sum; /* over children */
	struct named param[600], state[3], vector[2], local[64];
	int params, states, vectors, locals, names;
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

static inline bool same_form(const struct form *a, const struct form *b)
{
	return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

static inline struct extent random_extent(void)
{
	struct extent e = {{0}, 0};
	int kind = random_below(10);
	if (kind == 0)
		e.plus = 1 + random_below(5);
	else
		e.of[random_below(SYMBOLS)]++;
	if (kind < 3)
		e.of[random_below(SYMBOLS)]++;
	return e;
}

static inline struct form random_form(int most)
{
	static const int ranks[] = {0, 1, 1, 1, 1, 2, 2, 3};
	struct form f = {.rank = ranks[random_below(8)]};
	f.rank = f.rank > most ? most : f.rank;
	for (int d = 0; d < f.rank; d++)
		f.dim[d] = random_extent();
	return f;
}

static inline void put_extent(struct text *t, const struct extent *e)
{
	bool any = false;
	for (int i = 0; i < SYMBOLS; i++)
		if (e->of[i]) {
			put(t, any ? " + " : "");
			if (e->of[i] > 1)
				put(t, "%d*", e->of[i]);
			put(t, "%c", 'A' + i);
			any = true;
		}
	if (e->plus || !any)
		put(t, any ? " + %d" : "%d", e->plus);
}

static inline void put_dims(struct text *t, const struct form *f)
{
	for (int d = 0; d < f->rank; d++) {
		put(t, d ? ", " : "");
		put_extent(t, &f->dim[d]);
	}
}

static inline void put_form(struct text *t, const struct form *f)
{
	put(t, f->rank ? "[" : "");
	put_dims(t, f);
	put(t, f->rank ? "]" : "");
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

/* A state of a child, if children are seen here and one has the form. */
static inline bool put_child(struct generator *g, const struct form *f)
{
	const struct named *s = pick(g->state, g->states, f);
	bool slots = g->sequence || g->children >= 0;
	if (!s || g->where == IN_LEAF || g->where == IN_OUTPUT || !(g->in_sum || slots))
		return false;
	if (g->in_sum && (!slots || random_below(3)))
		put(&g->body, "k.%s", s->name);
	else if (g->sequence)
		put(&g->body, "previous.%s", s->name);
	else if (g->children == 0)
		put(&g->body, "%s.%s", random_below(2) ? "left" : "right", s->name);
	else
		put(&g->body, "children[%d].%s", random_below(g->children), s->name);
	return true;
}

static inline bool put_named(struct generator *g, const struct named *n)
{
	if (n)
		put(&g->body, "%s", n->name);
	return n != NULL;
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
		switch (random_below(8)) {
		case 0:
		case 1:
		case 2:
			if (put_child(g, f))
				return;
			break;
		case 3:
			if (put_named(g, pick(g->local, g->locals, f)))
				return;
			break;
		case 4:
			if (at_node ? put_named(g, pick(g->vector, g->vectors, f))
				    : put_named(g, pick(g->state, g->states, f)))
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

/* One side may lack leading axes. */
static inline bool put_binary(struct generator *g, const struct form *f, int depth)
{
	struct form less = *f;
	int drop = random_below(3) ? 0 : random_below(f->rank + 1);
	less.rank -= drop;
	memmove(less.dim, less.dim + drop, less.rank * sizeof *less.dim);
	int which = random_below(sizeof around_two / sizeof *around_two);
	bool swap = which < 7 && random_below(2);
	put_either(g, swap ? &less : f, swap ? f : &less, depth, around_two[which]);
	return true;
}

static inline bool too_large(const struct generator *g, const struct form *f, const struct extent *e)
{
	return form_elements(g, f) * extent_of(g, e) > 6000;
}

static inline bool put_product(struct generator *g, const struct form *f, int depth)
{
	struct extent k = random_extent();
	if (f->rank > 2 || too_large(g, f, &k))
		return false;
	bool left = f->rank == 2 || (f->rank == 1 && random_below(3)),
	     right = f->rank == 2 || (f->rank == 1 && !left);
	struct form a = {.rank = 1 + left}, b = {.rank = 1 + right, .dim = {k}};
	a.dim[0] = f->dim[0];
	a.dim[left] = k;
	b.dim[right ? 1 : 0] = right ? f->dim[f->rank - 1] : k;
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

static inline bool put_over_children(struct generator *g, const struct form *f, int depth)
{
	if (g->in_sum || (g->where != IN_INNER && g->where != IN_NODE))
		return false;
	g->in_sum = true;
	put(&g->body, g->where == IN_INNER && random_below(3) == 0 ? "max(" : "sum(");
	put_value(g, f, depth);
	put(&g->body, " for k in children)");
	g->in_sum = false;
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

static bool (*const operators[])(struct generator *, const struct form *, int) = {
    put_unary,	       put_unary,	  put_unary,   put_binary,    put_binary,	 put_binary,
    put_product,       put_product,	  put_product, put_reduction, put_over_children, put_over_children,
    put_slice,	       put_concat,	  put_concat,  put_transpose, put_prelude,	 put_part_of_local,
    put_part_of_local, put_part_of_local, put_gates,   put_gates,     put_gates,
};

/* An expression of this form in parentheses or without need of them. */
static inline void put_value(struct generator *g, const struct form *f, int depth)
{
	int tries = depth > 0 && g->body.n < 5000 ? 4 : 0;
	while (tries-- && form_elements(g, f) < 3000)
		if (operators[random_below(sizeof operators / sizeof *operators)](
			g, f, depth - 1 - random_below(2)))
			return;
	put_atom(g, f);
}

/* --- the text --- */

static inline void put_structure(struct generator *g)
{
	static const struct {
		const char *text;
		int children;
		bool sequence;
	} structures[] = {
	    {"sequence", 1, true},  {"tree(left, right)", 0, false}, {"tree(3)", 3, false},
	    {"tree(*)", -1, false}, {"tree(2)", 2, false},	     {"dag(*)", -1, false},
	    {"dag(2)", 2, false},   {"tree(1)", 1, false},
	};
	int i = random_below(8);
	put(&g->body, "structure %s\n", structures[i].text);
	g->children = structures[i].children;
	g->sequence = structures[i].sequence;
}

static inline void put_declarations(struct generator *g)
{
	g->has_token = random_below(3) != 0;
	g->vectors = random_below(3);
	for (int i = 0; i < g->vectors; i++) {
		g->vector[i].form = random_form(1);
		snprintf(g->vector[i].name, sizeof g->state->name, "x%d", i);
		if (!g->vector[i].form.rank)
			g->vector[i].form = (struct form){1, {{{0}, 1}}};
	}
	g->states = 1 + random_below(3);
	for (int i = 0; i < g->states; i++) {
		g->state[i].form = random_form(2);
		snprintf(g->state[i].name, sizeof g->state->name, "s%d", i);
		put(&g->body, "state s%d", i);
		put_form(&g->body, &g->state[i].form);
		put(&g->body, "\n");
	}
}

/* Most states are bounded; some are plain copies. */
static inline void put_state(struct generator *g, int i, int depth)
{
	const struct form *f = &g->state[i].form;
	int kind = random_below(8);
	struct form any = *f;
	put(&g->body, "    s%d = ", i);
	if (kind == 0)
		put_atom(g, f);
	else if (kind == 1 && f->rank) {
		any.rank--;
		memmove(any.dim, any.dim + 1, any.rank * sizeof *any.dim);
		put(&g->body, "tanh(");
		put_value(g, &any, depth);
		put(&g->body, ")");
	} else {
		put(&g->body, kind < 5 ? "tanh(" : "0.25 * tanh(");
		if (kind > 3 || !put_part_of_local(g, f, depth))
			put_value(g, f, kind > 3 ? depth : 1);
		put(&g->body, ")");
	}
	put(&g->body, "\n");
}

static inline void put_local(struct generator *g, int depth)
{
	struct form f = random_form(2);
	char name[24];
	const struct form *state = &g->state[random_below(g->states)].form;
	if (f.rank && state->rank && random_below(2)) {
		f.dim[f.rank - 1] = state->dim[state->rank - 1];
		f.dim[f.rank - 1].of[random_below(SYMBOLS)]++;
	}
	snprintf(name, sizeof name, "v%d", g->names++);
	put(&g->body, "    %s = ", name);
	if (random_below(2) || !put_product(g, &f, depth > 2 ? 1 : 0))
		put_value(g, &f, depth);
	put(&g->body, "\n");
	strcpy(g->local[g->locals].name, name);
	g->local[g->locals++].form = f;
}

static inline void put_body(struct generator *g, enum where where, const char *name)
{
	static const int depths[] = {1, 2, 3, 3, 4, 5};
	g->where = where;
	g->locals = 0;
	put(&g->body, "%s:\n", name);
	for (int n = random_below(4); n > 0; n--)
		put_local(g, depths[random_below(6)]);
	for (int i = 0; i < g->states; i++) {
		put_state(g, i, depths[random_below(6)]);
		g->local[g->locals++] = g->state[i];
	}
}

static inline void put_outputs(struct generator *g)
{
	static const char *const at[] = {"", " at root", " at every node"};
	g->where = IN_OUTPUT;
	g->locals = 0;
	for (int i = 0; i < g->states; i++)
		put(&g->body, "output state%d = s%d\n", i, i);
	for (int n = random_below(4); n > 0; n--) {
		struct form f = random_form(2);
		char name[24];
		snprintf(name, sizeof name, "o%d", g->names++);
		put(&g->body, "output %s = ", name);
		put_value(g, &f, 4);
		put(&g->body, "%s\n", at[random_below(3)]);
		strcpy(g->local[g->locals].name, name);
		g->local[g->locals++].form = f;
	}
}

/* Whether a text uses a name. */
static inline bool has_word(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = text; (at = strstr(at, name)); at++)
		if (!isalnum((unsigned char)at[n]) && !isalnum((unsigned char)at[-1]))
			return true;
	return false;
}

/* Drops locals that nothing uses, the last first, so that what only they use goes as well. */
static inline void drop_unused_locals(struct text *t)
{
	for (char *line = t->at + t->n; line > t->at;) {
		char *end = line--, name[24] = "";
		while (line > t->at && line[-1] != '\n')
			line--;
		if (strncmp(line, "    v", 5) != 0)
			continue;
		memcpy(name, line + 4, strcspn(line + 4, " "));
		if (has_word(end, name))
			continue;
		memmove(line, end, t->at + t->n + 1 - end);
		t->n -= end - line;
	}
}

/* The inputs and parameters that something uses. */
static inline void put_used(struct generator *g)
{
	if (has_word(g->body.at, "w"))
		put(&g->body, "input w : token\n");
	for (int i = 0; i < g->vectors; i++) {
		if (!has_word(g->body.at, g->vector[i].name))
			continue;
		put(&g->body, "input %s", g->vector[i].name);
		put_form(&g->body, &g->vector[i].form);
		put(&g->body, "\n");
	}
	put(&g->body, "output total = sum(sum(max(z)))\nparam z[A, B, C]\n");
	for (int i = 0; i < g->params; i++) {
		const struct named *p = &g->param[i];
		if (!has_word(g->body.at, p->name))
			continue;
		put(&g->body, "param %s", p->name);
		put(&g->body, p->table ? p->form.rank ? "[V, " : "[V]" : p->form.rank ? "[" : "");
		put_dims(&g->body, &p->form);
		put(&g->body, p->form.rank ? "]\n" : "\n");
	}
}

/* The text of a seed, and the sizes of its symbols as load_text wants them. */
static inline const char *generate_model(struct generator *g, uint64_t seed, char sizes[64])
{
	static const int extents[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 15, 16, 17};
	memset(g, 0, sizeof *g);
	random_state = seed * 0x9E3779B97F4A7C15u + 1;
	random_bits();
	for (int i = 0; i < SYMBOLS; i++)
		g->size[i] = extents[random_below(sizeof extents / sizeof *extents)];
	snprintf(sizes, 64, "A=%d B=%d C=%d V=%d", g->size[0], g->size[1], g->size[2], 1 + random_below(20));
	put(&g->body, "model random\n");
	put_structure(g);
	put_declarations(g);
	if (random_below(3) == 0) {
		put_body(g, IN_NODE, "node");
	} else {
		put_body(g, IN_LEAF, "leaf");
		put_body(g, IN_INNER, "inner");
	}
	put_outputs(g);
	drop_unused_locals(&g->body);
	put_used(g);
	return g->body.at;
}

#endif
