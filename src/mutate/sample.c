/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Elements of linear values of random leaves, modulo a prime, each computed alone. */
#include "mutate/forms.h"

/* Mixes a number into a hash (the finalizer of SplitMix64). */
static uint64_t mix_number(uint64_t hash, uint64_t number)
{
	uint64_t x = hash + 0x9e3779b97f4a7c15u + number * 0xd1342543de82ef95u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t draw_leaf(const struct mutate_sampler *s, sub_ref r, const int64_t *index)
{
	uint64_t hash = mix_number(s->round, r.i);
	for (int i = 0; i < sub_at(s->p, r)->vars; i++)
		hash = mix_number(hash, index[i]);
	return hash % SUB_FIELD_PRIME;
}

static uint64_t enter_number(double number)
{
	int64_t n = (int64_t)number;
	return n < 0 ? SUB_FIELD_PRIME - -n : (uint64_t)n;
}

/* Variables by position. */
struct names {
	int n;
	const int *var;
};

static int find_name(const struct names *names, int var)
{
	for (int i = 0; i < names->n; i++)
		if (names->var[i] == var)
			return i;
	return -1;
}

/* The index of a variable, which the names have. */
static int64_t index_of(const struct names *names, int var, const int64_t *index)
{
	int at = find_name(names, var);
	return at < 0 ? 0 : index[at];
}

static uint64_t sample_use(struct mutate_sampler *s, const struct names *names, const struct sub_use *u, const int64_t *index)
{
	int64_t at[SUB_MAX_VARS] = {0};
	for (int i = 0; i < u->vars; i++)
		at[i] = index_of(names, u->var[i], index);
	return mutate_sample(s, u->value, at);
}

/* A use whose variables' positions among the names are known: its elements are sampled one after the other. */
struct placed_use {
	const struct sub_use *use;
	int at[SUB_MAX_VARS];
};

static struct placed_use place_use(const struct names *names, const struct sub_use *u)
{
	struct placed_use placed = {.use = u};
	for (int i = 0; i < u->vars; i++)
		placed.at[i] = find_name(names, u->var[i]);
	return placed;
}

static uint64_t sample_placed(struct mutate_sampler *s, const struct placed_use *u, const int64_t *index)
{
	int64_t at[SUB_MAX_VARS] = {0};
	for (int i = 0; i < u->use->vars; i++)
		at[i] = u->at[i] < 0 ? 0 : index[u->at[i]];
	return mutate_sample(s, u->use->value, at);
}

static int64_t apply_map(const struct sub_map *m, const struct names *names, const int64_t *index)
{
	int64_t sum = m->offset;
	if (m->var >= 0)
		sum += m->scale * index_of(names, m->var, index);
	if (m->scale2)
		sum += m->scale2 * index_of(names, m->var2, index);
	if (m->function == SUB_DIGIT)
		return m->modulus ? sum / m->divisor % m->modulus : sum / m->divisor;
	return sum;
}

static uint64_t sample_moved(struct mutate_sampler *s, const struct sub_value *v, const int64_t *index)
{
	const struct sub_value *from = sub_at(s->p, v->arg[0].value);
	struct names names = {v->vars, v->var};
	int64_t at[SUB_MAX_VARS] = {0};
	for (int i = 0; i < from->vars; i++) {
		const struct sub_var *var = &s->p->vars.at[from->var[i]];
		at[i] = apply_map(&v->map[i], &names, index);
		if (v->fills && var->set == SUB_DIM && (at[i] < 0 || at[i] >= var->extent))
			return enter_number(v->fill);
	}
	return mutate_sample(s, v->arg[0].value, at);
}

static uint64_t sample_joined(struct mutate_sampler *s, const struct sub_value *v, const int64_t *index)
{
	int64_t seam = s->p->vars.at[sub_joined_var(v, 0)].extent, at[MUTATE_MAX_SCOPE] = {0};
	int a = index[v->axis] >= seam;
	struct mutate_scope scope = mutate_joined_scope(s->p, v, a);
	struct names names = {scope.n, scope.var};
	memcpy(at, index, v->vars * sizeof *at);
	at[v->axis] -= a ? seam : 0;
	return sample_use(s, &names, &v->arg[a], at);
}

/* Steps the variables behind the first ones of a scope; false after the last of their elements. */
static bool step_reduced(const struct sub_program *p, const struct mutate_scope *scope, int first, int64_t *index)
{
	for (int i = scope->n; i-- > first;) {
		if (++index[i] < p->vars.at[scope->var[i]].extent)
			return true;
		index[i] = 0;
	}
	return false;
}

/* A sum of its argument, or an accumulation of the products of its last two.  In order, it is a polynomial in a random number,
 * with the elements as coefficients. */
static uint64_t sample_reduced(struct mutate_sampler *s, const struct sub_value *v, const int64_t *index)
{
	struct mutate_scope scope = mutate_scope_of(s->p, v);
	struct names names = {scope.n, scope.var};
	int64_t at[MUTATE_MAX_SCOPE] = {0};
	bool sums = v->op == SUB_SUM;
	uint64_t place = s->ordered ? mix_number(s->round, UINT64_MAX) % SUB_FIELD_PRIME : 1;
	uint64_t total = sums ? 0 : sample_use(s, &names, &v->arg[0], index);
	struct placed_use a = place_use(&names, &v->arg[!sums]), b = sums ? a : place_use(&names, &v->arg[2]);
	memcpy(at, index, v->vars * sizeof *at);
	do {
		uint64_t x = sample_placed(s, &a, at), y = sums ? 1 : sample_placed(s, &b, at);
		total = (total * place % SUB_FIELD_PRIME + x * y) % SUB_FIELD_PRIME;
	} while (s->steps < MUTATE_MAX_STEPS && step_reduced(s->p, &scope, v->vars, at));
	return total;
}

static uint64_t sample_selected(struct mutate_sampler *s, const struct sub_value *v, const int64_t *index)
{
	struct mutate_scope scope = mutate_scope_of(s->p, v);
	struct names names = {v->vars, v->var};
	return sample_use(s, &names, &v->arg[mutate_holds(s->p, &scope, &v->arg[0], index) ? 1 : 2], index);
}

static uint64_t sample_elementwise(struct mutate_sampler *s, const struct sub_value *v, const int64_t *index)
{
	struct names names = {v->vars, v->var};
	uint64_t x[SUB_MAX_ARITY] = {0};
	bool refused = false;
	for (int a = 0; a < v->args; a++)
		x[a] = sample_use(s, &names, &v->arg[a], index);
	return sub_apply_in_field(v->op, x[0], x[1], x[2], &refused);
}

uint64_t mutate_sample(struct mutate_sampler *s, sub_ref r, const int64_t *index)
{
	const struct sub_value *v = sub_at(s->p, r);
	if (++s->steps >= MUTATE_MAX_STEPS)
		return 0;
	if (s->forms[r.i].kind == MUTATE_LEAF)
		return draw_leaf(s, r, index);
	if (v->op == SUB_CONST)
		return enter_number(v->constant);
	switch (v->op) {
	case SUB_ASSIGN:
		return sample_moved(s, v, index);
	case SUB_COND:
		return sample_joined(s, v, index);
	case SUB_SELECT:
		return sample_selected(s, v, index);
	case SUB_SUM:
	case SUB_ACCUMULATE:
		return sample_reduced(s, v, index);
	default:
		return sample_elementwise(s, v, index);
	}
}
