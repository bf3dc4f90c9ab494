/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums of integers that must be stored: what is computed of a sum alone, element by element, is stored in its place, as far as
 * there is one consumer.  A quantised product ends with bytes there, of which a cache line holds four times as many as of sums,
 * and each reader would quantise the sums again. */
#include "sched/plan.h"

/* The only value that reads another one, once; NULL = a body's store reads it, too, or several do. */
static const struct sub_value *find_consumer(const struct sub_program *p, const struct sched_values *values, int at, int *consumer)
{
	if (values->fact[at].uses != 1 || values->fact[at].result)
		return NULL;
	for (int i = at + 1; i < values->n; i++) {
		const struct sub_value *v = sub_at(p, values->value[i]);
		for (int a = 0; a < v->args; a++)
			if (v->arg[a].value.i == values->value[at].i) {
				*consumer = i;
				return v;
			}
	}
	return NULL;
}

/* Whether a value has an element for each element of its argument `at`, and all others that it reads depend on no row. */
static bool keeps_elements(const struct sub_program *p, const struct sub_value *v, sub_ref at)
{
	enum sub_class class = sub_class_of(v->op);
	if (class != SUB_UNARY && class != SUB_BINARY && (v->op != SUB_ASSIGN || v->fills))
		return false;
	for (int a = 0; a < v->args; a++)
		if (v->arg[a].value.i != at.i && sub_has_leading_dim(p, v->arg[a].value))
			return false;
	return sub_row_elements(p, v) == sub_row_elements(p, sub_at(p, at));
}

static sub_ref find_narrow_end(const struct sub_program *p, const struct sched_values *values, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	sub_ref end = r;
	if (v->dtype != DTYPE_I32)
		return r;
	for (int at = (int)(sched_fact(values, r) - values->fact); (v = find_consumer(p, values, at, &at));) {
		sub_ref value = values->value[at];
		if (values->fact[at].stored || !keeps_elements(p, v, r))
			break;
		end = v->op != SUB_ASSIGN && v->dtype == DTYPE_I32 && !values->fact[at].chain_end.i ? value : end;
		r = value;
	}
	return end;
}

sub_ref sched_store_narrow_end(const struct sub_program *p, const struct sched_values *values, sub_ref r)
{
	sub_ref end = find_narrow_end(p, values, r);
	struct sched_fact *f = sched_fact(values, end);
	f->block = f->block ? f->block : sched_fact(values, r)->block;
	f->stored = true;
	return end;
}
