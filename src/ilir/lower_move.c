/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowers data movement: an `assign` and a `cond` only change the index.  A choice is generated
 * where an index may be out of bounds, or selects one of two sides. */
#include "ilir/lower.h"

/* --- indices --- */

/* The index of a variable of the value; none if it is no variable of it. */
static ilir_expr index_of(const struct sub_value *v, const ilir_expr *index, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return index[i];
	return (ilir_expr){0};
}

static ilir_expr scale_index(struct lowering *l, ilir_expr at, int64_t scale)
{
	return at.i ? ilir_binary(l->m, ILIR_MUL, at, ilir_index(l->m, scale)) : ilir_index(l->m, 0);
}

/* The edge from a node to its child in a slot. */
static ilir_expr edge_in_slot(struct lowering *l, ilir_expr node, int slot)
{
	return ilir_binary(l->m, ILIR_ADD, lower_row_of(l, l->child_begin, "edges", node), ilir_index(l->m, slot));
}

/* The child of a node in a slot.  Where nodes have any number of children, they are listed by edge. */
static ilir_expr child_in_slot(struct lowering *l, int slot, ilir_expr node)
{
	if (l->p->children >= 0)
		return lower_row_of(l, l->child[slot], l->child_name[slot], node);
	return lower_row_of(l, l->child_list, "child", edge_in_slot(l, node, slot));
}

/* scale*var + scale2*var2 + offset */
static ilir_expr sum_terms(struct lowering *l, const struct sub_value *v, const struct sub_map *m,
			   const ilir_expr *index)
{
	ilir_expr at = scale_index(l, index_of(v, index, m->var), m->scale);
	if (m->scale2)
		at = ilir_binary(l->m, ILIR_ADD, at, scale_index(l, index_of(v, index, m->var2), m->scale2));
	return ilir_binary(l->m, ILIR_ADD, at, ilir_index(l->m, m->offset));
}

ilir_expr lower_step_index(struct lowering *l, int64_t scale, int64_t offset)
{
	ilir_expr at = ilir_index(l->m, offset);
	return scale < 0 ? ilir_binary(l->m, ILIR_SUB, at, l->step)
			 : ilir_binary(l->m, ILIR_ADD, l->step, at);
}

static ilir_expr apply_digit(struct lowering *l, const struct sub_map *m, ilir_expr sum)
{
	ilir_expr at = ilir_binary(l->m, ILIR_DIV, sum, ilir_index(l->m, m->divisor));
	return m->modulus ? ilir_binary(l->m, ILIR_MOD, at, ilir_index(l->m, m->modulus)) : at;
}

static ilir_expr apply_map(struct lowering *l, const struct sub_value *v, const struct sub_map *m,
			   const ilir_expr *index)
{
	ilir_expr at = index_of(v, index, m->var);
	switch (m->function) {
	case SUB_CHILD:
		return child_in_slot(l, m->which, at);
	case SUB_EDGE_CHILD:
		return lower_row_of(l, l->child_list, "child", at);
	case SUB_PARENT:
		return lower_row_of(l, l->parent, "parent", at);
	case SUB_EDGE_PARENT:
		return lower_row_of(l, l->parent_list, "parent", at);
	case SUB_MEMBER_NODE:
		return lower_row_of(l, l->member_list, "member", at);
	case SUB_ROOT:
		return lower_row_of(l, l->root, "root", at);
	case SUB_TOKEN:
		if (lower_is_sorting_token(l, m, at))
			return l->token;
		if (l->p->inputs.at[m->which].on_edge && l->p->vars.at[m->var].set == SUB_NODE)
			at = edge_in_slot(l, at, m->slot);
		else if (l->p->vars.at[m->var].set == SUB_MEMBER)
			at = lower_row_of(l, l->member_list, "member", at);
		return lower_row_of(l, l->input[m->which], "token", at);
	case SUB_SLOT_EDGE:
		return edge_in_slot(l, at, m->which);
	case SUB_STEP:
		return lower_step_index(l, m->scale, m->offset);
	case SUB_DIGIT:
		return apply_digit(l, m, sum_terms(l, v, m, index));
	default:
		return sum_terms(l, v, m, index);
	}
}

void lower_indices_with(const struct sub_value *v, const ilir_expr *index, const struct sub_use *u,
			const struct sub_vars *own, const ilir_expr *own_index, ilir_expr *out)
{
	for (int i = 0; i < u->vars; i++) {
		int at = sub_position_in(own, u->var[i]);
		out[i] = at >= 0 ? own_index[at] : (ilir_expr){0};
		for (int j = 0; at < 0 && j < v->vars; j++)
			if (v->var[j] == u->var[i])
				out[i] = index[j];
	}
}

/* --- choices --- */

/* One side of a choice: a value at an index, or a number. */
struct side {
	sub_ref value; /* none = the number */
	ilir_expr index[SUB_MAX_VARS];
	enum dtype dtype; /* of the number */
	double number;
};

static ilir_expr side_value(struct lowering *l, const struct side *side)
{
	return side->value.i ? lower_value_at(l, side->value, side->index) : lower_number(l, side->dtype, side->number);
}

/* A block that computes a side and stores it to a register. */
static struct ilir_stmt *side_block(struct lowering *l, struct scope *around, const struct side *side,
				    ilir_buffer to)
{
	struct scope *saved = l->scope, *own = lower_scope_new(l, around, false);
	int floor = l->floor;
	l->scope = own;
	l->floor = own->depth;
	lower_scope_add(l, own, ilir_store(l->m, to, NULL, 0, side_value(l, side)), NULL);
	l->scope = saved;
	l->floor = floor;
	return lower_scope_finish(l, own);
}

/* Whether a value is computed by loops at each use: it reduces, or what it is computed of there does. */
static bool needs_loop(const struct lowering *l, struct map *seen, sub_ref r)
{
	if (!r.i || !map_add(seen, (const char *)&r, sizeof r, 1))
		return false;
	const struct sub_value *v = sub_at(l->p, r);
	bool here = sched_group_of(l->plan, l->body, r) == l->group - l->plan->groups.at;
	if (sched_is_stored(l->plan, l->body, r) && !here)
		return false;
	bool needs = sub_reduces(v->op);
	for (int a = 0; a < v->args && !needs; a++)
		needs = needs_loop(l, seen, v->arg[a].value);
	return needs;
}

static bool sides_need_loop(const struct lowering *l, const struct side *yes, const struct side *no)
{
	struct map seen = map_in(l->m->arena);
	return needs_loop(l, &seen, yes->value) || needs_loop(l, &seen, no->value);
}

/* A condition for the `yes` side: the comparison has this truth value.  It bounds an index by the extent of its dimension, or
 * says on which side of a concatenation it lies. */
struct choice {
	ilir_expr condition;
	bool truth;
	ilir_expr index; /* none = of a concatenation */
	int64_t extent;
};

/* Whether the extents of a load's buffer say what a condition says: a dimension in memory has the index and its bounds.  It has not
 * where the value that a window leaves is a part of what lies in memory, or is repeated along the dimension. */
static bool is_implied_by_extents(const struct lowering *l, ilir_expr load, const struct choice *c)
{
	const struct ilir_node *n = ilir_at(l->m, load);
	const struct ilir_dim *dim = ilir_buffer_at(l->m, n->buffer)->dim;
	bool implied = false;
	for (int d = 0; d < n->args; d++)
		implied |= dim[d].rows == IMAGE_ONE && dim[d].extent == c->extent && ilir_arg(l->m, load, d).i == c->index.i;
	return implied;
}

/* Whether a side is an element of memory, which later passes can read within the extents of its buffer: a choice between
 * it and a number compares no index, and vectors can make it.  They step by two elements at most.  Where the conditions hold, all
 * indices lie in the extents. */
static bool is_read_within(const struct lowering *l, ilir_expr e, const struct choice *c, int n, const struct side *no)
{
	ilir_expr load = ilir_widened(l->m, e);
	const struct ilir_node *node = ilir_at(l->m, load);
	const struct ilir_buffer_decl *b = node->op == ILIR_LOAD ? ilir_buffer_at(l->m, node->buffer) : NULL;
	enum ilir_dtype type = ilir_type_of(l->m, e).dtype;
	bool within = b && !no->value.i && (type == ILIR_F32 || type == ILIR_I32) &&
		      (b->kind == IMAGE_VECTOR || b->kind == IMAGE_STATE || b->kind == IMAGE_SCRATCH);
	for (int i = 0; within && i < n; i++)
		within = is_implied_by_extents(l, load, &c[i]);
	return within;
}

/* The choice as an expression, for use inside a reduction.  No part of a side is computed before the
 * choice. */
static ilir_expr choose_expression(struct lowering *l, int depth, const struct choice *c, int n,
				   const struct side *yes, const struct side *no)
{
	int floor = l->floor;
	l->floor = depth > floor ? depth : floor;
	ilir_expr e = side_value(l, yes), other = side_value(l, no);
	l->floor = floor;
	if (is_read_within(l, e, c, n, no))
		return ilir_binary(l->m, ILIR_WITHIN, e, other);
	while (n-- > 0)
		e = ilir_ternary(l->m, ILIR_SELECT, c[n].condition, c[n].truth ? e : other,
				 c[n].truth ? other : e);
	return e;
}

static struct ilir_stmt *choose_branch(struct lowering *l, struct scope *s, const struct choice *c, int n,
				       const struct side *yes, const struct side *no, ilir_buffer to)
{
	if (n == 0)
		return side_block(l, s, yes, to);
	struct ilir_stmt *block = choose_branch(l, s, c + 1, n - 1, yes, no, to),
			 *other = side_block(l, s, no, to);
	return ilir_if(l->m, c->condition, c->truth ? block : other, c->truth ? other : block);
}

/* Chooses `yes` if all n conditions hold, else `no`: by an expression inside a reduction, else by
 * branches, which can contain the statements of each side, as where a side is itself a reduction.  Conditions compare one
 * index with a constant where possible, so that split_loops can decide them. */
static ilir_expr choose_side(struct lowering *l, int depth, const struct choice *c, int n,
			     const struct side *yes, const struct side *no)
{
	struct scope *s = lower_scope_at(l, depth);
	if (s->reduction && !sides_need_loop(l, yes, no))
		return choose_expression(l, s->depth, c, n, yes, no);
	const char *name = no->value.i ? "joined" : "filled";
	enum dtype dtype = yes->value.i ? sub_at(l->p, yes->value)->dtype : yes->dtype;
	struct ilir_buffer_decl decl = {.name = name, .kind = ILIR_REGISTER, .dtype = (enum ilir_dtype)dtype};
	ilir_buffer to = ilir_new_buffer(l->m, decl);
	struct ilir_stmt *branch = choose_branch(l, s, c, n, yes, no, to);
	lower_scope_add(l, s, ilir_alloc(l->m, to), NULL);
	lower_define(l, true, to.i, s->depth, s->items.n);
	lower_scope_add(l, s, branch, NULL);
	return ilir_load(l->m, to, NULL, 0);
}

/* A concatenation chooses its side by the index along the joined axis. */
ilir_expr lower_joined(struct lowering *l, const struct sub_value *v, const ilir_expr *index)
{
	int64_t first = l->p->vars.at[sub_joined_var(v, 0)].extent;
	ilir_expr at = index[v->axis], rest = ilir_binary(l->m, ILIR_SUB, at, ilir_index(l->m, first));
	struct side sides[2] = {{.value = v->arg[0].value}, {.value = v->arg[1].value}};
	struct choice choice = {.condition = ilir_binary(l->m, ILIR_LT, at, ilir_index(l->m, first)), .truth = true};
	for (int a = 0; a < 2; a++) {
		struct sub_vars axis = sub_one_var(sub_joined_var(v, a));
		lower_indices_with(v, index, &v->arg[a], &axis, a ? &rest : &at, sides[a].index);
	}
	return choose_side(l, lower_depth_of(l, index, v->vars), &choice, 1, &sides[0], &sides[1]);
}

static int64_t divide_rounding_up(int64_t a, int64_t b)
{
	return a / b + (a % b > 0);
}

/* The condition at < bound, where `at` is the index that a map gives.  If the map has one variable, that
 * variable is compared. */
static struct choice compare_below(struct lowering *l, const struct sub_map *m, ilir_expr var, ilir_expr at,
				   int64_t bound)
{
	struct ilir_module *mod = l->m;
	if (m->scale2 || m->var < 0 || !m->scale)
		return (struct choice){.condition = ilir_binary(mod, ILIR_LT, at, ilir_index(mod, bound)), .truth = true};
	int64_t limit = bound - m->offset; /* scale * var < limit */
	if (m->scale > 0)
		return (struct choice){
		    .condition = ilir_binary(mod, ILIR_LT, var, ilir_index(mod, divide_rounding_up(limit, m->scale))),
		    .truth = true};
	/* not -scale * var < 1 - limit */
	return (struct choice){
	    .condition = ilir_binary(mod, ILIR_LT, var, ilir_index(mod, divide_rounding_up(1 - limit, -m->scale)))};
}

/* Sets the conditions for the i-th index to lie in its dimension, but for those that always hold; returns
 * their number. */
static int bounds_of(struct lowering *l, const struct sub_value *v, int i, const ilir_expr *index,
		     ilir_expr at, struct choice *c)
{
	const struct sub_map *m = &v->map[i];
	int64_t least, most, extent = l->p->vars.at[sub_at(l->p, v->arg[0].value)->var[i]].extent;
	int n = 0;
	if (!sub_map_leaves(l->p, v, i) || !sub_map_range(l->p, m, &least, &most))
		return 0;
	if (least < 0) {
		c[n] = compare_below(l, m, index_of(v, index, m->var), at, 0);
		c[n].truth = !c[n].truth;
		n++;
	}
	if (most >= extent)
		c[n++] = compare_below(l, m, index_of(v, index, m->var), at, extent);
	for (int k = 0; k < n; k++) {
		c[k].index = at;
		c[k].extent = extent;
	}
	return n;
}

/* The row of a state read through a map, where the layout gives it without the node's number; else none. */
static ilir_expr mapped_row(struct lowering *l, const struct sub_value *v, const struct sub_value *from,
			    const ilir_expr *index)
{
	ilir_expr at = from->op == SUB_STATE ? index_of(v, index, v->map[0].var) : (ilir_expr){0};
	return at.i ? lower_mapped_row(l, from->which, &v->map[0], at) : at;
}

ilir_expr lower_moved(struct lowering *l, const struct sub_value *v, const ilir_expr *index)
{
	const struct sub_value *from = sub_at(l->p, v->arg[0].value);
	struct side inside = {.value = v->arg[0].value}, outside = {.dtype = v->dtype, .number = v->fill};
	struct choice choice[2 * SUB_MAX_VARS];
	ilir_expr row = mapped_row(l, v, from, index);
	int n = 0;
	for (int i = row.i != 0; i < from->vars; i++) {
		inside.index[i] = apply_map(l, v, &v->map[i], index);
		n += bounds_of(l, v, i, index, inside.index[i], &choice[n]);
	}
	if (row.i && n == 0) {
		inside.index[0] = row;
		return lower_load(l, l->state[from->which], inside.index, from->vars);
	}
	if (row.i)
		inside.index[0] = apply_map(l, v, &v->map[0], index);
	if (n == 0)
		return side_value(l, &inside);
	return choose_side(l, lower_depth_of(l, index, v->vars), choice, n, &inside, &outside);
}
