/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The example models in double precision, written from the equations of their papers: plain loops over
 * matrices, recursion over the structure.  Nothing of the library is in it. */
#ifndef ESPALIER_TESTS_EXAMPLES_EQUATIONS_H
#define ESPALIER_TESTS_EXAMPLES_EQUATIONS_H

#include "tests/examples/numbers.h"

/* The word vector of a node. */
static inline void look_up(double *x, const struct weights *w, const struct structure *s, int node,
			   int columns)
{
	set(x, weight_of(w, "embedding.weight") + s->word[node] * columns, columns);
}

/* The vector that a node carries. */
static inline void vector_of(double *x, const struct weights *w, const struct structure *s, int node)
{
	set(x, s->x + node * w->E, w->E);
}

/* PREFIX_GATE of the weights, as in "W_i". */
static inline const float *gate_of(const struct weights *w, const char *prefix, const char *gate)
{
	char name[40];
	snprintf(name, sizeof name, "%s%s", prefix, gate);
	return weight_of(w, name);
}

/* --- the cells: h (and c) of a node whose children have theirs --- */

typedef void cell(const struct weights *, struct structure *, int node);

/* Tai et al. 2015, section 3.2: equations 9 to 14 for two children; leaves have weights of their own. */
static inline void nary_leaf(const struct weights *w, struct structure *s, int node)
{
	static const char *const gates[] = {"i", "o", "u"};
	double x[MOST_E], a[3][MOST_D];
	look_up(x, w, s, node, w->E);
	for (int g = 0; g < 3; g++) {
		set(a[g], gate_of(w, "leaf.b_", gates[g]), w->D);
		add_product(a[g], gate_of(w, "leaf.W_", gates[g]), w->D, w->E, x);
	}
	for (int i = 0; i < w->D; i++) {
		s->c[node][i] = logistic(a[0][i]) * tanh(a[2][i]);
		s->h[node][i] = logistic(a[1][i]) * tanh(s->c[node][i]);
	}
}

static inline void nary_inner(const struct weights *w, struct structure *s, int node)
{
	static const char *const gates[] = {"i", "fl", "fr", "o", "u"}, *const sides[] = {"left", "right"};
	const int32_t *child = s->children + s->begin[node];
	double a[5][MOST_D];
	for (int g = 0; g < 5; g++) {
		set(a[g], gate_of(w, "node.b_", gates[g]), w->D);
		for (int k = 0; k < 2; k++) {
			char name[40];
			snprintf(name, sizeof name, "node.U_%s_%s", gates[g], sides[k]);
			add_product(a[g], weight_of(w, name), w->D, w->D, s->h[child[k]]);
		}
	}
	for (int i = 0; i < w->D; i++) {
		s->c[node][i] = logistic(a[0][i]) * tanh(a[4][i]) + logistic(a[1][i]) * s->c[child[0]][i] +
				logistic(a[2][i]) * s->c[child[1]][i];
		s->h[node][i] = logistic(a[3][i]) * tanh(s->c[node][i]);
	}
}

static inline void nary_cell(const struct weights *w, struct structure *s, int node)
{
	(s->begin[node] == s->begin[node + 1] ? nary_leaf : nary_inner)(w, s, node);
}

/* W x + U h + b of one gate of a child-sum unit. */
static inline void gate_sum(double *a, const struct weights *w, const char *gate, const double *x,
			    const double *h)
{
	set(a, gate_of(w, "b_", gate), w->D);
	if (x)
		add_product(a, gate_of(w, "W_", gate), w->D, w->E, x);
	if (h)
		add_product(a, gate_of(w, "U_", gate), w->D, w->D, h);
}

static inline void sum_children(double *sum, const struct weights *w, const struct structure *s, int node)
{
	set(sum, NULL, w->D);
	for (int e = s->begin[node]; e < s->begin[node + 1]; e++)
		add(sum, s->h[s->children[e]], w->D);
}

/* Tai et al. 2015, section 3.1: equations 2 to 8. */
static inline void childsum_cell(const struct weights *w, struct structure *s, int node)
{
	double x[MOST_E], sum[MOST_D], in[MOST_D], out[MOST_D], u[MOST_D], f[MOST_D];
	look_up(x, w, s, node, w->E);
	sum_children(sum, w, s, node);
	gate_sum(in, w, "i", x, sum);
	gate_sum(out, w, "o", x, sum);
	gate_sum(u, w, "u", x, sum);
	for (int i = 0; i < w->D; i++)
		s->c[node][i] = logistic(in[i]) * tanh(u[i]);
	for (int e = s->begin[node]; e < s->begin[node + 1]; e++) {
		int child = s->children[e];
		gate_sum(f, w, "f", x, s->h[child]);
		for (int i = 0; i < w->D; i++)
			s->c[node][i] += logistic(f[i]) * s->c[child][i];
	}
	for (int i = 0; i < w->D; i++)
		s->h[node][i] = logistic(out[i]) * tanh(s->c[node][i]);
}

/* A GRU whose previous state is the sum of the children's; x in leaves only. */
static inline void treegru_cell(const struct weights *w, struct structure *s, int node)
{
	bool leaf = s->begin[node] == s->begin[node + 1];
	double x[MOST_E], sum[MOST_D], r[MOST_D], z[MOST_D], n[MOST_D], reset[MOST_D];
	if (leaf)
		look_up(x, w, s, node, w->E);
	sum_children(sum, w, s, node);
	gate_sum(z, w, "z", leaf ? x : NULL, leaf ? NULL : sum);
	if (!leaf)
		gate_sum(r, w, "r", NULL, sum);
	for (int i = 0; i < w->D; i++)
		reset[i] = leaf ? 0 : logistic(r[i]) * sum[i];
	gate_sum(n, w, "n", leaf ? x : NULL, leaf ? NULL : reset);
	for (int i = 0; i < w->D; i++)
		s->h[node][i] = logistic(z[i]) * sum[i] + (1 - logistic(z[i])) * tanh(n[i]);
}

/* A GRU that keeps nothing of its previous state: without the term z * s. */
static inline void simpletreegru_cell(const struct weights *w, struct structure *s, int node)
{
	double x[MOST_E], sum[MOST_D], r[MOST_D], z[MOST_D], n[MOST_D];
	bool leaf = s->begin[node] == s->begin[node + 1];
	if (leaf)
		look_up(x, w, s, node, w->E);
	sum_children(sum, w, s, node);
	gate_sum(z, w, "z", leaf ? x : NULL, leaf ? NULL : sum);
	gate_sum(r, w, "r", NULL, sum);
	for (int i = 0; i < w->D; i++)
		r[i] = logistic(r[i]) * sum[i];
	gate_sum(n, w, "n", leaf ? x : NULL, leaf ? NULL : r);
	for (int i = 0; i < w->D; i++)
		s->h[node][i] = (1 - logistic(z[i])) * tanh(n[i]);
}

/* Elman's unit over the sum of the children. */
static inline void treernn_cell(const struct weights *w, struct structure *s, int node)
{
	double x[MOST_E], sum[MOST_D], *h = s->h[node];
	set(h, weight_of(w, "b"), w->D);
	if (s->begin[node] == s->begin[node + 1]) {
		look_up(x, w, s, node, w->E);
		add_product(h, weight_of(w, "W"), w->D, w->E, x);
	} else {
		sum_children(sum, w, s, node);
		add_product(h, weight_of(w, "U"), w->D, w->D, sum);
	}
	for (int i = 0; i < w->D; i++)
		h[i] = tanh(h[i]);
}

/* Tai et al. 2015, section 3.2: equations 9 to 14 for three children.  The sum over them of U h, next to W x
 * + b. */
static inline void ternary_gate(double *a, const struct weights *w, const struct structure *s, int node,
				const char *gate, const char *of)
{
	double x[MOST_E];
	char U[16];
	look_up(x, w, s, node, w->E);
	set(a, gate_of(w, "b_", gate), w->D);
	add_product(a, gate_of(w, "W_", gate), w->D, w->E, x);
	for (int l = 0; l < s->begin[node + 1] - s->begin[node]; l++) {
		snprintf(U, sizeof U, "U_%s_%s%d", gate, of, l + 1);
		add_product(a, weight_of(w, U), w->D, w->D, s->h[s->children[s->begin[node] + l]]);
	}
}

static inline void ternary_cell(const struct weights *w, struct structure *s, int node)
{
	static const char *const slot[] = {"1", "2", "3"};
	double in[MOST_D], out[MOST_D], u[MOST_D], f[MOST_D], *c = s->c[node];
	ternary_gate(in, w, s, node, "i", "");
	ternary_gate(out, w, s, node, "o", "");
	ternary_gate(u, w, s, node, "u", "");
	for (int i = 0; i < w->D; i++)
		c[i] = logistic(in[i]) * tanh(u[i]);
	for (int k = 0; k < s->begin[node + 1] - s->begin[node]; k++) {
		ternary_gate(f, w, s, node, "f", slot[k]);
		for (int i = 0; i < w->D; i++)
			c[i] += logistic(f[i]) * s->c[s->children[s->begin[node] + k]][i];
	}
	for (int i = 0; i < w->D; i++)
		s->h[node][i] = logistic(out[i]) * tanh(c[i]);
}

/* Socher et al. 2012: equations 4 and 5. */
static inline void mvrnn_inner(const struct weights *w, struct structure *s, int node)
{
	const int32_t *child = s->children + s->begin[node];
	const float *W_M = weight_of(w, "W_M");
	double both[2 * MOST_D] = {0}, *p = s->h[node], *P = s->c[node];
	int D = w->D;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < D; i++)
			for (int j = 0; j < D; j++)
				both[side * D + i] += s->c[child[!side]][i * D + j] * s->h[child[side]][j];
	set(p, weight_of(w, "b"), D);
	add_product(p, weight_of(w, "W"), D, 2 * D, both);
	for (int i = 0; i < D; i++)
		p[i] = tanh(p[i]);
	for (int i = 0; i < D; i++)
		for (int j = 0; j < D; j++) {
			P[i * D + j] = 0;
			for (int k = 0; k < 2 * D; k++)
				P[i * D + j] += W_M[i * 2 * D + k] * s->c[child[k / D]][k % D * D + j];
		}
}

static inline void mvrnn_cell(const struct weights *w, struct structure *s, int node)
{
	int D = w->D;
	if (s->begin[node] == s->begin[node + 1]) {
		set(s->h[node], weight_of(w, "vector.weight") + s->word[node] * D, D);
		set(s->c[node], weight_of(w, "matrix.weight") + s->word[node] * D * D, D * D);
	} else {
		mvrnn_inner(w, s, node);
	}
}

/* Socher et al. 2013, section 4.3. */
static inline void rntn_cell(const struct weights *w, struct structure *s, int node)
{
	const int32_t *child = s->children + s->begin[node];
	const float *tensor = weight_of(w, "V");
	double x[2 * MOST_D], *h = s->h[node];
	int D = w->D;
	if (s->begin[node] == s->begin[node + 1]) {
		look_up(h, w, s, node, D);
		return;
	}
	memcpy(x, s->h[child[0]], D * sizeof *x);
	memcpy(x + D, s->h[child[1]], D * sizeof *x);
	set(h, weight_of(w, "b"), D);
	add_product(h, weight_of(w, "W"), D, 2 * D, x);
	for (int d = 0; d < D; d++)
		for (int i = 0; i < 2 * D; i++)
			for (int j = 0; j < 2 * D; j++)
				h[d] += x[i] * tensor[(d * 2 * D + i) * 2 * D + j] * x[j];
	for (int d = 0; d < D; d++)
		h[d] = tanh(h[d]);
}

/* Shuai et al. 2016, equation 3. */
static inline void dagrnn_cell(const struct weights *w, struct structure *s, int node)
{
	double x[MOST_E], sum[MOST_D], *h = s->h[node];
	vector_of(x, w, s, node);
	sum_children(sum, w, s, node);
	set(h, weight_of(w, "b"), w->D);
	add_product(h, weight_of(w, "U"), w->D, w->E, x);
	add_product(h, weight_of(w, "W"), w->D, w->D, sum);
	for (int i = 0; i < w->D; i++)
		h[i] = h[i] > 0 ? h[i] : 0;
}

/* relu(W [l; r] + b). */
static inline void treefc_cell(const struct weights *w, struct structure *s, int node)
{
	const int32_t *child = s->children + s->begin[node];
	double *h = s->h[node], both[2 * MOST_D];
	if (s->begin[node] == s->begin[node + 1]) {
		look_up(h, w, s, node, w->D);
		return;
	}
	memcpy(both, s->h[child[0]], w->D * sizeof *both);
	memcpy(both + w->D, s->h[child[1]], w->D * sizeof *both);
	set(h, weight_of(w, "b"), w->D);
	add_product(h, weight_of(w, "W"), w->D, 2 * w->D, both);
	for (int i = 0; i < w->D; i++)
		h[i] = h[i] > 0 ? h[i] : 0;
}

/* The TreeLSTM among DGL's examples: only leaves have a word, the gates of an inner node see both children at once. */
static inline void dgl_cell(const struct weights *w, struct structure *s, int node)
{
	int D = w->D;
	bool leaf = s->begin[node] == s->begin[node + 1];
	const int32_t *child = s->children + s->begin[node];
	double x[2 * MOST_D + MOST_E], a[3 * MOST_D], f[2 * MOST_D];
	set(a, weight_of(w, "cell.b_iou"), 3 * D);
	set(f, weight_of(w, "cell.U_f.bias"), 2 * D);
	if (leaf) {
		look_up(x, w, s, node, w->E);
		add_product(a, weight_of(w, "cell.W_iou.weight"), 3 * D, w->E, x);
	} else {
		memcpy(x, s->h[child[0]], (size_t)D * sizeof *x);
		memcpy(x + D, s->h[child[1]], (size_t)D * sizeof *x);
		add_product(a, weight_of(w, "cell.U_iou.weight"), 3 * D, 2 * D, x);
		add_product(f, weight_of(w, "cell.U_f.weight"), 2 * D, 2 * D, x);
	}
	for (int i = 0; i < D; i++) {
		s->c[node][i] = logistic(a[i]) * tanh(a[2 * D + i]);
		for (int k = 0; k < 2 && !leaf; k++)
			s->c[node][i] += logistic(f[k * D + i]) * s->c[child[k]][i];
		s->h[node][i] = logistic(a[D + i]) * tanh(s->c[node][i]);
	}
}

/* The node before this one of a sequence; -1 = none. */
static inline int previous(const struct structure *s, int node)
{
	return s->begin[node] == s->begin[node + 1] ? -1 : s->children[s->begin[node]];
}

/* torch.nn.LSTM's documentation. */
static inline void lstm_cell(const struct weights *w, struct structure *s, int node)
{
	int D = w->D, before = previous(s, node);
	double x[MOST_E], a[4 * MOST_D], b[4 * MOST_D];
	look_up(x, w, s, node, w->E);
	set(a, weight_of(w, "lstm.bias_ih_l0"), 4 * D);
	set(b, weight_of(w, "lstm.bias_hh_l0"), 4 * D);
	add_product(a, weight_of(w, "lstm.weight_ih_l0"), 4 * D, w->E, x);
	if (before >= 0)
		add_product(a, weight_of(w, "lstm.weight_hh_l0"), 4 * D, D, s->h[before]);
	add(a, b, 4 * D);
	for (int i = 0; i < D; i++) {
		double c = before < 0 ? 0 : s->c[before][i];
		s->c[node][i] = logistic(a[D + i]) * c + logistic(a[i]) * tanh(a[2 * D + i]);
		s->h[node][i] = logistic(a[3 * D + i]) * tanh(s->c[node][i]);
	}
}

/* torch.nn.GRU's documentation. */
static inline void gru_cell(const struct weights *w, struct structure *s, int node)
{
	int D = w->D, before = previous(s, node);
	double x[MOST_E], a[3 * MOST_D], p[3 * MOST_D];
	vector_of(x, w, s, node);
	set(a, weight_of(w, "bias_ih_l0"), 3 * D);
	set(p, weight_of(w, "bias_hh_l0"), 3 * D);
	add_product(a, weight_of(w, "weight_ih_l0"), 3 * D, w->E, x);
	if (before >= 0)
		add_product(p, weight_of(w, "weight_hh_l0"), 3 * D, D, s->h[before]);
	for (int i = 0; i < D; i++) {
		double r = logistic(a[i] + p[i]), z = logistic(a[D + i] + p[D + i]);
		double n = tanh(a[2 * D + i] + r * p[2 * D + i]), h = before < 0 ? 0 : s->h[before][i];
		s->h[node][i] = (1 - z) * n + z * h;
	}
}

/* torch.nn.LSTM's documentation, over vectors. */
static inline void lstm_vectors_cell(const struct weights *w, struct structure *s, int node)
{
	int D = w->D, before = previous(s, node);
	double x[MOST_E], a[4 * MOST_D], b[4 * MOST_D];
	vector_of(x, w, s, node);
	set(a, weight_of(w, "bias_ih_l0"), 4 * D);
	set(b, weight_of(w, "bias_hh_l0"), 4 * D);
	add_product(a, weight_of(w, "weight_ih_l0"), 4 * D, w->E, x);
	if (before >= 0)
		add_product(a, weight_of(w, "weight_hh_l0"), 4 * D, D, s->h[before]);
	add(a, b, 4 * D);
	for (int i = 0; i < D; i++) {
		double c = before < 0 ? 0 : s->c[before][i];
		s->c[node][i] = logistic(a[D + i]) * c + logistic(a[i]) * tanh(a[2 * D + i]);
		s->h[node][i] = logistic(a[3 * D + i]) * tanh(s->c[node][i]);
	}
}

/* Cho et al. 2014, equations 5 to 8. */
static inline void gru_before_cell(const struct weights *w, struct structure *s, int node)
{
	static const char *const gates[] = {"_r", "_z"};
	int D = w->D, before = previous(s, node);
	double x[MOST_E], h[MOST_D] = {0}, a[2][MOST_D] = {0}, n[MOST_D] = {0}, reset[MOST_D];
	vector_of(x, w, s, node);
	if (before >= 0)
		memcpy(h, s->h[before], sizeof h);
	for (int g = 0; g < 2; g++) {
		add_product(a[g], gate_of(w, "W", gates[g]), D, w->E, x);
		add_product(a[g], gate_of(w, "U", gates[g]), D, D, h);
	}
	for (int i = 0; i < D; i++)
		reset[i] = logistic(a[0][i]) * h[i];
	add_product(n, weight_of(w, "W"), D, w->E, x);
	add_product(n, weight_of(w, "U"), D, D, reset);
	for (int i = 0; i < D; i++)
		s->h[node][i] = logistic(a[1][i]) * h[i] + (1 - logistic(a[1][i])) * tanh(n[i]);
}

/* --- the cells of bench/models: leaves are looked up, inner nodes read no word --- */

/* Whether the node is a leaf; then it has its states. */
static inline bool looked_up(const struct weights *w, struct structure *s, int node)
{
	if (s->begin[node] != s->begin[node + 1])
		return false;
	look_up(s->h[node], w, s, node, w->D);
	for (int i = 0; i < w->n; i++)
		if (strcmp(w->weight[i].name, "cell.weight") == 0)
			set(s->c[node], w->weight[i].at + s->word[node] * w->D, w->D);
	return true;
}

static inline void nary_lookup_cell(const struct weights *w, struct structure *s, int node)
{
	if (!looked_up(w, s, node))
		nary_inner(w, s, node);
}

static inline void childsum_lookup_cell(const struct weights *w, struct structure *s, int node)
{
	double sum[MOST_D], in[MOST_D], out[MOST_D], u[MOST_D], f[MOST_D], *c = s->c[node];
	if (looked_up(w, s, node))
		return;
	sum_children(sum, w, s, node);
	gate_sum(in, w, "i", NULL, sum);
	gate_sum(out, w, "o", NULL, sum);
	gate_sum(u, w, "u", NULL, sum);
	for (int i = 0; i < w->D; i++)
		c[i] = logistic(in[i]) * tanh(u[i]);
	for (int e = s->begin[node]; e < s->begin[node + 1]; e++) {
		gate_sum(f, w, "f", NULL, s->h[s->children[e]]);
		for (int i = 0; i < w->D; i++)
			c[i] += logistic(f[i]) * s->c[s->children[e]][i];
	}
	for (int i = 0; i < w->D; i++)
		s->h[node][i] = logistic(out[i]) * tanh(c[i]);
}

static inline void treegru_lookup_cell(const struct weights *w, struct structure *s, int node)
{
	if (!looked_up(w, s, node))
		treegru_cell(w, s, node);
}

static inline void simpletreegru_lookup_cell(const struct weights *w, struct structure *s, int node)
{
	if (!looked_up(w, s, node))
		simpletreegru_cell(w, s, node);
}

static inline void treernn_lookup_cell(const struct weights *w, struct structure *s, int node)
{
	if (!looked_up(w, s, node))
		treernn_cell(w, s, node);
}

/* relu(W (l + r) + b). */
static inline void treefc_sum_cell(const struct weights *w, struct structure *s, int node)
{
	double sum[MOST_D], *h = s->h[node];
	if (looked_up(w, s, node))
		return;
	sum_children(sum, w, s, node);
	set(h, weight_of(w, "b"), w->D);
	add_product(h, weight_of(w, "W"), w->D, w->D, sum);
	for (int i = 0; i < w->D; i++)
		h[i] = h[i] > 0 ? h[i] : 0;
}

/* States of a node and of all below it that have none. */
static inline void evaluate_below(cell *f, const struct weights *w, struct structure *s, int node, bool *done)
{
	if (done[node])
		return;
	for (int e = s->begin[node]; e < s->begin[node + 1]; e++)
		evaluate_below(f, w, s, s->children[e], done);
	f(w, s, node);
	done[node] = true;
}

/* States of all nodes. */
static inline void evaluate(cell *f, const struct weights *w, struct structure *s)
{
	bool done[MOST_NODES] = {false};
	for (int node = 0; node < s->nodes; node++)
		evaluate_below(f, w, s, node, done);
}

/* --- outputs: a row of a node from its states --- */

typedef int read_out(const struct weights *, const struct structure *, int node, double *y);

/* A layer over h: W h + b; without bias when `b` is NULL. */
static inline int layer(const struct weights *w, const struct structure *s, int node, const char *W,
			const char *b, double *y)
{
	int rows = 0;
	for (int i = 0; i < w->n; i++)
		rows = strcmp(w->weight[i].name, W) == 0 ? w->weight[i].shape[0] : rows;
	set(y, b ? weight_of(w, b) : NULL, rows);
	add_product(y, weight_of(w, W), rows, w->D, s->h[node]);
	return rows;
}

static inline int softmax(double *y, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += exp(y[i]);
	for (int i = 0; i < n; i++)
		y[i] = exp(y[i]) / sum;
	return n;
}

static inline int logits(const struct weights *w, const struct structure *s, int node, double *y)
{
	return layer(w, s, node, "output.weight", "output.bias", y);
}

static inline int dgl_logits(const struct weights *w, const struct structure *s, int node, double *y)
{
	return layer(w, s, node, "linear.weight", "linear.bias", y);
}

static inline int hidden(const struct weights *w, const struct structure *s, int node, double *y)
{
	memcpy(y, s->h[node], w->D * sizeof *y);
	return w->D;
}

static inline int sentiment(const struct weights *w, const struct structure *s, int node, double *y)
{
	return softmax(y, logits(w, s, node, y));
}

static inline int mvrnn_label(const struct weights *w, const struct structure *s, int node, double *y)
{
	return softmax(y, layer(w, s, node, "label.weight", NULL, y));
}

static inline int rntn_label(const struct weights *w, const struct structure *s, int node, double *y)
{
	return softmax(y, layer(w, s, node, "label.weight", "label.bias", y));
}

static inline int dagrnn_label(const struct weights *w, const struct structure *s, int node, double *y)
{
	return softmax(y, layer(w, s, node, "V", "c", y));
}

#endif
