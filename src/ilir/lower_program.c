/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowers the program around the groups: buffers, steps, the loop over batches. */
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
	struct ilir_buffer_decl b = {.name = t->name, .kind = kind, .dtype = (enum ilir_dtype)t->dtype, .which = which};
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

ilir_buffer lower_index_buffer(struct lowering *l, const char *name, enum image_buffer_kind kind, int which,
			       const char *dim, enum image_size rows)
{
	struct ilir_buffer_decl b = {.name = name, .kind = (int)kind, .dtype = ILIR_I32, .which = which, .rank = 1};
	b.dim[0] = rows_dim(l, dim, rows, image_traits_of(kind)->more);
	return ilir_new_buffer(l->m, b);
}

/* An array of a kind that says how many rows it has. */
static ilir_buffer index_buffer(struct lowering *l, const char *name, enum image_buffer_kind kind, int which, const char *dim)
{
	return lower_index_buffer(l, name, kind, which, dim, (enum image_size)image_traits_of(kind)->rows);
}

/* The rows to read of states that leaves look up by this token. */
static ilir_buffer read_rows_of(struct lowering *l, int input)
{
	if (!l->read_row[input].i)
		l->read_row[input] = index_buffer(l, "read.row", IMAGE_READ_ROW, input, "node");
	return l->read_row[input];
}

static ilir_buffer state_buffer(struct lowering *l, int state)
{
	const struct sched_order *order = &l->sched->states.at[state].order;
	const struct sub_tensor *t = &l->p->states.at[state];
	const char *rows = lower_state_rows(l, state);
	struct sched_look_up up;
	bool in_table = sched_reads_table(l->sched, l->plan, state) && sched_looks_up(l->plan, state, &up);
	ilir_buffer read_row = in_table ? read_rows_of(l, up.input) : (ilir_buffer){0};
	ilir_buffer b = t->derived ? tensor_buffer(l, IMAGE_SCRATCH, 0, t, rows, IMAGE_NODES)
				   : tensor_buffer(l, IMAGE_STATE, state, t, rows, IMAGE_NODES);
	lower_order_dims(order, &ilir_buffer_at(l->m, b)->dim[1]);
	lower_note_order(l, b, order);
	if (in_table) {
		ilir_buffer_at(l->m, b)->table = l->param[up.param];
		ilir_buffer_at(l->m, b)->read_row = read_row;
	}
	return b;
}

static ilir_buffer input_buffer(struct lowering *l, int input)
{
	const struct sub_input *in = &l->p->inputs.at[input];
	const char *rows = in->on_edge ? "edge" : "node";
	enum image_size size = in->on_edge ? IMAGE_EDGES : IMAGE_NODES;
	if (in->token)
		return lower_index_buffer(l, in->name, IMAGE_TOKEN, input, rows, size);
	if (in->hoisted)
		return tensor_buffer(l, IMAGE_SCRATCH, 0, &in->row, rows, size);
	if (sched_reads_given(l->sched, l->plan, input))
		return tensor_buffer(l, IMAGE_GIVEN, input, &in->row, "member", size);
	return tensor_buffer(l, IMAGE_VECTOR, input, &in->row, rows, size);
}

static bool has_traversal_down(const struct sub_program *p)
{
	for (size_t t = 0; t < p->traversals.n; t++)
		if (p->traversals.at[t].down && !p->traversals.at[t].steps)
			return true;
	return false;
}

static void declare_parents(struct lowering *l)
{
	if (!has_traversal_down(l->p))
		return;
	if (l->p->tree)
		l->parent = index_buffer(l, "parent", IMAGE_PARENT, 0, "node");
	l->parent_begin = index_buffer(l, "parent.begin", IMAGE_PARENT_BEGIN, 0, "node");
	l->parent_list = index_buffer(l, "parent.list", IMAGE_PARENT_LIST, 0, "edge");
}

/* Whether a body reads all nodes of an input. */
static bool reads_members(const struct sub_program *p, const struct sub_body *b)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n), reads = false;
	sub_mark_live(p, b, live);
	for (size_t i = 1; i < p->values.n; i++)
		reads |= live[i] && sub_reduces(p->values.at[i].op) && sub_position_in(&p->values.at[i].reduced, p->member) >= 0;
	return reads;
}

/* Whether bodies over such rows, inputs or nodes, read all nodes of an input. */
static bool has_members(const struct sub_program *p, bool of_nodes)
{
	for (size_t b = 0; b < p->bodies.n; b++)
		if ((p->bodies.at[b].domain != SUB_EVERY_INPUT) == of_nodes && reads_members(p, &p->bodies.at[b]))
			return true;
	return false;
}

static bool reads_given(const struct lowering *l)
{
	for (size_t i = 0; i < l->p->inputs.n; i++)
		if (sched_reads_given(l->sched, l->plan, i))
			return true;
	return false;
}

static void declare_members(struct lowering *l)
{
	bool of_nodes = has_members(l->p, true), members = of_nodes || has_members(l->p, false);
	if (of_nodes) {
		l->input_of = index_buffer(l, "input.of", IMAGE_INPUT_OF, 0, "node");
		l->first_pair = index_buffer(l, "first.pair", IMAGE_FIRST_PAIR, 0, "node");
	}
	if (members)
		l->member_begin = index_buffer(l, "member.begin", IMAGE_MEMBER_BEGIN, 0, "input");
	if (members || reads_given(l))
		l->member_list = index_buffer(l, "member.list", IMAGE_MEMBER_LIST, 0, "member");
}

static void declare_structure(struct lowering *l)
{
	for (int s = 0; s < l->p->children; s++) {
		struct str name = str_in(l->m->arena);
		str_printf(&name, "child.%d", s);
		l->child_name[s] = "child";
		l->child[s] = index_buffer(l, name.text, IMAGE_CHILD, s, "node");
	}
	l->child_begin = index_buffer(l, "child.begin", IMAGE_CHILD_BEGIN, 0, "node");
	l->child_list = index_buffer(l, "child.list", IMAGE_CHILD_LIST, 0, "edge");
	l->root = index_buffer(l, "root", IMAGE_ROOT, 0, "input");
	l->place = index_buffer(l, "place", IMAGE_PLACE, 0, "node");
	declare_members(l);
	l->batch_begin = index_buffer(l, "batch.begin", IMAGE_BATCH_BEGIN, 0, "batch");
	if (l->p->cases.n)
		l->case_of = index_buffer(l, "case", IMAGE_CASE, 0, "node");
	declare_parents(l);
	for (size_t t = 0; t < l->p->traversals.n; t++)
		if (l->p->traversals.at[t].steps && !l->step_of_call.i)
			l->step_of_call = index_buffer(l, "step", IMAGE_STEP, 0, "step");
	l->origin = index_buffer(l, "origin", IMAGE_ORIGIN, 0, "node");
	if (l->plan->sorts.n)
		l->edge_node = index_buffer(l, "edge.node", IMAGE_EDGE_NODE, 0, "edge");
	lower_declare_sorts(l);
}

static void declare_buffers(struct lowering *l)
{
	const struct sub_program *p = l->p;
	struct arena *a = l->m->arena;
	size_t slots = p->children > 0 ? p->children : 0;
	l->param = ARENA_ARRAY(a, ilir_buffer, p->params.n);
	l->state = ARENA_ARRAY(a, ilir_buffer, p->states.n);
	l->output = ARENA_ARRAY(a, ilir_buffer, p->outputs.n);
	l->input = ARENA_ARRAY(a, ilir_buffer, p->inputs.n);
	l->read_row = ARENA_ARRAY(a, ilir_buffer, p->inputs.n);
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

int lower_first_stored(const struct lowering *l, sub_ref r)
{
	return sub_leading_dims(l->p, r) > 1;
}

/* The only body of a domain in a traversal; -1 = there is none, or several. */
static int find_only_body(const struct lowering *l, enum sub_domain domain, int traversal)
{
	int found = -1, n = 0;
	for (size_t b = 0; b < l->p->bodies.n; b++)
		if (l->p->bodies.at[b].domain == domain && l->p->bodies.at[b].traversal == traversal) {
			found = (int)b;
			n++;
		}
	return n == 1 ? found : -1;
}

static bool same_store(const struct sub_store *a, const struct sub_store *b)
{
	return a->to == b->to && a->which == b->which && sub_same_use(&a->value, &b->value);
}

/* Whether leaves are stored what inner nodes are, of the same values (mutate/like_inner.c): then they run through these kernels.
 * Not where nodes have cases, as a level has a batch for each. */
static bool runs_leaves_as_inner(const struct lowering *l, int traversal)
{
	int leaf = find_only_body(l, SUB_LEAF, traversal), inner = find_only_body(l, SUB_INNER, traversal);
	if (leaf < 0 || inner < 0 || l->p->cases.n || !l->sched->specialize_leaf || !l->sched->joins_leaves)
		return false;
	const struct sub_body *a = &l->p->bodies.at[leaf], *b = &l->p->bodies.at[inner];
	bool same = a->stores.n == b->stores.n;
	for (size_t i = 0; same && i < a->stores.n; i++)
		same = same_store(&a->stores.at[i], &b->stores.at[i]);
	return same;
}

/* The number of rows of an intermediate of nodes or edges: those of the widest batch if it is only read
 * in its batch. */
static enum image_size intermediate_rows(const struct lowering *l, int body, enum sub_set set)
{
	enum sub_domain domain = l->p->bodies.at[body].domain;
	bool recursion = domain == SUB_LEAF || domain == SUB_INNER, edges = set == SUB_EDGE;
	if (!recursion || !l->sched->dense_index)
		return edges ? IMAGE_EDGES : IMAGE_NODES;
	if (edges || !l->sched->specialize_leaf || runs_leaves_as_inner(l, l->p->bodies.at[body].traversal))
		return edges ? IMAGE_WIDEST_EDGES : IMAGE_WIDEST;
	return domain == SUB_LEAF ? IMAGE_LEAVES : IMAGE_WIDEST_INNER;
}

static struct ilir_dim var_dim(struct lowering *l, int body, int which)
{
	const struct sub_var *var = &l->p->vars.at[which];
	switch (var->set) {
	case SUB_NODE:
	case SUB_EDGE: {
		enum image_size rows = intermediate_rows(l, body, var->set);
		return rows_dim(l, var->set == SUB_NODE ? "node" : "edge", rows, 0);
	}
	case SUB_INPUT:
		return rows_dim(l, "input", IMAGE_INPUTS, 0);
	case SUB_MEMBER: {
		bool of_input = l->p->bodies.at[body].domain == SUB_EVERY_INPUT;
		return of_input ? rows_dim(l, "member", IMAGE_NODES, 0) : rows_dim(l, "pair", IMAGE_PAIRS, 0);
	}
	default: {
		const char *name = var->set == SUB_ROW ? "row" : var->name;
		return (struct ilir_dim){ilir_dim_name(l->m, name), IMAGE_ONE, var->extent, var->extent};
	}
	}
}

/* A cache line is between rows of columns, so that rows of a power of two do not meet in the same sets of a cache. */
ilir_buffer lower_partial_sums(struct lowering *l, sub_ref r)
{
	const struct sub_value *v = sub_at(l->p, r);
	int leading = l->group->rows, along = leading + l->tile->along;
	struct str name = str_in(l->m->arena);
	str_printf(&name, "%s.parked", sched_value_name(l->plan, l->body, r));
	struct ilir_buffer_decl b = {.name = name.text, .kind = IMAGE_SCRATCH, .dtype = (enum ilir_dtype)v->dtype};
	for (int i = 0; i < v->vars; i++)
		if (i != along)
			b.dim[b.rank++] = var_dim(l, l->body, v->var[i]);
	b.dim[b.rank] = var_dim(l, l->body, v->var[along]);
	b.dim[b.rank++].padded += l->sched->target->line_bytes / ilir_bytes(b.dtype);
	ilir_buffer made = ilir_new_buffer(l->m, b);
	lower_note_order(l, made, NULL);
	return made;
}

static ilir_buffer new_intermediate(struct lowering *l, int body, sub_ref r)
{
	const struct sub_value *v = sub_at(l->p, r);
	bool local = l->plan->groups.at[sched_group_of(l->plan, body, r)].local;
	struct ilir_buffer_decl b = {.name = sched_value_name(l->plan, body, r),
				     .kind = local ? IMAGE_LOCAL : IMAGE_SCRATCH,
				     .dtype = (enum ilir_dtype)l->plan->stored_types[r.i]};
	for (int i = lower_first_stored(l, r); i < v->vars; i++)
		b.dim[b.rank++] = var_dim(l, body, v->var[i]);
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

/* Lowers all groups of a body, in sequence. */
static struct ilir_stmt *lower_body(struct lowering *l, int body, bool row_loop)
{
	struct ilir_stmt *block = NULL;
	for (size_t g = 0; g < l->plan->groups.n; g++)
		if (l->plan->groups.at[g].body == body)
			block = ilir_append(block, lower_group(l, g, row_loop));
	return block;
}

/* Lowers a group behind the local ones that it reads. */
static struct ilir_stmt *lower_with_heads(struct lowering *l, int group)
{
	const sched_groups *heads = &l->plan->groups.at[group].heads;
	struct ilir_stmt *block = NULL;
	for (size_t h = 0; h < heads->n; h++)
		block = ilir_append(block, lower_group(l, heads->at[h], true));
	return ilir_append(block, lower_group(l, group, true));
}

/* Lowers each group of a body to a step over the same rows; a single one gets the given name. */
static struct ilir_stmt *lower_steps(struct lowering *l, int body, const char *name, ilir_expr begin,
				     ilir_expr end)
{
	struct ilir_stmt *steps = NULL;
	struct sched_counts c = sched_count(l->plan, body);
	bool alone = c.groups + c.local == 1;
	for (size_t g = 0; g < l->plan->groups.n; g++)
		if (l->plan->groups.at[g].body == body && !l->plan->groups.at[g].local &&
		    !sched_only_looks_up(l->sched, l->plan, g)) {
			struct ilir_stmt *block = lower_with_heads(l, g);
			const char *own = alone ? name : l->plan->groups.at[g].name;
			if (steps && l->sched->barrier_each_step)
				steps = ilir_append(steps, ilir_barrier(l->m));
			struct ilir_stmt *step = ilir_step(l->m, own, g + 1, begin, end, block);
			step->step.cases = l->p->bodies.at[body].cases;
			step->step.sort = l->plan->groups.at[g].sort && lower_sort_of(l, g) ? l->plan->groups.at[g].sort : 0;
			steps = ilir_append(steps, step);
		}
	return steps;
}

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

/* The next body of a domain in the current traversal after body `before`; -1 = there is none. */
static int next_body(const struct lowering *l, enum sub_domain domain, int before)
{
	for (size_t b = before + 1; b < l->p->bodies.n; b++)
		if (l->p->bodies.at[b].domain == domain && l->p->bodies.at[b].traversal == l->traversal)
			return b;
	return -1;
}

static int find_body(const struct lowering *l, enum sub_domain domain)
{
	return next_body(l, domain, -1);
}

/* The condition that the current row is of a case in the mask. */
static ilir_expr is_of_case(struct lowering *l, unsigned cases)
{
	struct ilir_module *m = l->m;
	ilir_expr any = {0}, row_case = ilir_load_index(m, l->case_of, &l->row, 1);
	for (int c = 0; cases >> c; c++)
		if (cases >> c & 1) {
			ilir_expr one = ilir_binary(m, ILIR_EQ, row_case, ilir_index(m, c));
			any = any.i ? ilir_binary(m, ILIR_OR, any, one) : one;
		}
	return any;
}

/* Whether a kernel tests which rows are of a body, instead of a range containing them. */
static bool is_tested(const struct lowering *l, int body)
{
	unsigned cases = l->p->bodies.at[body].cases;
	return !l->sched->specialize_leaf || (cases & l->sched->shared_cases);
}

const struct sched_sort *lower_sort_of(const struct lowering *l, int group)
{
	const struct sched_group *g = &l->plan->groups.at[group];
	bool ranges = l->sched->dynamic_batch && !is_tested(l, g->body);
	return g->sort && ranges ? &l->plan->sorts.at[g->sort - 1] : NULL;
}

static int next_tested(const struct lowering *l, enum sub_domain domain, int before)
{
	int b = next_body(l, domain, before);
	while (b >= 0 && !is_tested(l, b))
		b = next_body(l, domain, b);
	return b;
}

/* Selects among the tested bodies of a domain, from body b on, by the case of the current row.  The last
 * body takes all remaining rows. */
static struct ilir_stmt *tested_cases(struct lowering *l, enum sub_domain domain, int b)
{
	int next = next_tested(l, domain, b);
	struct ilir_stmt *then = lower_body(l, b, false);
	if (next < 0)
		return then;
	ilir_expr own_case = is_of_case(l, l->p->bodies.at[b].cases);
	return ilir_if(l->m, own_case, then, tested_cases(l, domain, next));
}

/* A loop over all rows of a batch, whose body `row` makes. */
static struct ilir_stmt *tested_rows(struct lowering *l, struct ilir_stmt *(*row)(struct lowering *))
{
	struct ilir_module *m = l->m;
	ilir_var v = ilir_new_var(m, "n", (struct ilir_type){ILIR_INDEX, 1});
	l->row = ilir_var_ref(m, v);
	return ilir_for(m, v, ilir_var_ref(m, ilir_begin), ilir_var_ref(m, ilir_end), 1, ilir_dim_name(m, "node"),
			ILIR_SERIAL, row(l));
}

/* One comparison identifies leaves: they are batch 0. */
static struct ilir_stmt *tested_up(struct lowering *l)
{
	struct ilir_module *m = l->m;
	struct ilir_stmt *then = tested_cases(l, SUB_LEAF, find_body(l, SUB_LEAF)),
			 *otherwise = tested_cases(l, SUB_INNER, find_body(l, SUB_INNER));
	ilir_expr one = ilir_index(m, 1), is_leaf = ilir_binary(m, ILIR_LT, l->row, ilir_load_index(m, l->batch_begin, &one, 1));
	return ilir_if(m, is_leaf, then, otherwise);
}

/* Roots are identified by their case. */
static struct ilir_stmt *tested_down(struct lowering *l)
{
	unsigned roots = 0;
	for (int b = find_body(l, SUB_TOP); b >= 0; b = next_body(l, SUB_TOP, b))
		roots |= l->p->bodies.at[b].cases;
	ilir_expr is_root = is_of_case(l, roots);
	struct ilir_stmt *then = tested_cases(l, SUB_TOP, find_body(l, SUB_TOP));
	return ilir_if(l->m, is_root, then, tested_cases(l, SUB_BELOW, find_body(l, SUB_BELOW)));
}

/* One step for all tested bodies of a domain, over the rows of all their cases. */
static struct ilir_stmt *shared_step(struct lowering *l, enum sub_domain domain, ilir_expr begin, ilir_expr end)
{
	struct ilir_module *m = l->m;
	unsigned cases = 0;
	ilir_var v = ilir_new_var(m, "n", (struct ilir_type){ILIR_INDEX, 1});
	l->row = ilir_var_ref(m, v);
	struct ilir_stmt *block = tested_cases(l, domain, next_tested(l, domain, -1));
	block = ilir_for(m, v, ilir_var_ref(m, ilir_begin), ilir_var_ref(m, ilir_end), 1, ilir_dim_name(m, "node"),
			 ILIR_SERIAL, block);
	struct ilir_stmt *step = ilir_step(m, domain == SUB_LEAF ? "leaves" : "cases", 0, begin, end, block);
	for (int b = next_tested(l, domain, -1); b >= 0; b = next_tested(l, domain, b))
		cases |= l->p->bodies.at[b].cases;
	step->step.cases = cases;
	return step;
}

/* Lowers the bodies of a domain to steps over the rows of their cases; those that are tested share one. */
static struct ilir_stmt *lower_cases(struct lowering *l, enum sub_domain domain, ilir_expr begin, ilir_expr end)
{
	int tested = next_tested(l, domain, -1);
	bool shared = tested >= 0 && next_tested(l, domain, tested) >= 0;
	struct ilir_stmt *steps = shared ? shared_step(l, domain, begin, end) : NULL;
	for (int b = find_body(l, domain); b >= 0; b = next_body(l, domain, b))
		if (!shared || !is_tested(l, b))
			steps = ilir_append(steps, lower_steps(l, b, l->p->bodies.at[b].name, begin, end));
	return steps;
}

/* The name of the step that tests all nodes: "node" in the first traversal, "node2" in the second. */
static const char *tested_name(struct lowering *l)
{
	struct str s = str_in(l->m->arena);
	str_printf(&s, l->traversal ? "node%d" : "node", l->traversal + 1);
	return str_text(&s);
}

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

/* One step that tests each node: leaves and inner nodes, or roots and other nodes. */
static struct ilir_stmt *tested_steps(struct lowering *l, ilir_expr begin, ilir_expr end)
{
	bool down = l->p->traversals.at[l->traversal].down;
	struct ilir_stmt *rows = tested_rows(l, down ? tested_down : tested_up);
	return ilir_step(l->m, tested_name(l), 0, begin, end, rows);
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
					 l->sched->specialize_leaf ? down_steps : tested_steps);
	if (runs_leaves_as_inner(l, l->traversal))
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
	int body = find_body(l, domain);
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
	int body = find_body(l, domain);
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
						      .body = lower_body(l, b, true)});
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
		reads |= own && reads_members(l->p, body);
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
	declare_buffers(&l);
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
