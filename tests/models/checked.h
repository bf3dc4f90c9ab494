/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels that look at each index before they use it.
 *
 * The guard (guard.h) stops what leaves a buffer; an index that leaves its dimension only, and meets another
 * row, goes unnoticed by it.  So the finished loops of a program are changed before they are compiled: in
 * front of each statement stand tests of the indices of all that it loads or stores, and the first that is
 * outside is noted in a buffer that the guard hands in.  What stands in one side of a scalar select is tested
 * when that side is chosen. */
#ifndef ESPALIER_TESTS_MODELS_CHECKED_H
#define ESPALIER_TESTS_MODELS_CHECKED_H

#include "compile/compilation.h"
#include "tests/models/helper.h"

struct checks {
	ilir_buffer faults, sizes; /* as guard.h lays them out */
	bool *seen;		   /* by expression: tested before, whenever this place is reached */
	size_t known;		   /* expressions that there were at first */
	VEC(uint32_t) undo;	   /* seen since a side of a select began */
};

static inline ilir_buffer add_buffer(struct ilir_module *m, const char *name, int kind, enum ilir_dtype dtype,
				     int n)
{
	struct ilir_buffer_decl b = {.name = name, .kind = kind, .dtype = dtype, .rank = 1};
	b.dim[0] =
	    (struct ilir_dim){.name = ilir_dim_name(m, name), .rows = IMAGE_ONE, .extent = n, .padded = n};
	return ilir_new_buffer(m, b);
}

/* --- one index --- */

/* As many as the interpreter allows. */
static inline ilir_expr extent_at(struct ilir_module *m, const struct checks *k, const struct ilir_dim *d)
{
	ilir_expr size = ilir_index(m, d->rows);
	if (d->rows == IMAGE_ONE)
		return ilir_index(m, d->padded);
	return ilir_binary(m, ILIR_ADD, ilir_load_index(m, k->sizes, &size, 1), ilir_index(m, d->extent));
}

/* The least index.  A row below 0 of a state whose leaves are in a table is a row of the table: -1 is row 0. */
static inline ilir_expr first_at(struct ilir_module *m, const struct checks *k, ilir_buffer b, int dim)
{
	ilir_buffer table = ilir_buffer_at(m, b)->table;
	if (dim || !table.i)
		return ilir_index(m, 0);
	return ilir_binary(m, ILIR_SUB, ilir_index(m, 0), extent_at(m, k, &ilir_buffer_at(m, table)->dim[0]));
}

static inline struct ilir_stmt *note(struct ilir_module *m, const struct checks *k, ilir_buffer b, int dim)
{
	ilir_expr zero = ilir_index(m, 0), one = ilir_index(m, 1);
	ilir_expr none = ilir_binary(m, ILIR_EQ, ilir_load(m, k->faults, &zero, 1), ilir_float(m, 0));
	struct ilir_stmt *where =
	    ilir_append(ilir_store(m, k->faults, &zero, 1, ilir_float(m, ilir_buffer_slot(m, b) + 1)),
			ilir_store(m, k->faults, &one, 1, ilir_float(m, dim)));
	return ilir_if(m, none, where, NULL);
}

static inline struct ilir_stmt *test_index(struct ilir_module *m, const struct checks *k, ilir_buffer b,
					   int dim, ilir_expr index, int lanes)
{
	const struct ilir_dim d = ilir_buffer_at(m, b)->dim[dim];
	int64_t constant;
	if (ilir_at(m, index)->op == ILIR_RAMP)
		index = ilir_arg(m, index, 0);
	if (d.rows == IMAGE_ONE && ilir_constant(m, index, &constant) && constant >= 0 &&
	    constant + lanes <= d.padded)
		return NULL;
	ilir_expr last = ilir_binary(m, ILIR_ADD, index, ilir_index(m, lanes - 1));
	ilir_expr low = ilir_binary(m, ILIR_LT, index, first_at(m, k, b, dim));
	ilir_expr high = ilir_binary(m, ILIR_LE, extent_at(m, k, &d), last);
	return ilir_if(m, ilir_binary(m, ILIR_OR, low, high), note(m, k, b, dim), NULL);
}

static inline struct ilir_stmt *test_access(struct ilir_module *m, const struct checks *k, ilir_buffer b,
					    const ilir_expr *index, int n, int lanes)
{
	struct ilir_stmt *all = NULL;
	if (ilir_buffer_at(m, b)->kind >= ILIR_REGISTER)
		return NULL;
	for (int i = 0; i < n; i++)
		all = ilir_append(all, test_index(m, k, b, i, index[i], i + 1 == n ? lanes : 1));
	return all;
}

/* --- all of a statement --- */

static inline struct ilir_stmt *test_expr(struct ilir_module *m, struct checks *k, ilir_expr e);

/* What is seen in a side need not have been seen behind it. */
static inline struct ilir_stmt *test_side(struct ilir_module *m, struct checks *k, ilir_expr e)
{
	size_t before = k->undo.n;
	struct ilir_stmt *tests = test_expr(m, k, e);
	while (k->undo.n > before)
		k->seen[k->undo.at[--k->undo.n]] = false;
	return tests;
}

static inline struct ilir_stmt *test_select(struct ilir_module *m, struct checks *k, ilir_expr e)
{
	ilir_expr condition = ilir_arg(m, e, 0), yes = ilir_arg(m, e, 1), no = ilir_arg(m, e, 2);
	struct ilir_stmt *first = test_expr(m, k, condition), *then = test_side(m, k, yes),
			 *otherwise = test_side(m, k, no);
	if (!then && !otherwise)
		return first;
	return ilir_append(first, then ? ilir_if(m, condition, then, otherwise)
				       : ilir_if(m,
						 ilir_binary(m, ILIR_EQ,
							     ilir_ternary(m, ILIR_SELECT, condition,
									  ilir_index(m, 1), ilir_index(m, 0)),
							     ilir_index(m, 0)),
						 otherwise, NULL));
}

static inline struct ilir_stmt *test_expr(struct ilir_module *m, struct checks *k, ilir_expr e)
{
	struct ilir_stmt *all = NULL;
	ilir_expr index[ILIR_MAX_RANK];
	const struct ilir_node n = *ilir_at(m, e);
	if (e.i >= k->known || k->seen[e.i])
		return NULL;
	k->seen[e.i] = true;
	vec_push(m->arena, &k->undo, e.i);
	if (n.op == ILIR_SELECT && n.type.lanes == 1)
		return test_select(m, k, e);
	for (int i = 0; i < n.args; i++) {
		index[i] = ilir_arg(m, e, i);
		all = ilir_append(all, test_expr(m, k, index[i]));
	}
	return n.op == ILIR_LOAD ? ilir_append(all, test_access(m, k, n.buffer, index, n.args, n.type.lanes))
				 : all;
}

static inline struct ilir_stmt *test_stmt(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct checks *k = context;
	struct ilir_stmt *tests = NULL;
	k->undo.n = 0;
	if (s->kind == ILIR_FOR)
		tests = ilir_append(test_expr(m, k, s->loop.begin), test_expr(m, k, s->loop.end));
	else if (s->kind == ILIR_IF)
		tests = test_expr(m, k, s->branch.condition);
	else if (s->kind == ILIR_LET)
		tests = test_expr(m, k, s->let.value);
	else if (s->kind == ILIR_STORE) {
		tests = test_expr(m, k, s->store.value);
		for (int i = 0; i < s->store.indices; i++)
			tests = ilir_append(tests, test_expr(m, k, s->store.index[i]));
		tests =
		    ilir_append(tests, test_access(m, k, s->store.buffer, s->store.index, s->store.indices,
						   ilir_type_of(m, s->store.value).lanes));
	}
	while (k->undo.n)
		k->seen[k->undo.at[--k->undo.n]] = false;
	return ilir_append(tests, s);
}

/* Of a module whose image has been described: the buffers that are added are none of it. */
static inline void check_indices(struct ilir_module *m)
{
	struct checks k = {.known = m->nodes.n, .seen = ARENA_ARRAY(m->arena, bool, m->nodes.n)};
	k.faults = add_buffer(m, "faults", IMAGE_SCRATCH, ILIR_F32, GUARD_FAULTS);
	k.sizes = add_buffer(m, "sizes", IMAGE_TOKEN, ILIR_I32, IMAGE_SIZES);
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = test_stmt, .context = &k});
}

/* As compile_run, for a back end. */
static inline bool compile_checked(struct test_run *r, const struct test_model *t,
				   const struct option_texts *o)
{
	static jmp_buf jump;
	begin_run(r);
	if (arena_guard(&r->arena, &jump))
		return false;
	const struct compile_options *options = read_option_texts(&r->arena, &r->diags, o);
	struct compilation *c =
	    options ? compile_begin(&r->arena, &r->diags, t->model, t->sizes, options, &r->image, NULL)
		    : NULL;
	if (!c || !compile_to_loops(c) || !compile_run_passes(c, NULL))
		return false;
	r->image = (struct image){0};
	ilir_describe(&c->module, &r->image);
	compile_describe_steps(c, &r->image);
	compile_describe_interface(c, &r->image);
	check_indices(&c->module);
	return compile_to_code(c, &r->image) && compile_load(&allocator_default, &r->diags, &r->image, NULL);
}

#endif
