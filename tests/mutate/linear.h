/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random linear programs, mutants of them, and all their elements modulo a prime, computed value by value: nothing of
 * src/mutate/ is used here. */
#ifndef ESPALIER_TESTS_MUTATE_LINEAR_H
#define ESPALIER_TESTS_MUTATE_LINEAR_H

#include "subop/subop.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES = 3, MOST_ELEMENTS = 400, MOST_DIMS = 4, LEAVES = 4, MOST_VALUES = 40 };

static uint64_t random_state;

static inline uint64_t mix_bits(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
	return x ^ x >> 33;
}

static inline int random_below(int n)
{
	random_state += 0x9e3779b97f4a7c15u;
	return (int)(mix_bits(random_state) % (uint64_t)n);
}

static inline int any_of(int n, const int *from)
{
	return from[random_below(n)];
}
#define ANY(...) any_of((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

struct linear {
	struct arena arena;
	struct diags diags;
	struct sub_program p;
	jmp_buf jump;
	sub_ref pool[MOST_VALUES];
	int n;
};

static inline bool is_dim(const struct sub_program *p, int var)
{
	return p->vars.at[var].set == SUB_DIM;
}

static inline int64_t extent_of(const struct sub_program *p, int var)
{
	return is_dim(p, var) ? p->vars.at[var].extent : NODES;
}

static inline int64_t count_elements(const struct sub_program *p, const struct sub_value *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->vars; i++)
		n *= extent_of(p, v->var[i]);
	return n;
}

static inline int random_extent(void)
{
	return ANY(1, 2, 2, 3, 4, 5, 6, 6, 7, 8);
}

/* A variable of this extent that is none of those. */
static inline int fresh_var(struct sub_program *p, int64_t extent, const int *taken, int n)
{
	for (int ordinal = 0;; ordinal++) {
		int var = sub_dim(p, extent, ordinal), i = 0;
		while (i < n && taken[i] != var)
			i++;
		if (i == n)
			return var;
	}
}

static inline sub_ref add_value(struct linear *l, struct sub_value v)
{
	return sub_add(&l->p, v, NULL);
}

static inline sub_ref keep(struct linear *l, sub_ref r)
{
	const struct sub_value *v = sub_at(&l->p, r);
	if (r.i && l->n < MOST_VALUES && v->vars <= MOST_DIMS && count_elements(&l->p, v) <= MOST_ELEMENTS)
		l->pool[l->n++] = r;
	return r;
}

static inline void make_leaf(struct linear *l, int which)
{
	struct sub_value v = {.op = random_below(3) ? SUB_PARAM : SUB_VECTOR, .which = which};
	struct sub_tensor t = {.name = "t", .rank = 1 + random_below(3)};
	if (v.op == SUB_VECTOR)
		v.var[v.vars++] = l->p.node;
	for (int d = 0; d < t.rank; d++) {
		int var = fresh_var(&l->p, random_extent(), v.var, v.vars);
		t.var[d] = v.var[v.vars++] = var;
		t.shape[d] = extent_of(&l->p, var);
	}
	/* Both lists have all leaves, so a leaf has one number in either. */
	vec_push(&l->arena, &l->p.params, t);
	vec_push(&l->arena, &l->p.inputs, (struct sub_input){.name = "x", .row = t});
	keep(l, add_value(l, v));
}

static inline sub_ref pick(const struct linear *l)
{
	return l->pool[random_below(2) ? l->n - 1 - random_below(l->n < 3 ? l->n : 3) : random_below(l->n)];
}

/* The names of a use that are those of another one where extents allow. */
static inline void rename_use(struct linear *l, struct sub_use *u, const struct sub_use *like)
{
	for (int i = 0; i < u->vars; i++) {
		if (!is_dim(&l->p, u->var[i]))
			continue;
		int64_t extent = extent_of(&l->p, u->var[i]);
		int var = fresh_var(&l->p, extent, u->var, u->vars);
		for (int k = 0; k < like->vars; k++) {
			int j = 0;
			while (j < u->vars && (j == i || u->var[j] != like->var[k]))
				j++;
			if (j == u->vars && is_dim(&l->p, like->var[k]) && extent_of(&l->p, like->var[k]) == extent &&
			    random_below(8))
				var = like->var[k];
		}
		u->var[i] = var;
	}
}

static inline void step_elementwise(struct linear *l)
{
	struct sub_use x = sub_as_is(&l->p, pick(l)), y = sub_as_is(&l->p, l->pool[random_below(l->n)]);
	enum sub_op op = random_below(2) ? SUB_ADD : SUB_MULTIPLY;
	if (random_below(8) == 0) {
		double number = ANY(0, 1, 2, 3, -1, -5);
		y = sub_as_is(&l->p, add_value(l, (struct sub_value){.op = SUB_CONST, .constant = number}));
	}
	rename_use(l, &y, &x);
	keep(l, add_value(l, (struct sub_value){.op = op, .arg = {x, y}}));
}

static inline void step_unary(struct linear *l)
{
	keep(l, add_value(l, (struct sub_value){.op = random_below(3) ? SUB_NEG : SUB_NOP, .arg = {sub_as_is(&l->p, pick(l))}}));
}

static inline void step_sum(struct linear *l)
{
	sub_ref r = pick(l);
	const struct sub_value *v = sub_at(&l->p, r);
	int var = v->vars ? v->var[random_below(v->vars)] : -1;
	if (var >= 0 && is_dim(&l->p, var))
		keep(l, add_value(l, (struct sub_value){.op = SUB_SUM, .arg = {sub_as_is(&l->p, r)}, .reduced = sub_one_var(var)}));
}

/* a + sum of b * c over what a lacks */
static inline void step_accumulate(struct linear *l)
{
	struct sub_use b = sub_as_is(&l->p, pick(l)), c = sub_as_is(&l->p, pick(l)), a = sub_as_is(&l->p, pick(l));
	rename_use(l, &c, &b);
	rename_use(l, &a, &b);
	for (int i = 0; i < b.vars; i++)
		if (is_dim(&l->p, b.var[i]) && sub_use_has(&c, b.var[i]) && !sub_use_has(&a, b.var[i])) {
			keep(l, add_value(l, (struct sub_value){.op = SUB_ACCUMULATE, .arg = {a, b, c}, .reduced = sub_one_var(b.var[i])}));
			return;
		}
	keep(l, add_value(l, (struct sub_value){.op = SUB_FMA, .arg = {b, c, a}}));
}

static inline struct sub_map random_affine(const struct linear *l, const struct sub_value *v, int64_t extent)
{
	struct sub_map m = {.function = SUB_AFFINE, .var = -1, .offset = random_below((int)extent)};
	int dims[SUB_MAX_VARS], n = 0;
	for (int i = 0; i < v->vars; i++)
		if (is_dim(&l->p, v->var[i]))
			dims[n++] = v->var[i];
	if (!n || random_below(8) == 0)
		return m;
	m.var = dims[random_below(n)];
	m.scale = ANY(1, 1, 1, 1, 2, 3, -1, -2);
	m.offset = m.scale < 0 ? extent_of(&l->p, m.var) + ANY(-1, 0, 1) : ANY(0, 0, 0, -1, 1, -2);
	m.var2 = dims[random_below(n)];
	m.scale2 = m.var2 == m.var || random_below(2) ? 0 : ANY(1, 1, 1, 2, 4, -1);
	return m;
}

/* Digits are of numbers that are not negative. */
static inline struct sub_map random_map(const struct linear *l, const struct sub_value *v, int64_t extent)
{
	struct sub_map m = random_affine(l, v, extent);
	if (m.var < 0 || random_below(3))
		return m;
	m.scale = m.scale < 0 ? -m.scale : m.scale;
	m.scale2 = m.scale2 < 0 ? -m.scale2 : m.scale2;
	m.offset = m.offset < 0 ? 0 : m.offset;
	m.function = SUB_DIGIT;
	m.divisor = ANY(1, 1, 2, 2, 3, 4);
	m.modulus = ANY(0, 2, 2, 3, 4, 5);
	return m;
}

static inline sub_ref move_to(struct linear *l, sub_ref from, int vars, const int *var)
{
	const struct sub_value *source = sub_at(&l->p, from);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(&l->p, from)}, .vars = vars, .fills = true};
	struct sub_map maps[SUB_MAX_VARS] = {0};
	memcpy(v.var, var, vars * sizeof *var);
	for (int i = 0; i < source->vars; i++)
		maps[i] = is_dim(&l->p, source->var[i]) ? random_map(l, &v, extent_of(&l->p, source->var[i]))
						      : (struct sub_map){.var = source->var[i], .scale = 1};
	v.map = maps;
	v.fill = ANY(0, 0, 0, 1, -3);
	return add_value(l, v);
}

static inline void step_move(struct linear *l)
{
	sub_ref from = pick(l);
	const struct sub_value *v = sub_at(&l->p, from);
	int var[SUB_MAX_VARS], n = 0;
	if (v->vars && !is_dim(&l->p, v->var[0]))
		var[n++] = v->var[0];
	for (int dims = 1 + random_below(3); dims > 0; dims--, n++)
		var[n] = fresh_var(&l->p, random_extent(), var, n);
	keep(l, move_to(l, from, n, var));
}

static inline void step_join(struct linear *l)
{
	sub_ref first = pick(l);
	const struct sub_value v = *sub_at(&l->p, first);
	int var[SUB_MAX_VARS + 1], axis = v.vars - 1;
	if (!v.vars || !is_dim(&l->p, v.var[axis]))
		return;
	memcpy(var, v.var, sizeof v.var);
	int part = var[axis] = fresh_var(&l->p, random_extent(), v.var, v.vars);
	sub_ref second = move_to(l, first, v.vars, var);
	if (!second.i)
		return;
	struct sub_value cond = {.op = SUB_COND, .arg = {sub_as_is(&l->p, first), sub_as_is(&l->p, second)}, .vars = v.vars, .axis = axis};
	memcpy(cond.var, v.var, sizeof v.var);
	var[v.vars] = v.var[axis];
	cond.arg[1].var[axis] = part;
	cond.var[axis] = fresh_var(&l->p, extent_of(&l->p, v.var[axis]) + extent_of(&l->p, part), var, v.vars + 1);
	keep(l, add_value(l, cond));
}

static inline sub_ref integer_of(struct linear *l, int number)
{
	return add_value(l, (struct sub_value){.op = SUB_CONST, .dtype = DTYPE_I32, .constant = number});
}

/* One value below an index of the last variable, another one from there. */
static inline void step_select(struct linear *l)
{
	struct sub_use x = sub_as_is(&l->p, pick(l)), y = sub_as_is(&l->p, pick(l));
	if (!x.vars || !is_dim(&l->p, x.var[x.vars - 1]))
		return;
	int var = x.var[x.vars - 1];
	rename_use(l, &y, &x);
	sub_ref index = add_value(l, (struct sub_value){.op = SUB_INDEX, .dtype = DTYPE_I32, .vars = 1, .var = {var}});
	sub_ref least = integer_of(l, random_below((int)extent_of(&l->p, var) + 1));
	sub_ref below = add_value(l, (struct sub_value){.op = SUB_LESS, .arg = {sub_as_is(&l->p, index), sub_as_is(&l->p, least)}});
	if (below.i)
		keep(l, add_value(l, (struct sub_value){.op = SUB_SELECT, .arg = {sub_as_is(&l->p, below), x, y}}));
}

static inline void make_program(struct linear *l)
{
	static void (*const steps[])(struct linear *) = {step_elementwise, step_elementwise, step_sum,	step_move,
							 step_move,	   step_accumulate,  step_unary, step_join, step_select};
	for (int i = 0; i < LEAVES || !l->n; i++) /* leaves of too many elements are not kept */
		make_leaf(l, i);
	for (int i = 4 + random_below(8); i > 0; i--)
		steps[random_below(sizeof steps / sizeof *steps)](l);
}

/* --- mutants --- */

/* Changes an index map, a border, an operator or an operand of a value a little. */
static inline void change_value(const struct sub_program *p, struct sub_value *v, struct sub_map *maps)
{
	int dim = v->op == SUB_ASSIGN && v->arg[0].vars ? random_below(v->arg[0].vars) : 0;
	if (v->op == SUB_ASSIGN && !is_dim(p, v->arg[0].var[dim]))
		return;
	if (v->op == SUB_ASSIGN && maps[dim].function <= SUB_AFFINE && maps[dim].var >= 0) {
		int kind = random_below(4);
		v->fill += kind == 0;
		maps[dim].offset += kind == 1 ? 1 : kind == 2 ? -1 : 0;
		maps[dim].scale += kind == 3;
		v->fills = true;
	} else if (v->op == SUB_ASSIGN && maps[dim].function == SUB_DIGIT)
		maps[dim].modulus += maps[dim].modulus ? 1 : 3, v->fills = true;
	else if (v->op == SUB_ADD)
		v->arg[1] = v->arg[0];
	else if (v->op == SUB_NEG)
		v->op = SUB_NOP;
}

/* The value moved to itself under numbers that are split into two digits and joined again, which changes nothing. */
static inline sub_ref turn_around(struct linear *l, sub_ref r)
{
	const struct sub_value *v = sub_at(&l->p, r);
	int last = v->vars - 1, vars = v->vars, own[SUB_MAX_VARS], split[SUB_MAX_VARS];
	struct sub_map maps[SUB_MAX_VARS] = {0};
	if (vars == 0 || !is_dim(&l->p, v->var[last]) || vars + 1 > MOST_DIMS + 2)
		return r;
	int64_t extent = extent_of(&l->p, v->var[last]), by = extent % 2 ? extent % 3 ? 1 : 3 : 2;
	memcpy(own, v->var, sizeof own);
	memcpy(split, v->var, sizeof split);
	split[last] = fresh_var(&l->p, extent / by, own, vars);
	split[vars] = fresh_var(&l->p, by, split, vars);
	for (int i = 0; i < last; i++)
		maps[i] = (struct sub_map){.var = own[i], .scale = 1};
	maps[last] = (struct sub_map){.var = split[last], .scale = by, .var2 = split[vars], .scale2 = 1};
	struct sub_value apart = {.op = SUB_ASSIGN, .arg = {sub_as_is(&l->p, r)}, .vars = vars + 1, .map = maps};
	memcpy(apart.var, split, sizeof split);
	sub_ref middle = add_value(l, apart);
	struct sub_map back[SUB_MAX_VARS] = {0};
	memcpy(back, maps, sizeof maps);
	back[last] = (struct sub_map){.function = SUB_DIGIT, .var = own[last], .scale = 1, .divisor = by};
	back[vars] = (struct sub_map){.function = SUB_DIGIT, .var = own[last], .scale = 1, .divisor = 1, .modulus = by};
	if (!middle.i)
		return r;
	struct sub_value joined = {.op = SUB_ASSIGN, .arg = {sub_as_is(&l->p, middle)}, .vars = vars, .map = back};
	memcpy(joined.var, own, sizeof own);
	sub_ref again = add_value(l, joined);
	return again.i ? again : r;
}

static inline bool same_vars(const struct sub_value *a, const struct sub_value *b)
{
	return a->vars == b->vars && memcmp(a->var, b->var, a->vars * sizeof *a->var) == 0;
}

/* A copy of a value in which one of the values that it is computed by is changed, or one is moved about without a
 * change; none if it cannot be made. */
static inline sub_ref make_mutant(struct linear *l, sub_ref original)
{
	uint32_t changed = 1 + random_below((int)original.i), turned = 1 + random_below((int)original.i);
	sub_ref *now = ARENA_ARRAY(&l->arena, sub_ref, original.i + 1);
	for (uint32_t i = 1; i <= original.i; i++) {
		struct sub_value v = l->p.values.at[i];
		struct sub_map maps[SUB_MAX_VARS];
		if (v.op == SUB_ASSIGN)
			sub_copy_maps(&v, maps);
		for (int a = 0; a < v.args; a++)
			v.arg[a].value = now[v.arg[a].value.i];
		if (i == changed && random_below(8))
			change_value(&l->p, &v, maps);
		now[i] = add_value(l, v);
		if (!now[i].i || !same_vars(&l->p.values.at[i], sub_at(&l->p, now[i])))
			return (sub_ref){0};
		if (i == turned && v.dtype == DTYPE_F32)
			now[i] = turn_around(l, now[i]);
	}
	return now[original.i];
}

/* x[p + a*i] + x[q + b*i], or the same with steps by which the terms have changed places at i = 1. */
static inline sub_ref make_crossing(struct linear *l, sub_ref x, int i, bool crossed, const int *at)
{
	int p = at[0], q = at[1], a = crossed ? q - p + at[3] : at[2], b = crossed ? p - q + at[2] : at[3];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(&l->p, x)}, .vars = 1, .var = {i}};
	struct sub_map map = {.var = i, .scale = a, .offset = p};
	v.map = &map;
	sub_ref first = add_value(l, v);
	map = (struct sub_map){.var = i, .scale = b, .offset = q};
	sub_ref second = add_value(l, v);
	return add_value(l, (struct sub_value){.op = SUB_ADD, .arg = {sub_as_is(&l->p, first), sub_as_is(&l->p, second)}});
}

/* Two sums that are equal at the first two positions, and differ at later ones as a rule: two motions each. */
static inline void make_crossings(struct linear *l, sub_ref *original, sub_ref *mutant)
{
	int i = sub_dim(&l->p, 3 + random_below(3), 0), extent = sub_dim(&l->p, 400, 0);
	const int at[] = {190 + random_below(20), 190 + random_below(20), random_below(7) - 3, random_below(7) - 3};
	struct sub_tensor t = {.name = "t", .rank = 1, .var = {extent}, .shape = {400}};
	vec_push(&l->arena, &l->p.params, t);
	sub_ref x = add_value(l, (struct sub_value){.op = SUB_PARAM, .vars = 1, .var = {extent}});
	*original = make_crossing(l, x, i, false, at);
	*mutant = make_crossing(l, x, i, true, at);
}

/* --- all elements --- */

/* Draws an element of a leaf, by its indices. */
typedef uint64_t (*draw_fn)(const struct sub_program *, sub_ref, const int64_t *index, uint64_t seed);

struct elements {
	const struct sub_program *p;
	uint64_t seed;
	draw_fn draw;
	const bool *leaf; /* by value: it is drawn, as the elements of sources are */
	uint64_t **of; /* by value; those of bools and integers as they are */
	int64_t at[256]; /* by variable */
};

static inline uint64_t *element_of(const struct elements *e, const struct sub_use *u, const int64_t *index)
{
	const struct sub_value *v = sub_at(e->p, u->value);
	int64_t at = 0;
	for (int i = 0; i < v->vars; i++)
		at = at * extent_of(e->p, v->var[i]) + index[i];
	return &e->of[u->value.i][at];
}

static inline uint64_t read_use(const struct elements *e, const struct sub_use *u)
{
	int64_t index[SUB_MAX_VARS];
	for (int i = 0; i < u->vars; i++)
		index[i] = e->at[u->var[i]];
	return *element_of(e, u, index);
}

static inline uint64_t number_of(double x)
{
	return x < 0 ? SUB_FIELD_PRIME - (uint64_t)-x : (uint64_t)x;
}

static inline uint64_t compute_moved(const struct elements *e, const struct sub_value *v)
{
	int64_t index[SUB_MAX_VARS];
	for (int i = 0; i < v->arg[0].vars; i++) {
		const struct sub_map *m = &v->map[i];
		int64_t at = m->offset + (m->var < 0 ? 0 : m->scale * e->at[m->var]) + (m->scale2 ? m->scale2 * e->at[m->var2] : 0);
		at = m->function == SUB_DIGIT ? at / m->divisor : at;
		index[i] = m->function == SUB_DIGIT && m->modulus ? at % m->modulus : at;
		if (index[i] < 0 || index[i] >= extent_of(e->p, v->arg[0].var[i]))
			return number_of(v->fill);
	}
	return *element_of(e, &v->arg[0], index);
}

static inline uint64_t compute_joined(struct elements *e, const struct sub_value *v)
{
	int axis = v->var[v->axis];
	int64_t at = e->at[axis], seam = extent_of(e->p, v->arg[0].var[v->axis]);
	const struct sub_use *u = &v->arg[at >= seam];
	e->at[u->var[v->axis]] = at >= seam ? at - seam : at;
	return read_use(e, u);
}

static inline uint64_t compute_reduced(struct elements *e, const struct sub_value *v)
{
	bool sums = v->op == SUB_SUM;
	uint64_t total = sums ? 0 : read_use(e, &v->arg[0]);
	int var = v->reduced.var[0];
	for (e->at[var] = 0; e->at[var] < extent_of(e->p, var); e->at[var]++)
		total += read_use(e, &v->arg[!sums]) * (sums ? 1 : read_use(e, &v->arg[2])) % SUB_FIELD_PRIME;
	return total % SUB_FIELD_PRIME;
}

static inline uint64_t compute_element(struct elements *e, sub_ref r)
{
	const struct sub_value *v = sub_at(e->p, r);
	uint64_t x[SUB_MAX_ARITY] = {0};
	bool refused = false;
	int64_t index[SUB_MAX_VARS] = {0};
	for (int i = 0; i < v->vars; i++)
		index[i] = e->at[v->var[i]];
	if (e->leaf[r.i])
		return e->draw(e->p, r, index, e->seed);
	if (v->op == SUB_INDEX || v->op == SUB_CONST)
		return v->op == SUB_INDEX ? (uint64_t)index[0] : number_of(v->constant);
	if (v->op == SUB_ASSIGN || v->op == SUB_COND)
		return v->op == SUB_ASSIGN ? compute_moved(e, v) : compute_joined(e, v);
	if (sub_reduces(v->op))
		return compute_reduced(e, v);
	for (int a = 0; a < v->args; a++)
		x[a] = read_use(e, &v->arg[a]);
	if (v->op == SUB_SELECT || v->dtype != DTYPE_F32)
		return v->op == SUB_SELECT ? x[0] ? x[1] : x[2] : x[0] < x[1];
	return sub_apply_in_field(v->op, x[0], x[1], x[2], &refused);
}

/* Steps the variables of a value; false after its last element. */
static inline bool step_index(const struct sub_program *p, const struct sub_value *v, int64_t *at)
{
	for (int i = v->vars; i-- > 0;) {
		if (++at[i] < extent_of(p, v->var[i]))
			return true;
		at[i] = 0;
	}
	return false;
}

static inline void compute_all(struct elements *e, struct arena *arena)
{
	e->of = ARENA_ARRAY(arena, uint64_t *, e->p->values.n);
	for (uint32_t r = 1; r < e->p->values.n; r++) {
		const struct sub_value *v = &e->p->values.at[r];
		int64_t index[SUB_MAX_VARS] = {0}, n = 0;
		e->of[r] = ARENA_ARRAY(arena, uint64_t, count_elements(e->p, v));
		do {
			for (int i = 0; i < v->vars; i++)
				e->at[v->var[i]] = index[i];
			e->of[r][n++] = compute_element(e, (sub_ref){r});
		} while (step_index(e->p, v, index));
	}
}

static inline void open_linear(struct linear *l, uint64_t seed)
{
	memset(l, 0, sizeof *l);
	random_state = mix_bits(seed + 1);
	arena_init(&l->arena, &allocator_default);
	l->arena.escape = &l->jump;
	sub_init(&l->p, &l->arena, "test");
}

static inline void close_linear(struct linear *l)
{
	arena_free(&l->arena);
}

#endif
