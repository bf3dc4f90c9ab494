/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The predicates of conditions.  Those about values are proved from their facts (value_range.c); those about
 * maps and variables are read from the match. */
#include "rewrite/engine.h"

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

/* x is larger than y, or NaN. */
static bool is_above(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_range *y = &fact_of(m, arg[1])->range;
	return !y->nan && fact_of(m, arg[0])->range.low > y->high;
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

/* The matched reduction of elements that are all the fill; NaN if it depends on their number.  Of edges there
 * may be none. */
static double reduce_fills(const struct rewrite_match *m, double fill)
{
	enum sub_op op = m->op[SUB_REDUCE - SUB_UNARY], combine = sub_traits_of(op)->combine;
	double one = sub_apply_op(combine, (float)sub_traits_of(op)->neutral, (float)fill, 0);
	double two = sub_apply_op(combine, (float)fill, (float)fill, 0);
	if (memcmp(&one, &fill, sizeof fill) != 0 || memcmp(&two, &fill, sizeof fill) != 0)
		return NAN;
	for (int i = 0; i < m->rule->indices; i++)
		if (m->index[i].bound && m->w->p->vars.at[m->index[i].over.var[0]].set != SUB_DIM &&
		    fill != sub_traits_of(op)->neutral)
			return NAN;
	return fill;
}

/* The matched operator applied to the fill. */
static double apply_to_fill(const struct rewrite_match *m, double fill)
{
	for (int class = SUB_UNARY; class <= SUB_BINARY; class ++)
		if (m->op_bound[class - SUB_UNARY])
			return sub_apply_op(m->op[class - SUB_UNARY], (float)fill, (float)fill, 0);
	return m->op_bound[SUB_REDUCE - SUB_UNARY] ? reduce_fills(m, fill) : fill;
}

/* The matched operator maps the fill of A to itself, and every operand is filled where A leaves a dimension:
 * none lacks that dimension.  Only for rules all of whose values are inside of A. */
static bool keeps_fill(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_move *a = move_of(m, arg[0]);
	if (!rewrite_reads_fill(m, a))
		return true;
	double kept = apply_to_fill(m, a->fill);
	if ((float)kept != (float)a->fill || signbit(kept) != signbit(a->fill))
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

/* Where A reads outside of B(x), the maps of B, extended beyond its dimensions, read outside of x; and both
 * have the same fill. */
static bool has_nesting_fills(struct rewrite_match *m, const struct rewrite_term *const *arg)
{
	const struct rewrite_move *a = move_of(m, arg[0]), *b = move_of(m, arg[1]);
	if (!rewrite_reads_fill(m, a))
		return true;
	if (rewrite_reads_fill(m, b) && memcmp(&a->fill, &b->fill, sizeof a->fill) != 0)
		return false;
	for (int i = 0; i < b->n; i++) {
		int64_t least, most;
		const struct sub_map *map = &b->map[i];
		if (map->function != SUB_AFFINE || map->var < 0 || map->scale != 1 || map->scale2)
			return false;
		for (int j = 0; j < i; j++)
			if (b->map[j].var == map->var)
				return false;
		if (m->w->p->vars.at[b->inner[i]].set == SUB_DIM &&
		    (!sub_map_range(m->w->p, map, &least, &most) || least > 0 ||
		     most < m->w->p->vars.at[b->inner[i]].extent - 1))
			return false;
	}
	/* B has no index to leave for a dimension along which it repeats, so A must not leave that one. */
	for (int i = 0; i < a->n; i++) {
		bool used = false;
		for (int j = 0; j < b->n; j++)
			used |= b->map[j].var == a->inner[i];
		if (!used && sub_index_leaves(m->w->p, &a->map[i], a->inner[i]))
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
    {"bounded", is_bounded},
    {"moderate", is_moderate},
    {"above", is_above},
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
