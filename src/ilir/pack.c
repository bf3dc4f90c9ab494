/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: lays weights of vector loops out in the order in which they are read: for each block of
 * columns, for each element of the other axes, the vectors of all weights that are read there (the gates of a
 * cell), lane by lane.
 *
 *     for i1 in 0..64 step 8                                pack[div(i1, 8), k, 0, i2] is U_i[i1 + i2, k]
 *       for k in 0..64                                ->    pack[div(i1, 8), k, 1, i2] is U_o[i1 + i2, k]
 *         for i2 in 0..8 vector: .. U_i[i1 + i2, k] ..
 *         for i2 in 0..8 vector: .. U_o[i1 + i2, k] ..
 *
 * Where vectors run along another operand, and each element of the weight is multiplied by a whole vector,
 * the rows of the tile take the place of the lanes: what a tile reads in one iteration of its sum lies
 * together.
 *
 *     for i2 in 0..6 unrolled                               pack[div(i1, 6), k, 0, i2] is W[i1 + i2, k]
 *       for n in 0..8 vector: s[i2, n] = .. W[i1 + i2, k] * x[k, n] ..
 *
 * An index that does not come from a loop (the label of an edge, a row) selects one of several weights.  It
 * stays the outermost dimension, and each of these weights is packed, if a sum runs over it or the vector is
 * not along its last dimension.
 *
 *     label = rel[e]
 *     for k .. W[label, k, i1 + i2] * h[child, k]      ->    pack[label, div(i1, 8), k, 0, i2]
 *
 * The binding fills the buffer by its recipe. */
#include "ilir/passes.h"

/* The loops around the current statement, the innermost first. */
struct around {
	const struct ilir_stmt *loop;
	const struct around *outer;
};

/* A loop that moves the index of an axis: its iteration, their number, and by how much each advances the
 * index. */
struct part {
	ilir_expr iteration;
	int64_t extent, stride;
};

enum { MAX_BLOCKS = 2 };

/* A load of a weight along a vector or the rows of a tile, decomposed. */
struct access {
	ilir_expr load;
	ilir_buffer weight;
	int axis; /* dimension that the vector, or the rows of the tile, run along */
	struct part block[MAX_BLOCKS], column,
	    lane;			/* the outermost block first; extent 0 = there is no such loop */
	int64_t begin;			/* index of the axis in the first iteration */
	ilir_expr other[ILIR_MAX_RANK]; /* indices of the other dimensions, in order */
	bool row[ILIR_MAX_RANK];	/* of each of these: it does not come from a loop */
	int others;
};

struct pack {
	struct ilir_module *m;
	VEC(ilir_buffer) packed;
	VEC(ilir_expr) by; /* by expression: the load that replaces it */
};

/* --- decomposing a load --- */

static bool is_used_by_store(const struct ilir_module *m, const struct ilir_stmt *store, ilir_var v)
{
	for (int d = 0; d < store->store.indices; d++)
		if (ilir_uses_var(m, store->store.index[d], v))
			return true;
	return false;
}

/* What a loop is of the axis of a weight. */
enum role { LANE_OF_VECTOR, ROW_OF_TILE, COLUMN, BLOCK };

static bool has_role(const struct ilir_module *m, const struct ilir_stmt *l, enum role role,
		     const struct ilir_stmt *store)
{
	switch (role) {
	case LANE_OF_VECTOR:
		return l->loop.kind == ILIR_VECTOR;
	case ROW_OF_TILE:
		return l->loop.kind == ILIR_UNROLLED && l->loop.step == 1 &&
		       is_used_by_store(m, store, l->loop.var);
	case COLUMN:
		return l->loop.kind == ILIR_UNROLLED && l->loop.step > 1;
	default:
		return l->loop.kind == ILIR_SERIAL;
	}
}

/* The innermost loop of a role whose variable an expression uses; NULL = none. */
static const struct ilir_stmt *find_loop(const struct ilir_module *m, ilir_expr e, enum role role,
					 const struct around *a, const struct ilir_stmt *store)
{
	for (; a; a = a->outer)
		if (has_role(m, a->loop, role, store) && ilir_uses_var(m, e, a->loop->loop.var))
			return a->loop;
	return NULL;
}

/* By how much an index grows with a variable.  False if that depends on where it is. */
static bool find_coefficient(const struct ilir_module *m, ilir_expr e, ilir_var v, int64_t *by)
{
	const struct ilir_node *n = ilir_at(m, e);
	int64_t other = 0;
	*by = n->op == ILIR_VAR;
	if (n->op == ILIR_VAR || !ilir_uses_var(m, e, v))
		return *by = n->op == ILIR_VAR && n->var.i == v.i, true;
	if (n->op == ILIR_ADD || n->op == ILIR_SUB)
		return find_coefficient(m, ilir_arg(m, e, 0), v, by) &&
		       find_coefficient(m, ilir_arg(m, e, 1), v, &other) &&
		       !(n->op == ILIR_ADD ? __builtin_add_overflow(*by, other, by)
					   : __builtin_sub_overflow(*by, other, by));
	return n->op == ILIR_MUL && ilir_constant(m, ilir_arg(m, e, 1), &other) &&
	       find_coefficient(m, ilir_arg(m, e, 0), v, by) && !__builtin_mul_overflow(*by, other, by);
}

/* Takes the innermost loop of a role out of an index, if there is one. */
static bool take_part(struct ilir_module *m, ilir_expr *e, enum role role, const struct around *around,
		      const struct ilir_stmt *store, struct part *part)
{
	const struct ilir_stmt *l = find_loop(m, *e, role, around, store);
	int64_t first, by, trips = l ? ilir_trip_count(m, l) : 0;
	if (!trips || !ilir_constant(m, l->loop.begin, &first) ||
	    !find_coefficient(m, *e, l->loop.var, &by) || by < 1)
		return false;
	ilir_expr distance = ilir_binary(m, ILIR_SUB, ilir_var_ref(m, l->loop.var), ilir_index(m, first));
	*part = (struct part){ilir_binary(m, ILIR_DIV, distance, ilir_index(m, l->loop.step)), trips,
			      by * l->loop.step};
	*e = ilir_substitute(m, *e, l->loop.var, ilir_index(m, first));
	return true;
}

/* Whether a part goes past what all with shorter strides reach together. */
static bool goes_past(const struct part *p, const struct part *const *all, int n)
{
	int64_t reach = 0;
	for (int i = 0; i < n; i++)
		if (all[i] != p && all[i]->extent > 1 && all[i]->stride <= p->stride)
			reach += (all[i]->extent - 1) * all[i]->stride;
	return p->extent < 2 || p->stride > reach;
}

/* Whether each iteration of the loops reads another element, so that the packed buffer is about as large as
 * the weight: windows over a weight read most elements again and again. */
static bool are_distinct(const struct access *a)
{
	const struct part *all[] = {&a->block[0], &a->block[1], &a->column, &a->lane};
	enum { N = sizeof all / sizeof *all };
	bool distinct = true;
	for (int i = 0; i < N; i++)
		distinct &= goes_past(all[i], all, N);
	return distinct;
}

/* Sets the loops of an axis; false if its index is not blocks + column + lane + constant. */
static bool decompose_index(struct ilir_module *m, ilir_expr e, enum role lane, const struct around *around,
			    const struct ilir_stmt *store, struct access *a)
{
	struct part block[MAX_BLOCKS];
	int blocks = 0;
	a->column = (struct part){.extent = 0};
	if (!take_part(m, &e, lane, around, store, &a->lane))
		return false;
	if (lane == LANE_OF_VECTOR)
		take_part(m, &e, COLUMN, around, store, &a->column);
	int most = a->column.extent ? 1 : MAX_BLOCKS;
	while (blocks < most && take_part(m, &e, BLOCK, around, store, &block[blocks]))
		blocks++;
	for (int i = 0; i < MAX_BLOCKS; i++)
		a->block[i] = i < blocks ? block[blocks - 1 - i] : (struct part){.extent = 0};
	return ilir_constant(m, e, &a->begin) && are_distinct(a);
}

/* Whether a buffer is a stack: weights of one shape, numbered by its first dimension. */
static bool is_stack(const struct ilir_buffer_decl *b)
{
	const struct image_recipe *r = b->recipe;
	return r && r->dims == b->rank && r->dim[0].axis == IMAGE_PACK_SOURCE && r->dim[0].stride == 1;
}

/* Whether a buffer is a weight with its dimensions in another order. */
static bool is_reordered(const struct ilir_buffer_decl *b)
{
	const struct image_recipe *r = b->recipe;
	bool ok = r && r->dims == b->rank && r->sources == 1;
	for (int d = 0; ok && d < r->dims; d++)
		ok = r->dim[d].axis != IMAGE_PACK_SOURCE && r->dim[d].stride == 1;
	return ok;
}

/* The axis of a weight, or of each weight in a stack, that dimension d of the buffer runs along. */
static int axis_of(const struct ilir_buffer_decl *b, int d)
{
	return b->recipe ? b->recipe->dim[d].axis : d;
}

static bool decompose_load(struct ilir_module *m, ilir_expr e, enum role lane, const struct around *around,
			   const struct ilir_stmt *store, struct access *a)
{
	const struct ilir_node *n = ilir_at(m, e);
	*a = (struct access){.load = e, .axis = -1};
	if (n->op != ILIR_LOAD || n->args < 2 || n->args > ILIR_PACKED_RANK)
		return false;
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, n->buffer);
	if (b->kind != IMAGE_WEIGHT || (b->recipe && !is_stack(b) && !is_reordered(b)))
		return false;
	a->weight = n->buffer;
	int rank = n->args;
	for (int d = 0; d < rank; d++) {
		ilir_expr index = ilir_arg(m, e, d);
		if (a->axis < 0 && decompose_index(m, index, lane, around, store, a))
			a->axis = d;
		else
			a->other[a->others++] = index;
	}
	return a->axis >= 0 && a->others == rank - 1;
}

/* Whether the index is a constant or computed from loop variables, and not read from an index array. */
static bool is_given_by_loops(const struct ilir_module *m, ilir_expr e, const struct around *around)
{
	bool given = ilir_at(m, e)->op == ILIR_CONST_I;
	for (; around; around = around->outer)
		given |= ilir_uses_var(m, e, around->loop->loop.var);
	return given && !ilir_loaded_index(m, e).i;
}

/* Whether the index uses the variable of a loop whose iterations all store to the same element. */
static bool is_summed(const struct ilir_module *m, ilir_expr e, const struct around *around,
		      const struct ilir_stmt *store)
{
	bool summed = false;
	for (; around && !summed; around = around->outer) {
		ilir_var v = around->loop->loop.var;
		summed = ilir_uses_var(m, e, v);
		for (int d = 0; d < store->store.indices; d++)
			summed &= !ilir_uses_var(m, store->store.index[d], v);
	}
	return summed;
}

/* Marks the indices that are rows.  False if there are rows but no sum, and the vector runs along the last
 * axis: rows that are only copied are in the order in which they are read, and packing would duplicate tables
 * that may be large. */
static bool find_rows(const struct ilir_module *m, struct access *a, const struct around *around,
		      const struct ilir_stmt *store)
{
	bool rows = false, summed = false, across = a->axis != a->others;
	for (int i = 0; i < a->others; i++) {
		a->row[i] = !is_given_by_loops(m, a->other[i], around);
		rows |= a->row[i];
		summed |= !a->row[i] && is_summed(m, a->other[i], around, store);
	}
	return !rows || ((summed || across) && !is_stack(ilir_buffer_at(m, a->weight)));
}

static bool is_same_part(const struct part *a, const struct part *b, bool whichever_loop)
{
	return a->extent == b->extent && a->stride == b->stride &&
	       (whichever_loop || a->iteration.i == b->iteration.i);
}

/* Whether the same blocks are read, by parts of one size: each statement has tile and vector loops of its
 * own. */
static bool has_same_parts(const struct access *a, const struct access *b)
{
	bool same = is_same_part(&a->lane, &b->lane, true) && is_same_part(&a->column, &b->column, true);
	for (int i = 0; i < MAX_BLOCKS; i++)
		same &= is_same_part(&a->block[i], &b->block[i], false);
	return same;
}

/* Whether a vector loop is around, and moves no index of a load. */
static bool is_multiplied_by_vectors(const struct ilir_module *m, ilir_expr load, const struct around *around)
{
	bool vectors = false;
	for (; around; around = around->outer)
		if (around->loop->loop.kind == ILIR_VECTOR) {
			vectors = true;
			if (ilir_uses_var(m, load, around->loop->loop.var))
				return false;
		}
	return vectors;
}

/* Whether a sum runs over an axis of a weight that the rows of a tile do not run along, and all of its axes
 * come from loops. */
static bool is_read_again(const struct ilir_module *m, const struct access *a, const struct around *around,
			  const struct ilir_stmt *store)
{
	bool summed = false;
	for (int i = 0; i < a->others; i++) {
		if (!is_given_by_loops(m, a->other[i], around))
			return false;
		summed |= is_summed(m, a->other[i], around, store);
	}
	return summed;
}

/* Whether two loads traverse weights of one type in the same order, so that these can be interleaved. */
static bool is_alike(const struct ilir_module *m, const struct access *a, const struct access *b)
{
	const struct ilir_buffer_decl *x = ilir_buffer_at(m, a->weight), *y = ilir_buffer_at(m, b->weight);
	if (x->dtype != y->dtype || is_stack(x) != is_stack(y) || a->axis != b->axis ||
	    a->others != b->others || !has_same_parts(a, b))
		return false;
	for (int i = 0; i < a->others; i++)
		if (a->other[i].i != b->other[i].i)
			return false;
	for (int d = 0; d < x->rank; d++)
		if (axis_of(x, d) != axis_of(y, d) || (d != a->axis && x->dim[d].extent != y->dim[d].extent))
			return false;
	return true;
}

/* --- recipes and buffers --- */

static struct image_pack_source source_of(const struct ilir_module *m, const struct access *a, int slot)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->weight);
	struct image_pack_source s = {.param = b->which};
	if (b->recipe)
		s = b->recipe->source[slot];
	for (int d = 0; !b->recipe && d < b->rank; d++)
		s.end[d] = b->dim[d].extent;
	s.begin[axis_of(b, a->axis)] = a->begin;
	return s;
}

static void add_dim(struct image_recipe *r, struct ilir_buffer_decl *b, int name, int axis, int64_t extent,
		    int64_t stride)
{
	r->dim[r->dims++] = (struct image_pack_dim){axis, extent, stride};
	b->dim[b->rank++] = (struct ilir_dim){name, IMAGE_ONE, extent, extent};
}

/* The number of gates: the extent of the last dimension that numbers sources. */
static int gates_of(const struct image_recipe *r)
{
	int gates = 1;
	for (int d = 0; d < r->dims; d++)
		gates = r->dim[d].axis == IMAGE_PACK_SOURCE ? r->dim[d].extent : gates;
	return gates;
}

/* Whether two recipes differ at most in the sources, and in the number of gates. */
static bool is_same_layout(const struct image_recipe *a, const struct image_recipe *b)
{
	if (a->dims != b->dims)
		return false;
	for (int d = 0; d < a->dims; d++)
		if (a->dim[d].axis != b->dim[d].axis ||
		    (a->dim[d].axis != IMAGE_PACK_SOURCE &&
		     (a->dim[d].extent != b->dim[d].extent || a->dim[d].stride != b->dim[d].stride)))
			return false;
	return a->sources / gates_of(a) == b->sources / gates_of(b);
}

static bool is_same_source(const struct image_pack_source *a, const struct image_pack_source *b)
{
	return a->param == b->param && memcmp(a->begin, b->begin, sizeof a->begin) == 0;
}

/* The gate of a packed buffer that holds all sources of a single access; -1 = none. */
static int find_gate(const struct image_recipe *r, const struct image_recipe *single)
{
	int gates = gates_of(r);
	for (int gate = 0; gate < gates; gate++) {
		int slot = 0;
		while (slot < single->sources &&
		       is_same_source(&r->source[slot * gates + gate], &single->source[slot]))
			slot++;
		if (slot == single->sources)
			return gate;
	}
	return -1;
}

/* Adds the dimensions other than the vector's axis: rows, or those that loops index.  A slot of a stack
 * has `n` sources. */
static void add_others(struct image_recipe *r, struct ilir_buffer_decl *b,
		       const struct ilir_buffer_decl *weight, const struct access *a, bool rows, int n)
{
	for (int d = 0, i = 0; d < weight->rank; d++)
		if (d != a->axis && a->row[i++] == rows)
			add_dim(r, b, weight->dim[d].name, axis_of(weight, d), weight->dim[d].extent,
				axis_of(weight, d) == IMAGE_PACK_SOURCE ? n : 1);
}

/* The buffer that interleaves the weights of n alike accesses. */
static struct ilir_buffer_decl packed_decl(struct ilir_module *m, const struct access *a, int n)
{
	const struct ilir_buffer_decl *weight = ilir_buffer_at(m, a->weight);
	struct image_recipe *r = ARENA_NEW(m->arena, struct image_recipe);
	int slots = is_stack(weight) ? (int)weight->dim[0].extent : 1;
	struct image_pack_source *sources = ARENA_ARRAY(m->arena, struct image_pack_source, n * slots);
	struct ilir_buffer_decl b = {.name = "pack",
				     .kind = IMAGE_WEIGHT,
				     .dtype = weight->dtype,
				     .which = weight->which,
				     .recipe = r};
	int name = weight->dim[a->axis].name;
	int axis = axis_of(weight, a->axis);
	add_others(r, &b, weight, a, true, n);
	add_dim(r, &b, ilir_dim_name(m, "block"), axis, a->block[0].extent ? a->block[0].extent : 1,
		a->block[0].stride);
	if (a->block[1].extent)
		add_dim(r, &b, ilir_dim_name(m, "block"), axis, a->block[1].extent, a->block[1].stride);
	add_others(r, &b, weight, a, false, n);
	add_dim(r, &b, ilir_dim_name(m, "gate"), IMAGE_PACK_SOURCE, n, 1);
	if (a->column.extent > 1)
		add_dim(r, &b, ilir_dim_name(m, "column"), axis, a->column.extent, a->column.stride);
	add_dim(r, &b, name, axis, a->lane.extent, a->lane.stride);
	for (int s = 0; s < slots * n; s++)
		sources[s] = source_of(m, &a[s % n], s / n);
	r->sources = slots * n;
	r->source = sources;
	return b;
}

/* Finds the packed buffer, and the gate in it, that another loop in the same order has already packed
 * this weight into. */
static bool find_packed(const struct pack *p, const struct access *a, ilir_buffer *b, int *source)
{
	const struct image_recipe *single = packed_decl(p->m, a, 1).recipe;
	for (size_t i = 0; i < p->packed.n; i++) {
		const struct image_recipe *r = ilir_buffer_at(p->m, p->packed.at[i])->recipe;
		*b = p->packed.at[i];
		*source = is_same_layout(r, single) ? find_gate(r, single) : -1;
		if (*source >= 0)
			return true;
	}
	return false;
}

static int put_others(const struct access *a, bool rows, ilir_expr *index, int n)
{
	for (int i = 0; i < a->others; i++)
		if (a->row[i] == rows)
			index[n++] = a->other[i];
	return n;
}

static ilir_expr packed_load(struct ilir_module *m, ilir_buffer b, const struct access *a, int source)
{
	ilir_expr index[ILIR_MAX_RANK];
	int n = put_others(a, true, index, 0);
	index[n++] = a->block[0].extent ? a->block[0].iteration : ilir_index(m, 0);
	if (a->block[1].extent)
		index[n++] = a->block[1].iteration;
	n = put_others(a, false, index, n);
	index[n++] = ilir_index(m, source);
	if (a->column.extent > 1)
		index[n++] = a->column.iteration;
	index[n++] = a->lane.iteration;
	return ilir_load(m, b, index, n);
}

/* --- the walk --- */

struct collect {
	struct pack *p;
	const struct around *around;
	const struct ilir_stmt *store; /* that contains the loads */
	VEC(struct access) accesses;
};

static void collect_load(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct collect *c = context;
	struct access a;
	if (ilir_at(m, e)->op != ILIR_LOAD)
		return;
	bool along = decompose_load(c->p->m, e, LANE_OF_VECTOR, c->around, c->store, &a) &&
		     find_rows(m, &a, c->around, c->store);
	if (along || (is_multiplied_by_vectors(m, e, c->around) &&
		      decompose_load(c->p->m, e, ROW_OF_TILE, c->around, c->store, &a) &&
		      is_read_again(m, &a, c->around, c->store)))
		vec_push(m->arena, &c->accesses, a);
}

/* Collects the loads of a block and of the tile loops in it. */
static void collect_block(struct collect *c, const struct ilir_stmt *s, const struct around *around)
{
	for (; s; s = s->next) {
		struct around here = {s, around};
		if (s->kind == ILIR_FOR && s->loop.kind != ILIR_SERIAL)
			collect_block(c, s->loop.body, &here);
		if (s->kind != ILIR_STORE)
			continue;
		c->around = around;
		c->store = s;
		ilir_visit_expr(c->p->m, s->store.value,
				&(struct ilir_visit){.expr = collect_load, .context = c});
	}
}

static void replace_by(struct pack *p, ilir_expr e, ilir_expr by)
{
	while (p->by.n <= e.i)
		vec_push(p->m->arena, &p->by, (ilir_expr){0});
	p->by.at[e.i] = by;
}

static bool is_replaced(const struct pack *p, ilir_expr e)
{
	return e.i < p->by.n && p->by.at[e.i].i;
}

/* Whether another statement of the block reads the same elements of the same weight, which are one source. */
static bool is_among(const struct ilir_module *m, const struct access *sources, int n, const struct access *a)
{
	for (int i = 0; i < n; i++)
		if (sources[i].weight.i == a->weight.i && sources[i].begin == a->begin &&
		    is_alike(m, &sources[i], a))
			return true;
	return false;
}

/* Makes one buffer for all accesses of a block that are alike and not yet packed, in program order. */
static void make_packed_buffer(struct pack *p, const struct access *accesses, size_t n)
{
	struct access *sources = ARENA_ARRAY(p->m->arena, struct access, n);
	ilir_buffer b;
	int count = 0, source;
	for (size_t j = 0; j < n; j++)
		if (is_alike(p->m, accesses, &accesses[j]) && !is_among(p->m, sources, count, &accesses[j]) &&
		    !find_packed(p, &accesses[j], &b, &source))
			sources[count++] = accesses[j];
	if (count)
		vec_push(p->m->arena, &p->packed, ilir_new_buffer(p->m, packed_decl(p->m, sources, count)));
}

static void pack_block(struct pack *p, const struct ilir_stmt *block, const struct around *around)
{
	struct collect c = {.p = p};
	collect_block(&c, block, around);
	for (size_t i = 0; i < c.accesses.n; i++) {
		const struct access *a = &c.accesses.at[i];
		ilir_buffer b;
		int source;
		if (is_replaced(p, a->load))
			continue;
		make_packed_buffer(p, a, c.accesses.n - i);
		if (find_packed(p, a, &b, &source))
			replace_by(p, a->load, packed_load(p->m, b, a, source));
	}
}

static void pack_nest(struct pack *p, const struct ilir_stmt *block, const struct around *around)
{
	pack_block(p, block, around);
	for (const struct ilir_stmt *s = block; s; s = s->next) {
		struct around here = {s, around};
		if (s->kind == ILIR_FOR)
			pack_nest(p, s->loop.body, &here);
		else if (s->kind == ILIR_IF)
			pack_nest(p, s->branch.then, around), pack_nest(p, s->branch.otherwise, around);
	}
}

static ilir_expr replace_load(struct ilir_module *m, ilir_expr e, void *context)
{
	(void)m;
	const struct pack *p = context;
	return is_replaced(p, e) ? p->by.at[e.i] : e;
}

void ilir_pack(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	struct pack p = {.m = m};
	for (size_t k = 0; k < m->kernels.n; k++)
		pack_nest(&p, m->kernels.at[k].body, NULL);
	ilir_rewrite_module(m, &(struct ilir_rewrite){.expr = replace_load, .context = &p});
	ilir_fit_buffers(m);
}
