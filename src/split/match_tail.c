/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Matches the formulas of patterns.def: by which sums of products become bytes. */
#include "rewrite/rules.h"
#include "split/target_split.h"

#include <math.h>

static const struct formula {
	enum split_rounding rounding;
	const char *tail, *inner;
} formulas[] = {
#define REQUANTISED(rounding, tail, inner) {SPLIT_##rounding, tail, inner},
#include "split/patterns.def"
#undef REQUANTISED
};

enum { FORMULAS = sizeof formulas / sizeof *formulas };

/* --- values --- */

static int position_of(const struct sub_value *v, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return i;
	return -1;
}

/* The name outside of the index that a map computes; -1 = it is 0 in a dimension of one element; -2 = it is something else. */
static int name_of_map(const struct sub_program *p, const struct sub_value *v, const struct sub_use *u, int d)
{
	const struct sub_map *m = &v->map[d];
	int var = sub_at(p, v->arg[0].value)->var[d];
	if (p->vars.at[var].set == SUB_DIM && p->vars.at[var].extent == 1 && m->function == SUB_AFFINE && !sub_map_leaves(p, v, d))
		return -1;
	int at = sub_is_identity(m) ? position_of(v, m->var) : -1;
	return at >= 0 && sub_same_range(p, m->var, var) ? u->var[at] : -2;
}

struct sub_use split_see_through(const struct sub_program *p, struct sub_use u)
{
	for (;;) {
		const struct sub_value *v = sub_at(p, u.value);
		struct sub_use inside = {.value = v->args ? v->arg[0].value : (sub_ref){0}};
		if (v->op != SUB_ASSIGN)
			return u;
		for (int d = 0; d < v->arg[0].vars; d++) {
			inside.var[inside.vars++] = name_of_map(p, v, &u, d);
			if (inside.var[d] == -2)
				return u;
		}
		u = inside;
	}
}

/* The use of an argument, under the names of a use of the value. */
static struct sub_use use_argument(const struct sub_value *v, const struct sub_use *u, int a)
{
	struct sub_use arg = v->arg[a];
	for (int i = 0; i < arg.vars; i++) {
		int at = position_of(v, v->arg[a].var[i]);
		arg.var[i] = at >= 0 ? u->var[at] : -2;
	}
	return arg;
}

bool split_find_number(const struct sub_program *p, sub_ref r, double *number)
{
	const struct sub_value *v = sub_at(p, r);
	if (v->op == SUB_CONST) {
		*number = v->constant;
		return true;
	}
	bool known = (v->op == SUB_NEG || v->op == SUB_ASSIGN) && split_find_number(p, v->arg[0].value, number);
	if (known && v->op == SUB_NEG)
		*number = -*number;
	return known && !(v->op == SUB_ASSIGN && v->fills);
}

/* --- terms --- */

struct binding {
	char letter;
	struct sub_use use;
};

struct matching {
	const struct sub_program *p;
	const struct rewrite_parsed *rule;
	struct binding bound[2 * REWRITE_MAX_NAMES];
	int n;
};

static bool same_use(const struct sub_use *a, const struct sub_use *b)
{
	return a->value.i == b->value.i && a->vars == b->vars && memcmp(a->var, b->var, a->vars * sizeof *a->var) == 0;
}

static const struct sub_use *find_bound(const struct matching *m, char letter)
{
	for (int i = 0; i < m->n; i++)
		if (m->bound[i].letter == letter)
			return &m->bound[i].use;
	return NULL;
}

static bool bind_name(struct matching *m, char letter, struct sub_use u)
{
	const struct sub_use *had = find_bound(m, letter);
	if (had)
		return same_use(had, &u);
	m->bound[m->n++] = (struct binding){letter, u};
	return true;
}

static bool match_term(struct matching *, const struct rewrite_term *, struct sub_use);

static bool match_arguments(struct matching *m, const struct rewrite_term *t, const struct sub_use *u, bool reversed)
{
	const struct sub_value *v = sub_at(m->p, u->value);
	int before = m->n;
	for (int a = 0; a < t->args; a++)
		if (!match_term(m, t->arg[a], use_argument(v, u, reversed ? !a : a))) {
			m->n = before;
			return false;
		}
	return true;
}

static bool match_term(struct matching *m, const struct rewrite_term *t, struct sub_use u)
{
	double number;
	u = split_see_through(m->p, u);
	if (t->kind == REWRITE_TERM_NAME)
		return bind_name(m, m->rule->value[t->name], u);
	if (t->kind == REWRITE_TERM_NUMBER)
		return split_find_number(m->p, u.value, &number) && number == t->number;
	if (t->kind != REWRITE_TERM_OP || sub_at(m->p, u.value)->op != t->op)
		return false;
	return match_arguments(m, t, &u, false) || (t->args == 2 && sub_commutes(t->op) && match_arguments(m, t, &u, true));
}

static bool match_text(struct matching *m, struct arena *a, const char *text, const char *whole, struct sub_use u)
{
	const struct rewrite_rule rule = {.name = "split", .pattern = text, .condition = "", .replacement = whole};
	m->rule = rewrite_parse_rule(a, &rule, NULL);
	return m->rule && match_term(m, m->rule->pattern, u);
}

/* --- numbers --- */

/* The number that a value is, or the product of two. */
static bool find_product(const struct sub_program *p, sub_ref r, double *number)
{
	const struct sub_value *v = sub_at(p, r);
	double factor = 1;
	bool known = v->op == SUB_MULTIPLY ? split_find_number(p, v->arg[0].value, number) && split_find_number(p, v->arg[1].value, &factor)
					   : split_find_number(p, r, number);
	*number = known ? *number * factor : NAN;
	return fabs(*number) < 0x1p53;
}

/* The number that a name stands for; `otherwise` where the formula has no such name; NAN where it is none. */
static double number_of(const struct matching *m, char letter, double otherwise)
{
	const struct sub_use *u = find_bound(m, letter);
	double number;
	if (!u)
		return otherwise;
	return find_product(m->p, u->value, &number) ? number : NAN;
}

/* k where x is 2^-k and k is not negative; else -1. */
static int find_shift(double x)
{
	int exponent;
	return frexp(x, &exponent) == 0.5 && exponent <= 1 ? 1 - exponent : -1;
}

static bool is_list(const struct matching *m, char letter)
{
	double number;
	return find_bound(m, letter) && !find_product(m->p, find_bound(m, letter)->value, &number);
}

/* Sets the factor of a fixed-point product and a rounding division; false if the numbers are not those of one. */
static bool read_fixed_point(const struct matching *m, struct split_tail *t)
{
	if (is_list(m, 'g')) {
		t->factor = NAN;
		t->shift = -1;
		return true;
	}
	double f = number_of(m, 'f', NAN), p = number_of(m, 'p', NAN);
	double g = -p, up = number_of(m, 'g', NAN) * number_of(m, 'u', 1) / g;
	double c = number_of(m, 'c', NAN), d = number_of(m, 'd', NAN), e = number_of(m, 'e', NAN);
	bool ok = f * up == 0x1p31 && c == 0x1p32 + d / 2 && e == -0x1p32 / d;
	t->factor = g * 0x1p-31 * up / d;
	t->shift = g == 0x1p30 && up == 1 && d >= 2 ? find_shift(t->factor) : -1;
	return ok;
}

/* A factor of one for each output is no number: it is known when weights are bound. */
static bool read_numbers(const struct matching *m, struct split_tail *t)
{
	t->zero = number_of(m, 'z', 0);
	t->low = number_of(m, 'l', NAN);
	t->high = number_of(m, 'h', NAN);
	if (!(t->low <= t->high) || isnan(t->zero))
		return false;
	if (t->rounding == SPLIT_TWICE)
		return read_fixed_point(m, t);
	t->factor = number_of(m, 'm', NAN);
	t->shift = find_shift(t->factor);
	return true;
}

static bool match_formula(const struct sub_program *p, struct arena *a, const struct formula *f, struct split_tail *t)
{
	struct matching m = {.p = p};
	bool nested = *f->inner;
	if (!match_text(&m, a, f->tail, nested ? "r" : "a", sub_as_is(p, t->result)) ||
	    (nested && !match_text(&m, a, f->inner, "a", *find_bound(&m, 'r'))))
		return false;
	t->rounding = f->rounding;
	t->sums = *find_bound(&m, 'a');
	return sub_at(p, t->sums.value)->dtype == DTYPE_I32 && read_numbers(&m, t);
}

bool split_match_tail(const struct sub_program *p, struct arena *a, sub_ref result, struct split_tail *t)
{
	enum sub_op op = sub_at(p, result)->op;
	for (int i = 0; i < FORMULAS && (op == SUB_CAST || op == SUB_SMIN); i++) {
		*t = (struct split_tail){.result = result};
		if (match_formula(p, a, &formulas[i], t))
			return true;
	}
	return false;
}
