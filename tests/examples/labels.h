/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* As equations.h: models whose children are reached over labelled edges, and attention over the nodes of a
 * tree. */
#ifndef ESPALIER_TESTS_EXAMPLES_LABELS_H
#define ESPALIER_TESTS_EXAMPLES_LABELS_H

#include "tests/examples/equations.h"

/* Adds what an edge sends to one gate of the node that it leaves. */
typedef void message(double *a, const struct weights *, const struct structure *, const char *gate, int edge);

/* U[label] h: a matrix for each label. */
static inline void matrix_message(double *a, const struct weights *w, const struct structure *s,
				  const char *gate, int edge)
{
	const float *U = gate_of(w, "U_", gate) + s->label[edge] * w->D * w->D;
	add_product(a, U, w->D, w->D, s->h[s->children[edge]]);
}

/* U h + L l[label]: an embedding for each label. */
static inline void embedding_message(double *a, const struct weights *w, const struct structure *s,
				     const char *gate, int edge)
{
	double l[L];
	set(l, weight_of(w, "label.weight") + s->label[edge] * L, L);
	add_product(a, gate_of(w, "U_", gate), w->D, w->D, s->h[s->children[edge]]);
	add_product(a, gate_of(w, "L_", gate), w->D, L, l);
}

/* Tai et al. 2015, section 3.1, the term U h of a child being a message. */
static inline void labelled_cell(const struct weights *w, struct structure *s, int node, message *add_message)
{
	static const char *const gates[] = {"i", "o", "u"};
	double x[MOST_E], a[3][MOST_D], f[MOST_D], *c = s->c[node];
	look_up(x, w, s, node, w->E);
	for (int g = 0; g < 3; g++) {
		gate_sum(a[g], w, gates[g], x, NULL);
		for (int e = s->begin[node]; e < s->begin[node + 1]; e++)
			add_message(a[g], w, s, gates[g], e);
	}
	for (int i = 0; i < w->D; i++)
		c[i] = logistic(a[0][i]) * tanh(a[2][i]);
	for (int e = s->begin[node]; e < s->begin[node + 1]; e++) {
		gate_sum(f, w, "f", x, NULL);
		add_message(f, w, s, "f", e);
		for (int i = 0; i < w->D; i++)
			c[i] += logistic(f[i]) * s->c[s->children[e]][i];
	}
	for (int i = 0; i < w->D; i++)
		s->h[node][i] = logistic(a[1][i]) * tanh(c[i]);
}

static inline void label_matrix_cell(const struct weights *w, struct structure *s, int node)
{
	labelled_cell(w, s, node, matrix_message);
}

static inline void label_embedding_cell(const struct weights *w, struct structure *s, int node)
{
	labelled_cell(w, s, node, embedding_message);
}

/* --- attention: softmax over the nodes of v tanh(W h + b), and the mean of their h so weighted --- */

static inline int attention_score(const struct weights *w, const struct structure *s, int node, double *y)
{
	double a[A];
	layer(w, s, node, "attention.W", "attention.b", a);
	for (int i = 0; i < A; i++)
		a[i] = tanh(a[i]);
	*y = 0;
	add_product(y, weight_of(w, "attention.v"), 1, A, a);
	return 1;
}

static inline int attention_summary(const struct weights *w, const struct structure *s, int root, double *y)
{
	double share[MOST_NODES];
	(void)root;
	for (int node = 0; node < s->nodes; node++)
		attention_score(w, s, node, &share[node]);
	softmax(share, s->nodes);
	set(y, NULL, w->D);
	for (int node = 0; node < s->nodes; node++)
		for (int i = 0; i < w->D; i++)
			y[i] += share[node] * s->h[node][i];
	return w->D;
}

static inline int attention_logits(const struct weights *w, const struct structure *s, int root, double *y)
{
	double summary[MOST_D];
	attention_summary(w, s, root, summary);
	set(y, weight_of(w, "output.bias"), C);
	add_product(y, weight_of(w, "output.weight"), C, w->D, summary);
	return C;
}

#endif
