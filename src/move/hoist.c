/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Hoisting: computes products of node inputs and weights for all nodes before the recursion starts.  Each
 * traversal is a recursion of its own; for a later one, the states of earlier traversals are node inputs,
 * too.
 *
 * A value that needs no state is the same whenever it is computed.  Inside the recursion its weights are
 * read again at each level, for as few rows as the level has; before it, one step computes the value for
 * all nodes.  It becomes an input that a body of its own computes, and the recursion reads it node by
 * node.
 *
 * Of a sum that needs states, the beginning is hoisted: a chain is written with the terms that need no
 * state first (rewrite/contract.c), and each step of it is a value.  So no bit changes, wherever a value
 * is computed. */
#include "move/moved_program.h"

#include <stdio.h>

/* A value of the old program that is hoisted. */
struct hoisted_value {
	sub_ref value;
	int input;
	bool at_leaf;	  /* the bodies that the recursion begins with read it, too */
	bool not_at_leaf; /* some of those do not read it, so none may */
	unsigned readers; /* a mask of the other bodies that read it */
};

/* A body of the recursion, and the hoisted values that it reads. */
struct reader {
	const struct sub_body *body;
	struct sub_values values;
	bool *seen;
	int *hoisted_of;      /* by value of the old program: its number in `hoisted` + 1 */
	sub_ref *now;	      /* by value: its counterpart in the new program */
	struct sub_body made; /* the body of the new program */
};

struct hoisting {
	struct arena *arena;
	const struct sub_program *from;
	struct sub_program *to; /* has the same values under the same numbers, then new ones */
	enum move_extent how;
	int traversal;
	const bool *recursive;
	const double *work; /* by value, see move_count_products */
	bool *excluded;	    /* by value: not hoisted, because not all inner nodes need it */
	VEC(struct hoisted_value) hoisted;
	VEC(struct reader) first, readers; /* bodies that the recursion begins with, and the others */
	struct reader *in;		   /* the current one */
};

static const struct sub_value *value_of(const struct hoisting *h, sub_ref r)
{
	return sub_at(h->from, r);
}

/* --- profitability --- */

static bool is_profitable(const struct hoisting *h, double work, const struct sub_value *v)
{
	double least = h->how == MOVE_ALL ? 0 : MOVE_LEAST_WORK * sub_row_elements(h->from, v);
	return work > 0 && work >= least;
}

/* --- which values are hoisted --- */

/* Declares a value as an input of the new program. */
static int add_hoisted(struct hoisting *h, sub_ref r)
{
	const struct sub_value *v = sub_at(h->to, r);
	struct sub_input in = {.name = move_hoist_name(h->to), .hoisted = true};
	in.row = (struct sub_tensor){.name = in.name, .dtype = v->dtype, .rank = v->vars - 1};
	for (int d = 0; d < in.row.rank; d++) {
		in.row.var[d] = v->var[d + 1];
		in.row.shape[d] = h->to->vars.at[v->var[d + 1]].extent;
	}
	vec_push(h->arena, &h->to->inputs, in);
	vec_push(h->arena, &h->hoisted, (struct hoisted_value){.value = r, .input = h->to->inputs.n - 1});
	return h->hoisted.n;
}

/* A value that several bodies need is hoisted once. */
static int find_or_add_hoisted(struct hoisting *h, sub_ref r)
{
	size_t i = 0;
	while (i < h->hoisted.n && h->hoisted.at[i].value.i != r.i)
		i++;
	int number = i < h->hoisted.n ? (int)i + 1 : add_hoisted(h, r);
	h->hoisted.at[number - 1].readers |= 1u << (h->in - h->readers.at);
	return number;
}

/* Whether a value can be an input: it has a row per node and is more than an index into a stored value. */
static bool can_be_stored(const struct hoisting *h, sub_ref r)
{
	const struct sub_value *v = value_of(h, r);
	enum sub_class class = sub_class_of(v->op);
	return class != SUB_SOURCE && class != SUB_MOVE && v->var[0] == h->from->node &&
	       v->vars - 1 <= TENSOR_MAX_RANK;
}

/* Hoists a value that needs no state, used by one that does; else its operands. */
static void select_value(struct hoisting *h, sub_ref r)
{
	const struct sub_value *v = value_of(h, r);
	if (h->in->seen[r.i] || h->recursive[r.i] || !sub_has_leading_dim(h->from, r) || !h->work[r.i])
		return;
	h->in->seen[r.i] = true;
	if (can_be_stored(h, r) && is_profitable(h, h->work[r.i], v) && !h->excluded[r.i]) {
		h->in->hoisted_of[r.i] = find_or_add_hoisted(h, r);
		return;
	}
	for (int a = 0; a < v->args; a++)
		select_value(h, v->arg[a].value);
}

static void select_of_reader(struct hoisting *h)
{
	const struct sub_body *b = h->in->body;
	h->in->seen = ARENA_ARRAY(h->arena, bool, h->from->values.n);
	h->in->hoisted_of = ARENA_ARRAY(h->arena, int, h->from->values.n);
	for (int i = 0; i < h->in->values.n; i++) {
		const struct sub_value *v = value_of(h, h->in->values.value[i]);
		for (int a = 0; h->recursive[h->in->values.value[i].i] && a < v->args; a++)
			select_value(h, v->arg[a].value);
	}
	for (size_t i = 0; i < b->stores.n; i++)
		select_value(h, b->stores.at[i].value.value);
}

/* Excludes values that inner nodes of some cases do not need: those nodes need not have the inputs that
 * the value is computed from. */
static bool exclude_values(struct hoisting *h)
{
	bool any = false;
	for (size_t i = 0; i < h->hoisted.n; i++)
		if (h->hoisted.at[i].readers != (1u << h->readers.n) - 1)
			any = h->excluded[h->hoisted.at[i].value.i] = true;
	return any;
}

/* Repeats the selection until all inner nodes need each hoisted value. */
static void select_values(struct hoisting *h)
{
	size_t inputs = h->from->inputs.n;
	move_copy_program(h->to, h->from);
	do {
		h->to->inputs.n = inputs;
		h->hoisted.n = 0;
		for (h->in = h->readers.at; h->in < h->readers.at + h->readers.n; h->in++)
			select_of_reader(h);
	} while (exclude_values(h));
}

/* --- the bodies of the recursion --- */

static sub_ref read_hoisted(struct hoisting *h, const struct hoisted_value *moved)
{
	const struct sub_value *v = sub_at(h->to, moved->value);
	struct sub_value in = {.op = SUB_VECTOR, .which = moved->input, .vars = v->vars};
	memcpy(in.var, v->var, sizeof in.var);
	return sub_add(h->to, in, NULL);
}

static sub_ref copy_value(struct hoisting *h, sub_ref r)
{
	struct sub_value v = *value_of(h, r);
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = h->in->now[v.arg[a].value.i];
	return sub_add(h->to, v, NULL);
}

/* The hoisted value that the body reads for `r`; NULL = the body computes it. */
static const struct hoisted_value *find_hoisted(const struct hoisting *h, sub_ref r, bool leaf)
{
	int number = h->in->hoisted_of[r.i];
	const struct hoisted_value *moved = number ? &h->hoisted.at[number - 1] : NULL;
	return moved && !(leaf && moved->not_at_leaf) ? moved : NULL;
}

static sub_ref rewrite_value(struct hoisting *h, sub_ref r, bool leaf)
{
	const struct hoisted_value *moved = find_hoisted(h, r, leaf);
	return moved ? read_hoisted(h, moved) : copy_value(h, r);
}

/* Whether the recursion begins with the body. */
static bool begins_recursion(const struct sub_body *b)
{
	return b->domain == SUB_LEAF || b->domain == SUB_TOP;
}

static void rewrite_body(struct hoisting *h, struct reader *in)
{
	const struct sub_body *b = in->body;
	h->in = in;
	in->now = ARENA_ARRAY(h->arena, sub_ref, h->from->values.n);
	for (int i = 0; i < h->in->values.n; i++)
		h->in->now[h->in->values.value[i].i] =
		    rewrite_value(h, h->in->values.value[i], begins_recursion(b));
	in->made = sub_map_body(h->arena, b, in->now);
}

/* --- the new program --- */

static int count_first(struct hoisting *h, const struct hoisted_value *moved)
{
	int n = 0;
	for (size_t i = 0; i < h->first.n; i++) {
		bool *live = ARENA_ARRAY(h->arena, bool, h->to->values.n);
		sub_ref read = read_hoisted(h, moved);
		sub_mark_live(h->to, &h->first.at[i].made, live);
		n += live[read.i];
	}
	return n;
}

/* Finds the hoisted values that the first bodies read; true if they must be rewritten, because some of
 * them do not read a value.  Nodes below the top are no range of rows: values that only they read are
 * computed for all nodes. */
static bool mark_read_at_leaf(struct hoisting *h)
{
	bool back = false;
	for (size_t i = 0; i < h->hoisted.n; i++) {
		struct hoisted_value *moved = &h->hoisted.at[i];
		size_t n = count_first(h, moved);
		moved->at_leaf = h->first.at[0].body->domain == SUB_TOP || n == h->first.n;
		if (!moved->at_leaf && n)
			back = moved->not_at_leaf = true;
	}
	return back;
}

static void rewrite_bodies(struct hoisting *h)
{
	for (size_t i = 0; i < h->readers.n; i++)
		rewrite_body(h, &h->readers.at[i]);
	do
		for (size_t i = 0; i < h->first.n; i++) {
			h->first.at[i].hoisted_of = h->readers.at[0].hoisted_of;
			rewrite_body(h, &h->first.at[i]);
		}
	while (mark_read_at_leaf(h));
}

/* "hoist" in the first traversal, "hoist2" in the second. */
static const char *ahead_name(struct hoisting *h, const char *suffix)
{
	struct str s = str_in(h->arena);
	str_puts(&s, "hoist");
	if (h->traversal)
		str_printf(&s, "%d", h->traversal + 1);
	str_puts(&s, suffix);
	return sub_find_free_name(h->from, SUB_NAME_BODY, str_text(&s));
}

/* Adds the body that computes the hoisted values that leaves read, or those that they do not read, if any. */
static void add_ahead(struct hoisting *h, bool at_leaf)
{
	struct sub_body b = {.name = ahead_name(h, at_leaf ? "" : ".inner"),
			     .domain = at_leaf ? SUB_AHEAD : SUB_AHEAD_INNER,
			     .traversal = h->traversal};
	for (size_t i = 0; i < h->hoisted.n; i++) {
		const struct hoisted_value *moved = &h->hoisted.at[i];
		if (moved->at_leaf == at_leaf)
			vec_push(h->arena, &b.stores,
				 (struct sub_store){.to = SUB_TO_INPUT,
						    .which = moved->input,
						    .value = sub_as_is(h->to, moved->value)});
	}
	if (b.stores.n)
		vec_push(h->arena, &h->to->bodies, b);
}

/* The reader of a body of the old program; NULL = it is no body of the recursion. */
static const struct reader *reader_of(const struct hoisting *h, const struct sub_body *b)
{
	for (size_t i = 0; i < h->readers.n; i++)
		if (h->readers.at[i].body == b)
			return &h->readers.at[i];
	for (size_t i = 0; i < h->first.n; i++)
		if (h->first.at[i].body == b)
			return &h->first.at[i];
	return NULL;
}

/* Bodies ahead of the recursion come before it. */
static void add_bodies(struct hoisting *h)
{
	const struct sub_body *b = h->from->bodies.at, *end = b + h->from->bodies.n;
	for (; !reader_of(h, b); b++)
		vec_push(h->arena, &h->to->bodies, *b);
	add_ahead(h, true);
	add_ahead(h, false);
	for (; b < end; b++) {
		const struct reader *r = reader_of(h, b);
		vec_push(h->arena, &h->to->bodies, r ? r->made : *b);
	}
}

static void find_readers(struct hoisting *h)
{
	static const enum sub_domain domains[][2] = {{SUB_LEAF, SUB_INNER}, {SUB_TOP, SUB_BELOW}};
	bool down = h->from->traversals.at[h->traversal].down;
	for (int i = 0; i < 2; i++) {
		struct move_bodies found = move_find_bodies(h->from, h->traversal, domains[down][i]);
		for (size_t k = 0; k < found.all.n; k++) {
			struct reader r = {.body = found.all.at[k]};
			r.values = sub_find_values(h->arena, h->from, r.body,
						   ARENA_ARRAY(h->arena, bool, h->from->values.n));
			if (i)
				vec_push(h->arena, &h->readers, r);
			else
				vec_push(h->arena, &h->first, r);
		}
	}
}

/* False if nothing is hoisted. */
static bool hoist_values(struct hoisting *h)
{
	h->recursive = sub_find_recursive(h->from, h->traversal);
	h->excluded = ARENA_ARRAY(h->arena, bool, h->from->values.n);
	h->work = move_count_products(h->arena, h->from);
	select_values(h);
	if (!h->hoisted.n)
		return false;
	rewrite_bodies(h);
	add_bodies(h);
	return true;
}

/* --- the pass --- */

static void note_hoisted(const struct hoisting *h, struct rewrite_trace *trace)
{
	for (size_t i = 0; trace && i < h->hoisted.n; i++) {
		const struct hoisted_value *moved = &h->hoisted.at[i];
		struct str s = str_in(h->arena);
		str_printf(&s, "%s is computed ahead of the recursion, %s: %.0f bytes each",
			   h->to->inputs.at[moved->input].name,
			   moved->at_leaf ? "for all nodes" : "for the nodes with children",
			   move_row_bytes(h->to, moved->value));
		vec_push(h->arena, &trace->notes, s.text);
	}
}

struct request {
	enum move_extent how;
	struct rewrite_trace *trace;
};

static void hoist_traversal(struct sub_program *to, const struct sub_program *from, int traversal,
			    void *context)
{
	const struct request *r = context;
	struct hoisting h = {
	    .arena = to->arena, .from = from, .to = to, .how = r->how, .traversal = traversal};
	find_readers(&h);
	if (r->how != MOVE_OFF && h.first.n && h.readers.n && hoist_values(&h))
		note_hoisted(&h, r->trace);
	else
		move_keep_program(to, from);
}

void move_hoist(struct sub_program *to, const struct sub_program *from, enum move_extent how,
		const struct rewrite_options *options, struct rewrite_trace *trace)
{
	(void)options;
	struct sub_program *between = ARENA_NEW(to->arena, struct sub_program);
	sub_init(between, to->arena, from->name);
	move_each_traversal(between, from, hoist_traversal, &(struct request){how, trace});
	move_gather(to, between, how, trace);
}

bool move_is_hoisted(const struct sub_program *p)
{
	return (p->inputs.n && p->inputs.at[p->inputs.n - 1].hoisted) || move_is_flat(p);
}
