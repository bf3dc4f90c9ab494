/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random texts of recurrent cells: states within [-1, 1] of several gates, which are sums of products with inputs and with what
 * children have.  Most of their products can be declared in integers. */
#ifndef ESPALIER_TESTS_MODELS_CELLS_H
#define ESPALIER_TESTS_MODELS_CELLS_H

#include "tests/models/forms.h"

struct cells {
	struct text text, params;
	int states, slots; /* slots: of children, 0 = any number */
	bool sequence, token, edge;
	bool reads_token, reads_edge; /* so far */
	int weights;	/* that are declared */
	char symbol[2]; /* the extent of each state */
};

/* A new parameter of as many rows as a state has elements, and of so many times the columns that a symbol says; 0 = it is a vector. */
static inline void put_weight(struct cells *c, int state, int times, char symbol)
{
	put(&c->params, "param p%d[%c", c->weights, c->symbol[state]);
	if (times)
		put(&c->params, ", %d*%c", times, symbol);
	put(&c->params, "]\n");
	put(&c->text, "p%d", c->weights++);
}

/* A product with a state of children. */
static inline void put_child_product(struct cells *c, int state)
{
	int of = random_below(c->states);
	if (c->sequence) {
		put_weight(c, state, 1, c->symbol[of]);
		put(&c->text, " @ previous.h%d", of);
	} else if (c->slots && random_below(4)) {
		put_weight(c, state, 1, c->symbol[of]);
		put(&c->text, " @ children[%d].h%d", random_below(c->slots), of);
	} else if (random_below(3)) {
		put_weight(c, state, 1, c->symbol[of]);
		if (c->slots > 1 && random_below(2))
			put(&c->text, " @ (children[0].h%d * children[1].h%d)", of, of);
		else
			put(&c->text, " @ max(k.h%d for k in children)", of);
	} else {
		bool squashed = random_below(2);
		put(&c->text, squashed ? "sum(sigmoid(" : "sum(");
		put_weight(c, state, 1, c->symbol[of]);
		put(&c->text, squashed ? " @ k.h%d) for k in children)" : " @ k.h%d for k in children)", of);
	}
}

static inline void put_edge_product(struct cells *c, int state)
{
	put(&c->text, "sum(");
	put_weight(c, state, 2, 'B');
	put(&c->text, " @ k.v for k in children)");
}

/* A sum of products, perhaps with a bias or a row of a table. */
static inline void put_sum(struct cells *c, int state, bool inner)
{
	for (int i = random_below(3); i >= 0; i--) {
		if (inner && c->edge && (!c->reads_edge || random_below(4) == 0)) {
			put_edge_product(c, state);
			c->reads_edge = true;
		} else if (!inner || (c->sequence && !i) || random_below(3) == 0) {
			put_weight(c, state, 4, 'C');
			put(&c->text, " @ x");
		} else {
			put_child_product(c, state);
		}
		put(&c->text, i ? " + " : "");
	}
	if (random_below(2)) {
		put(&c->text, " + ");
		put_weight(c, state, 0, 0);
	}
	if (c->token && (!c->reads_token || random_below(2))) {
		c->reads_token = true;
		put(&c->params, "param t%d[V, %c]\n", c->weights, c->symbol[state]);
		put(&c->text, " + t%d[w]", c->weights++);
	}
}

/* What a state is: some gates, whose places are the letter S. */
static inline void put_cell(struct cells *c, int state, bool inner)
{
	static const char *const forms[] = {"tanh(S)", "sigmoid(S)", "sigmoid(S) * tanh(S)", "0.5 * tanh(S) + 0.25 * sigmoid(S) * tanh(S)",
					    "sigmoid(S) * tanh(S) * sigmoid(S)", "sigmoid(S) * tanh(S) - 0.5 * sigmoid(S) * tanh(S)"};
	put(&c->text, "    h%d = ", state);
	for (const char *at = forms[random_below(6)]; *at; at++)
		if (*at == 'S')
			put_sum(c, state, inner);
		else
			put(&c->text, "%c", *at);
	put(&c->text, "\n");
}

static inline void put_cells(struct cells *c, const char *body, bool inner)
{
	put(&c->text, "%s:\n", body);
	for (int i = 0; i < c->states; i++)
		put_cell(c, i, inner);
}

static inline void draw_cell_sizes(char sizes[64])
{
	static const int extents[] = {9, 11, 16, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 70};
	int at[SYMBOLS];
	for (int i = 0; i < SYMBOLS; i++)
		at[i] = extents[random_below(i ? 10 : 14)];
	snprintf(sizes, 64, "A=%d B=%d C=%d V=%d", at[0], at[1], at[2], 1 + random_below(20));
}

static inline void put_cell_inputs(struct cells *c)
{
	static const char *const bounds[] = {"0.3", "1", "0.4", "2.5"};
	static const char *const types[] = {"", "", " : bf16", " : f16"};
	put(&c->text, "input x[4*C]%s within %s\n", types[random_below(4)], bounds[random_below(4)]);
	put(&c->text, c->token ? "input w : token\n" : "");
	put(&c->text, c->edge ? "edge v[2*B] within 0.5\n" : "");
	for (int i = 0; i < c->states; i++)
		put(&c->text, "state h%d[%c]\n", i, c->symbol[i]);
}

/* The text of a seed, and the sizes of its symbols. */
static inline const char *generate_cells(struct cells *c, uint64_t seed, char sizes[64])
{
	static const struct {
		const char *text;
		int slots;
	} structures[] = {{"sequence", 1}, {"tree(2)", 2}, {"tree(3)", 3}, {"tree(*)", 0}, {"dag(*)", 0}, {"dag(2)", 2}};
	random_state = seed * 0x9E3779B97F4A7C15u + 3;
	random_bits();
	int structure = random_below(6);
	c->text.n = c->params.n = 0;
	c->params.at[0] = 0;
	c->weights = 0;
	c->reads_token = c->reads_edge = false;
	c->sequence = structure == 0;
	c->slots = structures[structure].slots;
	c->token = random_below(2);
	c->edge = !c->sequence && random_below(3) == 0;
	c->states = 1 + random_below(2);
	for (int i = 0; i < c->states; i++)
		c->symbol[i] = (char)('A' + random_below(2));
	draw_cell_sizes(sizes);
	put(&c->text, "model cells\nstructure %s\n", structures[structure].text);
	put_cell_inputs(c);
	if (c->sequence) {
		put_cells(c, "node", true);
	} else {
		put_cells(c, "leaf", false);
		put_cells(c, "inner", true);
	}
	put(&c->text, "output y = h0%s\n", random_below(2) ? " at every node" : "");
	if (c->states > 1)
		put(&c->text, "output z = h1 at root\n");
	put(&c->text, "%s", c->params.at);
	return c->text.at;
}

#endif
