/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Contraction: makes the rounding of sums part of the program.
 *
 *     %2[n,i,k] = multiply W[i,k], x[n,k]
 *     %3[n,i] = sum_k %2[n,i,k]                       %1[n,i] = accumulate_k b[i], W[i,k], x[n,k]
 *     ... %5 = U h, %6 = g * c                  ->    %2[n,i] = accumulate_k %1[n,i], U[i,k], h[child.0(n),k]
 *     %3 + %5 + b + %6                                %3[n,i] = fma g[n,i], c[n,i], %2[n,i]
 *
 * A product is added without being rounded first.  Sums of products that are terms of one sum form a chain:
 * each starts from the result of the one before it, the first from a term of weights alone (a bias) or from
 * zero. Terms that need no state come first, so that a beginning of the chain, a value like any other, can be
 * computed elsewhere.  A sum absorbs a term if it is the term's only user; a term with other users is added
 * as it is.
 *
 * In `fast` sigmoids and tanhs become those that are computed in fewer operations, after the rules, which know
 * the usual ones.  Only this pass decides about rounding by how often values are used.  After it an operator is computed as it
 * is written, so neither moving it, nor storing it, nor computing it again changes a bit. */
#include "rewrite/rewrite.h"

struct contraction {
	struct arena *arena;
	struct sub_program *to;
	const struct sub_program *from;
	bool quick;	      /* in `fast` */
	const bool *constant; /* by value: it depends on weights and numbers alone */
	bool *reads_weights;  /* by value: it depends on a parameter */
	int *sharers;	      /* by value: of all bodies, the values that use it */
	/* of the current body, by value */
	bool *live, *absorbed; /* absorbed: a term that becomes part of its sum */
	bool *chained;	       /* a sum with a chain among its terms */
	const bool *recursive;
	int *uses;
	sub_ref *now; /* in the new program */
};

static const struct sub_value *value_of(const struct contraction *c, sub_ref r)
{
	return sub_at(c->from, r);
}

/* --- terms --- */

/* The terms of a sum, with their variables named as in the sum. */
struct terms {
	VEC(struct sub_use) all;
};

static bool is_product_sum(const struct contraction *c, const struct sub_value *v)
{
	return v->op == SUB_SUM && v->dtype == DTYPE_F32 && value_of(c, v->arg[0].value)->op == SUB_MULTIPLY;
}

/* Whether a value is a sum of products over a dimension, which can start from another one's result. */
static bool is_chain(const struct contraction *c, const struct sub_value *v)
{
	return is_product_sum(c, v) && !sub_reduces_ragged(c->from, v);
}

static bool can_be_absorbed(const struct contraction *c, const struct sub_value *v)
{
	return v->dtype == DTYPE_F32 && (v->op == SUB_ADD || v->op == SUB_MULTIPLY || is_chain(c, v));
}

/* Whether a value has one user.  For constants, which are computed once for all bodies, users in all bodies
 * count. */
static bool is_used_once(const struct contraction *c, sub_ref r)
{
	return c->uses[r.i] == 1 && !(c->constant[r.i] && c->sharers[r.i] > 1);
}

/* Whether a sum can absorb its argument a: a term with all variables of the sum, so that it is not computed
 * again along one that it lacks. */
static bool is_own_term(const struct contraction *c, const struct sub_value *v, int a)
{
	const struct sub_use *u = &v->arg[a];
	return v->op == SUB_ADD && is_used_once(c, u->value) && can_be_absorbed(c, value_of(c, u->value)) &&
	       v->vars == u->vars && memcmp(v->var, u->var, v->vars * sizeof *v->var) == 0;
}

/* Finds the terms of a sum in the order of the text, however deep additions are nested. */
static struct terms find_terms(const struct contraction *c, sub_ref sum)
{
	struct terms stack = {0}, terms = {0};
	vec_push(c->arena, &stack.all, sub_as_is(c->from, sum));
	while (stack.all.n) {
		struct sub_use u = stack.all.at[--stack.all.n];
		const struct sub_value *v = value_of(c, u.value);
		bool nested = v->op == SUB_ADD && (u.value.i == sum.i || c->absorbed[u.value.i]);
		for (int a = v->args; nested && a-- > 0;)
			vec_push(c->arena, &stack.all, sub_rename_use(v, &u, v->arg[a]));
		if (!nested)
			vec_push(c->arena, &terms.all, u);
	}
	return terms;
}

static bool is_chain_term(const struct contraction *c, const struct sub_use *u)
{
	return c->absorbed[u->value.i] && is_chain(c, value_of(c, u->value));
}

/* --- what is absorbed --- */

static void count_uses(struct contraction *c, const struct sub_body *b)
{
	memset(c->live, 0, c->from->values.n * sizeof *c->live);
	memset(c->uses, 0, c->from->values.n * sizeof *c->uses);
	sub_mark_live(c->from, b, c->live);
	for (size_t i = 0; i < b->stores.n; i++)
		c->uses[b->stores.at[i].value.value.i] += 2; /* a result is a value by itself */
	for (uint32_t i = 1; i < c->from->values.n; i++)
		for (int a = 0; c->live[i] && a < c->from->values.at[i].args; a++)
			c->uses[c->from->values.at[i].arg[a].value.i]++;
}

/* Counts the users of each value in all bodies together. */
static void count_sharers(struct contraction *c)
{
	for (size_t b = 0; b < c->from->bodies.n; b++)
		sub_mark_live(c->from, &c->from->bodies.at[b], c->live);
	for (uint32_t i = 1; i < c->from->values.n; i++)
		for (int a = 0; c->live[i] && a < c->from->values.at[i].args; a++)
			c->sharers[c->from->values.at[i].arg[a].value.i]++;
}

/* Marks terms from the last value to the first: users come after what they use, so a sum comes before its
 * terms. */
static void mark_absorbed(struct contraction *c)
{
	memset(c->absorbed, 0, c->from->values.n * sizeof *c->absorbed);
	for (uint32_t i = c->from->values.n; i-- > 1;)
		for (int a = 0; c->live[i] && a < c->from->values.at[i].args; a++)
			if (is_own_term(c, &c->from->values.at[i], a))
				c->absorbed[c->from->values.at[i].arg[a].value.i] = true;
}

static void mark_chained(struct contraction *c)
{
	memset(c->chained, 0, c->from->values.n * sizeof *c->chained);
	for (uint32_t i = 1; i < c->from->values.n; i++)
		for (int a = 0; c->live[i] && c->from->values.at[i].op == SUB_ADD && a < 2; a++) {
			sub_ref arg = c->from->values.at[i].arg[a].value;
			c->chained[i] |=
			    c->absorbed[arg.i] && (c->chained[arg.i] || is_chain(c, value_of(c, arg)));
		}
}

/* Restores the nesting of sums without a chain: they do not absorb additions. */
static void release_plain_sums(struct contraction *c)
{
	for (uint32_t i = c->from->values.n; i-- > 1;) {
		const struct sub_value *v = &c->from->values.at[i];
		bool plain = c->live[i] && v->op == SUB_ADD && !c->absorbed[i] && !c->chained[i];
		for (int a = 0; plain && a < 2; a++)
			c->absorbed[v->arg[a].value.i] &= value_of(c, v->arg[a].value)->op != SUB_ADD;
	}
}

/* --- chains --- */

static struct sub_use rename_now(const struct contraction *c, const struct sub_value *v,
				 const struct sub_use *u, int a)
{
	struct sub_use arg = sub_rename_use(v, u, v->arg[a]);
	arg.value = c->now[arg.value.i];
	return arg;
}

/* Adds a value and returns its use under these names. */
static struct sub_use add_value(struct contraction *c, struct sub_value v, const struct sub_use *names)
{
	struct sub_use u = *names;
	u.value = sub_add(c->to, v, NULL);
	u.vars = sub_at(c->to, u.value)->vars;
	return u;
}

static struct sub_use add_zero(struct contraction *c)
{
	return (struct sub_use){.value = sub_add(c->to, (struct sub_value){.op = SUB_CONST}, NULL)};
}

/* Adds a sum of products that starts from `start`; both have the names of the use. */
static struct sub_use accumulate_products(struct contraction *c, struct sub_use start,
					  const struct sub_use *u)
{
	const struct sub_value *sum = value_of(c, u->value), *product = value_of(c, sum->arg[0].value);
	struct sub_use own = sub_as_is(c->from, u->value);
	struct sub_value names = {.vars = u->vars}, v = {.op = SUB_ACCUMULATE, .reduced = sum->reduced};
	memcpy(names.var, u->var, sizeof names.var);
	v.arg[0] = sub_rename_use(&names, &own, start);
	v.arg[1] = rename_now(c, product, &sum->arg[0], 0);
	v.arg[2] = rename_now(c, product, &sum->arg[0], 1);
	return add_value(c, v, u);
}

static struct sub_use multiply_add(struct contraction *c, struct sub_use sum, const struct sub_use *u)
{
	const struct sub_value *product = value_of(c, u->value);
	struct sub_value v = {.op = SUB_FMA,
			      .arg = {rename_now(c, product, u, 0), rename_now(c, product, u, 1), sum}};
	return add_value(c, v, u);
}

static struct sub_use add_term(struct contraction *c, struct sub_use sum, const struct sub_use *u)
{
	struct sub_use term = *u;
	if (c->absorbed[u->value.i])
		return multiply_add(c, sum, u);
	term.value = c->now[u->value.i];
	return add_value(c, (struct sub_value){.op = SUB_ADD, .arg = {sum, term}}, &sum);
}

/* Removes the first term of weights alone and returns it; zero if there is none. */
static struct sub_use take_start(struct contraction *c, struct terms *t)
{
	for (size_t i = 0; i < t->all.n; i++) {
		struct sub_use u = t->all.at[i];
		if (!c->constant[u.value.i] || !c->reads_weights[u.value.i] || c->absorbed[u.value.i])
			continue;
		t->all.at[i].value.i = 0;
		u.value = c->now[u.value.i];
		return u;
	}
	return add_zero(c);
}

/* Adds up terms: the start, chains without a state, other chains, then the rest in the order of the text. */
static sub_ref write_chain(struct contraction *c, struct terms *t)
{
	struct sub_use sum = take_start(c, t);
	for (int recursive = 0; recursive < 2; recursive++)
		for (size_t i = 0; i < t->all.n; i++) {
			struct sub_use *u = &t->all.at[i];
			if (!u->value.i || !is_chain_term(c, u) || c->recursive[u->value.i] != recursive)
				continue;
			sum = accumulate_products(c, sum, u);
			u->value.i = 0;
		}
	for (size_t i = 0; i < t->all.n; i++)
		if (t->all.at[i].value.i)
			sum = add_term(c, sum, &t->all.at[i]);
	return sum.value;
}

/* --- all values --- */

static enum sub_op choose_operator(const struct contraction *c, enum sub_op op)
{
	if (!c->quick)
		return op;
	return op == SUB_SIGMOID ? SUB_QUICK_SIGMOID : op == SUB_TANH ? SUB_QUICK_TANH : op;
}

static sub_ref copy_value(struct contraction *c, sub_ref r)
{
	struct sub_value v = *value_of(c, r);
	v.op = choose_operator(c, v.op);
	for (int a = 0; a < v.args; a++) {
		v.arg[a].value = c->now[v.arg[a].value.i];
		if (v.op == SUB_ASSIGN)
			v.arg[a] = sub_as_is(c->to, v.arg[a].value);
	}
	return sub_add(c->to, v, NULL);
}

/* Writes an addition outside of chains.  Of two products the first is rounded, and the second added to it. */
static sub_ref write_addition(struct contraction *c, sub_ref r)
{
	const struct sub_value *v = value_of(c, r);
	for (int a = 1; a >= 0; a--) {
		const struct sub_use *product = &v->arg[a];
		struct sub_use other = v->arg[!a];
		if (!c->absorbed[product->value.i])
			continue;
		if (c->absorbed[other.value.i])
			c->now[other.value.i] = copy_value(c, other.value);
		other.value = c->now[other.value.i];
		return multiply_add(c, other, product).value;
	}
	return copy_value(c, r);
}

static sub_ref write_sum(struct contraction *c, sub_ref r)
{
	if (!c->chained[r.i])
		return write_addition(c, r);
	struct terms t = find_terms(c, r);
	return write_chain(c, &t);
}

static sub_ref write_value(struct contraction *c, sub_ref r)
{
	const struct sub_value *v = value_of(c, r);
	struct sub_use own = sub_as_is(c->from, r);
	if (v->op == SUB_ADD)
		return write_sum(c, r);
	return is_product_sum(c, v) ? accumulate_products(c, add_zero(c), &own).value : copy_value(c, r);
}

static void contract_body(struct contraction *c, const struct sub_body *b)
{
	count_uses(c, b);
	mark_absorbed(c);
	mark_chained(c);
	release_plain_sums(c);
	c->recursive = sub_find_recursive(c->from, sub_first_unknown_traversal(b));
	for (uint32_t i = 1; i < c->from->values.n; i++)
		if (c->live[i] && !c->absorbed[i])
			c->now[i] = write_value(c, (sub_ref){i});
	vec_push(c->to->arena, &c->to->bodies, sub_map_body(c->to->arena, b, c->now));
}

static void mark_weights(struct contraction *c)
{
	for (uint32_t i = 1; i < c->from->values.n; i++) {
		const struct sub_value *v = &c->from->values.at[i];
		c->reads_weights[i] = v->op == SUB_PARAM;
		for (int a = 0; a < v->args; a++)
			c->reads_weights[i] |= c->reads_weights[v->arg[a].value.i];
	}
}

void rewrite_contract(struct sub_program *to, const struct sub_program *from,
		      const struct rewrite_options *options, struct rewrite_trace *trace)
{
	(void)trace;
	struct arena *a = to->arena;
	size_t n = from->values.n;
	struct contraction c = {.arena = a,
				.to = to,
				.from = from,
				.quick = options && options->math == REWRITE_FAST,
				.constant = sub_find_constants(from),
				.reads_weights = ARENA_ARRAY(a, bool, n),
				.live = ARENA_ARRAY(a, bool, n),
				.absorbed = ARENA_ARRAY(a, bool, n),
				.sharers = ARENA_ARRAY(a, int, n),
				.chained = ARENA_ARRAY(a, bool, n),
				.uses = ARENA_ARRAY(a, int, n),
				.now = ARENA_ARRAY(a, sub_ref, n)};
	sub_copy_declarations(to, from);
	mark_weights(&c);
	count_sharers(&c);
	for (size_t b = 0; b < from->bodies.n; b++)
		contract_body(&c, &from->bodies.at[b]);
}
