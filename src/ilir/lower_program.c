/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowers the program around the groups: the loop over batches, scans, what runs before and after them. */
#include "ilir/lower.h"

/* --- calls --- */

static ilir_buffer buffer_of_operand(const struct lowering *l, const struct sub_operand *o)
{
	return o->role == IMAGE_OPERAND_CONSTANT ? l->param[o->which] : l->input[o->which];
}

static void declare_calls(struct lowering *l)
{
	for (size_t c = 0; c < l->p->calls.n; c++) {
		const struct sub_call *from = &l->p->calls.at[c];
		struct ilir_operand *operand = ARENA_ARRAY(l->m->arena, struct ilir_operand, from->operands);
		for (int i = 0; i < from->operands; i++)
			operand[i] = (struct ilir_operand){buffer_of_operand(l, &from->operand[i]),
							   from->operand[i].role == IMAGE_OPERAND_OUTPUT};
		vec_push(l->m->arena, &l->m->calls, (struct ilir_call){from->name, from->operands, operand});
	}
}

/* --- the recursion --- */

/* The loop over batches or nodes, from `first` on; in a traversal down, from the last to the first. */
static struct ilir_stmt *loop_over_batches(struct lowering *l, ilir_expr first, bool down,
					   struct ilir_stmt *(*steps)(struct lowering *, ilir_expr begin,
								      ilir_expr end))
{
	struct ilir_module *m = l->m;
	bool batch = l->sched->dynamic_batch;
	ilir_var v = ilir_new_var(m, batch ? "b" : "at", (struct ilir_type){ILIR_INDEX, 1});
	ilir_expr all = ilir_size(m, batch ? IMAGE_BATCHES : IMAGE_NODES), one = ilir_index(m, 1), at = ilir_var_ref(m, v);
	if (down)
		at = ilir_binary(m, ILIR_SUB, ilir_binary(m, ILIR_SUB, all, one), at);
	ilir_expr next = ilir_binary(m, ILIR_ADD, at, one);
	ilir_expr begin = batch ? ilir_load_index(m, l->batch_begin, &at, 1) : at;
	ilir_expr end = batch ? ilir_load_index(m, l->batch_begin, &next, 1) : next;
	return ilir_for(m, v, first, all, 1, ilir_dim_name(m, batch ? "batch" : "node"), ILIR_SERIAL,
			ilir_append(steps(l, begin, end), ilir_barrier(m)));
}

static struct ilir_stmt *inner_steps(struct lowering *l, ilir_expr begin, ilir_expr end)
{
	return lower_cases(l, SUB_INNER, begin, end);
}

static struct ilir_stmt *down_steps(struct lowering *l, ilir_expr begin, ilir_expr end)
{
	struct ilir_stmt *roots = lower_cases(l, SUB_TOP, begin, end);
	return ilir_append(roots, lower_cases(l, SUB_BELOW, begin, end));
}

/* Whether the traversal at hand has bodies: without a structure there is none. */
static bool has_recursion(const struct lowering *l)
{
	for (size_t b = 0; b < l->p->bodies.n; b++)
		if (sub_is_recursive(&l->p->bodies.at[b]) && l->p->bodies.at[b].traversal == l->traversal)
			return true;
	return false;
}

static struct ilir_stmt *lower_recursion(struct lowering *l)
{
	struct ilir_module *m = l->m;
	if (!has_recursion(l))
		return NULL;
	bool down = l->p->traversals.at[l->traversal].down;
	if (!l->sched->specialize_leaf || down)
		return loop_over_batches(l, ilir_index(m, 0), down,
					 l->sched->specialize_leaf ? down_steps : lower_tested_steps);
	if (lower_runs_leaves_as_inner(l, l->traversal))
		return loop_over_batches(l, ilir_index(m, 0), false, inner_steps);
	struct ilir_stmt *leaves = lower_cases(l, SUB_LEAF, ilir_index(m, 0), ilir_size(m, IMAGE_LEAVES));
	leaves = ilir_append(leaves, ilir_barrier(m));
	ilir_expr first = l->sched->dynamic_batch ? ilir_index(m, 1) : ilir_size(m, IMAGE_LEAVES);
	return ilir_append(leaves, loop_over_batches(l, first, false, inner_steps));
}

static struct ilir_stmt *first_step(struct ilir_stmt *s)
{
	while (s && s->kind == ILIR_FOR)
		s = s->loop.body;
	return s;
}

/* The loop over some steps of a scan, each of which runs the groups of a body over all rows. */
static struct ilir_stmt *lower_steps_of_scan(struct lowering *l, enum sub_domain domain, int64_t begin,
					     int64_t end)
{
	struct ilir_module *m = l->m;
	int body = lower_find_body(l, domain);
	if (body < 0 || begin == end)
		return NULL;
	ilir_var v = ilir_new_var(m, "step", (struct ilir_type){ILIR_INDEX, 1});
	l->step = ilir_var_ref(m, v);
	struct ilir_stmt *steps =
	    lower_steps(l, body, l->p->bodies.at[body].name, ilir_index(m, 0), ilir_size(m, IMAGE_NODES));
	return ilir_for(m, v, ilir_index(m, begin), ilir_index(m, end), 1, ilir_dim_name(m, "step"),
			ILIR_SERIAL, ilir_append(steps, ilir_barrier(m)));
}

/* A step of a scan waits for the one before it, so the first one is set apart from what stands before it. */
static struct ilir_stmt *lower_scan(struct lowering *l)
{
	int64_t steps = l->p->traversals.at[l->traversal].steps;
	struct ilir_stmt *first = steps ? lower_steps_of_scan(l, SUB_FIRST_STEP, 0, 1) : NULL,
			 *next = steps ? lower_steps_of_scan(l, SUB_NEXT_STEPS, 1, steps) : NULL;
	for (int i = 0; i < 2; i++) {
		struct ilir_stmt *s = first_step(i ? next : first);
		if (s)
			s->step.apart = true;
	}
	return ilir_append(first, next);
}

/* Lowers a body over all rows of its domain, before or after the recursion. */
static struct ilir_stmt *lower_all_rows(struct lowering *l, enum sub_domain domain)
{
	struct ilir_module *m = l->m;
	int body = lower_find_body(l, domain);
	if (body < 0)
		return NULL;
	ilir_expr begin = domain == SUB_AHEAD_INNER ? ilir_size(m, IMAGE_LEAVES) : ilir_index(m, 0);
	ilir_expr end = ilir_size(m, domain == SUB_EVERY_INPUT ? IMAGE_INPUTS : IMAGE_NODES);
	if (l->p->bodies.at[body].call) {
		struct ilir_stmt *step = ilir_step(m, l->p->bodies.at[body].name, 0, begin, end, NULL);
		step->step.call = l->p->bodies.at[body].call;
		return step;
	}
	return lower_steps(l, body, l->p->bodies.at[body].name, begin, end);
}

static struct ilir_stmt *lower_ahead(struct lowering *l)
{
	struct ilir_stmt *all = lower_all_rows(l, SUB_AHEAD), *inner = lower_all_rows(l, SUB_AHEAD_INNER);
	struct ilir_stmt *both = ilir_append(all, inner);
	return both ? ilir_append(both, ilir_barrier(l->m)) : NULL;
}

/* Lowers what runs when weights are bound: a kernel for each folded parameter, over its rows, in the
 * order of bodies. */
static void lower_bindings(struct lowering *l)
{
	for (size_t b = 0; b < l->p->bodies.n; b++)
		if (l->p->bodies.at[b].domain == SUB_AT_BINDING)
			vec_push(l->m->arena, &l->m->kernels,
				 (struct ilir_kernel){.name = l->p->bodies.at[b].name,
						      .domain = IMAGE_DOMAIN_BINDING,
						      .body = lower_groups_of_body(l, b, true)});
}

/* Sets the steps of a traversal, or of outputs, apart from those before them if one of their bodies reads all nodes. */
static struct ilir_stmt *set_apart(struct lowering *l, struct ilir_stmt *steps, bool outputs)
{
	bool reads = false;
	for (size_t b = 0; b < l->p->bodies.n; b++) {
		const struct sub_body *body = &l->p->bodies.at[b];
		bool own = outputs ? body->domain == SUB_EVERY_NODE
				   : body->traversal == l->traversal && body->domain != SUB_EVERY_NODE &&
					 body->domain < SUB_AT_BINDING && body->domain != SUB_EVERY_INPUT;
		reads |= own && lower_reads_members(l->p, body);
	}
	if (reads && steps)
		first_step(steps)->step.apart = true;
	return steps;
}

void ilir_lower(struct ilir_module *m, struct ilir_tiling *tiling, const struct sched_plan *plan, const struct sched *sched)
{
	struct lowering l = {.m = m, .tiling = tiling, .p = plan->p, .plan = plan, .sched = sched};
	struct ilir_stmt *body = NULL;
	l.places = map_in(m->arena);
	tiling->accumulators = sched->accumulators;
	tiling->peel = sched->peel;
	tiling->matrices = sched->target->amx_int8;
	tiling->align = sched->align;
	lower_declare_buffers(&l);
	declare_calls(&l);
	lower_bindings(&l);
	for (size_t t = 0; t < l.p->traversals.n; t++) {
		l.traversal = t;
		struct ilir_stmt *recursion = ilir_append(lower_recursion(&l), lower_scan(&l));
		body = ilir_append(body, set_apart(&l, ilir_append(lower_ahead(&l), recursion), false));
	}
	body = ilir_append(body, set_apart(&l, lower_all_rows(&l, SUB_EVERY_NODE), true));
	body = ilir_append(body, lower_all_rows(&l, SUB_EVERY_INPUT));
	vec_push(m->arena, &m->kernels, (struct ilir_kernel){.name = m->name, .domain = IMAGE_DOMAIN_ONCE, .body = body});
}
