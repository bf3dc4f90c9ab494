/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: puts vectors that lie across the boundaries of aligned ones together from these, where statements side by side
 * read several of one row.
 *
 *     x[ramp(16, i + -1)], x[ramp(16, i)], x[ramp(16, i + 1)]
 *
 *     ->  a = x[ramp(16, i - 16)], b = x[ramp(16, i)], c = x[ramp(16, i + 16)]:
 *         splice(a, b, 15, 1, 16), b, splice(b, c, 1, 1, 16)
 *
 * A vector as wide as a cache line lies in two lines unless it is aligned, and then takes two accesses; the windows of
 * neighbours share the aligned ones.  So are vectors of every second element, whose lanes come from two vectors each;
 * two that begin side by side share these wherever they lie.
 *
 * Needs: resolve_borders has run.  For aligned ones i is a multiple of the lanes, and so is a row's padded length. */
#include "ilir/borders.h"

struct aligning {
	struct ilir_module *m;
	struct border_ranges ranges;
	VEC(int64_t) multiple; /* by variable: its values are multiples of it; 0 = of 1 */
	VEC(bool) swept;       /* by variable: other calls run other iterations of its loop */
	VEC(bool) stored;      /* by buffer: the kernel stores to it */
	VEC(ilir_expr) loads;  /* vectors that the statements side by side load */
};

/* A vector of a row: elements base + offset, base + offset + step, ... */
struct row_vector {
	ilir_expr load, base; /* base: none = 0 */
	int64_t offset, step;
	int lanes;
	bool in_lines; /* the vectors at multiples of the lanes are aligned, and each is a cache line */
};

/* --- what is aligned --- */

/* A cache line [bytes]: of narrower vectors most lie in one. */
enum { LINE_BYTES = 64 };

/* A multiple of all lanes and steps. */
enum { UNIT_MOST = 1 << 16 };

/* The greatest known divisor of an index, up to the lanes of a vector. */
static int64_t divisor_of(const struct aligning *a, ilir_expr e)
{
	const struct ilir_node *n = ilir_at(a->m, e);
	int64_t by;
	if (n->op == ILIR_VAR)
		return n->var.i < a->multiple.n && a->multiple.at[n->var.i] ? a->multiple.at[n->var.i] : 1;
	if (n->op == ILIR_CONST_I)
		return n->i ? n->i & -n->i : UNIT_MOST;
	if (n->op == ILIR_MUL && ilir_constant(a->m, ilir_arg(a->m, e, 1), &by) && by > 0)
		return divisor_of(a, ilir_arg(a->m, e, 0)) * (by & -by);
	if (n->op != ILIR_ADD)
		return 1;
	int64_t x = divisor_of(a, ilir_arg(a->m, e, 0)), y = divisor_of(a, ilir_arg(a->m, e, 1));
	return x < y ? x : y;
}

static bool uses_swept(const struct aligning *a, ilir_expr e)
{
	for (uint32_t v = 1; v < a->swept.n; v++)
		if (a->swept.at[v] && ilir_uses_var(a->m, e, (ilir_var){v}))
			return true;
	return false;
}

/* Reads a load as a vector of a row, other vectors of which can be loaded. */
static bool read_vector(const struct aligning *a, ilir_expr load, struct row_vector *v)
{
	const struct ilir_node *n = ilir_at(a->m, load);
	if (n->op != ILIR_LOAD || !n->args)
		return false;
	const struct ilir_buffer_decl *b = ilir_buffer_at(a->m, n->buffer);
	ilir_expr ramp = ilir_arg(a->m, load, n->args - 1);
	if (ilir_at(a->m, ramp)->op != ILIR_RAMP || b->kind == ILIR_REGISTER || b->kind == IMAGE_WEIGHT ||
	    b->dtype != ILIR_F32 || ilir_at(a->m, ramp)->i > 2)
		return false;
	*v = (struct row_vector){.load = load, .base = ilir_arg(a->m, ramp, 0), .step = ilir_at(a->m, ramp)->i,
				 .lanes = n->type.lanes};
	int64_t constant;
	if (ilir_constant(a->m, v->base, &constant))
		v->base = (ilir_expr){0}, v->offset = constant;
	else if (ilir_at(a->m, v->base)->op == ILIR_ADD && ilir_constant(a->m, ilir_arg(a->m, v->base, 1), &constant))
		v->base = ilir_arg(a->m, v->base, 0), v->offset = constant;
	v->in_lines = v->lanes * ilir_bytes(ILIR_F32) >= LINE_BYTES && b->dim[n->args - 1].padded % v->lanes == 0 &&
		      (!v->base.i || divisor_of(a, v->base) >= v->step * v->lanes);
	bool moves = v->base.i && n->buffer.i < a->stored.n && a->stored.at[n->buffer.i] && uses_swept(a, v->base);
	return !moves && (v->in_lines || v->step == 2);
}

static int64_t floor_divide(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static bool is_aligned(const struct row_vector *v)
{
	return v->in_lines && v->step == 1 && v->offset - floor_divide(v->offset, v->lanes) * v->lanes == 0;
}

static bool same_row(const struct aligning *a, const struct row_vector *x, const struct row_vector *y)
{
	const struct ilir_node *n = ilir_at(a->m, x->load), *o = ilir_at(a->m, y->load);
	bool same = n->buffer.i == o->buffer.i && x->base.i == y->base.i && x->lanes == y->lanes;
	for (int i = 0; same && i + 1 < n->args; i++)
		same = ilir_arg(a->m, x->load, i).i == ilir_arg(a->m, y->load, i).i;
	return same;
}

/* Whether two vectors of a row are made of the same others. */
static bool share_vectors(const struct row_vector *x, const struct row_vector *y)
{
	return x->in_lines || (x->step == y->step && floor_divide(x->offset, 2) == floor_divide(y->offset, 2));
}

/* Whether another load reads a vector of the same row, and both are made of the same others. */
static bool shares_row(const struct aligning *a, const struct row_vector *v)
{
	struct row_vector other;
	for (size_t i = 0; i < a->loads.n; i++)
		if (a->loads.at[i].i != v->load.i && read_vector(a, a->loads.at[i], &other) && same_row(a, v, &other) &&
		    share_vectors(v, &other))
			return true;
	return false;
}

/* --- putting together --- */

/* The vector that begins so many elements after the base; none if it is not in the row. */
static ilir_expr vector_at(struct aligning *a, const struct row_vector *v, int64_t offset)
{
	ilir_expr index[ILIR_MAX_RANK];
	int n = ilir_at(a->m, v->load)->args;
	ilir_buffer b = ilir_at(a->m, v->load)->buffer;
	ilir_expr at = ilir_index(a->m, offset);
	struct ilir_range base = v->base.i ? border_range(&a->ranges, v->base) : (struct ilir_range){0, 0};
	if (base.low == INT64_MIN || base.high == INT64_MAX || base.low + offset < 0 ||
	    base.high + offset + v->lanes > ilir_buffer_at(a->m, b)->dim[n - 1].padded)
		return (ilir_expr){0};
	for (int i = 0; i + 1 < n; i++)
		index[i] = ilir_arg(a->m, v->load, i);
	at = v->base.i ? ilir_binary(a->m, ILIR_ADD, v->base, at) : at;
	index[n - 1] = ilir_ramp(a->m, at, v->lanes, 1);
	return ilir_load(a->m, b, index, n);
}

/* The k-th aligned vector after the base; none if it is not in the row. */
static ilir_expr aligned_vector(struct aligning *a, const struct row_vector *v, int64_t k)
{
	return vector_at(a, v, k * v->lanes);
}

static ilir_expr splice_if(struct aligning *a, ilir_expr x, ilir_expr y, int64_t first, int64_t step)
{
	return x.i && y.i ? ilir_splice(a->m, x, y, first, step, ilir_type_of(a->m, x).lanes) : (ilir_expr){0};
}

/* Every second element of the aligned vectors 2k and 2k + 1, from the element `odd` on. */
static ilir_expr half_vector(struct aligning *a, const struct row_vector *v, int64_t k, int64_t odd)
{
	return splice_if(a, aligned_vector(a, v, 2 * k), aligned_vector(a, v, 2 * k + 1), odd, 2);
}

static ilir_expr put_together(struct aligning *a, const struct row_vector *v)
{
	int64_t lanes = v->lanes, odd = v->offset & 1, elements = floor_divide(v->offset, v->step);
	int64_t k = floor_divide(elements, lanes), lane = elements - k * lanes;
	if (!v->in_lines)
		return splice_if(a, vector_at(a, v, v->offset - odd), vector_at(a, v, v->offset - odd + lanes), odd, 2);
	if (v->step == 1)
		return splice_if(a, aligned_vector(a, v, k), aligned_vector(a, v, k + 1), lane, 1);
	if (!lane)
		return half_vector(a, v, k, odd);
	/* of one of two halves a single lane may be needed, which is the last or first of an aligned vector */
	ilir_expr low = lane + 1 == lanes && odd ? aligned_vector(a, v, 2 * k + 1) : half_vector(a, v, k, odd);
	ilir_expr high = lane == 1 && !odd ? aligned_vector(a, v, 2 * k + 2) : half_vector(a, v, k + 1, odd);
	return splice_if(a, low, high, lane, 1);
}

/* --- statements --- */

static ilir_expr align_expr(struct ilir_module *m, ilir_expr e, void *context)
{
	struct aligning *a = context;
	struct row_vector v;
	(void)m;
	if (!read_vector(a, e, &v) || is_aligned(&v) || !shares_row(a, &v))
		return e;
	ilir_expr together = put_together(a, &v);
	return together.i ? together : e;
}

static void note_load(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct aligning *a = context;
	struct row_vector v;
	if (!read_vector(a, e, &v))
		return;
	for (size_t i = 0; i < a->loads.n; i++)
		if (a->loads.at[i].i == e.i)
			return;
	vec_push(m->arena, &a->loads, e);
}

static void set_loop_facts(struct aligning *a, const struct ilir_stmt *loop)
{
	int64_t begin = 0, together = loop->loop.step;
	while (a->multiple.n < a->m->vars.n) {
		vec_push(a->m->arena, &a->multiple, 0);
		vec_push(a->m->arena, &a->swept, false);
	}
	bool known = ilir_constant(a->m, loop->loop.begin, &begin);
	together |= begin;
	a->multiple.at[loop->loop.var.i] = known ? together & -together : 1;
	a->swept.at[loop->loop.var.i] = loop->loop.kind == ILIR_SWEPT;
	border_enter_loop(&a->ranges, loop);
}

static void align_block(struct aligning *a, struct ilir_stmt *block);

static void align_inside(struct aligning *a, struct ilir_stmt *s)
{
	if (s->kind == ILIR_FOR) {
		set_loop_facts(a, s);
		align_block(a, s->loop.body);
	} else if (s->kind == ILIR_IF) {
		align_block(a, s->branch.then);
		align_block(a, s->branch.otherwise);
	}
}

/* Aligns what stores that follow each other load. */
static void align_block(struct aligning *a, struct ilir_stmt *block)
{
	struct ilir_visit visit = {.expr = note_load, .context = a};
	for (struct ilir_stmt *s = block, *run = block; s; s = s->next) {
		align_inside(a, s);
		if (s->next && s->next->kind != ILIR_FOR && s->next->kind != ILIR_IF)
			continue;
		a->loads.n = 0;
		for (struct ilir_stmt *at = run; at != s->next; at = at->next)
			if (at->kind == ILIR_STORE)
				ilir_visit_expr(a->m, at->store.value, &visit);
		for (struct ilir_stmt *at = run; a->loads.n > 1 && at != s->next; at = at->next)
			if (at->kind == ILIR_STORE)
				at->store.value = ilir_map_expr(a->m, at->store.value, align_expr, a);
		run = s->next;
	}
}

static void note_store(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct aligning *a = context;
	(void)m;
	if (s->kind == ILIR_STORE)
		a->stored.at[s->store.buffer.i] = true;
}

void ilir_align_loads(struct ilir_module *m, struct ilir_tiling *tiling)
{
	struct aligning a = {.m = m, .ranges = {.m = m}};
	if (!tiling->align)
		return;
	for (size_t b = 0; b < m->buffers.n; b++)
		vec_push(m->arena, &a.stored, false);
	border_set_range(&a.ranges, ilir_begin, (struct ilir_range){0, INT64_MAX});
	for (size_t k = 0; k < m->kernels.n; k++) {
		memset(a.stored.at, 0, a.stored.n * sizeof *a.stored.at);
		ilir_visit_block(m, m->kernels.at[k].body, &(struct ilir_visit){.stmt = note_store, .context = &a});
		align_block(&a, m->kernels.at[k].body);
	}
}
