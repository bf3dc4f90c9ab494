/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reorganisations that undo each other.  A mutant ends with one that brings its results into the order of the
 * original, and the next mutant begins with one of its own.  Where only elementwise operators and other moves
 * stand between them,
 *
 *     %12[n,i,x5] = assign %11[n,i,x5%2,x5/2]
 *     %13[n,i,x5] = add %12[n,i,x5], a[i]
 *     %14[n,x10,i,x9] = assign %13[n,i,x10+2*x9]
 *
 * the second one, the root, is composed with everything up to the first one, and their digits vanish:
 *
 *     %12[n,x10,i,x9] = assign %11[n,i,x10,x9]
 *     %13[n,x10,i,x9] = add %12[n,x10,i,x9], a[i]
 *
 * A root cancels if fewer indices are digits afterwards, and no elementwise operator is computed more often:
 * those between are used by nothing but roots that cancel, in the same layout, and a root reads no element
 * twice.  A root that reads a fill never cancels: the operators would be applied to the fill.  Each element
 * is computed by the same operators of the same numbers, so no bit changes. */
#include "mutate/mutant_lines.h"

/* The index along each dimension of a value, of the variables of a root. */
struct placing {
	int n;
	struct sub_map map[SUB_MAX_VARS];
};

struct root {
	sub_ref value;
	bool cancels;
	const struct placing **at; /* by value: what is moved, how it is read; NULL = it is not moved */
	int before, after;	   /* indices that are digits */
};

struct canceller {
	struct sub_program *to;
	const struct sub_program *from;
	sub_ref *now;
	bool *live;
	VEC(struct root) roots;
};

static bool is_elementwise(const struct sub_value *v)
{
	enum sub_class class = sub_class_of(v->op);
	return class == SUB_UNARY || class == SUB_BINARY || class == SUB_TERNARY;
}

static int count_digits(const struct sub_map *map, int n)
{
	int digits = 0;
	for (int i = 0; i < n; i++)
		digits += map[i].function == SUB_DIGIT;
	return digits;
}

static int find_var(const struct sub_value *v, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return i;
	return -1;
}

/* --- placings --- */

static bool is_same_placing(const struct placing *a, const struct placing *b)
{
	for (int i = 0; i < a->n && i < b->n; i++)
		if (!sub_same_map(&a->map[i], &b->map[i]))
			return false;
	return a->n == b->n;
}

/* How an argument of an elementwise operator is read. */
static struct placing place_argument(const struct sub_value *v, int arg, const struct placing *at)
{
	struct placing out = {.n = v->arg[arg].vars};
	for (int i = 0; i < out.n; i++)
		out.map[i] = at->map[find_var(v, v->arg[arg].var[i])];
	return out;
}

static const struct sub_map *find_map(const struct sub_value *v, int var, const struct placing *at)
{
	int i = var < 0 ? -1 : find_var(v, var);
	return i < 0 ? NULL : &at->map[i];
}

/* How the argument of an assign is read, with its maps in the one form of those that compute the same; false
 * if a composition is no map. */
static bool place_moved(const struct sub_program *p, const struct sub_value *v, const struct placing *at,
			struct placing *out)
{
	const struct sub_value *moved = sub_at(p, v->arg[0].value);
	out->n = moved->vars;
	for (int i = 0; i < out->n; i++) {
		const struct sub_map *m = &v->map[i];
		if (!sub_compose_maps(m, find_map(v, m->var, at), m->scale2 ? find_map(v, m->var2, at) : NULL,
				      sub_index_leaves(p, m, moved->var[i]), &out->map[i]))
			return false;
		sub_normalize_map(p, &out->map[i]);
	}
	return true;
}

/* The variables of a root that a placing uses, in their order. */
static void find_used_vars(const struct sub_value *root, const struct placing *at, struct sub_value *out)
{
	out->vars = 0;
	for (int i = 0; i < root->vars; i++) {
		bool used = false;
		for (int k = 0; k < at->n; k++)
			used |= sub_map_uses(&at->map[k], root->var[i]);
		if (used)
			out->var[out->vars++] = root->var[i];
	}
}

/* --- what cancels --- */

static bool note_placing(const struct canceller *c, struct root *r, sub_ref value, const struct placing *at)
{
	struct placing *kept = ARENA_ARRAY(c->to->arena, struct placing, 1);
	*kept = *at;
	r->at[value.i] = kept;
	return true;
}

static bool visit_value(const struct canceller *, struct root *, sub_ref, const struct placing *);

static bool visit_operator(const struct canceller *c, struct root *r, const struct sub_value *v,
			   const struct placing *at)
{
	struct sub_value moved = *v;
	find_used_vars(sub_at(c->from, r->value), at, &moved);
	if (sub_row_elements(c->from, &moved) > sub_row_elements(c->from, v))
		return false;
	for (int k = 0; k < v->args; k++) {
		struct placing argument = place_argument(v, k, at);
		if (!visit_value(c, r, v->arg[k].value, &argument))
			return false;
	}
	return true;
}

/* Follows a value that a root reads to what stays where it is; false if the root cannot cancel. */
static bool visit_value(const struct canceller *c, struct root *r, sub_ref value, const struct placing *at)
{
	const struct sub_value *v = sub_at(c->from, value);
	struct placing moved;
	if (r->at[value.i])
		return is_same_placing(r->at[value.i], at);
	if (is_elementwise(v))
		return note_placing(c, r, value, at) && visit_operator(c, r, v, at);
	if (v->op != SUB_ASSIGN || !place_moved(c->from, v, at, &moved)) {
		r->after += count_digits(at->map, at->n);
		return true;
	}
	note_placing(c, r, value, at);
	r->before += count_digits(v->map, moved.n);
	if (!v->fills)
		return visit_value(c, r, v->arg[0].value, &moved);
	r->after += count_digits(moved.map, moved.n);
	return true;
}

/* How a root reads its argument. */
static struct placing place_root(const struct sub_program *p, const struct sub_value *v)
{
	struct placing at = {.n = sub_at(p, v->arg[0].value)->vars};
	for (int i = 0; i < at.n; i++)
		at.map[i] = v->map[i];
	return at;
}

/* Whether what a root moves is read in the same way by the roots before it. */
static bool agrees_with_others(const struct canceller *c, const struct root *r)
{
	for (size_t k = 0; k < c->roots.n; k++)
		for (uint32_t i = 1; i < c->from->values.n; i++)
			if (r->at[i] && c->roots.at[k].at[i] &&
			    !is_same_placing(r->at[i], c->roots.at[k].at[i]))
				return false;
	return true;
}

static void find_roots(struct canceller *c)
{
	const struct sub_program *p = c->from;
	const struct placing **spare = NULL; /* of a root that does not cancel */
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		if (!c->live[i] || v->op != SUB_ASSIGN || v->fills ||
		    sub_row_elements(p, v) > sub_row_elements(p, sub_at(p, v->arg[0].value)))
			continue;
		struct root r = {.value = {i}, .cancels = true};
		struct placing at = place_root(p, v);
		r.at = spare ? spare : ARENA_ARRAY(c->to->arena, const struct placing *, p->values.n);
		spare = NULL;
		r.before = count_digits(at.map, at.n);
		if (visit_value(c, &r, v->arg[0].value, &at) && r.after < r.before &&
		    agrees_with_others(c, &r))
			vec_push(c->to->arena, &c->roots, r);
		else
			spare = memset(r.at, 0, p->values.n * sizeof *r.at);
	}
}

/* By value: whether a root that cancels is the value, or moves it. */
static bool *find_moved(const struct canceller *c)
{
	bool *moved = ARENA_ARRAY(c->to->arena, bool, c->from->values.n);
	for (size_t k = 0; k < c->roots.n; k++) {
		const struct root *r = &c->roots.at[k];
		for (uint32_t i = 1; r->cancels && i < c->from->values.n; i++)
			moved[i] |= r->at[i] || i == r->value.i;
	}
	return moved;
}

/* Marks what a root that cancels reads where it is, as is all that a move with a fill reads. */
static void mark_read_in_place(const struct canceller *c, const struct root *r, bool *used)
{
	for (uint32_t i = 1; i < c->from->values.n; i++) {
		const struct sub_value *v = &c->from->values.at[i];
		for (int k = 0; (r->at[i] || i == r->value.i) && k < v->args; k++)
			used[v->arg[k].value.i] |= v->fills || !r->at[v->arg[k].value.i];
	}
}

/* By value: whether it is used in its old place: by anything that is not moved, or by a root. */
static bool *find_used_elsewhere(const struct canceller *c, const bool *moved)
{
	bool *used = ARENA_ARRAY(c->to->arena, bool, c->from->values.n);
	for (uint32_t i = 1; i < c->from->values.n; i++)
		for (int k = 0; c->live[i] && !moved[i] && k < c->from->values.at[i].args; k++)
			used[c->from->values.at[i].arg[k].value.i] = true;
	for (size_t b = 0; b < c->from->bodies.n; b++)
		for (size_t s = 0; s < c->from->bodies.at[b].stores.n; s++)
			used[c->from->bodies.at[b].stores.at[s].value.value.i] = true;
	for (size_t k = 0; k < c->roots.n; k++)
		if (c->roots.at[k].cancels)
			mark_read_in_place(c, &c->roots.at[k], used);
	return used;
}

/* Whether a root moves an elementwise operator that would be computed in its old place as well. */
static bool computes_twice(const struct canceller *c, const struct root *r, const bool *used)
{
	bool *computed = ARENA_ARRAY(c->to->arena, bool, c->from->values.n);
	for (uint32_t i = 1; i < c->from->values.n; i++) {
		const struct sub_value *v = &c->from->values.at[i];
		computed[i] = r->at[i] && (v->op != SUB_ASSIGN || computed[v->arg[0].value.i]);
		if (computed[i] && used[i])
			return true;
	}
	return false;
}

static const struct root *find_root(const struct canceller *c, uint32_t value)
{
	for (size_t k = 0; k < c->roots.n; k++)
		if (c->roots.at[k].value.i == value && c->roots.at[k].cancels)
			return &c->roots.at[k];
	return NULL;
}

/* By value that is moved: whether its old form is needed as well, for others than roots that cancel. */
static bool *find_staying(const struct canceller *c, const bool *used)
{
	bool *stays = ARENA_ARRAY(c->to->arena, bool, c->from->values.n);
	for (uint32_t i = (uint32_t)c->from->values.n - 1; i > 0; i--) {
		const struct sub_value *v = &c->from->values.at[i];
		stays[i] |= used[i];
		for (int k = 0; stays[i] && !find_root(c, i) && k < v->args; k++)
			stays[v->arg[k].value.i] = true;
	}
	return stays;
}

/* Counts the digits that vanish with a root: its own, and those of moves that do not stay and vanish with no
 * root before it. */
static int claim_digits(const struct canceller *c, const struct root *r, const bool *stays, bool *claimed)
{
	int digits = 0;
	for (uint32_t i = 1; i < c->from->values.n; i++) {
		const struct sub_value *v = &c->from->values.at[i];
		bool vanishes = i == r->value.i || (r->at[i] && v->op == SUB_ASSIGN && !stays[i]);
		if (vanishes && !claimed[i])
			digits += count_digits(v->map, sub_at(c->from, v->arg[0].value)->vars);
		claimed[i] |= vanishes;
	}
	return digits;
}

/* Gives up a root that does not pay among those that cancel; false if there is none. */
static bool drop_root(struct canceller *c)
{
	const bool *used = find_used_elsewhere(c, find_moved(c)), *stays = find_staying(c, used);
	bool *claimed = ARENA_ARRAY(c->to->arena, bool, c->from->values.n);
	for (size_t k = 0; k < c->roots.n; k++) {
		struct root *r = &c->roots.at[k];
		if (r->cancels && (computes_twice(c, r, used) ||
				   (used[r->value.i] && claim_digits(c, r, stays, claimed) <= r->after))) {
			r->cancels = false;
			return true;
		}
	}
	return false;
}

/* A root that is given up leaves what it moved where it was, which others may then compute twice. */
static void drop_roots(struct canceller *c)
{
	while (drop_root(c))
		;
}

/* --- the values that are moved --- */

struct builder {
	struct canceller *c;
	const struct root *root;
	const struct sub_value *whole; /* the value of the root */
	struct sub_use *built;	       /* by value that is moved, under the root's names */
};

static struct sub_use build_value(struct builder *, sub_ref, const struct placing *);

/* Whether a placing only names dimensions, in the order of the root's variables. */
static bool is_naming(const struct builder *b, const struct sub_value *v, const struct placing *at)
{
	for (int i = 0, last = -1; i < at->n; i++) {
		int var = at->map[i].var;
		if (!sub_is_identity(&at->map[i]) || !sub_same_range(b->c->to, var, v->var[i]) ||
		    find_var(b->whole, var) <= last)
			return false;
		last = find_var(b->whole, var);
	}
	return true;
}

/* Reads a value that stays where it is; `like`: an assign whose fill is read as well, or NULL. */
static struct sub_use read_in_place(struct builder *b, sub_ref value, const struct placing *at,
				    const struct sub_value *like)
{
	struct sub_program *p = b->c->to;
	struct sub_use as_is = sub_as_is(p, b->c->now[value.i]);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {as_is}, .map = at->map};
	if (!like && is_naming(b, sub_at(p, as_is.value), at)) {
		for (int i = 0; i < at->n; i++)
			as_is.var[i] = at->map[i].var;
		return as_is;
	}
	v.fills = like;
	v.fill = like ? like->fill : 0;
	find_used_vars(b->whole, at, &v);
	return sub_as_is(p, sub_add(p, v, NULL));
}

static struct sub_use build_operator(struct builder *b, const struct sub_value *from,
				     const struct placing *at)
{
	struct sub_value v = *from;
	for (int k = 0; k < v.args; k++) {
		struct placing argument = place_argument(from, k, at);
		v.arg[k] = build_value(b, from->arg[k].value, &argument);
		if (!v.arg[k].value.i)
			return v.arg[k];
	}
	return sub_as_is(b->c->to, sub_add(b->c->to, v, NULL));
}

static struct sub_use build_move(struct builder *b, const struct sub_value *v, const struct placing *at)
{
	struct placing moved;
	place_moved(b->c->from, v, at, &moved);
	return v->fills ? read_in_place(b, v->arg[0].value, &moved, v)
			: build_value(b, v->arg[0].value, &moved);
}

/* A value as its root reads it; none if it cannot be built. */
static struct sub_use build_value(struct builder *b, sub_ref value, const struct placing *at)
{
	const struct sub_value *v = sub_at(b->c->from, value);
	if (!b->root->at[value.i])
		return read_in_place(b, value, at, NULL);
	if (!b->built[value.i].value.i)
		b->built[value.i] = v->op == SUB_ASSIGN ? build_move(b, v, at) : build_operator(b, v, at);
	return b->built[value.i];
}

/* What stands in place of a root; none if it cannot be built. */
static sub_ref build_root(struct canceller *c, const struct root *r)
{
	const struct sub_value *whole = sub_at(c->from, r->value);
	struct builder b = {.c = c,
			    .root = r,
			    .whole = whole,
			    .built = ARENA_ARRAY(c->to->arena, struct sub_use, c->from->values.n)};
	struct placing at = place_root(c->from, whole);
	struct sub_use u = build_value(&b, whole->arg[0].value, &at);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = *whole;
	if (!u.value.i)
		return u.value;
	v.arg[0] = u;
	v.map = map;
	bool same = u.vars == whole->vars;
	for (int i = 0; i < u.vars; i++) {
		same &= u.var[i] == whole->var[i] && u.var[i] == sub_at(c->to, u.value)->var[i];
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = u.var[i], .scale = 1};
	}
	return same ? u.value : sub_add(c->to, v, NULL);
}

/* --- the program --- */

static sub_ref copy_value(struct canceller *c, uint32_t i)
{
	struct sub_value v = c->from->values.at[i];
	const struct root *r = find_root(c, i);
	sub_ref cancelled = r ? build_root(c, r) : (sub_ref){0};
	for (int k = 0; k < v.args; k++)
		v.arg[k].value = c->now[v.arg[k].value.i];
	return cancelled.i ? cancelled : sub_add(c->to, v, NULL);
}

void mutate_cancel_moves(struct sub_program *to, const struct sub_program *from)
{
	struct canceller c = {.to = to, .from = from};
	c.now = ARENA_ARRAY(to->arena, sub_ref, from->values.n);
	c.live = ARENA_ARRAY(to->arena, bool, from->values.n);
	for (size_t b = 0; b < from->bodies.n; b++)
		sub_mark_live(from, &from->bodies.at[b], c.live);
	sub_copy_declarations(to, from);
	find_roots(&c);
	drop_roots(&c);
	for (uint32_t i = 1; i < from->values.n; i++)
		c.now[i] = copy_value(&c, i);
	for (size_t b = 0; b < from->bodies.n; b++)
		vec_push(to->arena, &to->bodies, sub_map_body(to->arena, &from->bodies.at[b], c.now));
}
