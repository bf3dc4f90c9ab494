/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants of sums of products: those of random groups of values that are proved are the originals at every element, by another
 * evaluation than the one that proved them; the search finds those that are known in recursive bodies, and each line of it, and lines
 * one after the other, give the same bits.
 *
 *     products_test [FIRST COUNT]     seeds of random products; ESPALIER_SEEDS = another COUNT */
#include "compile/program_passes.h"
#include "mutate/mutant_lines.h"
#include "tests/mutate/known_lines.h"
#include "tests/sample.h"

enum { ALL_SEEDS = 200, SEEDS = ALL_SEEDS / SAMPLE, GROUPS = 12, TEXT = 4000, MOST = 24 };

/* --- random products --- */

/* y = operand @ weight, some of them behind another one, of few different operands and sizes, so that some go together. */
static void write_products(char *text, size_t room)
{
	static const char *const forms[] = {"%s @ A%d\n", "%s @ A%d + b%d\n", "%s @ A%d + b%d + %s @ C%d\n"};
	char outputs[TEXT] = "output u = sum(x)\noutput v = sum(z)\n";
	int rows = 1 + random_below(3), inner = 1 + random_below(5), other = random_below(2) ? inner : 1 + random_below(5), n = 2 + random_below(3);
	int first = 1 + random_below(5), at = snprintf(text, room, "model m\nstructure none\ninput x[%d, %d], z[%d, %d]\n", rows, inner, rows, other);
	int end = (int)strlen(outputs);
	for (int i = 0; i < n; i++) {
		int from = random_below(2), size = random_below(2) ? first : 1 + random_below(5), form = random_below(3);
		at += snprintf(text + at, room - at, "param A%d[%d, %d]\n", i, from ? other : inner, size);
		if (form > 0)
			at += snprintf(text + at, room - at, "param b%d[%d]\n", i, size);
		if (form > 1)
			at += snprintf(text + at, room - at, "param C%d[%d, %d]\n", i, from ? inner : other, size);
		end += snprintf(outputs + end, sizeof outputs - end, "output y%d = ", i);
		end += snprintf(outputs + end, sizeof outputs - end, forms[form], from ? "z" : "x", i, i, from ? "x" : "z", i);
	}
	snprintf(text + at, room - at, "%s", outputs);
}

struct case_of {
	struct oracle o;
	sub_ref product[MOST];
	int products;
};

static bool open_case(struct case_of *c, struct test_model *t)
{
	if (!open_oracle(&c->o, t))
		return false;
	const struct sub_program *p = &c->o.p;
	bool *live = ARENA_ARRAY(&t->arena, bool, p->values.n);
	sub_mark_live(p, &p->bodies.at[p->bodies.n - 1], live);
	for (uint32_t i = 1; i < p->values.n && c->products < MOST; i++)
		if (live[i] && p->values.at[i].op == SUB_ACCUMULATE)
			c->product[c->products++] = (sub_ref){i};
	return c->products;
}

static long applied[MUTATE_OPERATORS], refused, failed;

/* A line of any operator, with any values; names lie in `text`. */
static struct mutate_choice random_choice(const struct case_of *c, char (*text)[40])
{
	const char *body = c->o.p.bodies.at[c->o.p.bodies.n - 1].name;
	struct mutate_choice choice = {.regroup.op = (enum mutate_operator)(1 + random_below(MUTATE_OPERATORS - 1))};
	const struct mutate_operator_traits *t = &mutate_operators[choice.regroup.op];
	choice.regroup.dim = t->dim ? random_below(3) : 0;
	choice.regroup.number = t->number ? 2 + random_below(3) : 0;
	choice.others = t->values ? 1 + random_below(2) : 0;
	sub_ref value = c->product[random_below(c->products)];
	for (int i = 0; i <= choice.others; i++) {
		struct mutate_name name = {text[i], snprintf(text[i], sizeof *text, "%s.v%u", body, value.i)};
		*(i ? &choice.other[i - 1] : &choice.value) = name;
		value = choice.regroup.op == MUTATE_APPEND ? sub_at(&c->o.p, value)->arg[0].value : c->product[random_below(c->products)];
	}
	return choice;
}

static void try_choice(struct case_of *c, struct test_model *t)
{
	char text[MUTATE_MAX_JOINED][40];
	struct sub_program to;
	int wrong;
	sub_init(&to, &t->arena, "m");
	sub_ref *now = ARENA_ARRAY(&t->arena, sub_ref, c->o.p.values.n);
	struct mutate_choice choice = random_choice(c, text);
	if (mutate_apply(&to, &c->o.p, &choice, 1, false, now, &wrong)) {
		refused++;
		return;
	}
	applied[choice.regroup.op]++;
	if (agrees_with_oracle(&c->o, &to, &t->diags))
		return;
	struct str s = str_in(&t->arena);
	mutate_print_choice(&choice, &s);
	printf("# wrong: %s\n", str_text(&s));
	print_diags(&t->diags);
	failed++;
}

static void try_seed(int seed)
{
	struct test_model t = {0};
	struct case_of c = {.products = 0};
	char text[TEXT];
	random_state = 5000 + (uint64_t)seed;
	write_products(text, sizeof text);
	long before = failed;
	if (!load_text(&t, "m", text, strlen(text), "") || !open_case(&c, &t))
		failed++;
	else
		for (int i = 0; i < GROUPS; i++)
			try_choice(&c, &t);
	if (failed > before)
		printf("# of seed %d:\n%s", seed, text);
	free_model(&t);
}

static void test_random(int first, int count)
{
	for (int seed = first; seed < first + count; seed++)
		try_seed(seed);
	tap_is(failed, 0, "mutants of random products are the originals at every element");
	for (int op = 1; op < MUTATE_OPERATORS; op++) {
		printf("# %s: %ld applied\n", mutate_operators[op].spelling, applied[op]);
		if (count >= ALL_SEEDS && op != MUTATE_LIKE)
			tap_ok(applied[op] > count / 20, "%s: there are such", mutate_operators[op].spelling);
	}
	printf("# %ld refused\n", refused);
	if (count >= ALL_SEEDS)
		tap_ok(refused > count, "and groups that are refused");
}

/* --- recursive models --- */

#define GATES                                                                                                          \
	"state h[12]\nparam A[12, 3], b[12], c[2], Ul[12, 12], Ur[12, 12], Vl[2, 12], Vr[2, 12], O[12, 2]\n"             \
	"leaf:\n    h = tanh(A @ x + b)\n"                                                                              \
	"inner:\n    g = sigmoid(Ul @ left.h + Ur @ right.h + b)\n    u = tanh(Vl @ left.h + Vr @ right.h + c)\n    h = g * (O @ u)\n"

static const struct known {
	const char *name, *math, *text;
	const char *line[5]; /* beginnings of lines that are to be found, without the numbers of values */
} known[] = {
    {"gates of two sizes", "exact", "model m\nstructure tree(left, right)\ninput x[3]\n" GATES "output y = h at root\n",
     {"inner.v append inner.v", "inner.v join 0 inner.v", "inner.v pad 0 16", "inner.v split 0 2", "leaf.v split 0 4"}},
    {"gates of two sizes, stacked", "reassociate", "model m\nstructure tree(left, right)\ninput x[3]\n" GATES "output y = h at root\n",
     {"inner.v stack inner.v", "inner.v append inner.v"}},
    {"products with each child", "exact",
     "model m\nstructure tree(*)\ninput x[3]\nparam W[4, 3], V[4, 3], U[4, 4], F[4, 4], b[4]\nstate h[4]\n"
     "node:\n    f = sum(sigmoid(F @ k.h + V @ x) * k.h for k in children)\n    h = tanh(W @ x + sum(U @ k.h for k in children) + f + b)\n"
     "output y = h at root\n",
     {"inner.v join 0 inner.v", "inner.v stack inner.v", "inner.v split 0 2"}},
    {"one weight for two children", "exact",
     "model m\nstructure tree(left, right)\ninput x[3]\nparam W[4, 3], U[4, 4], b[4]\nstate h[4]\n"
     "leaf:\n    h = tanh(W @ x + b)\ninner:\n    h = tanh(U @ left.h) * sigmoid(U @ right.h)\noutput y = h at root\n",
     {"inner.v stack inner.v"}},
    {"convolutions of one image", "exact",
     "model m\nstructure none\ninput x[2, 6, 6]\nparam V[3, 2, 3, 3], W[2, 2, 3, 3], K[3, 2, 1, 1]\n"
     "output y = relu(conv(x, V, pad=1))\noutput z = conv(x, W, pad=1)\noutput u = conv(x, K)\n",
     {"output.v join 0 output.v", "output.v split 0 2"}},
};

/* Copies a line up to its comment, without the numbers of values: inner.v9 as inner.v. */
static void drop_numbers(const char *line, char *to)
{
	bool name = false;
	for (line += strlen("mutate "); *line && *line != '#' && *line != '\n'; line++) {
		name = line[-1] == 'v' && line[-2] == '.' ? true : name && *line >= '0' && *line <= '9';
		if (!name || *line < '0' || *line > '9')
			*to++ = *line;
	}
	*to = 0;
}

static bool has_line(const char *text, const char *wanted)
{
	char shape[TEXT];
	for (const char *line = text; *line; line = next_line(line))
		if (strncmp(line, "mutate ", 7) == 0) {
			drop_numbers(line, shape);
			if (strncmp(shape, wanted, strlen(wanted)) == 0)
				return true;
		}
	return false;
}

/* All lines that append, and then the first two of these joined. */
static void test_chain(struct known_run *r)
{
	char schedule[TEXT] = "", first[2][40];
	int n = 0, at = 0;
	for (const char *line = r->text; *line; line = next_line(line))
		if (n < 2 && sscanf(line, "mutate %39s append", first[n]) == 1 && has_text(line, " append ")) {
			at += snprintf(schedule + at, sizeof schedule - at, "%.*s\n", line_length(line, "#\n"), line);
			n++;
		}
	if (!tap_is(n, 2, "sums that begin with others"))
		return;
	snprintf(schedule + at, sizeof schedule - at, "mutate %s join 0 %s\n", first[0], first[1]);
	tap_ok(agrees_with(r, schedule), "appended and then joined, they give the same bits");
}

static void test_known(const struct known *k)
{
	struct known_run r;
	bool ok = begin_known(&r, k->name, k->math, k->text);
	if (ok)
		test_lines(&r, k->name);
	for (int i = 0; ok && i < 5 && k->line[i]; i++)
		tap_ok(has_line(r.text, k->line[i]), "%s: %s is found", k->name, k->line[i]);
	if (ok && k == known)
		test_chain(&r);
	end_known(&r);
}

/* --- memory --- */

/* Products that all read an input, or, as a chain, each of which reads the one before. */
static void write_many(struct str *s, int products, bool chain)
{
	str_puts(s, "model m\nstructure none\ninput x[4]\n");
	for (int i = 0; i < products; i++)
		str_printf(s, "param W%d[4, 4]\n", i);
	str_puts(s, "node:\n");
	for (int i = 0; i < products; i++)
		str_printf(s, chain && i ? "    v%d = tanh(W%d @ v%d)\n" : "    v%d = tanh(W%d @ x)\n", i, i, i - 1);
	for (int i = 0; i < products; i++)
		str_printf(s, "output y%d = v%d\n", i, i);
}

/* Lowers and contracts a model; false after messages. */
static bool open_model(struct test_model *t, struct sub_program *p, const char *text)
{
	struct sub_program lowered;
	bool ok = load_text(t, "m", text, strlen(text), "");
	sub_init(&lowered, &t->arena, "m");
	sub_init(p, &t->arena, "m");
	ok = ok && sub_lower_model(&lowered, t->model, t->sizes, SUB_AT_MODEL, &t->diags);
	if (ok)
		rewrite_contract(p, &lowered, NULL, NULL);
	print_diags(&t->diags);
	return ok;
}

static bool open_many(struct test_model *t, struct sub_program *p, int products, bool chain)
{
	struct arena arena;
	arena_init(&arena, &allocator_default);
	struct str text = str_in(&arena);
	write_many(&text, products, chain);
	bool ok = open_model(t, p, str_text(&text));
	arena_free(&arena);
	return ok;
}

/* The bytes that a search takes for each product; 0 = it has not found as many mutants as are kept. */
static double measure_search(int products, bool chain)
{
	struct test_model t = {0};
	struct sub_program p;
	struct mutate_watch always = {0};
	struct mutate_product_search found = {0};
	double each = 0;
	if (open_many(&t, &p, products, chain)) {
		size_t before = p.arena->bytes;
		struct mutate_relations relations = mutate_relate_values(&p);
		bool *done = ARENA_ARRAY(p.arena, bool, p.values.n);
		mutate_find_products(&p, &p.bodies.at[p.bodies.n - 1], true, &always, &relations, done, &found);
		each = found.ended && found.products == products ? (double)(p.arena->bytes - before) / products : 0;
	}
	free_model(&t);
	return each;
}

/* What a search takes grows no faster than the program, however many pairs of products there are. */
static void test_memory(bool chain)
{
	double few = measure_search(60, chain), many = measure_search(480, chain);
	printf("# %.0f and %.0f bytes for each product\n", few, many);
	tap_ok(few > 0 && many > 0 && many < 1.5 * few, "eight times as many products take no more memory each, %s",
	       chain ? "where each needs the one before" : "where none needs another");
}

/* Asks about each pair of values whether they can be stacked; how many cannot since one needs the other. */
static int count_refused(struct mutate_relations *relations, size_t values)
{
	int refused_pairs = 0;
	for (uint32_t i = 1; i < values; i++)
		for (uint32_t k = 1; k < i; k++) {
			struct mutate_regroup r = {.op = MUTATE_STACK, .n = 2, .value = {{k}, {i}}};
			const char *why = mutate_refuse_regroup(relations, &r);
			refused_pairs += why && strcmp(why, "one of its values needs another") == 0;
		}
	return refused_pairs;
}

static void test_questions(void)
{
	struct test_model t = {0};
	struct sub_program p;
	if (!tap_ok(open_many(&t, &p, 20, true), "a chain of products"))
		return;
	struct mutate_relations relations = mutate_relate_values(&p);
	size_t before = p.arena->bytes;
	int pairs = 0;
	for (int again = 0; again < 50; again++)
		pairs += count_refused(&relations, p.values.n);
	tap_is(pairs, 50 * 190, "no two of them may be of one mutant");
	tap_is((long)(p.arena->bytes - before), 0, "and to ask takes no memory");
	free_model(&t);
}

/* Which bodies compute a value, as bits. */
static uint32_t list_bodies(const struct sub_program *p, uint32_t value)
{
	uint32_t bits = 0;
	for (size_t b = 0; b < p->bodies.n; b++) {
		bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
		sub_mark_live(p, &p->bodies.at[b], live);
		bits |= (uint32_t)live[value] << b;
	}
	return bits;
}

static void test_bodies(const struct known *k)
{
	struct test_model t = {0};
	struct sub_program p;
	int pairs = 0, apart = 0, wrong = 0;
	if (!tap_ok(open_model(&t, &p, k->text), "%s: lowered", k->name))
		return;
	struct mutate_relations relations = mutate_relate_values(&p);
	for (uint32_t i = 1; i < p.values.n; i++)
		for (uint32_t other = 1; other < i; other++) {
			bool same = list_bodies(&p, i) == list_bodies(&p, other);
			pairs++;
			apart += !same;
			wrong += same != (relations.bodies[i] == relations.bodies[other]);
		}
	tap_ok(p.bodies.n > 2 && apart && apart < pairs, "some of its values are computed by other bodies than some");
	tap_is(wrong, 0, "and so says what groups of values are asked by");
	free_model(&t);
}

/* What depends on weights alone is computed when they are bound. */
static void test_weights(void)
{
	struct test_model t = {0};
	struct sub_program p;
	struct mutate_watch always = {0};
	struct mutate_product_search found;
	const char *text = "model m\nstructure none\ninput x[4]\nparam W[4, 4], V[4, 4]\noutput y = tanh(W @ V) @ x\n";
	if (!tap_ok(open_model(&t, &p, text), "a product of weights, and one with it"))
		return;
	struct mutate_relations relations = mutate_relate_values(&p);
	bool *done = ARENA_ARRAY(p.arena, bool, p.values.n);
	mutate_find_products(&p, &p.bodies.at[p.bodies.n - 1], true, &always, &relations, done, &found);
	tap_is(found.products, 1, "mutants are searched of the second alone");
	free_model(&t);
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	test_random(argc > 1 ? atoi(argv[1]) : 1, argc > 2 ? atoi(argv[2]) : seeds ? atoi(seeds) : SEEDS);
	for (size_t i = 0; argc == 1 && i < sizeof known / sizeof *known; i++)
		test_known(&known[i]);
	if (argc == 1) {
		test_memory(false);
		test_memory(true);
		test_questions();
		test_bodies(known);
		test_weights();
	}
	return tap_done();
}
