/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Building values: inference of index variables, hash-consing. */
#include "subop/subop.h"

#include <math.h>

static const struct sub_traits traits[] = {
#define SUB_OP(name, spelling, arity, class, weight, price)                                                  \
	{spelling, arity, SUB_##class, weight, SUB_##price, 0, 0, 0},
#define TYPES_FLOAT SUB_FLOAT
#define TYPES_NUMBER SUB_NUMBER
#define TYPES_INTEGER SUB_INTEGER
#define TYPES_COMPARE SUB_COMPARE
#define TYPES_LOGIC SUB_LOGIC
#define TYPES_SELECT SUB_SELECTS
#define TYPES_SAME SUB_SAME
#define TYPES_CAST SUB_CASTS
#define SUB_TYPED(name, spelling, arity, class, weight, price, types, value, integer, field, loops)          \
	{spelling, arity, SUB_##class, weight, SUB_##price, TYPES_##types, 0, 0},
#define SUB_REDUCTION(name, spelling, combine, neutral)                                                      \
	{spelling, 1, SUB_REDUCE, 1, SUB_EXPENSIVE, SUB_NUMBER, SUB_##combine, neutral},
#include "subop/sub_ops.def"
};

const struct sub_traits *sub_traits_of(enum sub_op op)
{
	return &traits[op];
}

const int sub_op_count = SUB_OPS;

enum sub_class sub_class_of(enum sub_op op)
{
	return traits[op].class;
}

bool sub_reduces(enum sub_op op)
{
	return traits[op].class == SUB_REDUCE || traits[op].class == SUB_CONTRACTION;
}

bool sub_commutes(enum sub_op op)
{
	return traits[op].class == SUB_BINARY && op != SUB_DIVIDE && op != SUB_QUOTIENT && op != SUB_LESS &&
	       op != SUB_LESS_EQUAL;
}

const char *sub_spelling(enum sub_op op)
{
	return traits[op].spelling;
}

static int new_var(struct sub_program *p, struct sub_var v)
{
	vec_push(p->arena, &p->vars, v);
	return p->vars.n - 1;
}

static void add_leading_vars(struct sub_program *p)
{
	vec_push(p->arena, &p->values, (struct sub_value){0});
	vec_push(p->arena, &p->traversals, (struct sub_traversal){.down = false});
	p->node = new_var(p, (struct sub_var){.name = "n", .set = SUB_NODE});
	p->input = new_var(p, (struct sub_var){.name = "t", .set = SUB_INPUT});
	p->edge = new_var(p, (struct sub_var){.name = "e", .set = SUB_EDGE});
	p->member = new_var(p, (struct sub_var){.name = "q", .set = SUB_MEMBER});
}

void sub_init(struct sub_program *p, struct arena *a, const char *name)
{
	*p = (struct sub_program){.arena = a, .name = name, .hash_size = 256, .map_lists = map_in(a)};
	p->hash = ARENA_ARRAY(a, uint32_t, p->hash_size);
	add_leading_vars(p);
}

void sub_clear(struct sub_program *p)
{
	p->vars.n = p->values.n = p->params.n = p->states.n = p->inputs.n = p->outputs.n = 0;
	p->traversals.n = p->bodies.n = p->cases.n = p->named.n = p->splits.n = 0;
	memset(p->hash, 0, p->hash_size * sizeof *p->hash);
	add_leading_vars(p);
}

struct sub_body sub_map_body(struct arena *a, const struct sub_body *b, const sub_ref *now)
{
	struct sub_body mapped = sub_body_like(b);
	for (size_t i = 0; i < b->stores.n; i++) {
		struct sub_store s = b->stores.at[i];
		s.value.value = now[s.value.value.i];
		vec_push(a, &mapped.stores, s);
	}
	return mapped;
}

#define COPY_LIST(arena, to, from)                                                                           \
	for (size_t i_ = 0; i_ < (from)->n; i_++)                                                            \
	vec_push(arena, to, (from)->at[i_])

void sub_copy_structure(struct sub_program *to, const struct sub_program *from)
{
	to->children = from->children;
	to->tree = from->tree;
	to->traversals.n = to->cases.n = to->named.n = to->splits.n = 0;
	COPY_LIST(to->arena, &to->traversals, &from->traversals);
	COPY_LIST(to->arena, &to->cases, &from->cases);
	COPY_LIST(to->arena, &to->named, &from->named);
	COPY_LIST(to->arena, &to->splits, &from->splits);
}

void sub_copy_declarations(struct sub_program *to, const struct sub_program *from)
{
	struct arena *a = to->arena;
	sub_copy_structure(to, from);
	to->vars.n = 0;
	COPY_LIST(a, &to->vars, &from->vars);
	COPY_LIST(a, &to->params, &from->params);
	COPY_LIST(a, &to->states, &from->states);
	COPY_LIST(a, &to->inputs, &from->inputs);
	COPY_LIST(a, &to->outputs, &from->outputs);
}

/* The names of dimensions are i j k l m, then x5 x6 ... */
static const char *dim_name(struct sub_program *p, int count)
{
	static const char *const letters[] = {"i", "j", "k", "l", "m"};
	if (count < 5)
		return letters[count];
	struct str s = str_in(p->arena);
	str_printf(&s, "x%d", count);
	return s.text;
}

int sub_dim(struct sub_program *p, int64_t extent, int ordinal)
{
	int dims = 0;
	for (size_t i = 0; i < p->vars.n; i++) {
		const struct sub_var *v = &p->vars.at[i];
		if (v->set == SUB_DIM && v->extent == extent && v->ordinal == ordinal)
			return i;
		dims += v->set == SUB_DIM;
	}
	return new_var(p, (struct sub_var){dim_name(p, dims), SUB_DIM, extent, ordinal});
}

int sub_row(struct sub_program *p, int64_t extent)
{
	int rows = 0;
	for (size_t i = 0; i < p->vars.n; i++) {
		if (p->vars.at[i].set == SUB_ROW && p->vars.at[i].extent == extent)
			return i;
		rows += p->vars.at[i].set == SUB_ROW;
	}
	struct str s = str_in(p->arena);
	str_printf(&s, "r%d", rows);
	return new_var(p, (struct sub_var){.name = s.text, .set = SUB_ROW, .extent = extent});
}

struct sub_use sub_as_is(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	struct sub_use u = {.value = r, .vars = v->vars};
	memcpy(u.var, v->var, sizeof u.var);
	return u;
}

/* --- inference --- */

static bool contains_var(const int *vars, int n, int var)
{
	for (int i = 0; i < n; i++)
		if (vars[i] == var)
			return true;
	return false;
}

static bool add_var(struct sub_value *v, int var)
{
	if (v->vars == SUB_MAX_VARS)
		return false;
	v->var[v->vars++] = var;
	return true;
}

/* Whether one variable may stand before another: index sets come in the order of enum sub_set. */
static bool may_precede(const struct sub_program *p, int var, int other)
{
	return p->vars.at[var].set <= p->vars.at[other].set;
}

/* Merges two orders of variables.  A variable is next if the rest of the other side lacks it. */
static bool merge_vars(const struct sub_program *p, const struct sub_use *a, const struct sub_use *b,
		       struct sub_value *out)
{
	int i = 0, j = 0;
	out->vars = 0;
	while (i < a->vars || j < b->vars) {
		bool left = i < a->vars, right = j < b->vars;
		if (left && right && a->var[i] == b->var[j]) {
			if (!add_var(out, a->var[i]))
				return false;
			i++, j++;
			continue;
		}
		bool take_left = left && !contains_var(b->var + j, b->vars - j, a->var[i]);
		bool take_right = right && !contains_var(a->var + i, a->vars - i, b->var[j]);
		if (take_left && take_right)
			take_left = may_precede(p, a->var[i], b->var[j]);
		if (!take_left && !take_right)
			return false;
		if (!add_var(out, take_left ? a->var[i++] : b->var[j++]))
			return false;
	}
	return true;
}

static void copy_vars(struct sub_value *v, const struct sub_use *from)
{
	v->vars = from->vars;
	memcpy(v->var, from->var, sizeof v->var);
}

/* Merges the variables of one more argument into those of a value. */
static bool merge_argument(const struct sub_program *p, struct sub_value *v, const struct sub_use *u)
{
	struct sub_use before = {.vars = v->vars};
	memcpy(before.var, v->var, sizeof before.var);
	return merge_vars(p, &before, u, v);
}

/* Sets the variables of a value to those of the elements that it reduces. */
static bool find_reduced_vars(const struct sub_program *p, struct sub_value *v)
{
	bool product = traits[v->op].class == SUB_CONTRACTION;
	copy_vars(v, &v->arg[product]);
	return !product || merge_argument(p, v, &v->arg[2]);
}

int sub_reduced_vars(const struct sub_program *p, const struct sub_value *value, int *var)
{
	struct sub_value v = *value;
	find_reduced_vars(p, &v);
	memcpy(var, v.var, v.vars * sizeof *var);
	return v.vars;
}

static void drop_reduced(struct sub_value *v)
{
	int kept = 0;
	for (int i = 0; i < v->vars; i++)
		if (sub_position_in(&v->reduced, v->var[i]) < 0)
			v->var[kept++] = v->var[i];
	v->vars = kept;
}

static bool has_reduced(const struct sub_value *v, const struct sub_use *u)
{
	for (int i = 0; i < v->reduced.n; i++)
		if (sub_use_has(u, v->reduced.var[i]))
			return true;
	return false;
}

/* The first argument of a contraction, its initial value, lacks the variables that are reduced. */
static bool infer_contraction(const struct sub_program *p, struct sub_value *v)
{
	if (!find_reduced_vars(p, v) || has_reduced(v, &v->arg[0]))
		return false;
	drop_reduced(v);
	return merge_argument(p, v, &v->arg[0]);
}

/* The dimensions of the index come first: those of rows that it picks stay together. */
static bool infer_gathering(const struct sub_program *p, struct sub_value *v)
{
	copy_vars(v, &v->arg[0]);
	drop_reduced(v);
	struct sub_use rest = {.vars = v->vars};
	memcpy(rest.var, v->var, sizeof rest.var);
	return !has_reduced(v, &v->arg[1]) && merge_vars(p, &v->arg[1], &rest, v);
}

bool sub_infer_vars(const struct sub_program *p, struct sub_value *v)
{
	switch (traits[v->op].class) {
	case SUB_UNARY:
		copy_vars(v, &v->arg[0]);
		return true;
	case SUB_BINARY:
		return merge_vars(p, &v->arg[0], &v->arg[1], v);
	case SUB_TERNARY:
		return merge_vars(p, &v->arg[0], &v->arg[1], v) && merge_argument(p, v, &v->arg[2]);
	case SUB_REDUCE:
		copy_vars(v, &v->arg[0]);
		drop_reduced(v);
		return true;
	case SUB_CONTRACTION:
		return infer_contraction(p, v);
	case SUB_GATHERING:
		return infer_gathering(p, v);
	default:
		return v->vars <= SUB_MAX_VARS;
	}
}

/* --- types --- */

static enum dtype type_of(const struct sub_program *p, const struct sub_value *v, int a)
{
	return sub_at(p, v->arg[a].value)->dtype;
}

/* Whether the arguments from number `first` on have one type. */
static bool have_one_type(const struct sub_program *p, const struct sub_value *v, int first)
{
	for (int a = first; a < v->args; a++)
		if (type_of(p, v, a) != type_of(p, v, first))
			return false;
	return true;
}

static enum dtype declared_type(const struct sub_program *p, const struct sub_value *v)
{
	const struct sub_tensor *t = v->op == SUB_PARAM	  ? &p->params.at[v->which]
				     : v->op == SUB_STATE ? &p->states.at[v->which]
							  : &p->inputs.at[v->which].row;
	return ra_widened(t->dtype);
}

static bool find_source_type(const struct sub_program *p, struct sub_value *v)
{
	size_t declared = v->op == SUB_PARAM ? p->params.n : v->op == SUB_STATE ? p->states.n : p->inputs.n;
	if (v->op == SUB_INDEX)
		v->dtype = DTYPE_I32;
	else if (v->op != SUB_CONST && (size_t)v->which < declared)
		v->dtype = declared_type(p, v);
	return true;
}

bool sub_find_type(const struct sub_program *p, struct sub_value *v)
{
	if (traits[v->op].class == SUB_SOURCE)
		return find_source_type(p, v);
	enum dtype first = type_of(p, v, 0);
	if (traits[v->op].class == SUB_GATHERING) {
		v->dtype = first;
		return type_of(p, v, 1) == DTYPE_I32 || type_of(p, v, 1) == DTYPE_I64;
	}
	enum sub_types types = traits[v->op].class == SUB_MOVE ? SUB_SAME : traits[v->op].types;
	switch (types) {
	case SUB_SELECTS:
		v->dtype = type_of(p, v, 1);
		return first == DTYPE_BOOL && have_one_type(p, v, 1);
	case SUB_COMPARE:
		v->dtype = DTYPE_BOOL;
		return first != DTYPE_BOOL && have_one_type(p, v, 0);
	case SUB_CASTS:
		return true;
	default:
		v->dtype = first;
		return have_one_type(p, v, 0) &&
		       (types == SUB_SAME || (types == SUB_LOGIC) == (first == DTYPE_BOOL)) &&
		       (types != SUB_FLOAT || first == DTYPE_F32) &&
		       (types != SUB_INTEGER || first != DTYPE_F32);
	}
}

/* --- movement --- */

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

/* --- hash-consing --- */

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
static void normalize_move(const struct sub_program *p, struct sub_value *v, struct sub_map *maps)
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

/* Clears unused array elements, so that equal values compare equal. */
static void clear_unused(struct sub_value *v)
{
	for (int i = v->vars; i < SUB_MAX_VARS; i++)
		v->var[i] = 0;
	for (int a = 0; a < SUB_MAX_ARITY; a++)
		for (int i = a < v->args ? v->arg[a].vars : 0; i < SUB_MAX_VARS; i++)
			v->arg[a].var[i] = 0;
	for (int i = v->reduced.n; i < SUB_MAX_VARS; i++)
		v->reduced.var[i] = 0;
	if (v->op != SUB_ASSIGN)
		v->map = NULL;
	if (!v->fills)
		v->fill = 0;
}

enum { MAP_NUMBERS = 10 };

/* Writes maps as numbers without padding; returns their bytes. */
static size_t number_maps(const struct sub_map *map, int n, int64_t *to)
{
	for (int i = 0; i < n; i++) {
		const struct sub_map *m = &map[i];
		int64_t fields[MAP_NUMBERS] = {m->function, m->which,  m->var,	  m->var2,    m->slot,
					       m->scale,    m->scale2, m->offset, m->divisor, m->modulus};
		memcpy(to + i * MAP_NUMBERS, fields, sizeof fields);
	}
	return n * MAP_NUMBERS * sizeof *to;
}

/* Hashes a value field by field: structs have padding. */
static unsigned long hash_value(const struct sub_value *v)
{
	int64_t head[] = {v->op, v->dtype, v->args, v->vars, v->which, v->reduced.n, v->axis, v->fills};
	unsigned long h = hash_bytes(HASH_START, head, sizeof head);
	h = hash_bytes(h, v->reduced.var, v->reduced.n * sizeof *v->reduced.var);
	h = hash_bytes(h, v->var, v->vars * sizeof *v->var);
	h = hash_bytes(h, &v->constant, sizeof v->constant);
	h = hash_bytes(h, &v->fill, sizeof v->fill);
	for (int a = 0; a < v->args; a++) {
		h = hash_bytes(h, &v->arg[a].value, sizeof v->arg[a].value);
		h = hash_bytes(h, v->arg[a].var, v->arg[a].vars * sizeof *v->arg[a].var);
	}
	int64_t maps[MAP_NUMBERS * SUB_MAX_VARS];
	return v->op == SUB_ASSIGN ? hash_bytes(h, maps, number_maps(v->map, v->arg[0].vars, maps)) : h;
}

static bool same_vars(const struct sub_vars *a, const struct sub_vars *b)
{
	return a->n == b->n && memcmp(a->var, b->var, a->n * sizeof *a->var) == 0;
}

static bool same_maps(const struct sub_map *a, const struct sub_map *b, int n)
{
	for (int i = 0; a != b && i < n; i++)
		if (!sub_same_map(&a[i], &b[i]))
			return false;
	return true;
}

/* Compares numbers by their bits: 0 and -0 differ, a NaN equals itself. */
static bool same_value(const struct sub_value *a, const struct sub_value *b)
{
	if (a->op != b->op || a->dtype != b->dtype || a->args != b->args || a->vars != b->vars ||
	    a->which != b->which || !same_vars(&a->reduced, &b->reduced) || a->axis != b->axis || a->fills != b->fills ||
	    memcmp(a->var, b->var, a->vars * sizeof *a->var) != 0 ||
	    memcmp(&a->constant, &b->constant, sizeof a->constant) != 0 ||
	    memcmp(&a->fill, &b->fill, sizeof a->fill) != 0)
		return false;
	for (int i = 0; i < a->args; i++)
		if (!sub_same_use(&a->arg[i], &b->arg[i]))
			return false;
	return a->op != SUB_ASSIGN || same_maps(a->map, b->map, a->arg[0].vars);
}

static uint32_t *find_slot(struct sub_program *p, const struct sub_value *v)
{
	for (size_t i = hash_value(v);; i++) {
		uint32_t *slot = &p->hash[i & (p->hash_size - 1)];
		if (!*slot || same_value(&p->values.at[*slot], v))
			return slot;
	}
}

static void fill_hash(struct sub_program *p)
{
	for (uint32_t i = 1; i < p->values.n; i++)
		*find_slot(p, &p->values.at[i]) = i;
}

static void grow_hash(struct sub_program *p)
{
	p->hash_size *= 2;
	p->hash = ARENA_ARRAY(p->arena, uint32_t, p->hash_size);
	fill_hash(p);
}

void sub_forget_values_and_vars(struct sub_program *p, size_t values, size_t vars)
{
	p->values.n = values;
	p->vars.n = vars;
	memset(p->hash, 0, p->hash_size * sizeof *p->hash);
	fill_hash(p);
}

static void print_use_vars(const struct sub_program *p, const struct sub_use *u, struct str *s)
{
	for (int i = 0; i < u->vars; i++)
		str_printf(s, "%s%s", i ? "," : "", p->vars.at[u->var[i]].name);
}

static sub_ref refuse_types(const struct sub_program *p, const struct sub_value *v, struct diags *d)
{
	diag_add(d, DIAG_INVALID_SUBOPS, (struct diag_at){0},
		 "this is a fault of the compiler; please report it with the model",
		 "%s: %s of types that do not go together", p->name, traits[v->op].spelling);
	return (sub_ref){0};
}

static sub_ref refuse_order(struct sub_program *p, const struct sub_value *v, struct diags *d)
{
	struct str s = str_in(p->arena);
	str_printf(&s, "%s of [", traits[v->op].spelling);
	print_use_vars(p, &v->arg[0], &s);
	str_puts(&s, "] and [");
	print_use_vars(p, &v->arg[1], &s);
	diag_add(d, DIAG_INDEX_ORDER, (struct diag_at){0},
		 "transpose one of the two, or use fewer dimensions",
		 "%s]: the index variables come in contradictory orders or are more than %d", s.text,
		 SUB_MAX_VARS);
	return (sub_ref){0};
}

/* Brings a value into the form in which values are kept, with its maps in `maps`; false if the arguments
 * order their variables in contradictory ways. */
static bool normalize_value(const struct sub_program *p, struct sub_value *v, struct sub_map *maps)
{
	v->args = traits[v->op].arity;
	if (!sub_infer_vars(p, v))
		return false;
	normalize_move(p, v, maps);
	clear_unused(v);
	return true;
}

struct sub_map *sub_copy_maps(struct sub_value *v, struct sub_map *to)
{
	if (v->arg[0].vars)
		memcpy(to, v->map, v->arg[0].vars * sizeof *to);
	v->map = to;
	return to;
}

/* The program's own copy of a list of maps. */
static const struct sub_map *keep_maps(struct sub_program *p, const struct sub_map *map, int n)
{
	int64_t key[MAP_NUMBERS * SUB_MAX_VARS];
	size_t bytes = number_maps(map, n, key);
	int known = map_get(&p->map_lists, (const char *)key, bytes);
	if (known < 0) {
		known = (int)p->map_list.n;
		map_add(&p->map_lists, (const char *)key, bytes, known);
		vec_push(p->arena, &p->map_list, n ? arena_copy(p->arena, map, n * sizeof *map) : NULL);
	}
	return p->map_list.at[known];
}

sub_ref sub_find_value(struct sub_program *p, struct sub_value v)
{
	struct sub_map maps[SUB_MAX_VARS];
	return (sub_ref){normalize_value(p, &v, maps) && sub_find_type(p, &v) ? *find_slot(p, &v) : 0};
}

sub_ref sub_add(struct sub_program *p, struct sub_value v, struct diags *d)
{
	struct sub_map maps[SUB_MAX_VARS];
	if (!normalize_value(p, &v, maps))
		return d ? refuse_order(p, &v, d) : (sub_ref){0};
	if (!sub_find_type(p, &v))
		return d ? refuse_types(p, &v, d) : (sub_ref){0};
	if (2 * p->values.n > p->hash_size)
		grow_hash(p);
	uint32_t *slot = find_slot(p, &v);
	if (!*slot) {
		*slot = p->values.n;
		v.map = v.op == SUB_ASSIGN ? keep_maps(p, v.map, v.arg[0].vars) : NULL;
		vec_push(p->arena, &p->values, v);
	}
	return (sub_ref){*slot};
}

/* Removes the last value first: probing put each into a slot after those that were taken at the time. */
void sub_forget_values(struct sub_program *p, size_t n)
{
	for (; p->values.n > n; p->values.n--)
		*find_slot(p, &p->values.at[p->values.n - 1]) = 0;
}
