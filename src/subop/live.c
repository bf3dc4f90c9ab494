/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which values a body computes or reads. */
#include "subop/subop.h"

#include <stdlib.h>

struct value_list {
	VEC(sub_ref) all;
};

static void add_value(struct value_list *l, struct arena *a, bool *seen, sub_ref r)
{
	if (!seen[r.i])
		vec_push(a, &l->all, r);
	seen[r.i] = true;
}

static int compare_values(const void *a, const void *b)
{
	const sub_ref *x = a, *y = b;
	return x->i < y->i ? -1 : x->i > y->i;
}

struct sub_values sub_find_values(struct arena *a, const struct sub_program *p, const struct sub_body *b,
				  bool *seen)
{
	struct value_list l = {0};
	for (size_t i = 0; i < b->stores.n; i++)
		add_value(&l, a, seen, b->stores.at[i].value.value);
	for (size_t i = 0; i < l.all.n; i++) {
		const struct sub_value *v = sub_at(p, l.all.at[i]);
		for (int k = 0; k < v->args; k++)
			add_value(&l, a, seen, v->arg[k].value);
	}
	for (size_t i = 0; i < l.all.n; i++)
		seen[l.all.at[i].i] = false;
	if (l.all.n)
		qsort(l.all.at, l.all.n, sizeof *l.all.at, compare_values);
	return (struct sub_values){l.all.n, l.all.at};
}

void sub_mark_live(const struct sub_program *p, const struct sub_body *b, bool *live)
{
	for (size_t i = 0; i < b->stores.n; i++)
		live[b->stores.at[i].value.value.i] = true;
	for (uint32_t i = p->values.n; i-- > 1;)
		for (int a = 0; live[i] && a < p->values.at[i].args; a++)
			live[p->values.at[i].arg[a].value.i] = true;
}

int *sub_count_uses(const struct sub_program *p, struct arena *a)
{
	bool *live = ARENA_ARRAY(a, bool, p->values.n);
	int *uses = ARENA_ARRAY(a, int, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++) {
		const struct sub_body *body = &p->bodies.at[b];
		sub_mark_live(p, body, live);
		for (size_t i = 0; i < body->stores.n; i++)
			uses[body->stores.at[i].value.value.i]++;
	}
	for (uint32_t i = 1; i < p->values.n; i++)
		for (int k = 0; live[i] && k < p->values.at[i].args; k++)
			uses[p->values.at[i].arg[k].value.i]++;
	return uses;
}

bool sub_call_writes(const struct sub_program *p, const struct sub_body *b, int input)
{
	bool writes = false;
	const struct sub_call *c = b->call ? &p->calls.at[b->call - 1] : NULL;
	for (int i = 0; c && i < c->operands; i++)
		writes |= c->operand[i].role == IMAGE_OPERAND_OUTPUT && c->operand[i].which == input;
	return writes;
}

bool sub_calls_read(const struct sub_program *p, int input)
{
	bool read = false;
	for (size_t c = 0; c < p->calls.n; c++)
		for (int i = 0; i < p->calls.at[c].operands; i++)
			read |= p->calls.at[c].operand[i].role == IMAGE_OPERAND_INPUT && p->calls.at[c].operand[i].which == input;
	return read;
}

bool sub_reads_as_is(const struct sub_program *p, const struct sub_value *v, int arg)
{
	struct sub_use own = sub_as_is(p, v->arg[arg].value);
	return sub_same_use(&v->arg[arg], &own) && own.vars == v->vars &&
	       memcmp(own.var, v->var, v->vars * sizeof *v->var) == 0;
}
