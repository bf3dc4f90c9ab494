/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rows of a model without a structure: nodes without edges, one for each input.  They are one batch in the caller's order,
 * so nothing is walked, counted or sorted. */
#include "linearize/linearize.h"

#include <string.h>

static bool refuse_edges(struct lin_order *o, const struct lin_forest *f, struct diags *diags)
{
	int32_t n = 0;
	while (f->child_begin[n] == f->child_begin[n + 1])
		n++;
	struct lin_name name = lin_name(f, n, o->order, o->number);
	diag_add(diags, DIAG_NOT_A_ROW, name.at, "give each row as a structure of its own, without children",
		 "%s has children, and the model has no structure", name.text);
	return diag_about(diags, name.input, name.node);
}

static bool refuse_nodes(const struct lin_forest *f, struct diags *diags)
{
	int64_t i = 0;
	while (f->input_begin && i + 1 < f->inputs && f->input_begin[i + 1] - f->input_begin[i] == 1)
		i++;
	struct lin_name name = lin_name_of(f, i, f->input_begin ? f->input_begin[i] : 0);
	diag_add(diags, DIAG_NOT_A_ROW, name.at, "give each row as a structure of its own",
		 "%lld nodes in %lld inputs, and the model has no structure: an input is one row", (long long)f->nodes,
		 (long long)f->inputs);
	return diag_about(diags, i, -1);
}

bool lin_check_rows(struct lin_order *o, const struct lin_forest *f, struct diags *diags)
{
	if (o->edges)
		return refuse_edges(o, f, diags);
	return o->nodes == o->inputs || refuse_nodes(f, diags);
}

bool lin_are_rows(const struct lin_order *o, const struct lin_rules *rules)
{
	bool arrays = rules->edges || rules->places || rules->parent || rules->parents || rules->origins;
	return !rules->children && !rules->cases && !arrays && !o->span;
}

bool lin_number_rows(struct lin_order *o, const struct lin_forest *f, struct diags *diags)
{
	if (!lin_check_roots(f, diags))
		return false;
	for (int32_t n = 0; n < o->nodes; n++)
		o->order[n] = o->number[n] = n;
	if (o->inputs)
		memcpy(o->root, f->root, (size_t)o->inputs * sizeof *o->root);
	o->leaves = o->nodes;
	o->batches = o->nodes > 0;
	o->batch_begin[0] = 0;
	o->batch_begin[o->batches] = o->nodes;
	o->in_place = true;
	return true;
}
