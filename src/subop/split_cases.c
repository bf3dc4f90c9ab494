/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Splitting cases, as a schedule requests:
 *
 *     case inner: inner                       case inner.children2: inner, children 2
 *     body inner                       ->     case inner: inner
 *       ...                                   body inner.children2
 *                                               ...
 *                                             body inner
 *                                               ...
 *
 * The copies of a body compute the same, so no bit changes; but their loops over children have a known number
 * of iterations.  If a traversal goes down, a case of the model is two, `inner.root` and `inner.below`. */
#include "subop/subop.h"

#include <string.h>

/* --- cases --- */

/* NULL = the model has no case of this name. */
static struct sub_named_case *find_named(const struct sub_program *p, const char *name)
{
	for (size_t i = 0; i < p->named.n; i++)
		if (strcmp(p->named.at[i].name, name) == 0)
			return &p->named.at[i];
	return NULL;
}

/* Whether a case of the program was made of a case of the model. */
static bool is_part_of(const struct sub_program *p, size_t c, const char *base)
{
	return find_named(p, base)->cases >> c & 1;
}

/* What every node of a case of the model fulfils. */
static struct image_case find_known_case(const struct sub_program *p, const char *base)
{
	const struct sub_named_case *k = find_named(p, base);
	return k->cases ? p->cases.at[__builtin_ctz(k->cases)]
			: (struct image_case){.inner = k != &p->named.at[RA_LEAF], .children = -1};
}

const char *sub_check_split_base(const struct sub_program *p, const char *base)
{
	return find_named(p, base) ? NULL : "the model has no case of this name";
}

/* --- conditions --- */

const char *sub_check_split_children(const struct sub_program *p, const struct sub_split *s)
{
	struct image_case known = find_known_case(p, s->base);
	return !known.inner	  ? "is asked of a leaf, which has none"
	       : p->children >= 0 ? "has one answer for all inner nodes of this structure"
	       : known.children >= 0 || s->children >= 0 ? "is asked twice: nodes have one number of children"
							 : NULL;
}

static bool has_match(const struct image_match *match, size_t n, size_t input)
{
	for (size_t i = 0; i < n; i++)
		if ((size_t)match[i].input == input)
			return true;
	return false;
}

static bool is_read(const struct sub_program *p, const struct sub_body *b, size_t input)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n), found = false;
	sub_mark_live(p, b, live);
	for (size_t i = 1; i < p->values.n && !found; i++) {
		const struct sub_value *v = &p->values.at[i];
		found = live[i] && v->op == SUB_ASSIGN && v->arg[0].vars && v->map[0].function == SUB_TOKEN &&
			(size_t)v->map[0].which == input;
	}
	return found;
}

/* Whether nodes of a case carry an input: they do if it distinguishes cases of such nodes, or if their body
 * reads it. A schedule may not require inputs that the program does not. */
static bool carries_input(const struct sub_program *p, const char *base, size_t input)
{
	bool inner = find_known_case(p, base).inner;
	unsigned cases = find_named(p, base)->cases, first = cases & -cases;
	for (size_t i = 0; i < p->cases.n; i++)
		if (p->cases.at[i].inner == inner &&
		    has_match(p->cases.at[i].match, p->cases.at[i].matches, input))
			return true;
	for (size_t i = 0; i < p->bodies.n; i++) {
		const struct sub_body *b = &p->bodies.at[i];
		bool of = b->cases
			      ? b->cases & first
			      : b->domain == SUB_EVERY_NODE || b->domain == (inner ? SUB_INNER : SUB_LEAF);
		if (of && is_read(p, b, input))
			return true;
	}
	return false;
}

const char *sub_check_split_token(const struct sub_program *p, const struct sub_split *s, size_t input)
{
	struct image_case known = find_known_case(p, s->base);
	if (input >= p->inputs.n || !p->inputs.at[input].token || p->inputs.at[input].on_edge)
		return "is not an input that is a token of nodes";
	if (has_match(known.match, known.matches, input) || has_match(s->match.at, s->match.n, input))
		return "is asked twice: a node has one value of it";
	return carries_input(p, s->base, input) ? NULL : "no node of the case needs to carry it";
}

/* --- the new case --- */

/* Appends the conditions of a split, as .children2.tag3, to the name of its case. */
static void append_suffix(const struct sub_program *p, const struct sub_split *s, struct str *to)
{
	if (s->children >= 0)
		str_printf(to, ".children%d", s->children);
	for (size_t i = 0; i < s->match.n; i++)
		str_printf(to, ".%s%d", p->inputs.at[s->match.at[i].input].name, s->match.at[i].value);
}

/* The case that a split makes of a case of the program; its name begins with that of the model's case. */
static struct image_case new_case(const struct sub_program *p, const struct sub_split *s,
				  const struct image_case *of)
{
	struct image_case k = *of;
	struct image_match *match = ARENA_ARRAY(p->arena, struct image_match, of->matches + s->match.n);
	struct str name = str_in(p->arena);
	str_puts(&name, s->base);
	append_suffix(p, s, &name);
	str_puts(&name, of->name + strlen(s->base));
	for (int i = 0; i < of->matches; i++)
		match[i] = of->match[i];
	for (size_t i = 0; i < s->match.n; i++)
		match[of->matches + i] = s->match.at[i];
	k.name = sub_find_free_name(p, SUB_NAME_CASE, str_text(&name));
	k.children = s->children >= 0 ? s->children : of->children;
	k.match = match;
	k.matches = of->matches + s->match.n;
	return k;
}

/* Whether all nodes of a case `of` fit case `k`, too. */
static bool covers_case(const struct image_case *k, const struct image_case *of)
{
	bool all = k->inner == of->inner && (k->parent == IMAGE_EITHER || k->parent == of->parent) &&
		   (k->children < 0 || k->children == of->children);
	for (int i = 0; all && i < k->matches; i++) {
		bool found = false;
		for (int j = 0; j < of->matches; j++)
			found |= of->match[j].input == k->match[i].input &&
				 of->match[j].value == k->match[i].value;
		all = found;
	}
	return all;
}

static unsigned shift_mask(unsigned mask, size_t at)
{
	unsigned low = mask & ((1u << at) - 1);
	return low | (mask ^ low) << 1;
}

/* Updates all masks after a case was inserted at `at`. */
static void shift_masks(struct sub_program *p, size_t at)
{
	for (size_t b = 0; b < p->bodies.n; b++)
		p->bodies.at[b].cases = shift_mask(p->bodies.at[b].cases, at);
	for (size_t i = 0; i < p->named.n; i++)
		p->named.at[i].cases = shift_mask(p->named.at[i].cases, at);
}

static void insert_case(struct sub_program *p, size_t at, struct image_case k)
{
	vec_push(p->arena, &p->cases, k);
	for (size_t i = p->cases.n - 1; i > at; i--)
		p->cases.at[i] = p->cases.at[i - 1];
	p->cases.at[at] = k;
	shift_masks(p, at);
}

/* Declares leaf and inner as the cases of a program that has none. */
static void declare_cases(struct sub_program *p)
{
	vec_push(p->arena, &p->cases, (struct image_case){.name = "leaf", .children = -1});
	vec_push(p->arena, &p->cases, (struct image_case){.name = "inner", .inner = true, .children = -1});
	for (int base = RA_LEAF; base <= RA_INNER; base++)
		p->named.at[base].cases = 1u << base;
	for (size_t b = 0; b < p->bodies.n; b++)
		if (sub_is_recursive(&p->bodies.at[b]))
			p->bodies.at[b].cases = p->bodies.at[b].domain == SUB_LEAF ? 1 : 2;
}

/* --- its bodies --- */

/* The name of a new body, as inner2.children2 in the second traversal. */
static const char *body_name(const struct sub_program *p, const struct sub_split *s, int traversal)
{
	struct str name = str_in(p->arena);
	str_puts(&name, s->base);
	if (traversal)
		str_printf(&name, "%d", traversal + 1);
	append_suffix(p, s, &name);
	return sub_find_free_name(p, SUB_NAME_BODY, str_text(&name));
}

/* Inserts a copy of a body, for the new cases, after it. */
static void insert_body(struct sub_program *p, const struct sub_split *s, size_t at, unsigned cases)
{
	struct sub_body copy = sub_body_like(&p->bodies.at[at]);
	copy.name = body_name(p, s, copy.traversal);
	copy.cases = cases;
	for (size_t i = 0; i < p->bodies.at[at].stores.n; i++)
		vec_push(p->arena, &copy.stores, p->bodies.at[at].stores.at[i]);
	vec_push(p->arena, &p->bodies, copy);
	for (size_t i = p->bodies.n - 1; i > at + 1; i--)
		p->bodies.at[i] = p->bodies.at[i - 1];
	p->bodies.at[at + 1] = copy;
}

/* Gives the new cases bodies.  Bodies of a traversal down only depend on whether there is a parent, so they
 * cover them. */
static void split_bodies(struct sub_program *p, const struct sub_split *s, unsigned bases, unsigned cases)
{
	for (size_t b = p->bodies.n; b-- > 0;) {
		struct sub_body *body = &p->bodies.at[b];
		if (body->domain == SUB_TOP || body->domain == SUB_BELOW)
			body->cases |= (body->cases & bases) >> 1;
		else if (body->cases & bases)
			insert_body(p, s, b, cases);
	}
}

int sub_children_of(const struct sub_program *p, const struct sub_body *b)
{
	int n = -1;
	for (size_t c = 0; c < p->cases.n; c++)
		if (b->cases >> c & 1) {
			if (p->cases.at[c].children < 0 || (n >= 0 && n != p->cases.at[c].children))
				return -1;
			n = p->cases.at[c].children;
		}
	return n;
}

static const char *problem_of(const struct sub_program *p, const struct sub_split *s)
{
	size_t made = 0;
	for (size_t c = 0; c < p->cases.n; c++) {
		if (!is_part_of(p, c, s->base))
			continue;
		struct image_case k = new_case(p, s, &p->cases.at[c]);
		made++;
		for (size_t i = 0; i < c; i++)
			if (covers_case(&p->cases.at[i], &k))
				return "no node is of the new case: one before it takes them all";
	}
	return p->cases.n + made > IMAGE_MAX_CASES ? "there are too many cases" : NULL;
}

const char *sub_split_case(struct sub_program *p, const struct sub_split *s)
{
	unsigned cases = 0;
	if (!p->cases.n)
		declare_cases(p);
	const char *problem = problem_of(p, s);
	if (problem)
		return problem;
	for (size_t c = 0; c < p->cases.n; c++)
		if (is_part_of(p, c, s->base)) {
			insert_case(p, c, new_case(p, s, &p->cases.at[c]));
			cases |= 1u << c++;
		}
	split_bodies(p, s, find_named(p, s->base)->cases, cases);
	vec_push(p->arena, &p->splits, *s);
	return NULL;
}
