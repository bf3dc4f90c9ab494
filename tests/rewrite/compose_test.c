/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Data movement beyond what model texts say: fills, maps of two variables, nop; what is made of them
 * (padding, convolution, pooling); by every variant of compiling and running. */
#include "tests/subop/run.h"

enum { NODES = 5 };

/* --- all variants --- */

static void fill_data(struct bench *b, struct data *d)
{
	static const int32_t begin[NODES + 1] = {0}, root[NODES] = {0, 1, 2, 3, 4},
					   order[NODES] = {0, 1, 2, 3, 4}, none[1];
	const void **data = ARENA_ARRAY(&b->arena, const void *, b->p.inputs.n + 1);
	*d = (struct data){{NODES, NODES, begin, none, root, order, data, NULL}, NULL, 0};
	for (size_t i = 0; i < b->p.inputs.n; i++) {
		int64_t n = NODES * row_of(&b->p.inputs.at[i].row);
		float *x = ARENA_ARRAY(&b->arena, float, n);
		for (int64_t e = 0; e < n; e++)
			x[e] = weight_at(100 + i, e);
		data[i] = x;
	}
	d->params = ARENA_ARRAY(&b->arena, const void *, b->p.params.n + 1);
	for (size_t i = 0; i < b->p.params.n; i++) {
		int64_t n = row_of(&b->p.params.at[i]);
		float *x = ARENA_ARRAY(&b->arena, float, n);
		read_weight(NULL, i, 0, n, x, NULL);
		d->params[i] = x;
	}
	d->results = count_results(&b->p, &d->forest);
}

static double distance(const double *expected, const float *got, int64_t n)
{
	double worst = got ? 0 : INFINITY;
	for (int64_t i = 0; got && i < n; i++) {
		double error =
		    expected[i] == got[i] ? 0 : fabs(expected[i] - got[i]) / (1 + fabs(expected[i]));
		worst = error > worst || isnan(error) ? error : worst;
	}
	return worst;
}

static void compare(struct bench *b, const struct data *d, const double *expected, const char *what)
{
	static const struct variant {
		bool compiled;
		const char *target, *last;
	} variants[] = {{false, "avx2", "infer_bounds"}, {false, "avx2", "split_loops"},
			{false, "avx2", "tile"},	 {false, "avx2", "sink"},
			{false, "generic", NULL},	 {false, "avx512", NULL},
			{true, "generic", NULL},	 {true, "native", NULL}};
	double worst = 0;
	float *first = NULL;
	bool same = true;
	for (size_t w = 0; w < sizeof variants / sizeof *variants; w++) {
		struct compiled c;
		float *got = NULL;
		if (variants[w].compiled && !backend_at(0))
			continue;
		if (compile_program(&c, &b->arena, &b->p, NULL,
				    variants[w].compiled ? usual_backend() : "interpreter",
				    variants[w].target, variants[w].last, &b->diags))
			got = run_compiled(&c, &b->arena, d, &b->diags);
		print_diags(&b->diags);
		diags_free(&b->diags);
		double far = distance(expected, got, d->results);
		if (!(far < 1e-5))
			printf("# %s, last pass %s: error %g\n", variants[w].target,
			       variants[w].last ? variants[w].last : "none", far);
		worst = far < worst ? worst : far;
		first = first ? first : got;
		same &= first && got && memcmp(first, got, d->results * sizeof *got) == 0;
	}
	tap_ok(worst < 1e-5, "%s: to %.1e of the oracle", what, worst);
	tap_ok(same, "%s: all variants give the same bits", what);
}

/* A state of some shape that holds the first input. */
static sub_ref make_grid(struct bench *b, const char *name, int rank, const int64_t *shape)
{
	sub_ref x = make_input(b, name, rank, shape), state = make_state(b, "grid", rank, shape);
	store_state(b, make_body(b, "leaf", SUB_LEAF), 0, x);
	store_state(b, make_body(b, "inner", SUB_INNER), 0, x);
	return state;
}

/* Checks the oracle against the expected values, if any, and every variant against the oracle. */
static void check(struct bench *b, const char *what,
		  double (*expected)(const struct data *, int64_t node, int64_t element))
{
	struct data d;
	b->p.children = -1;
	fill_data(b, &d);
	bool ok = sub_verify(&b->p, &b->diags);
	print_diags(&b->diags);
	if (!tap_ok(ok, "%s: verified", what))
		return;
	double *all = evaluate(&b->p, SUB_BINARY64, &d, &b->arena), worst = 0;
	for (int64_t i = 0; expected && i < d.results; i++) {
		double x = expected(&d, i / (d.results / NODES), i % (d.results / NODES));
		worst = fmax(worst, x == all[i] ? 0 : fabs(x - all[i]));
	}
	tap_ok(worst < 1e-12, "%s: the oracle is right to %.1e", what, worst);
	compare(b, &d, all, what);
}

static sub_ref add(struct bench *b, struct sub_value v)
{
	return sub_add(&b->p, v, &b->diags);
}

static void output(struct bench *b, sub_ref r)
{
	make_output(b, make_body(b, "output", SUB_EVERY_NODE), "y", r, false);
}

/* --- padding --- */

static double padded(const struct data *d, int64_t node, int64_t e)
{
	const float *x = d->forest.data[0];
	int64_t i = e / 9 - 1, j = e % 9 - 2;
	return i < 0 || i >= 3 || j < 0 || j >= 4 ? 7 : -x[12 * node + 4 * i + j];
}

/* One row above and below, two columns to the left and three to the right. */
static void test_pad(void)
{
	struct bench b;
	bench_open(&b);
	sub_ref x = unary_of(&b, SUB_NEG, make_grid(&b, "x", SHAPE(3, 4)));
	int i = sub_dim(&b.p, 5, 0), j = sub_dim(&b.p, 9, 0);
	struct sub_value v = move_of(&b, SUB_ASSIGN, x, VARS(b.p.node, i, j));
	struct sub_map *map = new_maps(&b, &v);
	map[0] = map_of(b.p.node, 1, 0), map[1] = map_of(i, 1, -1), map[2] = map_of(j, 1, -2);
	struct sub_value open = v;
	v.fills = true, v.fill = 7;
	sub_ref y = add(&b, v);
	v.fill = 8;
	tap_ok(add(&b, v).i != y.i, "another fill is another value");
	v.fill = 7, map[2].offset = -3;
	tap_ok(add(&b, v).i != y.i, "another map is another value");
	struct str s = str_in(&b.arena);
	output(&b, y);
	sub_print(&b.p, &s);
	tap_ok(strstr(s.text, "-1,") && strstr(s.text, "-2] fill 7"), "a fill is printed");
	check(&b, "pad", padded);
	struct bench c = b;
	diags_free(&b.diags);
	add(&c, open);
	tap_ok(!sub_verify(&c.p, &b.diags) && strstr(b.diags.at[0].message, "outside its dimension"),
	       "without a fill it is refused");
	bench_close(&b);
}

static double reversed(const struct data *d, int64_t node, int64_t e)
{
	const float *x = d->forest.data[0];
	int64_t at = 12 - 2 * e;
	return at < 0 || at >= 11 ? -1 : x[11 * node + at];
}

/* Every second one, from the end, and beyond both ends. */
static void test_reverse(void)
{
	struct bench b;
	bench_open(&b);
	sub_ref x = make_grid(&b, "x", SHAPE(11));
	int i = sub_dim(&b.p, 9, 0);
	struct sub_value v = move_of(&b, SUB_ASSIGN, x, VARS(b.p.node, i));
	struct sub_map *map = new_maps(&b, &v);
	map[0] = map_of(b.p.node, 1, 0), map[1] = map_of(i, -2, 12);
	v.fills = true, v.fill = -1;
	output(&b, add(&b, v));
	check(&b, "reverse", reversed);
	bench_close(&b);
}

/* --- convolution and pooling --- */

enum { CHANNELS = 2, HEIGHT = 5, WIDTH = 6, FILTERS = 3 };

struct window {
	int size, stride, pad;
	int rows, columns; /* of the result */
};

static const struct window plain = {3, 1, 0, 3, 4}, same_size = {3, 1, 1, 5, 6}, strided = {2, 2, 1, 3, 4};
static const struct window *window;

/* x[n, c, stride*i + p - pad, stride*j + q - pad] as [n, c, i, j, p, q]. */
static sub_ref windows_of(struct bench *b, sub_ref x, double fill, int *var)
{
	const struct window *w = window;
	int c = sub_dim(&b->p, CHANNELS, 7), i = sub_dim(&b->p, w->rows, 8),
	    j = sub_dim(&b->p, w->columns, 9);
	int p = sub_dim(&b->p, w->size, 10), q = sub_dim(&b->p, w->size, 11);
	struct sub_value v = move_of(b, SUB_ASSIGN, x, VARS(b->p.node, c, i, j, p, q));
	memcpy(var, (int[]){c, i, j, p, q}, 5 * sizeof *var);
	struct sub_map *map = new_maps(b, &v);
	map[0] = map_of(b->p.node, 1, 0), map[1] = map_of(c, 1, 0);
	map[2] = map_of_two(i, w->stride, p, 1, -w->pad);
	map[3] = map_of_two(q, 1, j, w->stride, -w->pad);
	v.fills = w->pad > 0, v.fill = fill;
	return add(b, v);
}

static bool element_of(const struct data *d, int64_t node, int64_t c, int64_t i, int64_t j, double *x)
{
	if (i < 0 || i >= HEIGHT || j < 0 || j >= WIDTH)
		return false;
	*x = ((const float *)d->forest.data[0])[((node * CHANNELS + c) * HEIGHT + i) * WIDTH + j];
	return true;
}

static double convolved(const struct data *d, int64_t node, int64_t e)
{
	const struct window *w = window;
	int64_t f = e / w->columns / w->rows, i = e / w->columns % w->rows, j = e % w->columns;
	double sum = 0, x;
	for (int64_t c = 0; c < CHANNELS; c++)
		for (int p = 0; p < w->size; p++)
			for (int q = 0; q < w->size; q++)
				if (element_of(d, node, c, w->stride * i + p - w->pad,
					       w->stride * j + q - w->pad, &x))
					sum +=
					    x *
					    ((const float *)
						 d->params[0])[((f * CHANNELS + c) * w->size + p) * w->size +
							       q];
	return sum;
}

static void test_convolution(const struct window *w, const char *what)
{
	struct bench b;
	int v[5];
	bench_open(&b);
	window = w;
	sub_ref x = make_grid(&b, "x", SHAPE(CHANNELS, HEIGHT, WIDTH));
	sub_ref weights = make_param(&b, "W", SHAPE(FILTERS, CHANNELS, w->size, w->size));
	sub_ref windows = windows_of(&b, x, 0, v);
	int f = sub_dim(&b.p, FILTERS, 6);
	struct sub_use kernel = named(&b, weights, VARS(f, v[0], v[3], v[4]));
	struct sub_use image = named(&b, windows, VARS(b.p.node, v[0], v[1], v[2], v[3], v[4]));
	/* one order of all variables: filters before channels, places of the window last */
	struct sub_value turned =
	    move_of(&b, SUB_ASSIGN, windows, VARS(b.p.node, v[1], v[2], v[0], v[3], v[4]));
	struct sub_map *map = new_maps(&b, &turned);
	for (int i = 0; i < 6; i++)
		map[i] = map_of(image.var[i], 1, 0);
	sub_ref y = binary_of(&b, SUB_MULTIPLY, sub_as_is(&b.p, add(&b, turned)), kernel);
	for (int i = 0; i < 3; i++)
		y = reduce_of(&b, SUB_SUM, y, (int[]){v[4], v[3], v[0]}[i]);
	struct sub_value out = move_of(&b, SUB_ASSIGN, y, VARS(b.p.node, f, v[1], v[2]));
	map = new_maps(&b, &out);
	for (int i = 0; i < sub_at(&b.p, y)->vars; i++)
		map[i] = map_of(sub_at(&b.p, y)->var[i], 1, 0);
	output(&b, add(&b, out));
	check(&b, what, convolved);
	bench_close(&b);
}

static double pooled(const struct data *d, int64_t node, int64_t e)
{
	const struct window *w = window;
	int64_t c = e / w->columns / w->rows, i = e / w->columns % w->rows, j = e % w->columns;
	double most = -INFINITY, x;
	for (int p = 0; p < w->size; p++)
		for (int q = 0; q < w->size; q++)
			if (element_of(d, node, c, w->stride * i + p - w->pad, w->stride * j + q - w->pad,
				       &x))
				most = fmax(most, x);
	return most;
}

static double pooled_exp(const struct data *d, int64_t node, int64_t e)
{
	return exp(pooled(d, node, e));
}

/* Values are negative or not: only the right fill is never the largest. */
static void test_pooling(const struct window *w, bool expensive, const char *what)
{
	struct bench b;
	int v[5];
	bench_open(&b);
	window = w;
	sub_ref x = make_grid(&b, "x", SHAPE(CHANNELS, HEIGHT, WIDTH));
	sub_ref y = windows_of(&b, expensive ? unary_of(&b, SUB_EXP, x) : x, expensive ? 0 : -INFINITY, v);
	y = reduce_of(&b, SUB_MAX, reduce_of(&b, SUB_MAX, y, v[4]), v[3]);
	output(&b, y);
	check(&b, what, expensive ? pooled_exp : pooled);
	bench_close(&b);
}

/* --- nop --- */

static double negated(const struct data *d, int64_t node, int64_t e)
{
	return -((const float *)d->forest.data[0])[24 * node + e];
}

static void test_nop(void)
{
	struct bench b;
	bench_open(&b);
	sub_ref x = make_grid(&b, "x", SHAPE(2, 3, 4));
	output(&b, unary_of(&b, SUB_NOP, unary_of(&b, SUB_NEG, x)));
	check(&b, "nop", negated);
	bench_close(&b);
}

/* --- choices inside of a reduction --- */

/* sum_k pad_i(-u[i] + v[k]): the side that must not be computed outside has parts that do not depend on k. */
static double guarded(const struct data *d, int64_t node, int64_t e)
{
	const float *u = d->forest.data[0], *v = d->forest.data[1];
	double sum = 0;
	for (int k = 0; k < 5; k++)
		sum +=
		    (e < 1 || e > 3 ? 9.0 : -(double)u[3 * node + e - 1] + v[5 * node + k]) * v[5 * node + k];
	return sum;
}

static void test_guards(void)
{
	struct bench b;
	bench_open(&b);
	sub_ref u = make_grid(&b, "u", SHAPE(3)), v = make_input(&b, "v", SHAPE(5));
	int n = b.p.node, i = sub_dim(&b.p, 6, 0), k = sub_dim(&b.p, 5, 0);
	sub_ref sum = binary_of(&b, SUB_ADD, sub_as_is(&b.p, unary_of(&b, SUB_NEG, u)), sub_as_is(&b.p, v));
	struct sub_value pad = move_of(&b, SUB_ASSIGN, sum, VARS(n, i, k));
	struct sub_map *map = new_maps(&b, &pad);
	map[0] = map_of(n, 1, 0), map[1] = map_of(i, 1, -1), map[2] = map_of(k, 1, 0);
	pad.fills = true, pad.fill = 9;
	sub_ref product = binary_of(&b, SUB_MULTIPLY, sub_as_is(&b.p, add(&b, pad)), sub_as_is(&b.p, v));
	output(&b, reduce_of(&b, SUB_SUM, product, k));
	check(&b, "a choice inside of a sum", guarded);
	bench_close(&b);
}

int main(void)
{
	test_pad();
	test_reverse();
	test_convolution(&plain, "convolution");
	test_convolution(&same_size, "convolution that keeps the size");
	test_convolution(&strided, "convolution in strides");
	test_pooling(&same_size, false, "max-pool");
	test_pooling(&strided, false, "max-pool in strides");
	test_pooling(&same_size, true, "max-pool of exponentials");
	test_nop();
	test_guards();
	return tap_done();
}
