/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The column TYPES of the table of rules, on random instances of each pattern whose values are i32 or i64:
 *
 *   - a row for INTEGERS, or for ALL types, gives the same integers on both sides, also where they wrap;
 *   - a row for FLOATS gives others somewhere, or is of operators that integers do not have.
 *
 *     integer_rules_test [RULE]     one rule alone; ESPALIER_SEEDS = tries for each */
#include "tests/rewrite/instance.h"
#include "tests/sample.h"

enum { TRIES = 400000, ENOUGH = 120 / SAMPLE };

/* --- data --- */

static int64_t random_integer(void)
{
	static const int64_t special[] = {INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 46341, 65536, 16777217, -65536};
	switch (random_below(4)) {
	case 0:
		return random_below(7) - 3;
	case 1:
		return special[random_below(sizeof special / sizeof *special)];
	default:
		return (int64_t)(random_bits() ^ (uint64_t)random_bits() << 32);
	}
}

/* --- the instance in integers --- */

static enum dtype choose_memory(enum dtype dtype)
{
	static const enum dtype narrow[] = {DTYPE_I32, DTYPE_I32, DTYPE_I8, DTYPE_U8, DTYPE_I16};
	return dtype == DTYPE_I64 ? dtype : narrow[random_below(sizeof narrow / sizeof *narrow)];
}

/* Whether a pattern wants certain numbers. */
static bool names_numbers(const struct rewrite_term *t)
{
	bool any = t->kind == REWRITE_TERM_NUMBER;
	for (int a = 0; a < t->args; a++)
		any |= names_numbers(t->arg[a]);
	return any;
}

static bool is_whole(double x)
{
	return x == floor(x) && fabs(x) < 0x1p31;
}

/* The same value of integers; `now` has its arguments.  Not found: it has no meaning there.  An infinite fill is the least or
 * the largest integer, as around maxima and minima.  `any_number`: numbers become others, large ones among them. */
static sub_ref copy_value(struct bench *to, const struct sub_value *from, enum dtype dtype, bool any_number, const sub_ref *now)
{
	struct sub_value v = *from;
	bool elementwise = sub_class_of(v.op) >= SUB_UNARY && sub_class_of(v.op) != SUB_MOVE;
	if (elementwise && !sub_takes_integers(sub_reduces(v.op) ? sub_traits_of(v.op)->combine : v.op))
		return (sub_ref){0};
	if ((v.op == SUB_CONST && !is_whole(v.constant)) || (v.fills && !is_whole(v.fill) && !isinf(v.fill)) || v.op == SUB_STATE)
		return (sub_ref){0};
	for (int a = 0; a < v.args; a++) {
		v.arg[a].value = now[v.arg[a].value.i];
		if (!v.arg[a].value.i)
			return (sub_ref){0};
	}
	if (v.op == SUB_CONST)
		v.dtype = dtype;
	if (v.op == SUB_CONST && any_number)
		v.constant = (int32_t)random_integer();
	return sub_add(&to->p, v, &to->diags);
}

static void copy_declarations(struct bench *to, const struct sub_program *from, enum dtype dtype)
{
	sub_copy_structure(&to->p, from);
	for (size_t i = 0; i < from->vars.n; i++)
		if (from->vars.at[i].set == SUB_DIM)
			sub_dim(&to->p, from->vars.at[i].extent, from->vars.at[i].ordinal);
	for (size_t i = 0; i < from->params.n; i++) {
		struct sub_tensor t = from->params.at[i];
		t.dtype = choose_memory(dtype);
		vec_push(&to->arena, &to->p.params, t);
	}
	for (size_t i = 0; i < from->inputs.n; i++) {
		struct sub_input in = from->inputs.at[i];
		in.row.dtype = in.token ? in.row.dtype : choose_memory(dtype);
		vec_push(&to->arena, &to->p.inputs, in);
	}
}

/* Whether variables have the same numbers in both, so that values can be copied with them. */
static bool same_variables(const struct sub_program *a, const struct sub_program *b)
{
	bool same = a->vars.n == b->vars.n;
	for (size_t i = 0; same && i < a->vars.n; i++)
		same = a->vars.at[i].set == b->vars.at[i].set && a->vars.at[i].extent == b->vars.at[i].extent;
	return same;
}

static sub_ref copy_in_integers(struct bench *to, const struct sub_program *from, sub_ref root, enum dtype dtype, bool any_number)
{
	sub_ref *now = ARENA_ARRAY(&to->arena, sub_ref, from->values.n);
	copy_declarations(to, from, dtype);
	if (!same_variables(&to->p, from))
		return (sub_ref){0};
	for (uint32_t i = 1; i < from->values.n; i++)
		now[i] = copy_value(to, &from->values.at[i], dtype, any_number, now);
	return now[root.i];
}

static const void *random_elements(struct arena *a, enum dtype dtype, int64_t n)
{
	int bytes = dtype_traits_of(dtype)->bytes;
	char *at = ARENA_ARRAY(a, char, n * bytes + 8);
	for (int64_t i = 0; i < n; i++) {
		int64_t x = random_integer();
		memcpy(at + i * bytes, &x, (size_t)bytes); /* the low bytes come first */
	}
	return at;
}

static void make_data(const struct sub_program *p, struct arena *a, struct data *d)
{
	random_data(p, a, false, d);
	const void **data = ARENA_ARRAY(a, const void *, p->inputs.n + 1);
	for (size_t i = 0; i < p->inputs.n; i++) {
		const struct sub_tensor *row = &p->inputs.at[i].row;
		data[i] = p->inputs.at[i].token ? d->forest.data[i]
						: random_elements(a, row->dtype, d->forest.nodes * row_of(row));
	}
	d->forest.data = data;
	for (size_t i = 0; i < p->params.n; i++)
		d->params[i] = random_elements(a, p->params.at[i].dtype, row_of(&p->params.at[i]));
}

/* --- both sides --- */

static sub_ref over_nodes(struct bench *b, sub_ref r)
{
	const struct sub_value *v = sub_at(&b->p, r);
	int vars[SUB_MAX_VARS + 1] = {b->p.node};
	if ((v->vars && v->var[0] == b->p.node) || v->vars == SUB_MAX_VARS)
		return r;
	memcpy(vars + 1, v->var, v->vars * sizeof *vars);
	struct sub_value move = move_of(b, SUB_ASSIGN, r, 1 + v->vars, vars);
	struct sub_map *map = new_maps(b, &move);
	for (int i = 0; i < v->vars; i++)
		map[i] = map_of(v->var[i], 1, 0);
	return sub_add(&b->p, move, &b->diags);
}

static void declare_output(struct bench *b, struct sub_body *body, const char *name, sub_ref r)
{
	make_output(b, body, name, r, false);
	b->p.outputs.at[b->p.outputs.n - 1].row.dtype = sub_at(&b->p, r)->dtype;
}

enum verdict { UNKNOWN, SAME, DIFFERENT };

static enum verdict compare_sides(struct bench *b, sub_ref from, sub_ref to)
{
	struct data d;
	from = over_nodes(b, from), to = over_nodes(b, to);
	if (!from.i || !to.i)
		return UNKNOWN;
	struct sub_body *body = make_body(b, "output", SUB_EVERY_NODE);
	declare_output(b, body, "from", from);
	declare_output(b, body, "to", to);
	if (!sub_verify(&b->p, &b->diags))
		return UNKNOWN;
	make_data(&b->p, &b->arena, &d);
	double *x = evaluate(&b->p, SUB_BINARY64, &d, &b->arena);
	size_t half = d.results / 2;
	return !x ? UNKNOWN : memcmp(x, x + half, half * sizeof *x) == 0 ? SAME : DIFFERENT;
}

static void print_program(struct bench *b, const char *rule, uint64_t seed)
{
	struct str s = str_in(&b->arena);
	sub_print(&b->p, &s);
	printf("# %s, seed %llu\n", rule, (unsigned long long)seed);
	for (char *line = strtok((char *)str_text(&s), "\n"); line; line = strtok(NULL, "\n"))
		printf("# %s\n", line);
}

/* Applies a rule to one instance in integers. */
static enum verdict try_instance(const struct rewrite_parsed *rule, uint64_t seed, bool print)
{
	struct bench floats, b;
	struct instance in;
	enum verdict verdict = UNKNOWN;
	int failed;
	sub_ref to = {0};
	bench_open(&floats);
	bench_open(&b);
	sub_ref from = make_instance(&in, &floats, rule, seed);
	if (from.i)
		from = copy_in_integers(&b, &floats.p, from, seed % 3 ? DTYPE_I32 : DTYPE_I64,
					!names_numbers(rule->pattern) && random_below(2));
	bool integer = from.i && sub_at(&b.p, from)->dtype != DTYPE_F32;
	if (integer && rewrite_apply_rule(&b.p, from, rule, REWRITE_EXACT, -1, &to, &failed) == REWRITE_APPLIED)
		verdict = compare_sides(&b, from, to);
	if (print && verdict == DIFFERENT)
		print_program(&b, rule->rule->name, seed);
	bench_close(&b);
	bench_close(&floats);
	return verdict;
}

/* --- a rule --- */

static bool needs_floats(const struct rewrite_term *t)
{
	bool computes = t->kind == REWRITE_TERM_OP && t->op != SUB_COND;
	if (computes && !sub_takes_integers(sub_reduces(t->op) ? sub_traits_of(t->op)->combine : t->op))
		return true;
	for (int a = 0; a < t->args; a++)
		if (needs_floats(t->arg[a]))
			return true;
	return t->kind == REWRITE_TERM_NUMBER && !is_whole(t->number);
}

static void check_rule(const struct rewrite_rule *rule, uint64_t tries)
{
	struct arena arena;
	static jmp_buf jump;
	arena_init(&arena, &allocator_default);
	arena.escape = &jump;
	struct rewrite_rule forced = *rule;
	bool marked = rule->types != REWRITE_FLOATS;
	int same = 0, different = 0;
	if (!marked)
		forced.types = REWRITE_INTEGERS;
	const struct rewrite_parsed *parsed = rewrite_parse_rule(&arena, &forced, NULL);
	bool floats = parsed && (needs_floats(parsed->pattern) || needs_floats(parsed->replacement));
	for (uint64_t seed = 1; parsed && !floats && seed <= tries && !different && (!marked || same < ENOUGH); seed++) {
		enum verdict v = try_instance(parsed, seed, marked);
		same += v == SAME;
		different += v == DIFFERENT;
	}
	if (marked)
		tap_ok(parsed && !different && same, "%s: both sides are the same integers in %d instances", rule->name, same);
	else
		tap_ok(floats || different, "%s: %s (%d alike before)", rule->name,
		       floats ? "is of operators that integers lack" : "gives other integers", same);
	arena_free(&arena);
}

/* An addition that is exact in i64 and not in binary64 bounds nothing. */
static void test_large_numbers(void)
{
	struct bench b;
	bench_open(&b);
	struct rewrite_options options = {.math = REWRITE_EXACT};
	struct rewriter w = {.p = &b.p, .arena = &b.arena, .options = &options};
	sub_ref number[2];
	for (int i = 0; i < 2; i++)
		number[i] = sub_add(
		    &b.p, (struct sub_value){.op = SUB_CONST, .dtype = DTYPE_I64, .constant = i ? 1 : 0x1p53}, &b.diags);
	sub_ref sum = binary_of(&b, SUB_ADD, sub_as_is(&b.p, number[0]), sub_as_is(&b.p, number[1]));
	tap_ok(sum.i && rewrite_note_of(&w, sum)->fact.range.high > 0x1p53 + 1, "2^53 + 1 is not known to be at most 2^53");
	bench_close(&b);
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	test_large_numbers();
	for (int i = 0; i < rewrite_rule_count; i++)
		if (argc < 2 || strcmp(argv[1], rewrite_rules[i].name) == 0)
			check_rule(&rewrite_rules[i], seeds ? strtoull(seeds, NULL, 10) : TRIES);
	return tap_done();
}
