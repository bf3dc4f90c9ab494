/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which values need a state that a traversal has yet to compute. */
#include "subop/subop.h"

static bool is_unknown(const struct sub_program *p, const struct sub_value *v, int traversal)
{
	return v->op == SUB_STATE && p->states.at[v->which].traversal >= traversal;
}

/* Whether a value reads a row of the parent, which a root lacks: so it cannot be computed ahead for all
 * nodes. */
static bool reads_parent(const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && v->arg[0].vars && v->map[0].function == SUB_PARENT;
}

bool *sub_find_recursive(const struct sub_program *p, int traversal)
{
	bool *needs = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		needs[i] = is_unknown(p, v, traversal) || reads_parent(v);
		for (int k = 0; k < v->vars && v->op != SUB_VECTOR; k++)
			needs[i] |= sub_is_ragged(p, v->var[k]);
		for (int a = 0; a < v->args; a++)
			needs[i] |= needs[v->arg[a].value.i];
	}
	return needs;
}

bool *sub_find_unhoistable(const struct sub_program *p)
{
	bool *unhoistable = ARENA_ARRAY(p->arena, bool, p->values.n), *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++) {
		const struct sub_body *body = &p->bodies.at[b];
		const bool *recursive = sub_find_recursive(p, sub_first_unknown_traversal(body));
		memset(live, 0, p->values.n * sizeof *live);
		sub_mark_live(p, body, live);
		for (uint32_t i = 1; i < p->values.n; i++)
			unhoistable[i] |= live[i] && recursive[i];
	}
	return unhoistable;
}

int sub_first_unknown_traversal(const struct sub_body *b)
{
	bool output = b->domain == SUB_EVERY_NODE || b->domain == SUB_EVERY_INPUT;
	return output ? 0 : b->traversal;
}
