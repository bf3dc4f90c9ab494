/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What leaves the recursion, and that no bit of a result depends on it. */
#include "ilir/passes.h"
#include "tests/move/moving.h"
#include "tests/sample.h"

#define TREE "structure tree(left, right)\ninput x[E]\n"
#define SEQUENCE "structure sequence\ninput x[E]\n"
#define CASES                                                                                                \
	"structure tree(*)\ninput x[E]\ninput tag : token\ncase a = inner when tag == 1\ncase z = leaf "     \
	"when tag == "                                                                                       \
	"2\nparam W[D, E], U[D, D], V[D, D], b[D]\nstate h[D]\n"

/* `all` values leave for all nodes, `inner` for those with children; under `hoist all`. */
static const struct {
	const char *what, *text, *sizes;
	int all, inner;
} models[] = {
    {"nothing where each product needs a state",
     "model m\n" TREE "param U[E, E]\nstate h[E]\nleaf:\n h = x\ninner:\n h = tanh(U @ left.h) + x\n"
     "output y = h at every node\n",
     "E=19", 0, 0},
    {"the beginning of a sum, for all nodes",
     "model m\n" SEQUENCE "param W[D, E], U[D, D], b[D], c[D]\nstate h[D]\nnode:\n"
     " h = tanh(W @ x + b + U @ previous.h + c)\noutput y = h at every node\n",
     "D=13 E=17", 1, 0},
    {"the same when the text has it last",
     "model m\n" SEQUENCE "param W[D, E], U[D, D], b[D], c[D]\nstate h[D]\nnode:\n"
     " h = tanh(c + U @ previous.h + b + W @ x)\noutput y = h at every node\n",
     "D=13 E=17", 1, 0},
    {"two products of one sum, as one value",
     "model m\n" TREE "param W[D, E], V[D, E], U[D, D], b[D]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n"
     " h = tanh(W @ x + U @ left.h + b + V @ tanh(x) + U @ right.h)\noutput y = h at every node\n",
     "D=9 E=18", 0, 1},
    {"what follows of a product, past data movement",
     "model m\n" SEQUENCE "param W[2*D, E], U[D, D]\nstate h[D]\nnode:\n g = sigmoid(W @ x)\n"
     " h = g[:D] * tanh(U @ previous.h) + g[D:] * previous.h\noutput y = h at every node\n",
     "D=11 E=20", 1, 0},
    {"a product of products",
     "model m\n" SEQUENCE "param W[D, E], V[D, D], U[D, D]\nstate h[D]\nnode:\n"
     " h = tanh(V @ tanh(W @ x) + U @ previous.h)\noutput y = h at every node\n",
     "D=12 E=16", 1, 0},
    {"factors of what is added to a sum",
     "model m\n" SEQUENCE "param W[D, E], V[D, E], U[D, D]\nstate h[D]\nnode:\n"
     " h = tanh(U @ previous.h + sigmoid(V @ x) * (W @ x))\noutput y = h at every node\n",
     "D=12 E=16", 2, 0},
    {"what several sums want",
     "model m\n" SEQUENCE "param W[D, E], U[D, D]\nstate h[D], c[D]\nnode:\n q = W @ x\n"
     " h = tanh(q + U @ previous.h)\n c = q + U @ previous.c + h\noutput y = c at every node\n",
     "D=10 E=16", 1, 0},
    {"for leaves, and others for inner nodes",
     "model m\n" TREE "param W[D, E], V[D, E], U[D, D], b[D]\nstate h[D]\nleaf:\n h = V @ x + b\ninner:\n"
     " h = tanh(W @ x + U @ left.h) + sigmoid(V @ x + b + U @ right.h)\noutput y = h at every node\n",
     "D=14 E=16", 1, 1},
    {"beside sums over children",
     "model m\nstructure tree(*)\ninput x[E]\nparam W_{f, i}[D, E], U_{f, i}[D, D], b[D]\nstate h[D]\nnode:\n"
     " s = sum(k.h for k in children)\n f = W_f @ x + b\n"
     " h = tanh(W_i @ x + U_i @ s) + sum(sigmoid(f + U_f @ k.h) * k.h for k in children)\n"
     "output y = h at every node\n",
     "D=10 E=16", 1, 1},
    {"of matrices, which a word stands for",
     "model m\nstructure sequence\ninput w : token\nparam M[50, E, 2], W[D, E], U[D, D], b[D, 2]\n"
     "state h[D, 2]\nnode:\n h = tanh(U @ previous.h + W @ M[w] + b)\noutput y = h at every node\n",
     "D=5 E=16", 1, 0},
    {"what nodes of all cases want, once",
     "model m\n" CASES "leaf:\n h = W @ x + b\nz:\n h = tanh(W @ x + b)\ninner:\n"
     " h = tanh(W @ x + U @ sum(k.h for k in children) + b)\na:\n"
     " h = tanh(b + V @ sum(k.h for k in children) + W @ x)\noutput y = h at every node\n",
     "D=12 E=16", 1, 0},
    {"for inner nodes, where leaves of one case want nothing of it",
     "model m\n" CASES "leaf:\n h = W @ x + b\nz:\n h = b\ninner:\n"
     " h = tanh(W @ x + U @ sum(k.h for k in children) + b)\na:\n"
     " h = tanh(b + V @ sum(k.h for k in children) + W @ x)\noutput y = h at every node\n",
     "D=12 E=16", 0, 1},
    {"nothing that inner nodes of one case alone want",
     "model m\n" CASES "leaf:\n h = W @ x + b\nz:\n h = b\ninner:\n"
     " h = tanh(W @ x + U @ sum(k.h for k in children) + b)\na:\n"
     " h = tanh(b + V @ sum(k.h for k in children))\noutput y = h at every node\n",
     "D=12 E=16", 0, 0},
    {"the value of one case that is part of another one's sum stays in both",
     "model m\n" CASES "leaf:\n h = W @ x + b\nz:\n h = b\ninner:\n"
     " h = tanh(W @ x + U @ sum(k.h for k in children))\na:\n"
     " h = tanh(W @ x) * sum(k.h for k in children) + V @ sum(k.h for k in children)\noutput y = h at every "
     "node\n",
     "D=12 E=16", 0, 0},
    {"a product of integers",
     "model m\nstructure sequence\ninput x[E] : i32\nparam W[D, E] : i32, U[D, D] : i32\nstate h[D] : "
     "i32\nnode:\n"
     " h = W @ x + U @ previous.h\noutput y = h at every node\n",
     "D=11 E=32", 1, 0},
    /* Leaves multiply it by the sum over no children, which is 0. */
    {"a product of narrow integers, as long ones",
     "model m\nstructure tree(*)\ninput x[E] : i64\nparam W[D, E] : i8, U[D, D] : i64\nstate h[D] : "
     "i64\nnode:\n"
     " h = cast(W, i64) @ x * sum(k.h for k in children) + U @ sum(k.h for k in children)\noutput y = h at "
     "every node\n",
     "D=9 E=20", 0, 1},
    {"the largest sum of pairs",
     "model m\n" SEQUENCE "param W[D, E], U[D, D]\nstate h[D]\nnode:\n"
     " m[i] = max(W[i, j] + x[j] for j)\n h = tanh(m + U @ previous.h)\noutput y = h at every node\n",
     "D=12 E=17", 1, 0},
    {"what an input needs of each node, which an output has as well",
     "model m\n" SEQUENCE
     "param W[D, E], U[D, D], v[D]\nstate h[D]\nnode:\n h = tanh(U @ previous.h + W[:, 0:1] @ x[0:1])\n"
     "output s = v @ tanh(U @ h) at every node\noutput y = sum(exp(n.s) * n.h for n in nodes) at root\n",
     "D=18 E=17", 2, 0},
    {"parts of it, and in another order, for nodes without an output",
     "model m\nstructure tree(left, right)\ninput x[D, D]\nparam U[D, D], V[D, D]\nstate h[D, D]\nleaf:\n h "
     "= x\ninner:\n"
     " h = left.h * right.h\n"
     "output y = max(concat(transpose(n.h) @ V, n.h @ U) for n in nodes) at root\n",
     "D=6", 1, 0},
};

/* --- what leaves --- */

static void test_leavers(struct test_model *t, size_t i)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = "-tables", .schedule = "hoist all\n"};
	struct str s = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "hoist", &s);
	const char *inner = ok ? strstr(str_text(&s), "\nhoist.inner [n with children] ahead\n") : NULL;
	int stores = ok ? count(str_text(&s), "  store hoist") : -1;
	int of_inner = 0;
	for (const char *line = inner; line && strncmp(line, "\n\n", 2) != 0; line = strchr(line + 1, '\n'))
		of_inner += strncmp(line, "\n  store hoist", 14) == 0;
	print_diags(&t->diags);
	if (!tap_ok(ok && stores - of_inner == models[i].all && of_inner == models[i].inner, "leaves: %s",
		    models[i].what))
		printf("# %d for all, %d for inner nodes\n", stores - of_inner, of_inner);
}

/* --- bits --- */

static void test_bits(struct test_model *t, size_t i)
{
	static const char *const maths[] = {"exact", "reassociate"};
	for (int m = 0; m < 2; m++) {
		if (!in_sample(m + i))
			continue;
		struct option_texts o = {.target = "avx2", .math = maths[m], .rules = "-tables"};
		tap_ok(moves_no_bit(t, o, "hoist", models[i].all + models[i].inner > 0), "same bits, %s: %s",
		       maths[m], models[i].what);
	}
}

/* --- notes --- */

static void test_bytes(void)
{
	static const char text[] =
	    "model m\n" SEQUENCE
	    "param W[D, E], U[D, D]\nstate h[D] : i64\nnode:\n"
	    " h = cast(W @ x, i64) + cast(U @ cast(previous.h, f32), i64)\noutput y = h at every node\n";
	struct test_model t = {0};
	tap_ok(
	    load_text(&t, "m", text, strlen(text), "D=24 E=32") &&
		explains(&t, "\nhoist0 is computed ahead of the recursion, for all nodes: 192 bytes each\n"),
	    "the bytes of a hoisted value are those of its type");
	free_model(&t);
}

/* --- what is refused --- */

static void test_refusals(void)
{
	struct test_model t = {0}, none = {0}, small = {0};
	static const char text[] =
	    "model m\n" SEQUENCE
	    "param W[D, E], U[D, D]\nstate h[D]\nnode:\n h = tanh(W @ x + U @ previous.h)\n"
	    "output y = h at every node\n";
	if (!tap_ok(load_text(&t, "m", text, strlen(text), "D=4 E=16") &&
			load_text(&small, "m", text, strlen(text), "D=4 E=3") &&
			load_text(&none, "m", models[0].text, strlen(models[0].text), models[0].sizes),
		    "parsed"))
		return;
	tap_ok(refuses(&t, "hoist\n", "wrong argument") && refuses(&t, "hoist often\n", "wrong argument") &&
		   refuses(&t, "hoist on on\n", "wrong argument"),
	       "what is no way of hoisting is refused");
	tap_ok(refuses(&t, "hoist on\nhoist off\n", "another line") &&
		   refuses(&t, "hoist on\nhoist all\n", "another line"),
	       "two lines that contradict each other are refused");
	tap_ok(refuses(&none, "hoist all\n", "needs a state, or continues a sum") &&
		   refuses(&none, "hoist on\n", "saves more than storing it costs"),
	       "hoisting is refused where nothing can be hoisted");
	tap_ok(refuses(&small, "hoist on\n", "saves more than storing it costs") &&
		   !refuses(&small, "hoist all\n", ""),
	       "a product of three is not profitable, but can be hoisted");
	free_model(&t);
	free_model(&none);
	free_model(&small);
}

/* --- what the verifier finds --- */

static void test_faults(void)
{
	struct test_model t = {0};
	struct sub_program p;
	struct sched_plan plan;
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	const char *text = models[1].text;
	if (!tap_ok(load_text(&t, "m", text, strlen(text), models[1].sizes) &&
			compile_plan_as(&t.arena, &t.diags, t.model, t.sizes, &o, &p, &plan),
		    "planned"))
		return;
	struct sub_body *ahead = body_of(&p, SUB_AHEAD), *inner = body_of(&p, SUB_INNER);
	ahead->domain = SUB_AHEAD_INNER;
	tap_ok(is_faulty(&plan, "for all nodes that read it"),
	       "leaves read what is computed for others alone");
	ahead->domain = SUB_AHEAD;
	tap_ok(sched_verify(&plan, &t.diags), "the plan is right as it was");
	inner->domain = SUB_AHEAD;
	tap_ok(is_faulty(&plan, "needs a state"), "what needs a state cannot be ahead");
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct test_model t = {0};
		if (tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), models[i].sizes),
			   "parsed")) {
			test_leavers(&t, i);
			test_bits(&t, i);
		}
		free_model(&t);
	}
	test_bytes();
	test_refusals();
	test_faults();
	return tap_done();
}
