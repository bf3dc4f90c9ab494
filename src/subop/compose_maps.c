/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The composition of two maps of movement, as one map. */
#include "subop/subop.h"

/* Adds scale times an index to a map; false if the sum is no map. */
static bool add_scaled_index(struct sub_map *out, const struct sub_map *index, int64_t scale)
{
	int var[] = {index->var, index->scale2 ? index->var2 : -1};
	int64_t by[] = {index->scale, index->scale2}, offset;
	if (__builtin_mul_overflow(scale, index->offset, &offset) ||
	    __builtin_add_overflow(out->offset, offset, &out->offset))
		return false;
	for (int i = 0; i < 2; i++) {
		int64_t step;
		if (var[i] < 0 || !by[i] || !scale)
			continue;
		if (__builtin_mul_overflow(scale, by[i], &step))
			return false;
		if (out->var == var[i] || out->var < 0) {
			out->scale = out->var < 0 ? step : out->scale + step;
			out->var = var[i];
		} else if (!out->scale2 || out->var2 == var[i]) {
			out->scale2 = out->scale2 ? out->scale2 + step : step;
			out->var2 = var[i];
		} else {
			return false;
		}
	}
	return true;
}

/* (x / d % m) / e % k is x / (d*e) % k if k counts all that e leaves of m; false if they are no such digits.
 */
static bool compose_digits(const struct sub_map *first, const struct sub_map *second, struct sub_map *out)
{
	*out = *first;
	if (second->scale != 1 || second->offset || second->scale2 ||
	    __builtin_mul_overflow(first->divisor, second->divisor, &out->divisor))
		return false;
	if (!first->modulus || (second->modulus && first->modulus % (second->divisor * second->modulus) == 0))
		out->modulus = second->modulus;
	else if (!second->modulus && first->modulus % second->divisor == 0)
		out->modulus = first->modulus / second->divisor;
	else
		return false;
	return true;
}

bool sub_compose_maps(const struct sub_map *second, const struct sub_map *first, const struct sub_map *first2, bool leaves,
		      struct sub_map *out)
{
	*out = *second;
	if (!first)
		return second->var < 0;
	if (second->function == SUB_DIGIT && first->function == SUB_DIGIT)
		return compose_digits(first, second, out);
	if (!sub_is_arithmetic(second)) {
		out->var = first->var;
		return sub_is_identity(first);
	}
	if (first->function != SUB_AFFINE) {
		*out = *first;
		return sub_is_identity(second) && !leaves;
	}
	*out = (struct sub_map){.function = second->function, .var = -1, .offset = second->offset};
	out->divisor = second->divisor;
	out->modulus = second->modulus;
	return add_scaled_index(out, first, second->scale) &&
	       (!second->scale2 ||
		(first2 && first2->function == SUB_AFFINE && add_scaled_index(out, first2, second->scale2)));
}
