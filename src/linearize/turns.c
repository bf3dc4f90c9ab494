/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Turns: batches whose nodes are of one kind each.
 *
 * A batch by height has nodes of several kinds, and a kernel's call for each kind.  Where kinds mix on the
 * ways from leaves to roots there are fewer calls if a batch, which is then a turn, takes all nodes of one
 * kind that are ready, and those of other kinds wait until more are.
 *
 *     layer of a node    nodes of its kind on the longest way from it to a root, itself among them
 *     ready              its children are done
 *
 * A kind with L layers needs L turns at least.  Each turn goes to the kind of which the largest share of the
 * highest layer that is left is ready: if it is all of it, no other order does with fewer turns after this
 * one than are needed now.  Among equals most nodes win, then the first kind.  Time is linear in nodes times
 * kinds; the C stack is not touched. */
#include "linearize/linearize.h"

#include <string.h>

enum { NOBODY = -1 };

struct kind {
	int32_t *left, *ready; /* by layer: nodes that are not done, and those of them that are ready */
	int32_t layer;	       /* the highest that has nodes left; 0 = none */
	int32_t waiting;       /* nodes that are ready, */
	int32_t first;	       /* and the first of them, see `next` */
};

struct turns {
	struct lin_order *o;
	const struct lin_forest *f;
	const struct lin_kinds *kinds;
	const int32_t *case_of; /* by id, like all arrays of nodes here */
	struct kind kind[IMAGE_MAX_CASES];
	int32_t *way; /* nodes * kinds: the most nodes of a kind that a way to a root has */
	int32_t *layer;
	int32_t *open; /* children that are inner nodes and not done */
	int32_t *next; /* of nodes that are ready, in the list of their kind */
	int32_t *turn;
	int32_t *parent_begin, *parent; /* of inner nodes; a parent stands once for each edge */
	int32_t *counts;		/* what kinds have by layer */
};

/* --- memory --- */

static bool reserve(struct turns *t, struct diags *diags)
{
	size_t nodes = t->o->nodes, edges = t->o->edges, kinds = t->kinds->n;
	size_t count[] = {nodes * kinds, nodes, nodes, nodes, nodes, nodes + 2, edges, 2 * (nodes + kinds)},
	       all = 0;
	int32_t **array[] = {&t->way,  &t->layer,	 &t->open,   &t->next,
			     &t->turn, &t->parent_begin, &t->parent, &t->counts};
	for (size_t i = 0; i < sizeof count / sizeof *count; i++)
		all += count[i];
	if (!lin_reserve(t->o, &t->o->turn_block, all * sizeof(int32_t), diags))
		return false;
	int32_t *at = lin_block_begin(&t->o->turn_block);
	for (size_t i = 0; i < sizeof count / sizeof *count; i++, at += count[i - 1])
		*array[i] = at;
	memset(t->way, 0, count[0] * sizeof(int32_t));
	memset(t->open, 0, nodes * sizeof(int32_t));
	memset(t->parent_begin, 0, (nodes + 2) * sizeof(int32_t));
	memset(t->counts, 0, 2 * (nodes + kinds) * sizeof(int32_t));
	return true;
}

/* --- the graph --- */

static bool is_inner(const struct turns *t, int32_t id)
{
	return t->f->child_begin[id] < t->f->child_begin[id + 1];
}

static int kind_of(const struct turns *t, int32_t id)
{
	return t->kinds->of[t->case_of[id]];
}

/* Children before parents: ids as they are, if that is how they come. */
static int32_t node_at(const struct turns *t, int32_t i)
{
	return t->o->swept == t->o->nodes ? i : t->o->order[i];
}

/* Two places further on, as in number.c: the begin of a node's parents moves to their end. */
static void find_parents(struct turns *t)
{
	const int32_t *begin = t->f->child_begin, *children = t->f->children;
	int32_t *to = t->parent_begin, nodes = t->o->nodes;
	for (int32_t i = begin[0]; i < begin[nodes]; i++)
		to[children[i] + 2] += is_inner(t, children[i]);
	for (int32_t n = 2; n <= nodes; n++)
		to[n] += to[n - 1];
	for (int32_t n = 0; n < nodes; n++)
		for (int32_t i = begin[n]; i < begin[n + 1]; i++)
			if (is_inner(t, children[i])) {
				t->parent[to[children[i] + 1]++] = n;
				t->open[n]++;
			}
}

static void raise_way(int32_t *to, const int32_t *from, int kinds)
{
	for (int k = 0; k < kinds; k++)
		to[k] = from[k] > to[k] ? from[k] : to[k];
}

static void find_layers(struct turns *t)
{
	int kinds = t->kinds->n;
	for (int32_t i = t->o->nodes; i-- > 0;) {
		int32_t id = node_at(t, i);
		int32_t *way = t->way + (int64_t)id * kinds;
		if (!is_inner(t, id))
			continue;
		struct kind *k = &t->kind[kind_of(t, id)];
		t->layer[id] = ++way[k - t->kind];
		k->layer = t->layer[id] > k->layer ? t->layer[id] : k->layer;
		for (int32_t e = t->f->child_begin[id]; e < t->f->child_begin[id + 1]; e++)
			raise_way(t->way + (int64_t)t->f->children[e] * kinds, way, kinds);
	}
}

/* --- turns --- */

static void make_ready(struct turns *t, int32_t id)
{
	struct kind *k = &t->kind[kind_of(t, id)];
	k->ready[t->layer[id]]++;
	k->waiting++;
	t->next[id] = k->first;
	k->first = id;
}

static void begin(struct turns *t)
{
	int32_t *at = t->counts;
	for (int i = 0; i < t->kinds->n; i++) {
		struct kind *k = &t->kind[i];
		k->left = at;
		k->ready = at += k->layer + 1;
		at += k->layer + 1;
		k->first = NOBODY;
	}
	for (int32_t id = 0; id < t->o->nodes; id++) {
		t->turn[id] = 0;
		if (!is_inner(t, id))
			continue;
		t->kind[kind_of(t, id)].left[t->layer[id]]++;
		if (!t->open[id])
			make_ready(t, id);
	}
}

/* Whether a turn is better given to one kind than to another; either has nodes that are ready. */
static bool is_better(const struct kind *a, const struct kind *b)
{
	int64_t share = (int64_t)a->ready[a->layer] * b->left[b->layer],
		other = (int64_t)b->ready[b->layer] * a->left[a->layer];
	return share != other ? share > other : a->waiting > b->waiting;
}

static struct kind *choose(struct turns *t)
{
	struct kind *best = NULL;
	for (struct kind *k = t->kind; k < t->kind + t->kinds->n; k++)
		if (k->waiting && (!best || is_better(k, best)))
			best = k;
	return best;
}

/* What gets ready on the way, of the same kind too, has to wait for another turn. */
static void take(struct turns *t, struct kind *k, int32_t turn)
{
	int32_t id = k->first;
	k->first = NOBODY;
	k->waiting = 0;
	for (int32_t next; id != NOBODY; id = next) {
		next = t->next[id];
		t->turn[id] = turn;
		k->left[t->layer[id]]--;
		k->ready[t->layer[id]]--;
		for (int32_t i = t->parent_begin[id]; i < t->parent_begin[id + 1]; i++)
			if (--t->open[t->parent[i]] == 0)
				make_ready(t, t->parent[i]);
	}
	while (k->layer && !k->left[k->layer])
		k->layer--;
}

/* How many there are; less than `most`, or there are none. */
static int32_t take_turns(struct turns *t, int32_t most)
{
	int32_t turn = 0;
	begin(t);
	for (struct kind *k; (k = choose(t));) {
		if (++turn >= most)
			return 0;
		take(t, k, turn);
	}
	return turn;
}

/* --- heights and turns compared --- */

/* Of inner nodes: kinds at each height. */
static int32_t turns_by_height(const struct turns *t)
{
	const struct lin_order *o = t->o;
	uint32_t *kinds = (uint32_t *)t->next;
	int32_t mask = o->batches > LIN_CHILD ? -1 : ~LIN_CHILD, turns = 0;
	memset(kinds, 0, (size_t)o->batches * sizeof *kinds);
	for (int32_t id = 0; id < o->nodes; id++)
		if (is_inner(t, id))
			kinds[o->height[id] & mask] |= 1u << kind_of(t, id);
	for (int32_t h = 1; h < o->batches; h++)
		turns += __builtin_popcount(kinds[h]);
	return turns;
}

static int32_t fewest_turns(const struct turns *t)
{
	int32_t turns = 0;
	for (int k = 0; k < t->kinds->n; k++)
		turns += t->kind[k].layer;
	return turns;
}

bool lin_find_turns(struct lin_order *o, const struct lin_forest *f, const struct lin_kinds *kinds,
		    const int32_t *case_of, struct diags *diags)
{
	struct turns t = {.o = o, .f = f, .kinds = kinds, .case_of = case_of};
	if (!o->edges)
		return true;
	if (!reserve(&t, diags))
		return false;
	find_layers(&t);
	int32_t most = kinds->least ? turns_by_height(&t) : INT32_MAX;
	if (fewest_turns(&t) >= most)
		return true;
	find_parents(&t);
	int32_t turns = take_turns(&t, most);
	if (!turns)
		return true;
	memcpy(o->height, t.turn, o->nodes * sizeof *o->height);
	o->batches = turns + 1;
	o->turns = true;
	return true;
}
