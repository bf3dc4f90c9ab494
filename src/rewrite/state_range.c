/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ranges of states, and of all values given these.
 *
 * Where nothing is assumed of the states that bodies read, a state is in the range of what bodies store in it.  More
 * follows by induction, as a body reads a state only where it was stored before: if bodies keep to some ranges
 * of states whenever the states that they read do, all states are in these ranges.  They are found by trying:
 * the range of a state begins with zero and is joined with what bodies store until nothing grows any more.  A
 * bound that goes on growing is doubled some times, which settles states that converge, and at last given up.
 * Ranges that were found are narrowed to what bodies store, which keeps to them as well.
 *
 * Where numbers are assumed to be finite, rules take from an induction of its own which states are: all are taken to be, and
 * those that bodies may then store infinities or NaNs in are given up, until none is.  Ranges for other passes assume
 * nothing, as the largest number is a poor bound to scale integers by. */
#include "rewrite/rule_engine.h"

#include <float.h>
#include <math.h>

enum {
	DOUBLED = 4,  /* the round from which on bounds that grow are doubled */
	GIVEN_UP = 8, /* those that grow in this one, or later, become infinite */
	ROUNDS = 20,  /* of a fixed point that is not found earlier nothing is known */
	NARROWED = 24 /* rounds of narrowing at most */
};

static const struct rewrite_range anything = {-INFINITY, INFINITY, true}, nothing = {INFINITY, -INFINITY, false};

/* By state: the range of what bodies store if states are in w->states. */
static struct rewrite_range *find_stored(struct rewriter *w)
{
	const struct sub_program *p = w->p;
	struct rewrite_range *range = ARENA_ARRAY(w->arena, struct rewrite_range, p->states.n + 1);
	w->notes.n = 0;
	rewrite_note_of(w, (sub_ref){0});
	for (size_t i = 0; i < p->states.n; i++)
		range[i] = nothing;
	for (size_t b = 0; b < p->bodies.n; b++)
		for (size_t i = 0; i < p->bodies.at[b].stores.n; i++) {
			const struct sub_store *s = &p->bodies.at[b].stores.at[i];
			if (s->to == SUB_TO_STATE)
				range[s->which] = rewrite_join_ranges(range[s->which],
								      w->notes.at[s->value.value.i].fact.range);
		}
	for (size_t i = 0; i < p->states.n; i++)
		if (range[i].low > range[i].high)
			range[i] = anything;
	return range;
}

/* A bound that has to reach `to`, further from zero. */
static double extend_bound(double to, int round)
{
	return round < DOUBLED ? to : round < GIVEN_UP ? 2 * to : copysign(INFINITY, to);
}

/* Joins a range with what is stored; false if it was within the range. */
static bool grow_range(struct rewrite_range *range, const struct rewrite_range *stored, int round)
{
	struct rewrite_range was = *range;
	if (stored->low < was.low)
		range->low = extend_bound(stored->low, round);
	if (stored->high > was.high)
		range->high = extend_bound(stored->high, round);
	range->nan |= stored->nan;
	return range->low < was.low || range->high > was.high || range->nan != was.nan;
}

/* Sets w->states to ranges that bodies keep to if states are in them; false if none are found. */
static bool find_kept(struct rewriter *w)
{
	size_t states = w->p->states.n;
	struct rewrite_range *kept = ARENA_ARRAY(w->arena, struct rewrite_range, states + 1);
	bool grown = true;
	w->states = kept;
	for (int round = 0; round < ROUNDS && grown; round++) {
		const struct rewrite_range *stored = find_stored(w);
		grown = false;
		for (size_t i = 0; i < states; i++)
			grown |= grow_range(&kept[i], &stored[i], round);
	}
	return !grown;
}

static bool is_unbounded(const struct rewrite_range *r)
{
	return isinf(r->low) || isinf(r->high);
}

/* Sets w->states to finite ranges where bodies keep to them, and to anything elsewhere; returns what bodies store
 * then. */
static const struct rewrite_range *find_finite(struct rewriter *w)
{
	size_t states = w->p->states.n;
	struct rewrite_range *taken = ARENA_ARRAY(w->arena, struct rewrite_range, states + 1);
	const struct rewrite_range *stored;
	bool refuted;
	for (size_t i = 0; i < states; i++)
		taken[i] = (struct rewrite_range){-FLT_MAX, FLT_MAX, false};
	w->states = taken;
	do {
		stored = find_stored(w);
		refuted = false;
		for (size_t i = 0; i < states; i++)
			if (!is_unbounded(&taken[i]) && (is_unbounded(&stored[i]) || stored[i].nan)) {
				taken[i] = anything;
				refuted = true;
			}
	} while (refuted);
	return stored;
}

const struct rewrite_range *rewrite_find_state_ranges(const struct sub_program *p,
						      const struct rewrite_options *options, struct arena *a)
{
	struct sub_program read = *p;
	struct rewriter w = {.p = &read, .arena = a, .options = options};
	return options->finite ? find_finite(&w) : find_stored(&w);
}

/* Whether a bound is nearer to zero than another one by more than roundings. */
static bool is_nearer(double bound, double than)
{
	return fabs(bound) < fabs(than) * (1 - 0x1p-12);
}

/* Narrows ranges that bodies keep to. */
static void narrow_states(struct rewriter *w)
{
	bool narrower = true;
	for (int round = 0; round < NARROWED && narrower; round++) {
		const struct rewrite_range *was = w->states, *stored = find_stored(w);
		narrower = false;
		for (size_t i = 0; i < w->p->states.n; i++)
			narrower |=
			    is_nearer(stored[i].low, was[i].low) || is_nearer(stored[i].high, was[i].high);
		w->states = stored;
	}
}

/* Sets w->states to what is known of states. */
static void find_states(struct rewriter *w)
{
	const struct rewrite_range *stored = find_stored(w);
	bool unbounded = false;
	for (size_t i = 0; i < w->p->states.n; i++)
		unbounded |= is_unbounded(&stored[i]);
	if (unbounded && find_kept(w))
		narrow_states(w);
	else
		w->states = stored;
}

const struct rewrite_range *rewrite_find_ranges(const struct sub_program *p,
						const struct rewrite_options *options, struct arena *a)
{
	struct sub_program read = *p;
	struct rewrite_options proved = *options;
	proved.finite = false;
	struct rewriter w = {.p = &read, .arena = a, .options = &proved, .rounded = true};
	struct rewrite_range *range = ARENA_ARRAY(a, struct rewrite_range, p->values.n);
	find_states(&w);
	w.notes.n = 0;
	rewrite_note_of(&w, (sub_ref){0});
	for (size_t i = 1; i < p->values.n; i++)
		range[i] = w.notes.at[i].fact.range;
	return range;
}

/* --- bounds by the number of edges --- */

/* Whether a value reads its argument in its own row and in no other. */
static bool stays_in_row(const struct sub_program *p, const struct sub_value *v)
{
	const struct sub_use *u = &v->arg[0];
	for (int i = 0; i < u->vars; i++)
		if (p->vars.at[sub_at(p, u->value)->var[i]].set != SUB_DIM && !sub_is_identity(&v->map[i]))
			return false;
	return true;
}

static struct rewrite_bound bound_of(const struct sub_program *p, const struct sub_value *v,
				     const struct rewrite_range *range, const struct rewrite_bound *of)
{
	static const struct rewrite_bound none = {INFINITY, false};
	struct rewrite_bound a = v->args > 0 ? of[v->arg[0].value.i] : none,
			     b = v->args > 1 ? of[v->arg[1].value.i] : none;
	if (!is_unbounded(range))
		return (struct rewrite_bound){fmax(fabs(range->low), fabs(range->high)), false};
	switch (v->op) {
	case SUB_SUM:
		return v->reduced.var[0] == p->edge && !a.per_edge ? (struct rewrite_bound){a.most, true} : none;
	case SUB_MULTIPLY:
		return a.per_edge && b.per_edge
			   ? none
			   : (struct rewrite_bound){a.most * b.most, a.per_edge || b.per_edge};
	case SUB_NEG:
	case SUB_NOP:
		return a;
	case SUB_ASSIGN:
		return stays_in_row(p, v) && (!v->fills || v->fill == 0) ? a : none;
	default:
		return none;
	}
}

const struct rewrite_bound *rewrite_find_bounds(const struct sub_program *p,
						const struct rewrite_options *options, struct arena *a)
{
	const struct rewrite_range *range = rewrite_find_ranges(p, options, a);
	struct rewrite_bound *bound = ARENA_ARRAY(a, struct rewrite_bound, p->values.n);
	for (uint32_t i = 1; i < p->values.n; i++)
		bound[i] = bound_of(p, &p->values.at[i], &range[i], bound);
	return bound;
}
