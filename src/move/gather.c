/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Gathering: what an input needs of each of its nodes is computed for all nodes, and read by the input.
 *
 *     output [n]                                             output [n]
 *       %2[n,j] = tanh W @ h[n,k]                              %2[n,j] = tanh W @ h[n,k]
 *     output.root [t]                                          store hoist0[n,j] = %2[n,j]
 *       %5[t,q,j] = tanh W @ h[member(q),k]            ->    output.root [t]
 *       %6[t,j] = sum_q %5[t,q,j]                              %7[t,q,j] = assign hoist0[member(q),j]
 *                                                              %6[t,j] = sum_q %7[t,q,j]
 *
 * Rows of all nodes are one dense product; and what an output at every node computes as well is computed once, since
 * equal values are one. */
#include "move/moved_program.h"

/* A value of members that is moved, and the input that nodes keep it in. */
struct gathered {
	sub_ref value; /* of members */
	sub_ref there; /* of nodes */
	int input;
};

struct gathering {
	struct arena *arena;
	const struct sub_program *from;
	struct sub_program *to;
	enum move_extent how;
	const struct sub_body *body; /* of inputs */
	struct sub_values values;    /* of it */
	bool *movable;		     /* by value: it depends on one node, a member, and on weights */
	sub_ref *there;		     /* by value: the same of a node; 0 = not made yet */
	sub_ref *now;		     /* by value: what the body has instead */
	const double *work;
	VEC(struct gathered) all;
};

static const struct sub_value *value_of(const struct gathering *g, sub_ref r)
{
	return sub_at(g->from, r);
}

/* --- what can be moved --- */

/* Whether a value has a row for each member, and its first two variables are those of the input and the member. */
static bool is_of_members(const struct gathering *g, const struct sub_value *v)
{
	return v->vars > 1 && v->var[0] == g->from->input && v->var[1] == g->from->member;
}

/* Whether the maps behind the first `n` are functions of dimensions. */
static bool has_affine_maps(const struct sub_value *v, int n)
{
	for (int i = n; i < v->arg[0].vars; i++)
		if (!sub_is_arithmetic(&v->map[i]))
			return false;
	return true;
}

/* Whether a value reads a state or a vector of the member's node. */
static bool reads_node(const struct gathering *g, const struct sub_value *v)
{
	enum sub_op op = v->op == SUB_ASSIGN ? value_of(g, v->arg[0].value)->op : v->op;
	return v->op == SUB_ASSIGN && (op == SUB_STATE || op == SUB_VECTOR) && v->map[0].function == SUB_MEMBER_NODE &&
	       has_affine_maps(v, 1);
}

static bool has_movable_arguments(const struct gathering *g, const struct sub_value *v)
{
	bool movable = true;
	for (int a = 0; a < v->args; a++)
		movable &= !sub_has_leading_dim(g->from, v->arg[a].value) || g->movable[v->arg[a].value.i];
	return movable;
}

static bool is_movable(const struct gathering *g, const struct sub_value *v)
{
	if (!is_of_members(g, v) || sub_class_of(v->op) == SUB_SOURCE)
		return false;
	if (v->op == SUB_ASSIGN)
		return reads_node(g, v) ||
		       (has_movable_arguments(g, v) && sub_has_leading_dim(g->from, v->arg[0].value) && has_affine_maps(v, 2));
	return !sub_reduces_ragged(g->from, v) && has_movable_arguments(g, v);
}

/* Whether it is worth storing. */
static bool is_profitable(const struct gathering *g, sub_ref r)
{
	double least = g->how == MOVE_ALL ? 0 : MOVE_LEAST_WORK * sub_row_elements(g->from, value_of(g, r));
	return g->work[r.i] > 0 && g->work[r.i] >= least && value_of(g, r)->op != SUB_ASSIGN &&
	       value_of(g, r)->vars - 2 <= TENSOR_MAX_RANK;
}

/* --- values of nodes --- */

/* Drops the variable of the member and replaces that of the input by the node's; returns the number of variables. */
static int put_vars(const struct gathering *g, int *var, int n)
{
	int kept = 0;
	for (int i = 0; i < n; i++)
		if (var[i] != g->from->member)
			var[kept++] = var[i] == g->from->input ? g->from->node : var[i];
	return kept;
}

/* Whether a value is a node's source as it is, dimension for dimension. */
static bool is_whole(const struct gathering *g, const struct sub_value *v)
{
	const struct sub_value *from = value_of(g, v->arg[0].value);
	bool whole = v->vars == from->vars + 1 && !v->fills;
	for (int i = 1; whole && i < from->vars; i++)
		whole = sub_is_identity(&v->map[i]) && v->map[i].var == v->var[i + 1] &&
			g->from->vars.at[from->var[i]].extent == g->from->vars.at[v->var[i + 1]].extent;
	return whole;
}

static sub_ref move_assign(struct gathering *g, struct sub_value v)
{
	bool node = reads_node(g, &v);
	int leading = node ? 1 : 2, dims = v.arg[0].vars - leading;
	struct sub_map maps[SUB_MAX_VARS];
	if (node && is_whole(g, &v))
		return v.arg[0].value;
	maps[0] = (struct sub_map){.function = SUB_AFFINE, .var = g->from->node, .scale = 1};
	memcpy(&maps[1], &v.map[leading], dims * sizeof *maps);
	v.arg[0] = sub_as_is(g->to, node ? v.arg[0].value : g->there[v.arg[0].value.i]);
	v.map = maps;
	v.vars = put_vars(g, v.var, v.vars);
	return sub_add(g->to, v, NULL);
}

static sub_ref move_value(struct gathering *g, struct sub_value v)
{
	int vars = v.vars;
	if (v.op == SUB_ASSIGN)
		return move_assign(g, v);
	for (int a = 0; a < v.args; a++) {
		if (sub_has_leading_dim(g->from, v.arg[a].value))
			v.arg[a].value = g->there[v.arg[a].value.i];
		v.arg[a].vars = put_vars(g, v.arg[a].var, v.arg[a].vars);
	}
	v.vars = put_vars(g, v.var, v.vars);
	v.axis -= v.op == SUB_COND ? vars - v.vars : 0;
	return sub_add(g->to, v, NULL);
}

/* --- selection --- */

static void find_movable(struct gathering *g)
{
	for (int i = 0; i < g->values.n; i++) {
		sub_ref r = g->values.value[i];
		g->movable[r.i] = is_movable(g, value_of(g, r));
		if (g->movable[r.i])
			g->there[r.i] = move_value(g, *value_of(g, r));
	}
}

/* Whether the value of nodes has the dimensions of that of members. */
static bool has_node_dims(const struct gathering *g, sub_ref r)
{
	const struct sub_value *v = value_of(g, r), *there = sub_at(g->to, g->there[r.i]);
	return there->vars == v->vars - 1 && there->var[0] == g->from->node &&
	       memcmp(&there->var[1], &v->var[2], (v->vars - 2) * sizeof *v->var) == 0;
}

static void select_value(struct gathering *g, sub_ref r)
{
	if (!g->movable[r.i] || !is_profitable(g, r) || !has_node_dims(g, r))
		return;
	for (size_t i = 0; i < g->all.n; i++)
		if (g->all.at[i].value.i == r.i)
			return;
	vec_push(g->arena, &g->all, (struct gathered){.value = r, .there = g->there[r.i]});
}

/* Selects the movable values that others use. */
static void select_values(struct gathering *g)
{
	for (int i = 0; i < g->values.n; i++) {
		const struct sub_value *v = value_of(g, g->values.value[i]);
		for (int a = 0; !g->movable[g->values.value[i].i] && a < v->args; a++)
			select_value(g, v->arg[a].value);
	}
}

/* --- the new program --- */

static void declare_input(struct gathering *g, struct gathered *x)
{
	const struct sub_value *v = sub_at(g->to, x->there);
	struct sub_input in = {.name = move_hoist_name(g->to), .hoisted = true};
	in.row = (struct sub_tensor){.name = in.name, .dtype = v->dtype, .rank = v->vars - 1};
	for (int d = 0; d < in.row.rank; d++) {
		in.row.var[d] = v->var[d + 1];
		in.row.shape[d] = g->to->vars.at[v->var[d + 1]].extent;
	}
	x->input = g->to->inputs.n;
	vec_push(g->arena, &g->to->inputs, in);
}

/* What the input reads instead of a value of its members. */
static sub_ref read_gathered(struct gathering *g, const struct gathered *x)
{
	const struct sub_value *v = value_of(g, x->value), *there = sub_at(g->to, x->there);
	struct sub_value in = {.op = SUB_VECTOR, .which = x->input, .vars = there->vars};
	memcpy(in.var, there->var, sizeof in.var);
	struct sub_map maps[SUB_MAX_VARS] = {{.function = SUB_MEMBER_NODE, .var = g->from->member}};
	for (int i = 1; i < in.vars; i++)
		maps[i] = (struct sub_map){.function = SUB_AFFINE, .var = in.var[i], .scale = 1};
	struct sub_value read = {.op = SUB_ASSIGN, .dtype = v->dtype, .args = 1, .vars = v->vars, .map = maps};
	memcpy(read.var, v->var, sizeof read.var);
	read.arg[0] = sub_as_is(g->to, sub_add(g->to, in, NULL));
	return sub_add(g->to, read, NULL);
}

static sub_ref copy_value(struct gathering *g, sub_ref r)
{
	struct sub_value v = *value_of(g, r);
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = g->now[v.arg[a].value.i];
	return sub_add(g->to, v, NULL);
}

static struct sub_body rewrite_body(struct gathering *g)
{
	g->now = ARENA_ARRAY(g->arena, sub_ref, g->from->values.n);
	for (int i = 0; i < g->values.n; i++) {
		sub_ref r = g->values.value[i];
		const struct gathered *x = NULL;
		for (size_t k = 0; k < g->all.n && !x; k++)
			x = g->all.at[k].value.i == r.i ? &g->all.at[k] : NULL;
		g->now[r.i] = x ? read_gathered(g, x) : copy_value(g, r);
	}
	return sub_map_body(g->arena, g->body, g->now);
}

/* The body of all nodes with what inputs read of it; a new one where no output is computed at every node. */
static struct sub_body body_of_nodes(struct gathering *g, const struct sub_body *had)
{
	struct sub_body b = {.name = had ? had->name : sub_find_free_name(g->from, SUB_NAME_BODY, "nodes"),
			     .domain = SUB_EVERY_NODE,
			     .traversal = had ? had->traversal : g->body->traversal};
	for (size_t i = 0; had && i < had->stores.n; i++)
		vec_push(g->arena, &b.stores, had->stores.at[i]);
	for (size_t i = 0; i < g->all.n; i++)
		vec_push(g->arena, &b.stores,
			 (struct sub_store){.to = SUB_TO_INPUT,
					    .which = g->all.at[i].input,
					    .value = sub_as_is(g->to, g->all.at[i].there)});
	return b;
}

static const struct sub_body *find_body(const struct sub_program *p, enum sub_domain domain)
{
	for (size_t i = 0; i < p->bodies.n; i++)
		if (p->bodies.at[i].domain == domain)
			return &p->bodies.at[i];
	return NULL;
}

static void add_bodies(struct gathering *g)
{
	const struct sub_body *had = find_body(g->from, SUB_EVERY_NODE);
	for (size_t i = 0; i < g->all.n; i++)
		declare_input(g, &g->all.at[i]);
	struct sub_body inputs = rewrite_body(g), nodes = body_of_nodes(g, had);
	for (size_t i = 0; i < g->from->bodies.n; i++) {
		const struct sub_body *b = &g->from->bodies.at[i];
		if (b == g->body && !had)
			vec_push(g->arena, &g->to->bodies, nodes);
		vec_push(g->arena, &g->to->bodies, b == had ? nodes : b == g->body ? inputs : *b);
	}
}

static void note_gathered(const struct gathering *g, struct rewrite_trace *trace)
{
	for (size_t i = 0; trace && i < g->all.n; i++) {
		struct str s = str_in(g->arena);
		str_printf(&s, "%s is computed for all nodes, and read by the inputs that they are members of: %.0f bytes each",
			   g->to->inputs.at[g->all.at[i].input].name, move_row_bytes(g->to, g->all.at[i].there));
		vec_push(g->arena, &trace->notes, s.text);
	}
}

void move_gather(struct sub_program *to, const struct sub_program *from, enum move_extent how, struct rewrite_trace *trace)
{
	struct gathering g = {.arena = to->arena, .from = from, .to = to, .how = how, .body = find_body(from, SUB_EVERY_INPUT)};
	if (!g.body || how == MOVE_OFF) {
		move_keep_program(to, from);
		return;
	}
	move_copy_program(to, from);
	g.values = sub_find_values(g.arena, from, g.body, ARENA_ARRAY(g.arena, bool, from->values.n));
	g.movable = ARENA_ARRAY(g.arena, bool, from->values.n);
	g.there = ARENA_ARRAY(g.arena, sub_ref, from->values.n);
	g.work = move_count_products(g.arena, from);
	find_movable(&g);
	select_values(&g);
	if (!g.all.n) {
		move_keep_program(to, from);
		return;
	}
	add_bodies(&g);
	note_gathered(&g, trace);
}
