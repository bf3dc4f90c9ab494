/* Which row of a state's buffer an access means: the state's layout says. */
#include "ilir/lower.h"

static bool by_parent(const struct lowering *l, int state)
{
	return l->sched->states.at[state].layout == IMAGE_BY_PARENT;
}

/* By parent, row e is that of the child of edge e. */
const char *lower_state_rows(const struct lowering *l, int state)
{
	return by_parent(l, state) ? "edge" : "node";
}

/* Edges are numbered inner node by inner node, and so are these rows; batch 0 holds the leaves. */
static ilir_expr first_child(struct lowering *l, ilir_expr node)
{
	struct ilir_module *m = l->m;
	ilir_expr first = lower_row_of(l, l->batch_begin, "inner", ilir_index(m, 1));
	ilir_expr rank = ilir_binary(m, ILIR_SUB, node, first);
	return ilir_binary(m, ILIR_MUL, rank, ilir_index(m, l->p->children));
}

ilir_expr lower_state_row(struct lowering *l, int state, ilir_expr node)
{
	return by_parent(l, state) ? lower_row_of(l, l->place, "place", node) : node;
}

ilir_expr lower_mapped_row(struct lowering *l, int state, const struct sub_map *map, ilir_expr at)
{
	if (!by_parent(l, state))
		return (ilir_expr){0};
	switch (map->function) {
	case SUB_CHILD:
		return ilir_binary(l->m, ILIR_ADD, lower_named(l, "row", first_child(l, at)), ilir_index(l->m, map->which));
	case SUB_EDGE_CHILD:
		return at;
	default:
		return (ilir_expr){0};
	}
}
