/* What leaves the recursion: products of what a node carries with weights.
 *
 * A value that needs no state is the same whenever it is computed.  Inside the recursion its weights are read
 * again at each level, for as few rows as the level has; ahead of it one step computes it for all nodes.  It
 * becomes an input that a body of its own computes, and the recursion reads it node by node.
 *
 * Of a sum that needs states, what comes first leaves: the parameter that it begins with and the chains
 * without a state (ilir/lower.c puts them in this order whether or not they leave).  So no bit changes.  To
 * be sure of that, what is part of another value's arithmetic (parts.c) must be so in the new bodies as it
 * was in the old; otherwise all stays. */
#include "sched/plan.h"

#include <stdio.h>

/* A value that leaves, in the new program. */
struct leaver {
	sub_ref value;
	int input;
	bool begins;  /* a sum goes on from it */
	bool at_leaf; /* leaves read it, too */
};

struct hoisting {
	struct arena *arena;
	const struct sub_program *from;
	struct sub_program *to; /* has the same values in the same places, then others */
	enum sched_moving how;
	const bool *recursive;
	const double *work; /* by value, see sched_weigh */
	bool *seen;
	int *leaver_of; /* by value of the old program: number + 1 */
	VEC(struct leaver) leavers;
	struct sched_values values;   /* of the body at hand */
	VEC(struct sched_terms) sums; /* that need states, and something of them leaves */
	sub_ref *now;		      /* by value: what it is in the new program */
	bool changed;		      /* arithmetic: nothing may leave */
};

static const struct sub_value *value_of(const struct hoisting *h, sub_ref r)
{
	return sub_at(h->from, r);
}

/* --- what needs a state --- */

static bool leads_to_child(const struct sub_value *v)
{
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		if (v->map[i].function == SUB_CHILD || v->map[i].function == SUB_EDGE_CHILD)
			return true;
	return false;
}

bool *sched_recursive(const struct sub_program *p)
{
	bool *needs = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		needs[i] = v->op == SUB_STATE || leads_to_child(v);
		for (int k = 0; k < v->vars; k++)
			needs[i] |= p->vars.at[v->var[k]].set == SUB_EDGE;
		for (int a = 0; a < v->args; a++)
			needs[i] |= needs[v->arg[a].value.i];
	}
	return needs;
}

/* --- what it is worth --- */

static bool pays(const struct hoisting *h, double work, const struct sub_value *v)
{
	double least = h->how == SCHED_MOVE_ALL ? 0 : SCHED_LEAST_WORK * sched_row_elements(h->from, v);
	return work > 0 && work >= least;
}

/* --- who leaves --- */

static const char *hoist_name(struct hoisting *h)
{
	struct str s = str_in(h->arena);
	str_printf(&s, "hoist%zu", h->leavers.n);
	return s.text;
}

/* A value of the new program becomes an input. */
static int add_leaver(struct hoisting *h, sub_ref r, bool begins)
{
	const struct sub_value *v = sub_at(h->to, r);
	struct sub_input in = {.name = hoist_name(h), .hoisted = true, .begins = begins};
	in.row = (struct sub_tensor){.name = in.name, .rank = v->vars - 1};
	for (int d = 0; d < in.row.rank; d++) {
		in.row.var[d] = v->var[d + 1];
		in.row.shape[d] = h->to->vars.at[v->var[d + 1]].extent;
	}
	vec_push(h->arena, &h->to->inputs, in);
	vec_push(h->arena, &h->leavers,
		 (struct leaver){.value = r, .input = h->to->inputs.n - 1, .begins = begins});
	return h->leavers.n;
}

/* Part of something, or nothing but an index: it is not stored. */
static bool stands_alone(const struct hoisting *h, sub_ref r)
{
	const struct sched_fact *f = sched_fact(&h->values, r);
	const struct sub_value *v = value_of(h, r);
	enum sub_class class = sub_class_of(v->op);
	return class != SUB_SOURCE && class != SUB_MOVE && !f->part_of.i && !f->product &&
	       v->var[0] == h->from->node && v->vars - 1 <= TENSOR_MAX_RANK;
}

/* A value that needs no state is wanted by one that does: it leaves, or what it is computed from. */
static void leave(struct hoisting *h, sub_ref r)
{
	const struct sub_value *v = value_of(h, r);
	if (h->seen[r.i] || h->recursive[r.i] || !sched_has_lead(h->from, r) || !h->work[r.i])
		return;
	h->seen[r.i] = true;
	if (stands_alone(h, r) && pays(h, h->work[r.i], v)) {
		h->leaver_of[r.i] = add_leaver(h, r, false);
		return;
	}
	for (int a = 0; a < v->args; a++)
		leave(h, v->arg[a].value);
}

/* --- sums --- */

/* Marks what comes first in a sum: the chains without a state, at most so many, and the parameter that they
 * go on from. Returns their number. */
static int mark_ahead(const struct hoisting *h, struct sched_terms *t, int most)
{
	int chains = 0;
	size_t start = 0;
	for (size_t i = 0; i < t->all.n; i++) {
		sub_ref r = t->all.at[i].value;
		bool chain = value_of(h, r)->op == SUB_SUM && sched_fact(&h->values, r)->part_of.i;
		t->ahead[i] = chain && !h->recursive[r.i] && chains < most;
		chains += t->ahead[i];
	}
	while (start < t->all.n && value_of(h, t->all.at[start].value)->op != SUB_PARAM)
		start++;
	if (chains && start < t->all.n)
		t->ahead[start] = true;
	return chains;
}

/* The greatest number of chains with which the beginning of a leaf's sum is a value that leaves. */
static bool find_leaver(struct hoisting *h, struct sched_terms *t)
{
	for (int most = mark_ahead(h, t, t->all.n); most > 0; most--) {
		mark_ahead(h, t, most);
		sub_ref r = sched_first_part(h->to, t, true);
		for (size_t i = 0; r.i && i < h->leavers.n; i++)
			if (h->leavers.at[i].value.i == r.i && h->leavers.at[i].begins) {
				t->leaver = r;
				return true;
			}
	}
	return false;
}

static bool is_sum(const struct hoisting *h, sub_ref r)
{
	return value_of(h, r)->op == SUB_ADD && !sched_fact(&h->values, r)->part_of.i;
}

/* A sum that needs a state: its beginning leaves, and of its other terms what they are computed from. */
static void leave_sum(struct hoisting *h, sub_ref sum)
{
	struct sched_terms t = sched_terms_of(h->arena, h->from, &h->values, sum);
	double work = 0;
	mark_ahead(h, &t, t.all.n);
	for (size_t i = 0; i < t.all.n; i++)
		work += t.ahead[i] ? h->work[t.all.at[i].value.i] : 0;
	if (pays(h, work, value_of(h, sum)) && value_of(h, sum)->vars - 1 <= TENSOR_MAX_RANK) {
		t.leaver = sched_first_part(h->to, &t, false);
		int leaver = add_leaver(h, t.leaver, true);
		if (t.leaver.i < h->from->values.n) {
			h->changed |= h->leaver_of[t.leaver.i];
			h->leaver_of[t.leaver.i] = leaver;
		}
		vec_push(h->arena, &h->sums, t);
	}
	for (size_t i = 0; i < t.all.n; i++)
		if (!t.leaver.i || !t.ahead[i])
			leave(h, t.all.at[i].value);
}

/* Terms of sums are looked at with their sum. */
static void leave_arguments(struct hoisting *h, const struct sub_value *v)
{
	for (int a = 0; a < v->args; a++)
		if (!sched_fact(&h->values, v->arg[a].value)->part_of.i)
			leave(h, v->arg[a].value);
}

static void find_leavers(struct hoisting *h, const struct sub_body *b)
{
	for (int i = 0; i < h->values.n; i++) {
		sub_ref r = h->values.value[i];
		if (h->recursive[r.i] && is_sum(h, r))
			leave_sum(h, r);
		else if (h->recursive[r.i] && value_of(h, r)->op != SUB_ADD)
			leave_arguments(h, value_of(h, r));
	}
	for (size_t i = 0; i < b->stores.n; i++)
		leave(h, b->stores.at[i].value.value);
}

/* --- the bodies of the recursion --- */

static sub_ref read_leaver(struct hoisting *h, const struct leaver *l)
{
	const struct sub_value *v = sub_at(h->to, l->value);
	struct sub_value in = {.op = SUB_VECTOR, .which = l->input, .vars = v->vars};
	memcpy(in.var, v->var, sizeof in.var);
	return sub_add(h->to, in, NULL);
}

static const struct leaver *leaver_of(const struct hoisting *h, sub_ref r)
{
	size_t i = 0;
	while (h->leavers.at[i].value.i != r.i)
		i++;
	return &h->leavers.at[i];
}

static bool begins(const struct hoisting *h, sub_ref r)
{
	const struct sub_value *v = sub_at(h->to, r);
	return v->op == SUB_VECTOR && h->to->inputs.at[v->which].begins;
}

/* The beginning of one sum must not be taken for that of another. */
static sub_ref copy_value(struct hoisting *h, sub_ref r)
{
	struct sub_value v = *value_of(h, r);
	for (int a = 0; a < v.args; a++) {
		v.arg[a].value = h->now[v.arg[a].value.i];
		h->changed |= v.op == SUB_ADD && begins(h, v.arg[a].value);
		if (v.op == SUB_ASSIGN || v.op == SUB_RESHAPE)
			v.arg[a] = sub_as_is(h->to, v.arg[a].value);
	}
	return sub_add(h->to, v, NULL);
}

static const struct sched_terms *leaving_terms(struct hoisting *h, sub_ref r, bool leaf)
{
	for (size_t i = 0; !leaf && i < h->sums.n; i++)
		if (h->sums.at[i].sum.i == r.i)
			return &h->sums.at[i];
	if (!leaf || !is_sum(h, r))
		return NULL;
	struct sched_terms *t = ARENA_NEW(h->arena, struct sched_terms);
	*t = sched_terms_of(h->arena, h->from, &h->values, r);
	return find_leaver(h, t) ? t : NULL;
}

/* A term of a sum that would be taken for its beginning. */
static bool is_added(const struct hoisting *h, sub_ref r)
{
	for (int i = 0; i < h->values.n; i++) {
		const struct sub_value *v = value_of(h, h->values.value[i]);
		for (int a = 0; v->op == SUB_ADD && a < 2; a++)
			if (v->arg[a].value.i == r.i)
				return true;
	}
	return false;
}

static const struct leaver *find_whole(const struct hoisting *h, sub_ref r)
{
	int number = h->leaver_of[r.i];
	const struct leaver *l = number ? &h->leavers.at[number - 1] : NULL;
	return l && stands_alone(h, r) && !(l->begins && is_added(h, r)) ? l : NULL;
}

static sub_ref rewrite(struct hoisting *h, sub_ref r, bool leaf)
{
	const struct sched_terms *t = leaving_terms(h, r, leaf);
	const struct leaver *l = t ? NULL : find_whole(h, r);
	return t   ? sched_rest_of(h->to, t, read_leaver(h, leaver_of(h, t->leaver)), h->now)
	       : l ? read_leaver(h, l)
		   : copy_value(h, r);
}

static struct sub_body rewrite_body(struct hoisting *h, const struct sub_body *b)
{
	struct sub_body copy = {.name = b->name, .domain = b->domain};
	for (int i = 0; i < h->values.n; i++)
		h->now[h->values.value[i].i] = rewrite(h, h->values.value[i], b->domain == SUB_LEAF);
	for (size_t i = 0; i < b->stores.n; i++) {
		struct sub_store s = b->stores.at[i];
		s.value.value = h->now[s.value.value.i];
		vec_push(h->arena, &copy.stores, s);
	}
	return copy;
}

/* --- bits --- */

static bool leaves(const struct hoisting *h, sub_ref r)
{
	for (size_t i = 0; i < h->leavers.n; i++)
		if (h->leavers.at[i].value.i == r.i)
			return true;
	return false;
}

/* What a new body computes as an old one did must be computed in the same way; `now` NULL: at the same place.
 * What leaves is a result there, and part of nothing. */
static void compare(struct hoisting *h, const struct sched_values *old, int body, const sub_ref *now)
{
	struct sched_values new;
	bool *seen = ARENA_ARRAY(h->arena, bool, h->to->values.n),
	     *live = ARENA_ARRAY(h->arena, bool, h->to->values.n);
	sched_find_values(&new, h->arena, h->to, body, seen);
	for (int i = 0; i < new.n; i++)
		live[new.value[i].i] = true;
	for (int i = 0; i < old->n; i++) {
		sub_ref r = old->value[i], n = now ? now[r.i] : r;
		if (live[n.i] && (now || !leaves(h, r)) && sub_class_of(sub_at(h->to, n)->op) != SUB_SOURCE)
			h->changed |= !sched_same_part(&old->fact[i], sched_fact(&new, n));
	}
}

/* --- the new program --- */

static struct sched_values values_of(struct hoisting *h, const struct sub_body *b)
{
	struct sched_values values;
	sched_find_values(&values, h->arena, h->from, b - h->from->bodies.at,
			  ARENA_ARRAY(h->arena, bool, h->from->values.n));
	return values;
}

/* Which of them the leaves read. */
static void mark_leaf(struct hoisting *h, const struct sub_body *leaf)
{
	bool *live = ARENA_ARRAY(h->arena, bool, h->to->values.n);
	sub_mark_live(h->to, leaf, live);
	for (size_t i = 0; i < h->leavers.n; i++)
		h->leavers.at[i].at_leaf = live[read_leaver(h, &h->leavers.at[i]).i];
}

/* The body of those that leaves read, or of those that they do not; true when there are any. */
static bool add_ahead(struct hoisting *h, bool at_leaf)
{
	struct sub_body b = {at_leaf ? "hoist" : "hoist.inner", at_leaf ? SUB_AHEAD : SUB_AHEAD_INNER, {0}};
	for (size_t i = 0; i < h->leavers.n; i++) {
		const struct leaver *l = &h->leavers.at[i];
		if (l->at_leaf == at_leaf)
			vec_push(h->arena, &b.stores,
				 (struct sub_store){SUB_TO_INPUT, l->input, sub_as_is(h->to, l->value)});
	}
	if (b.stores.n)
		vec_push(h->arena, &h->to->bodies, b);
	return b.stores.n;
}

/* Bodies at binding, then those ahead of the recursion, then all others. */
static void add_bodies(struct hoisting *h, const struct sub_body *leaf, const struct sub_body *inner,
		       const struct sched_values *of_inner, const struct sched_values *of_leaf)
{
	const struct sub_program *from = h->from;
	size_t i = 0;
	for (; i < from->bodies.n && from->bodies.at[i].domain == SUB_AT_BINDING; i++)
		vec_push(h->arena, &h->to->bodies, from->bodies.at[i]);
	for (int at_leaf = 1; at_leaf >= 0; at_leaf--)
		if (add_ahead(h, at_leaf)) {
			compare(h, of_inner, h->to->bodies.n - 1, NULL);
			if (at_leaf)
				compare(h, of_leaf, h->to->bodies.n - 1, NULL);
		}
	for (; i < from->bodies.n; i++) {
		enum sub_domain domain = from->bodies.at[i].domain;
		vec_push(h->arena, &h->to->bodies,
			 domain == SUB_LEAF    ? *leaf
			 : domain == SUB_INNER ? *inner
					       : from->bodies.at[i]);
	}
}

static int body_at(const struct sub_program *p, enum sub_domain domain)
{
	size_t b = 0;
	while (p->bodies.at[b].domain != domain)
		b++;
	return b;
}

static void hoist(struct hoisting *h, const struct sub_body *leaf, const struct sub_body *inner)
{
	struct sched_values of_inner = values_of(h, inner), of_leaf = values_of(h, leaf);
	h->values = of_inner;
	find_leavers(h, inner);
	if (!h->leavers.n)
		return;
	sub_ref *now = h->now = ARENA_ARRAY(h->arena, sub_ref, h->from->values.n);
	struct sub_body new_inner = rewrite_body(h, inner);
	h->values = of_leaf;
	h->now = ARENA_ARRAY(h->arena, sub_ref, h->from->values.n);
	struct sub_body new_leaf = rewrite_body(h, leaf);
	mark_leaf(h, &new_leaf);
	add_bodies(h, &new_leaf, &new_inner, &of_inner, &of_leaf);
	compare(h, &of_inner, body_at(h->to, SUB_INNER), now);
	compare(h, &of_leaf, body_at(h->to, SUB_LEAF), h->now);
}

/* --- the whole --- */

static void note_leavers(const struct hoisting *h, struct sub_trace *trace)
{
	for (size_t i = 0; trace && i < h->leavers.n; i++) {
		const struct leaver *l = &h->leavers.at[i];
		struct str s = str_in(h->arena);
		str_printf(&s, "%s is computed ahead of the recursion, %s: %.0f bytes each",
			   h->to->inputs.at[l->input].name,
			   l->at_leaf ? "for all nodes" : "for the nodes with children",
			   sizeof(float) * sched_row_elements(h->to, sub_at(h->to, l->value)));
		vec_push(h->arena, &trace->notes, s.text);
	}
}

void sched_hoist(struct sub_program *to, const struct sub_program *from, enum sched_moving how,
		 struct sub_trace *trace)
{
	struct hoisting h = {.arena = to->arena, .from = from, .to = to, .how = how};
	const struct sub_body *leaf = sched_find_body(from, SUB_LEAF),
			      *inner = sched_find_body(from, SUB_INNER);
	sched_copy_program(to, from);
	if (how != SCHED_MOVE_OFF && leaf && inner) {
		h.recursive = sched_recursive(from);
		h.seen = ARENA_ARRAY(h.arena, bool, from->values.n);
		h.leaver_of = ARENA_ARRAY(h.arena, int, from->values.n);
		h.work = sched_weigh(h.arena, from);
		hoist(&h, leaf, inner);
	}
	if (h.leavers.n && !h.changed) {
		note_leavers(&h, trace);
		return;
	}
	sched_copy_program(to, from);
	for (size_t i = 0; i < from->bodies.n; i++)
		vec_push(to->arena, &to->bodies, from->bodies.at[i]);
}

bool sched_is_hoisted(const struct sub_program *p)
{
	return p->inputs.n && p->inputs.at[p->inputs.n - 1].hoisted;
}
