/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Words that are read where their bytes are stored.
 *
 *     %2[n,q] = append8 ... assign %1[n,4*q+1], assign %1[n,4*q]
 *     %3[n,j] = accumulate4_q 0, %2[n,q], W[q,j]
 *
 * A product reads each word of four bytes for all its columns, so that a plan stores words.  Where the four are neighbours in
 * memory, loading them at once is loading the word, and nothing needs to be stored.  This is tried for all words that products
 * alone read, of bytes that are stored or given: they are taken back where bytes do not come to lie side by side or a product has no
 * vectors, and kept where all groups together make fewer accesses than with words that are stored. */
#include "rewrite/rewrite.h"
#include "sched/group.h"
#include "sched/order.h"

enum { PARTS = 4, MAX_ROUNDS = 8 };

/* Whether two maps differ by an offset at most. */
static bool differ_by_offset(const struct sub_map *a, const struct sub_map *b)
{
	return a->function == b->function && a->var == b->var && a->scale == b->scale && a->scale2 == b->scale2 &&
	       a->var2 == b->var2 && a->which == b->which && a->divisor == b->divisor && a->modulus == b->modulus;
}

/* Whether map i of a part is that of the first part, but for the place of the part along dimension d. */
static bool is_part_map(const struct sub_map *m, const struct sub_map *first, bool along, int place)
{
	bool affine = m->function == SUB_AFFINE && m->scale == PARTS && !m->scale2;
	return sub_is_arithmetic(m) && differ_by_offset(m, first) && m->offset == first->offset + (along ? place : 0) &&
	       (affine || !along);
}

/* The dimension along which four parts are neighbours; -1 = they are not. */
static int find_dimension(const struct sub_value *const part[PARTS])
{
	for (int d = 0; d < part[0]->arg[0].vars; d++) {
		bool good = true;
		for (int k = 0; k < PARTS; k++)
			for (int i = 0; i < part[0]->arg[0].vars && good; i++)
				good = is_part_map(&part[k]->map[i], &part[0]->map[i], i == d, k);
		if (good)
			return d;
	}
	return -1;
}

bool sched_find_word(const struct sub_program *p, sub_ref top, struct sched_word *w)
{
	const struct sub_value *part[PARTS] = {NULL}, *v = sub_at(p, top);
	sub_ref last = top;
	for (int k = 0; k < PARTS - 1; k++) {
		if (v->op != SUB_APPEND8 || !sub_reads_as_is(p, v, 0) || !sub_reads_as_is(p, v, 1))
			return false;
		w->link[k] = last;
		part[k] = sub_at(p, v->arg[1].value);
		last = v->arg[0].value;
		v = sub_at(p, last);
	}
	part[PARTS - 1] = v;
	for (int k = 0; k < PARTS; k++)
		if (part[k]->op != SUB_ASSIGN || part[k]->fills || part[k]->arg[0].value.i != part[0]->arg[0].value.i)
			return false;
	w->bytes = part[0]->arg[0].value;
	w->dim = find_dimension(part);
	return w->dim >= 0;
}

/* --- candidates --- */

/* Whether what words are made of is in memory, as bytes, which lie side by side unless their order is chosen. */
static bool is_of_bytes(struct sched_grouper *gr, int body, const struct sched_word *w, const struct rewrite_range **ranges)
{
	static const struct rewrite_options exact = {.math = REWRITE_EXACT};
	const struct sub_program *p = gr->pl.p;
	sub_ref r = w->bytes;
	const struct sub_value *v = sub_at(p, r);
	if (v->op == SUB_VECTOR) {
		enum dtype given = p->inputs.at[v->which].row.dtype;
		return w->dim == v->vars - 1 && !p->inputs.at[v->which].on_edge && (given == DTYPE_U8 || given == DTYPE_I8);
	}
	if (sub_class_of(v->op) == SUB_SOURCE || v->dtype != DTYPE_I32)
		return false;
	const struct sched_fact *f = sched_fact(&gr->pl.values[body], r);
	if (!f->stored || f->result)
		return false;
	*ranges = *ranges ? *ranges : rewrite_find_ranges(p, &exact, gr->pl.arena);
	return sched_fits_byte(&(*ranges)[r.i]);
}

/* Whether only products read a value, perhaps through windows that stay in it. */
static bool has_products_only(const struct sub_program *p, const struct sched_values *values, sub_ref r)
{
	bool good = true;
	for (int i = 0; i < values->n && good; i++) {
		const struct sub_value *v = sub_at(p, values->value[i]);
		for (int a = 0; a < v->args && good; a++) {
			if (v->arg[a].value.i != r.i)
				continue;
			if (v->op == SUB_ASSIGN)
				good = !v->fills && !values->fact[i].stored && !values->fact[i].result &&
				       has_products_only(p, values, values->value[i]);
			else
				good = a > 0 && sub_class_of(v->op) == SUB_CONTRACTION;
		}
	}
	return good;
}

static void set_in_place(const struct sched_values *values, const struct sched_word *w, bool in_place)
{
	for (int k = 0; k < PARTS - 1; k++)
		sched_fact(values, w->link[k])->in_place = in_place;
}

static bool has_stored_link(const struct sched_values *values, const struct sched_word *w)
{
	bool stored = false;
	for (int k = 1; k < PARTS - 1; k++)
		stored |= sched_fact(values, w->link[k])->stored;
	return stored;
}

/* Takes the targets of words that are read in place out of the list. */
static void drop_targets(struct sched_grouper *gr)
{
	size_t n = 0;
	for (size_t i = 0; i < gr->targets.n; i++) {
		struct sched_target t = gr->targets.at[i];
		struct sched_fact *f = sched_fact(&gr->pl.values[t.body], t.value);
		f->target = f->in_place ? 0 : (int)n + 1;
		if (!f->in_place)
			gr->targets.at[n++] = t;
	}
	gr->targets.n = n;
}

static bool try_all(struct sched_grouper *gr)
{
	const struct rewrite_range *ranges = NULL;
	bool any = false;
	for (size_t b = 0; b < gr->pl.p->bodies.n; b++) {
		const struct sched_values *values = &gr->pl.values[b];
		for (int i = 0; i < values->n; i++) {
			struct sched_fact *f = &values->fact[i];
			struct sched_word w;
			if (!f->stored || f->result || !sched_find_word(gr->pl.p, values->value[i], &w) ||
			    has_stored_link(values, &w) || !has_products_only(gr->pl.p, values, values->value[i]) || !is_of_bytes(gr, (int)b, &w, &ranges))
				continue;
			set_in_place(values, &w, any = true);
			f->stored = false;
		}
	}
	if (any)
		drop_targets(gr);
	return any;
}

/* --- which of them stay --- */

static void take_back(struct sched_grouper *gr, int body, sub_ref top)
{
	struct sched_word w;
	struct sched_fact *f = sched_fact(&gr->pl.values[body], top);
	sched_find_word(gr->pl.p, top, &w);
	set_in_place(&gr->pl.values[body], &w, false);
	f->stored = true;
	sched_find_target(gr, body, top);
}

/* Whether an access reads words where their bytes lie side by side. */
static bool is_side_by_side(const struct order *o, int group, const struct order_access *a)
{
	const struct order_tensor *t = order_tensor_of(o, a);
	(void)group;
	return a->word_dim == (t ? t->last : a->rank - 1);
}

static bool is_of_vectors(const struct order *o, int group, const struct order_access *a)
{
	(void)a;
	return order_vector_dim(o, group) >= 0;
}

static bool is_nowhere(const struct order *o, int group, const struct order_access *a)
{
	(void)o, (void)group, (void)a;
	return false;
}

/* What all accesses to words in place must be. */
typedef bool condition(const struct order *, int group, const struct order_access *);

static bool holds_for_all(const struct order *o, int body, sub_ref top, condition *holds)
{
	bool all = true;
	for (size_t g = 0; g < o->plan->groups.n; g++)
		for (size_t i = 0; i < o->groups[g].all.n && o->plan->groups.at[g].body == body; i++)
			if (o->groups[g].all.at[i].word.i == top.i)
				all &= holds(o, (int)g, &o->groups[g].all.at[i]);
	return all;
}

/* Takes those words back that are stored again, and those for which a condition does not hold.  Whether there were any. */
static bool take_back_words(struct sched_grouper *gr, const struct order *o, condition *holds)
{
	bool any = false;
	for (size_t b = 0; b < gr->pl.p->bodies.n; b++) {
		const struct sched_values *values = &gr->pl.values[b];
		for (int i = 0; i < values->n; i++) {
			struct sched_word w;
			if (!values->fact[i].in_place || !sched_find_word(gr->pl.p, values->value[i], &w))
				continue;
			if (!values->fact[i].stored && !has_stored_link(values, &w) && holds != is_nowhere &&
			    holds_for_all(o, (int)b, values->value[i], holds))
				continue;
			take_back(gr, (int)b, values->value[i]);
			any = true;
		}
	}
	return any;
}

static struct order settle_orders(struct sched_grouper *gr)
{
	struct order o;
	order_list_accesses(&o, gr->pl.plan, gr->pl.arena, gr->pl.plan->target->lanes);
	order_settle(&o);
	return o;
}

bool sched_read_words_in_place(struct sched_grouper *gr)
{
	struct sched_plan *plan = gr->pl.plan;
	if (plan->fusion.words == MOVE_OFF || plan->target->amx_int8 || gr->word_rounds > MAX_ROUNDS)
		return false;
	if (!gr->word_rounds) {
		struct order before = settle_orders(gr);
		gr->word_accesses = order_count_all(&before);
		gr->word_rounds = try_all(gr) ? 1 : MAX_ROUNDS + 1;
		return gr->word_rounds == 1;
	}
	struct order o = settle_orders(gr);
	bool last = gr->word_rounds++ == MAX_ROUNDS;
	if (take_back_words(gr, &o, last ? is_nowhere : is_side_by_side) || take_back_words(gr, &o, is_of_vectors))
		return true;
	bool costs = plan->fusion.words == MOVE_ON && order_count_all(&o) >= gr->word_accesses;
	gr->word_rounds = MAX_ROUNDS + 1;
	return costs && take_back_words(gr, &o, is_nowhere);
}

bool sched_has_words_in_place(const struct sched_plan *plan)
{
	for (size_t b = 0; b < plan->p->bodies.n; b++)
		for (int i = 0; i < plan->values[b].n; i++)
			if (plan->values[b].fact[i].in_place)
				return true;
	return false;
}
