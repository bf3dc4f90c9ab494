/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes with weights stay products of bytes: rules do not merge weights to numbers that a byte does not hold where
 * the merged product takes as long as those that it replaces, and merge them where it takes less. */
#include "tests/rewrite/derivation.h"

/* The sums of products that the output of a model is, after rewriting and grouping, by how many products a word holds. */
struct counted {
	int bytes, halves, numbers;
};

static struct counted count_sums(const struct sub_program *p)
{
	struct counted n = {0};
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	const bool *constant = sub_find_constants(p);
	sub_mark_live(p, &p->bodies.at[0], live);
	for (size_t i = 1; i < p->values.n; i++) {
		enum sub_op op = p->values.at[i].op;
		n.bytes += live[i] && op == SUB_ACCUMULATE4;
		n.halves += live[i] && op == SUB_ACCUMULATE2;
		n.numbers += live[i] && op == SUB_SUM && !constant[i];
	}
	return n;
}

static const struct {
	const char *what, *value;
	struct counted sums;
} cases[] = {
    {"two products of one value are not one with the sum of the weights", "W @ x + V @ x", {2, 0, 0}},
    {"nor beside another term", "W @ x + b + V @ x", {2, 0, 0}},
    {"a factor of each output stays behind the sums", "(W @ x) * b", {1, 0, 0}},
    {"also behind a bias", "(W @ x + b) * c", {1, 0, 0}},
    {"a zero point, which multiplies the sum of what weights multiply, changes nothing of it", "((W - z) @ (x - 3)) * b", {1, 0, 1}},
    {"two values do not become one that no byte holds", "W @ x + W @ y", {2, 0, 0}},
    {"products of halves are not one of numbers", "H @ x + G @ x", {0, 2, 0}},
    {"a kernel takes no element of an image, which it could not hold", "sum(sum(conv(i, K, pad=1) + i))", {1, 0, 1}},
    {"numbers beyond halves are merged", "(N @ x) * b", {0, 0, 1}},
    {"and so are two products of them", "N @ x + M @ x", {0, 0, 1}},
    {"of two matrices in a row the second one multiplies numbers", "P @ (W @ x)", {0, 0, 1}},
};

static void test_case(size_t i)
{
	struct derivation d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
	char text[900];
	snprintf(text, sizeof text,
		 "model m\nstructure none\ninput x[32] : u8, y[32] : u8, i[32, 5, 5] : u8\n"
		 "param W[32, 32] : i8, V[32, 32] : i8, P[32, 32] : i8, H[32, 32] : i16, G[32, 32] : i16, N[32, 32] : i32, "
		 "M[32, 32] : i32, K[32, 32, 3, 3] : i8, b[32] : i8, c[32] : i8, z : i8\n"
		 "output o = %s\noutput rx = sum(x)\noutput ry = sum(y)\noutput ri = sum(sum(sum(i)))\n"
		 "output weights = sum(sum(W)) + sum(sum(V)) + sum(sum(P)) + sum(sum(H)) + sum(sum(G)) + sum(sum(N)) + sum(sum(M)) + "
		 "sum(sum(sum(sum(K)))) + sum(b) + sum(c) + z\n",
		 cases[i].value);
	derive(&d, text, "");
	struct sub_program grouped;
	sub_init(&grouped, &d.model.arena, "grouped");
	rewrite_group(&grouped, &d.to, &d.options, NULL);
	struct counted is = count_sums(&grouped), should = cases[i].sums;
	/* Sums of inputs are numbers as well. */
	is.numbers -= 3;
	if (!tap_ok(is.bytes == should.bytes && is.halves == should.halves && is.numbers == should.numbers, "%s", cases[i].what))
		printf("# %d of bytes, %d of halves, %d of numbers by '%s'\n", is.bytes, is.halves, is.numbers, rules_of(&d, "output"));
	free_model(&d.model);
}

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		test_case(i);
	return tap_done();
}
