/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers of elements, for estimates and for the order of dimensions. */
#include "subop/subop.h"

struct sub_tensor sub_stored_part(const struct sub_program *p, const struct sub_store *s)
{
	struct sub_tensor part = *sub_store_tensor(p, s);
	if (s->stepped) {
		part.rank--;
		memmove(part.shape, part.shape + 1, (size_t)part.rank * sizeof *part.shape);
		memmove(part.var, part.var + 1, (size_t)part.rank * sizeof *part.var);
	}
	return part;
}

bool sub_has_leading_dim(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->vars && p->vars.at[v->var[0]].set != SUB_DIM;
}

bool sub_has_rows(const struct sub_program *p, sub_ref r)
{
	return sub_has_leading_dim(p, r) && !sub_is_ragged(p, sub_at(p, r)->var[0]);
}

int64_t sub_loop_extent(const struct sub_program *p, int var)
{
	const struct sub_var *v = &p->vars.at[var];
	return v->set == SUB_DIM ? v->extent : sub_is_ragged(p, var) ? SUB_RAGGED_EXTENT : 0;
}

static double elements_of(const struct sub_program *p, const int *var, int vars)
{
	double n = 1;
	for (int i = 0; i < vars; i++) {
		int64_t extent = sub_loop_extent(p, var[i]);
		n *= extent ? extent : 1;
	}
	return n;
}

double sub_row_elements(const struct sub_program *p, const struct sub_value *v)
{
	return elements_of(p, v->var, v->vars);
}

double sub_reduced_elements(const struct sub_program *p, const struct sub_value *v)
{
	int var[SUB_MAX_VARS] = {0};
	return elements_of(p, var, sub_reduced_vars(p, v, var));
}

int64_t sub_block_of(const struct sub_program *p, const struct sub_value *v)
{
	int64_t most = v->op == SUB_ACCUMULATE_F16 ? SUB_MOST_BLOCK : v->op == SUB_ACCUMULATE_BF16_BLOCK ? SUB_MOST_BF16_BLOCK : 0;
	if (!most)
		return 0;
	int64_t words = p->vars.at[v->reduced.var[v->reduced.n - 1]].extent;
	int64_t block = words < most ? words : most;
	while (words % block)
		block--;
	return block;
}

double sub_reduced_extent(const struct sub_program *p, const struct sub_value *v)
{
	return elements_of(p, v->reduced.var, v->reduced.n);
}

double sub_runs_per_row(const struct sub_program *p, const struct sub_body *b)
{
	return b->domain == SUB_NEXT_STEPS ? (double)p->traversals.at[b->traversal].steps - 1 : 1;
}

int sub_leading_dims(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	int n = 0;
	while (n < v->vars && p->vars.at[v->var[n]].set != SUB_DIM)
		n++;
	return n;
}
