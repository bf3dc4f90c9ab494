/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Constants leave the bodies: what depends on weights alone is computed once, when they are bound.
 *
 *     leaf [n without children]                           fold0 at binding
 *       %1[i,j] = tanh W[i,j]                               %1[r0,j] = tanh W[r0,j]
 *       %2[n,i,j] = multiply %1[i,j], x[n,j]        ->      store fold0[r0,j] = %1[r0,j]
 *       ...                                               leaf [n without children]
 *                                                           %2[n,i,j] = multiply fold0[i,j], x[n,j]
 *
 * A *root* is a constant that becomes a parameter.  Roots are the largest constants that values of a row use;
 * data movement above them stays where it is, as a change of the index.  A body computes its root row by row,
 * the first dimension being the lead variable, so it is planned and tiled as any other.  What is dear in
 * there and has no row would be computed again for each: it is a root itself, and so is what is dear and
 * belongs to two roots.
 *
 * Not folded is what is much larger than what it is made of and cheap to make again, as the product of a
 * column and a row: reading it would cost more than computing it. */
#include "rewrite/rewrite.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	CHEAP_OPERATORS = 4, /* most of a value that is made again rather than read */
	CHEAP_GROWTH = 4,    /* how many times larger than its operands it then is, at least */
	CHEAP_BYTES = 65536, /* and how large: less is in the nearest cache anyway */
	FEW_OPERATORS = 16   /* most of a cheap constant that stays when constants are not to be folded */
};

/* Who needs a constant. */
enum { NOBODY = 0, SEVERAL = -1 };

struct folding {
	struct sub_program *to;
	const struct sub_program *from;
	struct rewrite_trace *trace; /* NULL = nobody asked */
	bool everything;	     /* fold what is worth it; else what is dear */
	const bool *constant;	     /* by value of `from` */
	bool *root;		     /* by value of `from`: it becomes a parameter */
	bool *chooses;		     /* by value: a choice by an index is in it, or a mixture of indices */
	bool *rowless;		     /* by root: its body has no row */
	bool *asked;		     /* mark_roots has seen it */
	int *param;		     /* by value: the folded parameter that it is, -1 = none yet */
	sub_ref *kept;		     /* by value: its copy in the bodies of rows */
	sub_ref *copies[3];	     /* by way and value: its copy in bodies at binding */
};

static const struct sub_value *value_of(const struct folding *f, sub_ref r)
{
	return sub_at(f->from, r);
}

__attribute__((format(printf, 2, 3))) static void add_note(struct folding *f, const char *format, ...)
{
	char text[200];
	va_list args;
	if (!f->trace)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	vec_push(f->to->arena, &f->trace->notes, arena_string(f->to->arena, text));
}

/* --- what a constant is worth --- */

static bool is_source(const struct folding *f, sub_ref r)
{
	return sub_class_of(value_of(f, r)->op) == SUB_SOURCE;
}

static bool is_expensive(enum sub_op op)
{
	return sub_traits_of(op)->price == SUB_EXPENSIVE;
}

/* Another index, or a sign, costs its user nothing.  A concatenation is more, and so is padding: they are
 * choices. */
static bool is_free(const struct sub_value *v)
{
	return (sub_class_of(v->op) == SUB_MOVE && v->op != SUB_COND && !v->fills) || v->op == SUB_NEG ||
	       v->op == SUB_NOP;
}

static bool is_cheap(enum sub_op op)
{
	return !is_expensive(op) && op != SUB_COND && sub_class_of(op) != SUB_SOURCE;
}

/* Bytes of a constant in memory, where a parameter may have a narrower type than its value. */
static double bytes_of(const struct folding *f, sub_ref r)
{
	const struct sub_value *v = value_of(f, r);
	enum dtype dtype = v->op == SUB_PARAM ? f->from->params.at[v->which].dtype : v->dtype;
	double bytes = dtype_traits_of(dtype)->bytes;
	for (int i = 0; i < v->vars; i++)
		bytes *= f->from->vars.at[v->var[i]].extent;
	return bytes;
}

/* A constant taken apart as far as it is cheap; `operators` counts one more than allowed at most. */
struct parts {
	int operators;
	double bytes; /* of what it is made of */
	bool weights; /* not of numbers alone */
};

static void expand_constant(const struct folding *f, sub_ref r, struct parts *p)
{
	const struct sub_value *v = value_of(f, r);
	if (!is_cheap(v->op)) {
		p->bytes += bytes_of(f, r);
		p->weights |= v->op != SUB_CONST && v->op != SUB_INDEX;
		return;
	}
	p->operators += !is_free(v);
	for (int a = 0; a < v->args && p->operators <= CHEAP_OPERATORS; a++)
		expand_constant(f, v->arg[a].value, p);
}

/* Cheaper to make again than to read. */
static bool is_remade(const struct folding *f, sub_ref r)
{
	struct parts p = {0};
	double bytes = bytes_of(f, r);
	expand_constant(f, r, &p);
	if (p.operators <= CHEAP_OPERATORS && !p.weights)
		return true;
	return p.operators <= CHEAP_OPERATORS && bytes > CHEAP_BYTES && bytes > CHEAP_GROWTH * p.bytes;
}

static void note_remade(struct folding *f, sub_ref r)
{
	struct parts p = {0};
	expand_constant(f, r, &p);
	if (p.weights && !is_free(value_of(f, r)))
		add_note(f,
		     "a constant of %.0f bytes is made again where it is used, from %.0f bytes by %d cheap "
		     "operators",
		     bytes_of(f, r), p.bytes, p.operators);
}

/* Operators of a constant written out as a tree, or one more than `most`. */
static int operators_in(const struct sub_program *p, sub_ref r, int most)
{
	const struct sub_value *v = sub_at(p, r);
	int n = sub_class_of(v->op) != SUB_SOURCE;
	for (int a = 0; a < v->args && n <= most; a++)
		n += operators_in(p, v->arg[a].value, most - n);
	return n;
}

/* Moved so even when constants are not to be folded. */
static bool must_fold(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->vars <= TENSOR_MAX_RANK &&
	       (is_expensive(v->op) || operators_in(p, r, FEW_OPERATORS) > FEW_OPERATORS);
}

static bool is_profitable(const struct folding *f, sub_ref r)
{
	const struct sub_value *v = value_of(f, r);
	if (!f->everything)
		return must_fold(f->from, r);
	return v->vars <= TENSOR_MAX_RANK && !is_free(v) && !is_remade(f, r);
}

/* --- roots --- */

/* Values with a row need this constant; `remade`: as part of one that was not worth it, which was told. */
static void mark_roots(struct folding *f, sub_ref r, bool remade)
{
	const struct sub_value *v = value_of(f, r);
	if (f->asked[r.i] || is_source(f, r))
		return;
	f->asked[r.i] = true;
	f->root[r.i] = is_profitable(f, r);
	if (!f->root[r.i] && f->everything && !remade)
		note_remade(f, r);
	for (int a = 0; !f->root[r.i] && a < v->args; a++)
		mark_roots(f, v->arg[a].value, remade || !is_free(v));
}

static void mark_roots_of(struct folding *f, const struct sub_body *b)
{
	bool *live = ARENA_ARRAY(f->to->arena, bool, f->from->values.n);
	sub_mark_live(f->from, b, live);
	for (size_t i = 0; i < b->stores.n; i++)
		if (f->constant[b->stores.at[i].value.value.i])
			mark_roots(f, b->stores.at[i].value.value, false);
	for (uint32_t i = 1; i < f->from->values.n; i++)
		for (int a = 0; live[i] && !f->constant[i] && a < f->from->values.at[i].args; a++)
			if (f->constant[f->from->values.at[i].arg[a].value.i])
				mark_roots(f, f->from->values.at[i].arg[a].value, false);
}

/* What is dear and part of several roots is computed once for all.  Users come after what they use. */
static void share_roots(struct folding *f)
{
	int *owner = ARENA_ARRAY(f->to->arena, int, f->from->values.n);
	for (uint32_t i = f->from->values.n; i-- > 1;) {
		const struct sub_value *v = &f->from->values.at[i];
		f->root[i] |= owner[i] == SEVERAL && is_expensive(v->op) && v->vars <= TENSOR_MAX_RANK;
		int own = f->root[i] ? (int)i : owner[i];
		for (int a = 0; own != NOBODY && a < v->args; a++) {
			int *of = &owner[v->arg[a].value.i];
			*of = *of == NOBODY || *of == own ? own : SEVERAL;
		}
	}
}

/* --- bodies at binding --- */

static sub_ref fold_value(struct folding *, sub_ref);

/* Where in a body at binding a value is wanted. */
struct at {
	int lead;   /* the variable of the value that is the row, -1 = none */
	int row;    /* its name in the body */
	bool alone; /* the value is a scalar that is computed once: the body has no row, and no loop is around
		       it */
};

static void rename_var(int *var, int n, struct at at)
{
	for (int i = 0; i < n; i++)
		if (at.lead >= 0 && var[i] == at.lead)
			var[i] = at.row;
}

static bool is_lead_alone(const int *var, int n, int lead)
{
	for (int i = 0; i < n; i++)
		if ((var[i] == lead) != (i == 0))
			return false;
	return n > 0;
}

/* An argument is wanted at the row itself, and its row is its first dimension, all of it. */
static bool keeps_row(const struct folding *f, const struct sub_value *v, int a, struct at at)
{
	const struct sub_use *u = &v->arg[a];
	const struct sub_value *arg = value_of(f, u->value);
	int var[SUB_MAX_VARS];
	if (at.lead < 0)
		return false;
	if (v->op != SUB_ASSIGN)
		return is_lead_alone(u->var, u->vars, at.lead);
	for (int i = 0; i < u->vars; i++)
		var[i] = v->map[i].var;
	const struct sub_map *m = v->map;
	return is_lead_alone(var, u->vars, at.lead) && m->function == SUB_AFFINE && m->scale == 1 &&
	       !m->offset && !m->scale2 &&
	       f->from->vars.at[arg->var[0]].extent == f->from->vars.at[at.lead].extent;
}

/* --- choices --- */

/* A concatenation or padding chooses by an index what it reads; a map of two variables mixes
 * indices. Loops between constants are cut where the choice changes, and buffers are as long as their last
 * vector reaches.  But rows go from begin to end of a step: whoever chooses by the row, in a vector, reads
 * both sides wherever that is, and where a vector ends whose place the row decides is not known.  So what
 * does so is a root, and its body has no row. */
static bool is_choice(const struct folding *f, const struct sub_value *v, int map)
{
	return v->map[map].scale2 || (v->fills && sub_map_leaves(f->from, v, map));
}

static bool maps_from(const struct sub_map *m, int var)
{
	return m->var == var || (m->scale2 && m->var2 == var);
}

static bool chooses_by(const struct folding *f, const struct sub_value *v, int var)
{
	if (v->op == SUB_COND)
		return v->var[v->axis] == var;
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		if (is_choice(f, v, i) && maps_from(&v->map[i], var))
			return true;
	return false;
}

static void mark_choices(struct folding *f)
{
	for (uint32_t i = 1; i < f->from->values.n; i++) {
		const struct sub_value *v = &f->from->values.at[i];
		f->chooses[i] = v->op == SUB_COND;
		for (int k = 0; v->op == SUB_ASSIGN && k < v->arg[0].vars; k++)
			f->chooses[i] |= is_choice(f, v, k);
		for (int a = 0; a < v->args; a++)
			f->chooses[i] |= f->chooses[v->arg[a].value.i];
	}
}

/* An index of the argument depends on the row. */
static bool touches_row(const struct sub_value *v, int a, struct at at)
{
	bool touches = false;
	for (int i = 0; at.lead >= 0 && i < v->arg[a].vars; i++)
		touches |= v->op == SUB_ASSIGN ? maps_from(&v->map[i], at.lead) : v->arg[a].var[i] == at.lead;
	return touches;
}

/* --- what a body needs --- */

/* How an argument is had in a body at binding. */
enum way {
	AS_PARAM, /* it is one, or becomes one */
	IN_PLACE, /* computed where it stands: its element belongs to the row, or to nothing */
	INLINED	  /* computed where it stands, without a row: it is cheap */
};

static enum way choose_placement(const struct folding *f, const struct sub_value *v, int a, struct at at,
		       struct at *next)
{
	sub_ref r = v->arg[a].value;
	const struct sub_value *arg = value_of(f, r);
	bool row = keeps_row(f, v, a, at), alone = at.alone && !sub_reduces(v->op) && !arg->vars;
	bool chooses = row ? chooses_by(f, arg, arg->var[0]) : touches_row(v, a, at) && f->chooses[r.i];
	*next = row ? (struct at){arg->var[0], at.row, false} : (struct at){-1, -1, alone};
	if (is_source(f, r) || f->root[r.i])
		return AS_PARAM;
	if (arg->vars <= TENSOR_MAX_RANK && (chooses || (is_expensive(arg->op) && !row && !alone)))
		return AS_PARAM;
	return row || alone ? IN_PLACE : INLINED;
}

/* The row of a root. */
static struct at place_of_root(const struct folding *f, sub_ref r)
{
	const struct sub_value *v = value_of(f, r);
	if (!v->vars)
		return (struct at){-1, -1, true};
	if (f->rowless[r.i] || chooses_by(f, v, v->var[0]))
		return (struct at){-1, -1, false};
	return (struct at){v->var[0], sub_row(f->to, f->from->vars.at[v->var[0]].extent), false};
}

/* A choice by the row that has too many dimensions for a parameter. */
static bool must_choose(const struct folding *f, const struct sub_value *v, int a, struct at at)
{
	const struct sub_value *arg = value_of(f, v->arg[a].value);
	return arg->vars > TENSOR_MAX_RANK && touches_row(v, a, at) && f->chooses[v->arg[a].value.i];
}

/* Makes roots of what a root's body needs as parameters; `seen` by the way that a value is had and by value.
 * False when the body cannot have a row. */
static bool scan_body(struct folding *f, sub_ref r, struct at at, bool *seen[])
{
	const struct sub_value *v = value_of(f, r);
	bool ok = true;
	for (int a = 0; a < v->args; a++) {
		struct at next;
		sub_ref arg = v->arg[a].value;
		enum way way = choose_placement(f, v, a, at, &next);
		if (must_choose(f, v, a, at) && !f->root[arg.i]) {
			ok = false;
		} else if (way == AS_PARAM) {
			f->root[arg.i] = !is_source(f, arg);
		} else if (!seen[way][arg.i]) {
			seen[way][arg.i] = true;
			ok &= scan_body(f, arg, next, seen);
		}
	}
	return ok;
}

/* Users come after what they use. */
static void scan_roots(struct folding *f)
{
	size_t n = f->from->values.n;
	bool *seen[] = {NULL, ARENA_ARRAY(f->to->arena, bool, n), ARENA_ARRAY(f->to->arena, bool, n)};
	for (uint32_t i = n; i-- > 1;) {
		sub_ref r = {i};
		if (!f->root[i])
			continue;
		for (int way = IN_PLACE; way <= INLINED; way++)
			memset(seen[way], 0, n * sizeof *seen[way]);
		f->rowless[i] = !scan_body(f, r, place_of_root(f, r), seen);
		if (f->rowless[i])
			scan_body(f, r, place_of_root(f, r), seen);
	}
}

static sub_ref copy_value(struct folding *, sub_ref, struct at);

static sub_ref copy_argument(struct folding *f, const struct sub_value *v, int a, struct at at)
{
	sub_ref r = v->arg[a].value;
	struct at next;
	enum way way = choose_placement(f, v, a, at, &next);
	if (way == AS_PARAM)
		return fold_value(f, r);
	sub_ref *copy = &f->copies[way][r.i];
	if (!copy->i)
		*copy = copy_value(f, r, next);
	return *copy;
}

static sub_ref add_value(struct folding *f, struct sub_value v)
{
	struct diags none;
	diags_init(&none, f->to->arena->allocator);
	sub_ref r = sub_add(f->to, v, &none);
	diags_free(&none);
	return r;
}

static sub_ref copy_value(struct folding *f, sub_ref r, struct at at)
{
	struct sub_value v = *value_of(f, r);
	struct sub_map maps[SUB_MAX_VARS];
	if (v.op == SUB_ASSIGN)
		sub_copy_maps(&v, maps);
	for (int a = 0; a < v.args; a++) {
		sub_ref copy = copy_argument(f, value_of(f, r), a, at);
		rename_var(v.arg[a].var, v.arg[a].vars, at);
		if (v.op == SUB_ASSIGN)
			v.arg[a] = sub_as_is(f->to, copy);
		v.arg[a].value = copy;
	}
	for (int i = 0; v.op == SUB_ASSIGN && i < v.arg[0].vars; i++) {
		rename_var(&maps[i].var, 1, at);
		rename_var(&maps[i].var2, 1, at);
	}
	rename_var(v.var, v.vars, at);
	return add_value(f, v);
}

static const char *fold_name(struct folding *f, int number)
{
	struct str s = str_in(f->to->arena);
	str_printf(&s, "fold%d", number);
	return sub_find_free_name(f->from, SUB_NAME_TENSOR | SUB_NAME_BODY, s.text);
}

static int declare_param(struct folding *f, sub_ref r)
{
	const struct sub_value *v = value_of(f, r);
	int number = f->to->params.n - f->from->params.n;
	struct sub_tensor t = {
	    .name = fold_name(f, number), .dtype = v->dtype, .rank = v->vars, .folded = true};
	for (int d = 0; d < v->vars; d++) {
		t.var[d] = v->var[d];
		t.shape[d] = f->from->vars.at[v->var[d]].extent;
	}
	vec_push(f->to->arena, &f->to->params, t);
	add_note(f, "%s is computed at binding: %.0f bytes", t.name, bytes_of(f, r));
	return f->to->params.n - 1;
}

/* The body is there when all that it needs is: so it comes after the bodies of that. */
static void add_body(struct folding *f, sub_ref r)
{
	sub_ref value = copy_value(f, r, place_of_root(f, r));
	f->param[r.i] = declare_param(f, r);
	struct sub_body b = {.name = f->to->params.at[f->param[r.i]].name, .domain = SUB_AT_BINDING};
	vec_push(f->to->arena, &b.stores,
		 (struct sub_store){SUB_TO_PARAM, f->param[r.i], sub_as_is(f->to, value)});
	vec_push(f->to->arena, &f->to->bodies, b);
}

/* The parameter that a source is or a root becomes, under the value's own names. */
static sub_ref fold_value(struct folding *f, sub_ref r)
{
	struct sub_value v = *value_of(f, r);
	if (is_source(f, r))
		return add_value(f, v);
	if (f->param[r.i] < 0)
		add_body(f, r);
	struct sub_value param = {.op = SUB_PARAM, .which = f->param[r.i], .vars = v.vars};
	memcpy(param.var, v.var, sizeof param.var);
	f->root[r.i] = true;
	return add_value(f, param);
}

/* --- bodies of rows --- */

static sub_ref keep_value(struct folding *f, uint32_t i)
{
	struct sub_value v = f->from->values.at[i];
	if (f->root[i])
		return fold_value(f, (sub_ref){i});
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = f->kept[v.arg[a].value.i];
	return add_value(f, v);
}

/* A constant inside of a root is needed by it alone. */
static void mark_kept(const struct folding *f, const struct sub_body *b, bool *live)
{
	for (size_t i = 0; i < b->stores.n; i++)
		live[b->stores.at[i].value.value.i] = true;
	for (uint32_t i = f->from->values.n; i-- > 1;)
		for (int a = 0; live[i] && !f->root[i] && a < f->from->values.at[i].args; a++)
			live[f->from->values.at[i].arg[a].value.i] = true;
}

static void keep_body(struct folding *f, const struct sub_body *b)
{
	vec_push(f->to->arena, &f->to->bodies, sub_map_body(f->to->arena, b, f->kept));
}

static void keep_bodies(struct folding *f)
{
	const struct sub_program *from = f->from;
	bool *live = ARENA_ARRAY(f->to->arena, bool, from->values.n);
	for (size_t b = 0; b < from->bodies.n; b++)
		mark_kept(f, &from->bodies.at[b], live);
	for (uint32_t i = 1; i < from->values.n; i++)
		if (live[i])
			f->kept[i] = keep_value(f, i);
	for (size_t b = 0; b < from->bodies.n; b++)
		keep_body(f, &from->bodies.at[b]);
}

/* --- the whole --- */

void rewrite_fold(struct sub_program *to, const struct sub_program *from,
		  const struct rewrite_options *options, struct rewrite_trace *trace)
{
	struct arena *a = to->arena;
	size_t n = from->values.n;
	struct folding f = {.to = to,
			    .from = from,
			    .trace = trace,
			    .constant = sub_find_constants(from),
			    .everything = !(options->off >> REWRITE_FAMILY_CONSTANTS & 1)};
	f.root = ARENA_ARRAY(a, bool, n);
	f.asked = ARENA_ARRAY(a, bool, n);
	f.chooses = ARENA_ARRAY(a, bool, n);
	f.rowless = ARENA_ARRAY(a, bool, n);
	f.param = ARENA_ARRAY(a, int, n);
	f.kept = ARENA_ARRAY(a, sub_ref, n);
	f.copies[IN_PLACE] = ARENA_ARRAY(a, sub_ref, n);
	f.copies[INLINED] = ARENA_ARRAY(a, sub_ref, n);
	memset(f.param, -1, n * sizeof *f.param);
	sub_copy_declarations(to, from);
	for (size_t b = 0; b < from->bodies.n; b++)
		mark_roots_of(&f, &from->bodies.at[b]);
	mark_choices(&f);
	scan_roots(&f);
	share_roots(&f);
	for (uint32_t i = 1; i < n; i++)
		if (f.root[i])
			fold_value(&f, (sub_ref){i});
	keep_bodies(&f);
}
