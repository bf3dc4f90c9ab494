/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The measure of the current body, updated whenever a value becomes live or dead.
 *
 * A value is live while a store or a live value uses it.  So a shared value outlives any one of its users,
 * and a replacement costs nothing for values that are live already.  A use of a replaced value counts as a
 * use of its replacement; users are rebuilt when the sweep comes to them. */
#include "rewrite/rule_engine.h"

struct rewrite_note *rewrite_note_of(struct rewriter *w, sub_ref r)
{
	while (w->notes.n < w->p->values.n) {
		struct rewrite_note n = {0};
		if (w->notes.n)
			n.fact = rewrite_facts_of(w, &w->p->values.at[w->notes.n]);
		vec_push(w->arena, &w->notes, n);
	}
	return &w->notes.at[r.i];
}

sub_ref rewrite_resolve(struct rewriter *w, sub_ref r)
{
	uint32_t last = r.i;
	while (rewrite_note_of(w, (sub_ref){last})->forward)
		last = w->notes.at[last].forward;
	for (uint32_t next; w->notes.at[r.i].forward; r.i = next) {
		next = w->notes.at[r.i].forward;
		w->notes.at[r.i].forward = last;
		if (next == last)
			break;
	}
	return (sub_ref){last};
}

bool rewrite_is_lower(struct rewrite_measure a, struct rewrite_measure b)
{
	if (a.cost != b.cost)
		return a.cost < b.cost;
	return a.constants != b.constants ? a.constants < b.constants : a.disorder < b.disorder;
}

static void touch_value(struct rewriter *w, uint32_t value)
{
	struct rewrite_note *n = &w->notes.at[value];
	if (w->trial)
		vec_push(w->arena, &w->touched, (struct rewrite_touched){value, n->uses, n->touched});
	n->touched = w->clock;
}

/* Changes the number of uses of a value and, if it becomes live or dead, of all that it needs. */
static void change_uses(struct rewriter *w, sub_ref r, int by)
{
	rewrite_note_of(w, r);
	w->stack.n = 0;
	vec_push(w->arena, &w->stack, r.i);
	while (w->stack.n) {
		uint32_t at = w->stack.at[--w->stack.n];
		const struct sub_value *v = &w->p->values.at[at];
		struct rewrite_note *n = &w->notes.at[at];
		touch_value(w, at);
		bool before = n->uses > 0;
		n->uses += by;
		if (before == (n->uses > 0))
			continue;
		w->measure.cost += by * n->fact.cost;
		w->measure.constants += by * (n->fact.constant && !n->fact.uniform && v->args);
		w->measure.disorder += by * n->fact.disorder;
		for (int a = 0; a < v->args; a++)
			vec_push(w->arena, &w->stack, rewrite_resolve(w, v->arg[a].value).i);
	}
}

void rewrite_add_use(struct rewriter *w, sub_ref r)
{
	change_uses(w, r, 1);
}

void rewrite_drop_use(struct rewriter *w, sub_ref r)
{
	change_uses(w, r, -1);
}

void rewrite_transfer_uses(struct rewriter *w, sub_ref from, sub_ref to)
{
	int uses = rewrite_note_of(w, from)->uses;
	rewrite_add_use(w, to);
	w->notes.at[to.i].uses += uses - 1;
	w->notes.at[from.i].uses = 1;
	rewrite_drop_use(w, from);
}

void rewrite_return_uses(struct rewriter *w, sub_ref from, sub_ref to, int uses)
{
	rewrite_add_use(w, from);
	w->notes.at[from.i].uses += uses - 1;
	w->notes.at[to.i].uses -= uses - 1;
	rewrite_drop_use(w, to);
}
