/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The mutants that a schedule chooses, in place of the values that they are of, line after line: a name stands for what the lines
 * before have put in the value's place.  Each mutant is proved and corrected anew: its line says only what is done.
 *
 * Values are copied in their order, but that those of one mutant come together, behind the operands of all of them. */
#include "mutate/mutant_lines.h"

struct application {
	struct sub_program *to;
	const struct sub_program *from;
	bool exact;
	sub_ref *now; /* by value: its copy, or what stands in its place */
	const struct mutate_choice *choice;
	struct mutate_regroup r; /* its values in `from` */
	const char *why; /* NULL = nothing is wrong so far */
};

/* --- names --- */

/* The value of a name BODY.vN; none if no body computes it. */
static sub_ref find_named(const struct sub_program *p, const struct mutate_name *name)
{
	for (size_t b = 0; b < p->bodies.n; b++) {
		bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
		sub_mark_live(p, &p->bodies.at[b], live);
		for (uint32_t i = 1; i < p->values.n; i++) {
			struct str s = str_in(p->arena);
			if (!live[i])
				continue;
			str_printf(&s, "%s.v%u", p->bodies.at[b].name, i);
			if (s.n == (size_t)name->length && memcmp(s.text, name->text, s.n) == 0)
				return (sub_ref){i};
		}
	}
	return (sub_ref){0};
}

/* --- one line --- */

static void emit_value(struct application *, sub_ref);

/* Copies a value as it is, behind its arguments. */
static sub_ref copy_value(struct application *a, sub_ref r)
{
	struct sub_value v = *sub_at(a->from, r);
	for (int k = 0; k < v.args; k++) {
		emit_value(a, v.arg[k].value);
		v.arg[k].value = a->now[v.arg[k].value.i];
	}
	if (a->why)
		return (sub_ref){0};
	return sub_add(a->to, v, NULL);
}

static void replace_value(struct application *a)
{
	struct mutate_mutant m = {.layout = a->choice->layout};
	struct mutate_site site;
	sub_ref original = copy_value(a, a->r.value[0]), corrected = original;
	a->now[a->r.value[0].i] = original;
	if (!a->why)
		a->why = mutate_find_site(a->to, original, &site) ? mutate_make(a->to, &site, a->exact, &m, &corrected)
								 : "it is no sum of products with windows of an image";
	if (!a->why)
		a->now[a->r.value[0].i] = corrected;
}

static void replace_values(struct application *a)
{
	struct mutate_regroup copied = a->r;
	struct mutate_products m;
	sub_ref now[MUTATE_MAX_JOINED];
	int replaced = mutate_count_replaced(&a->r);
	for (int k = 0; k < a->r.n && !a->why; k++) {
		if (k >= replaced)
			emit_value(a, a->r.value[k]);
		copied.value[k] = k < replaced ? copy_value(a, a->r.value[k]) : a->now[a->r.value[k].i];
	}
	if (a->why)
		return;
	struct mutate_form *forms = ARENA_ARRAY(a->to->arena, struct mutate_form, a->to->values.n + MUTATE_ROOM);
	a->why = mutate_make_products(a->to, &copied, a->exact, MUTATE_ROUNDS, forms, &m, now);
	for (int k = 0; k < replaced && !a->why; k++)
		a->now[a->r.value[k].i] = now[k];
}

static bool is_replaced(const struct application *a, sub_ref r)
{
	for (int k = 0; k < mutate_count_replaced(&a->r); k++)
		if (a->r.value[k].i == r.i)
			return true;
	return false;
}

static void emit_value(struct application *a, sub_ref r)
{
	if (a->now[r.i].i || a->why || !r.i)
		return;
	if (!is_replaced(a, r))
		a->now[r.i] = copy_value(a, r);
	else if (a->r.op)
		replace_values(a);
	else
		replace_value(a);
}

/* Makes the program of one line; its values are independent (mutate_refuse_regroup), so that each is copied once. */
static const char *apply_choice(struct application *a)
{
	struct mutate_relations relations = mutate_relate_values(a->from);
	if (a->r.op)
		a->why = mutate_refuse_regroup(&relations, &a->r);
	a->now = ARENA_ARRAY(a->to->arena, sub_ref, a->from->values.n);
	sub_copy_declarations(a->to, a->from);
	for (uint32_t i = 1; i < a->from->values.n && !a->why; i++)
		emit_value(a, (sub_ref){i});
	for (size_t b = 0; b < a->from->bodies.n && !a->why; b++)
		vec_push(a->to->arena, &a->to->bodies, sub_map_body(a->to->arena, &a->from->bodies.at[b], a->now));
	return a->why;
}

/* --- all lines --- */

/* What stands in place of a line's values. */
static const char *find_values(const struct sub_program *p, const struct mutate_choice *c, const sub_ref *now, struct mutate_regroup *r)
{
	*r = c->regroup;
	for (r->n = 0; r->n <= c->others; r->n++) {
		sub_ref named = find_named(p, r->n ? &c->other[r->n - 1] : &c->value);
		if (!named.i)
			return "the program computes no value of this name";
		r->value[r->n] = now[named.i];
	}
	return NULL;
}

const char *mutate_apply(struct sub_program *to, const struct sub_program *from, const struct mutate_choice *choice, int n,
			 bool exact, sub_ref *now, int *wrong)
{
	struct sub_program *step = ARENA_ARRAY(to->arena, struct sub_program, n + 1);
	const struct sub_program *before = from;
	for (uint32_t i = 0; i < from->values.n; i++)
		now[i].i = i;
	for (*wrong = 0; *wrong < n; ++*wrong) {
		bool last = *wrong == n - 1;
		struct application a = {.to = last ? to : &step[*wrong], .from = before, .exact = exact, .choice = &choice[*wrong]};
		if (!last)
			sub_init(a.to, to->arena, from->name);
		const char *why = find_values(from, a.choice, now, &a.r);
		why = why ? why : apply_choice(&a);
		if (why)
			return why;
		for (uint32_t i = 0; i < from->values.n; i++)
			now[i] = a.now[now[i].i];
		before = a.to;
	}
	return NULL;
}
