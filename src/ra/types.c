/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Types of values: the rules of the operators, and numbers, whose type depends on the other arguments. */
#include "ra/syntax.h"

#include <math.h>

enum rule { FLOAT, NUMBER, INTEGER, SAME, LOGIC, COMPARE, SELECT, POSITION, ROWS, GIVEN };

static const enum rule rules[RA_OPS] = {
#define RA_OP(name, arity, spelling, types, function, lowering, sub) [RA_##name] = types,
#include "ra/ra_ops.def"
};

enum dtype ra_widened(enum dtype d)
{
	switch (dtype_traits_of(d)->kind) {
	case DTYPE_FLOAT:
		return DTYPE_F32;
	case DTYPE_SIGNED:
	case DTYPE_UNSIGNED:
		return d == DTYPE_I64 ? d : DTYPE_I32;
	default:
		return DTYPE_BOOL;
	}
}

bool ra_is_index(const struct ra_input *in)
{
	return in->dtype == DTYPE_I32 && !in->shape.rank;
}

bool ra_read_type(struct ra_report *report, struct ra_span span, enum dtype *d)
{
	struct str known = str_in(report->arena);
	for (int i = 0; i < DTYPES; i++)
		str_printf(&known, "%s%s", i ? ", " : "", dtype_traits_of(i)->spelling);
	return dtype_read(ra_span_string(report->arena, span), d) ||
	       ra_report(report, DIAG_MODEL_UNKNOWN_TYPE, span.at,
			 str_format(report->arena, "types are %s", str_text(&known)), "no type is named '%s'",
			 ra_excerpt(report->arena, span));
}

static enum dtype type_of(const struct ra_graph *g, ra_ref r)
{
	return ra_at(g->model, r)->dtype;
}

static const char *type_text(enum dtype d)
{
	return dtype_traits_of(d)->spelling;
}

/* --- numbers --- */

/* Whether a value is a literal number or a dimension, which gets the type of other arguments, and f32 without
 * any. */
static bool is_written_number(const struct ra_graph *g, ra_ref r)
{
	const struct ra_node *n = ra_at(g->model, r);
	if (n->op == RA_NEG)
		n = ra_at(g->model, n->arg[0]);
	return n->dtype == DTYPE_F32 && (n->op == RA_CONST || n->op == RA_EXTENT || n->op == RA_ZERO);
}

/* Whether a type can represent a literal number, which is binary64. */
static bool is_representable(enum dtype d, double number)
{
	double limit = d == DTYPE_I32 ? INT32_MAX : 0x1p53;
	return d != DTYPE_BOOL && number == floor(number) && fabs(number) <= limit;
}

static ra_ref refuse_number(struct ra_graph *g, double number, enum dtype d, struct diag_at at)
{
	struct str s = str_in(g->arena);
	str_double(&s, number);
	ra_refuse(g, DIAG_MODEL_TYPE, at,
		  d == DTYPE_BOOL ? "a bool is what a comparison gives: write x != 0"
				  : "write cast(..., f32) around what it meets, or a whole number",
		  "the number %s is no %s", str_text(&s), type_text(d));
	return (ra_ref){0};
}

ra_ref ra_build_typed_number(struct ra_graph *g, ra_ref r, enum dtype d, struct diag_at at)
{
	struct ra_node n = *ra_at(g->model, r);
	if (n.dtype == d || !is_written_number(g, r))
		return r;
	if (n.op == RA_NEG) {
		n.arg[0] = ra_build_typed_number(g, n.arg[0], d, at);
		return n.arg[0].i ? ra_build_map(g, RA_NEG, n.arg[0], (struct ra_span){.at = n.at})
				  : n.arg[0];
	}
	if (n.op == RA_CONST && !is_representable(d, n.constant))
		return refuse_number(g, n.constant, d, at);
	n.dtype = d;
	return ra_build_leaf(g, n);
}

/* --- operators --- */

static bool refuse_types(struct ra_graph *g, const struct ra_node *n, enum dtype a, enum dtype b)
{
	return ra_refuse(
	    g, DIAG_MODEL_TYPE, n->at,
	    str_format(g->arena, "write cast(..., %s) around one side", type_text(a == DTYPE_BOOL ? b : a)),
	    "the arguments of '%s' are %s and %s", ra_op_spelling(n->op), type_text(a), type_text(b));
}

/* Gives all arguments from `first` on one type: that of the first of them that is no literal number. */
static bool unify_types(struct ra_graph *g, struct ra_node *n, int first)
{
	int arity = ra_op_arity(n->op), leader = first;
	while (leader < arity && is_written_number(g, n->arg[leader]))
		leader++;
	enum dtype d = type_of(g, n->arg[leader < arity ? leader : first]);
	for (int i = first; i < arity; i++) {
		n->arg[i] = ra_build_typed_number(g, n->arg[i], d, n->at);
		if (!n->arg[i].i)
			return false;
		if (type_of(g, n->arg[i]) != d)
			return refuse_types(g, n, d, type_of(g, n->arg[i]));
	}
	return true;
}

static bool refuse_argument(struct ra_graph *g, const struct ra_node *n, ra_ref arg, const char *wanted,
			    const char *hint)
{
	return ra_refuse(g, DIAG_MODEL_TYPE, n->at, hint, "'%s' takes %s, not %s", ra_op_spelling(n->op),
			 wanted, type_text(type_of(g, arg)));
}

static bool check_floats(struct ra_graph *g, const struct ra_node *n)
{
	const char *hint = n->op == RA_DIV ? "integers have quotient(a, b); or write cast(..., f32) around both sides"
					   : "write cast(..., f32) around its argument";
	for (int i = 0; i < ra_op_arity(n->op); i++)
		if (type_of(g, n->arg[i]) != DTYPE_F32)
			return refuse_argument(g, n, n->arg[i], "f32", hint);
	return true;
}

/* Checks the arguments from `first` on. */
static bool check_numbers(struct ra_graph *g, struct ra_node *n, int first)
{
	if (!unify_types(g, n, first))
		return false;
	return type_of(g, n->arg[first]) != DTYPE_BOOL ||
	       refuse_argument(g, n, n->arg[first], "numbers", "write cast(..., i32) around its argument");
}

static bool check_integers(struct ra_graph *g, struct ra_node *n)
{
	if (!check_numbers(g, n, 0))
		return false;
	return type_of(g, n->arg[0]) != DTYPE_F32 ||
	       refuse_argument(g, n, n->arg[0], "i32 or i64",
			       "the quotient of f32 is a / b; or write cast(..., i32) around it");
}

static bool check_truths(struct ra_graph *g, const struct ra_node *n, int arguments)
{
	for (int i = 0; i < arguments; i++)
		if (type_of(g, n->arg[i]) != DTYPE_BOOL)
			return refuse_argument(g, n, n->arg[i], "bool",
					       "compare: x != 0 is true where x is not zero");
	return true;
}

/* The second argument is the number of a row. */
static bool check_index(struct ra_graph *g, const struct ra_node *n)
{
	enum dtype d = type_of(g, n->arg[1]);
	return d == DTYPE_I32 || d == DTYPE_I64 ||
	       ra_refuse(g, DIAG_MODEL_TYPE, n->at, "write cast(..., i32) around the index",
			 "the index of an element is i32 or i64, not %s", type_text(d));
}

bool ra_find_type(struct ra_graph *g, struct ra_node *n)
{
	bool good = true;
	switch (rules[n->op]) {
	case FLOAT:
		good = check_floats(g, n);
		n->dtype = DTYPE_F32;
		return good;
	case NUMBER:
		good = check_numbers(g, n, 0);
		break;
	case INTEGER:
		good = check_integers(g, n);
		break;
	case SAME:
		good = unify_types(g, n, 0);
		break;
	case LOGIC:
		good = check_truths(g, n, ra_op_arity(n->op));
		break;
	case SELECT:
		good = check_truths(g, n, 1) && unify_types(g, n, 1);
		n->dtype = good ? type_of(g, n->arg[1]) : n->dtype;
		return good;
	case COMPARE:
		good = check_numbers(g, n, 0);
		n->dtype = DTYPE_BOOL;
		return good;
	case POSITION:
		good = check_numbers(g, n, 0);
		n->dtype = DTYPE_I32;
		return good;
	case ROWS:
		good = check_index(g, n);
		break;
	case GIVEN:
		return true;
	}
	n->dtype = good ? type_of(g, n->arg[0]) : n->dtype;
	return good;
}

void ra_find_leaf_type(struct ra_graph *g, struct ra_node *n)
{
	const struct ra_model *m = g->model;
	if (n->op == RA_PARAM)
		n->dtype = ra_widened(m->params.at[n->param].dtype);
	else if (n->op == RA_INPUT)
		n->dtype = ra_widened(m->inputs.at[n->input].dtype);
	else if (n->op == RA_STATE || n->op == RA_CHILD || n->op == RA_PARENT)
		n->dtype = m->states.at[n->state.state].dtype;
}
