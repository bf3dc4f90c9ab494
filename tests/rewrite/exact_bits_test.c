/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* In exact arithmetic rules change no bit of what is compiled: of models that tempt them to, and of random ones. */
#include "tests/models/generate.h"

#include <stdlib.h>

/* What a model gives, compiled with these rules. */
static double *results(const struct test_model *t, const char *rules, const char *math, int64_t *count)
{
	struct option_texts o = {.backend = "interpreter", .target = "generic", .rules = rules, .math = math};
	struct test_run r;
	struct test_forest f;
	double *all = NULL;
	if (start_run(&r, t, &o)) {
		random_state = 11;
		make_forest(&f, &r.image, 3, 9);
		if (run_forest(&r, &f.minibatch))
			all = gather_outputs(&r, f.nodes, f.minibatch.forest.inputs, count);
		free_forest(&f);
	}
	end_run(&r);
	return all;
}

/* Constants that additions want: whichever of them leave the bodies, rounding is the same. */
static void test_constants(void)
{
#define CELL(outputs)                                                                                        \
	"model m\nstructure tree(left, right)\ninput x[C]\nstate h[B]\nparam P[B, C]\nparam Q[B, C]\n"       \
	"param q[B]\nparam c[C]\nparam a[A]\n" outputs
#define REST "output y = h\noutput rest = sum(a) + sum(c) + sum(q) + sum(sum(Q))\n"
	static const struct {
		const char *what, *text;
	} models[] = {
	    {"a constant product and a constant sum stay one chain",
	     CELL(REST "output z = (sigmoid(P @ c + q) * tanh(P @ c) + Q @ c) at every node\n") "node:\n h "
												"= tanh(P "
												"@ x)\n"},
	    {"a product that an addition contracts stays with it",
	     CELL(REST) "node:\n h = tanh(P @ x + softmax(sum(Q)))\n"},
	    {"a product with rows of a concatenation stays with its sum",
	     CELL(REST "param S[A, B]\nparam T[A, A]\nparam w[A + B]\n"
		       "output z = (abs(0.5 / (1 + abs(w))) @ transpose(concat(S, T))) at every "
		       "node\n") "node:\n h = tanh(P @ x)\n"},
	    {"a sum within a concatenation stays one chain",
	     CELL(REST "param S[C, C]\nparam T[C, C]\n"
		       "output z = concat(q, sigmoid(S @ c + c) * tanh(S @ c) + T @ c) at every "
		       "node\n") "node:\n h = tanh(P @ x)\n"},
	};
	static const char *const rules[] = {"all", "constants", "geometric"};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct test_model t = {0};
		int64_t n = 0, m = 0;
		if (!tap_ok(load_text(&t, "test", models[i].text, strlen(models[i].text), "A=10 B=7 C=17"),
			    "a model"))
			continue;
		double *plain = results(&t, "none", NULL, &n);
		bool same = plain != NULL;
		for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
			double *by_rules = results(&t, rules[r], "exact", &m);
			same = same && by_rules && n == m && memcmp(plain, by_rules, n * sizeof *plain) == 0;
			free(by_rules);
		}
		tap_ok(same, "exact: %s", models[i].what);
		free(plain);
		free_model(&t);
	}
}

/* Compiled with all rules and with none, a model gives the same bits. */
static void exact_keeps(const char *what, const char *text, const char *sizes)
{
	struct test_model t = {0};
	int64_t n = 0, m = 0;
	if (!tap_ok(load_text(&t, "test", text, strlen(text), sizes), "a model"))
		return;
	double *plain = results(&t, "none", NULL, &n), *exact = results(&t, "all", "exact", &m);
	tap_ok(plain && exact && n == m && memcmp(plain, exact, n * sizeof *plain) == 0, "exact: %s", what);
	free(plain);
	free(exact);
	free_model(&t);
}

/* What rules make equal becomes one value: additions must not come to see other products for it. */
static void test_merges(void)
{
#define SUMS                                                                                                 \
	"model m\nstructure tree(left, right)\ninput x[D], p[D], q[D]\nparam w[D]\nstate h[D], g[D]\n"       \
	"output y = h\noutput z = g * w\nnode:\n"
	static const char *const models[][2] = {
	    {"a product of two additions that become one is still rounded",
	     SUMS " m = p * q\n h = -(-x) + m\n g = x + m\n"},
	    {"and of two that do so further up",
	     SUMS " m = p * q\n h = tanh(exp(-(-x))) + m\n g = tanh(exp(x)) + m\n"},
	    {"two contracted products that become one are still contracted",
	     SUMS " h = x + -(-p) * q\n g = p + p * q\n"},
	    {"two additions that others go on with", SUMS " h = p + (x + -(-q))\n g = p * q + (x + q)\n"},
	    {"what becomes something that a product stands for",
	     SUMS " h = concat(tanh(-(-(p * q))), x)[D:]\n g = x + -(-(-(-p) * q))\n"},
	};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		exact_keeps(models[i][0], models[i][1], "D=40");
}

/* A constant of many operators is a parameter, with which a sum begins: it must remain one when rules would
 * leave few operators. */
static void test_many_operators(void)
{
#define CONSTANT                                                                                             \
	"model m\nstructure tree(left, right)\ninput x[D]\nparam w[D], V[D, D]\nstate h[D]\noutput y = h\n"
#define SIGNS "-(-(-(-(-(-(-(-(-("
#define ENDS ")))))))))"
	exact_keeps("a constant of many operators of which few are left",
		    CONSTANT "node:\n h = V @ x + (1 + " SIGNS SIGNS "w" ENDS ENDS ")\n", "D=40");
	exact_keeps("and one of numbers alone, of which nothing is left",
		    CONSTANT "node:\n h = w * (V @ x + log_softmax(mean(zeros(D, D))))\n", "D=40");
}

/* An addition of constants goes on with what it is made of, whether or not rules make that a value that
 * others want. */
static void test_shared_terms(void)
{
	exact_keeps("a sum that rules make the same in two bodies",
		    CONSTANT "leaf:\n h = x * (V @ -(-w))\ninner:\n h = x * tanh(w * w + V @ w)\n", "D=40");
	exact_keeps("a product that is folded for itself as well",
		    CONSTANT
		    "node:\n g = 0.25 * tanh(w)\n h = V @ x + tanh(V @ w + g)\nstate g[D]\noutput z = g\n",
		    "D=40");
}

/* Sums that round down, element by element, below what their terms are together. */
static void test_bounds(void)
{
#define ONES "model m\nstructure tree(left, right)\ninput x[D]\nstate h\noutput y = h\nnode:\n"
	exact_keeps("a sum rounds often", ONES " h = maximum(sum(1.013 * sigmoid(x * x + 30)), 2025.97)\n",
		    "D=2000");
	exact_keeps("and so does one that goes on where another ended",
		    ONES
		    " h = maximum(sum(400000 * sigmoid(b * b + 30)) + sum(0.3 * sigmoid(x * x + 30)), "
		    "1600560)\ninput b[4]\n",
		    "D=2000");
}

static void test_bits(void)
{
	int same = 0, of = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		static struct generator g;
		struct test_model t = {0};
		char sizes[64];
		const char *text = generate_model(&g, seed, sizes);
		int64_t n = 0, m = 0;
		if (!load_text(&t, "random", text, strlen(text), sizes))
			continue;
		double *a = results(&t, "none", NULL, &n), *b = results(&t, "all", "exact", &m);
		bool equal = a && b && n == m && memcmp(a, b, n * sizeof *a) == 0;
		if (!equal)
			printf("# seed %llu\n", (unsigned long long)seed);
		same += equal;
		of++;
		free(a);
		free(b);
		free_model(&t);
	}
	tap_ok(of == 40 && same == of,
	       "exact: %d of %d random models give the same bits, compiled with the rules and without", same,
	       of);
}

int main(void)
{
	test_constants();
	test_merges();
	test_many_operators();
	test_shared_terms();
	test_bounds();
	test_bits();
	return tap_done();
}
