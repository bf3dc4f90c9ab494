/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which sigmoids and tanhs are computed to fewer places: those that products in integers, f16 or bf16 go into, unless
 * a larger error might matter. */
#include "tests/rewrite/derivation.h"

#define SEQUENCE                                                                                             \
	"model m\nstructure sequence\ninput x[16]\n"                                                          \
	"param W[16, 16] products f32, U[16, 16], V[16, 16] products i8\n"                                   \
	"state h[16]\nstate s[16]\noutput y = h + W @ s + U @ s + V @ tanh(s)\nnode:\n    s = x\n    h = "
#define OF_U(function) function "(U @ tanh(previous.h) + x)"

enum { FUNCTIONS = 6 };

static const enum sub_op functions[FUNCTIONS] = {SUB_SIGMOID, SUB_SIGMOID_4, SUB_SIGMOID_5,
						 SUB_TANH,    SUB_TANH_4,    SUB_TANH_5};

/* Of a body that reads the state of the node before. */
static const struct {
	const char *what, *text;
	enum rewrite_math math;
	enum precision precision;
	int count[FUNCTIONS]; /* of each of the functions */
} cases[] = {
    {"a tanh of products in i8 is to 4 places", OF_U("tanh"), REWRITE_REASSOCIATE, PRECISION_I8, {0, 0, 0, 1, 1, 0}},
    {"of products in f16", OF_U("tanh"), REWRITE_REASSOCIATE, PRECISION_F16, {0, 0, 0, 1, 1, 0}},
    {"of products in bf16", OF_U("tanh"), REWRITE_REASSOCIATE, PRECISION_BF16, {0, 0, 0, 1, 1, 0}},
    {"of products in i16 to 5 places", OF_U("tanh"), REWRITE_REASSOCIATE, PRECISION_I16, {0, 0, 0, 1, 0, 1}},
    {"of products in i8x3 as well", OF_U("tanh"), REWRITE_REASSOCIATE, PRECISION_I8X3, {0, 0, 0, 1, 0, 1}},
    {"of products in f32 it stays", "tanh(W @ tanh(previous.h) + x)", REWRITE_REASSOCIATE, PRECISION_I8,
     {0, 0, 0, 2, 0, 0}},
    {"in exact arithmetic, too", OF_U("tanh"), REWRITE_EXACT, PRECISION_I8, {0, 0, 0, 2, 0, 0}},
    {"a sigmoid likewise", OF_U("sigmoid"), REWRITE_REASSOCIATE, PRECISION_I8, {0, 1, 0, 1, 0, 0}},
    {"to 5 places", OF_U("sigmoid"), REWRITE_REASSOCIATE, PRECISION_I16, {0, 0, 1, 1, 0, 0}},
    {"in fast arithmetic, too", OF_U("sigmoid"), REWRITE_FAST, PRECISION_I16, {0, 0, 1, 0, 0, 0}},
    {"of several precisions the coarsest one counts",
     "tanh(U @ tanh(previous.h) + V @ tanh(previous.h + x))", REWRITE_REASSOCIATE, PRECISION_I16,
     {0, 0, 0, 2, 1, 0}},
    {"errors go on through gates", "tanh(x * " OF_U("sigmoid") ")", REWRITE_REASSOCIATE, PRECISION_I8,
     {0, 1, 0, 1, 1, 0}},
    {"a function of a bounded argument stays", "tanh(3 * " OF_U("sigmoid") ")", REWRITE_REASSOCIATE, PRECISION_I8,
     {0, 1, 0, 2, 0, 0}},
    {"one that divides stays", "x / (1 + " OF_U("sigmoid") ")", REWRITE_REASSOCIATE, PRECISION_I8,
     {1, 0, 0, 1, 0, 0}},
    {"one whose sum divides stays", "x / sum(" OF_U("sigmoid") ")", REWRITE_REASSOCIATE, PRECISION_I8,
     {1, 0, 0, 1, 0, 0}},
    {"one whose logarithm is taken stays", "log(x * " OF_U("sigmoid") ")", REWRITE_REASSOCIATE, PRECISION_I8,
     {1, 0, 0, 1, 0, 0}},
};

/* The model as it is quantised, in the arena of the derivation. */
static struct sub_program quantise(struct derivation *d, enum precision precision, const char *text)
{
	struct sub_program contracted, quantised;
	d->options.precision = precision;
	derive(d, text, "");
	sub_init(&contracted, &d->model.arena, "test");
	sub_init(&quantised, &d->model.arena, "test");
	bool exact = d->options.math == REWRITE_EXACT; /* contracted before the rules */
	if (!exact)
		rewrite_contract(&contracted, &d->to, &d->options, NULL);
	rewrite_quantise(&quantised, exact ? &d->to : &contracted, &d->options, NULL);
	return quantised;
}

static void test_case(size_t i)
{
	struct derivation d = with(cases[i].math, ~0u, 0);
	char text[1000];
	int count[FUNCTIONS] = {0};
	snprintf(text, sizeof text, "%s%s\n", SEQUENCE, cases[i].text);
	struct sub_program p = quantise(&d, cases[i].precision, text);
	bool ok = sub_verify(&p, &d.model.diags), *live = ARENA_ARRAY(&d.model.arena, bool, p.values.n);
	for (size_t b = 0; b < p.bodies.n; b++)
		if (p.bodies.at[b].domain == SUB_INNER)
			sub_mark_live(&p, &p.bodies.at[b], live);
	for (size_t v = 1; v < p.values.n; v++)
		for (int f = 0; f < FUNCTIONS; f++)
			count[f] += live[v] && p.values.at[v].op == functions[f];
	ok &= memcmp(count, cases[i].count, sizeof count) == 0;
	if (!tap_ok(ok, "%s", cases[i].what))
		printf("# sigmoids %d, %d, %d, tanhs %d, %d, %d\n", count[0], count[1], count[2], count[3],
		       count[4], count[5]);
	print_diags(&d.model.diags);
	free_model(&d.model);
}

/* What is a result stays; what is only part of one does not. */
static void test_result(const char *value, enum sub_op op)
{
	struct derivation d = with(REWRITE_REASSOCIATE, ~0u, 0);
	char text[500];
	bool found = false;
	snprintf(text, sizeof text,
		 "model m\nstructure none\ninput x[16]\nparam W[16, 16]\noutput y = %s\n", value);
	struct sub_program p = quantise(&d, PRECISION_I8, text);
	for (size_t v = 1; v < p.values.n; v++)
		found |= p.values.at[v].op == op;
	tap_ok(found, "%s: %s", value, sub_spelling(op));
	free_model(&d.model);
}

/* What becomes of a state is known where that is read: it is a result, or a logarithm is computed of it. */
static void test_state(const char *output, enum sub_op op)
{
	struct derivation d = with(REWRITE_REASSOCIATE, ~0u, 0);
	char text[500];
	bool found = false;
	snprintf(text, sizeof text,
		 "model m\nstructure sequence\ninput x[16]\nparam W[16, 16]\nstate h[16]\noutput y = %s\n"
		 "node:\n    h = sigmoid(W @ tanh(previous.h) + x)\n", output);
	struct sub_program p = quantise(&d, PRECISION_I8, text);
	for (size_t v = 1; v < p.values.n; v++)
		found |= p.values.at[v].op == op;
	tap_ok(found, "of a state, %s: %s", output, sub_spelling(op));
	print_diags(&d.model.diags);
	free_model(&d.model);
}

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		test_case(i);
	test_result("sigmoid(W @ tanh(x) + x)", SUB_SIGMOID);
	test_result("2 * sigmoid(W @ tanh(x) + x)", SUB_SIGMOID_4);
	test_state("h at root", SUB_SIGMOID);
	test_state("log(h) at root", SUB_SIGMOID);
	test_state("2 * h at root", SUB_SIGMOID_4);
	return tap_done();
}
