/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Maps of movement: the range of an index, and the one form of those that compute the same. */
#include "subop/intern.h"

int sub_joined_var(const struct sub_value *v, int argument)
{
	const struct sub_use *u = &v->arg[argument];
	return u->var[u->vars - (v->vars - v->axis)];
}

static bool is_dim(const struct sub_program *p, int var)
{
	return p->vars.at[var].set == SUB_DIM;
}

static bool has_extent(const struct sub_program *p, int var)
{
	return is_dim(p, var) || p->vars.at[var].set == SUB_ROW;
}

/* Adds the range of scale*var to a range. */
static bool add_term(const struct sub_program *p, int var, int64_t scale, int64_t *least, int64_t *most)
{
	int64_t reach;
	if (scale == 0)
		return true;
	if (!has_extent(p, var) || __builtin_mul_overflow(scale, p->vars.at[var].extent - 1, &reach))
		return false;
	int64_t *end = reach < 0 ? least : most;
	return !__builtin_add_overflow(*end, reach, end);
}

/* The same of the sum that the digit is one of. */
static bool find_sum_range(const struct sub_program *p, const struct sub_map *m, int64_t *least,
			   int64_t *most)
{
	*least = *most = m->offset;
	return add_term(p, m->var, m->var < 0 ? 0 : m->scale, least, most) &&
	       add_term(p, m->var2, m->scale2, least, most);
}

bool sub_map_range(const struct sub_program *p, const struct sub_map *m, int64_t *least, int64_t *most)
{
	if (!sub_is_arithmetic(m) || !find_sum_range(p, m, least, most))
		return false;
	if (m->function == SUB_AFFINE)
		return true;
	if (*least < 0)
		return false;
	*least /= m->divisor;
	*most /= m->divisor;
	if (m->modulus && *least / m->modulus != *most / m->modulus) {
		*least = 0;
		*most = m->modulus - 1;
	} else if (m->modulus) {
		*least %= m->modulus;
		*most %= m->modulus;
	}
	return true;
}

bool sub_index_leaves(const struct sub_program *p, const struct sub_map *m, int var)
{
	int64_t least, most;
	if (!sub_is_arithmetic(m) || !is_dim(p, var))
		return false;
	return !sub_map_range(p, m, &least, &most) || least < 0 || most >= p->vars.at[var].extent;
}

bool sub_map_leaves(const struct sub_program *p, const struct sub_value *v, int i)
{
	return sub_index_leaves(p, &v->map[i], sub_at(p, v->arg[0].value)->var[i]);
}

/* Drops the terms of a sum that are multiples of `by`. */
static struct sub_map without_multiples(struct sub_map m, int64_t by)
{
	m.scale = m.scale % by ? m.scale : 0;
	m.scale2 = m.scale2 % by ? m.scale2 : 0;
	m.offset %= by;
	return m;
}

/* Drops whole periods of a sum of which a digit is taken: it stays the same, as no sum becomes negative. */
static struct sub_map without_periods(const struct sub_program *p, const struct sub_map *m, int64_t period)
{
	struct sub_map rest = without_multiples(*m, period);
	int64_t least, most;
	if (find_sum_range(p, &rest, &least, &most) && least < 0)
		rest.offset += (period - 1 - least) / period * period;
	return rest;
}

/* Takes out of the quotient what the divisor divides, if the rest of the sum is below it. */
static void divide_terms(const struct sub_program *p, struct sub_map *m)
{
	int64_t least, most, by = m->divisor;
	struct sub_map rest = without_multiples(*m, by);
	if (by == 1 || !find_sum_range(p, &rest, &least, &most) || least < 0 || most >= by)
		return;
	m->scale = rest.scale ? 0 : m->scale / by;
	m->scale2 = rest.scale2 ? 0 : m->scale2 / by;
	m->offset /= by;
	m->divisor = 1;
}

/* Drops a modulus that takes nothing away; makes a digit affine that is. */
static void simplify_digit(const struct sub_program *p, struct sub_map *m)
{
	int64_t least, most, period;
	if (m->modulus && !__builtin_mul_overflow(m->divisor, m->modulus, &period))
		*m = without_periods(p, m, period);
	divide_terms(p, m);
	if (m->modulus && find_sum_range(p, m, &least, &most) && least >= 0 && most / m->divisor < m->modulus)
		m->modulus = 0;
	if (m->divisor == 1 && !m->modulus)
		m->function = SUB_AFFINE;
}

/* The canonical form of a map: equal affine functions have equal forms. */
static struct sub_map normal_map(const struct sub_program *p, struct sub_map m)
{
	if (m.function == SUB_STEP)
		return (struct sub_map){
		    .function = m.function, .var = -1, .scale = m.scale, .offset = m.offset};
	if (!sub_is_arithmetic(&m))
		return (struct sub_map){
		    .function = m.function, .which = m.which, .var = m.var, .slot = m.slot};
	m.which = m.slot = 0;
	if (m.function == SUB_DIGIT)
		simplify_digit(p, &m);
	if (m.function == SUB_AFFINE)
		m.divisor = m.modulus = 0;
	if (m.var < 0)
		m.scale = 0;
	if (m.scale2 && m.scale && m.var2 == m.var)
		m.scale += m.scale2, m.scale2 = 0;
	if (m.scale2 && !m.scale)
		m.var = m.var2, m.scale = m.scale2, m.scale2 = 0;
	if (!m.scale)
		m.var = -1;
	if (!m.scale2)
		m.var2 = 0;
	return m;
}

void sub_normalize_map(const struct sub_program *p, struct sub_map *m)
{
	*m = normal_map(p, *m);
}

/* Puts the variable first that stands first in the value. */
static void order_map(const struct sub_value *v, struct sub_map *m)
{
	for (int i = 0; m->scale2 && i < v->vars && v->var[i] != m->var; i++)
		if (v->var[i] == m->var2) {
			struct sub_map old = *m;
			m->var = old.var2, m->scale = old.scale2;
			m->var2 = old.var, m->scale2 = old.scale;
			return;
		}
}

/* Removes what has no meaning in an assign: other names of the argument's dimensions, and a fill that nothing
 * reads. */
void sub_normalize_move(const struct sub_program *p, struct sub_value *v, struct sub_map *maps)
{
	bool leaves = false;
	if (v->op != SUB_ASSIGN)
		return;
	if (v->arg[0].value.i && v->arg[0].value.i < p->values.n)
		v->arg[0] = sub_as_is(p, v->arg[0].value);
	sub_copy_maps(v, maps);
	for (int i = 0; i < v->arg[0].vars; i++) {
		maps[i] = normal_map(p, maps[i]);
		order_map(v, &maps[i]);
		leaves |= sub_map_leaves(p, v, i);
	}
	v->fills &= leaves;
}
