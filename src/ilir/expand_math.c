/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: writes the compounds of ilir_ops.def in basic arithmetic, and names subexpressions that are used
 * several times.
 *
 * The expansions define these operators: the interpreter expands them as well.  All but erf, sine, cosine and arc
 * tangent use one method: write the argument as n*ln2 + r with small r, evaluate a polynomial in r, and put n into
 * the exponent.  Adding a number so large that the sum has no fraction bits yields n: it is in the low bits
 * of the sum, with the bias of the exponent already added.  Coefficients are weighted minimax fits of the
 * relative error, rounded to float.
 *
 * Sine and cosine subtract the nearest multiple of pi/2 from the argument in the same way (Cody and Waite,
 * with fma), up to 2^17; their coefficients are those of sinf and cosf in the Cephes library.
 *
 * Largest errors over all floats (make check-long): exp 1.93 ulp, log 1.29, log1p 1.83, sigmoid 3.49,
 * tanh 2.57, quick_sigmoid 5.44, quick_tanh 5.29, erf 1.21, sin and cos 1.57, atan 1.72; sigmoid_4 2.21e-5,
 * tanh_4 4.41e-5, sigmoid_5 6.1e-7, tanh_5 1.16e-6.
 * Denormal arguments and results included.  NaN gives NaN; tanh(-x) is -tanh(x) to the bit, erf(-x) is -erf(x),
 * atan(-x) is -atan(x). */
#include "ilir/calc.h"
#include "ilir/passes.h"

#include <math.h>

/* coefficient[0]*x^(n-1) + ... + coefficient[n-1], n >= 2, in pairs of terms, which halves the chain of
 * dependent operations.  If n is odd, the last term is added alone. */
static ilir_expr expand_polynomial(const struct calc *c, ilir_expr x, const float *coefficient, int n)
{
	ilir_expr square = multiply(c, x, x), sum = {0};
	for (int i = 0; i + 1 < n; i += 2) {
		ilir_expr pair = fma3(c, number(c, coefficient[i]), x, number(c, coefficient[i + 1]));
		sum = sum.i ? fma3(c, sum, square, pair) : pair;
	}
	return n % 2 ? fma3(c, sum, x, number(c, coefficient[n - 1])) : sum;
}

#define POLYNOMIAL(c, x, ...)                                                                                \
	expand_polynomial(c, x, (const float[]){__VA_ARGS__},                                                \
			  sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

/* ln2 is also the sum of two floats, the first so short that its product with n is exact. */
static const float ln2 = 0.69314718f, ln2_high = 0.693145751953125f, ln2_low = 1.42860683e-06f,
		   log2_e = 1.44269504f;

/* e^-r for small r. */
#define EXP_OF_NEGATIVE(c, r)                                                                                \
	POLYNOMIAL(c, r, -0.0082898289f, 0.0418982506f, -0.166676477f, 0.499991477f, -0.999999702f, 1.0f)

/* n = x*scale rounded to the nearest integer, and 2^(n + up). */
struct power {
	ilir_expr n, two_n;
};

/* The low bits of a sum with 1.5*2^23, the bias of the exponent and `up` are the exponent of 2^(n + up). */
static struct power split_power(const struct calc *c, ilir_expr x, float scale, float up)
{
	const float rounder = 0x1.8p23f + 127 + up;
	ilir_expr sum = fma3(c, x, number(c, scale), number(c, rounder));
	return (struct power){
	    .n = subtract(c, sum, number(c, rounder)),
	    .two_n = as_float(c, ilir_binary(c->m, ILIR_SHL, as_bits(c, sum), bits(c, 23))),
	};
}

/* x = n*2*ln2 + r, e^x = (p(r) * 2^n) * 2^n.  The two products keep both factors in the range of floats,
 * and only the last one rounds to a denormal or overflows. */
static ilir_expr expand_EXP(const struct calc *c, ilir_expr x)
{
	x = at_most(c, at_least(c, x, -104.0f), 89.0f);
	struct power half = split_power(c, x, log2_e / 2, 0);
	ilir_expr r = fma3(c, half.n, number(c, -2 * ln2_high), x);
	r = fma3(c, half.n, number(c, -2 * ln2_low), r);
	ilir_expr p = POLYNOMIAL(c, r, 0.0001961033f, 0.0014105508f, 0.008336131f, 0.041661218f, 0.16666614f,
				 0.50000036f, 1.0f, 1.0f);
	return multiply(c, multiply(c, p, half.two_n), half.two_n);
}

/* -x = n*ln2 - r, 1/(1 + 2^n * p(-r)): one fma scales and adds.  Above 30 the result is 1, below -104 it
 * is 0.  In between n is up to 150, so numerator and denominator are scaled by 2^-24, and only the
 * quotient rounds to a denormal. */
static ilir_expr expand_SIGMOID(const struct calc *c, ilir_expr x)
{
	x = at_most(c, at_least(c, x, -104.0f), 30.0f);
	struct power s = split_power(c, x, -log2_e, -24);
	ilir_expr r = fma3(c, s.n, number(c, ln2_high), x);
	r = fma3(c, s.n, number(c, ln2_low), r);
	ilir_expr p = EXP_OF_NEGATIVE(c, r);
	return divide(c, number(c, 0x1p-24f), fma3(c, p, s.two_n, number(c, 0x1p-24f)));
}

/* m = (e^(2|x|) - 1)/2 = 2^n * q(r) + (2^n - 1)/2, where q(r) = r + r*r*p(r) is accurate near zero, and there
 * n = 0.  tanh|x| = m/(m + 1), then the sign.  From 9.1 on the result is 1. */
static ilir_expr expand_TANH(const struct calc *c, ilir_expr x)
{
	ilir_expr a = at_most(c, magnitude(c, x), 9.1f);
	struct power s = split_power(c, a, 2 * log2_e, 0);
	ilir_expr r = fma3(c, s.n, number(c, -ln2 / 2), a);
	ilir_expr p = POLYNOMIAL(c, r, 0.04442395f, 0.133867415f, 0.333337635f, 0.6666617f, 0.99999995f);
	ilir_expr q = fma3(c, multiply(c, r, r), p, r);
	ilir_expr rest = fma3(c, s.two_n, number(c, 0.5f), number(c, -0.5f));
	ilir_expr m = fma3(c, s.two_n, q, rest);
	return with_sign(c, divide(c, m, add(c, m, number(c, 1.0f))), x);
}

/* As the sigmoid, but e^r = (a + r*b)/(a - r*b), where a and b are polynomials in r^2, shares the division, and
 * ln2 is one float, which is accurate enough for an n of up to 126.  Below -87 the result is what it is there. */
static ilir_expr expand_QUICK_SIGMOID(const struct calc *c, ilir_expr x)
{
	x = at_most(c, at_least(c, x, -87.0f), 30.0f);
	struct power s = split_power(c, x, -log2_e, 0);
	ilir_expr r = fma3(c, s.n, number(c, ln2), x), square = multiply(c, r, r);
	ilir_expr a = fma3(c, square, number(c, 0.187735575f), number(c, 1.87782974f));
	ilir_expr b = fma3(c, square, number(c, 0x1p-6f), number(c, 0.93891487f));
	ilir_expr above = fma3(c, r, b, a), below = fma3(c, ilir_unary(c->m, ILIR_NEG, r), b, a);
	return divide(c, above, fma3(c, below, s.two_n, above));
}

/* x*p(x^2)/q(x^2), a minimax fit of the relative error, its coefficients then searched for the least error in
 * floats.  At the limit, and so beyond it, the result is 1; nowhere is it larger. */
static ilir_expr expand_QUICK_TANH(const struct calc *c, ilir_expr x)
{
	const float limit = 8.09696579f;
	x = at_most(c, at_least(c, x, -limit), limit);
	ilir_expr square = multiply(c, x, x);
	ilir_expr p = POLYNOMIAL(c, square, 1.33842883e-08f, 2.06358e-05f, 0.00349745713f, 0.133826882f);
	ilir_expr q = POLYNOMIAL(c, square, 7.79022969e-07f, 0.000328851631f, 0.0258843601f, 0.467160106f);
	q = fma3(c, q, square, number(c, 1.0f));
	return divide(c, fma3(c, p, multiply(c, square, x), x), q);
}

/* tanh(scale*x) = x*above/below, a minimax fit of the absolute error up to a limit of scale*x; beyond it the result
 * stays what it is there, which is 1 less an error of the same size.  The scale is a power of two. */
struct ratio {
	ilir_expr x, above, below;
};

static ilir_expr limit_magnitude(const struct calc *c, ilir_expr x, float limit)
{
	return at_most(c, at_least(c, x, -limit), limit);
}

static struct ratio tanh_to_4_places(const struct calc *c, ilir_expr x, float scale)
{
	const float h = scale, s = scale * scale;
	x = limit_magnitude(c, x, 5.02f / scale);
	ilir_expr square = multiply(c, x, x);
	return (struct ratio){
	    .x = x,
	    .above = POLYNOMIAL(c, square, 0.00065299269f * s * s * h, 0.101655953f * s * h, 0.999805987f * h),
	    .below = POLYNOMIAL(c, square, 0.0126192813f * s * s, 0.434426397f * s, 1.0f),
	};
}

static struct ratio tanh_to_5_places(const struct calc *c, ilir_expr x, float scale)
{
	const float h = scale, s = scale * scale;
	x = limit_magnitude(c, x, 6.98f / scale);
	ilir_expr square = multiply(c, x, x);
	return (struct ratio){
	    .x = x,
	    .above = POLYNOMIAL(c, square, 3.94100653e-06f * s * s * s * h, 0.00227931025f * s * s * h,
				0.123047821f * s * h, 0.999995768f * h),
	    .below = POLYNOMIAL(c, square, 0.000142603341f * s * s * s, 0.0210829973f * s * s,
				0.456366599f * s, 1.0f),
	};
}

static ilir_expr divide_ratio(const struct calc *c, struct ratio r)
{
	return divide(c, multiply(c, r.x, r.above), r.below);
}

/* (1 + tanh(x/2))/2, as one quotient. */
static ilir_expr divide_half_ratio(const struct calc *c, struct ratio r)
{
	return divide(c, fma3(c, r.x, r.above, r.below), add(c, r.below, r.below));
}

static ilir_expr expand_TANH_4(const struct calc *c, ilir_expr x)
{
	return divide_ratio(c, tanh_to_4_places(c, x, 1));
}

static ilir_expr expand_TANH_5(const struct calc *c, ilir_expr x)
{
	return divide_ratio(c, tanh_to_5_places(c, x, 1));
}

static ilir_expr expand_SIGMOID_4(const struct calc *c, ilir_expr x)
{
	return divide_half_ratio(c, tanh_to_4_places(c, x, 0.5f));
}

static ilir_expr expand_SIGMOID_5(const struct calc *c, ilir_expr x)
{
	return divide_half_ratio(c, tanh_to_5_places(c, x, 0.5f));
}

/* erf(x) = x + x*p(x^2) where |x| is small, 1 - e^(|x|*p(|x|)) with the sign of x elsewhere.  From 4 on the result
 * is 1. */
static ilir_expr expand_ERF(const struct calc *c, ilir_expr x)
{
	ilir_expr p = POLYNOMIAL(c, multiply(c, x, x), -0.000595906808f, 0.00498725986f, -0.0267629158f,
				 0.112817302f, -0.376124889f, 0.128379151f);
	ilir_expr small = fma3(c, x, p, x), a = at_most(c, magnitude(c, x), 4.0f);
	p = POLYNOMIAL(c, a, 0.000213173145f, -0.00320835225f, 0.022869084f, -0.10522975f, -0.635742307f,
		       -1.12850738f);
	ilir_expr large = subtract(c, number(c, 1.0f), expand_EXP(c, multiply(c, a, p)));
	return choose(c, less(c, number(c, 0.93f), a), with_sign(c, large, x), small);
}

/* A logarithm whose argument is not between `zero`, where it is -infinity, and infinity. */
static ilir_expr special_log(const struct calc *c, ilir_expr x, ilir_expr zero)
{
	ilir_expr negative = choose(c, less(c, x, zero), number(c, NAN), x);
	return choose(c, ilir_binary(c->m, ILIR_EQ, x, zero), number(c, -INFINITY), negative);
}

/* n*ln2 + log(1 + f), with 1 + f in [sqrt(1/2), sqrt(2)). */
static ilir_expr log_of_scaled(const struct calc *c, ilir_expr n, ilir_expr f)
{
	ilir_expr p = POLYNOMIAL(c, f, 0.087004304f, -0.14267486f, 0.14914769f, -0.16577585f, 0.19963063f,
				 -0.25001338f, 0.3333391f, -0.5f);
	ilir_expr y = multiply(c, multiply(c, f, f), p);
	y = add(c, fma3(c, n, number(c, ln2_low), y), f);
	return fma3(c, n, number(c, ln2_high), y);
}

/* The n for which a positive finite number is in [sqrt(1/2), sqrt(2)) * 2^n. */
static ilir_expr exponent_of(const struct calc *c, ilir_expr bits_of_x)
{
	const int32_t root_half = 0x3f3504f3;
	return ilir_binary(c->m, ILIR_SHR, subtract(c, bits_of_x, bits(c, root_half)), bits(c, 23));
}

static ilir_expr is_between(const struct calc *c, ilir_expr low, ilir_expr x, float high)
{
	return ilir_binary(c->m, ILIR_AND, less(c, low, x), less(c, x, number(c, high)));
}

/* x = 2^n * (1 + f); denormals are scaled by 2^23 first. */
static ilir_expr expand_LOG(const struct calc *c, ilir_expr x)
{
	ilir_expr zero = number(c, 0.0f), tiny = less(c, x, number(c, 0x1p-126f));
	ilir_expr i = as_bits(c, choose(c, tiny, multiply(c, x, number(c, 0x1p23f)), x));
	ilir_expr k = exponent_of(c, i);
	ilir_expr scaled = as_float(c, subtract(c, i, ilir_binary(c->m, ILIR_SHL, k, bits(c, 23))));
	ilir_expr f = subtract(c, scaled, number(c, 1.0f));
	ilir_expr n =
	    add(c, ilir_unary(c->m, ILIR_TO_F32, k), choose(c, tiny, number(c, -23.0f), number(c, 0.0f)));
	return choose(c, is_between(c, zero, x, INFINITY), log_of_scaled(c, n, f), special_log(c, x, zero));
}

/* 1 + x = 2^n * (1 + f): f = (x*t + (t - 4))/4 with t = 2^(2 - n), whose exponent is in the range of floats
 * whatever n, is rounded once; where n = 0 it is x.  The sign is that of x, of zeros as well. */
static ilir_expr expand_LOG1P(const struct calc *c, ilir_expr x)
{
	ilir_expr k = exponent_of(c, as_bits(c, add(c, x, number(c, 1.0f))));
	ilir_expr t = as_float(c, ilir_binary(c->m, ILIR_SHL, subtract(c, bits(c, 127 + 2), k), bits(c, 23)));
	ilir_expr f = multiply(c, fma3(c, x, t, add(c, t, number(c, -4.0f))), number(c, 0.25f));
	ilir_expr y = log_of_scaled(c, ilir_unary(c->m, ILIR_TO_F32, k), f), zero = number(c, -1.0f);
	return choose(c, is_between(c, zero, x, INFINITY), with_sign(c, y, x), special_log(c, x, zero));
}

/* x - n*pi/2, with pi/2 as a sum of three floats, each the nearest to the remainder.  The first
 * difference is exact. */
static ilir_expr reduce_angle(const struct calc *c, ilir_expr x, ilir_expr n)
{
	x = fma3(c, n, number(c, -0x1.921fb6p+0f), x);
	x = fma3(c, n, number(c, 0x1.777a5cp-25f), x);
	x = fma3(c, n, number(c, 0x1.ee59dap-50f), x);
	return at_most(c, at_least(c, x, -0.8f), 0.8f); /* for arguments too large to be reduced */
}

/* The sine of x + quarters*pi/2 for x >= 0.  With x = n*pi/2 + r, the last two bits of n + quarters
 * select the sine or the cosine of r, and its sign. */
static ilir_expr sine_ahead(const struct calc *c, ilir_expr x, int quarters, ilir_expr sign)
{
	const float rounder = 0x1.8p23f;
	ilir_expr sum = fma3(c, x, number(c, 0.636619772f), number(c, rounder));
	ilir_expr r = reduce_angle(c, x, subtract(c, sum, number(c, rounder))), square = multiply(c, r, r);
	ilir_expr sine = POLYNOMIAL(c, square, -1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f);
	sine = fma3(c, multiply(c, square, r), sine, r);
	ilir_expr cosine =
	    POLYNOMIAL(c, square, 2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f);
	cosine =
	    fma3(c, multiply(c, square, square), cosine, fma3(c, square, number(c, -0.5f), number(c, 1.0f)));
	ilir_expr quarter = add(c, as_bits(c, sum), bits(c, quarters));
	ilir_expr odd = ilir_binary(c->m, ILIR_EQ, bit_and(c, quarter, 1), bits(c, 1));
	ilir_expr half = shift_left(c, bit_and(c, quarter, 2), 30);
	return as_float(c, bit_xor(c, as_bits(c, choose(c, odd, cosine, sine)), bit_xor(c, half, sign)));
}

static ilir_expr expand_SIN(const struct calc *c, ilir_expr x)
{
	return sine_ahead(c, magnitude(c, x), 0, bit_and(c, as_bits(c, x), INT32_MIN));
}

static ilir_expr expand_COS(const struct calc *c, ilir_expr x)
{
	return sine_ahead(c, magnitude(c, x), 1, bits(c, 0));
}

/* t = min(|x|, 1/|x|), atan(t) = t + t^3*p(t^2); where |x| > 1 the result is pi/2 - atan(t), with pi/2 as a sum of
 * two floats.  Then the sign. */
static ilir_expr expand_ATAN(const struct calc *c, ilir_expr x)
{
	ilir_expr a = magnitude(c, x), large = less(c, number(c, 1.0f), a);
	ilir_expr t = choose(c, large, divide(c, number(c, 1.0f), a), a), square = multiply(c, t, t);
	ilir_expr p = POLYNOMIAL(c, square, 0.00292071188f, -0.0163680036f, 0.0432119779f, -0.0755222365f, 0.10666009f,
				 -0.142110556f, 0.199937731f, -0.333331525f);
	ilir_expr y = fma3(c, multiply(c, square, t), p, t);
	ilir_expr rest = subtract(c, number(c, 0x1.921fb6p+0f), add(c, y, number(c, 0x1.777a5cp-25f)));
	return with_sign(c, choose(c, large, rest, y), x);
}

#define expand_ROUND ilir_expand_ROUND
#define expand_FLOOR ilir_expand_FLOOR
#define expand_ROUND_SHR ilir_expand_ROUND_SHR
#define expand_MUL_HIGH ilir_expand_MUL_HIGH
#define expand_TO_F16 ilir_expand_TO_F16
#define expand_TO_BF16 ilir_expand_TO_BF16

static const struct {
	ilir_expr (*of_1)(const struct calc *, ilir_expr);
	ilir_expr (*of_2)(const struct calc *, ilir_expr, ilir_expr);
} expansions[ILIR_OPS] = {
#define ILIR_OP(name, spelling, arity, rule, meaning, rows)
#define ILIR_COMPOUND(name, spelling, arity, meaning, rows) [ILIR_##name] = {.of_##arity = expand_##name},
#include "ilir/ilir_ops.def"
};

bool ilir_is_compound(enum ilir_op op)
{
	return expansions[op].of_1 || expansions[op].of_2;
}

ilir_expr ilir_expand_compound(struct ilir_module *m, ilir_expr e)
{
	struct calc c = {m, ilir_type_of(m, e).lanes};
	enum ilir_op op = ilir_at(m, e)->op;
	return expansions[op].of_1   ? expansions[op].of_1(&c, ilir_arg(m, e, 0))
	       : expansions[op].of_2 ? expansions[op].of_2(&c, ilir_arg(m, e, 0), ilir_arg(m, e, 1))
				     : e;
}

/* --- names for shared subexpressions --- */

/* Facts about a node of an expression. */
struct use {
	ilir_expr e, name; /* name: the variable that replaces it; none = it is kept */
	int uses;
	bool reads;  /* it contains a load */
	bool always; /* it is evaluated whenever the statement is, not only in one side of a select */
};

struct shared {
	VEC(struct use) use; /* of each node, after its arguments */
	size_t at;	     /* the use of the node being mapped */
	struct ilir_stmt *lets, **end;
};

static struct use *find_use(struct shared *s, ilir_expr e)
{
	size_t low = 0, high = s->use.n;
	while (low + 1 < high) {
		size_t middle = (low + high) / 2;
		if (s->use.at[middle].e.i <= e.i)
			low = middle;
		else
			high = middle;
	}
	return &s->use.at[low];
}

static void note_use(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct shared *s = context;
	struct use u = {.e = e, .reads = ilir_at(m, e)->op == ILIR_LOAD};
	for (int i = 0; i < ilir_at(m, e)->args; i++) {
		struct use *arg = find_use(s, ilir_arg(m, e, i));
		arg->uses++;
		u.reads |= arg->reads;
	}
	vec_push(m->arena, &s->use, u);
}

/* Sets `always` from the root down: a scalar select always evaluates its condition, but only one of its
 * sides. */
static void note_always(const struct ilir_module *m, struct shared *s)
{
	for (size_t k = s->use.n; k-- > 0;) {
		const struct use *u = &s->use.at[k];
		bool lazy = ilir_at(m, u->e)->op == ILIR_SELECT && ilir_type_of(m, u->e).lanes == 1;
		int args = lazy ? 1 : ilir_at(m, u->e)->args;
		for (int i = 0; u->always && i < args; i++)
			find_use(s, ilir_arg(m, u->e, i))->always = true;
	}
}

/* Whether a node gets a name: an operator on values that is used several times, and can be evaluated
 * before the statement. */
static bool needs_name(const struct ilir_module *m, const struct use *u)
{
	const struct ilir_node *n = ilir_at(m, u->e);
	bool leaf = n->args == 0 || n->op == ILIR_LOAD ||
		    (n->op == ILIR_BROADCAST && ilir_at(m, ilir_arg(m, u->e, 0))->args == 0);
	return u->uses > 1 && !leaf && n->type.dtype != ILIR_INDEX && (u->always || !u->reads);
}

static ilir_expr name_use(struct ilir_module *m, ilir_expr mapped, void *context)
{
	struct shared *s = context;
	struct use *u = &s->use.at[s->at++];
	if (!needs_name(m, u))
		return mapped;
	struct str name = str_in(m->arena);
	str_printf(&name, "t%zu", m->vars.n); /* usually a free name */
	ilir_var v = ilir_new_var(m, str_text(&name), ilir_type_of(m, mapped));
	*s->end = ilir_let(m, v, mapped);
	s->end = &(*s->end)->next;
	return ilir_var_ref(m, v);
}

/* Replaces x*x, where x is an operator, by t*t, with let t = x before the statement. */
static ilir_expr name_shared(struct ilir_module *m, ilir_expr e, struct shared *s)
{
	s->use.n = s->at = 0;
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = note_use, .context = s});
	s->use.at[s->use.n - 1].always = true;
	note_always(m, s);
	return ilir_map_expr(m, e, name_use, s); /* visits nodes in the same order as note_use */
}

static ilir_expr expand_compound(struct ilir_module *m, ilir_expr e, void *context)
{
	(void)context;
	return ilir_expand_compound(m, e);
}

static struct ilir_stmt *name_in_stmt(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	(void)context;
	struct shared shared = {.end = &shared.lets};
	if (s->kind == ILIR_LET)
		s->let.value = name_shared(m, s->let.value, &shared);
	else if (s->kind == ILIR_STORE)
		s->store.value = name_shared(m, s->store.value, &shared);
	else if (s->kind == ILIR_IF)
		s->branch.condition = name_shared(m, s->branch.condition, &shared);
	*shared.end = s;
	return shared.lets;
}

void ilir_expand_math(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	ilir_rewrite_module(m, &(struct ilir_rewrite){.expr = expand_compound, .stmt = name_in_stmt});
}
