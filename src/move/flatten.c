/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Flattening: where nodes need no other node of their traversal and no neighbour, and all compute the same, the traversal
 * is no recursion, and one body ahead of it stores its states for all nodes at once:
 *
 *     leaf2 [n without children]                             node2 [n] ahead
 *       %5[n,i] = accumulate_j b[i], W[i,j], h[n,j]            %5[n,i] = accumulate_j b[i], W[i,j], h[n,j]
 *       store y[n,i] = %5[n,i]                         ->      store y[n,i] = %5[n,i]
 *     inner2 [n with children]
 *       %5[n,i] = accumulate_j b[i], W[i,j], h[n,j]
 *       store y[n,i] = %5[n,i]
 *
 * Level by level the weights would be read again for as few rows as a level has: one in a sequence.  Other nodes of the
 * input (`n in nodes`) are no obstacle, as only their inputs and states of earlier traversals are read. */
#include "move/moved_program.h"

#include <string.h>

static bool leads_to_neighbour(const struct sub_program *p, const struct sub_map *m)
{
	switch (m->function) {
	case SUB_CHILD:
	case SUB_EDGE_CHILD:
	case SUB_PARENT:
	case SUB_EDGE_PARENT:
	case SUB_SLOT_EDGE:
		return true;
	case SUB_TOKEN:
		return p->inputs.at[m->which].on_edge;
	default:
		return false;
	}
}

/* Whether a value is computed of neighbours or edges, or of a state that the traversal has yet to compute. */
static bool needs_order(const struct sub_program *p, const struct sub_value *v, int traversal)
{
	bool needs = v->op == SUB_STATE && p->states.at[v->which].traversal >= traversal;
	for (int i = 0; i < v->vars; i++)
		needs |= p->vars.at[v->var[i]].set == SUB_EDGE;
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		needs |= leads_to_neighbour(p, &v->map[i]);
	return needs;
}

bool move_needs_order(const struct sub_program *p, const struct sub_body *b)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n), needs = false;
	sub_mark_live(p, b, live);
	for (uint32_t i = 1; i < p->values.n; i++)
		needs |= live[i] && needs_order(p, &p->values.at[i], b->traversal);
	return needs;
}

static bool is_same_use(const struct sub_use *a, const struct sub_use *b)
{
	return a->value.i == b->value.i && a->vars == b->vars && memcmp(a->var, b->var, a->vars * sizeof *a->var) == 0;
}

static bool store_same(const struct sub_body *a, const struct sub_body *b)
{
	bool same = a->stores.n == b->stores.n;
	for (size_t i = 0; same && i < a->stores.n; i++) {
		const struct sub_store *x = &a->stores.at[i], *y = &b->stores.at[i];
		same = x->to == y->to && x->which == y->which && is_same_use(&x->value, &y->value);
	}
	return same;
}

/* The first of the two bodies of a traversal that is no recursion; NULL = it is one. */
static const struct sub_body *find_flat(const struct sub_program *p, int traversal)
{
	bool down = p->traversals.at[traversal].down;
	struct move_bodies first = move_find_bodies(p, traversal, down ? SUB_TOP : SUB_LEAF);
	struct move_bodies others = move_find_bodies(p, traversal, down ? SUB_BELOW : SUB_INNER);
	bool flat = first.all.n == 1 && others.all.n == 1 && store_same(first.all.at[0], others.all.at[0]) &&
		    !move_needs_order(p, first.all.at[0]);
	return flat ? first.all.at[0] : NULL;
}

/* "node" in the first traversal, "node2" in the second. */
static const char *flat_name(const struct sub_program *p, int traversal)
{
	struct str s = str_in(p->arena);
	str_puts(&s, "node");
	if (traversal)
		str_printf(&s, "%d", traversal + 1);
	return sub_find_free_name(p, SUB_NAME_BODY, str_text(&s));
}

static void note_flat(const struct sub_program *p, const char *name, struct rewrite_trace *trace)
{
	struct str s = str_in(p->arena);
	str_printf(&s, "%s is no recursion, and is computed for all nodes at once", name);
	vec_push(p->arena, &trace->notes, s.text);
}

static void flatten_traversal(struct sub_program *to, const struct sub_program *from, int traversal, void *trace)
{
	const struct sub_body *flat = find_flat(from, traversal);
	if (!flat) {
		move_keep_program(to, from);
		return;
	}
	move_copy_program(to, from);
	for (size_t i = 0; i < from->bodies.n; i++) {
		struct sub_body b = from->bodies.at[i];
		if (b.traversal == traversal && sub_is_recursive(&b) && &from->bodies.at[i] != flat)
			continue;
		if (&from->bodies.at[i] == flat) {
			b.name = flat_name(from, traversal);
			b.domain = SUB_AHEAD;
			b.cases = 0;
		}
		vec_push(to->arena, &to->bodies, b);
	}
	if (trace)
		note_flat(to, flat_name(from, traversal), trace);
}

void move_flatten(struct sub_program *to, const struct sub_program *from, enum move_extent how,
		  const struct rewrite_options *options, struct rewrite_trace *trace)
{
	(void)options;
	if (how == MOVE_OFF)
		move_keep_program(to, from);
	else
		move_each_traversal(to, from, flatten_traversal, trace);
}

/* Whether a traversal is a scan: then the model has no structure, and writes all its other traversals ahead itself. */
static bool has_scans(const struct sub_program *p)
{
	for (size_t t = 0; t < p->traversals.n; t++)
		if (p->traversals.at[t].steps)
			return true;
	return false;
}

bool move_is_flat(const struct sub_program *p)
{
	bool flat = false;
	for (size_t b = 0; !has_scans(p) && b < p->bodies.n; b++)
		flat |= p->bodies.at[b].domain == SUB_AHEAD && p->bodies.at[b].stores.n && p->bodies.at[b].stores.at[0].to == SUB_TO_STATE;
	return flat;
}
