/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tokens to the syntax of expressions. */
#include "ra/syntax.h"
struct ra_expr *ra_make_expr(struct ra_parser *p, enum ra_expr_kind kind, struct ra_span span)
{
	struct ra_expr *e = ARENA_NEW(p->arena, struct ra_expr);
	e->kind = kind;
	e->span = span;
	return e;
}

static bool parse_binding(struct ra_parser *p, struct ra_expr *let)
{
	struct ra_binding b;
	if (!ra_expect_new_name(p, "a name", &b.name) || !(b.value = ra_parse_assigned(p, b.name)) || !ra_expect_token(p, ';', "';' and the value that uses the name"))
		return false;
	vec_push(p->arena, &let->bindings, b);
	return true;
}

/* Whether NAME = or NAME[...] = stands here. */
static bool at_binding(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	if (p->token.kind != RA_TOKEN_NAME)
		return false;
	int kind = ra_next_token(&ahead).kind;
	if (kind == '[')
		while (kind != ']' && kind != RA_TOKEN_END && kind != RA_TOKEN_LINE_END && kind != '=')
			kind = ra_next_token(&ahead).kind;
	return kind == '=' || (kind == ']' && ra_next_token(&ahead).kind == '=');
}

/* After '(': an expression, or names with values and the expression that uses them. */
static struct ra_expr *parse_parentheses(struct ra_parser *p, struct ra_span begin)
{
	struct ra_expr *let = NULL;
	while (at_binding(p)) {
		if (!let)
			let = ra_make_expr(p, RA_E_LET, begin);
		if (!parse_binding(p, let))
			return NULL;
	}
	struct ra_expr *e = ra_parse_expr(p);
	if (!e || !ra_expect_token(p, ')', "')'"))
		return NULL;
	if (let) {
		let->base = e;
		e = let;
	}
	e->span = ra_span_from(p, begin);
	return e;
}

/* Whether `for NAME in children` stands here, or `in parents`, or `in nodes`: not index variables. */
static bool at_each(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	ra_next_token(&ahead);
	if (ra_next_token(&ahead).word != RA_WORD_IN)
		return false;
	struct ra_token over = ra_next_token(&ahead);
	return over.word == RA_WORD_CHILDREN || ra_span_is(over.span, ra_word_text(RA_WORD_PARENTS)) ||
	       ra_span_is(over.span, "nodes");
}

/* `first for NAME in children)`, `in parents)` or `in nodes)`, after sum or max. */
static struct ra_expr *parse_each(struct ra_parser *p, struct ra_span function, struct ra_expr *first)
{
	bool maximum = ra_span_is(function, "max");
	if (!maximum && !ra_span_is(function, "sum")) {
		ra_report(p->report, DIAG_MODEL_SYNTAX, p->token.span.at,
			  "write sum(... for k in children) or max(...)",
			  "'%s' does not range over children or parents",
			  ra_excerpt(p->arena, function));
		return NULL;
	}
	struct ra_expr *e = ra_make_expr(p, RA_E_EACH, function);
	e->base = first;
	e->each.maximum = maximum;
	ra_advance_token(p);
	if (!ra_expect_new_name(p, "a name for the child", &e->name))
		return NULL;
	if (memchr(e->name.text, '.', e->name.length)) {
		ra_report(p->report, DIAG_MODEL_SYNTAX, e->name.at, "write k, and k.h for its state",
			  "the name of a child has no dots");
		return NULL;
	}
	if (!ra_take_word(p, RA_WORD_IN))
		return ra_refuse_token(p, "'in'"), NULL;
	e->each.parents = ra_take_free_word(p, RA_WORD_PARENTS);
	e->each.members = !e->each.parents && p->token.kind == RA_TOKEN_NAME && ra_span_is(p->token.span, "nodes");
	if (e->each.members)
		ra_advance_token(p);
	else if (!e->each.parents && !ra_take_word(p, RA_WORD_CHILDREN))
		return ra_refuse_token(p, "'children', 'parents' or 'nodes'"), NULL;
	if (!ra_expect_token(p, ')', "')'"))
		return NULL;
	e->span = ra_span_from(p, function);
	return e;
}

static bool at_axis(const struct ra_parser *p)
{
	return at_binding(p) && ra_span_is(p->token.span, "axis");
}

/* `axis=NUMBER`, the last of a call's arguments. */
static bool parse_axis(struct ra_parser *p, struct ra_expr *call)
{
	int64_t number = 0;
	ra_advance_token(p);
	ra_advance_token(p);
	bool negative = ra_take_token(p, '-');
	if (!ra_expect_count(p, RA_MAX_RANK, &number))
		return false;
	call->along = true;
	call->axis = negative ? -(int)number : (int)number;
	return true;
}

/* `NAME =` before an argument, which is taken; its length is 0 where there is none. */
static struct ra_span parse_keyword(struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	struct ra_span keyword = {0};
	if (p->token.kind != RA_TOKEN_NAME || p->token.word || ra_next_token(&ahead).kind != '=')
		return keyword;
	keyword = p->token.span;
	ra_advance_token(p);
	ra_advance_token(p);
	return keyword;
}

static struct ra_expr *parse_arguments(struct ra_parser *p, struct ra_span name)
{
	struct ra_expr *call = ra_make_expr(p, RA_E_CALL, name);
	call->name = name;
	if (!ra_take_token(p, ')')) {
		do {
			if (at_axis(p)) {
				if (!parse_axis(p, call))
					return NULL;
				break;
			}
			struct ra_span keyword = parse_keyword(p);
			struct ra_expr *arg = ra_parse_expr(p);
			if (!arg)
				return NULL;
			if (ra_at_word(p, RA_WORD_FOR) && !call->args.n && !keyword.length)
				return (at_each(p) ? parse_each : ra_parse_over)(p, name, arg);
			vec_push(p->arena, &call->args, arg);
			vec_push(p->arena, &call->keywords, keyword);
		} while (ra_take_token(p, ','));
		if (!ra_expect_token(p, ')', "',' or ')'"))
			return NULL;
	}
	call->span = ra_span_from(p, name);
	return call;
}

/* zeros(D, E), zeros(D : i32) and dimension(4*D), whose arguments are dimensions. */
static struct ra_expr *parse_of_dims(struct ra_parser *p, struct ra_span name, enum ra_expr_kind kind)
{
	struct ra_expr *e = ra_make_expr(p, kind, name);
	struct ra_declaration d = {0};
	if (!ra_parse_typed_dims(p, ')', &d, ra_parse_no_clause) ||
	    (d.type.length && !ra_read_type(p->report, d.type, &e->dtype)))
		return NULL;
	e->dims = d.dims;
	e->span = ra_span_from(p, name);
	size_t n = e->dims.n;
	if (kind == RA_E_DIMENSION && n != 1)
		return ra_report(p->report, DIAG_MODEL_ARGUMENTS, name.at, NULL,
				 "dimension takes 1 argument, not %zu", n),
		       NULL;
	if (n > RA_MAX_RANK)
		return ra_report(p->report, DIAG_MODEL_RANK, name.at, NULL,
				 "values have at most %d axes, not %zu", RA_MAX_RANK, n),
		       NULL;
	return e;
}

/* reshape(x, D, 4): a value and its new extents; without any it is a number. */
static struct ra_expr *parse_reshape(struct ra_parser *p, struct ra_span name)
{
	struct ra_expr *e = ra_make_expr(p, RA_E_RESHAPE, name);
	e->base = ra_parse_expr(p);
	if (!e->base || (p->token.kind != ')' && !ra_expect_token(p, ',', "',' or ')'")) ||
	    !ra_parse_dims(p, ')', &e->dims))
		return NULL;
	e->span = ra_span_from(p, name);
	return e;
}

static struct ra_expr *parse_name(struct ra_parser *p)
{
	struct ra_span name = p->token.span;
	ra_advance_token(p);
	if (!ra_take_token(p, '(')) {
		struct ra_expr *e = ra_make_expr(p, RA_E_NAME, name);
		e->name = name;
		return e;
	}
	if (ra_span_is(name, "zeros"))
		return parse_of_dims(p, name, RA_E_ZEROS);
	if (ra_span_is(name, "dimension"))
		return parse_of_dims(p, name, RA_E_DIMENSION);
	if (ra_span_is(name, "reshape"))
		return parse_reshape(p, name);
	return parse_arguments(p, name);
}

/* children[NUMBER].NAME */
static struct ra_expr *parse_slot(struct ra_parser *p)
{
	struct ra_expr *e = ra_make_expr(p, RA_E_SLOT, p->token.span);
	ra_advance_token(p);
	if (!ra_expect_token(p, '[', "'[' and the number of the child") ||
	    !ra_expect_count(p, INT32_MAX, &e->slot) || !ra_expect_token(p, ']', "']'") ||
	    !ra_expect_token(p, '.', "'.' and the name of a state or of what edges carry"))
		return NULL;
	if (p->token.kind != RA_TOKEN_NAME)
		return ra_refuse_token(p, "the name of a state or of what edges carry"), NULL;
	e->name = p->token.span;
	ra_advance_token(p);
	e->span = ra_span_from(p, e->span);
	return e;
}

struct ra_expr *ra_parse_number(struct ra_parser *p)
{
	struct ra_expr *e = ra_make_expr(p, RA_E_NUMBER, p->token.span);
	e->number = p->token.number;
	ra_advance_token(p);
	return e;
}

static struct ra_expr *parse_primary(struct ra_parser *p)
{
	struct ra_span begin = p->token.span;
	if (p->token.kind == RA_TOKEN_NUMBER)
		return ra_parse_number(p);
	if (ra_take_token(p, '('))
		return parse_parentheses(p, begin);
	if (ra_at_word(p, RA_WORD_CHILDREN))
		return parse_slot(p);
	if (p->token.kind == RA_TOKEN_NAME && !p->token.word)
		return parse_name(p);
	ra_refuse_token(p, "a value");
	return NULL;
}

static struct ra_expr *lookup_by(struct ra_parser *p, struct ra_expr *base, struct ra_expr *index)
{
	struct ra_expr *e = ra_make_expr(p, RA_E_LOOKUP, base->span);
	e->base = base;
	e->index = index;
	if (!index || !ra_expect_token(p, ']', "']'"))
		return NULL;
	e->span = ra_span_from(p, base->span);
	return e;
}

/* The name or number that a dimension is alone, as an expression; NULL = it is neither. */
static struct ra_expr *index_of(struct ra_parser *p, const struct ra_dim_text *d)
{
	const struct ra_dim_term *t = d->terms.at;
	if (d->value)
		return NULL;
	bool name = d->terms.n == 1 && t->symbol.length == d->span.length;
	if (d->terms.n != 1 || (!name && t->symbol.length))
		return NULL;
	struct ra_expr *index = ra_make_expr(p, name ? RA_E_NAME : RA_E_NUMBER, d->span);
	if (name)
		index->name = d->span;
	else
		index->number = (double)t->coefficient;
	return index;
}

/* `a:b`, of which `begin` was read. */
static struct ra_expr *parse_slice(struct ra_parser *p, struct ra_expr *base, struct ra_dim_text *begin)
{
	struct ra_expr *e = ra_make_expr(p, RA_E_SLICE, base->span);
	e->base = base;
	e->begin = begin;
	e->axis = -1;
	if (!ra_take_token(p, ':'))
		return ra_refuse_token(p, "':' and the end of the slice"), NULL;
	if (p->token.kind != ']' && p->token.kind != ',' && !(e->end = ra_parse_dim(p)))
		return NULL;
	e->span = ra_span_from(p, base->span);
	return e;
}

/* After '[': indices of an element; or slices `a:b` of the last axes with either end left out, or an index: a token's name,
 * children[NUMBER].NAME or a number. */
static struct ra_expr *parse_subscript(struct ra_parser *p, struct ra_expr *base)
{
	struct ra_dim_text *begin = NULL;
	struct ra_expr *index, *outermost = base;
	if (ra_at_word(p, RA_WORD_CHILDREN))
		return lookup_by(p, base, parse_slot(p));
	do {
		begin = NULL;
		if (p->token.kind != ':' && !(begin = ra_parse_index(p)))
			return NULL;
		if (outermost == base && p->token.kind == ']' && (index = index_of(p, begin)) && !ra_at_fill(p))
			return lookup_by(p, base, index);
		if (outermost == base && begin && (p->token.kind == ']' || p->token.kind == ','))
			return ra_parse_element(p, base, begin);
		for (struct ra_expr *e = outermost; e != base; e = e->base)
			e->axis--;
		outermost = parse_slice(p, outermost, begin);
		if (!outermost)
			return NULL;
	} while (ra_take_token(p, ','));
	if (!ra_expect_token(p, ']', "',' or ']'"))
		return NULL;
	outermost->span = ra_span_from(p, base->span);
	return outermost;
}

static struct ra_expr *parse_postfix(struct ra_parser *p)
{
	struct ra_expr *e = parse_primary(p);
	for (int n = p->depth; e && ra_take_token(p, '['); n++)
		e = n > RA_NESTING_LIMIT && ra_refuse_depth(p) ? NULL : parse_subscript(p, e);
	return e;
}

static struct ra_expr *parse_unary(struct ra_parser *p)
{
	if (p->depth > RA_NESTING_LIMIT && ra_refuse_depth(p))
		return NULL;
	struct ra_span begin = p->token.span;
	if (!ra_take_token(p, '-'))
		return parse_postfix(p);
	p->depth++;
	struct ra_expr *base = parse_unary(p);
	p->depth--;
	if (!base)
		return NULL;
	struct ra_expr *e = ra_make_expr(p, RA_E_NEGATE, ra_span_from(p, begin));
	e->base = base;
	return e;
}

/* The operators between operands, by precedence; each level ends with none. */
static const enum ra_op levels[][7] = {
    {RA_OR},
    {RA_AND},
    {RA_LESS, RA_LESS_EQUAL, RA_EQUAL, RA_UNEQUAL, RA_GREATER, RA_GREATER_EQUAL},
    {RA_ADD, RA_SUB},
    {RA_MUL, RA_DIV, RA_MATMUL},
};
enum { LEVELS = sizeof levels / sizeof *levels, LEVEL_NOT = 2, LEVEL_COMPARE = 2 };

enum ra_op ra_find_operator(struct ra_span span)
{
	for (int level = 0; level < LEVELS; level++)
		for (const enum ra_op *op = levels[level]; *op; op++)
			if (ra_span_is(span, ra_op_spelling(*op)))
				return *op;
	return RA_CONST;
}

/* The operator of a level that stands here; RA_CONST = none. */
static enum ra_op operator_at(const struct ra_parser *p, int level)
{
	for (const enum ra_op *op = levels[level]; *op; op++)
		if (ra_span_is(p->token.span, ra_op_spelling(*op)))
			return *op;
	return RA_CONST;
}

static struct ra_expr *parse_level(struct ra_parser *, int level);

/* Whether `not x` stands here; not(x) is a call. */
static bool at_not(const struct ra_parser *p)
{
	struct ra_lexer ahead = p->lexer;
	if (p->token.kind != RA_TOKEN_NAME || !ra_span_is(p->token.span, "not"))
		return false;
	struct ra_token next = ra_next_token(&ahead);
	bool operand = next.kind == RA_TOKEN_NAME && (!next.word || next.word == RA_WORD_CHILDREN);
	return operand || next.kind == RA_TOKEN_NUMBER;
}

static struct ra_expr *parse_not(struct ra_parser *p)
{
	struct ra_span name = p->token.span;
	if (p->depth > RA_NESTING_LIMIT && ra_refuse_depth(p))
		return NULL;
	ra_advance_token(p);
	p->depth++;
	struct ra_expr *arg = parse_level(p, LEVEL_NOT), *e = arg ? ra_make_expr(p, RA_E_CALL, ra_span_from(p, name)) : NULL;
	p->depth--;
	if (e) {
		e->name = name;
		vec_push(p->arena, &e->args, arg);
	}
	return e;
}

static bool refuse_comparisons(struct ra_parser *p)
{
	return ra_report(p->report, DIAG_MODEL_SYNTAX, p->token.span.at, "write a < b and b < c",
			 "a comparison has two sides: '%s' follows one", ra_excerpt(p->arena, p->token.span));
}

/* Parses the operators of one precedence that follow a first operand. */
static struct ra_expr *parse_chain(struct ra_parser *p, struct ra_expr *first, int level)
{
	struct ra_expr *chain = NULL;
	enum ra_op op;
	while ((op = operator_at(p, level))) {
		if (chain && level == LEVEL_COMPARE)
			return refuse_comparisons(p), NULL;
		if (!chain) {
			chain = ra_make_expr(p, RA_E_CHAIN, first->span);
			vec_push(p->arena, &chain->chain.operand, first);
		}
		vec_push(p->arena, &chain->chain.op, op);
		ra_advance_token(p);
		struct ra_expr *next = parse_level(p, level + 1);
		if (!next)
			return NULL;
		vec_push(p->arena, &chain->chain.operand, next);
	}
	if (chain)
		chain->span = ra_span_from(p, first->span);
	return chain ? chain : first;
}

/* Parses an operand and the operators of a precedence and of all higher ones, the highest first, so that each
 * bracket nests one call only. */
static struct ra_expr *parse_level(struct ra_parser *p, int level)
{
	bool negated = level <= LEVEL_NOT && at_not(p);
	struct ra_expr *e = negated ? parse_not(p) : parse_unary(p);
	for (int l = negated ? LEVEL_NOT - 1 : LEVELS - 1; e && l >= level; l--)
		e = parse_chain(p, e, l);
	return e;
}

struct ra_expr *ra_parse_expr(struct ra_parser *p)
{
	p->depth++;
	struct ra_expr *e = parse_level(p, 0);
	p->depth--;
	return e;
}
