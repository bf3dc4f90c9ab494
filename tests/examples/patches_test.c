/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The example of patches against its equations, written out as loops: convolutions and pooling with zeros, or
 * nothing, around an image. */
#include "tests/models/helper.h"

enum { C = 3, H = 9, X = 6, F = 5, G = 4, D = 17, L = 3 };
enum { H1 = (H + 1) / 2, X1 = (X + 1) / 2, H2 = (H + 3) / 4, X2 = (X + 3) / 4 };

static const char sizes[] = "C=3 H=9 X=6 F=5 G=4 D=17 L=3";

struct network {
	const struct test_model *model;
	const struct test_forest *forest;
	double (*h)[D];
};

static double weight(const struct network *n, const char *name, int64_t element)
{
	const struct ra_model *m = n->model->model;
	for (size_t i = 0; i < m->params.n; i++)
		if (strcmp(m->params.at[i].name, name) == 0)
			return weight_at((int)i, element);
	return NAN;
}

/* An element of an image with some rows and columns; `outside` where it has none. */
static double pixel(const double *x, int rows, int columns, int c, int i, int j, double outside)
{
	return i < 0 || i >= rows || j < 0 || j >= columns ? outside : x[(c * rows + i) * columns + j];
}

static void convolve(const struct network *n, const char *layer, const double *x, int channels, int rows, int columns,
		     int out, double *y)
{
	char W[40], b[40];
	snprintf(W, sizeof W, "%s.weight", layer);
	snprintf(b, sizeof b, "%s.bias", layer);
	for (int k = 0; k < out; k++)
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < columns; j++) {
				double sum = weight(n, b, k);
				for (int c = 0; c < channels; c++)
					for (int u = 0; u < 3; u++)
						for (int v = 0; v < 3; v++)
							sum += weight(n, W, ((k * channels + c) * 3 + u) * 3 + v) *
							       pixel(x, rows, columns, c, i + u - 1, j + v - 1, 0);
				y[(k * rows + i) * columns + j] = sum > 0 ? sum : 0;
			}
}

static void pool(const double *x, int channels, int rows, int columns, double *y)
{
	for (int c = 0; c < channels; c++)
		for (int i = 0; i < (rows + 1) / 2; i++)
			for (int j = 0; j < (columns + 1) / 2; j++) {
				double most = -INFINITY;
				for (int u = -1; u < 2; u++)
					for (int v = -1; v < 2; v++)
						most = fmax(most, pixel(x, rows, columns, c, 2 * i + u,
									2 * j + v, -INFINITY));
				*y++ = most;
			}
}

static void compute_leaf(const struct network *n, int node)
{
	static double x[C * H * X], first[F * H * X], small[F * H1 * X1], second[G * H1 * X1], smaller[G * H2 * X2];
	for (int e = 0; e < C * H * X; e++)
		x[e] = ((const float *)n->forest->data[0])[(int64_t)node * C * H * X + e];
	convolve(n, "conv1", x, C, H, X, F, first);
	pool(first, F, H, X, small);
	convolve(n, "conv2", small, F, H1, X1, G, second);
	pool(second, G, H1, X1, smaller);
	for (int d = 0; d < D; d++) {
		double sum = weight(n, "leaf.bias", d);
		for (int e = 0; e < G * H2 * X2; e++)
			sum += weight(n, "leaf.weight", (int64_t)d * G * H2 * X2 + e) * smaller[e];
		n->h[node][d] = tanh(sum);
	}
}

static void compute_inner(const struct network *n, int node, const int32_t *child)
{
	for (int d = 0; d < D; d++) {
		double sum = weight(n, "merge.bias", d);
		for (int e = 0; e < D; e++)
			sum += weight(n, "merge.W_left", d * D + e) * n->h[child[0]][e] +
			       weight(n, "merge.W_right", d * D + e) * n->h[child[1]][e];
		n->h[node][d] = tanh(sum);
	}
}

static void find_label(const struct network *n, int node, double *label)
{
	double total = 0;
	for (int l = 0; l < L; l++) {
		double sum = weight(n, "label.bias", l);
		for (int d = 0; d < D; d++)
			sum += weight(n, "label.weight", l * D + d) * n->h[node][d];
		total += label[l] = exp(sum);
	}
	for (int l = 0; l < L; l++)
		label[l] /= total;
}

/* The greatest distance of any label from what the loops give. */
static double worst_error(const struct network *n, const double *labels)
{
	const struct lin_forest *f = &n->forest->minibatch.forest;
	double worst = 0;
	for (int node = 0; node < n->forest->nodes; node++) {
		double expected[L];
		if (f->child_begin[node] == f->child_begin[node + 1])
			compute_leaf(n, node);
		else
			compute_inner(n, node, f->children + f->child_begin[node]);
		find_label(n, node, expected);
		for (int l = 0; l < L; l++)
			worst = fmax(worst, fabs(expected[l] - labels[node * L + l]));
	}
	return worst;
}

/* Runs the model; returns its labels, which the caller frees. */
static double *run_model(const struct test_model *model, const char *backend, struct test_forest *forest, double *error)
{
	struct option_texts o = {.backend = backend};
	struct test_run r;
	double *labels = NULL;
	int64_t count;
	if (start_run(&r, model, &o)) {
		make_forest(forest, &r.image, 3, 12);
		struct network n = {.model = model, .forest = forest};
		n.h = arena_take(&r.arena, (size_t)forest->nodes, sizeof *n.h);
		if (run_forest(&r, &forest->minibatch))
			labels = gather_outputs(&r, forest->nodes, forest->minibatch.forest.inputs, &count);
		*error = labels ? worst_error(&n, labels) : INFINITY;
	}
	end_run(&r);
	return labels;
}

int main(void)
{
	static const char *const backends[] = {"interpreter", "llvm", "gccjit"};
	struct test_model model;
	struct test_forest forest;
	double *first = NULL;
	if (!tap_ok(load_model(&model, "examples/patches/patches.ra", sizes), "the model is read"))
		return tap_done();
	for (int b = 0; b < 3; b++) {
		double error = INFINITY;
		if (b > 0 && !has_backend(backends[b])) {
			tap_skip("it is not built", "%s", backends[b]);
			continue;
		}
		random_state = 11;
		double *labels = run_model(&model, backends[b], &forest, &error);
		tap_ok(error < 1e-5, "%s: as the loops, to %.2g", backends[b], error);
		if (first)
			tap_ok(labels && memcmp(labels, first, (size_t)forest.nodes * L * sizeof *labels) == 0,
			       "%s: the interpreter's bits", backends[b]);
		if (first)
			free(labels);
		else
			first = labels;
		free_forest(&forest);
	}
	free(first);
	free_model(&model);
	return tap_done();
}
