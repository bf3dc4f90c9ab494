/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of rules, and parsing their texts. */
#include "rewrite/rule_engine.h"

#include "base/decimal.h"

#include <ctype.h>
#include <stdio.h>

const struct rewrite_rule rewrite_rules[] = {
#define RULE(name, law, cost, exactness, types, pattern, condition, replacement)                             \
	{name, REWRITE_FAMILY_##law, REWRITE_##cost, REWRITE_##exactness, REWRITE_##types, pattern, condition, replacement},
#include "rewrite/rules.def"
#undef RULE
};

const int rewrite_rule_count = sizeof rewrite_rules / sizeof *rewrite_rules;

struct parser {
	struct arena *arena;
	struct rewrite_parsed *rule;
	const char *at;
	struct str *error;
	bool pattern; /* names may be new */
	bool failed;
};

static const struct rewrite_term *report_error(struct parser *s, const char *what)
{
	if (!s->failed && s->error)
		str_printf(s->error, "%s: %s at '%s'", s->rule->rule->name, what, s->at);
	s->failed = true;
	return NULL;
}

static bool accept_char(struct parser *s, char c)
{
	while (*s->at == ' ')
		s->at++;
	if (*s->at != c)
		return false;
	s->at++;
	return true;
}

static size_t word_length(const struct parser *s)
{
	size_t n = 0;
	while (isalnum((unsigned char)s->at[n]) || s->at[n] == '_')
		n++;
	return n;
}

/* The number of a name among those of its kind; a pattern adds new ones.  -1 if nothing binds it. */
static int name_of(struct parser *s, char *names, int *n, char letter)
{
	for (int i = 0; i < *n; i++)
		if (names[i] == letter)
			return i;
	if (!s->pattern || *n == REWRITE_MAX_NAMES)
		return -1;
	names[*n] = letter;
	return (*n)++;
}

static bool find_op(const char *word, size_t n, struct rewrite_term *t)
{
	static const char *const classes[] = {
	    [SUB_UNARY] = "unary", [SUB_BINARY] = "binary", [SUB_REDUCE] = "reduce"};
	for (int c = SUB_UNARY; c <= SUB_REDUCE; c++)
		if (strlen(classes[c]) == n && strncmp(classes[c], word, n) == 0) {
			t->kind = REWRITE_TERM_CLASS;
			t->class = c;
			t->args = c == SUB_BINARY ? 2 : 1;
			return true;
		}
	for (int op = 0; op < sub_op_count; op++)
		if (sub_class_of(op) != SUB_SOURCE && op != SUB_ASSIGN && strlen(sub_spelling(op)) == n &&
		    strncmp(sub_spelling(op), word, n) == 0) {
			t->kind = REWRITE_TERM_OP;
			t->op = op;
			t->class = sub_class_of(op);
			t->args = sub_traits_of(op)->arity;
			return true;
		}
	return false;
}

/* Parses `k`, or `k0` and `k1` for the sides of the cond along k, or `kA` and `k0A` for what these index
 * inside of A. */
static bool parse_index(struct parser *s, struct rewrite_term *t, int *index)
{
	struct rewrite_parsed *r = s->rule;
	while (*s->at == ' ')
		s->at++;
	if (!islower((unsigned char)*s->at))
		return report_error(s, "no index variable");
	*index = name_of(s, r->index, &r->indices, *s->at++);
	t->side = *s->at == '0' || *s->at == '1' ? *s->at++ - '0' : -1;
	if (isupper((unsigned char)*s->at)) {
		t->inside = name_of(s, r->move, &r->moves, *s->at++);
		if (t->inside < 0)
			return report_error(s, "this map is bound by nothing before");
	}
	return *index >= 0 || report_error(s, "this index variable is bound by nothing before");
}

/* Parses the variables of a reduction: in a replacement there may be two. */
static bool parse_indices(struct parser *s, struct rewrite_term *t)
{
	if (!parse_index(s, t, &t->index))
		return false;
	return s->pattern || !accept_char(s, ',') || parse_index(s, t, &t->second);
}

static const struct rewrite_term *parse_term(struct parser *, bool in_call);

static bool parse_args(struct parser *s, struct rewrite_term *t, int most, bool in_call)
{
	if (!accept_char(s, '('))
		return report_error(s, "an opening parenthesis is missing");
	int n = 0;
	do {
		if (n == most)
			return report_error(s, "too many arguments");
		t->arg[n] = parse_term(s, in_call);
		if (!t->arg[n++])
			return false;
	} while (accept_char(s, ','));
	if (t->args && n != t->args)
		return report_error(s, "arguments are missing");
	t->args = n;
	return accept_char(s, ')') || report_error(s, "a closing parenthesis is missing");
}

static bool parse_move(struct parser *s, struct rewrite_term *t)
{
	t->kind = REWRITE_TERM_MOVE;
	t->name = name_of(s, s->rule->move, &s->rule->moves, *s->at++);
	if (t->name < 0)
		return report_error(s, "this map is bound by nothing before");
	t->args = *s->at == '(';
	return !t->args || parse_args(s, t, 1, false);
}

/* Parses a letter.  As an argument of a call it is an index variable if it is one in the pattern, else a
 * value. */
static bool parse_name(struct parser *s, struct rewrite_term *t, bool in_call)
{
	struct rewrite_parsed *r = s->rule;
	char letter = *s->at;
	bool index = in_call && memchr(r->index, letter, r->indices) && !memchr(r->value, letter, r->values);
	t->kind = index ? REWRITE_TERM_INDEX : REWRITE_TERM_NAME;
	if (index)
		return parse_index(s, t, &t->name);
	s->at++;
	t->name = name_of(s, r->value, &r->values, letter);
	return t->name >= 0 || report_error(s, "this value is bound by nothing");
}

static bool parse_operator(struct parser *s, struct rewrite_term *t, size_t length)
{
	const char *word = s->at;
	bool known = find_op(word, length, t);
	s->at += length;
	if (!known) {
		t->kind = REWRITE_TERM_CALL;
		t->function = s->pattern ? -1 : rewrite_find_function(word, length);
		if (t->function < 0)
			return report_error(s, "this is no operator");
		return parse_args(s, t, REWRITE_MAX_ARGS, true);
	}
	if (accept_char(s, '[') && (!parse_indices(s, t) || !accept_char(s, ']')))
		return report_error(s, "a variable in brackets is expected");
	if ((t->class == SUB_REDUCE || t->class == SUB_CONTRACTION || t->op == SUB_COND) != (t->index >= 0))
		return report_error(s, "reductions and cond have a variable, others have none");
	return parse_args(s, t, t->args, false);
}

static const struct rewrite_term *parse_term(struct parser *s, bool in_call)
{
	struct rewrite_term *t = ARENA_NEW(s->arena, struct rewrite_term);
	t->index = t->second = t->side = t->inside = -1;
	while (*s->at == ' ')
		s->at++;
	size_t n = word_length(s);
	bool ok;
	if (isdigit((unsigned char)*s->at) || *s->at == '-') {
		const char *start = s->at;
		while (isdigit((unsigned char)*s->at) || *s->at == '-' || *s->at == '.')
			s->at++;
		t->kind = REWRITE_TERM_NUMBER;
		t->number = decimal_to_double(arena_text(s->arena, start, s->at - start));
		ok = true;
	} else if (isupper((unsigned char)*s->at) && n == 1) {
		ok = parse_move(s, t);
	} else if (n == 1 || (n == 2 && in_call && (s->at[1] == '0' || s->at[1] == '1'))) {
		ok = parse_name(s, t, in_call);
	} else {
		ok = n > 0 ? parse_operator(s, t, n) : report_error(s, "a term is expected") != NULL;
	}
	return ok ? t : NULL;
}

static bool parse_predicate(struct parser *s)
{
	struct rewrite_parsed *r = s->rule;
	while (*s->at == ' ')
		s->at++;
	size_t n = word_length(s);
	if (r->predicates == REWRITE_MAX_PREDICATES)
		return report_error(s, "too many predicates");
	struct rewrite_predicate *p = &r->predicate[r->predicates++];
	struct rewrite_term args = {0};
	const char *start = s->at;
	p->function = rewrite_find_predicate(s->at, n);
	if (p->function < 0)
		return report_error(s, "this is no predicate");
	s->at += n;
	p->assumed = accept_char(s, '?');
	if (!parse_args(s, &args, REWRITE_MAX_ARGS, true))
		return false;
	p->text = arena_text(s->arena, start, s->at - start);
	p->args = args.args;
	memcpy(p->arg, args.arg, sizeof p->arg);
	return true;
}

static bool parse_condition(struct parser *s)
{
	while (*s->at == ' ')
		s->at++;
	if (!*s->at)
		return true;
	do
		if (!parse_predicate(s))
			return false;
	while (accept_char(s, ','));
	return true;
}

static bool parse_end(struct parser *s)
{
	while (*s->at == ' ')
		s->at++;
	return !*s->at || report_error(s, "text is left over");
}

struct rewrite_parsed *rewrite_parse_rule(struct arena *a, const struct rewrite_rule *rule, struct str *error)
{
	struct rewrite_parsed *r = ARENA_NEW(a, struct rewrite_parsed);
	struct parser s = {.arena = a, .rule = r, .at = rule->pattern, .error = error, .pattern = true};
	r->rule = rule;
	r->floats = true;
	r->pattern = parse_term(&s, false);
	if (!r->pattern || !parse_end(&s))
		return NULL;
	s.pattern = false;
	s.at = rule->condition;
	if (!parse_condition(&s) || !parse_end(&s))
		return NULL;
	s.at = rule->replacement;
	r->replacement = parse_term(&s, false);
	return r->replacement && parse_end(&s) ? r : NULL;
}
