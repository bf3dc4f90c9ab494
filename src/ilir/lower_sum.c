/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reductions: a loop with an accumulator for each.  Those that share an operand, such as the gates of a cell,
 * share a loop: that of the rows, or in products of bytes that of the columns, as limbs do (rewrite/split_limbs.c). */
#include "ilir/lower.h"

/* The last variable that a value reduces, whose loop is the innermost. */
static const struct sub_var *innermost_reduced(const struct lowering *l, const struct sub_value *v)
{
	return &l->p->vars.at[v->reduced.var[v->reduced.n - 1]];
}

/* An argument at one element of each reduced variable. */
static ilir_expr lower_reduced_argument(struct lowering *l, const struct sub_value *v, const ilir_expr *index,
					int a, const ilir_expr *element)
{
	ilir_expr out[SUB_MAX_VARS];
	lower_indices_with(v, index, &v->arg[a], &v->reduced, element, out);
	return lower_value_at(l, v->arg[a].value, out);
}

/* Whether an expression does not depend on the column. */
static bool is_same_for_columns(const struct lowering *l, ilir_expr e)
{
	return !l->column.i || !ilir_uses_var(l->m, e, l->column);
}

/* The values that one loop reduces: one value; or several that differ only in the child, in consecutive
 * slots; or one whose operand is a concatenation of `joined` children. */
struct sums {
	const sub_ref *of;
	int n, joined;
};

/* Lowers both operands of the products at the loop's current element. */
static void lower_operands(struct lowering *l, const struct sums *sums, const struct lower_loop *loop,
			   const ilir_expr *index, const ilir_expr *element, ilir_expr *x)
{
	const struct sub_value *v = sub_at(l->p, sums->of[0]);
	int child_at = -1;
	if (loop->slots) {
		ilir_expr slot = ilir_var_ref(l->m, loop->slot);
		ilir_expr child = lower_child_in_slot(l, sums->of[0], &child_at, index, slot,
						      ilir_var_ref(l->m, loop->var));
		x[child_at - 1] = child;
		if (sums->n > 1)
			x[2 - child_at] = lower_stacked_weight(l, sums->of, sums->n, index, element[0], slot);
	}
	for (int a = 1; a < v->args; a++)
		if (a != child_at && sums->n == 1)
			x[a - 1] = lower_reduced_argument(l, v, index, a, element);
}

/* The operands of a product that others may share: the one that does not depend on the column, if any, and in a product for matrix
 * registers the other one. */
struct operands {
	ilir_expr row, column;
};

static struct operands find_operands(const struct lowering *l, const ilir_expr x[2], bool both)
{
	int row = is_same_for_columns(l, x[1]) ? 1 : is_same_for_columns(l, x[0]) ? 0 : -1;
	if (row < 0)
		return (struct operands){{0}, {0}};
	return (struct operands){x[row], both ? x[!row] : (ilir_expr){0}};
}

/* What the products of an element are added to: the sum itself; or the sums of a block of words, in f16 a word of two, in bf16 two of f32. */
enum { MOST_PARTS = 2 };

struct parts {
	int n;
	ilir_buffer of[MOST_PARTS];
};

static ilir_expr load_part(const struct lowering *l, const struct parts *parts, int i)
{
	return ilir_load(l->m, parts->of[i], NULL, 0);
}

/* Sets the new value of each part after one element, and the operands that others may share. */
static void accumulate_element(struct lowering *l, const struct sums *sums, const struct lower_loop *loop, const ilir_expr *index,
			       const ilir_expr *element, const struct parts *parts, ilir_expr *value, struct operands *operands)
{
	const struct sub_value *v = sub_at(l->p, sums->of[0]);
	*operands = (struct operands){{0}, {0}};
	enum sub_op combine = sub_traits_of(v->op)->combine;
	if (sub_class_of(v->op) == SUB_CONTRACTION) {
		ilir_expr x[2] = {{0}};
		lower_operands(l, sums, loop, index, element, x);
		*operands = find_operands(l, x, sub_fits_matrices(v->op));
		for (int i = 0; i < parts->n; i++)
			value[i] = !loop->block		     ? lower_applied(l, combine, x[0], x[1], load_part(l, parts, i))
				   : combine == SUB_DOT_F16 ? ilir_ternary(l->m, ILIR_FMA_F16, x[0], x[1], load_part(l, parts, i))
							     : lower_half_dot(l->m, x[0], x[1], load_part(l, parts, i), i);
		return;
	}
	ilir_expr x = lower_reduced_argument(l, v, index, 0, element);
	value[0] = lower_applied(l, combine, load_part(l, parts, 0), x, (ilir_expr){0});
}

/* Makes the loop count from 0 to a known number of children, from the node's first edge on. */
static void count_edges(struct lowering *l, struct lower_loop *loop, int children)
{
	loop->first = lower_row_of(l, l->child_begin, "edges", l->row);
	loop->end = ilir_index(l->m, children);
	if (!l->group->over_edges && children > 1 && children <= SCHED_MAX_UNROLL)
		vec_push(l->m->arena, &l->tiling->tiles,
			 (struct ilir_tile){loop->var, ILIR_UNROLLED, 1, {children}, 1, false});
}

/* Adds the loops over the reduced variables before the last. */
static void add_outer_loops(struct lowering *l, struct lower_loop *loop, const struct sub_vars *reduced)
{
	for (; loop->outers < reduced->n - 1; loop->outers++) {
		const struct sub_var *var = &l->p->vars.at[reduced->var[loop->outers]];
		struct lower_outer_loop *outer = &loop->outer[loop->outers];
		outer->var = ilir_new_var(l->m, var->name, (struct ilir_type){ILIR_INDEX, 1});
		outer->dim = ilir_dim_name(l->m, var->name);
		outer->extent = var->extent;
		lower_define(l, false, outer->var.i, loop->body->depth, -1);
	}
}

/* Unrolls the loops over reduced variables: the innermost, and those around it that are whole in so many iterations. */
static void unroll_reduced(struct lowering *l, struct lower_loop *loop)
{
	int64_t left = l->tile->unroll, extent = loop->extent;
	ilir_var var = loop->var;
	for (int outer = loop->outers; left > 1; left /= extent, extent = loop->outer[outer].extent, var = loop->outer[outer].var) {
		int size = left < extent ? (int)left : (int)extent;
		vec_push(l->m->arena, &l->tiling->tiles, (struct ilir_tile){var, ILIR_UNROLLED, 2, {size, 1}, 1, false});
		if (left % extent || outer-- == 0)
			return;
	}
}

/* Lets the innermost loop of sums of words of floats run over a block of them. */
static void add_blocks(struct lowering *l, struct lower_loop *loop, int64_t block)
{
	loop->block = block;
	if (!block)
		return;
	loop->block_at = ilir_new_var(l->m, l->m->vars.at[loop->var.i].name, (struct ilir_type){ILIR_INDEX, 1});
	loop->end = ilir_index(l->m, block);
	lower_define(l, false, loop->block_at.i, loop->body->depth, -1);
}

/* The loops over the reduced variables; that over the last one is over one of `sections` equal sections of
 * it. */
static struct lower_loop *new_loop(struct lowering *l, struct scope *s, const struct sub_value *v,
				   int sections, int slots)
{
	const struct sub_var *var = innermost_reduced(l, v);
	struct lower_loop *loop = ARENA_NEW(l->m->arena, struct lower_loop);
	bool edge = sub_reduces_ragged(l->p, v);
	*loop = (struct lower_loop){.extent = edge ? -1 : var->extent / sections,
				    .body = lower_scope_new(l, s, !edge)};
	loop->var = ilir_new_var(l->m, var->name, (struct ilir_type){ILIR_INDEX, 1});
	int ragged = v->reduced.var[0];
	loop->dim = ilir_dim_name(l->m, edge ? lower_ragged_name(l, ragged) : var->name);
	loop->begin = ilir_index(l->m, 0);
	loop->end = ilir_index(l->m, loop->extent);
	int children = edge && var->set == SUB_EDGE ? sub_children_of(l->p, &l->p->bodies.at[l->body]) : -1;
	if (edge) {
		if (children >= 0 && !sub_goes_down(l->p, &l->p->bodies.at[l->body]))
			count_edges(l, loop, children);
		else
			lower_ragged_bounds(l, ragged, &loop->begin, &loop->end);
		if (l->group->over_edges && l->tile->across == SCHED_NODES)
			lower_tile_rows(l, loop->var);
	}
	lower_define(l, false, loop->var.i, loop->body->depth, -1);
	add_outer_loops(l, loop, &v->reduced);
	add_blocks(l, loop, sub_block_of(l->p, v));
	if (!edge)
		unroll_reduced(l, loop);
	if (slots) {
		loop->slots = slots;
		loop->slot = ilir_new_var(l->m, "slot", (struct ilir_type){ILIR_INDEX, 1});
		lower_define(l, false, loop->slot.i, loop->body->depth, -1);
	}
	return loop;
}

/* A scope in place of a loop's body.  Lowering adds statements here, which can be discarded with it, so
 * that the body is unchanged. */
static struct scope *new_trial_scope(struct lowering *l, struct scope *body)
{
	struct scope *s = lower_scope_new(l, body, body->reduction);
	s->depth = body->depth;
	return s;
}

/* Whether an operand is one of a loop's products; none is one of reductions that are no products. */
static bool has_operand(const struct lower_loop *loop, const struct operands *operands)
{
	bool has = false;
	for (size_t i = 0; i < loop->rows.n; i++)
		has |= loop->rows.at[i].i == operands->row.i ||
		       (operands->column.i && loop->columns.at[i].i == operands->column.i);
	return has;
}

/* Whether a reduction whose update is `value` can join this loop of scope `s`: it added no statements to
 * the trial scope, shares an operand with the loop, and needs no sum of the loop, which are complete only behind it, and
 * nothing that is defined after it. */
static bool fits_loop(const struct lowering *l, const struct scope *s, const struct lower_loop *loop,
		      const struct scope *trial, ilir_expr value, ilir_expr start, const struct operands *operands)
{
	return !trial->items.n && has_operand(loop, operands) &&
	       lower_last_place(l, value, s->depth) < loop->place &&
	       lower_last_place(l, start, s->depth) < loop->place;
}

/* The current element of the variable of a loop. */
static ilir_expr element_of(struct lowering *l, const struct lower_loop *loop, bool joined)
{
	ilir_expr at = ilir_var_ref(l->m, loop->var);
	if (loop->first.i)
		return ilir_binary(l->m, ILIR_ADD, loop->first, at);
	if (loop->block)
		return ilir_binary(l->m, ILIR_ADD, ilir_var_ref(l->m, loop->block_at), at);
	if (!joined)
		return at;
	ilir_expr start =
	    ilir_binary(l->m, ILIR_MUL, ilir_var_ref(l->m, loop->slot), ilir_index(l->m, loop->extent));
	return ilir_binary(l->m, ILIR_ADD, start, at);
}

static ilir_buffer new_part(struct lowering *l, const char *name, enum ilir_dtype dtype)
{
	return ilir_new_buffer(l->m, (struct ilir_buffer_decl){.name = name, .kind = ILIR_REGISTER, .dtype = dtype});
}

static struct parts new_parts(struct lowering *l, const struct lower_loop *loop, enum sub_op combine, ilir_buffer acc)
{
	if (!loop->block)
		return (struct parts){1, {acc}};
	if (combine == SUB_DOT_F16)
		return (struct parts){1, {new_part(l, "block", ILIR_I32)}};
	ilir_buffer lower = new_part(l, "lower", ILIR_F32);
	return (struct parts){2, {lower, new_part(l, "upper", ILIR_F32)}};
}

/* The sums of a block begin with zeros, and are added behind the block to the sum, which is in memory meanwhile. */
static void add_block_sum(struct lowering *l, struct lower_loop *loop, const struct parts *parts, ilir_buffer acc)
{
	struct ilir_module *m = l->m;
	ilir_expr sum = ilir_load(m, acc, NULL, 0);
	sum = parts->n == 1 ? ilir_binary(m, ILIR_ADD, sum, lower_half_sum(m, load_part(l, parts, 0)))
			    : lower_block_sum(m, sum, load_part(l, parts, 0), load_part(l, parts, 1));
	ilir_buffer_at(m, acc)->parked = true;
	for (int i = 0; i < parts->n; i++) {
		ilir_expr zero = parts->n == 1 ? ilir_i32(m, 0) : ilir_float(m, 0);
		loop->open = ilir_append(loop->open, ilir_alloc(m, parts->of[i]));
		loop->open = ilir_append(loop->open, ilir_store(m, parts->of[i], NULL, 0, zero));
	}
	loop->close = ilir_append(loop->close, ilir_store(m, acc, NULL, 0, sum));
}

/* Adds a reduction to a loop of scope `s`; a loop that is not `fresh` has others already.  False if it
 * does not fit. */
static bool add_to_loop(struct lowering *l, struct scope *s, struct lower_loop *loop, const struct sums *sums,
			const ilir_expr *index, ilir_buffer acc, ilir_expr start, bool fresh)
{
	struct scope *saved = l->scope, *body = fresh ? loop->body : new_trial_scope(l, loop->body);
	const bool is_cut = l->piece.i && loop->extent >= 0; /* sums over edges are added up by the last piece */
	const struct parts parts = new_parts(l, loop, sub_traits_of(sub_at(l->p, sums->of[0])->op)->combine, acc);
	struct operands operands;
	ilir_expr edge = l->edge, value[MOST_PARTS] = {{0}}, element[SUB_MAX_VARS] = {{0}};
	for (int i = 0; i < loop->outers; i++)
		element[i] = ilir_var_ref(l->m, loop->outer[i].var);
	element[loop->outers] = element_of(l, loop, sums->joined);
	if (is_cut)
		element[0] = lower_cut_element(l, element[0]);
	l->scope = body;
	if (loop->extent < 0)
		l->edge = element_of(l, loop, false);
	accumulate_element(l, sums, loop, index, element, &parts, value, &operands);
	l->scope = saved;
	l->edge = edge;
	if (!fresh && !fits_loop(l, s, loop, body, value[0], start, &operands))
		return false;
	vec_push(l->m->arena, &loop->rows, operands.row);
	vec_push(l->m->arena, &loop->columns, operands.column);
	loop->prologue = ilir_append(loop->prologue, ilir_alloc(l->m, acc));
	struct ilir_stmt *first = ilir_store(l->m, acc, NULL, 0, start);
	if (loop->block)
		add_block_sum(l, loop, &parts, acc);
	if (is_cut)
		lower_cut_sum(l, loop, sums->of[0], acc, first);
	else
		loop->prologue = ilir_append(loop->prologue, first);
	for (int i = 0; i < parts.n; i++)
		lower_scope_add(l, loop->body, ilir_store(l->m, parts.of[i], NULL, 0, value[i]), NULL);
	return true;
}

/* Whether loops have the ranges, and the blocks, that those of a reduction would have. */
static bool is_over(const struct lowering *l, const struct lower_loop *loop, const struct sub_value *v,
		    int sections, int slots)
{
	bool same = loop->extent == innermost_reduced(l, v)->extent / sections && loop->slots == slots &&
		    loop->outers == v->reduced.n - 1 && loop->block == sub_block_of(l->p, v);
	for (int i = 0; same && i < loop->outers; i++)
		same = loop->outer[i].extent == l->p->vars.at[v->reduced.var[i]].extent;
	return same;
}

/* Lowers sums that continue from `start`: adds them to a loop of the scope that they fit into, else to a
 * new one. */
static ilir_expr lower_sums(struct lowering *l, const struct sums *sums, const ilir_expr *index,
			    ilir_expr start)
{
	const struct sub_value *v = sub_at(l->p, sums->of[0]);
	int sections = sums->joined ? sums->joined : 1, slots = sums->n > 1 ? sums->n : sums->joined;
	struct scope *s = lower_scope_at(l, lower_depth_of(l, index, v->vars));
	bool edge = sub_reduces_ragged(l->p, v);
	struct ilir_buffer_decl decl = {
	    .name = "sum", .kind = ILIR_REGISTER, .dtype = (enum ilir_dtype)v->dtype};
	ilir_buffer acc = ilir_new_buffer(l->m, decl);
	struct lower_loop *loop = NULL;
	for (size_t i = 0; i < s->items.n && !loop && !edge; i++) {
		struct lower_loop *other = s->items.at[i].loop;
		if (other && is_over(l, other, v, sections, slots) &&
		    add_to_loop(l, s, other, sums, index, acc, start, false))
			loop = other;
	}
	if (!loop) {
		loop = new_loop(l, s, v, sections, slots);
		add_to_loop(l, s, loop, sums, index, acc, start, true);
		loop->place = s->items.n;
		lower_scope_add(l, s, NULL, loop);
	}
	lower_define(l, true, acc.i, s->depth, loop->place);
	return ilir_load(l->m, acc, NULL, 0);
}

/* The sum of products that a sum continues, if nothing else uses it; else none. */
static sub_ref step_before(const struct lowering *l, sub_ref r)
{
	sub_ref start = sub_at(l->p, r)->arg[0].value;
	bool continued =
	    sub_at(l->p, start)->op == sub_at(l->p, r)->op && sched_is_step(l->plan, l->body, start);
	return continued ? start : (sub_ref){0};
}

/* The last run of the chain of sums that ends at `r`.  A run is a sequence of steps over consecutive
 * children, which one loop nest computes.  A loop that is not unrolled evenly is no single nest, so each
 * of its steps is a run. */
static struct sums find_last_run(struct lowering *l, sub_ref r)
{
	VEC(sub_ref) chain = {0};
	bool even = innermost_reduced(l, sub_at(l->p, r))->extent % l->tile->unroll == 0;
	for (; r.i; r = step_before(l, r))
		vec_push(l->m->arena, &chain, r);
	sub_ref *of = ARENA_ARRAY(l->m->arena, sub_ref, chain.n);
	int n = 0;
	for (size_t i = chain.n; i-- > 0;) {
		if (n && !(even && lower_next_slot(l, of[0], chain.at[i], n)))
			n = 0;
		of[n++] = chain.at[i];
	}
	return (struct sums){of, n, lower_joined_slots(l, of[0])};
}

/* Lowers a reduction, from its neutral element or from the sum that it continues. */
ilir_expr lower_reduction(struct lowering *l, sub_ref r, const ilir_expr *index)
{
	const struct sub_value *v = sub_at(l->p, r);
	struct sums sums = {&r, 1, 0};
	if (sub_class_of(v->op) != SUB_CONTRACTION)
		return lower_sums(l, &sums, index, lower_number(l, v->dtype, sub_traits_of(v->op)->neutral));
	sums = find_last_run(l, r);
	return lower_sums(l, &sums, index, lower_argument(l, sub_at(l->p, sums.of[0]), index, 0));
}
