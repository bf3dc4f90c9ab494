/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which models have instances that become rows, and that no bit of a result depends on it. */
#include "tests/move/moving.h"

#define HEAD(params) "model m\nstructure none\ninput x[B, C, H, H]\nparam " params "\nnode:\n"
#define KERNEL "W[K, C, 3, 3]"
#define CONVOLUTION " a[b, k, i, j] = sum(W[k, c, u, v] * x[b, c, i + u - 1, j + v - 1] for c, u, v)\n"

static const struct {
	const char *what, *text;
	bool unstacked;
} models[] = {
    {"a batch of images", HEAD(KERNEL) CONVOLUTION "output y = maximum(a, 0)\n", true},
    {"sums in another order than results, and a mean",
     HEAD(KERNEL ", V[K, K]") CONVOLUTION " m[b, k] = sum(a[b, k, i, j] for i, j) * 0.25\noutput y[b, l] = sum(V[k, l] * m[b, k] for k)\n", true},
    {"two results, one of a row for each image",
     HEAD(KERNEL) CONVOLUTION "output y[b, k] = sum(a[b, k, i, j] for i, j)\noutput z = a\n", true},
    {"images in two copies, with their axes in another order", HEAD(KERNEL) CONVOLUTION "output y[b, j, i, k] = concat(a, a * 2)[b, k, i, j]\n", true},
    {"a mean of the batch", HEAD(KERNEL) CONVOLUTION " m[k] = sum(a[b, k, i, j] for b, i, j)\noutput y[b, k, i, j] = a[b, k, i, j] - m[k]\n",
     false},
    {"a weight for each image", HEAD(KERNEL ", P[B, K]") CONVOLUTION "output y[b, k, i, j] = a[b, k, i, j] * P[b, k]\n", false},
    {"images in the opposite order", HEAD(KERNEL) CONVOLUTION "output y[b in B, k, i, j] = a[B - 1 - b, k, i, j]\n", false},
    {"a neighbour's image", HEAD(KERNEL) CONVOLUTION "output y[b in B, k, i, j] = a[b, k, i, j] + sum(a[b + u - 1, k, i, j] for u in 1)\n",
     false},
    {"a result whose first axis is another", HEAD(KERNEL) CONVOLUTION "output y[k, b, i, j] = a[b, k, i, j]\n", false},
    {"an axis that is read twice", HEAD("V[B, C]") " t[b, e in B] = sum(x[b, c, i, j] * V[e, c] for c, i, j)\noutput y[b, c] = t[b, b] * t[b, c]\n",
     false},
};

/* That a schedule asks for rows of instances is refused where a row has none. */
static void test_model_text(size_t i)
{
	struct test_model t = {0};
	struct option_texts o = {.target = "avx2", .rules = "-tables"};
	struct str s = str_in(&t.arena);
	if (!tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), "B=3 C=4 H=6 K=5"), "parsed: %s", models[i].what))
		return;
	s = str_in(&t.arena);
	if (models[i].unstacked)
		tap_ok(compile_dump_as(&t.arena, &t.diags, t.model, t.sizes, &o, "unstack", &s) && strstr(str_text(&s), "input x[4,6,6]\n"),
		       "rows are images: %s", models[i].what);
	else
		tap_ok(refuses(&t, "unstack all\n", "no stacks of instances"), "rows stay whole: %s", models[i].what);
	print_diags(&t.diags);
	tap_ok(moves_no_bit(&t, o, "unstack", models[i].unstacked), "same bits: %s", models[i].what);
	free_model(&t);
}

/* Few products for each element: threads gain nothing, and vectors would run along what is left of a row. */
static void test_profit(void)
{
	static const char text[] = "model m\nstructure none\ninput x[B, D]\nparam w[D]\nnode:\n v = x * w\noutput y = v\n";
	struct test_model t = {0};
	struct option_texts o = {.target = "avx2"};
	struct str s;
	if (!tap_ok(load_text(&t, "m", text, strlen(text), "B=4 D=24"), "parsed: products of elements"))
		return;
	s = str_in(&t.arena);
	tap_ok(compile_dump_as(&t.arena, &t.diags, t.model, t.sizes, &o, "unstack", &s) && strstr(str_text(&s), "input x[4,24]\n"),
	       "products of elements stay as they are");
	s = str_in(&t.arena);
	o.schedule = "unstack all\n";
	tap_ok(compile_dump_as(&t.arena, &t.diags, t.model, t.sizes, &o, "unstack", &s) && strstr(str_text(&s), "input x[24]\n"),
	       "unless all that can be are to be rows");
	tap_ok(refuses(&t, "unstack on\n", "too few weights"), "a schedule that gains nothing is refused");
	tap_ok(moves_no_bit(&t, (struct option_texts){.target = "avx2"}, "unstack", true), "same bits: products of elements");
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model_text(i);
	test_profit();
	return tap_done();
}
