/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which values are constants: they depend on weights, numbers and indices alone, and have no leading
 * dimension, so one computation when weights are bound serves all rows. */
#include "subop/subop.h"

bool sub_reads_step(const struct sub_value *v)
{
	bool reads = false;
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		reads |= v->map[i].function == SUB_STEP;
	return reads;
}

bool sub_may_be_constant(const struct sub_program *p, const struct sub_value *v)
{
	bool may = v->op == SUB_CONST || v->op == SUB_INDEX || v->op == SUB_PARAM || v->args > 0;
	for (int i = 0; i < v->vars; i++)
		may &= p->vars.at[v->var[i]].set == SUB_DIM;
	return may && !sub_reads_step(v);
}

bool *sub_find_constants(const struct sub_program *p)
{
	bool *constant = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		constant[i] = sub_may_be_constant(p, v);
		for (int a = 0; a < v->args; a++)
			constant[i] &= constant[v->arg[a].value.i];
	}
	return constant;
}
