/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rewrites that DNNFusion publishes as examples (Niu et al., PLDI 2021, table 4): with which options each is made here,
 * what is not known where it is not, and that it is made by default where ranges prove that.  The counts of rules by
 * law.  Both are tables of doc/algebra.md, whose rows must be those that are found here. */
#include "rewrite/rules.h"
#include "tests/models/helper.h"

#include <stdlib.h>
#include <string.h>

/* The operands are rows a, b and c, or in `proved` values of them that ranges tell enough about. */
static const struct example {
	const char *published, *value, *rule, *proved;
} examples[] = {
    {"`1/A * 1/(A*B) -> (1/A)^2 * 1/B`", "(1 / a) * (1 / (a * b))", "mul_rec_both",
     "(1 / (2 + tanh(a))) * (1 / ((2 + tanh(a)) * (2 + tanh(b))))"},
    {"`(A*sqrt(B)) * (sqrt(B)*C) -> A*B*C`", "(a * sqrt(b)) * (sqrt(b) * c)", "mul_sqrt_shared",
     "(a * sqrt(sigmoid(b))) * (sqrt(sigmoid(b)) * c)"},
    {"`abs(A) * B * abs(C) -> abs(A*C) * B`", "abs(a) * b * abs(c)", "mul_abs_apart", "abs(tanh(a)) * tanh(b) * abs(tanh(c))"},
    {"`(A*sum(B)) * (sum(B)*C) -> A*sum(B)^2*C`", "(a * sum(b)) * (sum(b) * c)", "mul_mul_self",
     "(tanh(a) * sum(tanh(b))) * (sum(tanh(b)) * tanh(c))"},
    {"`A*C + A*B -> A*(B+C)`", "a * c + a * b", "add_mul_both", "tanh(a) * c + tanh(a) * b"},
    {"`A + A*B -> A*(B+1)`", "a + a * p", "add_mul_self", "tanh(a) + tanh(a) * p"},
    {"`(A+B)^2 - (A+B)*C -> (A+B)*(A+B-C)`", "(a + b) * (a + b) - (a + b) * c", "add_mul_neg",
     "(tanh(a) + tanh(b)) * (tanh(a) + tanh(b)) - (tanh(a) + tanh(b)) * c"},
    {"`prod(exp(A)) -> exp(sum(A))`", "prod(exp(a))", "prod_exp", "prod(exp(tanh(a)))"},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static const struct rewrite_rule *find_rule(const char *name)
{
	for (int i = 0; i < rewrite_rule_count; i++)
		if (strcmp(rewrite_rules[i].name, name) == 0)
			return &rewrite_rules[i];
	return NULL;
}

/* --- a derivation --- */

static bool lower_value(struct test_model *m, const char *value, struct sub_program *p)
{
	char text[500];
	int n = snprintf(text, sizeof text,
			 "model example\nstructure none\ninput a[D]\ninput b[D]\ninput c[D]\nparam p[D]\noutput y = %s\n"
			 "output all = sum(a) + sum(b) + sum(c) + sum(p)\n",
			 value);
	if (!load_text(m, "example", text, n, "D=8"))
		return false;
	sub_init(p, &m->arena, "example");
	bool ok = sub_lower_model(p, m->model, m->sizes, SUB_AT_MODEL, &m->diags);
	print_diags(&m->diags);
	return ok;
}

/* Whether the rules, with these options, apply this one to the value. */
static bool is_applied(const char *value, const char *rule, enum rewrite_math math, bool finite)
{
	struct rewrite_options options = {.math = math, .table_bytes = 1 << 20, .finite = finite};
	struct rewrite_trace trace = {0};
	struct test_model m;
	struct sub_program from, contracted, to;
	bool applied = false;
	if (!lower_value(&m, value, &from))
		return false;
	sub_init(&contracted, &m.arena, "example");
	sub_init(&to, &m.arena, "example");
	if (math == REWRITE_EXACT)
		rewrite_contract(&contracted, &from, NULL, NULL);
	rewrite_optimize(&to, math == REWRITE_EXACT ? &contracted : &from, &options, &trace);
	for (size_t i = 0; i < trace.changes.n; i++)
		applied |= strcmp(trace.changes.at[i].rule, rule) == 0;
	free_model(&m);
	return applied;
}

/* Puts the first predicate of the rule that is not proved where the pattern matches what was rewritten by default. */
static void put_missing(const struct example *e, struct str *to)
{
	static const struct rewrite_options options = {.math = REWRITE_REASSOCIATE, .table_bytes = 1 << 20};
	struct test_model m;
	struct sub_program from, p;
	int failed = -1;
	if (!lower_value(&m, e->value, &from))
		return;
	struct str error = str_in(&m.arena);
	const struct rewrite_parsed *rule = rewrite_parse_rule(&m.arena, find_rule(e->rule), &error);
	sub_init(&p, &m.arena, "example");
	rewrite_optimize(&p, &from, &options, NULL);
	for (uint32_t i = 1, n = p.values.n; rule && i < n && failed < 0; i++) {
		sub_ref replaced;
		if (rewrite_apply_rule(&p, (sub_ref){i}, rule, REWRITE_REASSOCIATE, -1, &replaced, &failed) != REWRITE_REFUTED)
			failed = -1;
	}
	str_printf(to, "`%s`", failed >= 0 ? rule->predicate[failed].text : "nothing");
	free_model(&m);
}

/* --- rows of the page --- */

static const char *page;

static void is_row_of_page(const char *row)
{
	size_t n = strlen(row);
	const char *found = strstr(page, row);
	if (!tap_ok(found && found[n] == '\n', "a row of doc/algebra.md: %.40s", row))
		printf("# %s\n", row);
}

static const char *put_answer(bool applied)
{
	return applied ? "yes" : "no";
}

static void test_example(const struct example *e)
{
	struct arena a;
	static jmp_buf jump;
	arena_init(&a, &allocator_default);
	a.escape = &jump;
	struct str row = str_in(&a);
	str_printf(&row, "| %s | `%s` | ", e->published, e->rule);
	put_missing(e, &row);
	str_printf(&row, " | %s | %s | %s | `%s` |", put_answer(is_applied(e->value, e->rule, REWRITE_REASSOCIATE, false)),
		   put_answer(is_applied(e->value, e->rule, REWRITE_REASSOCIATE, true)),
		   put_answer(is_applied(e->value, e->rule, REWRITE_FAST, false)), e->proved);
	is_row_of_page(str_text(&row));
	tap_ok(is_applied(e->proved, e->rule, REWRITE_REASSOCIATE, false), "%s by default where ranges prove it", e->rule);
	tap_ok(!is_applied(e->proved, e->rule, REWRITE_EXACT, true), "%s: never in exact arithmetic, as it rounds otherwise",
	       e->rule);
	arena_free(&a);
}

/* The row of the page that lists the rules of a law which hold in integers. */
static void test_integers(enum rewrite_family family)
{
	char row[2000];
	size_t n = (size_t)snprintf(row, sizeof row, "| %s |", rewrite_family_spelling(family));
	for (int i = 0; i < rewrite_rule_count && n < sizeof row; i++)
		if (rewrite_rules[i].family == family && rewrite_rules[i].types == REWRITE_INTEGERS)
			n += (size_t)snprintf(row + n, sizeof row - n, " `%s`", rewrite_rules[i].name);
	if (n < sizeof row)
		snprintf(row + n, sizeof row - n, " |");
	is_row_of_page(row);
}

/* The rules of a law: all, those that no bit of a result depends on, and those that hold in integers. */
static void test_count(enum rewrite_family family)
{
	static const char *const published[REWRITE_FAMILIES] = {[REWRITE_FAMILY_ASSOCIATIVE] = "45",
								[REWRITE_FAMILY_DISTRIBUTIVE] = "38",
								[REWRITE_FAMILY_COMMUTATIVE] = "66"};
	char row[80];
	int rules = 0, exact = 0, integers = 0;
	for (int i = 0; i < rewrite_rule_count; i++)
		if (rewrite_rules[i].family == family) {
			rules++;
			exact += rewrite_rules[i].exactness == REWRITE_BITS;
			integers += rewrite_rules[i].types != REWRITE_FLOATS;
		}
	snprintf(row, sizeof row, "| %s | %d | %d | %d | %s |", rewrite_family_spelling(family), rules, exact, integers,
		 published[family] ? published[family] : "");
	is_row_of_page(row);
}

int main(void)
{
	size_t length;
	char *text = read_text(source_path("doc/algebra.md"), &length);
	if (!tap_ok(text, "the page is there"))
		return tap_done();
	page = text;
	for (int i = 0; i < EXAMPLES; i++)
		test_example(&examples[i]);
	for (int family = REWRITE_FAMILY_NEUTRAL; family <= REWRITE_FAMILY_GEOMETRIC; family++)
		test_count(family);
	for (int family = REWRITE_FAMILY_NEUTRAL; family <= REWRITE_FAMILY_DISTRIBUTIVE; family++)
		test_integers(family);
	free(text);
	return tap_done();
}
