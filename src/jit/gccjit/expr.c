/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Expressions: one emitter per row of ilir/ilir_ops.def, called for each subvector.  Contraction is off and
 * nothing is reassociated, so the results are those of the interpreter to the bit. */
#include "jit/gccjit/expr.h"

gcc_jit_rvalue *jit_refuse_operator(struct emitter *e, const struct job *j, const char *why)
{
	jit_refuse(e, j->type, why);
	return gcc_jit_lvalue_as_rvalue(jit_local(e, j->result));
}

/* --- leaves --- */

/* By its bits, so that a NaN keeps its payload. */
static gcc_jit_rvalue *emit_CONST_F(struct emitter *e, const struct job *j)
{
	float f = ilir_at(e->m, j->x)->f;
	int32_t pattern;
	memcpy(&pattern, &f, sizeof pattern);
	return f == f ? gcc_jit_context_new_rvalue_from_double(e->context, j->result, f)
		      : jit_bits(e, j->result, jit_i32(e, pattern));
}

static gcc_jit_rvalue *emit_CONST_I(struct emitter *e, const struct job *j)
{
	if (j->type.dtype == ILIR_BOOL)
		return jit_compare(e, GCC_JIT_COMPARISON_NE, jit_i32(e, ilir_at(e->m, j->x)->i),
				   jit_i32(e, 0));
	return gcc_jit_context_new_rvalue_from_long(e->context, j->result, ilir_at(e->m, j->x)->i);
}

static gcc_jit_rvalue *emit_SIZE(struct emitter *e, const struct job *j)
{
	return jit_refuse_operator(e, j, "a size of the minibatch is not known inside a kernel");
}

static gcc_jit_rvalue *emit_INFERRED(struct emitter *e, const struct job *j)
{
	return jit_refuse_operator(e, j, "a loop bound was never inferred");
}

static gcc_jit_rvalue *emit_RAMP(struct emitter *e, const struct job *j)
{
	return jit_refuse_operator(e, j, "a ramp is used as a value");
}

/* --- numbers --- */

static gcc_jit_rvalue *emit_ADD(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_PLUS, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_SUB(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_MINUS, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_MUL(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_MULT, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_FDIV(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_DIVIDE, j->arg[0], j->arg[1]);
}

/* The instruction traps where the divisor is 0, and for the least number by -1: divides by 1 there, and
 * replaces the result.  For scalars: see emit_subvectors. */
static gcc_jit_rvalue *emit_QUOTIENT(struct emitter *e, const struct job *j)
{
	gcc_jit_rvalue *x = j->arg[0], *y = j->arg[1], *zero = gcc_jit_context_zero(e->context, j->result),
		       *one = gcc_jit_context_one(e->context, j->result),
		       *minus_one = gcc_jit_context_new_rvalue_from_int(e->context, j->result, -1);
	gcc_jit_rvalue *by_zero = jit_compare(e, GCC_JIT_COMPARISON_EQ, y, zero),
		       *by_minus_one = jit_compare(e, GCC_JIT_COMPARISON_EQ, y, minus_one);
	gcc_jit_rvalue *by = jit_choose(e, j->result, by_zero, one, jit_choose(e, j->result, by_minus_one, one, y));
	gcc_jit_rvalue *quotient = jit_binary(e, j->result, GCC_JIT_BINARY_OP_DIVIDE, x, by),
		       *negative = jit_binary(e, j->result, GCC_JIT_BINARY_OP_MINUS, zero, x);
	quotient = jit_choose(e, j->result, by_minus_one, negative, quotient);
	return jit_choose(e, j->result, by_zero, zero, quotient);
}

static gcc_jit_rvalue *emit_NEG(struct emitter *e, const struct job *j)
{
	gcc_jit_type *integer = jit_subvector_type(e, ILIR_I32, j->width);
	gcc_jit_rvalue *sign = jit_splat(e, ILIR_I32, jit_i32(e, INT32_MIN), j->width);
	return jit_bits(
	    e, j->result,
	    jit_binary(e, integer, GCC_JIT_BINARY_OP_BITWISE_XOR, jit_bits(e, integer, j->arg[0]), sign));
}

static gcc_jit_rvalue *call_builtin(struct emitter *e, const struct job *j, const char *builtin, int args)
{
	gcc_jit_function *f = gcc_jit_context_get_builtin_function(e->context, builtin);
	gcc_jit_rvalue *arg[] = {j->arg[0], j->arg[1], j->arg[2]};
	return jit_keep(e, j->result, gcc_jit_context_new_call(e->context, NULL, f, args, arg));
}

/* The operand whose register the result takes: the addend; or the first factor where a constant is added, as
 * in a polynomial, so that the constant needs no copy. */
static enum jit_asm form_of_fma(const struct emitter *e, const struct job *j)
{
	const struct ilir_node *c = ilir_at(e->m, ilir_arg(e->m, j->x, 2));
	return c->op == ILIR_BROADCAST ? JIT_ASM_FMA_FACTOR : JIT_ASM_FMA_SUM;
}

/* Whether other statements load the operand, too, as rows of a tile share weights.  GCC would load it again
 * for each, and such loops are bound by loads. */
static bool is_shared(const struct emitter *e, const struct job *j, int operand)
{
	return e->loads[ilir_arg(e->m, j->x, operand).i] > 1;
}

static gcc_jit_rvalue *emit_FMA(struct emitter *e, const struct job *j)
{
	if (e->processor->set == JIT_SSE)
		return jit_emit_fma(e, j->width, j->arg[0], j->arg[1], j->arg[2]);
	if (j->width == 1)
		return call_builtin(e, j, "__builtin_fmaf", 3);
	enum jit_asm form = form_of_fma(e, j);
	bool shared = form == JIT_ASM_FMA_SUM && (is_shared(e, j, 0) || is_shared(e, j, 1));
	return (shared ? jit_asm_in_registers : jit_asm)(e, form, j->width, j->result, j->arg[0], j->arg[1],
							 j->arg[2]);
}

bool jit_find_sum(const struct emitter *e, ilir_expr x, enum jit_asm *row)
{
	enum ilir_op op = ilir_at(e->m, x)->op;
	int width = jit_width(e, ilir_type_of(e->m, x));
	if (op != ILIR_FMA)
		return jit_find_dot(e, op, width, row);
	*row = JIT_ASM_FMA_SUM;
	return width > 1 && jit_has_asm(e, *row, width);
}

void jit_emit_sum(struct emitter *e, ilir_expr x, enum jit_asm row, gcc_jit_lvalue *const *to)
{
	struct job j = {.x = x};
	const struct jit_value *a = jit_emit_expr(e, ilir_arg(e->m, x, 0)),
			       *b = jit_emit_expr(e, ilir_arg(e->m, x, 1));
	for (int i = 0; i < a->subvectors; i++)
		jit_asm_in_place(e, row, a->width, to[i], a->subvector[i], b->subvector[i],
				 !is_shared(e, &j, 0) && !is_shared(e, &j, 1));
}

#define emit_DOT4 jit_emit_dot
#define emit_DOT2 jit_emit_dot
#define emit_DOT_BF16 jit_emit_dot
#define emit_FMA_F16 jit_emit_dot

static gcc_jit_rvalue *emit_SQRT(struct emitter *e, const struct job *j)
{
	return j->width == 1 ? call_builtin(e, j, "__builtin_sqrtf", 1)
			     : jit_asm(e, JIT_ASM_SQRT, j->width, j->result, j->arg[0], NULL, NULL);
}

/* --- vectors of truth --- */

gcc_jit_rvalue *jit_compare_lanes(struct emitter *e, enum jit_asm op, const struct job *j,
				     gcc_jit_rvalue *a, gcc_jit_rvalue *b)
{
	return jit_asm(e, op, j->width, jit_subvector_type(e, ILIR_BOOL, j->width), a, b, NULL);
}

/* Without the instruction: (condition and yes) or (not condition and no). */
static gcc_jit_rvalue *blend_by_bits(struct emitter *e, const struct job *j, gcc_jit_rvalue *condition,
				     gcc_jit_rvalue *yes, gcc_jit_rvalue *no)
{
	gcc_jit_type *t = jit_subvector_type(e, ILIR_BOOL, j->width);
	gcc_jit_rvalue *not = jit_keep(
	    e, t,
	    gcc_jit_context_new_unary_op(e->context, NULL, GCC_JIT_UNARY_OP_BITWISE_NEGATE, t, condition));
	bool truth = j->type.dtype == ILIR_BOOL;
	yes = jit_binary(e, t, GCC_JIT_BINARY_OP_BITWISE_AND, condition, truth ? yes : jit_bits(e, t, yes));
	no = jit_binary(e, t, GCC_JIT_BINARY_OP_BITWISE_AND, not, truth ? no : jit_bits(e, t, no));
	gcc_jit_rvalue *either = jit_binary(e, t, GCC_JIT_BINARY_OP_BITWISE_OR, yes, no);
	return truth ? either : jit_bits(e, j->result, either);
}

gcc_jit_rvalue *jit_blend_lanes(struct emitter *e, const struct job *j, gcc_jit_rvalue *condition,
				   gcc_jit_rvalue *yes, gcc_jit_rvalue *no)
{
	if (!jit_has_asm(e, JIT_ASM_SELECT, j->width) || j->type.dtype == ILIR_BOOL)
		return blend_by_bits(e, j, condition, yes, no);
	return jit_asm(e, JIT_ASM_SELECT, j->width, j->result, condition, no, yes);
}

/* The instruction returns the second operand if either is a NaN; a NaN in the first is restored. */
static gcc_jit_rvalue *extreme_of_vectors(struct emitter *e, const struct job *j, enum jit_asm which)
{
	gcc_jit_rvalue *a = j->arg[0], *b = j->arg[1];
	if (j->type.dtype != ILIR_F32)
		return jit_blend_lanes(e, j, jit_compare_lanes(e, JIT_ASM_MORE_I32, j, a, b),
				   which == JIT_ASM_MAX ? a : b, which == JIT_ASM_MAX ? b : a);
	gcc_jit_rvalue *extreme = jit_asm(e, which, j->width, j->result, a, b, NULL);
	return jit_blend_lanes(e, j, jit_compare_lanes(e, JIT_ASM_NAN, j, a, a), a, extreme);
}

static gcc_jit_rvalue *emit_extreme(struct emitter *e, const struct job *j, enum jit_asm which,
				    enum gcc_jit_comparison how)
{
	gcc_jit_rvalue *a = j->arg[0], *b = j->arg[1];
	if (j->width > 1)
		return extreme_of_vectors(e, j, which);
	gcc_jit_rvalue *first = jit_choose(e, j->result, jit_compare(e, how, a, b), a, b);
	if (j->type.dtype != ILIR_F32)
		return first;
	return jit_choose(e, j->result, jit_compare(e, GCC_JIT_COMPARISON_NE, a, a), a, first);
}

static gcc_jit_rvalue *emit_MAX(struct emitter *e, const struct job *j)
{
	return emit_extreme(e, j, JIT_ASM_MAX, GCC_JIT_COMPARISON_GT);
}

static gcc_jit_rvalue *emit_MIN(struct emitter *e, const struct job *j)
{
	return emit_extreme(e, j, JIT_ASM_MIN, GCC_JIT_COMPARISON_LT);
}

/* --- quotients of indices --- */

static const char divisor_problem[] = "a divisor is not a positive constant";

/* -1 where x < 0, else 0. */
static gcc_jit_rvalue *sign_mask(struct emitter *e, const struct job *j, gcc_jit_rvalue *x)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_RSHIFT, x, jit_index(e, 63));
}

/* GCC's quotient is rounded towards zero; it is one too large where the remainder is negative. */
static gcc_jit_rvalue *emit_DIV(struct emitter *e, const struct job *j)
{
	int64_t by = jit_divisor(e->m, j->x);
	gcc_jit_rvalue *x = j->arg[0], *y = j->arg[1];
	if (!by)
		return jit_refuse_operator(e, j, divisor_problem);
	if (jit_is_power_of_two(by))
		return jit_binary(e, j->result, GCC_JIT_BINARY_OP_RSHIFT, x,
				  jit_index(e, __builtin_ctzll(by)));
	gcc_jit_rvalue *cut = jit_binary(e, j->result, GCC_JIT_BINARY_OP_DIVIDE, x, y);
	gcc_jit_rvalue *rest = jit_binary(e, j->result, GCC_JIT_BINARY_OP_MODULO, x, y);
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_PLUS, cut, sign_mask(e, j, rest));
}

static gcc_jit_rvalue *emit_MOD(struct emitter *e, const struct job *j)
{
	int64_t by = jit_divisor(e->m, j->x);
	gcc_jit_rvalue *x = j->arg[0], *y = j->arg[1];
	if (!by)
		return jit_refuse_operator(e, j, divisor_problem);
	if (jit_is_power_of_two(by))
		return jit_binary(e, j->result, GCC_JIT_BINARY_OP_BITWISE_AND, x, jit_index(e, by - 1));
	gcc_jit_rvalue *rest = jit_binary(e, j->result, GCC_JIT_BINARY_OP_MODULO, x, y);
	y = jit_binary(e, j->result, GCC_JIT_BINARY_OP_BITWISE_AND, sign_mask(e, j, rest), y);
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_PLUS, rest, y);
}

/* expand_math has replaced these. */
static gcc_jit_rvalue *refuse_compound(struct emitter *e, const struct job *j)
{
	return jit_refuse_operator(e, j, "a compound (exp, tanh ...) was never expanded");
}

/* --- conditions --- */

static gcc_jit_rvalue *emit_LT(struct emitter *e, const struct job *j)
{
	if (j->width == 1)
		return jit_compare(e, GCC_JIT_COMPARISON_LT, j->arg[0], j->arg[1]);
	return j->operand.dtype == ILIR_F32 ? jit_compare_lanes(e, JIT_ASM_LT, j, j->arg[0], j->arg[1])
					    : jit_compare_lanes(e, JIT_ASM_MORE_I32, j, j->arg[1], j->arg[0]);
}

static gcc_jit_rvalue *emit_EQ(struct emitter *e, const struct job *j)
{
	if (j->width == 1)
		return jit_compare(e, GCC_JIT_COMPARISON_EQ, j->arg[0], j->arg[1]);
	return jit_compare_lanes(e, j->operand.dtype == ILIR_F32 ? JIT_ASM_EQ : JIT_ASM_EQ_I32, j, j->arg[0],
			     j->arg[1]);
}

static gcc_jit_rvalue *emit_disjunction(struct emitter *e, const struct job *j, gcc_jit_rvalue *a,
					gcc_jit_rvalue *b)
{
	return jit_binary(e, j->result,
			  j->width == 1 ? GCC_JIT_BINARY_OP_LOGICAL_OR : GCC_JIT_BINARY_OP_BITWISE_OR, a, b);
}

static gcc_jit_rvalue *emit_LE(struct emitter *e, const struct job *j)
{
	if (j->width == 1)
		return jit_compare(e, GCC_JIT_COMPARISON_LE, j->arg[0], j->arg[1]);
	if (j->operand.dtype == ILIR_F32)
		return jit_compare_lanes(e, JIT_ASM_LE, j, j->arg[0], j->arg[1]);
	return emit_disjunction(e, j, emit_LT(e, j), emit_EQ(e, j));
}

static gcc_jit_rvalue *emit_OR(struct emitter *e, const struct job *j)
{
	return emit_disjunction(e, j, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_AND(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result,
			  j->width == 1 ? GCC_JIT_BINARY_OP_LOGICAL_AND : GCC_JIT_BINARY_OP_BITWISE_AND,
			  j->arg[0], j->arg[1]);
}

/* select(a < b, a, b) and select(a < b, b, a) of floats are one instruction each, for NaNs and zeros as well.
 */
static bool is_extreme(const struct emitter *e, ilir_expr x, enum jit_asm *which)
{
	ilir_expr condition = ilir_arg(e->m, x, 0), yes = ilir_arg(e->m, x, 1), no = ilir_arg(e->m, x, 2);
	if (ilir_at(e->m, condition)->op != ILIR_LT || ilir_type_of(e->m, x).dtype != ILIR_F32)
		return false;
	ilir_expr a = ilir_arg(e->m, condition, 0), b = ilir_arg(e->m, condition, 1);
	*which = a.i == yes.i ? JIT_ASM_MIN : JIT_ASM_MAX;
	return (a.i == yes.i && b.i == no.i) || (a.i == no.i && b.i == yes.i);
}

static gcc_jit_rvalue *emit_SELECT(struct emitter *e, const struct job *j)
{
	enum jit_asm extreme;
	if (j->width == 1)
		return jit_choose(e, j->result, j->arg[0], j->arg[1], j->arg[2]);
	if (is_extreme(e, j->x, &extreme))
		return jit_asm(e, extreme, j->width, j->result, j->arg[1], j->arg[2], NULL);
	return jit_blend_lanes(e, j, j->arg[0], j->arg[1], j->arg[2]);
}

/* --- bits --- */

static gcc_jit_rvalue *emit_BIT_AND(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_BITWISE_AND, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_BIT_OR(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_BITWISE_OR, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_BIT_XOR(struct emitter *e, const struct job *j)
{
	if (j->type.dtype == ILIR_BOOL && j->width == 1)
		return jit_compare(e, GCC_JIT_COMPARISON_NE, j->arg[0], j->arg[1]);
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_BITWISE_XOR, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_NOT(struct emitter *e, const struct job *j)
{
	enum gcc_jit_unary_op op =
	    j->width == 1 ? GCC_JIT_UNARY_OP_LOGICAL_NEGATE : GCC_JIT_UNARY_OP_BITWISE_NEGATE;
	return jit_keep(e, j->result,
			gcc_jit_context_new_unary_op(e->context, NULL, op, j->result, j->arg[0]));
}

static gcc_jit_rvalue *emit_SHL(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_LSHIFT, j->arg[0], j->arg[1]);
}

static gcc_jit_rvalue *emit_SHR(struct emitter *e, const struct job *j)
{
	return jit_binary(e, j->result, GCC_JIT_BINARY_OP_RSHIFT, j->arg[0], j->arg[1]);
}

/* Half floats are integers in the trees. */
static gcc_jit_rvalue *emit_AS_I32(struct emitter *e, const struct job *j)
{
	if (j->operand.dtype != ILIR_F32)
		return jit_cast(e, ILIR_I32, j->arg[0]);
	return jit_bits(e, j->result, j->arg[0]);
}

static gcc_jit_rvalue *emit_AS_F32(struct emitter *e, const struct job *j)
{
	return jit_bits(e, j->result, j->arg[0]);
}

static gcc_jit_rvalue *truncate_integer(struct emitter *e, const struct job *j)
{
	return jit_cast(e, j->type.dtype, j->arg[0]);
}

#define emit_AS_F16 truncate_integer
#define emit_AS_BF16 truncate_integer
#define emit_WRAP_I32 truncate_integer
#define emit_TO_INDEX truncate_integer
#define emit_TO_F32 jit_emit_cast
#define emit_TO_I32 jit_emit_cast
#define emit_TO_I64 jit_emit_cast
#define emit_TO_I8 jit_emit_cast
#define emit_TO_U8 jit_emit_cast
#define emit_TO_I16 jit_emit_cast

/* --- the table --- */

/* These are no operations on each subvector: see emit_anew. */
#define emit_VAR NULL
#define emit_LOAD NULL
#define emit_BROADCAST NULL
#define emit_WITHIN NULL
#define emit_WORD NULL
#define emit_SPLICE NULL
#define emit_KEEP NULL

static emit_op *const emitters[] = {
#define ILIR_OP(name, spelling, arity, rule, meaning, rows) emit_##name,
#define ILIR_COMPOUND(name, spelling, arity, meaning, rows) refuse_compound,
#include "ilir/ilir_ops.def"
};

static const struct jit_value *emit_variable(struct emitter *e, ilir_expr x)
{
	const struct jit_value *v = e->var[ilir_at(e->m, x)->var.i];
	return v ? v : jit_refuse(e, ilir_type_of(e->m, x), "a variable is used outside its scope");
}

/* All subvectors are the same. */
static const struct jit_value *emit_broadcast(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x);
	struct jit_value *v = jit_new_value(e, t);
	v->subvector[0] = jit_splat(e, t.dtype, jit_emit_scalar(e, ilir_arg(e->m, x, 0)), v->width);
	for (int i = 1; i < v->subvectors; i++)
		v->subvector[i] = v->subvector[0];
	return v;
}

/* A select as branches, when only the chosen side may be computed. */
static const struct jit_value *emit_choice(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x);
	struct jit_value *v = jit_new_value(e, t);
	gcc_jit_rvalue *condition = jit_emit_scalar(e, ilir_arg(e->m, x, 0));
	gcc_jit_block *side[2] = {jit_block(e, "yes"), jit_block(e, "no")}, *join = jit_block(e, "chosen");
	gcc_jit_lvalue *to = jit_local(e, jit_subvector_type(e, t.dtype, 1));
	gcc_jit_block_end_with_conditional(e->at, e->location, condition, side[0], side[1]);
	for (int i = 0; i < 2; i++) {
		size_t mark = e->known.n;
		e->at = side[i];
		gcc_jit_rvalue *value = jit_emit_scalar(e, ilir_arg(e->m, x, 1 + i));
		gcc_jit_block_add_assignment(e->at, e->location, to, value);
		gcc_jit_block_end_with_jump(e->at, e->location, join);
		jit_forget(e, mark);
	}
	e->at = join;
	v->subvector[0] = gcc_jit_lvalue_as_rvalue(to);
	return v;
}

/* Lane by lane: the subvectors of the operands and of the result differ in width. */
static const struct jit_value *emit_lanes(struct emitter *e, ilir_expr x, const struct jit_value *const *arg)
{
	const struct ilir_node *n = ilir_at(e->m, x);
	struct job j = {x, n->type, n->type, 1, e->type[n->type.dtype][0], {0}};
	gcc_jit_rvalue *lane[ILIR_MAX_LANES] = {NULL};
	j.operand = ilir_type_of(e->m, ilir_arg(e->m, x, n->args - 1));
	for (int i = 0; i < n->type.lanes; i++) {
		for (int a = 0; a < n->args; a++)
			j.arg[a] = jit_lane(e, arg[a], ilir_type_of(e->m, ilir_arg(e->m, x, a)).dtype, i);
		lane[i] = emitters[n->op](e, &j);
	}
	return jit_join(e, n->type, lane);
}

/* Whether there are instructions for vectors: none divides integers, and not all machines have dot products of bf16, or
 * multiply-adds of f16. */
static bool has_vectors(const struct emitter *e, enum ilir_op op)
{
	return op != ILIR_QUOTIENT && (op != ILIR_DOT_BF16 || e->dots.bf16) && (op != ILIR_FMA_F16 || e->dots.halves);
}

static const struct jit_value *emit_subvectors(struct emitter *e, ilir_expr x)
{
	const struct ilir_node *n = ilir_at(e->m, x);
	const struct jit_value *arg[3] = {0};
	struct jit_value *v = jit_new_value(e, n->type);
	struct job j = {x, n->type, n->type, v->width, jit_subvector_type(e, n->type.dtype, v->width), {0}};
	bool alike = v->width == 1 || has_vectors(e, n->op);
	for (int a = 0; a < n->args; a++) {
		arg[a] = jit_emit_expr(e, ilir_arg(e->m, x, a));
		alike &= arg[a]->width == v->width;
	}
	if (!alike)
		return emit_lanes(e, x, arg);
	j.operand = n->args ? ilir_type_of(e->m, ilir_arg(e->m, x, 0)) : n->type;
	for (int i = 0; i < v->subvectors; i++) {
		for (int a = 0; a < n->args; a++)
			j.arg[a] = arg[a]->subvector[i];
		v->subvector[i] = emitters[n->op](e, &j);
	}
	return v;
}

/* Lanes of two vectors, one by one: GCC makes permutations of them. */
static const struct jit_value *emit_pair(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x);
	const struct jit_value *side[2] = {jit_emit_expr(e, ilir_arg(e->m, x, 0)), jit_emit_expr(e, ilir_arg(e->m, x, 1))};
	gcc_jit_rvalue *lane[ILIR_MAX_LANES] = {NULL};
	for (int i = 0; i < t.lanes; i++) {
		int at = ilir_paired_lane(e->m, x, i);
		lane[i] = jit_lane(e, side[at >= t.lanes], t.dtype, at % t.lanes);
	}
	return jit_join(e, t, lane);
}

/* The floats of the f16 in the lower halves of words, by instructions; NULL = it is another expression, or the machine has none. */
static const struct jit_value *emit_lower_floats(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x);
	ilir_expr half = ilir_at(e->m, x)->op == ILIR_TO_F32 ? ilir_arg(e->m, x, 0) : x;
	if (ilir_at(e->m, half)->op != ILIR_AS_F16 || half.i == x.i || !e->dots.halves || jit_width(e, t) < 4)
		return NULL;
	const struct jit_value *word = jit_emit_expr(e, ilir_arg(e->m, half, 0));
	struct jit_value *v = jit_new_value(e, t);
	for (int i = 0; i < v->subvectors; i++)
		v->subvector[i] = jit_asm_in_registers(e, JIT_ASM_WIDEN_LOWER, v->width, jit_subvector_type(e, t.dtype, v->width),
					  word->subvector[i], NULL, NULL);
	return v;
}

static const struct jit_value *emit_anew(struct emitter *e, ilir_expr x)
{
	switch (ilir_at(e->m, x)->op) {
	case ILIR_VAR:
		return emit_variable(e, x);
	case ILIR_LOAD:
		return jit_emit_load(e, x);
	case ILIR_BROADCAST:
		return emit_broadcast(e, x);
	case ILIR_WORD:
		return jit_emit_word(e, ilir_arg(e->m, x, 0));
	case ILIR_SPLICE:
	case ILIR_KEEP:
		return emit_pair(e, x);
	case ILIR_WITHIN:
		return jit_refuse(e, ilir_type_of(e->m, x), "within was not resolved");
	case ILIR_SELECT:
		if (jit_must_branch(e->m, e->reads, x))
			return emit_choice(e, x);
	}
	const struct jit_value *v = jit_emit_widening_load(e, x);
	v = v ? v : emit_lower_floats(e, x);
	return v ? v : emit_subvectors(e, x);
}

const struct jit_value *jit_emit_expr(struct emitter *e, ilir_expr x)
{
	if (!e->value[x.i]) {
		const struct jit_value *v = emit_anew(e, x);
		vec_push(e->arena, &e->known, x.i);
		e->value[x.i] = v;
	}
	return e->value[x.i];
}

gcc_jit_rvalue *jit_emit_scalar(struct emitter *e, ilir_expr x)
{
	return jit_emit_expr(e, x)->subvector[0];
}

void jit_forget(struct emitter *e, size_t mark)
{
	while (e->known.n > mark)
		e->value[e->known.at[--e->known.n]] = NULL;
}
