/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Hash-consing: equal values are one. */
#include "subop/intern.h"

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
		 "%s: %s of types that do not go together", p->name, sub_spelling(v->op));
	return (sub_ref){0};
}

static sub_ref refuse_order(struct sub_program *p, const struct sub_value *v, struct diags *d)
{
	struct str s = str_in(p->arena);
	str_printf(&s, "%s of [", sub_spelling(v->op));
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
	v->args = sub_traits_of(v->op)->arity;
	if (!sub_infer_vars(p, v))
		return false;
	sub_normalize_move(p, v, maps);
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
