/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is copied with a border, and that no bit of a result depends on it. */
#include "tests/move/moving.h"
#include "tests/sample.h"

#define HEAD "structure tree(left, right)\ninput x[C, H, X]\nparam W[K, C, 3, 3], U[K, K, 2]\nstate h[K, "
#define TAIL                                                                                                           \
	"inner:\n h[k, i, j] = tanh(left.h[k, i, j] - sum(U[k, c, v] * right.h[c, i, j + v - 1] for c, v))\n"          \
	"output y = h at every node\n"

/* The copies that `pad all` makes. */
static const struct {
	const char *what, *text;
	int copies;
} models[] = {
    {"both axes of an image, and one axis of a state",
     "model m\n" HEAD "H, X]\nleaf:\n h[k, i, j] = sum(W[k, c, u, v] * x[c, i + u - 1, j + v - 1] for c, u, v)\n" TAIL,
     2},
    {"windows at every second element",
     "model m\n" HEAD "(H + 1)/2, (X + 1)/2]\nleaf:\n"
     " h[k, i, j] = sum(W[k, c, u, v] * x[c, 2*i + u - 1, 2*j + v - 1] for c, u, v)\n" TAIL,
     2},
    {"an image backwards, beyond one of its ends",
     "model m\n" HEAD "H, X]\nleaf:\n"
     " h[k, i in H, j] = sum(W[k, c, u, v] * x[c, H + 1 - i - u, j + v - 1] for c, u, v)\n" TAIL,
     2},
    {"nothing where windows stay inside",
     "model m\n" HEAD "H - 2, X - 2]\nleaf:\n h[k, i, j] = sum(W[k, c, u, v] * x[c, i + u, j + v] for c, u, v)\n"
     "inner:\n h[k, i, j] = left.h[k, i, j] + U[k, k, 0] * right.h[k, i, j]\noutput y = h at every node\n",
     0},
    {"an image that a maximum reads",
     "model m\n" HEAD "H, X]\nleaf:\n h[k, i, j] = max(x[c, i + u - 1, j] for c, u in 3) * W[k, 0, 0, 0]\n"
     "inner:\n h[k, i, j] = left.h[k, i, j] + U[k, k, 0] * right.h[k, i, j]\noutput y = h at every node\n",
     1},
};

static void test_copies(struct test_model *t, size_t i)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = "pad all\n"};
	struct str s = str_in(&t->arena);
	if (!models[i].copies) {
		tap_ok(refuses(t, "pad all\n", "through windows that leave it"), "copies: %s", models[i].what);
		return;
	}
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "pad", &s);
	print_diags(&t->diags);
	tap_ok(ok && count(str_text(&s), " fill ") == models[i].copies, "copies: %s", models[i].what);
}

static void test_bits(struct test_model *t, size_t i)
{
	static const char *const maths[] = {"exact", "reassociate"};
	for (int m = 0; m < 2; m++) {
		if (!in_sample(m + i))
			continue;
		struct option_texts o = {.target = "avx2", .math = maths[m], .rules = "-tables"};
		tap_ok(moves_no_bit(t, o, "pad", models[i].copies > 0), "same bits, %s: %s", maths[m], models[i].what);
	}
}

/* Rows that are larger than the first-level cache are copied by parts, and the output is a transposition. */
static void test_images(void)
{
	static const char text[] =
	    "model m\nstructure tree(left, right)\ninput x[C, H, X]\nparam W[K, C, 3, 3]\nstate h[K, H, X]\n"
	    "leaf:\n h[k, i, j] = sum(W[k, c, u, v] * x[c, i + u - 1, j + v - 1] for c, u, v)\n"
	    "inner:\n h = left.h - right.h\noutput y = h at every node\n";
	struct test_model t = {0};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .rules = "-tables"};
	bool ok = load_text(&t, "m", text, strlen(text), "C=2 H=44 X=9 K=24");
	struct str s = str_in(&t.arena);
	if (tap_ok(ok && compile_dump_as(&t.arena, &t.diags, t.model, t.sizes, &o, "sched", &s),
		   "an image is planned")) {
		tap_ok(strstr(str_text(&s), "layout h node 1 2 0\n"),
		       "vectors run along its channels, not its 9 columns");
		tap_ok(
		    strstr(
			str_text(&s),
			"tile output.0 rows 8 1 columns 1 unroll 1 by columns across 2 along 0 outside rows"),
		    "its output goes along both orders");
		tap_ok(moves_no_bit(&t, o, "pad", true), "same bits of an image");
	}
	print_diags(&t.diags);
	free_model(&t);
}

/* What windows read that another layer computes is stored by that layer, and read there without a copy; and all layers agree
 * on an order of channels, rows and columns, so that none is without vectors. */
static void test_layers(void)
{
	static const char text[] =
	    "model m\nstructure none\ninput x[C, H, H]\n"
	    "param A[E, C], B[C, E], F[E, C], G[C, E], W[E, 3, 3], V[E, 3, 3]\nnode:\n"
	    " a[e, i, j] = sum(A[e, c] * x[c, i, j] for c)\n"
	    " d[e, i, j] = sum(W[e, u, v] * maximum(a, 0)[e, i + u - 1, j + v - 1] for u, v)\n"
	    " p[c, i, j] = sum(B[c, e] * maximum(d, 0)[e, i, j] for e)\n"
	    " b[e, i, j] = sum(F[e, c] * p[c, i, j] for c)\n"
	    " s[e, i in (H + 1)/2, j in (H + 1)/2] = "
	    "sum(V[e, u, v] * maximum(b, 0)[e, 2*i + u - 1, 2*j + v - 1] for u, v)\n"
	    "output y[c, i, j] = sum(G[c, e] * maximum(s, 0)[e, i, j] for e)\n";
	struct test_model t = {0};
	struct option_texts o = {.backend = "interpreter", .target = "avx512", .rules = "-tables"};
	bool ok = load_text(&t, "m", text, strlen(text), "C=24 E=80 H=28");
	struct str s = str_in(&t.arena);
	if (tap_ok(ok && compile_dump_as(&t.arena, &t.diags, t.model, t.sizes, &o, "sched", &s), "layers are planned")) {
		tap_ok(strstr(str_text(&s), "# output: 6 groups "), "each layer is one group, without copies");
		tap_ok(count(str_text(&s), " 0 1 2\n") == 5, "all images have one order");
		tap_ok(refuses(&t, "pad on\n", "so often that a copy pays"), "a depthwise convolution of a layer is no reason for a copy");
	}
	print_diags(&t.diags);
	free_model(&t);
	if (tap_ok(load_text(&t, "m", text, strlen(text), "C=3 E=5 H=7"), "parsed: layers"))
		tap_ok(moves_no_bit(&t, (struct option_texts){.target = "avx2"}, "pad", false), "same bits of layers");
	free_model(&t);
}

/* A model may itself read windows of a value that begins before what it moves: then `pad off` contradicts nothing. */
static void test_written(void)
{
	static const char text[] = "model m\nstructure none\ninput x[4] : i32\nnode:\n"
				   " v[a in 4] = min(x[a - 1] for u in 2)\noutput y = v + x\n";
	struct test_model t = {0};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = "pad off\n"};
	struct test_run r;
	bool ok = tap_ok(load_text(&t, "m", text, strlen(text), ""), "parsed") && start_run(&r, &t, &o);
	print_diags(&t.diags);
	if (tap_ok(ok, "pad off is taken where the model itself moves what has a border"))
		end_run(&r);
	free_model(&t);
}

static void test_refusals(struct test_model *t)
{
	tap_ok(refuses(t, "pad\n", "wrong argument") && refuses(t, "pad often\n", "wrong argument"),
	       "what is no way of padding is refused");
	tap_ok(refuses(t, "pad on\npad off\n", "another line"), "two lines that contradict each other are refused");
	tap_ok(refuses(t, "pad on\n", "so often that a copy pays"),
	       "an element that is read once is no reason for a copy");
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct test_model t = {0};
		if (!tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), "C=2 H=7 X=20 K=3"),
			    "parsed: %s", models[i].what))
			continue;
		test_copies(&t, i);
		test_bits(&t, i);
		free_model(&t);
	}
	test_images();
	test_layers();
	test_written();
	static const char once[] =
	    "model m\nstructure tree(left, right)\ninput x[C, H, X]\nparam W[K, C, 3, 3]\nstate h[K, H/3, X/3]\n"
	    "leaf:\n h[k, i in H/3, j in X/3] = sum(W[k, c, u, v] * x[c, 3*i + u - 1, 3*j + v - 1] for c, u, v)\n"
	    "inner:\n h = left.h - right.h\noutput y = h at every node\n";
	struct test_model few = {0};
	if (tap_ok(load_text(&few, "m", once, strlen(once), "C=2 H=6 X=21 K=1"), "parsed"))
		test_refusals(&few);
	free_model(&few);
	return tap_done();
}
