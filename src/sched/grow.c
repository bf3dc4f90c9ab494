/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The planner of DNNFusion (PLDI 2021, section 4.3), for one body: blocks grow from seeds along edges that
 * are profitable to fuse.
 *
 * First all values are found that must be stored in any case: expensive ones that are used in a loop that
 * they do not depend on, or in a reduction over the columns that their vectors would run along, or for words
 * of integers (cut_expensive).  Then the smallest one-to-one operator outside all blocks becomes the seed of
 * one.  The block takes successors and predecessors of its members, alternately, while the table fusion.def
 * allows it, the block stays convex (no path leaves it and comes back) and the values that a tile keeps live
 * fit (sched_pressure_limit).  Values that cross the border of a block are stored, unless recomputing them
 * costs less than memory traffic.
 *
 * Successors join in rising order and predecessors in falling order.  So an operator that a search for a
 * path back has visited need not be visited again while the block grows in the same direction. */
#include "sched/operator_graph.h"

#include <stdlib.h>

enum {
	/* Operators that several blocks compute rather than read from memory, if none of them is expensive.
	 */
	MAX_RECOMPUTED = 8,
	/* Steps of searches for a path back; a body that needs more stops growing blocks. */
	SEARCHES_PER_OPERATOR = 64
};

/* Facts about an operator, with what is fused into it. */
struct growth {
	bool expensive, cut, recomputed, stored; /* cut: must be stored in any case */
	bool too_slow;				 /* fusing it was measured to be slower than storing it */
	bool reduces_below;			 /* it or a successor in its block reduces a dimension */
	bool in_words; /* words are made of it, or of what is computed of it element by element */
	unsigned char reach; /* the most complex mapping type of it and its predecessors in its block */
	int block;
	int searched;	 /* the number of the last search that visited it */
	unsigned spaces; /* a mask of the spaces in which it reduces */
	double work;	 /* elements visited to compute it */
};

struct grower {
	struct sched_planner *pl;
	struct sched_graph g;
	struct growth *of;
	struct sched_values *values;
	int block, search, first, last; /* the current block and its range of operators; the current search */
	int *heap, heaped;		/* candidates: operators that may join, in order */
	bool *in_heap;
	long steps; /* that searches may still take */
	int *stack;
};

/* Whether an operator makes words of several elements: in a loop of another length, reading elements some
 * apart. */
static bool makes_words(const struct grower *w, int op)
{
	enum sub_op o = sub_at(w->g.p, w->g.ops.at[op].value)->op;
	return o == SUB_APPEND8 || o == SUB_APPEND16;
}

/* Whether a consumer makes words, or is computed element by element for what makes them. */
static bool leads_to_words(const struct grower *w, const struct sched_edge *e)
{
	return makes_words(w, e->to) || (w->of[e->to].in_words && !w->g.ops.at[e->to].spaces);
}

static bool is_cut_for(const struct grower *w, const struct sched_edge *e)
{
	return w->of[e->from].cut &&
	       (e->again || e->scalar || e->last == SCHED_MANY_TO_MANY || e->moved || leads_to_words(w, e));
}

static enum sched_mapping more_complex(enum sched_mapping a, enum sched_mapping b)
{
	return a > b ? a : b;
}

/* Whether fusing is profitable: by measurement, unless the schedule specifies otherwise. */
static bool is_profitable(const struct grower *w, enum sched_mapping first, enum sched_mapping second,
			  double volume)
{
	if (w->pl->plan->fusion.profit != SCHED_PROFIT_MEASURED)
		return w->pl->plan->fusion.profit == SCHED_PROFIT_ALWAYS;
	return sched_is_fusing_profitable(w->pl->plan->target, first, second, volume);
}

/* Whether an operator may be fused into its consumer; `first` is the mapping type of its block up to it,
 * and the movement on the edge counts.  Sets `measured` if a measurement decides: where the table leaves
 * it open, and always where a contraction would recompute the operator for each of its columns. */
static bool may_fuse(const struct grower *w, enum sched_mapping first, const struct sched_edge *e,
		     bool *measured)
{
	const enum sched_mapping type[] = {e->moved, e->last};
	bool fuse = true;
	*measured = false;
	for (int i = 0; i < 2 && fuse; i++) {
		enum sched_relation r = sched_relation_of(first, type[i]);
		bool again = e->again && type[i] == SCHED_MANY_TO_MANY;
		if (r == SCHED_MAY || (r == SCHED_FUSE && again)) {
			*measured = true;
			fuse = is_profitable(w, first, type[i], e->volume);
		}
		fuse &= r != SCHED_NEVER;
		first = more_complex(first, type[i]);
	}
	return fuse;
}

/* --- what must be stored --- */

static bool is_result(const struct grower *w, int op)
{
	return sched_fact(w->values, w->g.ops.at[op].value)->result;
}

/* Whether a value is stored for words: a result that is expensive, as it is in memory anyway; what a product
 * ends with, since weights are packed in the order of its own columns; and words that a product reads, which
 * it would otherwise make again for every column. */
static bool must_store_for_words(const struct grower *w, int op, const struct sched_edge *e)
{
	const struct growth *x = &w->of[op];
	return (leads_to_words(w, e) && x->expensive && is_result(w, op)) ||
	       (makes_words(w, e->to) && x->spaces & SCHED_OF_ROWS) ||
	       (makes_words(w, op) && e->last == SCHED_MANY_TO_MANY);
}

/* Whether an expensive operator must be stored because of one of its consumers.  Measurements are of one
 * pass over the elements of the consumer, per vector of them; nothing that takes more than two passes is
 * recomputed. */
static bool must_store_for(const struct grower *w, const struct sched_edge *e)
{
	bool measured, small = e->times <= SCHED_MAX_AGAIN && w->of[e->from].work <= 2 * e->volume;
	if (e->scalar || (e->again && e->last == SCHED_MANY_TO_MANY))
		return true;
	return e->again && !(small && may_fuse(w, w->of[e->from].reach, e, &measured) && measured);
}

/* Whether an operator that takes several passes over its elements is used in another order of dimensions and, as a result or by
 * another consumer, also otherwise: a nest that computes both uses would compute it for each. */
static bool is_used_apart(const struct grower *w, int op)
{
	const struct sched_operator *o = &w->g.ops.at[op];
	bool moved = false;
	for (int e = 0; e < o->outs; e++) {
		const struct sched_edge *out = sched_edge_out(&w->g, op, e);
		const struct sub_value *to = sub_at(w->g.p, w->g.ops.at[out->to].value);
		moved |= out->moved == SCHED_SHUFFLE || (to->op == SUB_ASSIGN && w->g.ops.at[out->to].type == SCHED_SHUFFLE);
	}
	return moved && (is_result(w, op) || o->outs > 1) && w->of[op].spaces && w->of[op].work > 2 * o->elements;
}

static void find_words(struct grower *w)
{
	for (int i = w->g.ops.n; i-- > 0;)
		for (int e = 0; e < w->g.ops.at[i].outs; e++)
			w->of[i].in_words |= leads_to_words(w, sched_edge_out(&w->g, i, e));
}

static void cut_expensive(struct grower *w)
{
	find_words(w);
	for (int i = 0; i < (int)w->g.ops.n; i++) {
		const struct sched_operator *op = &w->g.ops.at[i];
		struct growth *x = &w->of[i];
		bool again = false;
		x->expensive = op->expensive;
		x->reach = op->type;
		x->work = op->expensive ? op->volume : 0;
		x->spaces = op->spaces;
		for (int e = 0; e < op->ins; e++) {
			const struct growth *from = &w->of[sched_edge_in(&w->g, i, e)->from];
			x->expensive |= from->expensive && !from->cut;
			x->work += from->cut ? 0 : from->work;
			x->spaces |= from->cut ? 0 : from->spaces;
			x->reach = from->cut ? x->reach : more_complex(x->reach, from->reach);
		}
		for (int e = 0; e < op->outs; e++) {
			const struct sched_edge *out = sched_edge_out(&w->g, i, e);
			again |= out->again;
			x->cut |= x->expensive && !op->moves && must_store_for(w, out);
			x->cut |= is_result(w, i) && (out->again || out->last == SCHED_MANY_TO_MANY);
			x->cut |= must_store_for_words(w, i, out);
		}
		x->cut |= x->expensive && !op->moves && is_used_apart(w, i);
		x->cut |= x->spaces & SCHED_OF_EDGES && sub_leading_dims(w->g.p, op->value) == 1;
		x->recomputed = again && !x->cut;
	}
}

/* Operators that are fused into a recomputed one are recomputed as well. */
static void keep_operands(struct grower *w)
{
	for (int i = w->g.ops.n; i-- > 0;)
		for (int e = 0; w->of[i].recomputed && e < w->g.ops.at[i].ins; e++) {
			struct growth *from = &w->of[sched_edge_in(&w->g, i, e)->from];
			from->recomputed |= !from->cut;
		}
}

/* --- candidates: a heap, smallest first; predecessors by their negative --- */

static void sift_down(struct grower *w, int at)
{
	int x = w->heap[at];
	for (int child; (child = 2 * at + 1) < w->heaped; at = child) {
		child += child + 1 < w->heaped && w->heap[child + 1] < w->heap[child];
		if (w->heap[child] >= x)
			break;
		w->heap[at] = w->heap[child];
		w->heap[child] = x;
	}
}

static void push_candidate(struct grower *w, int op, int sign)
{
	int at = w->heaped;
	if (w->of[op].block || w->in_heap[op])
		return;
	w->in_heap[op] = true;
	w->heap[w->heaped++] = sign * op;
	for (; at && w->heap[at] < w->heap[(at - 1) / 2]; at = (at - 1) / 2) {
		int up = w->heap[(at - 1) / 2];
		w->heap[(at - 1) / 2] = w->heap[at];
		w->heap[at] = up;
	}
}

static int pop_candidate(struct grower *w)
{
	int op = abs(w->heap[0]);
	w->heap[0] = w->heap[--w->heaped];
	sift_down(w, 0);
	w->in_heap[op] = false;
	return op;
}

/* --- convexity --- */

/* The i-th neighbour of an operator: an operand when looking back, a consumer when looking forward. */
static int count_neighbours(const struct grower *w, int op, bool back)
{
	return back ? w->g.ops.at[op].ins : w->g.ops.at[op].outs;
}

static int neighbour_of(const struct grower *w, int op, int i, bool back)
{
	return back ? sched_edge_in(&w->g, op, i)->from : sched_edge_out(&w->g, op, i)->to;
}

/* Whether a path from `op` through operators outside the block comes back to it: the block would not be
 * convex. */
static bool leads_back(struct grower *w, int op, bool back)
{
	int n = 0;
	w->stack[n++] = op;
	while (n) {
		int at = w->stack[--n];
		for (int i = 0; i < count_neighbours(w, at, back); i++) {
			int next = neighbour_of(w, at, i, back);
			bool member = w->of[next].block == w->block;
			if (member && at == op)
				continue;
			if (member || w->steps-- <= 0) {
				w->search++; /* the search is incomplete: its marks must not be reused */
				return true;
			}
			if (w->of[next].searched == w->search || (back ? next < w->first : next > w->last))
				continue;
			w->of[next].searched = w->search;
			w->stack[n++] = next;
		}
	}
	return false;
}

/* --- growing --- */

/* Whether the operands of `op` in the block may be fused into it. */
static bool successor_fits(struct grower *w, int op)
{
	for (int i = 0; i < w->g.ops.at[op].ins; i++) {
		const struct sched_edge *e = sched_edge_in(&w->g, op, i);
		struct growth *from = &w->of[e->from];
		bool measured;
		if (from->block != w->block)
			continue;
		if (is_cut_for(w, e))
			return false;
		if (!from->cut && !may_fuse(w, from->reach, e, &measured)) {
			from->too_slow |= measured;
			return false;
		}
	}
	return true;
}

/* Whether `op` may be fused into all its consumers in the block, and is no reduction that another one
 * there depends on. */
static bool predecessor_fits(struct grower *w, int op)
{
	enum sched_mapping type = w->g.ops.at[op].type;
	for (int i = 0; i < w->g.ops.at[op].outs; i++) {
		const struct sched_edge *e = sched_edge_out(&w->g, op, i);
		bool measured;
		if (w->of[e->to].block != w->block)
			continue;
		if (w->of[op].cut)
			return false;
		if (w->of[e->to].reduces_below && sched_relation_of(type, SCHED_MANY_TO_MANY) == SCHED_NEVER)
			return false;
		if (!may_fuse(w, type, e, &measured)) {
			w->of[op].too_slow |= measured;
			return false;
		}
	}
	return true;
}

/* Marks an operator and its predecessors in the block. */
static void mark_reducing(struct grower *w, int op)
{
	int n = 0;
	w->of[op].reduces_below = true;
	w->stack[n++] = op;
	while (n) {
		int at = w->stack[--n];
		for (int i = 0; i < w->g.ops.at[at].ins; i++) {
			int from = sched_edge_in(&w->g, at, i)->from;
			if (w->of[from].block == w->block && !w->of[from].reduces_below) {
				w->of[from].reduces_below = true;
				w->stack[n++] = from;
			}
		}
	}
}

/* Raises the mapping types of an operator's successors in the block to its own. */
static void mark_reach(struct grower *w, int op)
{
	int n = 0;
	w->stack[n++] = op;
	while (n) {
		int at = w->stack[--n];
		for (int i = 0; i < w->g.ops.at[at].outs && !w->of[at].cut; i++) {
			int to = sched_edge_out(&w->g, at, i)->to;
			if (w->of[to].block == w->block && w->of[to].reach < w->of[at].reach) {
				w->of[to].reach = w->of[at].reach;
				w->stack[n++] = to;
			}
		}
	}
}

/* Vectors that an operator keeps live in a tile: an accumulator, and a result with several consumers. */
static int pressure_of(const struct grower *w, int op)
{
	return w->g.ops.at[op].accumulators + (w->g.ops.at[op].outs > 1);
}

static void join_block(struct grower *w, int op)
{
	struct growth *x = &w->of[op];
	struct sched_block *b = &w->pl->blocks.at[w->block];
	x->block = w->block;
	x->reach = w->g.ops.at[op].type;
	x->reduces_below = false;
	for (int i = 0; i < w->g.ops.at[op].ins; i++) {
		const struct growth *from = &w->of[sched_edge_in(&w->g, op, i)->from];
		if (from->block == w->block && !from->cut)
			x->reach = more_complex(x->reach, from->reach);
	}
	for (int i = 0; i < w->g.ops.at[op].outs; i++) {
		const struct growth *to = &w->of[sched_edge_out(&w->g, op, i)->to];
		x->reduces_below |= to->block == w->block && to->reduces_below;
	}
	if (w->g.ops.at[op].spaces)
		mark_reducing(w, op);
	mark_reach(w, op);
	b->reductions += w->g.ops.at[op].accumulators;
	b->spaces |= w->g.ops.at[op].spaces;
	b->pressure += pressure_of(w, op);
	w->first = op < w->first ? op : w->first;
	w->last = op > w->last ? op : w->last;
}

static void push_neighbours(struct grower *w, int op, bool back)
{
	for (int i = 0; i < count_neighbours(w, op, back); i++)
		push_candidate(w, neighbour_of(w, op, i, back), back ? -1 : 1);
}

/* Grows the block from the members that have joined since it last grew in this direction; returns the
 * number of members. */
static int grow_towards(struct grower *w, int *members, int from, int n, bool back)
{
	int limit = sched_pressure_limit(w->pl->plan->target);
	w->search++;
	for (int i = from; i < n; i++)
		push_neighbours(w, members[i], back);
	while (w->heaped) {
		int op = pop_candidate(w);
		const struct sched_block *b = &w->pl->blocks.at[w->block];
		if (b->pressure + pressure_of(w, op) > limit ||
		    !sched_spaces_agree(b->spaces, w->g.ops.at[op].spaces))
			continue;
		if (!(back ? predecessor_fits(w, op) : successor_fits(w, op)) || leads_back(w, op, !back))
			continue;
		join_block(w, op);
		members[n++] = op;
		push_neighbours(w, op, back);
	}
	return n;
}

static void grow_from(struct grower *w, int seed, int *members)
{
	int n = 1, forward = 0, back = 0;
	w->block = sched_new_block(w->pl, (struct sched_block){0});
	w->first = w->last = seed;
	join_block(w, seed);
	members[0] = seed;
	while (forward < n || back < n) {
		int from = forward;
		forward = n;
		n = grow_towards(w, members, from, n, false);
		from = back;
		back = n;
		n = grow_towards(w, members, from, n, true);
	}
}

/* --- seeds --- */

struct seed {
	int op;
	bool simple;
	double elements;
};

/* One-to-one operators first, then by the size of the result. */
static int compare_seeds(const void *a, const void *b)
{
	const struct seed *x = a, *y = b;
	if (x->simple != y->simple)
		return y->simple - x->simple;
	if (x->elements != y->elements)
		return x->elements < y->elements ? -1 : 1;
	return x->op - y->op;
}

static void grow_all(struct grower *w)
{
	size_t n = w->g.ops.n;
	struct seed *seeds = ARENA_ARRAY(w->g.arena, struct seed, n);
	int *members = ARENA_ARRAY(w->g.arena, int, n);
	for (size_t i = 0; i < n; i++)
		seeds[i] = (struct seed){i, w->g.ops.at[i].type == SCHED_ONE_TO_ONE, w->g.ops.at[i].elements};
	qsort(seeds, n, sizeof *seeds, compare_seeds);
	for (size_t i = 0; i < n; i++)
		if (!w->of[seeds[i].op].block)
			grow_from(w, seeds[i].op, members);
}

/* --- borders of blocks --- */

enum { SEVERAL = -1 };

/* The block in which an operator's values are used: for data movement, that of its consumers. */
static int using_block(const struct grower *w, const int *used_in, int op)
{
	return w->g.ops.at[op].moves ? used_in[op] : w->of[op].block;
}

static void find_using_blocks(const struct grower *w, int *used_in)
{
	for (int i = w->g.ops.n; i-- > 0;)
		for (int e = 0; e < w->g.ops.at[i].outs; e++) {
			int block = using_block(w, used_in, sched_edge_out(&w->g, i, e)->to);
			used_in[i] = !used_in[i] || used_in[i] == block ? block : SEVERAL;
		}
}

/* Whether a reduction in another block would compute the operator element by element. */
static bool loses_columns(const struct grower *w, int op)
{
	for (int e = 0; e < w->g.ops.at[op].outs; e++) {
		const struct sched_edge *out = sched_edge_out(&w->g, op, e);
		if (out->scalar && w->of[out->to].block != w->of[op].block)
			return true;
	}
	return false;
}

/* Finds which operators a reduction in another block would compute again for each of its columns, perhaps behind
 * movement, which is slower than to read them, as it is within a block (may_fuse). */
static void find_repeated(const struct grower *w, bool *repeated)
{
	bool measured;
	for (int i = w->g.ops.n; i-- > 0;)
		for (int e = 0; e < w->g.ops.at[i].outs; e++) {
			const struct sched_edge *out = sched_edge_out(&w->g, i, e);
			bool moves = w->g.ops.at[out->to].moves, apart = w->of[out->to].block != w->of[i].block;
			if (moves)
				repeated[i] |= repeated[out->to];
			else if (out->again && out->last == SCHED_MANY_TO_MANY && (apart || w->g.ops.at[i].moves))
				repeated[i] |= !may_fuse(w, w->of[i].reach, out, &measured);
		}
}

/* Stores operators that cross the border of a block, and those that must be stored.  A cheap operator is
 * recomputed in each block instead. */
static void store_crossing(struct grower *w)
{
	int *used_in = ARENA_ARRAY(w->g.arena, int, w->g.ops.n),
	    *operators = ARENA_ARRAY(w->g.arena, int, w->g.ops.n);
	bool *repeated = ARENA_ARRAY(w->g.arena, bool, w->g.ops.n);
	find_using_blocks(w, used_in);
	find_repeated(w, repeated);
	for (int i = 0; i < (int)w->g.ops.n; i++) {
		const struct sched_operator *op = &w->g.ops.at[i];
		bool expensive = op->expensive;
		operators[i] = 1;
		for (int e = 0; e < op->ins; e++) {
			int from = sched_edge_in(&w->g, i, e)->from;
			if (w->of[from].stored)
				continue;
			expensive |= w->of[from].expensive;
			operators[i] = operators[i] + operators[from] > MAX_RECOMPUTED
					   ? MAX_RECOMPUTED + 1
					   : operators[i] + operators[from];
		}
		w->of[i].expensive = expensive;
		bool crosses = used_in[i] && used_in[i] != w->of[i].block;
		bool cheap = !expensive && operators[i] <= MAX_RECOMPUTED && !loses_columns(w, i) &&
			     !repeated[i];
		struct sched_fact *f = sched_fact(w->values, op->value);
		f->stored = !op->moves && sub_has_rows(w->pl->p, op->value) &&
			    (w->of[i].cut || w->of[i].too_slow || (crosses && !cheap));
		f->recomputed = w->of[i].recomputed;
		f->block = w->of[i].block;
		w->of[i].stored = f->stored;
	}
}

void sched_grow(struct sched_planner *pl, int body)
{
	struct grower w = {.pl = pl, .values = &pl->values[body]};
	sched_make_graph(&w.g, pl->arena, pl->p, w.values);
	size_t n = w.g.ops.n;
	w.of = ARENA_ARRAY(pl->arena, struct growth, n);
	w.heap = ARENA_ARRAY(pl->arena, int, n);
	w.stack = ARENA_ARRAY(pl->arena, int, n + 1);
	w.in_heap = ARENA_ARRAY(pl->arena, bool, n);
	w.steps = (long)SEARCHES_PER_OPERATOR * (long)n;
	cut_expensive(&w);
	keep_operands(&w);
	grow_all(&w);
	store_crossing(&w);
}
