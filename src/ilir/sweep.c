/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: makes the outermost loops of a kernel swept as far as their iterations are independent, blocks of
 * columns or of rows of a node: callers choose which of them run, and in which direction.  What stands before
 * them runs in each call, and stores only to memory of the thread.
 *
 *     kernel k in inner {                              kernel k in inner {
 *       for j:j in 0..152 step 8 {             ->        for j:j in 0..152 step 8 swept {
 *         for n:node in begin..end { .. }                  for n:node in begin..end { .. }
 *       }                                                }
 *     }                                                }
 *
 * A loop around them that is not independent, such as that over pieces of a reduction that is cut, stays: each call runs all
 * of its iterations for its blocks.
 *
 * Needs: outline has run.  A kernel that does not end with such a loop, or whose loops have one iteration, stays
 * as it is, and has one block. */
#include "ilir/passes.h"

/* An index as coefficient * variable + rest, where the rest is from `low` on and varies by at most `width`; and perhaps plus or minus an
 * `anchor` of unknown range that is the same in all iterations, such as the first row of a batch. */
struct motion {
	int64_t coefficient, low, width;
	ilir_expr anchor; /* none: there is none */
	bool minus;
};

static bool find_motion(const struct ilir_module *, ilir_expr, ilir_var, const struct ilir_known *,
			struct motion *);

static void check_anchor(const struct ilir_module *m, ilir_expr e, void *context)
{
	bool *same = context;
	const struct ilir_node *n = ilir_at(m, e);
	bool range = n->op != ILIR_VAR || n->var.i == ilir_begin.i || n->var.i == ilir_end.i;
	bool array = n->op != ILIR_LOAD ||
		     (ilir_buffer_at(m, n->buffer)->kind != ILIR_REGISTER && !ilir_holds_results(ilir_buffer_at(m, n->buffer)));
	*same &= range && array;
}

/* Whether an index is the same wherever it is in a call of a kernel. */
static bool is_anchor(const struct ilir_module *m, ilir_expr e)
{
	bool same = true;
	ilir_visit_expr(m, e, &(struct ilir_visit){.expr = check_anchor, .context = &same});
	return same && ilir_type_of(m, e).lanes == 1;
}

static bool motion_of_rest(const struct ilir_module *m, ilir_expr e, const struct ilir_known *known,
			   struct motion *out)
{
	struct ilir_range r;
	bool bounded = ilir_range_of(m, e, known, &r);
	*out = bounded ? (struct motion){.low = r.low, .width = r.high - r.low} : (struct motion){.anchor = e};
	return bounded || is_anchor(m, e);
}

static bool motion_of_sum(const struct ilir_module *m, ilir_expr e, ilir_var v,
			  const struct ilir_known *known, struct motion *out)
{
	struct motion a, b;
	bool minus = ilir_at(m, e)->op == ILIR_SUB;
	if (!find_motion(m, ilir_arg(m, e, 0), v, known, &a) ||
	    !find_motion(m, ilir_arg(m, e, 1), v, known, &b) || (a.anchor.i && b.anchor.i) ||
	    (minus && __builtin_add_overflow(b.low, b.width, &b.low)) ||
	    __builtin_add_overflow(a.low, minus ? -b.low : b.low, &out->low))
		return false;
	out->anchor = a.anchor.i ? a.anchor : b.anchor;
	out->minus = a.anchor.i ? a.minus : b.anchor.i && b.minus != minus;
	return !__builtin_add_overflow(a.coefficient, minus ? -b.coefficient : b.coefficient,
				       &out->coefficient) &&
	       !__builtin_add_overflow(a.width, b.width, &out->width);
}

static bool motion_of_product(const struct ilir_module *m, ilir_expr e, ilir_var v,
			      const struct ilir_known *known, struct motion *out)
{
	struct motion a;
	int64_t by;
	*out = (struct motion){0};
	return ilir_constant(m, ilir_arg(m, e, 1), &by) && by > 0 &&
	       find_motion(m, ilir_arg(m, e, 0), v, known, &a) && !a.anchor.i &&
	       !__builtin_mul_overflow(a.coefficient, by, &out->coefficient) &&
	       !__builtin_mul_overflow(a.low, by, &out->low) &&
	       !__builtin_mul_overflow(a.width, by, &out->width);
}

static bool find_motion(const struct ilir_module *m, ilir_expr e, ilir_var v, const struct ilir_known *known,
			struct motion *out)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (!ilir_uses_var(m, e, v))
		return motion_of_rest(m, e, known, out);
	switch (n->op) {
	case ILIR_VAR:
		*out = (struct motion){.coefficient = 1};
		return true;
	case ILIR_RAMP:
		return find_motion(m, ilir_arg(m, e, 0), v, known, out) &&
		       !__builtin_add_overflow(out->width, (n->type.lanes - 1) * n->i, &out->width);
	case ILIR_ADD:
	case ILIR_SUB:
		return motion_of_sum(m, e, v, known, out);
	case ILIR_MUL:
		return motion_of_product(m, e, v, known, out);
	default:
		return false;
	}
}

bool ilir_moves_with(const struct ilir_module *m, ilir_expr e, ilir_var v, const struct ilir_known *known)
{
	struct motion motion;
	return find_motion(m, e, v, known, &motion) && motion.coefficient == 1 && !motion.anchor.i;
}

/* The memory accesses of a loop's iterations. */
struct iterations {
	const struct ilir_stmt *loop; /* NULL = what is visited stands before them */
	struct map stored;	      /* the buffers that they store to */
	bool owns;	   /* memory of the thread that an iteration stores before it loads it is its own */
	const char *clash; /* the first buffer that makes their order matter; NULL = none */
};

/* What a statement of a loop's body does with a buffer: the elements that it stores and loads, of those that are no
 * padding. */
struct footprint {
	ilir_buffer buffer;
	bool stores, loads;
	struct ilir_range stored[ILIR_MAX_RANK], loaded[ILIR_MAX_RANK];
};

static void note_footprint(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct footprint *f = context;
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	if (a->buffer.i != f->buffer.i || ilir_is_prefetch(a))
		return;
	*(a->load.i ? &f->loads : &f->stores) = true;
	for (int d = 0; d < a->indices; d++) {
		struct ilir_range r;
		ilir_range_of(m, a->index[d], a->known, &r);
		if (b->dim[d].rows == IMAGE_ONE && r.high >= b->dim[d].extent)
			r.high = b->dim[d].extent - 1;
		ilir_widen(&(a->load.i ? f->loaded : f->stored)[d], r);
	}
}

/* Whether each iteration of a loop stores what it loads of a buffer, in statements of its body before those that load
 * it. */
static bool stores_before_loads(const struct ilir_module *m, const struct ilir_stmt *loop, ilir_buffer b)
{
	struct footprint f = {.buffer = b};
	for (int d = 0; d < ILIR_MAX_RANK; d++)
		f.stored[d] = f.loaded[d] = (struct ilir_range){INT64_MAX, INT64_MIN};
	for (const struct ilir_stmt *s = loop->loop.body; s; s = s->next) {
		struct ilir_stmt alone = *s;
		bool loaded = f.loads, stored = f.stores;
		alone.next = NULL;
		f.loads = f.stores = false;
		ilir_visit_accesses(m, &alone, note_footprint, &f);
		if ((f.loads && (f.stores || !stored)) || (f.stores && loaded))
			return false;
		f.loads |= loaded;
		f.stores |= stored;
	}
	for (int d = 0; f.loads && d < ilir_buffer_at(m, b)->rank; d++)
		if (f.loaded[d].low < f.stored[d].low || f.loaded[d].high > f.stored[d].high)
			return false;
	return true;
}

/* Whether an index moves per iteration by more than the range within an iteration. */
static bool moves_on(const struct ilir_stmt *loop, const struct motion *motion)
{
	int64_t distance;
	return !__builtin_mul_overflow(motion->coefficient, loop->loop.step, &distance) && distance > motion->width;
}

/* Whether iterations store to different elements: the index moves on in one dimension. */
static bool is_disjoint(const struct ilir_module *m, const struct ilir_access *a,
			const struct ilir_stmt *loop)
{
	for (int d = 0; d < a->indices; d++) {
		struct motion motion;
		if (find_motion(m, a->index[d], loop->loop.var, a->known, &motion) && moves_on(loop, &motion))
			return true;
	}
	return false;
}

/* The motion of all indices of a buffer in one dimension. */
struct track {
	ilir_buffer buffer;
	const struct ilir_stmt *loop;
	int dim;
	bool any, bounded;
	struct motion all;
};

static void note_track(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct track *t = context;
	struct motion one;
	if (a->buffer.i != t->buffer.i || !t->bounded || ilir_is_prefetch(a))
		return;
	t->bounded = find_motion(m, a->index[t->dim], t->loop->loop.var, a->known, &one) &&
		     (!t->any || (one.coefficient == t->all.coefficient && one.anchor.i == t->all.anchor.i && one.minus == t->all.minus));
	if (!t->bounded)
		return;
	if (t->any) {
		int64_t high = t->all.low + t->all.width, other = one.low + one.width;
		t->all.low = one.low < t->all.low ? one.low : t->all.low;
		t->all.width = (other > high ? other : high) - t->all.low;
	} else
		t->all = one;
	t->any = true;
}

/* Whether an iteration loads no element of a buffer that another one stores: in one dimension, all its indices move on
 * together. */
static bool keeps_apart(const struct ilir_module *m, const struct ilir_stmt *loop, ilir_buffer b)
{
	struct ilir_stmt alone = *loop;
	alone.next = NULL;
	for (int d = 0; d < ilir_buffer_at(m, b)->rank; d++) {
		struct track t = {.buffer = b, .loop = loop, .dim = d, .bounded = true};
		ilir_visit_accesses(m, &alone, note_track, &t);
		if (t.any && t.bounded && moves_on(loop, &t.all))
			return true;
	}
	return false;
}

static bool is_stored(const struct iterations *t, ilir_buffer b)
{
	return map_get(&t->stored, (const char *)&b, sizeof b) > 0;
}

static void note_store(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct iterations *t = context;
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	bool own = t->owns && b->kind == IMAGE_LOCAL && stores_before_loads(m, t->loop, a->buffer);
	if (a->load.i || b->kind == ILIR_REGISTER || own)
		return;
	map_add(&t->stored, (const char *)&a->buffer, sizeof a->buffer, 1);
	if (!t->clash && !is_disjoint(m, a, t->loop))
		t->clash = b->name;
}

/* Whether a buffer has rows that other kernels have stored when a kernel reads them: a state, or what nodes
 * keep for their parents. */
static bool has_earlier_rows(const struct ilir_buffer_decl *b)
{
	return b->kind == IMAGE_STATE ||
	       (b->kind == IMAGE_SCRATCH && b->rank && b->dim[0].rows == IMAGE_NODES);
}

/* Loads of states may be of any row, since other kernels have stored it; intermediates and outputs are
 * only read by later kernels. */
static void note_load(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct iterations *t = context;
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	bool own = (ilir_holds_results(b) && !has_earlier_rows(b)) || b->kind == IMAGE_WEIGHT;
	if (a->load.i && !ilir_is_prefetch(a) && own && is_stored(t, a->buffer) && !t->clash &&
	    !(t->loop && keeps_apart(m, t->loop, a->buffer)))
		t->clash = b->name;
}

static const char *find_clash(const struct ilir_module *m, const struct ilir_stmt *loop, bool owns)
{
	struct ilir_stmt alone = *loop;
	struct iterations t = {loop, map_in(m->arena), owns, NULL};
	alone.next = NULL;
	if (ilir_trip_count(m, loop) == 1)
		return NULL;
	ilir_visit_accesses(m, &alone, note_store, &t);
	ilir_visit_accesses(m, &alone, note_load, &t);
	return t.clash;
}

const char *ilir_iterations_clash(const struct ilir_module *m, const struct ilir_stmt *loop)
{
	return find_clash(m, loop, true);
}

const char *ilir_interleaving_clash(const struct ilir_module *m, const struct ilir_stmt *loop)
{
	return find_clash(m, loop, false);
}

static struct ilir_stmt *last_statement(const struct ilir_kernel *k)
{
	struct ilir_stmt *s = k->body;
	while (s && s->next)
		s = s->next;
	return s;
}

const struct ilir_stmt *ilir_swept_loop(const struct ilir_kernel *k)
{
	const struct ilir_stmt *s = last_statement(k);
	for (; s && !s->next && s->kind == ILIR_FOR; s = s->loop.body)
		if (s->loop.kind != ILIR_SERIAL)
			return s->loop.kind == ILIR_SWEPT ? s : NULL;
	return NULL;
}

/* A call runs what stands before the swept loop whatever blocks it chooses, and so do other threads. */
static void note_head(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct iterations *t = context;
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	if (a->load.i)
		note_load(m, a, context);
	else if (!t->clash && b->kind != IMAGE_LOCAL && b->kind != ILIR_REGISTER)
		t->clash = b->name;
}

const char *ilir_head_clash(const struct ilir_module *m, const struct ilir_kernel *k)
{
	const struct ilir_stmt *loop = last_statement(k);
	struct iterations t = {loop, map_in(m->arena), false, NULL};
	ilir_visit_accesses(m, loop, note_store, &t);
	t.clash = NULL;
	t.loop = NULL;
	for (const struct ilir_stmt *s = k->body; s != loop; s = s->next) {
		struct ilir_stmt alone = *s;
		alone.next = NULL;
		ilir_visit_accesses(m, &alone, note_head, &t);
	}
	return t.clash;
}

/* Whether a loop runs as a whole in each call, with all that is independent inside. */
static bool runs_whole(const struct ilir_module *m, const struct ilir_stmt *s)
{
	return s && !s->next && s->kind == ILIR_FOR && s->loop.kind == ILIR_SERIAL && ilir_trip_count(m, s) > 1 &&
	       ilir_iterations_clash(m, s);
}

static bool can_be_swept(const struct ilir_module *m, const struct ilir_stmt *s)
{
	return s && !s->next && s->kind == ILIR_FOR && s->loop.kind == ILIR_SERIAL &&
	       ilir_trip_count(m, s) > 0 && !ilir_iterations_clash(m, s);
}

/* The block inside the loops of a nest that can be swept; sets the number of their iterations. */
static const struct ilir_stmt *find_unswept(const struct ilir_module *m, const struct ilir_stmt *s, int64_t *blocks)
{
	for (*blocks = 1; can_be_swept(m, s); s = s->loop.body)
		*blocks *= ilir_trip_count(m, s);
	return s;
}

void ilir_sweep(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	for (size_t k = 0; k < m->kernels.n; k++) {
		struct ilir_stmt *s = last_statement(&m->kernels.at[k]);
		int64_t blocks;
		s = runs_whole(m, s) ? s->loop.body : s;
		const struct ilir_stmt *inside = find_unswept(m, s, &blocks);
		bool can = blocks > 1 && !ilir_head_clash(m, &m->kernels.at[k]);
		for (; can && s != inside; s = s->loop.body)
			s->loop.kind = ILIR_SWEPT;
	}
}
