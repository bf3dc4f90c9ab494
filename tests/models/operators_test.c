/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* No operator is for show: for each sub-operator, and each operator of model texts, there is a model here
 * that needs it. What the compiled model gives is compared with the formula written in C, apart from any
 * lowering. */
#include "tests/models/agree.h"

#include "base/convert.h"
#include "jit/jit.h"

enum { D = 5, V = 7 };

/* An inner node: its vector x, the rows h of its children, parameters.  Or one below another, with the row of
 * its parent in place of the left child's. */
struct place {
	const double *x;
	const double *h[2];
	double P[D], W[D][D], E[V][D];
	int word;
};

typedef double formula(const struct place *, int i);

/* --- the formulas of element i of an inner node's h --- */

#define FORMULA(name, value)                                                                                 \
	static double name(const struct place *p, int i)                                                     \
	{                                                                                                    \
		const double *l = p->h[0], *r = p->h[1], *x = p->x;                                          \
		(void)l, (void)r, (void)x, (void)i;                                                          \
		return value;                                                                                \
	}

static double sum_of(const double *v)
{
	double sum = 0;
	for (int i = 0; i < D; i++)
		sum += v[i];
	return sum;
}

static double sum_before(const double *v, int last)
{
	double sum = 0;
	for (int i = 0; i <= last; i++)
		sum += v[i];
	return sum;
}

static double product_of(const double *v)
{
	double all = 1;
	for (int i = 0; i < D; i++)
		all *= v[i];
	return all;
}

static double most_of(const double *v)
{
	double most = v[0];
	for (int i = 1; i < D; i++)
		most = fmax(most, v[i]);
	return most;
}

static const double *negated(const double *v)
{
	static double minus[D];
	for (int i = 0; i < D; i++)
		minus[i] = -v[i];
	return minus;
}

static int place_of_most(const double *v)
{
	int place = 0;
	while (v[place] != most_of(v))
		place++;
	return place;
}

static double product(const double *row, const double *v)
{
	double sum = 0;
	for (int i = 0; i < D; i++)
		sum += row[i] * v[i];
	return sum;
}

static double logistic(double x)
{
	return 1 / (1 + exp(-x));
}

FORMULA(constant, l[i] + 0.375)
FORMULA(zeros, l[i] * 0.5)
FORMULA(extent, l[i] / D)
FORMULA(param, l[i] * p->P[i])
FORMULA(input, l[i] + x[i])
FORMULA(child, 0.5 * r[i] - l[i])
FORMULA(negation, -l[i])
FORMULA(addition, l[i] + r[i])
FORMULA(subtraction, l[i] - r[i])
FORMULA(multiplication, l[i] * r[i])
FORMULA(multiply_add, l[i] * r[i] + x[i])
FORMULA(division, l[i] / (2 + r[i] * r[i]))
FORMULA(absolute, fabs(l[i]) - fabs(x[i]))
FORMULA(exponential, exp(0.5 * l[i]))
FORMULA(logarithm, log(1 + l[i] * l[i]))
FORMULA(logarithm_above_1, log1p(1e-4 * l[i] * l[i]))
FORMULA(error_function, erf(l[i] - x[i]))
FORMULA(root, sqrt(1 + l[i] * l[i]))
FORMULA(sigmoid, logistic(l[i] - x[i]))
FORMULA(hyperbolic, tanh(l[i] + x[i]))
FORMULA(larger, fmax(l[i], r[i]))
FORMULA(smaller, fmin(l[i], r[i]))
FORMULA(less, l[i] < r[i] ? l[i] : r[i] + x[i])
FORMULA(less_equal, l[i] <= x[i] ? 1 : l[i])
FORMULA(equal, l[i] == r[i] ? x[i] : l[i])
FORMULA(both, l[i] > 0 && r[i] > 0 ? l[i] : x[i])
FORMULA(either, l[i] > 0 || r[i] > 0 ? l[i] : x[i])
FORMULA(neither, l[i] > 0 ? x[i] : l[i])
FORMULA(truncated, 0.1 * trunc(30 * x[i]) + l[i])
FORMULA(rounded, 0.1 * nearbyint(30 * x[i]) + l[i])
FORMULA(lowered, 0.1 * floor(30 * x[i]) + l[i])
FORMULA(sine, sin(5 * l[i]))
FORMULA(cosine, cos(5 * l[i]))
FORMULA(arc_tangent, atan(2 * l[i] - x[i]))
FORMULA(quotient, 0.1 * trunc(trunc(60 * l[i]) / (trunc(5 * x[i]) == 0 ? INFINITY : trunc(5 * x[i]))) + x[i])
FORMULA(place_of_least, x[i] + 0.1 * place_of_most(negated(l)))
FORMULA(summed, x[i] + 0.25 * sum_of(l))
FORMULA(largest, x[i] + most_of(l))
FORMULA(least, x[i] - most_of(negated(l)))
FORMULA(multiplied, x[i] + product_of(l))
FORMULA(sums_before, x[i] + 0.25 * sum_before(l, i))
FORMULA(place, x[i] + 0.1 * place_of_most(l))
FORMULA(matrix, product(p->W[i], l))
FORMULA(lookup, l[i] + p->E[p->word][i])
FORMULA(slice, i < D - 1 ? l[i + 1] : r[0])
FORMULA(row, l[i] * p->E[2][i])
FORMULA(joined, i < 2 ? r[i + 3] : l[i - 2])
FORMULA(shifted, (i > 0 ? l[i - 1] : 0.5) + x[i])
FORMULA(largest_near, fmax(l[i], fmax(l[i > 0 ? i - 1 : i], l[i < D - 1 ? i + 1 : i])))
FORMULA(reversed, l[D - 1 - i] * x[i])
FORMULA(pairs,
	0.5 * ((2 * i < D ? l[2 * i] : r[2 * i - D]) + (2 * i + 1 < D ? l[2 * i + 1] : r[2 * i + 1 - D])))
FORMULA(gathered, x[i] - l[(int)fmin(fmax(trunc(3 + 10 * r[i]), 0), D - 1)])
FORMULA(child_sum, 0.5 * (l[i] + r[i]) + x[i])
FORMULA(child_max, fmax(l[i] * l[i], r[i] * r[i]))
FORMULA(parent, 0.5 * l[i] - x[i])
FORMULA(parent_sum, 0.5 * l[i] + x[i])
FORMULA(parent_max, l[i] * l[i])

static double transposed(const struct place *p, int i)
{
	double sum = 0;
	for (int k = 0; k < D; k++)
		sum += p->W[k][i] * p->h[0][k];
	return sum;
}

static double clamp(double x, double low, double high)
{
	return fmin(fmax(x, low), high);
}

static double byte_products(const struct place *p, int i)
{
	double sum = 0;
	for (int k = 0; k < D; k++)
		sum += trunc(clamp(300 * p->W[i][k], -128, 127)) * trunc(clamp(300 * p->h[0][k], 0, 255));
	return 1e-5 * sum;
}

static double half_products(const struct place *p, int i)
{
	double sum = 0;
	for (int k = 0; k < D; k++)
		sum +=
		    trunc(clamp(3000 * p->W[i][k], -999, 999)) * trunc(clamp(3000 * p->h[0][k], -999, 999));
	return 1e-7 * sum;
}

/* By 16 rows of weights. */
static double limb_products(const struct place *p, int i)
{
	double sum = 0;
	for (int row = 0; row < 16; row++)
		for (int k = 0; k < D; k++)
			sum += trunc(clamp(3000 * weight_at(0, row * D + k), -999, 999)) * trunc(clamp(3000 * p->h[0][k], -999, 999));
	return p->x[i] + 1e-7 * sum;
}

static double bf16_products(const struct place *p, int i)
{
	double sum = 0;
	for (int k = 0; k < D; k++)
		sum += (double)f32_of_bf16(bf16_of_f32((float)p->W[i][k])) *
		       f32_of_bf16(bf16_of_f32((float)p->h[0][k]));
	return sum;
}

/* A number in two bf16: the first one, or what is left of it. */
static double take_part(double x, bool rest)
{
	double first = f32_of_bf16(bf16_of_f32((float)x));
	return rest ? f32_of_bf16(bf16_of_f32((float)x - (float)first)) : first;
}

static double split_products(const struct place *p, int i)
{
	double sum = 0;
	for (int k = 0; k < D; k++) {
		double w = p->W[i][k], x = p->h[0][k];
		sum += take_part(w, false) * (take_part(x, false) + take_part(x, true)) + take_part(w, true) * take_part(x, false);
	}
	return sum;
}

/* Of integers of two bytes, without the products of both low ones; a row's largest weight is 32639. */
static double three_products(const struct place *p, int i)
{
	double largest = 0, sum = 0;
	for (int k = 0; k < D; k++)
		largest = fmax(largest, fabs(p->W[i][k]));
	for (int k = 0; k < D; k++) {
		double w = rint(p->W[i][k] * 32639 / largest), x = rint(clamp(p->h[0][k], -1, 1) * 32639);
		double low_w = w - 256 * floor((w + 128) / 256), low_x = x - 256 * floor((x + 128) / 256);
		sum += w * x - low_w * low_x;
	}
	return sum * largest / 32639 / 32639;
}

/* By a row's scale; the products of even and odd columns are two sums, of one block. */
static double f16_products(const struct place *p, int i)
{
	float total = 0, scale;
	uint16_t sum[2] = {0, 0};
	for (int k = 0; k < D; k++)
		total += fabsf((float)p->W[i][k]);
	scale = total / 16384;
	for (int k = 0; k < D; k++)
		sum[k % 2] = fma_f16(f16_of_f32((float)p->W[i][k] / scale), f16_of_f32((float)clamp(p->h[0][k], -1, 1)), sum[k % 2]);
	return (double)f32_of_f16(fma_f16(sum[0], 0x3c00, sum[1])) * scale;
}

/* --- the models --- */

#define BYTE_PRODUCTS                                                                                        \
	"1e-5 * cast(cast(minimum(maximum(300 * W, -128), 127), i32) @ cast(minimum(maximum(300 * left.h, "  \
	"0), 255), i32), f32)"
#define HALF_PRODUCTS                                                                                        \
	"1e-7 * cast(cast(minimum(maximum(3000 * W, -999), 999), i32) @ cast(minimum(maximum(3000 * "        \
	"left.h, -999), 999), i32), f32)"
#define LIMB_PRODUCTS                                                                                        \
	"x + 1e-7 * sum(cast(cast(minimum(maximum(3000 * Q, -999), 999), i32) @ cast(minimum(maximum(3000 * " \
	"left.h, -999), 999), i32), f32))"

/* `text` is h of an inner node; of the operators that its sub-operators make it up from, `needs` is the one
 * it is about. */
static const struct row {
	enum ra_op about;
	enum sub_op needs;
	const char *text;
	formula *expected;
} rows[] = {
    {RA_CONST, SUB_CONST, "left.h + 0.375", constant},
    {RA_ZERO, SUB_ASSIGN, "0.5 * left.h + zeros(D)", zeros},
    {RA_EXTENT, SUB_CONST, "left.h / extent(left.h)", extent},
    {RA_PARAM, SUB_PARAM, "left.h * P", param},
    {RA_INPUT, SUB_VECTOR, "left.h + x", input},
    {RA_LOOKUP, SUB_ASSIGN, "left.h + E[word]", lookup},
    {RA_CHILD, SUB_STATE, "0.5 * right.h - left.h", child},
    {RA_NEG, SUB_NEG, "-left.h", negation},
    {RA_ADD, SUB_ADD, "left.h + right.h", addition},
    {RA_SUB, SUB_NEG, "left.h - right.h", subtraction},
    {RA_MUL, SUB_MULTIPLY, "left.h * right.h", multiplication},
    {RA_DIV, SUB_DIVIDE, "left.h / (2 + right.h * right.h)", division},
    {RA_MATMUL, SUB_SUM, "W @ left.h", matrix},
    {RA_MATMUL, SUB_ACCUMULATE, "W @ left.h", matrix},
    {RA_MATMUL, SUB_ACCUMULATE4, BYTE_PRODUCTS, byte_products},
    {RA_MATMUL, SUB_APPEND8, BYTE_PRODUCTS, byte_products},
    {RA_MATMUL, SUB_ACCUMULATE2, HALF_PRODUCTS, half_products},
    {RA_MATMUL, SUB_APPEND16, HALF_PRODUCTS, half_products},
    {RA_MATMUL, SUB_DROP8, LIMB_PRODUCTS, limb_products},
    {RA_MATMUL, SUB_LOW8, "I @ minimum(maximum(left.h, -1), 1)", three_products},
    {RA_MATMUL, SUB_BF16_BITS, "B @ left.h", bf16_products},
    {RA_MATMUL, SUB_ACCUMULATE_BF16, "B @ left.h", bf16_products},
    {RA_MATMUL, SUB_ACCUMULATE_BF16_BLOCK, "Y @ left.h", bf16_products},
    {RA_MATMUL, SUB_BF16_REST, "Z @ left.h", split_products},
    {RA_MATMUL, SUB_F16_BITS, "H @ minimum(maximum(left.h, -1), 1)", f16_products},
    {RA_MATMUL, SUB_ACCUMULATE_F16, "H @ minimum(maximum(left.h, -1), 1)", f16_products},
    {RA_MUL, SUB_FMA, "left.h * right.h + x", multiply_add},
    {RA_MAXIMUM, SUB_SMAX, "maximum(left.h, right.h)", larger},
    {RA_MINIMUM, SUB_SMIN, "minimum(left.h, right.h)", smaller},
    {RA_LESS, SUB_LESS, "where(left.h < right.h, left.h, right.h + x)", less},
    {RA_GREATER, SUB_LESS, "where(right.h > left.h, left.h, right.h + x)", less},
    {RA_LESS_EQUAL, SUB_LESS_EQUAL, "where(left.h <= x, 1, left.h)", less_equal},
    {RA_GREATER_EQUAL, SUB_LESS_EQUAL, "where(x >= left.h, 1, left.h)", less_equal},
    {RA_EQUAL, SUB_EQUALS, "where(left.h == right.h, x, left.h)", equal},
    {RA_UNEQUAL, SUB_EQUALS, "where(left.h != right.h, left.h, x)", equal},
    {RA_AND, SUB_AND, "where(left.h > 0 and right.h > 0, left.h, x)", both},
    {RA_OR, SUB_OR, "where(left.h > 0 or right.h > 0, left.h, x)", either},
    {RA_NOT, SUB_NOT, "where(not left.h > 0, left.h, x)", neither},
    {RA_WHERE, SUB_SELECT, "where(left.h > 0, x, left.h)", neither},
    {RA_CAST, SUB_CAST, "0.1 * cast(cast(30 * x, i32), f32) + left.h", truncated},
    {RA_ROUND, SUB_ROUND, "0.1 * round(30 * x) + left.h", rounded},
    {RA_FLOOR, SUB_FLOOR, "0.1 * floor(30 * x) + left.h", lowered},
    {RA_SIN, SUB_SIN, "sin(5 * left.h)", sine},
    {RA_COS, SUB_COS, "cos(5 * left.h)", cosine},
    {RA_ATAN, SUB_ATAN, "atan(2 * left.h - x)", arc_tangent},
    {RA_QUOTIENT, SUB_QUOTIENT, "0.1 * cast(quotient(cast(60 * left.h, i32), cast(5 * x, i32)), f32) + x",
     quotient},
    {RA_MIN, SUB_MIN, "x + min(left.h)", least},
    {RA_ARGMAX, SUB_INDEX, "x + 0.1 * cast(argmax(left.h), f32)", place},
    {RA_ARGMIN, SUB_INDEX, "x + 0.1 * cast(argmin(left.h), f32)", place_of_least},
    {RA_ABS, SUB_ABS, "abs(left.h) - abs(x)", absolute},
    {RA_EXP, SUB_EXP, "exp(0.5 * left.h)", exponential},
    {RA_LOG, SUB_LOG, "log(1 + left.h * left.h)", logarithm},
    {RA_LOG1P, SUB_LOG1P, "log1p(1e-4 * left.h * left.h)", logarithm_above_1},
    {RA_ERF, SUB_ERF, "erf(left.h - x)", error_function},
    {RA_SQRT, SUB_SQRT, "sqrt(1 + left.h * left.h)", root},
    {RA_SIGMOID, SUB_SIGMOID, "sigmoid(left.h - x)", sigmoid},
    {RA_TANH, SUB_TANH, "tanh(left.h + x)", hyperbolic},
    {RA_SUM, SUB_SUM, "x + 0.25 * sum(left.h)", summed},
    {RA_MAX, SUB_MAX, "x + max(left.h)", largest},
    {RA_PROD, SUB_PROD, "x + prod(left.h)", multiplied},
    {RA_CUMSUM, SUB_SUM, "x + 0.25 * cumsum(left.h)", sums_before},
    {RA_SLICE, SUB_ASSIGN, "concat(left.h[1:], right.h[:1])", slice},
    {RA_ROW, SUB_ASSIGN, "left.h * E[2]", row},
    {RA_CONCAT, SUB_COND, "concat(right.h, left.h)[3:3 + D]", joined},
    {RA_TRANSPOSE, SUB_ASSIGN, "transpose(W) @ left.h", transposed},
    {RA_RESHAPE, SUB_ASSIGN, "0.5 * sum(reshape(concat(left.h, right.h), D, 2))", pairs},
    {RA_GATHER, SUB_GATHER, "(y[i] = x[i] - left.h[cast(3 + 10 * right.h[i], i32)]; y)", gathered},
    {RA_CHILD_SUM, SUB_SUM, "sum(0.5 * k.h for k in children) + x", child_sum},
    {RA_CHILD_MAX, SUB_MAX, "max(k.h * k.h for k in children)", child_max},
    {RA_ELEMENT, SUB_ASSIGN, "(y[i] = (left.h[i - 1] else 0.5) + x[i]; y)", shifted},
    {RA_SUM_OVER, SUB_SUM, "(y[i] = sum(W[u, i] * left.h[u] for u); y)", transposed},
    {RA_MAX_OVER, SUB_MAX, "(y[i] = max(left.h[i + u - 1] for u in 3); y)", largest_near},
    {RA_MIN_OVER, SUB_MIN, "(y[i] = min(left.h[u] for u) + x[i]; y)", least},
    {RA_PROD_OVER, SUB_PROD, "(y[i] = prod(left.h[u] for u) + x[i]; y)", multiplied},
    {RA_NEST, SUB_ASSIGN, "(y[i] = left.h[D - 1 - i] * x[i]; y)", reversed},
    {RA_PARENT, SUB_STATE, "0.5 * parent.h - x", parent},
    {RA_PARENT_SUM, SUB_SUM, "sum(0.5 * k.h for k in parents) + x", parent_sum},
    {RA_PARENT_MAX, SUB_MAX, "max(k.h * k.h for k in parents)", parent_max},
};

enum { ROWS = sizeof rows / sizeof *rows };

static bool goes_down(const struct row *row)
{
	return row->about == RA_PARENT || row->about == RA_PARENT_SUM || row->about == RA_PARENT_MAX;
}

/* A declaration that the text does not use would be refused. */
static void put_model(struct str *s, const struct row *row)
{
	const char *text = row->text;
	static const struct {
		const char *used, *declaration;
	} declarations[] = {{"word", "input word : token\n"},
			    {"P", "param P[D]\n"},
			    {"W", "param W[D, D]\n"},
			    {"Q", "param Q[16, D]\n"},
			    {"B", "param B[D, D] products bf16\n"},
			    {"Y", "param Y[D, D] products bf16x1\n"},
			    {"Z", "param Z[D, D] products bf16x3\n"},
			    {"I", "param I[D, D] products i8x3\n"},
			    {"H", "param H[D, D] products f16\n"},
			    {"E[", "param E[V, D]\n"}};
	str_puts(s, "model one\nstructure tree(left, right)\ninput x[D]\n");
	for (size_t i = 0; i < sizeof declarations / sizeof *declarations; i++)
		if (strstr(text, declarations[i].used))
			str_puts(s, declarations[i].declaration);
	if (goes_down(row))
		str_puts(s, "state u[D]\nnode:\n    u = x\ntraversal down\n");
	str_printf(s, "state h[D]\n%s:\n    h = x\n%s:\n    h = %s\noutput result = h\n",
		   goes_down(row) ? "root" : "leaf", goes_down(row) ? "below" : "inner", text);
}

/* --- what a model is made of --- */

static const char *const operator_names[] = {
#define RA_OP(name, arity, spelling, types, function, lowering, sub) #name,
#include "ra/ra_ops.def"
};

static bool has_operator(const struct ra_model *m, enum ra_op op)
{
	for (size_t i = 1; i < m->nodes.n; i++)
		if (m->nodes.at[i].op == op)
			return true;
	return false;
}

/* Whether the body of inner nodes, or of those below others, needs a value of that kind. */
static bool has_sub_op(const struct sub_program *p, bool down, enum sub_op op)
{
	bool found = false, *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++)
		if (p->bodies.at[b].domain == (down ? SUB_BELOW : SUB_INNER))
			sub_mark_live(p, &p->bodies.at[b], live);
	for (size_t i = 1; i < p->values.n; i++)
		found |= live[i] && p->values.at[i].op == op;
	return found;
}

/* As it is lowered, or once sums are contracted, products in f16 or bf16 or grouped, for a machine with matrix registers as well. */
static bool needs_sub_op(struct test_model *t, bool down, enum sub_op op)
{
	struct sub_program p, contracted, quantised, grouped, limbs;
	struct rewrite_options options = {.math = REWRITE_REASSOCIATE};
	sub_init(&p, &t->arena, "one");
	sub_init(&contracted, &t->arena, "one");
	sub_init(&quantised, &t->arena, "one");
	sub_init(&grouped, &t->arena, "one");
	sub_init(&limbs, &t->arena, "one");
	if (!sub_lower_model(&p, t->model, t->sizes, SUB_AT_MODEL, &t->diags))
		return false;
	rewrite_contract(&contracted, &p, NULL, NULL);
	rewrite_quantise(&quantised, &contracted, &options, NULL);
	rewrite_group(&grouped, &quantised, &options, NULL);
	options.matrices = true;
	rewrite_group(&limbs, &quantised, &options, NULL);
	return has_sub_op(&p, down, op) || has_sub_op(&contracted, down, op) ||
	       has_sub_op(&grouped, down, op) || has_sub_op(&limbs, down, op);
}

/* --- what it should give --- */

/* No model has more than one parameter. */
static void read_params(struct place *p)
{
	for (int i = 0; i < V; i++)
		for (int k = 0; k < D; k++)
			p->E[i][k] = weight_at(0, i * D + k);
	memcpy(p->W, p->E, sizeof p->W);
	memcpy(p->P, p->E, sizeof p->P);
}

static int parent_id(const struct lin_forest *f, int n)
{
	for (int p = n + 1; p < f->nodes; p++)
		for (int e = f->child_begin[p]; e < f->child_begin[p + 1]; e++)
			if (f->children[e] == n)
				return p;
	return -1;
}

/* The rows that a node reads are in p.h; false = it reads none. */
static bool find_neighbours(const struct lin_forest *f, bool down, int n, double (*h)[D], struct place *p)
{
	int parent = parent_id(f, n);
	if (down ? parent < 0 : f->child_begin[n + 1] == f->child_begin[n])
		return false;
	for (int k = 0; k < 2; k++)
		p->h[k] = h[down ? parent : f->children[f->child_begin[n] + k]];
	return true;
}

/* The greatest error of the results, which stand node after node; children come before their parents. */
static double worst_error(const struct setting *s, const struct row *row, const double *results)
{
	const struct lin_forest *f = &s->forest.minibatch.forest;
	static double x[MAX_NODES][D], h[MAX_NODES][D];
	struct place p;
	double worst = 0;
	read_params(&p);
	for (int at = 0; at < s->forest.nodes; at++) {
		int n = goes_down(row) ? s->forest.nodes - 1 - at : at;
		bool reads = find_neighbours(f, goes_down(row), n, h, &p);
		for (int i = 0; i < D; i++)
			x[n][i] = ((const float *)s->forest.data[0])[n * D + i];
		p.x = x[n];
		p.word = s->forest.data[1] ? ((const int32_t *)s->forest.data[1])[n] : 0;
		for (int i = 0; i < D; i++) {
			h[n][i] = reads ? row->expected(&p, i) : x[n][i];
			double error = fabs(results[n * D + i] - h[n][i]) / (1 + fabs(h[n][i]));
			worst = error > worst || isnan(error) ? error : worst;
		}
	}
	return worst;
}

static void compare(struct setting *s, const struct row *row, const char *backend)
{
	struct option_texts o = {.backend = backend, .target = "native"};
	struct test_run r;
	if (tap_ok(start_run(&r, s->model, &o), "%s: made for %s", row->text, backend)) {
		random_state = 3;
		make_forest(&s->forest, &r.image, 5, 9);
		bool ok = run_forest(&r, &s->forest.minibatch);
		double *results =
		    gather_outputs(&r, s->forest.nodes, s->forest.minibatch.forest.inputs, &s->count);
		double worst = ok ? worst_error(s, row, results) : INFINITY;
		tap_ok(worst < 1e-5, "%s: %s as the formula, to %.1e", row->text, backend, worst);
		free(results);
		free_forest(&s->forest);
	}
	end_run(&r);
}

static void test_row(struct arena *a, const struct row *row)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct str text = str_in(a);
	put_model(&text, row);
	if (tap_ok(load_text(&t, "one", str_text(&text), text.n, "D=5 V=7"), "%s: parsed", row->text)) {
		tap_ok(has_operator(t.model, row->about), "%s: is about %s", row->text,
		       operator_names[row->about]);
		tap_ok(needs_sub_op(&t, goes_down(row), row->needs), "%s: needs %s", row->text,
		       sub_spelling(row->needs));
		compare(&s, row, "interpreter");
		for (int i = 0; backend_at(i); i++)
			compare(&s, row, backend_at(i));
	}
	free_model(&t);
}

/* A state is read by the output of every row, and only scans have steps (tests/models/scan.ra); what no text says, but rules do, is for tests/subop. */
static void test_tables(void)
{
	bool about[RA_OPS] = {[RA_STATE] = true, [RA_AT_STEP] = true};
	bool needed[SUB_OPS] = {
	    [SUB_NOP] = true, [SUB_REC] = true, [SUB_QUICK_SIGMOID] = true, [SUB_QUICK_TANH] = true,
	    [SUB_SIGMOID_4] = true, [SUB_SIGMOID_5] = true, [SUB_TANH_4] = true, [SUB_TANH_5] = true};
	for (int i = 0; i < ROWS; i++)
		about[rows[i].about] = needed[rows[i].needs] = needed[sub_traits_of(rows[i].needs)->combine] =
		    true;
	for (int op = 0; op < RA_OPS; op++)
		tap_ok(about[op], "operator %s has a model", operator_names[op]);
	for (int op = 0; op < SUB_OPS; op++)
		tap_ok(needed[op], "sub-operator %s has a model", sub_spelling(op));
}

int main(void)
{
	skip_backends();
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	test_tables();
	if (tap_ok(!arena_guard(&a, &jump), "memory for texts"))
		for (int i = 0; i < ROWS; i++)
			test_row(&a, &rows[i]);
	arena_free(&a);
	return tap_done();
}
