/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reorganisations of convolutions and products, each as a model whose second output is a mutant of the first: they are
 * found equal, or wrong just where they are.  Every position is also computed, and must be as the boxes say. */
#include "mutate/mutate.h"
#include "tests/sample.h"
#include "tests/subop/random.h"

/* Elements of z in boxes that differ from those of y, and those of them that are wrong. */
static const struct mutant {
	const char *name;
	int differ, wrong;
	const char *text;
} mutants[] = {
    {"batch joined into height", 2 * 3 * 6, 2 * 3 * 6,
     "input x[2, 2, 4, 6]\nparam W[3, 2, 3, 3]\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = transpose(reshape(conv(reshape(transpose(x, 1, 0, 2, 3), 2, 8, 6), W, pad=1), 3, 2, 4, 6), 1, 0, 2, 3)\n"},
    {"batch joined into width", 2 * 3 * 4, 2 * 3 * 4,
     "input x[2, 2, 4, 6]\nparam W[3, 2, 3, 3]\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = transpose(reshape(conv(reshape(transpose(x, 1, 2, 0, 3), 2, 4, 12), W, pad=1), 3, 4, 2, 6), 2, 0, 1, 3)\n"},
    {"batch interleaved with height, where neighbours are of another image", 2 * 3 * 4 * 6, 2 * 3 * 4 * 6,
     "input x[2, 2, 4, 6]\nparam W[3, 2, 3, 3]\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = transpose(reshape(conv(reshape(transpose(x, 1, 2, 0, 3), 2, 8, 6), W, pad=1), 3, 4, 2, 6), 2, 0, 1, 3)\n"},
    {"channels into height", 0, 0,
     "input x[2, 2, 4, 6]\nparam W[3, 2, 3, 3]\n"
     "def along(r, V) = (s[b, k, i in 4, j in 6] = sum(V[k, u, v] * r[b, 2*i + u - 2, j + v - 1] for u, v); s)\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = along(reshape(transpose(x, 0, 2, 1, 3), 2, 8, 6), reshape(transpose(W, 0, 2, 1, 3), 3, 6, 3))\n"},
    {"channels into width", 0, 0,
     "input x[2, 2, 4, 6]\nparam W[3, 2, 3, 3]\n"
     "def along(r, V) = (s[b, k, i in 4, j in 6] = sum(V[k, u, v] * r[b, i + u - 1, 2*j + v - 2] for u, v); s)\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = along(reshape(transpose(x, 0, 2, 3, 1), 2, 4, 12), reshape(transpose(W, 0, 2, 3, 1), 3, 3, 6))\n"},
    {"a dilated convolution as a plain one of the image in parts", 0, 0,
     "input x[2, 8, 6]\nparam W[3, 2, 3, 3]\n"
     "output y = conv(x, W, pad=2, dilation=2)\n"
     "output z = reshape(transpose(reshape(conv(reshape(transpose(reshape(x, 2, 4, 2, 3, 2), 2, 4, 0, 1, 3), 4, 2, 4, 3), W, pad=1), 2, 2, 3, 4, 3), 2, 3, 0, 4, 1), 3, 8, 6)\n"},
    {"products that share a factor, as one with joined weights", 0, 0,
     "input x[4, 5]\nparam A[5, 3], B[5, 2]\n"
     "output y = concat(x @ A, x @ B)\n"
     "output z = x @ concat(A, B)\n"},
    {"a transposed product", 0, 0,
     "input x[4, 5]\nparam A[5, 3]\n"
     "output y = x @ A\n"
     "output z = transpose(transpose(A) @ transpose(x))\n"},
    {"a convolution as one of two groups", 0, 0,
     "input x[2, 4, 6]\nparam W[4, 2, 3, 3]\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = conv(concat(x, x, axis=0), W, groups=2, pad=1)\n"},
    {"convolutions of one image joined", 0, 0,
     "input x[2, 4, 6]\nparam V[3, 2, 3, 3], W[2, 2, 3, 3]\n"
     "output y = concat(conv(x, V, pad=1), conv(x, W, pad=1), axis=0)\n"
     "output z = conv(x, concat(V, W, axis=0), pad=1)\n"},
    {"convolutions of groups joined", 0, 0,
     "input x[4, 4, 6], r[6, 4, 6]\nparam V[2, 2, 3, 3], W[3, 2, 3, 3]\n"
     "output y = concat(conv(x, V, groups=2, pad=1), conv(r, W, groups=3, pad=1), axis=0)\n"
     "output z = conv(concat(x, r, axis=0), concat(V, W, axis=0), groups=5, pad=1)\n"},
    {"convolutions of groups of one image joined, which mixes groups", 4 * 4 * 6, 2 * 4 * 6,
     "input x[4, 4, 6]\nparam V[2, 2, 3, 3], W[2, 2, 3, 3]\n"
     "output y = concat(conv(x, V, groups=2, pad=1), conv(x, W, groups=2, pad=1), axis=0)\n"
     "output z = conv(x, concat(V, W, axis=0), groups=2, pad=1)\n"},
    {"a flat kernel transposed", 0, 0,
     "input x[2, 4, 6]\nparam W[3, 2, 1, 3]\n"
     "output y = conv(x, W)\n"
     "output z = transpose(conv(transpose(x, 0, 2, 1), transpose(W, 0, 1, 3, 2)), 0, 2, 1)\n"},
    {"flat and upright kernels joined", 0, 0,
     "input x[2, 6, 6], r[2, 6, 6]\nparam V[3, 2, 1, 3], W[3, 2, 3, 1]\n"
     "output y = concat(conv(x, V), transpose(conv(r, W), 0, 2, 1), axis=0)\n"
     "output z = conv(concat(x, transpose(r, 0, 2, 1), axis=0), concat(V, transpose(W, 0, 1, 3, 2), axis=0), groups=2)\n"},
    {"a convolution of groups split", 0, 0,
     "input x[4, 4, 6]\nparam W[4, 2, 3, 3]\n"
     "output y = conv(x, W, groups=2, pad=1)\n"
     "output z = concat(conv(x[0:2, :, :], W[0:2, :, :, :], pad=1), conv(x[2:4, :, :], W[2:4, :, :, :], pad=1), axis=0)\n"},
    {"a convolution of one element as a product", 0, 0,
     "input x[4, 2, 4, 6]\nparam W[3, 2, 1, 1]\n"
     "output y = conv(x, W)\n"
     "output z = reshape(reshape(W, 3, 2) @ reshape(x, 4, 2, 24), 4, 3, 4, 6)\n"},
    {"a strided convolution as one of blocks", 0, 0,
     "input x[2, 8, 6]\nparam W[3, 2, 3, 3]\n"
     "def widened(V) = (w[k, c, u in 4, v in 4] = V[k, c, u - 1, v - 1] else 0; w)\n"
     "def blocks(r, V) = (s[k, i in 4, j in 3] = sum(V[k, c, a, d, b, e] * r[c, i + a - 1, d, j + b - 1, e] for c, a, d, b, e); s)\n"
     "output y = conv(x, W, stride=2, pad=1)\n"
     "output z = blocks(reshape(x, 2, 4, 2, 3, 2), reshape(widened(W), 3, 2, 2, 2, 2, 2))\n"},
    {"kernels of two sizes as one size", 0, 0,
     "input x[2, 6, 6]\nparam V[3, 2, 3, 3], W[3, 2, 1, 1]\n"
     "def widened(K) = (w[k, c, u in 3, v in 3] = K[k, c, u - 1, v - 1] else 0; w)\n"
     "output y = concat(conv(x, V, pad=1), conv(x, W), axis=0)\n"
     "output z = conv(x, concat(V, widened(W), axis=0), pad=1)\n"},
    {"rows padded to a tile and cut", 0, 0,
     "input x[5, 4]\nparam A[4, 3]\n"
     "output y = x @ A\n"
     "output z = (concat(x, zeros(3, 4), axis=0) @ A)[0:5, :]\n"},
    {"sums that are equal at the first two positions of a box", 3, 1,
     "input x[14]\n"
     "def straight(r) = (s[i in 3] = r[i + 3] + r[8]; s)\n"
     "def crossed(r) = (s[i in 3] = r[5*i + 3] + r[8 - 4*i]; s)\n"
     "output y = straight(x)\n"
     "output z = crossed(x)\n"},
    {"a constant that is a little different", 4 * 3, 4 * 3,
     "input x[4, 5]\nparam A[5, 3]\n"
     "output y = x @ A + 2\n"
     "output z = x @ A + 3\n"},
};

static void test_mutant(const struct mutant *m)
{
	struct test_model t = {0};
	char text[2000];
	int length = snprintf(text, sizeof text, "model m\nstructure none\n%s", m->text);
	struct sub_program p;
	struct mutate_comparison c;
	if (!tap_ok(load_text(&t, "m", text, (size_t)length, ""), "%s: parsed", m->name))
		return;
	sub_init(&p, &t.arena, "m");
	bool ok = sub_lower_model(&p, t.model, t.sizes, SUB_AT_MODEL, &t.diags);
	print_diags(&t.diags);
	if (tap_ok(ok, "%s: lowered", m->name)) {
		const struct sub_body *b = &p.bodies.at[p.bodies.n - 1];
		sub_ref y = b->stores.at[0].value.value, z = b->stores.at[1].value.value;
		const struct mutate_form *forms = mutate_find_forms(&p);
		mutate_compare(&p, forms, y, z, &c);
		tap_ok(!c.refused, "%s: compared%s%s", m->name, c.refused ? ", but " : "", c.refused ? c.refused : "");
		tap_is((long)c.wrong, m->differ, m->name);
		struct mutate_census census;
		tap_ok(mutate_compute_all(&p, forms, y, z, &c, &census) && census.elements == (long)c.elements, "all elements computed");
		tap_is(census.missed, 0, "what is called equal is equal at every position");
		tap_is(census.differ, m->wrong, "so many elements differ in fact");
	}
	free_model(&t);
}

/* Programs of every operator, structure and type: what they print depends on nothing else, and bodies are all there. */
static void test_any_program(void)
{
	int same = 0, named = 0, programs = 400 / SAMPLE;
	for (int seed = 1; seed <= programs; seed++) {
		struct bench b;
		struct generator g;
		bench_open(&b);
		generate_program(&b, &g, seed, seed % 2, false);
		struct str first = str_in(&b.arena), again = first;
		mutate_print_boxes(&b.p, &first);
		mutate_print_boxes(&b.p, &again);
		same += strcmp(str_text(&first), str_text(&again)) == 0;
		bool all = true;
		for (size_t i = 0; i < b.p.bodies.n; i++)
			all &= strstr(str_text(&first), b.p.bodies.at[i].name) != NULL;
		named += all;
		bench_close(&b);
	}
	tap_is(same, programs, "random programs print the same twice");
	tap_is(named, programs, "and all of their bodies");
}

int main(void)
{
	test_any_program();
	for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++)
		test_mutant(&mutants[i]);
	return tap_done();
}
