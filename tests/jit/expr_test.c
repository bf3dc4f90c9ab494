/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Every operation, scalar and in vectors, against C: the same bits, special values included. */
#include "tests/floats.h"
#include "tests/jit/helper.h"

enum { VALUES = 16, N = VALUES * VALUES, TABLE = 512 };

static float special(int i)
{
	static const float value[VALUES] = {0.0f,     -0.0f,	1.0f,	   -1.0f,  1.5f, -2.75f,
					    1e-40f,   -1e-40f,	3e38f,	   1e-20f, 7.0f, 0.1f,
					    -1234.5f, INFINITY, -INFINITY, NAN};
	return value[i];
}

/* --- floats --- */

static float c_add(float x, float y)
{
	return x + y;
}
static float c_sub(float x, float y)
{
	return x - y;
}
static float c_mul(float x, float y)
{
	return x * y;
}
static float c_div(float x, float y)
{
	return x / y;
}
static float c_neg(float x, float y)
{
	(void)y;
	return from_bits(bits_of(x) ^ 0x80000000u);
}
static float c_fma(float x, float y)
{
	return fmaf(x, y, y);
}
static float c_max(float x, float y)
{
	return x > y || isnan(x) ? x : y;
}
static float c_sqrt(float x, float y)
{
	(void)y;
	return sqrtf(x);
}
static float c_lt(float x, float y)
{
	return x < y ? x : 2.0f;
}
static float c_le(float x, float y)
{
	return x <= y ? x : 2.0f;
}
static float c_eq(float x, float y)
{
	return x == y ? x : 2.0f;
}
static float c_less(float x, float y)
{
	return x < y ? x : y;
}
static float c_more(float x, float y)
{
	return x < y ? y : x;
}
static float c_and(float x, float y)
{
	return x < y && x == x ? x : 2.0f;
}
static float c_or(float x, float y)
{
	return x < y || x == x ? x : 2.0f;
}
static float c_bit_and(float x, float y)
{
	return from_bits(bits_of(x) & bits_of(y));
}
static float c_bit_or(float x, float y)
{
	return from_bits(bits_of(x) | bits_of(y));
}
static float c_shl(float x, float y)
{
	(void)y;
	return from_bits(bits_of(x) << 5);
}
static float c_shr(float x, float y)
{
	(void)y;
	return from_bits((int32_t)bits_of(x) >> 5);
}
static float c_to_f32(float x, float y)
{
	(void)y;
	return (float)(int32_t)bits_of(x);
}
static float c_wrap(float x, float y)
{
	return from_bits(bits_of(x) * bits_of(y));
}

/* Casts the operands to i32 and the result back. */
static ilir_expr on_bits(struct fixture *f, enum ilir_op op, ilir_expr x, ilir_expr y)
{
	x = ilir_unary(&f->m, ILIR_AS_I32, x);
	return ilir_unary(&f->m, ILIR_AS_F32, ilir_binary(&f->m, op, x, y));
}

static ilir_expr like(struct fixture *f, ilir_expr scalar, ilir_expr shape)
{
	int lanes = ilir_type_of(&f->m, shape).lanes;
	return lanes == 1 ? scalar : splat(f, scalar, lanes);
}

static ilir_expr pick(struct fixture *f, ilir_expr condition, ilir_expr x)
{
	return ilir_ternary(&f->m, ILIR_SELECT, condition, x, like(f, ilir_float(&f->m, 2.0f), x));
}

static ilir_expr logic(struct fixture *f, enum ilir_op op, ilir_expr x, ilir_expr y)
{
	ilir_expr number = ilir_binary(&f->m, ILIR_EQ, x, x);
	return pick(f, ilir_binary(&f->m, op, ilir_binary(&f->m, ILIR_LT, x, y), number), x);
}

static ilir_expr expression(struct fixture *f, enum ilir_op op, ilir_expr x, ilir_expr y)
{
	switch (op) {
	case ILIR_FMA:
		return ilir_ternary(&f->m, op, x, y, y);
	case ILIR_NEG:
	case ILIR_SQRT:
		return ilir_unary(&f->m, op, x);
	case ILIR_LT:
	case ILIR_LE:
	case ILIR_EQ:
		return pick(f, ilir_binary(&f->m, op, x, y), x);
	case ILIR_SELECT:
		return ilir_ternary(&f->m, op, ilir_binary(&f->m, ILIR_LT, x, y), x, y);
	case ILIR_MIN: /* of floats, as it is written */
		return ilir_ternary(&f->m, ILIR_SELECT, ilir_binary(&f->m, ILIR_LT, x, y), y, x);
	case ILIR_AND:
	case ILIR_OR:
		return logic(f, op, x, y);
	case ILIR_BIT_AND:
	case ILIR_BIT_OR:
	case ILIR_AS_I32:
		return on_bits(f, op == ILIR_AS_I32 ? ILIR_MUL : op, x, ilir_unary(&f->m, ILIR_AS_I32, y));
	case ILIR_SHL:
	case ILIR_SHR:
		return on_bits(f, op, x, like(f, ilir_i32(&f->m, 5), x));
	case ILIR_TO_F32:
		return ilir_unary(&f->m, op, ilir_unary(&f->m, ILIR_AS_I32, x));
	default:
		return ilir_binary(&f->m, op, x, y);
	}
}

static const struct {
	enum ilir_op op;
	const char *name;
	float (*in_c)(float, float);
	bool any_nan; /* which NaN comes out of arithmetic is the processor's affair */
} cases[] = {
    {ILIR_ADD, "add", c_add, true},
    {ILIR_SUB, "sub", c_sub, true},
    {ILIR_MUL, "mul", c_mul, true},
    {ILIR_FDIV, "fdiv", c_div, true},
    {ILIR_NEG, "neg", c_neg, false},
    {ILIR_FMA, "fma", c_fma, true},
    {ILIR_MAX, "max", c_max, false},
    {ILIR_SQRT, "sqrt", c_sqrt, true},
    {ILIR_LT, "lt", c_lt, false},
    {ILIR_LE, "le", c_le, false},
    {ILIR_EQ, "eq", c_eq, false},
    {ILIR_SELECT, "select of the less", c_less, false},
    {ILIR_MIN, "select of the greater", c_more, false},
    {ILIR_AND, "and", c_and, false},
    {ILIR_OR, "or", c_or, false},
    {ILIR_BIT_AND, "bit_and", c_bit_and, false},
    {ILIR_BIT_OR, "bit_or", c_bit_or, false},
    {ILIR_SHL, "shl", c_shl, false},
    {ILIR_SHR, "shr", c_shr, false},
    {ILIR_TO_F32, "to_f32", c_to_f32, false},
    {ILIR_AS_I32, "mul of i32, wrapping", c_wrap, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static void add_case(struct fixture *f, int c, int lanes, ilir_buffer x, ilir_buffer y, ilir_buffer out)
{
	struct str name = str_in(&f->arena);
	ilir_var n = index_var(f, "n");
	ilir_expr at = lanes == 1 ? ref(f, n) : ramp(f, ref(f, n), lanes);
	ilir_expr value =
	    expression(f, cases[c].op, ilir_load(&f->m, x, &at, 1), ilir_load(&f->m, y, &at, 1));
	str_printf(&name, "%s.%d", cases[c].name, lanes);
	kernel(f, name.text, over_rows(f, n, lanes, ilir_store(&f->m, out, &at, 1, value)));
}

static bool agree(float ours, float theirs, bool any_nan)
{
	return bits_of(ours) == bits_of(theirs) || (any_nan && isnan(ours) && isnan(theirs));
}

static void check_case(const char *target, int c, int lanes, image_kernel *run)
{
	float *x = aligned(N * 4), *y = aligned(N * 4), *out = aligned(N * 4);
	int bad = 0;
	for (int i = 0; i < N; i++) {
		x[i] = special(i / VALUES);
		y[i] = special(i % VALUES);
	}
	run((void *[]){x, y, out}, 0, N, 0, 1, 1);
	for (int i = 0; i < N; i++)
		if (!agree(out[i], cases[c].in_c(x[i], y[i]), cases[c].any_nan) && !bad++)
			printf("# x %a y %a: %a, in C %a\n", x[i], y[i], out[i], cases[c].in_c(x[i], y[i]));
	tap_ok(!bad, "%s: %s in %d lanes", target, cases[c].name, lanes);
	free(x);
	free(y);
	free(out);
}

static void floats(const char *target, bool native)
{
	static const int lanes[] = {1, 4, 8, 16};
	struct fixture f;
	struct image_code code;
	fixture_init(&f, "floats");
	ilir_buffer x = buffer_of(&f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer y = buffer_of(&f, "y", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer out = buffer_of(&f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	for (int l = 0; l < 4; l++)
		for (int c = 0; c < CASES; c++)
			add_case(&f, c, lanes[l], x, y, out);
	if (tap_ok(compile_for(&f, target, native, &code), "%s: all operations on floats compile", target)) {
		for (int i = 0; target_runs_here(target_find(target)) && i < 4 * CASES; i++)
			check_case(target, i % CASES, lanes[i / CASES], code.kernels[i]);
		code.release(&code);
	}
	fixture_free(&f);
}

/* --- indices --- */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t index_in_c(int c, int64_t t)
{
	switch (c) {
	case 0:
		return floor_div(t, 7);
	case 1:
		return t - 7 * floor_div(t, 7);
	case 2:
		return floor_div(t, 8);
	case 3:
		return t - 8 * floor_div(t, 8);
	case 4:
		return t < 3 ? t : 3;
	case 5:
		return t > 3 ? t : 3;
	default:
		return t <= 5 ? 10 - t : t;
	}
}

static ilir_expr index_expression(struct fixture *f, int c, ilir_expr t)
{
	static const struct {
		enum ilir_op op;
		int by;
	} plain[] = {{ILIR_DIV, 7}, {ILIR_MOD, 7}, {ILIR_DIV, 8},
		     {ILIR_MOD, 8}, {ILIR_MIN, 3}, {ILIR_MAX, 3}};
	if (c < 6)
		return ilir_binary(&f->m, plain[c].op, t, num(f, plain[c].by));
	return ilir_ternary(&f->m, ILIR_SELECT, ilir_binary(&f->m, ILIR_LE, t, num(f, 5)),
			    ilir_binary(&f->m, ILIR_SUB, num(f, 10), t), t);
}

/* out[n] = table[f(token[n]) + TABLE / 2], where table[i] = i - TABLE / 2. */
static void indices(void)
{
	enum { TOKENS = 101 };
	static const char *const name[] = {"div by 7", "mod by 7", "div by 8", "mod by 8",
					   "min",      "max",	   "select"};
	struct fixture f;
	struct image_code code;
	fixture_init(&f, "indices");
	ilir_buffer token = buffer_of(&f, "token", IMAGE_TOKEN, ILIR_I32, EXTENTS(ROWS));
	ilir_buffer table = buffer_of(&f, "table", IMAGE_WEIGHT, ILIR_F32, EXTENTS(TABLE));
	ilir_buffer out = buffer_of(&f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	for (int c = 0; c < 7; c++) {
		ilir_var n = index_var(&f, "n");
		ilir_expr t = ilir_load_index(&f.m, token, INDICES(ref(&f, n)));
		ilir_expr at = plus(&f, index_expression(&f, c, t), num(&f, TABLE / 2));
		kernel(&f, name[c],
		       over_rows(&f, n, 1,
				 ilir_store(&f.m, out, INDICES(ref(&f, n)), ilir_load(&f.m, table, &at, 1))));
	}
	if (tap_ok(compile_for(&f, "native", true, &code), "operations on indices compile")) {
		int32_t tokens[TOKENS];
		float identity[TABLE], result[TOKENS];
		for (int i = 0; i < TOKENS; i++)
			tokens[i] = i - TOKENS / 2;
		for (int i = 0; i < TABLE; i++)
			identity[i] = i - TABLE / 2;
		for (int c = 0; c < 7; c++) {
			int bad = 0;
			code.kernels[c]((void *[]){tokens, identity, result}, 0, TOKENS, 0, 1, 1);
			for (int i = 0; i < TOKENS; i++)
				bad += result[i] != index_in_c(c, tokens[i]);
			tap_ok(!bad, "index: %s, negative numbers included", name[c]);
		}
		code.release(&code);
	}
	fixture_free(&f);
}

static void test_all(void)
{
	floats("generic", false);
	floats("avx512", false);
	floats("native", true);
	indices();
}

int main(void)
{
	return over_backends(test_all);
}
