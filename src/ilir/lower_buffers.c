/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Declares the buffers of what the caller binds, passes and gets, and of the structure of its inputs. */
#include "ilir/lower.h"

struct ilir_dim lower_rows_dim(struct lowering *l, const char *name, enum image_size rows, int64_t extra)
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
		b.dim[b.rank++] = lower_rows_dim(l, rows_name, rows, 0);
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
	b.dim[0] = lower_rows_dim(l, dim, rows, image_traits_of(kind)->more);
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
bool lower_reads_members(const struct sub_program *p, const struct sub_body *b)
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
		if ((p->bodies.at[b].domain != SUB_EVERY_INPUT) == of_nodes && lower_reads_members(p, &p->bodies.at[b]))
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

void lower_declare_buffers(struct lowering *l)
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
