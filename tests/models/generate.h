/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random model texts, valid by construction. */
#ifndef ESPALIER_TESTS_MODELS_GENERATE_H
#define ESPALIER_TESTS_MODELS_GENERATE_H

#include "tests/models/expressions.h"

/* --- declarations --- */

static inline void put_structure(struct generator *g)
{
	static const struct {
		const char *text;
		int children;
	} structures[] = {
	    {"sequence", 1}, {"tree(left, right)", 0}, {"tree(3)", 3}, {"tree(*)", -1},
	    {"tree(2)", 2},  {"dag(*)", -1},	       {"dag(2)", 2},  {"tree(1)", 1},
	};
	int i = random_below(8);
	put(&g->body, "structure %s\n", structures[i].text);
	g->children = structures[i].children;
	g->sequence = *structures[i].text == 's';
	g->dag = *structures[i].text == 'd';
}

static inline void choose_inputs(struct generator *g)
{
	g->has_token = random_below(3) != 0;
	g->vectors = random_below(3);
	for (int i = 0; i < g->vectors; i++) {
		g->vector[i].form = random_form(3);
		snprintf(g->vector[i].name, sizeof g->state->name, "x%d", i);
		if (!g->vector[i].form.rank)
			g->vector[i].form = (struct form){.rank = 1, .dim = {{{0}, 1}}};
		draw_type(g, &g->vector[i].form);
		g->vector[i].form.exact = g->typed;
		g->vector[i].stored = draw_stored(g, g->vector[i].form.dtype);
	}
	g->has_edge = random_below(3) == 0;
	g->edge_token = random_below(2);
	g->edge = (struct form){.rank = 1, .dim = {random_extent()}};
	g->token_number = g->typed && random_below(2);
	g->edge_number = g->typed && g->edge_token && random_below(2);
	draw_type(g, &g->edge);
	g->edge.exact = g->typed;
	g->edge_stored = draw_stored(g, g->edge.dtype);
}

/* States of several types are often of one shape, so that one can be computed of the other. */
static inline struct form draw_state_form(struct generator *g)
{
	struct form f = random_form(3);
	if (g->typed && g->states && random_below(2))
		f = g->state[0].form;
	else if (g->typed && g->vectors && random_below(2))
		f = g->vector[0].form;
	while (g->flat && too_large(g, &f, &g->steps))
		drop_axes(&f, 1);
	f.dtype = DTYPE_F32;
	f.exact = false;
	draw_type(g, &f);
	return f;
}

static inline void put_states(struct generator *g, int n)
{
	g->earlier = g->states;
	for (; n > 0; n--) {
		struct named *s = &g->state[g->states];
		s->form = draw_state_form(g);
		snprintf(s->name, sizeof s->name, "s%d", g->states++);
		if (g->earlier == 0 && s->form.rank == 1 && random_below(2)) {
			g->edge = s->form;
			g->edge.exact = g->typed;
			g->edge_stored = draw_stored(g, g->edge.dtype);
		}
		put(&g->body, "state %s", s->name);
		put_form(&g->body, &s->form);
		put_type(&g->body, s->form.dtype);
		put(&g->body, "\n");
	}
}

/* --- cases --- */

/* Whether all that is asked by the one is asked by the other. */
static inline bool covers(const struct named_case *a, const struct named_case *b)
{
	return a->base == b->base && (a->children < 0 || a->children == b->children) &&
	       (a->word < 0 || a->word == b->word) && (a->tag < 0 || a->tag == b->tag);
}

static inline void put_condition(struct generator *g, const char *what, int value, bool *any)
{
	if (value >= 0)
		put(&g->body, "%s %s == %d", *any ? " and" : "", what, value);
	*any |= value >= 0;
}

/* Another case that has nodes for itself, or nothing. */
static inline void put_case(struct generator *g)
{
	struct named_case *c = &g->named_case[g->cases];
	bool inner = random_below(4), counted = inner && g->children < 0, any = false;
	c->base = inner ? IN_INNER : IN_LEAF;
	c->children = counted && random_below(3) ? 1 + random_below(4) : -1;
	c->word = g->has_token && random_below(3) == 0 ? random_below(3) : -1;
	c->tag = (c->children < 0 && c->word < 0) || random_below(4) == 0 ? random_below(3) : -1;
	for (int i = 0; i < g->cases; i++)
		if (covers(&g->named_case[i], c))
			return;
	snprintf(c->name, sizeof c->name, "case%d", g->cases++);
	put(&g->body, "case %s = %s when", c->name, inner ? "inner" : "leaf");
	put_condition(g, "children", c->children, &any);
	put_condition(g, "w", c->word, &any);
	put_condition(g, "tag", c->tag, &any);
	put(&g->body, "\n");
}

/* --- bodies --- */

/* Integers wrap, and what is exact is bounded. */
static inline void put_typed_state(struct generator *g, const struct form *f, int depth)
{
	bool done = random_below(4) == 0 && (put_carried(g, f, depth) || put_part_of_local(g, f, depth));
	if (!done)
		put_value(g, f, depth);
}

/* Most states of f32 are bounded; some are plain copies. */
static inline void put_float_state(struct generator *g, const struct form *f, int depth)
{
	int kind = random_below(8);
	struct form any = *f;
	if (kind == 0)
		put_atom(g, f);
	else if (kind == 1 && f->rank) {
		drop_axes(&any, 1);
		put(&g->body, "tanh(");
		put_value(g, &any, depth);
		put(&g->body, ")");
	} else {
		put(&g->body, kind < 5 ? "tanh(" : "0.25 * tanh(");
		if (!(kind > 5 && put_carried(g, f, depth)) && (kind > 3 || !put_part_of_local(g, f, depth)))
			put_value(g, f, kind > 3 ? depth : 1);
		put(&g->body, ")");
	}
}

static inline void put_state(struct generator *g, int i, int depth)
{
	const struct form *f = &g->state[i].form;
	put(&g->body, "    s%d = ", i);
	(kind_of(f) == ROUNDED ? put_float_state : put_typed_state)(g, f, depth);
	put(&g->body, "\n");
}

static inline void put_local(struct generator *g, int depth)
{
	struct form f = random_form(2);
	draw_type(g, &f);
	char name[24];
	const struct form *state = &g->state[random_below(g->states + !g->states)].form;
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

static inline void put_body(struct generator *g, enum where where, int slots, const char *name)
{
	static const int depths[] = {1, 2, 3, 3, 4, 5};
	g->where = where;
	g->slots = slots;
	g->locals = 0;
	put(&g->body, "%s:\n", name);
	for (int n = random_below(4); n > 0; n--)
		put_local(g, depths[random_below(6)]);
	for (int i = g->earlier; i < g->states; i++) {
		put_state(g, i, depths[random_below(6)]);
		g->local[g->locals++] = g->state[i];
	}
}

/* Each case has a body in the first traversal. */
static inline void put_cases_bodies(struct generator *g)
{
	for (int i = 0; i < g->cases; i++) {
		const struct named_case *c = &g->named_case[i];
		if (g->earlier == 0 || random_below(2))
			put_body(g, c->base, c->children < 0 ? g->children : c->children, c->name);
	}
}

static inline void put_bodies(struct generator *g)
{
	if (random_below(3) == 0) {
		put_body(g, IN_NODE, g->children, "node");
	} else {
		put_body(g, g->down ? IN_ROOT : IN_LEAF, g->children, g->down ? "root" : "leaf");
		put_body(g, g->down ? IN_BELOW : IN_INNER, g->children, g->down ? "below" : "inner");
	}
	if (!g->down)
		put_cases_bodies(g);
}

/* A traversal that goes up need not say so if it is the first. */
static inline void put_traversal(struct generator *g, int states)
{
	if (g->states || g->down)
		put(&g->body, "traversal %s\n", g->down ? "down" : "up");
	put_states(g, states);
	put_bodies(g);
}

/* Half of the models go over the nodes once, and most of these up; cases are what those are told apart by
 * that go up first. */
static inline void put_traversals(struct generator *g)
{
	int more = random_below(2) ? 0 : 1 + random_below(2);
	g->down = random_below(8) == 0;
	for (int n = g->down || random_below(3) ? 0 : 1 + random_below(3); n > 0; n--)
		put_case(g);
	put_traversal(g, 1 + random_below(3));
	for (; more > 0; more--) {
		g->down = random_below(3) ? !g->down : g->down;
		put_traversal(g, 1 + random_below(2));
	}
}

/* --- models without a structure --- */

/* Behind a scan its states have all steps along a first axis. */
static inline void gather_steps(struct generator *g)
{
	for (int i = g->earlier; g->scanning && i < g->states; i++)
		insert_axis(&g->state[i].form, 0, g->steps);
	g->scanning = false;
}

/* A scan, or a traversal without steps whose body computes whole values. */
static inline void put_flat_traversal(struct generator *g, bool scan)
{
	g->scanning = scan;
	g->down = scan && random_below(2);
	g->steps = random_extent();
	if (scan || g->states)
		put(&g->body, "traversal %s", g->down ? "down" : "up");
	if (scan) {
		put(&g->body, " over ");
		put_extent(&g->body, &g->steps);
	}
	put(&g->body, scan || g->states ? "\n" : "");
	put_states(g, 1 + random_below(3));
	if (scan)
		put_bodies(g);
	else
		put_body(g, IN_NODE, 1, "node");
	gather_steps(g);
}

/* Some traversals, at least one of which is a scan. */
static inline void put_flat_traversals(struct generator *g)
{
	if (random_below(2))
		put_flat_traversal(g, false);
	for (int n = 1 + random_below(3); n > 0; n--)
		put_flat_traversal(g, n == 1 || random_below(4));
}

/* --- outputs --- */

/* Whether a text uses a name. */
static inline bool has_word(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = text; (at = strstr(at, name)); at++)
		if (!isalnum((unsigned char)at[n]) && !isalnum((unsigned char)at[-1]))
			return true;
	return false;
}

/* Whether the text of an output, from here on, ranges over nodes or uses an output that does. */
static inline bool ranges_over_nodes(const struct generator *g, const char *text)
{
	bool ranges = strstr(text, " in nodes)");
	for (int i = 0; i < g->rangings; i++)
		ranges |= has_word(text, g->ranging[i]);
	return ranges;
}

/* At the root half of them are sums over nodes. */
static inline void put_output(struct generator *g, const struct form *f, int place)
{
	static const char *const at[] = {"", " at every node", " at root"};
	struct named o = {.form = *f};
	size_t begin = g->body.n;
	g->at_root = place == 2;
	snprintf(o.name, sizeof o.name, "o%d", g->names++);
	put(&g->body, "output %s = ", o.name);
	if (!g->at_root || random_below(2) || !put_over_nodes(g, f, 2))
		put_value(g, f, 4);
	put(&g->body, "%s\n", at[place]);
	if (g->at_root) /* it may be of all nodes of an input, which an output at every node cannot use */
		return;
	struct named *local = &g->local[g->locals++];
	*local = o;
	if (ranges_over_nodes(g, g->body.at + begin))
		g->ranging[g->rangings++] = local->name;
	else
		g->member[g->members++] = o;
}

static inline void put_outputs(struct generator *g)
{
	static const struct form number;
	g->where = IN_OUTPUT;
	g->locals = g->states ? 0 : g->locals; /* the names below `node:` of a model without states are for outputs */
	for (int i = 0; i < g->states; i++)
		put(&g->body, "output state%d = s%d\n", i, i);
	if (random_below(3) == 0)
		put_output(g, &number, random_below(2));
	for (int n = random_below(4); n > 0; n--) {
		struct form f = random_form(2);
		draw_type(g, &f);
		put_output(g, &f, random_below(g->flat ? 2 : 3));
	}
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

/* A bound of some inputs of floats, by the length of the text before it: no other draw depends on it. */
static inline void put_bound(struct generator *g, enum dtype stored, int which)
{
	static const char *const bounds[] = {"", " within 0.3", "", " within 0.4", ""};
	if (dtype_traits_of(stored)->kind == DTYPE_FLOAT)
		put(&g->body, "%s", bounds[(g->body.n + which) % (sizeof bounds / sizeof *bounds)]);
}

/* The inputs and parameters that something uses. */
static inline void put_used(struct generator *g)
{
	if (has_word(g->body.at, "w"))
		put(&g->body, "input w : %s\n", g->token_number ? "i32" : "token");
	if (has_word(g->body.at, "tag"))
		put(&g->body, "input tag : %s\n", g->token_number ? "i32" : "token");
	for (int i = 0; i < g->vectors; i++) {
		if (!has_word(g->body.at, g->vector[i].name))
			continue;
		put(&g->body, "input %s", g->vector[i].name);
		put_form(&g->body, &g->vector[i].form);
		put_type(&g->body, g->vector[i].stored);
		put_bound(g, g->vector[i].stored, i);
		put(&g->body, "\n");
	}
	if (g->has_edge && has_word(g->body.at, "e")) {
		put(&g->body, "edge e");
		put_form(&g->body, g->edge_token ? &(struct form){0} : &g->edge);
		put_type(&g->body, g->edge_token ? DTYPE_F32 : g->edge_stored);
		if (!g->edge_token)
			put_bound(g, g->edge_stored, g->vectors);
		put(&g->body, !g->edge_token ? "\n" : g->edge_number ? " : i32\n" : " : token\n");
	}
	put(&g->body, "output total = sum(sum(max(z)))\nparam z[A, B, C]\n");
	for (int i = 0; i < g->params; i++) {
		const struct named *p = &g->param[i];
		if (!has_word(g->body.at, p->name))
			continue;
		put(&g->body, "param %s", p->name);
		put(&g->body, p->table ? p->form.rank ? "[V, " : "[V" : p->form.rank ? "[" : "");
		put_dims(&g->body, &p->form);
		put(&g->body, p->form.rank || p->table ? "]" : "");
		put_type(&g->body, p->stored);
		put(&g->body, "\n");
	}
}

/* Begins a text of the numbers that follow, of f32 alone or of all types, of which expressions end soon after
 * so many bytes, and draws the sizes of its symbols as load_text wants them. */
static inline void begin_text(struct generator *g, bool typed, int largest, size_t longest, char sizes[64])
{
	static const int extents[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 15, 16, 17};
	int n = 0;
	memset(g, 0, sizeof *g);
	g->longest = longest;
	g->typed = typed;
	g->careful = typed && random_below(3);
	while (n < (int)(sizeof extents / sizeof *extents) && extents[n] <= largest)
		n++;
	for (int i = 0; i < SYMBOLS; i++)
		g->size[i] = extents[random_below(n)];
	snprintf(sizes, 64, "A=%d B=%d C=%d V=%d", g->size[0], g->size[1], g->size[2], 1 + random_below(20));
	put(&g->body, "model random\n");
}

static inline const char *end_text(struct generator *g)
{
	put_outputs(g);
	drop_unused_locals(&g->body);
	put_used(g);
	return g->body.at;
}

/* A model of nodes of a structure. */
static inline const char *draw_model(struct generator *g, bool typed, int largest, size_t longest, char sizes[64])
{
	begin_text(g, typed, largest, longest, sizes);
	put_structure(g);
	choose_inputs(g);
	put_traversals(g);
	return end_text(g);
}

/* A model of rows without a structure: most have scans, the others a body whose names outputs share. */
static inline const char *draw_rows(struct generator *g, bool typed, int largest, size_t longest, char sizes[64])
{
	begin_text(g, typed, largest, longest, sizes);
	put(&g->body, "structure none\n");
	g->flat = g->sequence = true; /* a scan names its neighbours as a sequence does */
	g->children = 1;
	choose_inputs(g);
	g->has_edge = false;
	if (random_below(6))
		put_flat_traversals(g);
	else
		put_body(g, IN_NODE, 1, "node");
	return end_text(g);
}

/* The model of a seed; that of one in three is typed, that of one in four has no structure. */
static inline const char *generate_model(struct generator *g, uint64_t seed, char sizes[64])
{
	random_state = seed * 0x9E3779B97F4A7C15u + 1;
	random_bits();
	if (seed % 4 == 3)
		return draw_rows(g, seed % 3 == 1, 9, 3000, sizes);
	return draw_model(g, seed % 3 == 1, 17, 5000, sizes);
}

#endif
