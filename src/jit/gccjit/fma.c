/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fused multiply-add for machines without the instruction: by binary64 and rounding to odd, as in
 * ../llvm/fma.c, which has the proof. */
#include "jit/gccjit/emit.h"

#include <stdio.h>

/* The types of one function: of floats, and of as many binary64 as a register holds. */
struct wide {
	gcc_jit_type *narrow, *real, *integer;
	int lanes; /* of `real` */
};

static struct wide wide_of(const struct emitter *e, int width)
{
	gcc_jit_type *real = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_DOUBLE),
		     *integer = gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_UINT64_T);
	struct wide w = {jit_subvector_type(e, ILIR_F32, width), real, integer, width == 1 ? 1 : 2};
	if (w.lanes > 1) {
		w.real = gcc_jit_type_get_vector(real, 2);
		w.integer = gcc_jit_type_get_vector(integer, 2);
	}
	return w;
}

static gcc_jit_rvalue *real_operation(struct emitter *e, const struct wide *w, enum gcc_jit_binary_op op,
				      gcc_jit_rvalue *a, gcc_jit_rvalue *b)
{
	return jit_keep(e, w->real, gcc_jit_context_new_binary_op(e->context, NULL, op, w->real, a, b));
}

static gcc_jit_rvalue *integer_operation(struct emitter *e, const struct wide *w, enum gcc_jit_binary_op op,
					 gcc_jit_rvalue *a, gcc_jit_rvalue *b)
{
	return jit_keep(e, w->integer, gcc_jit_context_new_binary_op(e->context, NULL, op, w->integer, a, b));
}

static gcc_jit_rvalue *bitcast_to(struct emitter *e, gcc_jit_type *type, gcc_jit_rvalue *a)
{
	return jit_keep(e, type, gcc_jit_context_new_bitcast(e->context, NULL, a, type));
}

/* A constant in each lane. */
static gcc_jit_rvalue *make_constant(struct emitter *e, const struct wide *w, gcc_jit_type *vector,
				     long value)
{
	gcc_jit_type *element = gcc_jit_context_get_type(
	    e->context, vector == w->real ? GCC_JIT_TYPE_DOUBLE : GCC_JIT_TYPE_UINT64_T);
	gcc_jit_rvalue *one = gcc_jit_context_new_rvalue_from_long(e->context, element, value);
	return w->lanes == 1 ? one
			     : gcc_jit_context_new_rvalue_from_vector(e->context, NULL, vector, 2,
								      (gcc_jit_rvalue *[]){one, one});
}

/* The rounding error of a sum: a + b = sum + error, exactly.  A NaN where an operand is not finite. */
static gcc_jit_rvalue *error_of_sum(struct emitter *e, const struct wide *w, gcc_jit_rvalue *a,
				    gcc_jit_rvalue *b, gcc_jit_rvalue *sum)
{
	enum gcc_jit_binary_op plus = GCC_JIT_BINARY_OP_PLUS, minus = GCC_JIT_BINARY_OP_MINUS;
	gcc_jit_rvalue *b_part = real_operation(e, w, minus, sum, a),
		       *a_part = real_operation(e, w, minus, sum, b_part);
	return real_operation(e, w, plus, real_operation(e, w, minus, a, a_part),
			      real_operation(e, w, minus, b, b_part));
}

/* 1 where a < b, else 0, also where either is a NaN. */
static gcc_jit_rvalue *emit_less(struct emitter *e, const struct wide *w, gcc_jit_rvalue *a,
				 gcc_jit_rvalue *b)
{
	if (w->lanes == 1) {
		gcc_jit_rvalue *is =
		    gcc_jit_context_new_comparison(e->context, NULL, GCC_JIT_COMPARISON_LT, a, b);
		gcc_jit_rvalue *number = gcc_jit_context_new_cast(
		    e->context, NULL, is, gcc_jit_context_get_type(e->context, GCC_JIT_TYPE_INT));
		return jit_keep(e, w->integer,
				gcc_jit_context_new_cast(e->context, NULL, number, w->integer));
	}
	gcc_jit_rvalue *mask = jit_asm(e, JIT_ASM_LT_PD, 4, w->real, a, b, NULL);
	return integer_operation(e, w, GCC_JIT_BINARY_OP_BITWISE_AND, bitcast_to(e, w->integer, mask),
				 make_constant(e, w, w->integer, 1));
}

/* Where there is an error: moves the sum one step towards zero if it was rounded away from zero, which the
 * signs of sum and error show, and sets its last bit. */
static gcc_jit_rvalue *round_to_odd(struct emitter *e, const struct wide *w, gcc_jit_rvalue *sum,
				    gcc_jit_rvalue *error)
{
	gcc_jit_rvalue *zero = make_constant(e, w, w->real, 0), *bits = bitcast_to(e, w->integer, sum);
	gcc_jit_rvalue *sticky = integer_operation(
	    e, w, GCC_JIT_BINARY_OP_BITWISE_OR, emit_less(e, w, error, zero), emit_less(e, w, zero, error));
	gcc_jit_rvalue *signs =
	    integer_operation(e, w, GCC_JIT_BINARY_OP_BITWISE_XOR, bits, bitcast_to(e, w->integer, error));
	gcc_jit_rvalue *away =
	    integer_operation(e, w, GCC_JIT_BINARY_OP_RSHIFT, signs, make_constant(e, w, w->integer, 63));
	away = integer_operation(e, w, GCC_JIT_BINARY_OP_BITWISE_AND, away, sticky);
	bits = integer_operation(e, w, GCC_JIT_BINARY_OP_MINUS, bits, away);
	return bitcast_to(e, w->real, integer_operation(e, w, GCC_JIT_BINARY_OP_BITWISE_OR, bits, sticky));
}

static gcc_jit_rvalue *odd_sum(struct emitter *e, const struct wide *w, gcc_jit_rvalue *const x[3])
{
	gcc_jit_rvalue *product = real_operation(e, w, GCC_JIT_BINARY_OP_MULT, x[0], x[1]),
		       *sum = real_operation(e, w, GCC_JIT_BINARY_OP_PLUS, product, x[2]);
	return round_to_odd(e, w, sum, error_of_sum(e, w, product, x[2], sum));
}

static gcc_jit_rvalue *cast_to(struct emitter *e, gcc_jit_type *type, gcc_jit_rvalue *a)
{
	return jit_keep(e, type, gcc_jit_context_new_cast(e->context, NULL, a, type));
}

static gcc_jit_rvalue *body_of_one(struct emitter *e, const struct wide *w, gcc_jit_rvalue *const x[3])
{
	gcc_jit_rvalue *wider[3];
	for (int i = 0; i < 3; i++)
		wider[i] = cast_to(e, w->real, x[i]);
	return cast_to(e, w->narrow, odd_sum(e, w, wider));
}

/* Computes the lower and the upper half one after the other. */
static gcc_jit_rvalue *body_of_four(struct emitter *e, const struct wide *w, gcc_jit_rvalue *const x[3])
{
	static const enum jit_asm widen[] = {JIT_ASM_LOW_PD, JIT_ASM_HIGH_PD};
	gcc_jit_rvalue *half[2], *wider[3];
	for (int h = 0; h < 2; h++) {
		for (int i = 0; i < 3; i++)
			wider[i] = jit_asm(e, widen[h], 4, w->real, x[i], NULL, NULL);
		half[h] = jit_asm(e, JIT_ASM_NARROW_PD, 4, w->narrow, odd_sum(e, w, wider), NULL, NULL);
	}
	return jit_asm(e, JIT_ASM_JOIN, 4, w->narrow, half[0], half[1], NULL);
}

/* A function inside the object, since tiles contain hundreds of calls, and each would be two dozen
 * instructions. */
static gcc_jit_function *write_function(struct emitter *e, int width)
{
	static const char *const names[] = {"a", "b", "c"};
	struct wide w = wide_of(e, width);
	gcc_jit_function *outer = e->function;
	gcc_jit_block *at = e->at;
	gcc_jit_param *parameter[3];
	gcc_jit_rvalue *x[3];
	char name[32];
	snprintf(name, sizeof name, "fma_of_%d", width);
	for (int i = 0; i < 3; i++) {
		parameter[i] = gcc_jit_context_new_param(e->context, NULL, w.narrow, names[i]);
		x[i] = gcc_jit_param_as_rvalue(parameter[i]);
	}
	e->function = gcc_jit_context_new_function(e->context, NULL, GCC_JIT_FUNCTION_INTERNAL, w.narrow,
						   name, 3, parameter, 0);
	e->at = jit_block(e, "entry");
	gcc_jit_block_end_with_return(e->at, e->location,
				      width == 1 ? body_of_one(e, &w, x) : body_of_four(e, &w, x));
	gcc_jit_function *written = e->function;
	e->function = outer;
	e->at = at;
	return written;
}

gcc_jit_rvalue *jit_emit_fma(struct emitter *e, int width, gcc_jit_rvalue *a, gcc_jit_rvalue *b,
			     gcc_jit_rvalue *c)
{
	gcc_jit_function **f = &e->fma[width == 1 ? 0 : 2];
	if (!*f)
		*f = write_function(e, width);
	return jit_keep(e, jit_subvector_type(e, ILIR_F32, width),
			gcc_jit_context_new_call(e->context, NULL, *f, 3, (gcc_jit_rvalue *[]){a, b, c}));
}
