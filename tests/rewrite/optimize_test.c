/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rewrite engine: what is derived from small models, that rewriting ends and where it ends nothing is
 * left to do, tables and their budget, and that attempts grow with the program and no faster. */
#include "tests/rewrite/derivation.h"

#include <stdlib.h>

static const unsigned no_tables = 1u << REWRITE_FAMILY_TABLES;

/* --- goldens --- */

#define TREE                                                                                                 \
	"model m\nstructure tree(left, right)\ninput w : token\ninput x[E]\nstate h[D]\nparam p[D]\nparam "  \
	"q[D]\nparam T[V, E]\n"                                                                              \
	"param W[D, E]\noutput y = h\noutput all = sum(h) * (sum(p) + sum(q) + sum(sum(T)) + sum(sum(W)) + " \
	"sum(sum(U)) + sum(sum(Q)) + "                                                                       \
	"sum(sum(R)) + sum(sum(S)) + sum(sum(Y)) + sum(z)) \nstate z[E]\nparam U[D, D]\nparam Q[D, "         \
	"D]\nparam R[C, D]\nparam S[D, C]\nparam Y[2*D, D]\n"
/* All that is declared must be used; the second state and output see to that. */
#define LEAF "leaf:\n z = x + T[w]\n h = "
#define INNER "inner:\n z = left.z\n h = "
#define PLAIN_LEAF LEAF "p * sum(x)\n"
#define SIZES "D=6 E=5 V=9 C=2"

static const struct {
	const char *what, *text, *body, *rules;
} goldens[] = {
    {"a whole leaf becomes a look-up", TREE LEAF "tanh(W @ T[w] + p)\n" INNER "left.h\n", "leaf",
     "assign_matmul binary_assign_left unary_assign"},
    {"of two factors each node has one", TREE LEAF "tanh(W @ T[w] + W @ x)\n" INNER "left.h\n", "leaf",
     "assign_matmul"},
    {"a table is cut from a concatenation",
     TREE "param Z[D, 2*E]\n" LEAF "tanh(Z @ concat(T[w], x))\n" INNER "left.h\n", "leaf",
     "sum_cond_table_left"},
    {"products with one matrix become one", TREE PLAIN_LEAF INNER "tanh(U @ left.h + U @ right.h + p)\n",
     "inner", "add_matmul_shared"},
    {"products with one vector become one",
     TREE PLAIN_LEAF INNER "(t = tanh(left.h); tanh(U @ t + p + Q @ t))\n", "inner",
     "add_matmul_shared_apart"},
    {"unless it may be infinite", TREE PLAIN_LEAF INNER "tanh(U @ left.h + p + Q @ left.h)\n", "inner", ""},
    {"joined products with one vector are one",
     TREE PLAIN_LEAF INNER "tanh(concat(U @ left.h, Q @ left.h)) @ Y\n", "inner", "cond_mul_sum"},
    {"biases with them", TREE PLAIN_LEAF INNER "tanh(concat(U @ left.h + p, Q @ left.h + q)) @ Y\n", "inner",
     "cond_affine"},
    {"two matrices are one when that is less", TREE PLAIN_LEAF INNER "tanh(U @ (Q @ tanh(left.h)))\n",
     "inner", "matmul_matmul"},
    {"and of a state that all bodies bound", TREE LEAF "tanh(p * sum(x))\n" INNER "tanh(U @ (Q @ left.h))\n",
     "inner", "matmul_matmul"},
    {"unless the vector may be infinite", TREE PLAIN_LEAF INNER "tanh(U @ (Q @ left.h))\n", "inner", ""},
    {"and stay two when not", TREE PLAIN_LEAF INNER "tanh(S @ (R @ left.h))\n", "inner", ""},
    {"a constant factor goes into the weights", TREE PLAIN_LEAF INNER "tanh(0.5 * (U @ left.h))\n", "inner",
     "mul_matmul_constant"},
    {"another comes out of the sum",
     TREE PLAIN_LEAF INNER "tanh(S @ exp(R @ (left.h * tanh(sum(right.h)))))\n", "inner", "sum_mul_mul"},
    {"unless it may be infinite", TREE PLAIN_LEAF INNER "tanh(S @ exp(R @ (left.h * sum(right.h))))\n",
     "inner", ""},
    {"a shared operand may stand on the left",
     TREE PLAIN_LEAF INNER "concat(maximum(sum(right.h), exp(left.h)), maximum(sum(right.h), right.h)) @ Y\n",
     "inner", "cond_binary_shared"},
    {"terms over one divisor are one quotient",
     TREE PLAIN_LEAF INNER "tanh(left.h) / sqrt(1 + exp(right.h)) + p / sqrt(1 + exp(right.h))\n", "inner", "add_div_both"},
    {"unless it may be zero", TREE PLAIN_LEAF INNER "tanh(left.h) / sqrt(right.h) + p / sqrt(right.h)\n", "inner", ""},
    {"a difference likewise",
     TREE PLAIN_LEAF INNER "tanh(left.h) / sqrt(1 + exp(right.h)) - p / sqrt(1 + exp(right.h))\n", "inner", "add_div_neg"},
    {"unless it may be zero", TREE PLAIN_LEAF INNER "tanh(left.h) / sqrt(right.h) - p / sqrt(right.h)\n", "inner", ""},
    {"a product of few exponentials is one", TREE PLAIN_LEAF INNER "p * prod(exp(14 * tanh(left.h)))\n", "inner",
     "prod_exp sum_mul_left"},
    {"unless it may vanish on the way", TREE PLAIN_LEAF INNER "p * prod(exp(15 * tanh(left.h)))\n", "inner", ""},
    {"what binary32 rounds to zero is not positive",
     TREE PLAIN_LEAF INNER "maximum(left.h * 1e-60, right.h * 1e-60)\n", "inner", ""},
    {"but to the smallest number it is", TREE PLAIN_LEAF INNER "maximum(left.h * 1e-30, right.h * 1e-30)\n",
     "inner", "smax_mul_both"},
    {"e^(-log(x)/2) is 1/sqrt(x)", TREE PLAIN_LEAF INNER "exp(-0.5 * log(exp(left.h) + 1))\n", "inner",
     "unary_number_exact rsqrt_definition"},
    {"but where that is 1/-0", TREE PLAIN_LEAF INNER "exp(-0.5 * log(sqrt(left.h)))\n", "inner",
     "unary_number_exact"},
    {"a sigmoid may be zero", TREE PLAIN_LEAF INNER "maximum(log(sigmoid(left.h)), -100)\n", "inner",
     "unary_number_exact"},
    {"but not where its argument is bounded",
     TREE PLAIN_LEAF INNER "maximum(log(sigmoid(tanh(left.h))), -100)\n", "inner",
     "unary_number_exact smax_above"},
    {"a part takes its side", TREE PLAIN_LEAF INNER "concat(tanh(left.h), exp(right.h))[D:]\n", "inner",
     "assign_cond"},
    {"a part of a product is its product", TREE PLAIN_LEAF INNER "tanh((Y @ left.h)[D:])\n", "inner",
     "assign_reduce assign_binary"},
    {"both parts are the whole", TREE PLAIN_LEAF INNER "(a = tanh(left.h); concat(a[0:2], a[2:]) * p)\n",
     "inner", "cond_assign_parts"},
    {"concatenations lean to the right",
     TREE "param O[3*D, D]\n" PLAIN_LEAF INNER "tanh(concat(concat(left.h, right.h), exp(left.h))) @ O\n",
     "inner", "cond_cond"},
    {"half of a zero is zero", TREE LEAF "tanh(U @ zeros(D) * 0.5 + p * zeros(D) + p)\n" INNER "left.h\n",
     "leaf", "mul_zero sum_zero mul_zero mul_zero add_zero add_zero"},
    {"numbers are computed", TREE PLAIN_LEAF INNER "left.h * (2 - 3 * 1) + right.h\n", "inner",
     "mul_one unary_number_exact binary_number_exact"},
    {"1 - sigmoid for itself", TREE PLAIN_LEAF INNER "1 - sigmoid(left.h)\n", "inner", "sigmoid_complement"},
    {"but not of one that is there",
     TREE PLAIN_LEAF INNER "(s = sigmoid(left.h); (1 - s) * p + s * right.h)\n", "inner", ""},
    {"the definition of a sigmoid", TREE PLAIN_LEAF INNER "1 / (1 + exp(-left.h))\n", "inner",
     "div_one sigmoid_definition"},
    {"that of silu", TREE PLAIN_LEAF INNER "left.h / (1 + exp(-left.h))\n", "inner", "silu_definition"},
    {"e^-x for 1/e^x", TREE PLAIN_LEAF INNER "left.h * (1 / exp(right.h))\n", "inner", "div_one rec_exp"},
    {"a quotient by e^x, which is no zero", TREE PLAIN_LEAF INNER "left.h / exp(tanh(right.h))\n", "inner",
     "div_exp"},
    {"but by one that may be", TREE PLAIN_LEAF INNER "left.h / exp(right.h)\n", "inner", ""},
    {"a mean", TREE PLAIN_LEAF INNER "left.h * mean(right.h)\n", "inner",
     "div_as_product unary_number_exact"},
    {"a vector by a norm", TREE PLAIN_LEAF INNER "left.h / sqrt(dot(right.h, right.h))\n", "inner",
     "div_as_product"},
    {"but each element by a norm", TREE PLAIN_LEAF INNER "left.h / sqrt(right.h)\n", "inner", ""},
    {"or a vector by any number", TREE PLAIN_LEAF INNER "left.h / sum(right.h)\n", "inner", ""},
    {"a mean of rows by weights that share a divisor",
     TREE "param O[3*D, D]\n" PLAIN_LEAF INNER "(e = exp(tanh(O @ left.h)); (e / sum(e)) @ O)\n", "inner",
     "div_as_product sum_mul_mul"},
    {"unless that may be zero", TREE "param O[3*D, D]\n" PLAIN_LEAF INNER "softmax(O @ left.h) @ O\n",
     "inner", ""},
    {"a magnitude", TREE PLAIN_LEAF INNER "maximum(-left.h, left.h) * abs(-right.h)\n", "inner",
     "smax_neg_self abs_neg mul_abs_both"},
    {"constants meet", TREE PLAIN_LEAF INNER "(left.h + p) + (right.h + q)\n", "inner",
     "add_add_constants_both"},
    {"a + b is b + a where it is there",
     TREE PLAIN_LEAF INNER "tanh(left.h + right.h) * exp(right.h + left.h)\n", "inner", "add_commute"},
    {"nothing is done for nothing", TREE PLAIN_LEAF INNER "tanh(U @ left.h + Q @ right.h + p) * left.h\n",
     "inner", ""},
};

static void test_goldens(void)
{
	for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
		struct derivation d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
		derive(&d, goldens[i].text, SIZES);
		says(rules_of(&d, goldens[i].body), goldens[i].rules, goldens[i].what);
		free_model(&d.model);
	}
}

/* --- numbers that are assumed to be finite --- */

static const struct {
	const char *what, *text;
	enum rewrite_math math;
	const char *rules; /* of the inner body, if numbers are finite; otherwise there are none */
} finites[] = {
    {"a state is finite if all bodies keep it so", TREE LEAF "p * sum(x)\n" INNER "U @ (Q @ (left.h + right.h))\n",
     REWRITE_REASSOCIATE, "matmul_matmul"},
    {"a logarithm is not, and so is no state of one", TREE LEAF "p * log(sum(x))\n" INNER "U @ (Q @ (left.h + right.h))\n",
     REWRITE_REASSOCIATE, ""},
    {"nor is one that becomes so later", TREE PLAIN_LEAF INNER "U @ (Q @ log(left.h))\n", REWRITE_REASSOCIATE, ""},
    {"nor an exponential", TREE PLAIN_LEAF INNER "U @ (Q @ exp(left.h))\n", REWRITE_REASSOCIATE, ""},
    {"a quotient is by what is not near zero", TREE PLAIN_LEAF INNER "U @ (Q @ (left.h / (2 + tanh(right.h))))\n",
     REWRITE_REASSOCIATE, "matmul_matmul"},
    {"and is not by what may be", TREE PLAIN_LEAF INNER "U @ (Q @ (left.h / right.h))\n", REWRITE_REASSOCIATE, ""},
    {"exact: a finite number less itself is zero", TREE PLAIN_LEAF INNER "maximum(left.h - left.h, p)\n", REWRITE_EXACT,
     "add_neg_self binary_repeat"},
    {"exact: but no rounding changes", TREE PLAIN_LEAF INNER "U @ (Q @ (left.h + right.h))\n", REWRITE_EXACT, ""},
};

static void test_finite(void)
{
	for (size_t i = 0; i < sizeof finites / sizeof *finites; i++)
		for (int finite = 0; finite < 2; finite++) {
			struct derivation d = with(finites[i].math, 0, 1 << 20);
			d.options.finite = finite;
			derive(&d, finites[i].text, SIZES);
			says(rules_of(&d, "inner"), finite ? finites[i].rules : "", finites[i].what);
			free_model(&d.model);
		}
}

/* --- sizes that no machine has --- */

static struct derivation derive_sized(const char *extents, int64_t table_bytes)
{
	struct derivation d = with(REWRITE_REASSOCIATE, 0, table_bytes);
	char text[800];
	snprintf(text, sizeof text,
		 "model m\nstructure tree(left, right)\ninput w : token\nparam T[V, D]\nparam p[D]\n"
		 "state h[%s]\nleaf:\n h = zeros(%s) + sum(tanh(T[w] @ (zeros(D, C) + sum(exp(p)))))\n"
		 "inner:\n h = left.h * (1 / exp(sum(sum(sum(right.h))))) - right.h * sum(p)\n"
		 "output y = sum(p) + sum(sum(sum(h)))\nparam q[C]\noutput z = sum(q) at root\n",
		 extents, extents);
	derive(&d, text, "D=2147483647 V=2147483647 C=2147483647");
	return d;
}

/* Costs of 2^93 for each operation must not lose what small ones differ in. */
static void test_sizes(void)
{
	struct derivation small = derive_sized("2, 3, 4", 1 << 20),
			  large = derive_sized("2147483645, 2147483646, 2147483647", 1 << 20);
	says(rules_of(&large, "inner"), rules_of(&small, "inner"),
	     "what is derived does not depend on sizes");
	free_model(&small.model);
	free_model(&large.model);
}

/* --- where rewriting ends --- */

static void test_ends(void)
{
	long applied = 0, again = 0, risen = 0;
	for (uint64_t seed = 1; seed <= 150; seed++) {
		static struct generator g;
		struct derivation d = with(seed % 3, seed % 5 ? 0 : 1u << REWRITE_FAMILY_CONSTANTS, 1 << 20);
		char sizes[64];
		const char *text = generate_model(&g, seed, sizes);
		derive(&d, text, sizes);
		applied += d.trace.effort.applications;
		for (size_t i = 0; i < d.trace.changes.n; i++)
			risen += d.trace.changes.at[i].saved < 0;
		struct sub_program fixed;
		struct rewrite_trace trace = {0};
		sub_init(&fixed, &d.model.arena, "fixed");
		rewrite_optimize(&fixed, &d.to, &d.options, &trace);
		again += trace.effort.applications;
		free_model(&d.model);
	}
	tap_ok(applied > 500 && risen == 0, "none of %ld applications raised the cost", applied);
	tap_ok(again * 50 <= applied, "what was rewritten stays as it is, but for %ld", again);
}

/* --- tables --- */

static const char two_tables[] =
    TREE "param small[V, 2]\nparam K[D, 2]\n" LEAF
	 "tanh(W @ T[w]) * sum(x) + exp(K @ small[w] * max(x))\n" INNER "left.h\n";
static const char shared_table[] = TREE LEAF "tanh(W @ T[w]) * sum(x)\n" INNER "exp(W @ T[w]) * left.h\n";

static const char table_of_integers[] =
    TREE "param N[V, E] : i64\n" LEAF "p * sum(cast(N[w] * 3, f32))\n" INNER "left.h\n";

static bool noted(const struct derivation *d, const char *words)
{
	for (size_t i = 0; i < d->trace.notes.n; i++)
		if (strstr(d->trace.notes.at[i], words))
			return true;
	return false;
}

static void test_tables(void)
{
	const int64_t table = 9 * 6 * 4;
	struct derivation d = with(REWRITE_REASSOCIATE, 0, 2 * table);
	derive(&d, two_tables, SIZES);
	tap_ok(noted(&d, "tables: 2, of 432 bytes; at most 432 are allowed"),
	       "both tables keep to the budget, and it is said");
	free_model(&d.model);
	d = with(REWRITE_REASSOCIATE, 0, 2 * table - 1);
	derive(&d, two_tables, SIZES);
	tap_ok(noted(&d, "432 bytes would be more than the 431 allowed, so look-ups in") &&
		   noted(&d, "tables: 1, of 216 bytes"),
	       "a byte less, and one look-up stays what it was");
	free_model(&d.model);
	d = with(REWRITE_REASSOCIATE, 0, 0);
	derive(&d, two_tables, SIZES);
	says(rules_of(&d, "leaf"), "", "without a budget nothing is made a table");
	free_model(&d.model);
	d = with(REWRITE_REASSOCIATE, no_tables, 1 << 20);
	derive(&d, two_tables, SIZES);
	tap_ok(!d.trace.notes.n && !*rules_of(&d, "leaf"), "nor where the family is off");
	free_model(&d.model);
	d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
	derive(&d, shared_table, SIZES);
	tap_ok(noted(&d, "tables: 2, of 432 bytes"), "each body has its table");
	free_model(&d.model);
	d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
	derive(&d, table_of_integers, SIZES);
	tap_ok(noted(&d, "tables: 1, of 360 bytes"), "an i64 of a table has eight bytes");
	free_model(&d.model);
}

/* --- guards --- */

static const char concatenated[] =
    TREE PLAIN_LEAF INNER "(c = concat(left.h, right.h); tanh(U @ left.h + Q @ right.h) * exp(c @ Y))\n";

static const char two_additions[] =
    TREE PLAIN_LEAF INNER "(m = left.h * right.h; exp(-(-right.h)) * tanh(-(-left.h) + m) * (left.h + m))\n";

static bool has_op(const struct sub_program *p, enum sub_op op)
{
	for (size_t i = 1; i < p->values.n; i++)
		if (p->values.at[i].op == op)
			return true;
	return false;
}

static void test_guards(void)
{
	struct derivation d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
	derive(&d, concatenated, SIZES);
	says(rules_of(&d, "inner"), "add_matmul_concat",
	     "products are joined where their vectors are joined anyway");
	free_model(&d.model);
	d = with(REWRITE_EXACT, 0, 1 << 20);
	derive(&d, TREE LEAF "tanh(W @ T[w] + p)\n" INNER "tanh(-(-left.h) * p + q)\n", SIZES);
	says(rules_of(&d, "leaf"), "assign_accumulate unary_assign",
	     "exact: a product and its bias are looked up together");
	says(rules_of(&d, "inner"), "neg_neg", "exact: signs that undo each other may go");
	free_model(&d.model);
	d = with(REWRITE_EXACT, 0, 1 << 20);
	derive(&d, TREE PLAIN_LEAF INNER "-(-(left.h * right.h)) + q\n", SIZES);
	says(rules_of(&d, "inner"), "neg_neg", "exact: signs between a product and an addition may go, too,");
	tap_ok(has_op(&d.to, SUB_ADD) && !has_op(&d.to, SUB_FMA), "and it does not come to be contracted");
	free_model(&d.model);
	d = with(REWRITE_EXACT, 0, 1 << 20);
	derive(&d, two_additions, SIZES);
	says(rules_of(&d, "inner"), "neg_neg neg_neg", "exact: two additions may become one");
	free_model(&d.model);
	d = with(REWRITE_REASSOCIATE, 1u << REWRITE_FAMILY_DISTRIBUTIVE, 1 << 20);
	derive(&d, TREE PLAIN_LEAF INNER "tanh(U @ left.h + U @ right.h)\n", SIZES);
	says(rules_of(&d, "inner"), "", "a family that is off does nothing");
	free_model(&d.model);
	d = with(REWRITE_REASSOCIATE, 1u << REWRITE_FAMILY_CONSTANTS, 1 << 20);
	derive(&d, TREE PLAIN_LEAF INNER "tanh(0.5 * (U @ left.h))\n", SIZES);
	says(rules_of(&d, "inner"), "", "no factor goes into weights that are computed for each row");
	free_model(&d.model);
}

/* --- arithmetic --- */

/* Only `fast` may change what a sigmoid and a tanh are beyond the errors that the language states. */
static void test_quick_functions(void)
{
	static const enum rewrite_math maths[] = {REWRITE_EXACT, REWRITE_REASSOCIATE, REWRITE_FAST};
	for (size_t i = 0; i < sizeof maths / sizeof *maths; i++) {
		struct derivation d = with(maths[i], no_tables, 1 << 20);
		struct sub_program contracted;
		bool quick = maths[i] == REWRITE_FAST;
		derive(&d, TREE PLAIN_LEAF INNER "sigmoid(left.h) * tanh(right.h)\n", SIZES);
		sub_init(&contracted, &d.model.arena, "test");
		rewrite_contract(&contracted, &d.to, &d.options, NULL);
		tap_ok(has_op(&contracted, SUB_QUICK_SIGMOID) == quick &&
			   has_op(&contracted, SUB_QUICK_TANH) == quick &&
			   has_op(&contracted, SUB_SIGMOID) == !quick &&
			   has_op(&contracted, SUB_TANH) == !quick,
		       "%s",
		       quick ? "fast arithmetic has a sigmoid and a tanh of its own"
			     : "other arithmetic has the usual ones");
		free_model(&d.model);
	}
}

/* --- types --- */

/* Whether any rule applies to the value of an inner node, of vectors of a type. */
static bool applies(const char *type, const char *value)
{
	char text[500];
	struct derivation d = with(REWRITE_FAST, 0, 1 << 20);
	snprintf(text, sizeof text,
		 "model m\nstructure tree(*)\ninput n[D] : %s\nstate c[D] : %s\nleaf:\n c = n\ninner:\n"
		 " s = max(k.c for k in children) + n\n c = %s\noutput o = c\n",
		 type, type, value);
	derive(&d, text, "D=6");
	bool any = *rules_of(&d, "inner");
	free_model(&d.model);
	return any;
}

static void test_types(void)
{
	static const char *const of_rings[] = {"-(-s)", "s * 1 + n", "s + 0 * n", "s * n + s * s",
					       "maximum(s, -s) + n"};
	static const char *const of_floats[] = {"maximum(-s, -n)", "abs(s) * abs(n)", "maximum(s + n, s * s + n)",
						"abs(s) * abs(n) + n"};
	for (size_t i = 0; i < sizeof of_rings / sizeof *of_rings; i++)
		tap_ok(applies("f32", of_rings[i]) && applies("i32", of_rings[i]) && applies("i64", of_rings[i]),
		       "%s of f32 and of integers is rewritten", of_rings[i]);
	for (size_t i = 0; i < sizeof of_floats / sizeof *of_floats; i++) {
		tap_ok(applies("f32", of_floats[i]), "%s of f32 is rewritten", of_floats[i]);
		tap_ok(!applies("i32", of_floats[i]) && !applies("i64", of_floats[i]),
		       "%s of integers, which wrap, is not", of_floats[i]);
	}
	tap_ok(applies("f32", "concat(s[:1], s[1:])") && applies("i32", "concat(s[:1], s[1:])"),
	       "what only moves data is, of any type");
}

/* --- texts of rules --- */

static void test_texts(void)
{
	static const struct rewrite_rule wrong[] = {
	    {"", 0, 0, 0, 0, "neg(x", "", "x"},	      {"", 0, 0, 0, 0, "neg(x)", "", "y"},
	    {"", 0, 0, 0, 0, "sum(x)", "", "x"},	      {"", 0, 0, 0, 0, "frob(x)", "", "x"},
	    {"", 0, 0, 0, 0, "add(x)", "", "x"},	      {"", 0, 0, 0, 0, "neg(x)", "odd(x)", "x"},
	    {"", 0, 0, 0, 0, "neg(x)", "", "sum[k](x)"}, {"", 0, 0, 0, 0, "neg(x)", "", "A(x)"},
	    {"", 0, 0, 0, 0, "neg(x) x", "", "x"},	      {"", 0, 0, 0, 0, "compose(x)", "", "x"},
	    {"", 0, 0, 0, 0, "neg[k](x)", "", "x"},      {"", 0, 0, 0, 0, "", "", "x"},
	};
	struct test_model t = {0};
	load_text(&t, "none", TREE PLAIN_LEAF INNER "left.h\n", strlen(TREE PLAIN_LEAF INNER "left.h\n"),
		  SIZES);
	int parsed = 0, refused = 0;
	for (int i = 0; i < rewrite_rule_count; i++) {
		struct str error = str_in(&t.arena);
		parsed += rewrite_parse_rule(&t.arena, &rewrite_rules[i], &error) != NULL;
		if (error.n)
			printf("# %s\n", error.text);
	}
	tap_ok(parsed == rewrite_rule_count, "the texts of all %d rules are well-formed", rewrite_rule_count);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct str error = str_in(&t.arena);
		refused += !rewrite_parse_rule(&t.arena, &wrong[i], &error) && error.n;
	}
	tap_ok(refused == sizeof wrong / sizeof *wrong, "what is not is refused, and why");
	free_model(&t);
}

/* --- growth --- */

static sub_ref unary(struct sub_program *p, enum sub_op op, sub_ref x)
{
	return sub_add(p, (struct sub_value){.op = op, .arg = {sub_as_is(p, x)}}, NULL);
}

static sub_ref binary(struct sub_program *p, enum sub_op op, sub_ref x, sub_ref y)
{
	return sub_add(p, (struct sub_value){.op = op, .arg = {sub_as_is(p, x), sub_as_is(p, y)}}, NULL);
}

/* A body of n operators, some of which rules apply to; a chain, or wide. */
static struct rewrite_effort rewrite_many(int n, bool wide, size_t *left)
{
	enum { WIDTH = 64, LEVELS = 30 };
	static const enum sub_op ops[] = {SUB_NEG,  SUB_TANH,	 SUB_ADD, SUB_MULTIPLY,
					  SUB_SMAX, SUB_SIGMOID, SUB_EXP, SUB_REC};
	struct rewrite_trace trace = {0};
	struct rewrite_options options = {.math = REWRITE_REASSOCIATE};
	struct sub_body body = {.name = "inner", .domain = SUB_INNER};
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	if (!arena_guard(&a, &jump)) {
		struct sub_program p, to;
		sub_ref last[WIDTH], x;
		sub_init(&p, &a, "many");
		sub_init(&to, &a, "many");
		int k = sub_dim(&p, 8, 0);
		struct sub_tensor h = {.name = "h", .rank = 1, .var = {k}, .shape = {8}};
		vec_push(&a, &p.states, h);
		struct sub_value state = {.op = SUB_STATE, .vars = 2, .var = {p.node, k}};
		struct sub_map maps[] = {{.function = SUB_CHILD, .var = p.node}, {.var = k, .scale = 1}};
		struct sub_value child = {.op = SUB_ASSIGN,
					  .arg = {sub_as_is(&p, sub_add(&p, state, NULL))},
					  .vars = 2,
					  .var = {p.node, k},
					  .map = maps};
		x = sub_add(&p, child, NULL);
		for (int i = 0; i < WIDTH; i++)
			last[i] = x;
		random_state = 7;
		for (int i = 0; i < n; i++) {
			enum sub_op op = ops[random_below(8)];
			sub_ref y = wide ? last[random_below(WIDTH)] : x;
			x = sub_traits_of(op)->arity == 1 ? unary(&p, op, y)
							  : binary(&p, op, y, last[random_below(WIDTH)]);
			last[i % WIDTH] = x;
			if (i % (n / LEVELS) == 0)
				vec_push(&a, &body.stores,
					 (struct sub_store){
					     .to = SUB_TO_STATE, .which = 0, .value = sub_as_is(&p, x)});
		}
		vec_push(&a, &body.stores,
			 (struct sub_store){.to = SUB_TO_STATE, .which = 0, .value = sub_as_is(&p, x)});
		vec_push(&a, &p.bodies, body);
		rewrite_optimize(&to, &p, &options, &trace);
		*left = to.values.n;
	}
	arena_free(&a);
	return trace.effort;
}

static void test_growth(void)
{
	for (int wide = 0; wide < 2; wide++) {
		size_t left[2];
		struct rewrite_effort few = rewrite_many(10000, wide, &left[0]),
				      many = rewrite_many(20000, wide, &left[1]);
		tap_ok(few.attempts > 10000 && many.attempts <= 2.3 * few.attempts,
		       "%s: 20000 operators take %ld attempts, 10000 take %ld", wide ? "wide" : "a chain",
		       many.attempts, few.attempts);
		tap_ok(few.applications > 100 && left[1] > left[0], "and rules apply to them: %ld",
		       many.applications);
		tap_ok(many.bytes < 20000l * 12000, "in %zu bytes for each operator", many.bytes / 20000);
	}
}

int main(void)
{
	test_texts();
	test_goldens();
	test_finite();
	test_sizes();
	test_ends();
	test_tables();
	test_guards();
	test_quick_functions();
	test_types();
	test_growth();
	return tap_done();
}
