/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The sigmoids and tanhs that are computed to 4 or 5 decimal places, in fewer operations, because products in
 * integers, f16 or bf16 go into them, whose errors are larger.
 *
 *     %2[n,j] = accumulate_k b[j], U[j,k], h[n,k]      in i8
 *     %3[n,j] = sigmoid %2[n,j]                        sigmoid_4
 *     %4[n,j] = multiply %3[n,j], %1[n,j]
 *     %5[n,j] = tanh %4[n,j]                           tanh_4
 *
 * A function stays as it is
 *
 * - in exact arithmetic, and where products are as exact as those of bf16x3;
 * - if the range of its argument ends before the function has reached its limits: then its own range is narrower
 *   than theirs and may bound what other products multiply (products.c), but not with a larger error;
 * - if it is a result, or if a logarithm, a root or a divisor is computed of it, which can make the error
 *   larger. */
#include "rewrite/products.h"

/* From here on all these functions are within 2^-20 of their limits. */
static const double far = 16;

/* The functions of so many places, with bounds of their errors over all floats (tests/jit/functions_test.c). */
static const struct short_function {
	enum sub_op of, quick, op;
	int places;
	double error;
} functions[] = {
    {SUB_SIGMOID, SUB_QUICK_SIGMOID, SUB_SIGMOID_4, 4, 2.3e-5},
    {SUB_SIGMOID, SUB_QUICK_SIGMOID, SUB_SIGMOID_5, 5, 7e-7},
    {SUB_TANH, SUB_QUICK_TANH, SUB_TANH_4, 4, 4.5e-5},
    {SUB_TANH, SUB_QUICK_TANH, SUB_TANH_5, 5, 1.2e-6},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* How a value is read. */
struct reading {
	bool as_result;	 /* it is stored as a result, perhaps after moves */
	bool in_divisor; /* arithmetic goes from it to something that makes errors larger */
};

double rewrite_function_error(enum sub_op op)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (functions[i].op == op)
			return functions[i].error;
	return 0;
}

static enum sub_op find_function(enum sub_op of, int places)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if ((functions[i].of == of || functions[i].quick == of) && functions[i].places == places)
			return functions[i].op;
	return of;
}

/* By value: the places of the products that it is computed of in the same body, the fewest of several; 0 = there
 * are none. */
static int *find_places(const struct rewrite_products *all, struct arena *a)
{
	int *places = ARENA_ARRAY(a, int, all->p->values.n);
	for (uint32_t i = 1; i < all->p->values.n; i++) {
		const struct sub_value *v = &all->p->values.at[i];
		const struct rewrite_product *product = &all->at[i];
		int least = product->refusal == REWRITE_QUANTISED ? precision_traits_of(product->precision)->places : 0;
		for (int k = 0; k < v->args; k++) {
			int of = places[v->arg[k].value.i];
			least = of && (!least || of < least) ? of : least;
		}
		places[i] = v->dtype == DTYPE_F32 ? least : 0;
	}
	return places;
}

static bool moves_elements(enum sub_op op)
{
	return sub_class_of(op) == SUB_MOVE || sub_class_of(op) == SUB_GATHERING || op == SUB_NOP;
}

/* Whether errors of arguments go on as errors of a similar size. */
static bool is_arithmetic(enum sub_op op)
{
	return sub_reduces(op) || op == SUB_TANH || op == SUB_QUICK_TANH || op == SUB_ERF || op == SUB_SIN || op == SUB_COS ||
	       op == SUB_ATAN || op == SUB_NEG || op == SUB_ABS || op == SUB_ADD || op == SUB_MULTIPLY || op == SUB_FMA ||
	       op == SUB_DIVIDE || op == SUB_SMAX || op == SUB_SMIN || op == SUB_SELECT;
}

/* Whether an argument is one of which a small error makes a large one. */
static bool magnifies_errors(enum sub_op op, int arg)
{
	return op == SUB_LOG || op == SUB_LOG1P || op == SUB_REC || op == SUB_SQRT ||
	       (op == SUB_DIVIDE && arg == 1);
}

/* Readings while they are found, by value and by state. */
struct readings {
	const struct sub_program *p;
	struct reading *value, *state;
};

static void join_reading(struct reading *to, struct reading from)
{
	to->as_result |= from.as_result;
	to->in_divisor |= from.in_divisor;
}

/* What is stored as a result, or to a state, is read as that is. */
static void note_stores(struct readings *r)
{
	for (size_t b = 0; b < r->p->bodies.n; b++)
		for (size_t s = 0; s < r->p->bodies.at[b].stores.n; s++) {
			const struct sub_store *store = &r->p->bodies.at[b].stores.at[s];
			struct reading *of = &r->value[store->value.value.i];
			of->as_result |= store->to == SUB_TO_OUTPUT;
			if (store->to == SUB_TO_STATE)
				join_reading(of, r->state[store->which]);
		}
}

/* Goes from readers to what they read, and to the states that are read; says whether one of these is read otherwise than was known. */
static bool note_readers(struct readings *r)
{
	bool more = false;
	for (uint32_t i = r->p->values.n; i-- > 1;) {
		const struct sub_value *v = &r->p->values.at[i];
		bool moves = moves_elements(v->op), goes_on = moves || is_arithmetic(v->op);
		for (int k = 0; k < v->args; k++) {
			struct reading *of = &r->value[v->arg[k].value.i];
			of->as_result |= moves && r->value[i].as_result;
			of->in_divisor |= (goes_on && r->value[i].in_divisor) || magnifies_errors(v->op, k);
		}
		if (v->op != SUB_STATE)
			continue;
		struct reading *state = &r->state[v->which], before = *state;
		join_reading(state, r->value[i]);
		more |= state->as_result != before.as_result || state->in_divisor != before.in_divisor;
	}
	return more;
}

/* By value. */
static const struct reading *find_readings(const struct sub_program *p, struct arena *a)
{
	struct readings r = {p, ARENA_ARRAY(a, struct reading, p->values.n), ARENA_ARRAY(a, struct reading, p->states.n + 1)};
	do
		note_stores(&r);
	while (note_readers(&r));
	return r.value;
}

const enum sub_op *rewrite_choose_functions(const struct rewrite_products *all,
					    const struct rewrite_options *options, struct arena *a)
{
	const struct sub_program *p = all->p;
	const struct rewrite_range *range = rewrite_find_ranges(p, options, a);
	const struct reading *reading = find_readings(p, a);
	const int *places = find_places(all, a);
	enum sub_op *op = ARENA_ARRAY(a, enum sub_op, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		const struct rewrite_range *of = &range[v->arg[0].value.i];
		bool kept = options->math == REWRITE_EXACT || reading[i].as_result || reading[i].in_divisor;
		op[i] = !kept && of->low <= -far && of->high >= far ? find_function(v->op, places[i]) : v->op;
	}
	return op;
}

const double *rewrite_find_function_errors(const struct sub_program *p,
					   const struct rewrite_options *options, struct arena *a)
{
	struct rewrite_products all = rewrite_find_products(p, options, a);
	const enum sub_op *op = rewrite_choose_functions(&all, options, a);
	double *error = ARENA_ARRAY(a, double, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++)
		error[i] = rewrite_function_error(op[i]);
	return error;
}
