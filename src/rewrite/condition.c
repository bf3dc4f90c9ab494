/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The predicates of conditions.  Those about values are proved from their facts (value_range.c); those about
 * maps and variables are read from the match. */
#include "rewrite/rule_engine.h"

#include <float.h>
#include <math.h>

typedef bool predicate(struct rewrite_match *, const struct rewrite_term *const *arg);

static const struct sub_use *use_of(const struct rewrite_match *m, const struct rewrite_term *t)
{
	return &m->value[t->name];
}

static const struct rewrite_fact *fact_of(struct rewrite_match *m, const struct rewrite_term *t)
{
	return &rewrite_note_of(m->w, use_of(m, t)->value)->fact;
}

/* --- values --- */

static bool is_constant(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return fact_of(m, arg[0])->constant;
}

static bool is_uniform(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return fact_of(m, arg[0])->uniform;
}

static bool is_finite(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *r = &fact_of(m, arg[0])->range;
	return !r->nan && isfinite(r->low) && isfinite(r->high);
}

static bool is_positive(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return fact_of(m, arg[0])->range.low > 0;
}

static bool is_nonnegative(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return fact_of(m, arg[0])->range.low >= 0;
}

/* Whether no number in the range is zero or denormal, nor its reciprocal. */
static bool keeps_digits(const struct rewrite_range *r)
{
	double least = r->low > 0    ? r->low
		       : r->high < 0 ? -r->high
				     : 0,
	       most = fmax(fabs(r->low), fabs(r->high));
	return least >= FLT_MIN && most <= 1 / FLT_MIN;
}

/* x and 1/x are normal numbers: neither zero, denormal, infinite nor NaN. */
static bool is_normal(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *r = &fact_of(m, arg[0])->range;
	return !r->nan && keeps_digits(r);
}

/* Whether a value is a sum of one and the same number, which cannot overflow: a count of edges, say. */
static bool is_count(const struct rewriter *w, const struct sub_value *v)
{
	const struct rewrite_fact *term = &w->notes.at[v->arg[0].value.i].fact;
	double size = fabs(term->number);
	return v->op == SUB_SUM && term->uniform && size >= FLT_MIN && size <= 0x1p90;
}

/* The product with 1/x is the quotient by x but for rounding: x and 1/x are normal wherever x is finite and
 * not zero. Square roots are, since they are between 2^-75 and 2^64. */
static bool is_invertible(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct sub_value *v = sub_at(m->w->p, use_of(m, arg[0])->value);
	return keeps_digits(&fact_of(m, arg[0])->range) || v->op == SUB_SQRT || is_count(m->w, v);
}

/* x is invertible and not zero, so that 1/x is finite, too. */
static bool is_nonzero(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *r = &fact_of(m, arg[0])->range;
	return is_invertible(m, arg) && (r->low > 0 || r->high < 0);
}

/* x is not infinite. */
static bool is_bounded(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *r = &fact_of(m, arg[0])->range;
	return r->low > -INFINITY && r->high < INFINITY;
}

/* e^x is a normal number. */
static bool is_moderate(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *r = &fact_of(m, arg[0])->range;
	return r->low >= -87 && r->high <= 88;
}

/* e to the sum of any elements of x along k is a normal number. */
static bool is_moderate_along(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *r = &fact_of(m, arg[0])->range;
	struct sub_vars k = rewrite_indices_of(m, arg[1]);
	double most = fmax(fabs(r->low), fabs(r->high));
	for (int i = 0; i < k.n; i++) {
		if (m->w->p->vars.at[k.var[i]].set != SUB_DIM)
			return false;
		most *= m->w->p->vars.at[k.var[i]].extent;
	}
	return most <= 87;
}

/* x is larger than y, or NaN. */
static bool is_above(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *y = &fact_of(m, arg[1])->range;
	return !y->nan && fact_of(m, arg[0])->range.low > y->high;
}

/* x is less than y, or NaN. */
static bool is_below(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *y = &fact_of(m, arg[1])->range;
	return !y->nan && fact_of(m, arg[0])->range.high < y->low;
}

/* x and y are one value, perhaps under different variables. */
static bool is_same_value(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return use_of(m, arg[0])->value.i == use_of(m, arg[1])->value.i;
}

/* An elementwise operator of a and b has fewer dimensions than the matched value. */
static bool has_fewer_dims(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	struct sub_use both = *use_of(m, arg[0]);
	const struct sub_use *b = use_of(m, arg[1]);
	for (int i = 0; i < b->vars; i++)
		if (!sub_use_has(&both, b->var[i])) {
			if (both.vars == SUB_MAX_VARS)
				return false;
			both.var[both.vars++] = b->var[i];
		}
	return both.vars < m->root.vars;
}

/* x is no product, which the lowering would contract with an addition or sum of it. */
static bool is_not_product(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return sub_at(m->w->p, use_of(m, arg[0])->value)->op != SUB_MULTIPLY;
}

/* --- variables --- */

static bool lacks_index(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	struct sub_vars k = rewrite_indices_of(m, arg[1]);
	for (int i = 0; i < k.n; i++)
		if (sub_use_has(use_of(m, arg[0]), k.var[i]))
			return false;
	return true;
}

/* k ranges over dimensions: their extents are known and not zero, unlike the number of edges. */
static bool ranges_over_dimension(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	struct sub_vars k = rewrite_indices_of(m, arg[0]);
	return m->w->p->vars.at[k.var[0]].set == SUB_DIM;
}

/* --- maps --- */

static const struct rewrite_move *move_of(const struct rewrite_match *m, const struct rewrite_term *t)
{
	return &m->move[t->name];
}

/* Every index is a variable of the same range, none twice; some variables outside may have no index. */
static bool only_renames(const struct rewrite_match *m, const struct rewrite_move *a)
{
	for (int i = 0; i < a->n; i++) {
		if (!sub_is_identity(&a->map[i]) || !sub_same_range(m->w->p, a->inner[i], a->map[i].var))
			return false;
		for (int j = 0; j < i; j++)
			if (a->map[j].var == a->map[i].var)
				return false;
	}
	return true;
}

static bool is_renaming(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return only_renames(m, move_of(m, arg[0]));
}

/* A maps a variable alone, by an identity, to one dimension of the same extent. */
static bool maps_whole_dim(const struct rewrite_match *m, const struct rewrite_move *a, int k)
{
	int maps = 0;
	bool identity = true;
	for (int i = 0; i < a->n; i++)
		if (sub_map_uses(&a->map[i], k)) {
			maps++;
			identity &= sub_is_identity(&a->map[i]) && sub_same_range(m->w->p, a->inner[i], k);
		}
	return maps == 1 && identity;
}

/* A maps each variable of k so. */
static bool maps_whole_dims(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	struct sub_vars k = rewrite_indices_of(m, arg[1]);
	for (int i = 0; i < k.n; i++)
		if (!maps_whole_dim(m, move_of(m, arg[0]), k.var[i]))
			return false;
	return true;
}

/* A has no index with k: it repeats its argument along k. */
static bool ignores_index(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_move *a = move_of(m, arg[0]);
	struct sub_vars k = rewrite_indices_of(m, arg[1]);
	for (int i = 0; i < a->n; i++)
		for (int j = 0; j < k.n; j++)
			if (sub_map_uses(&a->map[i], k.var[j]))
				return false;
	return true;
}

/* A reads no fill. */
static bool stays_inside(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	return !rewrite_reads_fill(m, move_of(m, arg[0]));
}

/* --- fills --- */

/* A number as an element of a type: of integers and bools, an integer, to which infinities are the least and the largest one. */
struct element {
	enum dtype dtype;
	double number;
	int64_t integer;
};

static struct element element_of(enum dtype dtype, double number)
{
	struct element e = {.dtype = dtype};
	if (dtype == DTYPE_F32)
		e.number = (float)number;
	else
		e.integer = sub_convert_number(dtype, number);
	return e;
}

static bool is_same_element(const struct element *a, const struct element *b)
{
	return a->dtype == b->dtype && a->number == b->number && signbit(a->number) == signbit(b->number) && a->integer == b->integer;
}

/* An operator of two elements of a type, in the arithmetic of that type.  False: it does not take them. */
static bool apply_to_elements(enum sub_op op, enum dtype to, const struct element *a, const struct element *b, struct element *result)
{
	if (a->dtype == DTYPE_F32)
		*result = element_of(to, sub_apply_op(op, a->number, b->number, 0));
	else if (sub_takes_integers(op) && to != DTYPE_F32)
		*result = (struct element){.dtype = to, .integer = sub_apply_to_integers(op, to, a->integer, b->integer, 0)};
	else
		return false;
	return true;
}

/* Whether the matched reduction of elements that are all the fill is the fill, however many they are.  Of edges there may be
 * none. */
static bool reduces_to_fill(const struct rewrite_match *m, const struct element *fill)
{
	enum sub_op op = m->op[SUB_REDUCE - SUB_UNARY], combine = sub_traits_of(op)->combine;
	struct element neutral = element_of(fill->dtype, sub_traits_of(op)->neutral), one, two;
	if (!apply_to_elements(combine, fill->dtype, &neutral, fill, &one) || !is_same_element(&one, fill) ||
	    !apply_to_elements(combine, fill->dtype, fill, fill, &two) || !is_same_element(&two, fill))
		return false;
	for (int i = 0; i < m->rule->indices; i++)
		if (m->index[i].bound && m->w->p->vars.at[m->index[i].over.var[0]].set != SUB_DIM &&
		    !is_same_element(fill, &neutral))
			return false;
	return true;
}

/* Whether the matched operator of elements that are all the fill is the fill, each in its own type.  All values of the rule are
 * its arguments, and have one type. */
static bool applies_to_fill(const struct rewrite_match *m, double number)
{
	enum dtype to = sub_at(m->w->p, m->root.value)->dtype;
	struct element fill = element_of(sub_at(m->w->p, m->value[0].value)->dtype, number), kept = element_of(to, number), result;
	for (int class = SUB_UNARY; class <= SUB_BINARY; class ++)
		if (m->op_bound[class - SUB_UNARY])
			return apply_to_elements(m->op[class - SUB_UNARY], to, &fill, &fill, &result) && is_same_element(&result, &kept);
	return !m->op_bound[SUB_REDUCE - SUB_UNARY] || reduces_to_fill(m, &fill);
}

/* The matched operator maps the fill of A to itself, and every operand is filled where A leaves a dimension:
 * none lacks that dimension.  Only for rules all of whose values are inside of A. */
static bool keeps_fill(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_move *a = move_of(m, arg[0]);
	if (!rewrite_reads_fill(m, a))
		return true;
	if (!applies_to_fill(m, a->fill))
		return false;
	for (int i = 0; i < a->n; i++)
		for (int v = 0; v < m->rule->values && sub_index_leaves(m->w->p, &a->map[i], a->inner[i]);
		     v++)
			if (!sub_use_has(&m->value[v], a->inner[i]))
				return false;
	return true;
}

/* k is the index of one dimension, in either direction, and reaches every element of it; fills do not change
 * the reduction. */
static bool maps_onto(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_move *a = move_of(m, arg[0]);
	int k = rewrite_index_of(m, arg[1]), at = -1;
	int64_t least, most;
	for (int i = 0; i < a->n; i++)
		if (sub_map_uses(&a->map[i], k)) {
			if (at >= 0)
				return false;
			at = i;
		}
	if (k < 0 || at < 0 || a->map[at].function != SUB_AFFINE || a->map[at].scale2 ||
	    (a->map[at].scale != 1 && a->map[at].scale != -1) ||
	    !sub_map_range(m->w->p, &a->map[at], &least, &most) || least > 0 ||
	    most < m->w->p->vars.at[a->inner[at]].extent - 1)
		return false;
	enum sub_op op = m->op[SUB_REDUCE - SUB_UNARY];
	/* where an index without k leaves its dimension, all reduced elements are the fill */
	bool same = op == SUB_MAX && !sub_index_leaves(m->w->p, &a->map[at], a->inner[at]);
	return !rewrite_reads_fill(m, a) || same || a->fill == sub_traits_of(op)->neutral;
}

/* Whether A leaves the dimension of B(x) that a variable indexes. */
static bool leaves_variable(const struct rewrite_match *m, const struct rewrite_move *a, int var)
{
	for (int i = 0; i < a->n; i++)
		if (a->inner[i] == var && sub_index_leaves(m->w->p, &a->map[i], var))
			return true;
	return false;
}

/* Whether a map of B, extended beyond the dimension of B(x) that it is a map of, leaves the dimension of x there. */
static bool extends_beyond(const struct rewrite_match *m, const struct rewrite_move *b, int i)
{
	const struct sub_map *map = &b->map[i];
	int64_t least, most;
	if (map->function != SUB_AFFINE || map->var < 0 || map->scale != 1 || map->scale2)
		return false;
	for (int j = 0; j < b->n; j++)
		if (j != i && sub_map_uses(&b->map[j], map->var))
			return false;
	return m->w->p->vars.at[b->inner[i]].set != SUB_DIM ||
	       (sub_map_range(m->w->p, map, &least, &most) && least <= 0 &&
		most >= m->w->p->vars.at[b->inner[i]].extent - 1);
}

/* Where A reads outside of B(x), the maps of B, extended beyond its dimensions, read outside of x; and both
 * have the same fill. */
static bool has_nesting_fills(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_move *a = move_of(m, arg[0]), *b = move_of(m, arg[1]);
	if (!rewrite_reads_fill(m, a))
		return true;
	if (rewrite_reads_fill(m, b) && memcmp(&a->fill, &b->fill, sizeof a->fill) != 0)
		return false;
	/* What is read of other nodes is copied before windows read it, rather than found for each of their elements. */
	for (int j = 0; j < b->n; j++)
		if (b->map[j].function != SUB_AFFINE)
			return false;
	/* B has no index to leave for a dimension along which it repeats, so A must not leave that one. */
	for (int i = 0; i < a->n; i++) {
		bool used = false;
		for (int j = 0; j < b->n; j++)
			used |= b->map[j].var == a->inner[i] && extends_beyond(m, b, j);
		if (!used && leaves_variable(m, a, a->inner[i]))
			return false;
	}
	return true;
}

/* A has an index with every variable of b. */
static bool is_within(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct sub_use *b = use_of(m, arg[0]);
	const struct rewrite_move *a = move_of(m, arg[1]);
	for (int i = 0; i < b->vars; i++) {
		bool found = false;
		for (int j = 0; j < a->n; j++)
			found |= sub_map_uses(&a->map[j], b->var[i]);
		if (!found)
			return false;
	}
	return true;
}

/* A selects rows by a token. */
static bool is_look_up(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_move *a = move_of(m, arg[0]);
	for (int i = 0; i < a->n; i++)
		if (a->map[i].function == SUB_TOKEN)
			return true;
	return false;
}

/* --- the table --- */

static const struct {
	const char *name;
	predicate *holds;
} predicates[] = {
    {"constant", is_constant},
    {"number", is_uniform},
    {"finite", is_finite},
    {"positive", is_positive},
    {"nonnegative", is_nonnegative},
    {"normal", is_normal},
    {"invertible", is_invertible},
    {"nonzero", is_nonzero},
    {"bounded", is_bounded},
    {"moderate", is_moderate},
    {"moderate_along", is_moderate_along},
    {"above", is_above},
    {"below", is_below},
    {"same", is_same_value},
    {"smaller", has_fewer_dims},
    {"plain", is_not_product},
    {"lacks", lacks_index},
    {"countable", ranges_over_dimension},
    {"renames", is_renaming},
    {"whole", maps_whole_dims},
    {"unused", ignores_index},
    {"within", is_within},
    {"looks_up", is_look_up},
    {"inside", stays_inside},
    {"keeps", keeps_fill},
    {"onto", maps_onto},
    {"nests", has_nesting_fills},
};

int rewrite_find_predicate(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof predicates / sizeof *predicates; i++)
		if (strlen(predicates[i].name) == length && strncmp(predicates[i].name, name, length) == 0)
			return i;
	return -1;
}

int rewrite_find_refuted(struct rewrite_match *m, int ignore)
{
	bool fast = m->w->options->math == REWRITE_FAST;
	for (int i = 0; i < m->rule->predicates; i++) {
		const struct rewrite_predicate *p = &m->rule->predicate[i];
		if (i != ignore && !(p->assumed && fast) && !predicates[p->function].holds(m, p->arg))
			return i;
	}
	return -1;
}
