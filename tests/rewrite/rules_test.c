/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Every row of the table of rules, on random instances of its pattern:
 *
 *   - where the rule applies, both sides mean the same: to the bit in binary32 on any numbers if it is exact,
 * else to a tolerance on tame ones; and modulo a prime, exactly, wherever that has a meaning;
 *   - the measure changes as the cost class says;
 *   - for each predicate of the condition there is an instance that violates this one alone: there the rule
 * does not apply, and forcing it goes wrong, or does not pay;
 *   - a row that is not exact changes a bit somewhere.
 *
 *     rules_test [RULE]     one rule alone; ESPALIER_SEEDS = tries for each */
#include "tests/rewrite/instance.h"
#include "tests/sample.h"

enum { TRIES = 30000, ENOUGH = 200 / SAMPLE, MOST_LOWERED = 150 };

/* --- an instance on both sides --- */

struct pair {
	struct bench b;
	struct data d;
	sub_ref from, to;
	sub_ref sum[2]; /* of each side and a parameter: lowering contracts products into additions */
};

/* Over nodes, whatever the value runs over. */
static sub_ref per_node(struct bench *b, sub_ref r)
{
	const struct sub_value *v = sub_at(&b->p, r);
	int vars[SUB_MAX_VARS + 1] = {b->p.node};
	if (v->vars && v->var[0] == b->p.node)
		return r;
	for (int i = 0; i < v->vars; i++)
		vars[1 + i] = v->var[i];
	struct sub_value move = move_of(b, SUB_ASSIGN, r, 1 + v->vars, vars);
	struct sub_map *map = new_maps(b, &move);
	for (int i = 0; i < v->vars; i++)
		map[i] = map_of(v->var[i], 1, 0);
	return sub_add(&b->p, move, &b->diags);
}

/* States are inputs of their shape. */
static void keep_states(struct bench *b)
{
	static const char *const names[] = {"leaf", "inner"};
	sub_ref value[8];
	size_t n = b->p.states.n;
	for (size_t s = 0; s < n; s++)
		value[s] = make_input(b, "h", b->p.states.at[s].rank, b->p.states.at[s].shape);
	for (int domain = SUB_LEAF; domain <= SUB_INNER; domain++) {
		struct sub_body *body = make_body(b, names[domain], domain);
		for (size_t s = 0; s < n; s++)
			store_state(b, body, s, value[s]);
	}
}

static sub_ref and_param(struct bench *b, sub_ref r, sub_ref *param)
{
	struct sub_use u = sub_as_is(&b->p, r);
	int64_t shape[TENSOR_MAX_RANK];
	if (u.vars - 1 > TENSOR_MAX_RANK)
		return r;
	for (int i = 1; i < u.vars; i++)
		shape[i - 1] = b->p.vars.at[u.var[i]].extent;
	if (!param->i)
		*param = make_param(b, "W", u.vars - 1, shape);
	return binary_of(b, SUB_ADD, named(b, *param, u.vars - 1, u.var + 1), u);
}

static bool finish_pair(struct pair *p, bool wild)
{
	struct bench *b = &p->b;
	sub_ref from = per_node(b, p->from), to = per_node(b, p->to), param = {0};
	if (b->p.states.n > 4)
		return false;
	p->sum[0] = and_param(b, from, &param);
	p->sum[1] = and_param(b, to, &param);
	keep_states(b);
	struct sub_body *body = make_body(b, "output", SUB_EVERY_NODE);
	make_output(b, body, "from", from, false);
	make_output(b, body, "to", to, false);
	random_data(&b->p, &b->arena, wild, &p->d);
	return true;
}

static bool verified(struct pair *p)
{
	bool ok = sub_verify(&p->b.p, &p->b.diags);
	diags_free(&p->b.diags);
	return ok;
}

static bool same_bits(double a, double b)
{
	return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof a) == 0;
}

static bool all_same(const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!same_bits(x[i], x[n + i]))
			return false;
	return true;
}

/* Not by rounding alone: of numbers that are not small against `unit`. */
static bool far_apart(double a, double b, double unit)
{
	if (isfinite(a) != isfinite(b) || isnan(a) != isnan(b))
		return true;
	return isfinite(a) ? fabs(a - b) > 1e-6 * (unit + fabs(a) + fabs(b)) : !isnan(a) && a != b;
}

static bool any_far(const double *x, int64_t n, double unit)
{
	for (int64_t i = 0; i < n; i++)
		if (far_apart(x[i], x[n + i], unit))
			return true;
	return false;
}

static bool tame(const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(x[i]) < 1e6))
			return false;
	return true;
}

static double *values_of(struct pair *p, enum sub_arithmetic arithmetic)
{
	return evaluate(&p->b.p, arithmetic, &p->d, &p->b.arena);
}

/* --- what is wanted of a rule --- */

struct checks {
	const struct rewrite_rule *rule;
	const struct rewrite_parsed *parsed;
	struct arena arena;
	int applied, agreed, fielded, cheaper, equal, costlier, lowered;
	bool whole; /* else only that both sides mean the same */
	bool wrong, bits_differ;
	bool refuted[REWRITE_MAX_PREDICATES],
	    wasted[REWRITE_MAX_PREDICATES]; /* forced: goes wrong; does not pay */
	int violated[REWRITE_MAX_PREDICATES];
};

/* Proofs are asked for, whatever `fast` would take for granted. */
static enum rewrite_math math_of(const struct rewrite_rule *rule)
{
	return rule->exactness == REWRITE_BITS ? REWRITE_EXACT : REWRITE_REASSOCIATE;
}

static struct rewrite_measure measure_of(struct bench *b, sub_ref r, enum rewrite_math math)
{
	struct rewrite_options options = {.math = math, .table_bytes = INT64_MAX};
	struct rewriter w = {.p = &b->p, .arena = &b->arena, .options = &options};
	rewrite_note_of(&w, r);
	rewrite_add_use(&w, r);
	return w.measure;
}

static bool uses_op(const struct sub_program *p, enum sub_op op)
{
	for (size_t i = 1; i < p->values.n; i++)
		if (p->values.at[i].op == op)
			return true;
	return false;
}

static void say(const struct checks *c, struct pair *p, uint64_t seed, const char *what)
{
	struct str s = str_in(&p->b.arena);
	sub_print(&p->b.p, &s);
	printf("# %s, seed %llu: %s\n", c->rule->name, (unsigned long long)seed, what);
	for (char *line = strtok((char *)str_text(&s), "\n"); line; line = strtok(NULL, "\n"))
		printf("# %s\n", line);
}

/* --- where it applies --- */

static void check_measure(struct checks *c, struct pair *p)
{
	enum rewrite_math math = math_of(c->rule);
	struct rewrite_measure from = measure_of(&p->b, p->from, math), to = measure_of(&p->b, p->to, math);
	c->cheaper += rewrite_is_lower(to, from);
	c->costlier += rewrite_is_lower(from, to);
	c->equal += !rewrite_is_lower(to, from) && !rewrite_is_lower(from, to);
}

/* Modulo a prime, but for what is rounded when it is folded. */
static void check_field(struct checks *c, struct pair *p, uint64_t seed)
{
	bool divides = uses_op(&p->b.p, SUB_REC) || uses_op(&p->b.p, SUB_DIVIDE);
	if (divides || strncmp(c->rule->replacement, "fold", 4) == 0)
		return;
	double *x = values_of(p, SUB_FIELD);
	if (!x)
		return;
	c->fielded++;
	if (memcmp(x, x + p->d.results / 2, p->d.results / 2 * sizeof *x) != 0) {
		c->wrong = true;
		say(c, p, seed, "the two sides differ in the field");
	}
}

static void check_values(struct checks *c, struct pair *p, uint64_t seed, bool wild)
{
	bool exact = c->rule->exactness == REWRITE_BITS;
	double *x = values_of(p, exact ? SUB_BINARY32 : SUB_BINARY64);
	int64_t n = p->d.results / 2;
	if (!wild && !exact && !tame(x, 2 * n) && tame(x, n) == tame(x + n, n))
		return;
	if (wild && !exact)
		return;
	c->agreed++;
	if (exact ? !all_same(x, n) : any_far(x, n, 1)) {
		c->wrong = true;
		say(c, p, seed, exact ? "not the same bits" : "not the same values");
	}
}

/* One side, alone or as a term of a sum, lowered and interpreted. */
static float *run_lowered(struct pair *p, int output, bool summed)
{
	static const int limits[16] = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS};
	struct sub_program alone = p->b.p;
	struct compiled c;
	struct data d = p->d;
	struct sub_body *bodies = arena_copy(&p->b.arena, alone.bodies.at, alone.bodies.n * sizeof *bodies);
	struct sub_body *last = &bodies[alone.bodies.n - 1];
	alone.bodies.at = bodies;
	last->stores.at = arena_copy(&p->b.arena, last->stores.at, 2 * sizeof *last->stores.at);
	last->stores.at[0].value =
	    summed ? sub_as_is(&p->b.p, p->sum[output]) : last->stores.at[output].value;
	last->stores.at[1].value = last->stores.at[0].value;
	if (!compile_program(&c, &p->b.arena, &alone, limits, "interpreter", "avx2", "infer_bounds",
			     &p->b.diags))
		return NULL;
	return run_compiled(&c, &p->b.arena, &d, &p->b.diags);
}

static float *falling_numbers(struct arena *a, int64_t n)
{
	float *x = ARENA_ARRAY(a, float, n + 1);
	for (int64_t i = 0; i < n; i++)
		x[i] = falling_number();
	return x;
}

/* For all that nodes carry, and all weights. */
static void take_falling_numbers(struct pair *p)
{
	const struct sub_program *q = &p->b.p;
	struct arena *a = &p->b.arena;
	const void **data = arena_copy(a, p->d.forest.data, q->inputs.n * sizeof *data);
	for (size_t i = 0; i < q->inputs.n; i++)
		if (!q->inputs.at[i].token)
			data[i] = falling_numbers(a, p->d.forest.nodes * row_of(&q->inputs.at[i].row));
	for (size_t i = 0; i < q->params.n; i++)
		p->d.params[i] = falling_numbers(a, row_of(&q->params.at[i]));
	p->d.forest.data = data;
}

static bool all_same_floats(const float *x, const float *y, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!same_bits(x[i], y[i]))
			return false;
	return true;
}

/* Rows of rank 4 are for the oracle only. */
static bool can_be_lowered(const struct sub_program *p)
{
	for (size_t i = 0; i < p->inputs.n; i++)
		if (!p->inputs.at[i].token && p->inputs.at[i].row.rank > 1)
			return false;
	for (size_t i = 0; i < p->outputs.n; i++)
		if (p->outputs.at[i].row.rank > IMAGE_MAX_RANK)
			return false;
	for (size_t i = 0; i < p->states.n; i++)
		if (p->states.at[i].rank > IMAGE_MAX_RANK)
			return false;
	return true;
}

static void look_for_bits(struct checks *c, struct pair *p)
{
	double *x = values_of(p, SUB_BINARY32);
	int64_t n = p->d.results / 2;
	c->bits_differ |= !all_same(x, n);
	if (c->bits_differ || c->lowered >= MOST_LOWERED || c->applied < 50 || !can_be_lowered(&p->b.p))
		return;
	bool summed = c->lowered++ % 2;
	if (c->lowered % 4 == 1)
		take_falling_numbers(p);
	float *from = run_lowered(p, 0, summed), *to = run_lowered(p, 1, summed);
	c->bits_differ |= from && to && !all_same_floats(from, to, n);
	diags_free(&p->b.diags);
}

static void check_applied(struct checks *c, struct pair *p, uint64_t seed, bool wild)
{
	check_measure(c, p);
	if (c->applied >= ENOUGH && (c->rule->exactness == REWRITE_BITS || c->bits_differ) &&
	    c->agreed >= ENOUGH)
		return;
	c->applied++;
	if (!finish_pair(p, wild))
		return;
	if (!verified(p)) {
		c->wrong = true;
		say(c, p, seed, "what replaces it is not valid");
		return;
	}
	check_values(c, p, seed, wild);
	check_field(c, p, seed);
	if (c->rule->exactness != REWRITE_BITS && !c->bits_differ)
		look_for_bits(c, p);
}

/* --- where it must not be --- */

/* Predicates that say where a rule pays, or what the lowering of an addition sees, rather than where it is
 * right. */
static bool is_about_cost(const char *predicate)
{
	static const char *const names[] = {"constant", "looks_up", "plain", "renames", "smaller"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(predicate, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* What `fast` takes for granted is about small numbers as well. */
static bool goes_wrong(struct checks *c, struct pair *p, int predicate, bool wild)
{
	double unit = c->parsed->predicate[predicate].assumed ? 0 : 1;
	if (!finish_pair(p, wild))
		return false;
	if (!verified(p))
		return true;
	bool exact = c->rule->exactness == REWRITE_BITS;
	double *x = values_of(p, wild || exact ? SUB_BINARY32 : SUB_BINARY64);
	return exact ? !all_same(x, p->d.results / 2) : any_far(x, p->d.results / 2, unit);
}

/* Nothing is lower: what there would be to gain is not there. */
static bool does_not_pay(const struct checks *c, struct pair *p)
{
	enum rewrite_math math = math_of(c->rule);
	return !rewrite_is_lower(measure_of(&p->b, p->to, math), measure_of(&p->b, p->from, math));
}

/* An instance that violates this predicate alone: what comes of the rule all the same? */
static void check_refuted(struct checks *c, int predicate, uint64_t seed, bool wild)
{
	struct pair p;
	struct instance in;
	int failed;
	bench_open(&p.b);
	p.from = make_instance(&in, &p.b, c->parsed, seed);
	p.to.i = 0;
	enum rewrite_outcome forced =
	    rewrite_apply_rule(&p.b.p, p.from, c->parsed, math_of(c->rule), predicate, &p.to, &failed);
	if (forced == REWRITE_UNBUILT) {
		c->refuted[predicate] |= !p.to.i; /* nothing could replace it */
		c->wasted[predicate] |= p.to.i;	  /* itself would */
	} else if (forced == REWRITE_APPLIED) {
		c->wasted[predicate] |= does_not_pay(c, &p);
		c->violated[predicate]++;
		c->refuted[predicate] |= goes_wrong(c, &p, predicate, wild);
	}
	bench_close(&p.b);
}

/* A product of numbers, which an addition would not round, at so many places that it shows at some. */
static sub_ref make_contracted(struct bench *b)
{
	sub_ref side[2];
	for (int i = 0; i < 2; i++) {
		int vars[] = {b->p.node, sub_dim(&b->p, 4096, 0)};
		side[i] =
		    sub_add(&b->p, move_of(b, SUB_ASSIGN, constant_of(b, i ? 0.1 : 0.7), 2, vars), &b->diags);
	}
	return binary_of(b, SUB_MULTIPLY, sub_as_is(&b->p, side[0]), sub_as_is(&b->p, side[1]));
}

/* Instances that chance does not make. */
static const struct {
	const char *rule;
	sub_ref (*make)(struct bench *);
} hand_made[] = {{"binary_number", make_contracted}};

static void look_by_hand(struct checks *c)
{
	for (size_t i = 0; i < sizeof hand_made / sizeof *hand_made; i++) {
		struct pair p;
		int failed;
		if (strcmp(hand_made[i].rule, c->rule->name) != 0)
			continue;
		bench_open(&p.b);
		p.from = hand_made[i].make(&p.b);
		if (rewrite_apply_rule(&p.b.p, p.from, c->parsed, math_of(c->rule), -1, &p.to, &failed) ==
			REWRITE_APPLIED &&
		    finish_pair(&p, false)) {
			float *from = run_lowered(&p, 0, true), *to = run_lowered(&p, 1, true);
			c->bits_differ |= from && to && !all_same_floats(from, to, p.d.results / 2);
		}
		bench_close(&p.b);
	}
}

/* The expansions of exp, log and sigmoid never fall, as far as anybody looked, but that is no promise. */
static bool is_cautious(const struct rewrite_rule *rule)
{
	static const char *const names[] = {"smax_exp_both", "exp_smax", "max_exp",	"smax_log_both",
					    "log_smax",	     "max_log",	 "max_sigmoid", "smax_sigmoid_both",
					    "smin_exp_both", "min_exp",	 "min_sigmoid", "smin_sigmoid_both"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(rule->name, names[i]) == 0)
			return true;
	return false;
}

/* --- a rule --- */

static bool satisfied(const struct checks *c)
{
	if (!c->whole && c->agreed >= ENOUGH)
		return true;
	bool done = c->agreed >= ENOUGH && (c->rule->exactness == REWRITE_BITS || c->bits_differ);
	for (int i = 0; i < c->parsed->predicates; i++)
		done &= c->refuted[i];
	return (done || (is_cautious(c->rule) && c->lowered >= MOST_LOWERED)) &&
	       (c->rule->cost == REWRITE_CHEAPER    ? c->cheaper > 0
		: c->rule->cost == REWRITE_COSTLIER ? c->costlier > 0
						    : true);
}

static void try_instance(struct checks *c, uint64_t seed)
{
	struct pair p;
	struct instance in;
	int failed = -1;
	bool wild = seed % 2;
	bench_open(&p.b);
	p.from = make_instance(&in, &p.b, c->parsed, seed);
	if (p.from.i) {
		enum rewrite_outcome outcome =
		    rewrite_apply_rule(&p.b.p, p.from, c->parsed, math_of(c->rule), -1, &p.to, &failed);
		if (outcome == REWRITE_APPLIED)
			check_applied(c, &p, seed, wild);
		for (int i = 0; c->whole && outcome == REWRITE_REFUTED && i < c->parsed->predicates; i++)
			if (!c->refuted[i])
				check_refuted(c, i, seed, wild);
	}
	bench_close(&p.b);
}

static bool costs_as_said(const struct checks *c)
{
	return c->rule->cost == REWRITE_CHEAPER	   ? c->cheaper > 0
	       : c->rule->cost == REWRITE_COSTLIER ? c->costlier > 0
						   : c->equal + c->costlier + c->cheaper > 0;
}

static void report(const struct checks *c, int64_t tries)
{
	const char *name = c->rule->name;
	tap_ok(!c->wrong && c->agreed > 0,
	       "%s: both sides agree in %d of %d instances, %d of them in the field; %lld tries", name,
	       c->agreed, c->applied, c->fielded, (long long)tries);
	if (!c->whole)
		return;
	tap_ok(costs_as_said(c), "%s: cheaper in %d, as costly in %d, costlier in %d", name, c->cheaper,
	       c->equal, c->costlier);
	if (c->rule->exactness != REWRITE_BITS)
		tap_ok(c->bits_differ != is_cautious(c->rule), "%s: %s", name,
		       c->bits_differ ? "changes a bit somewhere" : "may change a bit");
	for (int i = 0; i < c->parsed->predicates; i++) {
		const char *text = c->parsed->predicate[i].text;
		bool cost = !c->refuted[i] && is_about_cost(text) && (c->wasted[i] || c->violated[i]);
		tap_ok(c->refuted[i] || cost, "%s: without %s %s", name, text,
		       !cost	      ? "it goes wrong"
		       : c->wasted[i] ? "it need not pay"
				      : "an addition sees something else");
	}
}

static void check_rule(const struct rewrite_rule *rule, bool whole, uint64_t tries)
{
	struct checks c = {.rule = rule, .whole = whole};
	static jmp_buf jump;
	arena_init(&c.arena, &allocator_default);
	c.arena.escape = &jump;
	struct str error = str_in(&c.arena);
	c.parsed = rewrite_parse_rule(&c.arena, rule, &error);
	if (!tap_ok(c.parsed, "%s: is well-formed%s", rule->name, str_text(&error)))
		return;
	uint64_t seed = 1;
	look_by_hand(&c);
	while (seed <= tries && !satisfied(&c) && !c.wrong)
		try_instance(&c, seed++);
	report(&c, seed - 1);
	arena_free(&c.arena);
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	for (int i = 0; i < rewrite_rule_count; i++)
		if (argc < 2 || strcmp(argv[1], rewrite_rules[i].name) == 0)
			check_rule(&rewrite_rules[i], i % SAMPLE == 0,
				   seeds ? strtoull(seeds, NULL, 10) : TRIES);
	return tap_done();
}
