/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Text of a sub-operator program: declarations, then each body's live values in order. */
#include "subop/subop.h"

#include <inttypes.h>

static void print_vars(const struct sub_program *p, const int *var, int n, struct str *s)
{
	str_puts(s, "[");
	for (int i = 0; i < n; i++)
		str_printf(s, "%s%s", i ? "," : "", p->vars.at[var[i]].name);
	str_puts(s, "]");
}

static void print_term(const struct sub_program *p, int var, int64_t scale, bool first, struct str *s)
{
	if (scale == -1)
		str_puts(s, "-");
	else if (!first && scale > 0)
		str_puts(s, "+");
	if (scale != 1 && scale != -1)
		str_printf(s, "%" PRId64 "*", scale);
	str_puts(s, p->vars.at[var].name);
}

static void print_affine(const struct sub_program *p, const struct sub_map *m, struct str *s)
{
	if (m->var < 0) {
		str_printf(s, "%" PRId64, m->offset);
		return;
	}
	print_term(p, m->var, m->scale, true, s);
	if (m->scale2)
		print_term(p, m->var2, m->scale2, false, s);
	if (m->offset)
		str_printf(s, "%+" PRId64, m->offset);
}

/* (2*i+j)/3%4 */
static void print_digit(const struct sub_program *p, const struct sub_map *m, struct str *s)
{
	bool bare = m->var >= 0 && m->scale == 1 && !m->scale2 && !m->offset;
	str_puts(s, bare ? "" : "(");
	print_affine(p, m, s);
	str_puts(s, bare ? "" : ")");
	if (m->divisor != 1)
		str_printf(s, "/%" PRId64, m->divisor);
	if (m->modulus)
		str_printf(s, "%%%" PRId64, m->modulus);
}

static void print_map(const struct sub_program *p, const struct sub_map *m, struct str *s)
{
	const char *var = m->var < 0 ? "" : p->vars.at[m->var].name;
	switch (m->function) {
	case SUB_AFFINE:
		print_affine(p, m, s);
		break;
	case SUB_DIGIT:
		print_digit(p, m, s);
		break;
	case SUB_CHILD:
		str_printf(s, "child.%d(%s)", m->which, var);
		break;
	case SUB_EDGE_CHILD:
		str_printf(s, "child(%s)", var);
		break;
	case SUB_PARENT:
	case SUB_EDGE_PARENT:
		str_printf(s, "parent(%s)", var);
		break;
	case SUB_MEMBER_NODE:
		str_printf(s, "member(%s)", var);
		break;
	case SUB_ROOT:
		str_printf(s, "root(%s)", var);
		break;
	case SUB_TOKEN:
		str_puts(s, p->inputs.at[m->which].name);
		if (p->inputs.at[m->which].on_edge && p->vars.at[m->var].set == SUB_NODE)
			str_printf(s, ".%d", m->slot);
		str_printf(s, "(%s)", var);
		break;
	case SUB_STEP:
		str_printf(s, m->scale < 0 ? "%" PRId64 "-step" : m->offset ? "step%+" PRId64 : "step", m->offset);
		break;
	case SUB_SLOT_EDGE:
		str_printf(s, "edge.%d(%s)", m->which, var);
		break;
	}
}

static const char *source_name(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_PARAM   ? p->params.at[v->which].name
	       : v->op == SUB_STATE ? p->states.at[v->which].name
				    : p->inputs.at[v->which].name;
}

void sub_print_name(const struct sub_program *p, sub_ref r, struct str *s)
{
	const struct sub_value *v = sub_at(p, r);
	if (v->op == SUB_CONST)
		str_double(s, v->constant);
	else if (v->op == SUB_INDEX)
		str_puts(s, sub_spelling(v->op));
	else if (sub_class_of(v->op) == SUB_SOURCE)
		str_puts(s, source_name(p, v));
	else
		str_printf(s, "%%%u", r.i);
}

static void print_use(const struct sub_program *p, const struct sub_use *u, struct str *s)
{
	sub_print_name(p, u->value, s);
	if (sub_at(p, u->value)->op != SUB_CONST)
		print_vars(p, u->var, u->vars, s);
}

void sub_print_maps(const struct sub_program *p, const struct sub_value *v, struct str *s)
{
	for (int i = 0; i < v->arg[0].vars; i++) {
		str_puts(s, i ? "," : "[");
		print_map(p, &v->map[i], s);
	}
	str_puts(s, v->arg[0].vars ? "]" : "");
}

void sub_print_reduced(const struct sub_program *p, const struct sub_value *v, struct str *s)
{
	for (int i = 0; i < v->reduced.n; i++)
		str_printf(s, "%s%s", i ? "," : "_", p->vars.at[v->reduced.var[i]].name);
}

static void print_value(const struct sub_program *p, sub_ref r, struct str *s)
{
	const struct sub_value *v = sub_at(p, r);
	str_printf(s, "  %%%u", r.i);
	print_vars(p, v->var, v->vars, s);
	if (v->dtype != DTYPE_F32)
		str_printf(s, " : %s", dtype_traits_of(v->dtype)->spelling);
	str_printf(s, " = %s", sub_spelling(v->op));
	if (sub_reduces(v->op) || v->op == SUB_GATHER)
		sub_print_reduced(p, v, s);
	if (v->op == SUB_COND)
		str_printf(s, "_%s", p->vars.at[v->var[v->axis]].name);
	for (int a = 0; a < v->args; a++) {
		str_puts(s, a ? ", " : " ");
		if (v->op == SUB_ASSIGN)
			sub_print_name(p, v->arg[0].value, s), sub_print_maps(p, v, s);
		else
			print_use(p, &v->arg[a], s);
	}
	if (v->fills) {
		str_puts(s, " fill ");
		str_double(s, v->fill);
	}
	str_puts(s, "\n");
}

static void print_tensor(const char *kind, const struct sub_tensor *t, struct str *s)
{
	str_printf(s, "%s %s[", kind, t->name);
	for (int d = 0; d < t->rank; d++)
		str_printf(s, "%s%" PRId64, d ? "," : "", t->shape[d]);
	str_puts(s, "]");
	if (t->dtype != DTYPE_F32)
		str_printf(s, " : %s", dtype_traits_of(t->dtype)->spelling);
	str_puts(s, "\n");
}

/* case pair: inner, children 2, kind 3 */
static void print_case(const struct sub_program *p, const struct image_case *k, struct str *s)
{
	str_printf(s, "case %s: %s", k->name, k->inner ? "inner" : "leaf");
	if (k->children >= 0)
		str_printf(s, ", children %d", k->children);
	if (k->parent != IMAGE_EITHER)
		str_printf(s, ", %s parent", k->parent == IMAGE_YES ? "with" : "without");
	for (int m = 0; m < k->matches; m++)
		str_printf(s, ", %s %d", p->inputs.at[k->match[m].input].name, k->match[m].value);
	str_puts(s, "\n");
}

static void print_declarations(const struct sub_program *p, struct str *s)
{
	str_printf(s, "program %s\nindex n: node, t: input, e: child of n", p->name);
	for (size_t i = 0; i < p->vars.n; i++)
		if (p->vars.at[i].set == SUB_DIM)
			str_printf(s, ", %s: %" PRId64, p->vars.at[i].name, p->vars.at[i].extent);
	for (size_t i = 0; i < p->vars.n; i++)
		if (p->vars.at[i].set == SUB_ROW)
			str_printf(s, ", %s: row of %" PRId64, p->vars.at[i].name, p->vars.at[i].extent);
	str_puts(s, "\n");
	for (size_t i = 0; i < p->inputs.n; i++) {
		const struct sub_input *in = &p->inputs.at[i];
		const char *word = in->hoisted ? "hoisted" : in->on_edge ? "edge" : "input";
		if (in->token)
			str_printf(s, "%s %s: token\n", word, in->name);
		else
			print_tensor(word, &in->row, s);
	}
	for (size_t i = 0; i < p->cases.n; i++)
		print_case(p, &p->cases.at[i], s);
	for (size_t i = 0; i < p->params.n; i++)
		print_tensor(p->params.at[i].folded ? "folded" : "param", &p->params.at[i], s);
	for (size_t i = 0; i < p->states.n; i++)
		print_tensor(p->states.at[i].derived ? "derived" : "state", &p->states.at[i], s);
	for (size_t i = 0; i < p->outputs.n; i++)
		print_tensor("output", &p->outputs.at[i].row, s);
}

static void print_store(const struct sub_program *p, const struct sub_store *st, const char *leading,
			struct str *s)
{
	str_printf(s, "  store %s[%s", sub_store_tensor(p, st)->name, leading);
	const char *comma = *leading ? "," : "";
	if (st->stepped) {
		str_puts(s, comma);
		print_map(p, &(struct sub_map){.function = SUB_STEP, .var = -1, .scale = st->scale, .offset = st->offset}, s);
	}
	for (int i = 0; i < st->value.vars; i++) {
		const struct sub_var *var = &p->vars.at[st->value.var[i]];
		if (var->set != SUB_DIM && var->set != SUB_ROW)
			continue;
		str_printf(s, "%s%s", comma, var->name);
		comma = ",";
	}
	str_puts(s, "] = ");
	print_use(p, &st->value, s);
	str_puts(s, "\n");
}

/* Prints the cases of a body that does not cover all of its domain. */
static void print_mask(const struct sub_program *p, unsigned cases, struct str *s)
{
	for (size_t c = 0; c < p->cases.n; c++)
		if (cases >> c & 1)
			str_printf(s, "%s%s", cases & ((1u << c) - 1) ? ", " : " of case ",
				   p->cases.at[c].name);
}

/* The operands of a call, by the names of their segments: x = hoist0 */
static void print_call(const struct sub_program *p, const struct sub_call *c, struct str *s)
{
	static const char *const words[] = {
	    [IMAGE_OPERAND_INPUT] = "input", [IMAGE_OPERAND_OUTPUT] = "output", [IMAGE_OPERAND_CONSTANT] = "constant"};
	str_printf(s, "  call %s\n", c->name);
	for (int i = 0; i < c->operands; i++) {
		const struct sub_operand *o = &c->operand[i];
		bool constant = o->role == IMAGE_OPERAND_CONSTANT;
		str_printf(s, "    %s %s = %s", words[o->role], o->segment,
			   constant ? p->params.at[o->which].name : p->inputs.at[o->which].name);
		if (o->zero)
			str_printf(s, " less %d", o->zero);
		str_puts(s, "\n");
	}
}

static void print_body(const struct sub_program *p, const struct sub_body *b, struct str *s)
{
	static const struct {
		const char *rows, *leading;
	} domains[] = {
	    [SUB_LEAF] = {"[n without children]", "n"},
	    [SUB_INNER] = {"[n with children]", "n"},
	    [SUB_TOP] = {"[n without parents]", "n"},
	    [SUB_BELOW] = {"[n with parents]", "n"},
	    [SUB_EVERY_NODE] = {"[n]", "n"},
	    [SUB_EVERY_INPUT] = {"[t]", "t"},
	    [SUB_AHEAD] = {"[n] ahead", "n"},
	    [SUB_AHEAD_INNER] = {"[n with children] ahead", "n"},
	    [SUB_FIRST_STEP] = {"[n] at step 0", "n"},
	    [SUB_NEXT_STEPS] = {"[n] at each further step", "n"},
	    [SUB_AT_BINDING] = {"at binding", ""},
	};
	bool *live = ARENA_ARRAY(s->arena, bool, p->values.n);
	str_printf(s, "\n%s %s", b->name, domains[b->domain].rows);
	print_mask(p, b->cases, s);
	str_puts(s, "\n");
	sub_mark_live(p, b, live);
	for (uint32_t i = 1; i < p->values.n; i++)
		if (live[i] && sub_class_of(p->values.at[i].op) != SUB_SOURCE)
			print_value(p, (sub_ref){i}, s);
	for (size_t i = 0; i < b->stores.n; i++)
		print_store(p, &b->stores.at[i], domains[b->domain].leading, s);
	if (b->call)
		print_call(p, &p->calls.at[b->call - 1], s);
}

void sub_print(const struct sub_program *p, struct str *s)
{
	print_declarations(p, s);
	for (size_t i = 0; i < p->bodies.n; i++)
		print_body(p, &p->bodies.at[i], s);
}
