/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* An empty program, its variables, and copies of what is declared in it. */
#include "subop/subop.h"

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
	p->traversals.n = p->calls.n = p->bodies.n = p->cases.n = p->named.n = p->splits.n = 0;
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
	to->stacked = from->stacked;
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
	COPY_LIST(a, &to->calls, &from->calls);
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

int sub_other_dim(struct sub_program *p, int64_t extent, const int *others, int n)
{
	for (int ordinal = 0;; ordinal++) {
		int var = sub_dim(p, extent, ordinal), i = 0;
		while (i < n && others[i] != var)
			i++;
		if (i == n)
			return var;
	}
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

struct sub_use sub_rename_use(const struct sub_value *v, const struct sub_use *u, struct sub_use arg)
{
	for (int i = 0; i < arg.vars; i++)
		for (int j = 0; j < v->vars; j++)
			if (v->var[j] == arg.var[i]) {
				arg.var[i] = u->var[j];
				break;
			}
	return arg;
}
