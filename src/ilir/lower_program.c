/* The program around the groups: buffers, steps, the loop over batches. */
#include "ilir/lower.h"

#include <stdio.h>

/* --- buffers --- */

static struct ilir_dim rows_dim(struct lowering *l, const char *name, enum image_size rows, int64_t extra)
{
	return (struct ilir_dim){ilir_dim_name(l->m, name), rows, extra, extra};
}

/* Dimensions of a tensor are named by the canonical variables of its shape. */
static int tensor_dims(struct lowering *l, const struct sub_tensor *t, struct ilir_dim *dim)
{
	for (int d = 0; d < t->rank; d++)
		dim[d] = (struct ilir_dim){ilir_dim_name(l->m, l->p->vars.at[t->var[d]].name), IMAGE_ONE, t->shape[d],
					   t->shape[d]};
	return t->rank;
}

static ilir_buffer tensor_buffer(struct lowering *l, int kind, int which, const struct sub_tensor *t, const char *rows_name,
				 enum image_size rows)
{
	struct ilir_buffer_decl b = {.name = t->name, .kind = kind, .dtype = ILIR_F32, .which = which};
	if (rows != IMAGE_ONE)
		b.dim[b.rank++] = rows_dim(l, rows_name, rows, 0);
	b.rank += tensor_dims(l, t, &b.dim[b.rank]);
	return ilir_new_buffer(l->m, b);
}

static ilir_buffer param_buffer(struct lowering *l, int param)
{
	const struct sched_order *order = &l->sched->tables.at[param];
	ilir_buffer b = tensor_buffer(l, IMAGE_WEIGHT, param, &l->p->params.at[param], NULL, IMAGE_ONE);
	if (!sched_is_row_major(order)) {
		ilir_buffer_at(l->m, b)->recipe = lower_table_recipe(l, param, order);
		lower_order_dims(order, &ilir_buffer_at(l->m, b)->dim[1]);
		lower_note_order(l, b, order);
	}
	return b;
}

static ilir_buffer state_buffer(struct lowering *l, int state)
{
	const struct sched_order *order = &l->sched->states.at[state].order;
	const struct sub_tensor *t = &l->p->states.at[state];
	const char *rows = lower_state_rows(l, state);
	ilir_buffer b = t->derived ? tensor_buffer(l, IMAGE_SCRATCH, 0, t, rows, IMAGE_NODES)
				   : tensor_buffer(l, IMAGE_STATE, state, t, rows, IMAGE_NODES);
	lower_order_dims(order, &ilir_buffer_at(l->m, b)->dim[1]);
	lower_note_order(l, b, order);
	return b;
}

static ilir_buffer index_buffer(struct lowering *l, const char *name, int kind, int which, const char *dim,
				enum image_size rows, int64_t extra)
{
	struct ilir_buffer_decl b = {.name = name, .kind = kind, .dtype = ILIR_I32, .which = which, .rank = 1};
	b.dim[0] = rows_dim(l, dim, rows, extra);
	return ilir_new_buffer(l->m, b);
}

static ilir_buffer input_buffer(struct lowering *l, int input)
{
	const struct sub_input *in = &l->p->inputs.at[input];
	if (in->token)
		return index_buffer(l, in->name, IMAGE_TOKEN, input, "node", IMAGE_NODES, 0);
	if (in->hoisted)
		return tensor_buffer(l, IMAGE_SCRATCH, 0, &in->row, "node", IMAGE_NODES);
	return tensor_buffer(l, IMAGE_VECTOR, input, &in->row, "node", IMAGE_NODES);
}

static void declare_structure(struct lowering *l)
{
	for (int s = 0; s < l->p->children; s++) {
		struct str name = str_in(l->m->arena);
		str_printf(&name, "child.%d", s);
		l->child_name[s] = "child";
		l->child[s] = index_buffer(l, name.text, IMAGE_CHILD, s, "node", IMAGE_NODES, 0);
	}
	l->child_begin = index_buffer(l, "child.begin", IMAGE_CHILD_BEGIN, 0, "node", IMAGE_NODES, 1);
	l->child_list = index_buffer(l, "child.list", IMAGE_CHILD_LIST, 0, "edge", IMAGE_EDGES, 0);
	l->root = index_buffer(l, "root", IMAGE_ROOT, 0, "input", IMAGE_INPUTS, 0);
	l->place = index_buffer(l, "place", IMAGE_PLACE, 0, "node", IMAGE_NODES, 0);
	l->batch_begin = index_buffer(l, "batch.begin", IMAGE_BATCH_BEGIN, 0, "batch", IMAGE_BATCHES, 1);
}

static void declare(struct lowering *l)
{
	const struct sub_program *p = l->p;
	struct arena *a = l->m->arena;
	size_t slots = p->children > 0 ? p->children : 0;
	l->param = ARENA_ARRAY(a, ilir_buffer, p->params.n);
	l->state = ARENA_ARRAY(a, ilir_buffer, p->states.n);
	l->output = ARENA_ARRAY(a, ilir_buffer, p->outputs.n);
	l->input = ARENA_ARRAY(a, ilir_buffer, p->inputs.n);
	l->child = ARENA_ARRAY(a, ilir_buffer, slots);
	l->child_name = ARENA_ARRAY(a, const char *, slots);
	for (size_t i = 0; i < p->params.n; i++)
		l->param[i] = param_buffer(l, i);
	for (size_t i = 0; i < p->states.n; i++)
		l->state[i] = state_buffer(l, i);
	for (size_t i = 0; i < p->outputs.n; i++) {
		bool root = p->outputs.at[i].at_root;
		l->output[i] = tensor_buffer(l, IMAGE_OUTPUT, i, &p->outputs.at[i].row, root ? "input" : "node",
					     root ? IMAGE_INPUTS : IMAGE_NODES);
	}
	for (size_t i = 0; i < p->inputs.n; i++)
		l->input[i] = input_buffer(l, i);
	declare_structure(l);
}

/* An edge says which node it belongs to: a value of edges is kept without its row. */
int lower_first_stored(const struct lowering *l, sub_ref r)
{
	return sched_leads(l->p, r) > 1;
}

static ilir_buffer new_intermediate(struct lowering *l, int body, sub_ref r)
{
	const struct sub_value *v = sub_at(l->p, r);
	struct ilir_buffer_decl b = {.name = sched_value_name(l->plan, body, r), .kind = IMAGE_SCRATCH, .dtype = ILIR_F32};
	for (int i = lower_first_stored(l, r); i < v->vars; i++) {
		const struct sub_var *var = &l->p->vars.at[v->var[i]];
		b.dim[b.rank++] =
		    var->set == SUB_NODE    ? rows_dim(l, "node", IMAGE_NODES, 0)
		    : var->set == SUB_INPUT ? rows_dim(l, "input", IMAGE_INPUTS, 0)
		    : var->set == SUB_EDGE  ? rows_dim(l, "edge", IMAGE_EDGES, 0)
		    : var->set == SUB_ROW
			? (struct ilir_dim){ilir_dim_name(l->m, "row"), IMAGE_ONE, var->extent, var->extent}
			: (struct ilir_dim){ilir_dim_name(l->m, var->name), IMAGE_ONE, var->extent,
					    var->extent};
	}
	const struct sched_order *order = sched_intermediate_order(l->sched, body, r);
	if (order)
		lower_order_dims(order, &b.dim[b.rank - order->rank]);
	ilir_buffer made = ilir_new_buffer(l->m, b);
	lower_note_order(l, made, order);
	return made;
}

ilir_buffer lower_target(const struct lowering *l, const struct sub_store *s)
{
	const ilir_buffer *const buffers[] = {[SUB_TO_STATE] = l->state,
					      [SUB_TO_OUTPUT] = l->output,
					      [SUB_TO_PARAM] = l->param,
					      [SUB_TO_INPUT] = l->input};
	return buffers[s->to][s->which];
}

const struct sub_store *lower_result(const struct lowering *l, int body, sub_ref r)
{
	const struct sub_body *b = &l->p->bodies.at[body];
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].value.value.i == r.i)
			return &b->stores.at[i];
	return NULL;
}

ilir_buffer lower_storage(struct lowering *l, int body, sub_ref r)
{
	const struct sub_store *result = lower_result(l, body, r);
	if (result)
		return lower_target(l, result);
	for (size_t i = 0; i < l->storage.n; i++)
		if (l->storage.at[i].body == body && l->storage.at[i].value.i == r.i)
			return l->storage.at[i].buffer;
	struct stored s = {body, r, new_intermediate(l, body, r)};
	vec_push(l->m->arena, &l->storage, s);
	return s.buffer;
}

/* --- steps --- */

/* All groups of a body, one after the other. */
static struct ilir_stmt *lower_body(struct lowering *l, int body, bool row_loop)
{
	struct ilir_stmt *block = NULL;
	for (size_t g = 0; g < l->plan->groups.n; g++)
		if (l->plan->groups.at[g].body == body)
			block = ilir_append(block, lower_group(l, g, row_loop));
	return block;
}

/* A step for each group of a body over the same rows; the only one has the name that is given. */
static struct ilir_stmt *lower_steps(struct lowering *l, int body, const char *name, ilir_expr begin,
				     ilir_expr end)
{
	struct ilir_stmt *steps = NULL;
	bool alone = sched_count(l->plan, body).groups == 1;
	for (size_t g = 0; g < l->plan->groups.n; g++)
		if (l->plan->groups.at[g].body == body) {
			struct ilir_stmt *block = lower_group(l, g, true);
			const char *own = alone ? name : l->plan->groups.at[g].name;
			steps = ilir_append(steps, ilir_step(l->m, own, begin, end, block));
		}
	return steps;
}

static int find_body(const struct lowering *l, enum sub_domain domain)
{
	for (size_t b = 0; b < l->p->bodies.n; b++)
		if (l->p->bodies.at[b].domain == domain)
			return b;
	return -1;
}

/* One body that tests each node: rows one by one, the case chosen by one comparison.  Batch 0 holds the leaves. */
static struct ilir_stmt *tested_body(struct lowering *l, int leaf, int inner)
{
	struct ilir_module *m = l->m;
	ilir_var v = ilir_new_var(m, "n", (struct ilir_type){ILIR_INDEX, 1});
	l->row = ilir_var_ref(m, v);
	struct ilir_stmt *then = lower_body(l, leaf, false), *otherwise = lower_body(l, inner, false);
	ilir_expr one = ilir_index(m, 1), is_leaf = ilir_binary(m, ILIR_LT, l->row, ilir_load(m, l->batch_begin, &one, 1));
	return ilir_for(m, v, ilir_var_ref(m, ilir_begin), ilir_var_ref(m, ilir_end), 1, ilir_dim_name(m, "node"),
			ILIR_SERIAL, ilir_if(m, is_leaf, then, otherwise));
}

/* Steps over the inner nodes, or over all of them, of each batch or node by node. */
static struct ilir_stmt *over_batches(struct lowering *l, int leaf, int inner, bool from_leaves)
{
	struct ilir_module *m = l->m;
	bool batch = l->sched->dynamic_batch;
	ilir_var v = ilir_new_var(m, batch ? "b" : "at", (struct ilir_type){ILIR_INDEX, 1});
	ilir_expr at = ilir_var_ref(m, v), next = ilir_binary(m, ILIR_ADD, at, ilir_index(m, 1));
	ilir_expr begin = batch ? ilir_load(m, l->batch_begin, &at, 1) : at;
	ilir_expr end = batch ? ilir_load(m, l->batch_begin, &next, 1) : next;
	ilir_expr first = from_leaves ? ilir_index(m, 0)
			  : batch     ? ilir_index(m, 1)
				      : ilir_size(m, IMAGE_LEAVES);
	struct ilir_stmt *steps = from_leaves ? ilir_step(m, "node", begin, end, tested_body(l, leaf, inner))
					      : lower_steps(l, inner, "inner", begin, end);
	return ilir_for(m, v, first, ilir_size(m, batch ? IMAGE_BATCHES : IMAGE_NODES), 1,
			ilir_dim_name(m, batch ? "batch" : "node"), ILIR_SERIAL,
			ilir_append(steps, ilir_barrier(m)));
}

static struct ilir_stmt *lower_recursion(struct lowering *l)
{
	struct ilir_module *m = l->m;
	int leaf = find_body(l, SUB_LEAF), inner = find_body(l, SUB_INNER);
	if (!l->sched->specialize_leaf)
		return over_batches(l, leaf, inner, true);
	struct ilir_stmt *leaves = lower_steps(l, leaf, "leaf", ilir_index(m, 0), ilir_size(m, IMAGE_LEAVES));
	leaves = ilir_append(leaves, ilir_barrier(m));
	return ilir_append(leaves, over_batches(l, leaf, inner, false));
}

/* All rows of a body's domain at once, before or after the recursion. */
static struct ilir_stmt *lower_whole(struct lowering *l, enum sub_domain domain)
{
	struct ilir_module *m = l->m;
	int body = find_body(l, domain);
	if (body < 0)
		return NULL;
	ilir_expr begin = domain == SUB_AHEAD_INNER ? ilir_size(m, IMAGE_LEAVES) : ilir_index(m, 0);
	ilir_expr end = ilir_size(m, domain == SUB_EVERY_INPUT ? IMAGE_INPUTS : IMAGE_NODES);
	return lower_steps(l, body, l->p->bodies.at[body].name, begin, end);
}

static struct ilir_stmt *lower_ahead(struct lowering *l)
{
	struct ilir_stmt *all = lower_whole(l, SUB_AHEAD), *inner = lower_whole(l, SUB_AHEAD_INNER);
	struct ilir_stmt *both = ilir_append(all, inner);
	return both ? ilir_append(both, ilir_barrier(l->m)) : NULL;
}

/* What runs when weights are bound: a kernel for each folded parameter, over its rows, in the order of the
 * bodies. */
static void lower_bindings(struct lowering *l)
{
	for (size_t b = 0; b < l->p->bodies.n; b++)
		if (l->p->bodies.at[b].domain == SUB_AT_BINDING)
			vec_push(l->m->arena, &l->m->kernels,
				 (struct ilir_kernel){l->p->bodies.at[b].name, IMAGE_DOMAIN_BINDING,
						      lower_body(l, b, true)});
}

void ilir_lower(struct ilir_module *m, struct ilir_tiling *tiling, const struct sched_plan *plan, const struct sched *sched)
{
	struct lowering l = {.m = m, .tiling = tiling, .p = plan->p, .plan = plan, .sched = sched};
	l.places = map_in(m->arena);
	l.recursive = sched_recursive(l.p);
	tiling->accumulators = sched->accumulators;
	declare(&l);
	lower_bindings(&l);
	struct ilir_stmt *body = ilir_append(lower_ahead(&l), lower_recursion(&l));
	body = ilir_append(body, lower_whole(&l, SUB_EVERY_NODE));
	body = ilir_append(body, lower_whole(&l, SUB_EVERY_INPUT));
	vec_push(m->arena, &m->kernels, (struct ilir_kernel){m->name, IMAGE_DOMAIN_ONCE, body});
}
