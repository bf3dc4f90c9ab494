/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The bytes that a row of a body reads and writes, if caches kept nothing but weights from one row to the
 * next. */
#include "sched/plan.h"

enum { TOKEN_BYTES = 4 };

struct counter {
	const struct sched_plan *plan;
	int body;
	struct sched_bytes bytes;
};

/* The type of a value's elements in memory: of a source, that of its tensor, which may be narrower. */
static enum dtype memory_type(const struct sub_program *p, const struct sub_value *v)
{
	switch (v->op) {
	case SUB_PARAM:
		return p->params.at[v->which].dtype;
	case SUB_VECTOR:
		return p->inputs.at[v->which].row.dtype;
	default:
		return v->dtype;
	}
}

/* Bytes of a row of `r`, with elements as `from` has them in memory. */
static double bytes_from(const struct counter *c, sub_ref r, const struct sub_value *from)
{
	const struct sub_program *p = c->plan->p;
	return sub_row_elements(p, sub_at(p, r)) * dtype_traits_of(memory_type(p, from))->bytes;
}

static double bytes_of(const struct counter *c, sub_ref r)
{
	return sub_row_elements(c->plan->p, sub_at(c->plan->p, r)) *
	       dtype_traits_of(c->plan->stored_types[r.i])->bytes;
}

static bool looks_up(const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && v->arg[0].vars && v->map[0].function == SUB_TOKEN;
}

/* Counts an access to a source: all of it, or the elements that a data movement `r` reads of it. */
static void count_access(struct counter *c, sub_ref r, const struct sub_value *from)
{
	enum sub_op source = from->op;
	bool hoisted = source == SUB_VECTOR && c->plan->p->inputs.at[from->which].hoisted;
	if (source == SUB_STATE)
		c->bytes.states += bytes_from(c, r, from);
	else if (source == SUB_VECTOR)
		*(hoisted ? &c->bytes.stored : &c->bytes.inputs) += bytes_from(c, r, from);
	else if (source == SUB_PARAM && looks_up(sub_at(c->plan->p, r)))
		c->bytes.inputs += TOKEN_BYTES + bytes_from(c, r, from);
	else if (source == SUB_PARAM)
		c->bytes.weights += bytes_from(c, r, from);
}

/* Data movement of a source reads the elements that it moves; all other consumers read the whole source,
 * once. */
static void count_given(struct counter *c)
{
	const struct sub_program *p = c->plan->p;
	const struct sched_values *values = &c->plan->values[c->body];
	bool *read_whole = ARENA_ARRAY(p->arena, bool, values->n);
	for (int i = 0; i < values->n; i++)
		read_whole[i] = values->fact[i].result;
	for (int i = 0; i < values->n; i++) {
		const struct sub_value *v = sub_at(p, values->value[i]);
		for (int a = 0; a < v->args; a++) {
			if (v->op == SUB_ASSIGN)
				count_access(c, values->value[i], sub_at(p, v->arg[a].value));
			else
				read_whole[sched_fact(values, v->arg[a].value) - values->fact] = true;
		}
	}
	for (int i = 0; i < values->n; i++)
		if (read_whole[i])
			count_access(c, values->value[i], sub_at(p, values->value[i]));
}

static void count_results(struct counter *c)
{
	const struct sub_body *b = &c->plan->p->bodies.at[c->body];
	for (size_t i = 0; i < b->stores.n; i++) {
		enum sub_target to = b->stores.at[i].to;
		*(to == SUB_TO_STATE   ? &c->bytes.states
		  : to == SUB_TO_INPUT ? &c->bytes.stored
				       : &c->bytes.outputs) += bytes_of(c, b->stores.at[i].value.value);
	}
}

/* Counts what a group reads of values that earlier groups have stored, each value once. */
static void count_reads(struct counter *c, struct sched_walk *w, int group, struct map *read)
{
	const struct sched_group *g = &c->plan->groups.at[group];
	for (size_t t = 0; t < g->targets.n; t++) {
		sched_walk_target(w, c->body, g->targets.at[t]);
		for (size_t i = 0; i < w->reads.n; i++) {
			sub_ref r = w->reads.at[i].value;
			int key[2] = {group, r.i};
			bool here = sched_group_of(c->plan, c->body, r) == group;
			if (!here && map_add(read, (const char *)key, sizeof key, 1))
				c->bytes.stored += bytes_of(c, r);
		}
	}
}

static void count_stored(struct counter *c)
{
	const struct sched_values *values = &c->plan->values[c->body];
	struct map read = map_in(c->plan->p->arena);
	struct sched_walk w;
	sched_walk_init(&w, c->plan->p->arena, c->plan);
	for (int i = 0; i < values->n; i++)
		if (values->fact[i].group && !values->fact[i].result)
			c->bytes.stored += bytes_of(c, values->value[i]);
	for (size_t g = 0; g < c->plan->groups.n; g++)
		if (c->plan->groups.at[g].body == c->body)
			count_reads(c, &w, g, &read);
}

struct sched_bytes sched_bytes_of(const struct sched_plan *plan, int body)
{
	struct counter c = {.plan = plan, .body = body};
	count_given(&c);
	count_results(&c);
	count_stored(&c);
	return c.bytes;
}
