/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: computes what depends on weights alone once, when they are bound.
 *
 *     leaf [n without children]                           fold0 at binding
 *       %1[i,j] = tanh W[i,j]                               %1[r0,j] = tanh W[r0,j]
 *       %2[n,i,j] = multiply %1[i,j], x[n,j]        ->      store fold0[r0,j] = %1[r0,j]
 *       ...                                               leaf [n without children]
 *                                                           %2[n,i,j] = multiply fold0[i,j], x[n,j]
 *
 * A *root* is a constant that becomes a parameter.  Roots are the largest constants that values of a row use;
 * data movement above them stays in the body, as a change of the index.  A body at binding computes its root
 * row by row, with the first dimension as its leading dimension, so it is planned and tiled like any other.
 * An expensive value without the row would be computed again in each row, so it becomes a root itself; so
 * does an expensive value that two roots need.
 *
 * A constant is not folded if it is cheap to compute and much larger than its operands, as the product of a
 * column and a row: reading it would cost more than computing it. */
#include "rewrite/rewrite.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	CHEAP_OPERATORS = 4, /* a constant of more operators is folded, never recomputed in each row */
	CHEAP_GROWTH = 4,    /* a recomputed constant is larger than its operands by more than this factor */
	CHEAP_BYTES = 65536, /* and larger than this: smaller ones stay in the nearest cache */
	FEW_OPERATORS = 16   /* a constant of more operators is folded even where folding is off */
};

/* The one root that needs a value, or one of these. */
enum { NO_ROOT = 0, SEVERAL_ROOTS = -1 };

struct folding {
	struct sub_program *to;
	const struct sub_program *from;
	struct rewrite_trace *trace; /* may be NULL */
	bool everything;	     /* fold what is profitable, else only what must be */
	const bool *constant;	     /* by value of `from` */
	bool *root;		     /* by value of `from`: it becomes a parameter */
	bool *chooses;	    /* by value: computing it chooses by an index, or mixes two (is_choice) */
	bool *rowless;	    /* by root: its body has no row */
	bool *visited;	    /* by value, in mark_roots */
	int *param;	    /* by value: the folded parameter that it is, -1 = none yet */
	sub_ref *kept;	    /* by value: its copy in the bodies of rows */
	sub_ref *copies[3]; /* by placement and value: its copy in bodies at binding */
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

/* Whether an operator costs its user nothing: it changes an index or a sign.  Concatenation and padding are
 * choices, which cost more. */
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

/* What recomputing a constant takes: its cheap operators, at most one more than allowed, down to the values
 * that are read. */
struct recomputation {
	int operators;
	double bytes; /* of the values that are read */
	bool weights; /* some of them are weights, not numbers */
};

static void count_recomputation(const struct folding *f, sub_ref r, struct recomputation *p)
{
	const struct sub_value *v = value_of(f, r);
	if (!is_cheap(v->op)) {
		p->bytes += bytes_of(f, r);
		p->weights |= v->op != SUB_CONST && v->op != SUB_INDEX;
		return;
	}
	p->operators += !is_free(v);
	for (int a = 0; a < v->args && p->operators <= CHEAP_OPERATORS; a++)
		count_recomputation(f, v->arg[a].value, p);
}

/* Whether a constant is cheaper to recompute than to read. */
static bool is_recomputed(const struct folding *f, sub_ref r)
{
	struct recomputation p = {0};
	double bytes = bytes_of(f, r);
	count_recomputation(f, r, &p);
	if (p.operators <= CHEAP_OPERATORS && !p.weights)
		return true;
	return p.operators <= CHEAP_OPERATORS && bytes > CHEAP_BYTES && bytes > CHEAP_GROWTH * p.bytes;
}

static void note_recomputed(struct folding *f, sub_ref r)
{
	struct recomputation p = {0};
	count_recomputation(f, r, &p);
	if (p.weights && !is_free(value_of(f, r)))
		add_note(
		    f,
		    "a constant of %.0f bytes is made again where it is used, from %.0f bytes by %d cheap "
		    "operators",
		    bytes_of(f, r), p.bytes, p.operators);
}

/* Counts the operators of a constant as a tree; returns more than `most` if there are more. */
static int operators_in(const struct sub_program *p, sub_ref r, int most)
{
	const struct sub_value *v = sub_at(p, r);
	int n = sub_class_of(v->op) != SUB_SOURCE;
	for (int a = 0; a < v->args && n <= most; a++)
		n += operators_in(p, v->arg[a].value, most - n);
	return n;
}

/* Whether a constant is folded even where folding is off. */
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
	return v->vars <= TENSOR_MAX_RANK && !is_free(v) && !is_recomputed(f, r);
}

/* --- roots --- */

/* Marks the roots in a constant that values of a row use.  `noted`: it belongs to a recomputed constant that
 * the trace has. */
static void mark_roots(struct folding *f, sub_ref r, bool noted)
{
	const struct sub_value *v = value_of(f, r);
	if (f->visited[r.i] || is_source(f, r))
		return;
	f->visited[r.i] = true;
	f->root[r.i] = is_profitable(f, r);
	if (!f->root[r.i] && f->everything && !noted)
		note_recomputed(f, r);
	for (int a = 0; !f->root[r.i] && a < v->args; a++)
		mark_roots(f, v->arg[a].value, noted || !is_free(v));
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

/* Makes roots of expensive values that several roots need.  Users come after what they use. */
static void share_roots(struct folding *f)
{
	int *owner = ARENA_ARRAY(f->to->arena, int, f->from->values.n);
	for (uint32_t i = f->from->values.n; i-- > 1;) {
		const struct sub_value *v = &f->from->values.at[i];
		f->root[i] |= owner[i] == SEVERAL_ROOTS && is_expensive(v->op) && v->vars <= TENSOR_MAX_RANK;
		int own = f->root[i] ? (int)i : owner[i];
		for (int a = 0; own != NO_ROOT && a < v->args; a++) {
			int *of = &owner[v->arg[a].value.i];
			*of = *of == NO_ROOT || *of == own ? own : SEVERAL_ROOTS;
		}
	}
}

/* --- bodies at binding --- */

static sub_ref fold_value(struct folding *, sub_ref);

/* The context in a body at binding for which a value is computed. */
struct context {
	int leading; /* the variable of the value that is the row, -1 = none */
	int row;     /* its name in the body */
	bool once;   /* the value is a scalar, and the body has no row and no loop around it */
};

static void rename_var(int *var, int n, struct context at)
{
	for (int i = 0; i < n; i++)
		if (at.leading >= 0 && var[i] == at.leading)
			var[i] = at.row;
}

static bool is_leading_only(const int *var, int n, int leading)
{
	for (int i = 0; i < n; i++)
		if ((var[i] == leading) != (i == 0))
			return false;
	return n > 0;
}

/* Whether a value needs of an argument the row of the same number, and the argument has as many rows. */
static bool keeps_row(const struct folding *f, const struct sub_value *v, int a, struct context at)
{
	const struct sub_use *u = &v->arg[a];
	const struct sub_value *arg = value_of(f, u->value);
	int var[SUB_MAX_VARS];
	if (at.leading < 0)
		return false;
	if (v->op != SUB_ASSIGN)
		return is_leading_only(u->var, u->vars, at.leading);
	for (int i = 0; i < u->vars; i++)
		var[i] = v->map[i].var;
	const struct sub_map *m = v->map;
	return is_leading_only(var, u->vars, at.leading) && m->function == SUB_AFFINE && m->scale == 1 &&
	       !m->offset && !m->scale2 &&
	       f->from->vars.at[arg->var[0]].extent == f->from->vars.at[at.leading].extent;
}

/* --- choices --- */

/* Whether a map of an assign is a choice: padding and concatenation choose by an index what they read, and a
 * map of two variables or a digit mixes indices.  Loops over constant extents are split where the choice
 * changes, and buffers have space for the last vector.  The rows of a step have no constant extent: a vector
 * that chooses by the row would read both sides everywhere, and one whose offset depends on the row could end
 * outside its buffer.  So a value that chooses by the row becomes a root whose body has no row. */
static bool is_choice(const struct folding *f, const struct sub_value *v, int map)
{
	return v->map[map].function == SUB_DIGIT || v->map[map].scale2 ||
	       (v->fills && sub_map_leaves(f->from, v, map));
}

static bool chooses_by_var(const struct folding *f, const struct sub_value *v, int var)
{
	if (v->op == SUB_COND)
		return v->var[v->axis] == var;
	if (v->op == SUB_GATHER)
		return sub_use_has(&v->arg[1], var);
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++)
		if (is_choice(f, v, i) && sub_map_uses(&v->map[i], var))
			return true;
	return false;
}

static void mark_choices(struct folding *f)
{
	for (uint32_t i = 1; i < f->from->values.n; i++) {
		const struct sub_value *v = &f->from->values.at[i];
		f->chooses[i] = v->op == SUB_COND || v->op == SUB_GATHER;
		for (int k = 0; v->op == SUB_ASSIGN && k < v->arg[0].vars; k++)
			f->chooses[i] |= is_choice(f, v, k);
		for (int a = 0; a < v->args; a++)
			f->chooses[i] |= f->chooses[v->arg[a].value.i];
	}
}

/* Whether an index of the argument depends on the row. */
static bool touches_row(const struct sub_value *v, int a, struct context at)
{
	bool touches = false;
	for (int i = 0; at.leading >= 0 && i < v->arg[a].vars; i++)
		touches |= v->op == SUB_ASSIGN ? sub_map_uses(&v->map[i], at.leading)
					       : v->arg[a].var[i] == at.leading;
	return touches;
}

/* --- what a body needs --- */

/* Where a body at binding gets an argument from. */
enum placement {
	AS_PARAM, /* a parameter: the argument is one, or becomes one */
	IN_PLACE, /* computed in the body, at its row or without any */
	INLINED	  /* computed in the body for other rows: it is cheap */
};

static enum placement choose_placement(const struct folding *f, const struct sub_value *v, int a,
				       struct context at, struct context *next)
{
	sub_ref r = v->arg[a].value;
	const struct sub_value *arg = value_of(f, r);
	bool row = keeps_row(f, v, a, at), once = at.once && !sub_reduces(v->op) && !arg->vars;
	bool chooses = row ? chooses_by_var(f, arg, arg->var[0]) : touches_row(v, a, at) && f->chooses[r.i];
	*next = row ? (struct context){arg->var[0], at.row, false} : (struct context){-1, -1, once};
	if (is_source(f, r) || f->root[r.i])
		return AS_PARAM;
	if (arg->vars <= TENSOR_MAX_RANK && (chooses || (is_expensive(arg->op) && !row && !once)))
		return AS_PARAM;
	return row || once ? IN_PLACE : INLINED;
}

/* The context of a root in its own body. */
static struct context context_of_root(const struct folding *f, sub_ref r)
{
	const struct sub_value *v = value_of(f, r);
	if (!v->vars)
		return (struct context){-1, -1, true};
	if (f->rowless[r.i] || chooses_by_var(f, v, v->var[0]))
		return (struct context){-1, -1, false};
	return (struct context){v->var[0], sub_row(f->to, f->from->vars.at[v->var[0]].extent), false};
}

/* Whether an argument chooses by the row, but has too many dimensions to become a parameter. */
static bool must_choose(const struct folding *f, const struct sub_value *v, int a, struct context at)
{
	const struct sub_value *arg = value_of(f, v->arg[a].value);
	return arg->vars > TENSOR_MAX_RANK && touches_row(v, a, at) && f->chooses[v->arg[a].value.i];
}

/* Makes roots of what a root's body needs as parameters; `seen` by placement and value.  False if the body
 * cannot have a row. */
static bool scan_body(struct folding *f, sub_ref r, struct context at, bool *seen[])
{
	const struct sub_value *v = value_of(f, r);
	bool ok = true;
	for (int a = 0; a < v->args; a++) {
		struct context next;
		sub_ref arg = v->arg[a].value;
		enum placement placement = choose_placement(f, v, a, at, &next);
		if (must_choose(f, v, a, at) && !f->root[arg.i]) {
			ok = false;
		} else if (placement == AS_PARAM) {
			f->root[arg.i] = !is_source(f, arg);
		} else if (!seen[placement][arg.i]) {
			seen[placement][arg.i] = true;
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
		for (int placement = IN_PLACE; placement <= INLINED; placement++)
			memset(seen[placement], 0, n * sizeof *seen[placement]);
		f->rowless[i] = !scan_body(f, r, context_of_root(f, r), seen);
		if (f->rowless[i])
			scan_body(f, r, context_of_root(f, r), seen);
	}
}

static sub_ref copy_value(struct folding *, sub_ref, struct context);

static sub_ref copy_argument(struct folding *f, const struct sub_value *v, int a, struct context at)
{
	sub_ref r = v->arg[a].value;
	struct context next;
	enum placement placement = choose_placement(f, v, a, at, &next);
	if (placement == AS_PARAM)
		return fold_value(f, r);
	sub_ref *copy = &f->copies[placement][r.i];
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

static sub_ref copy_value(struct folding *f, sub_ref r, struct context at)
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

/* Adds the body of a root; copying adds the bodies that it needs before it. */
static void add_body(struct folding *f, sub_ref r)
{
	sub_ref value = copy_value(f, r, context_of_root(f, r));
	f->param[r.i] = declare_param(f, r);
	struct sub_body b = {.name = f->to->params.at[f->param[r.i]].name, .domain = SUB_AT_BINDING};
	vec_push(
	    f->to->arena, &b.stores,
	    (struct sub_store){.to = SUB_TO_PARAM, .which = f->param[r.i], .value = sub_as_is(f->to, value)});
	vec_push(f->to->arena, &f->to->bodies, b);
}

/* The source, or the parameter that a root becomes, under the value's own names. */
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

/* Marks what a body needs after folding: not what only a root in it needs. */
static void mark_kept(const struct folding *f, const struct sub_body *b, bool *live)
{
	for (size_t i = 0; i < b->stores.n; i++)
		live[b->stores.at[i].value.value.i] = true;
	for (uint32_t i = f->from->values.n; i-- > 1;)
		for (int a = 0; live[i] && !f->root[i] && a < f->from->values.at[i].args; a++)
			live[f->from->values.at[i].arg[a].value.i] = true;
}

/* Bodies at binding that are there before come first, as their parameters do: they stay as they are. */
static void keep_binding(struct folding *f, const struct sub_body *b)
{
	sub_ref *copy = ARENA_ARRAY(f->to->arena, sub_ref, f->from->values.n);
	bool *live = ARENA_ARRAY(f->to->arena, bool, f->from->values.n);
	sub_mark_live(f->from, b, live);
	for (uint32_t i = 1; i < f->from->values.n; i++)
		if (live[i]) {
			struct sub_value v = f->from->values.at[i];
			for (int a = 0; a < v.args; a++)
				v.arg[a].value = copy[v.arg[a].value.i];
			copy[i] = add_value(f, v);
		}
	vec_push(f->to->arena, &f->to->bodies, sub_map_body(f->to->arena, b, copy));
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
		if (from->bodies.at[b].domain != SUB_AT_BINDING)
			mark_kept(f, &from->bodies.at[b], live);
	for (uint32_t i = 1; i < from->values.n; i++)
		if (live[i])
			f->kept[i] = keep_value(f, i);
	for (size_t b = 0; b < from->bodies.n; b++)
		if (from->bodies.at[b].domain != SUB_AT_BINDING)
			keep_body(f, &from->bodies.at[b]);
}

/* --- the pass --- */

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
	f.visited = ARENA_ARRAY(a, bool, n);
	f.chooses = ARENA_ARRAY(a, bool, n);
	f.rowless = ARENA_ARRAY(a, bool, n);
	f.param = ARENA_ARRAY(a, int, n);
	f.kept = ARENA_ARRAY(a, sub_ref, n);
	f.copies[IN_PLACE] = ARENA_ARRAY(a, sub_ref, n);
	f.copies[INLINED] = ARENA_ARRAY(a, sub_ref, n);
	memset(f.param, -1, n * sizeof *f.param);
	sub_copy_declarations(to, from);
	for (size_t b = 0; b < from->bodies.n; b++)
		if (from->bodies.at[b].domain == SUB_AT_BINDING)
			keep_binding(&f, &from->bodies.at[b]);
		else
			mark_roots_of(&f, &from->bodies.at[b]);
	mark_choices(&f);
	scan_roots(&f);
	share_roots(&f);
	for (uint32_t i = 1; i < n; i++)
		if (f.root[i])
			fold_value(&f, (sub_ref){i});
	keep_bodies(&f);
}
