/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Parents apply the last operator of a child's state where `refactor all` asks for it, and no bit of a result
 * depends on it. */
#include "tests/move/moving.h"

#define TREE "structure tree(left, right)\ninput x[E]\n"
#define CHILDREN "structure tree(*)\ninput x[E]\n"
#define GATES "param U_{r, z, n}[D, D], b_{r, z, n}[D], W[D, E]\n"
#define UNIT                                                                                                 \
	" s = sum(k.h for k in children)\n r = sigmoid(U_r @ s + b_r)\n z = sigmoid(U_z @ s + b_z)\n"        \
	" n = tanh(U_n @ (r * s) + b_n)\n"

/* `operands` that nodes keep for their parents, and the operator that these apply. */
static const struct {
	const char *what, *text, *sizes;
	int operands;
	const char *operator;
} models[] = {
    {"a product of gates, with which leaves end, too",
     "model m\n" CHILDREN GATES
     "state h[D]\nleaf:\n h = (1 - sigmoid(W @ x)) * tanh(W @ x + b_n)\ninner:\n" UNIT
     " h = (1 - z) * n\noutput y = h at every node\n",
     "D=19 E=5", 2, "multiply"},
    {"a sum of products, through which leaves pass their value",
     "model m\n" CHILDREN GATES "state h[D]\nleaf:\n h = tanh(W @ x)\ninner:\n" UNIT
     " h = z * s + (1 - z) * n\noutput y = h at root\n",
     "D=18 E=5", 3, "fma"},
    {"and those of leaves that look it up",
     "model m\nstructure tree(*)\ninput w : token\nparam M[30, E]\n" GATES
     "state h[D]\nleaf:\n h = tanh(W @ M[w])\ninner:\n" UNIT
     " h = z * s + (1 - z) * n\noutput y = h at every node\n",
     "D=32 E=5", 3, "fma"},
    {"of nodes with several parents",
     "model m\nstructure dag(*)\ninput x[E]\n" GATES "state h[D]\nleaf:\n h = tanh(W @ x)\ninner:\n" UNIT
     " h = (1 - z) * n\noutput y = h at every node\n",
     "D=16 E=5", 2, "multiply"},
    {"of the node before",
     "model m\nstructure sequence\ninput x[E]\nparam U[D, D], W[D, E]\nstate h[D]\nnode:\n"
     " h = sigmoid(W @ x) * tanh(U @ (previous.h * (W @ x)) + W @ x)\noutput y = h at every node\n",
     "D=24 E=5", 2, "multiply"},
    {"of the children in slots",
     "model m\n" TREE "param U[D, D], V[D, D], W[D, E]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n"
     " h = x[0] + tanh(U @ (left.h + V @ (left.h * right.h)))\noutput y = h at every node\n",
     "D=20 E=5", 2, "add"},
    {"with an operand that has no columns",
     "model m\n" CHILDREN "param U[D, D], u[D], W[D, E]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n"
     " s = sum(k.h for k in children)\n h = sigmoid(sum(u * s)) * tanh(U @ s)\noutput y = h at every node\n",
     "D=17 E=5", 2, "multiply"},
    {"with a weight, which parents read",
     "model m\n" CHILDREN "param U[D, D], b[D], W[D, E]\nstate h[D]\nnode:\n"
     " h = b * tanh(U @ sum(k.h for k in children) + W @ x)\noutput y = h at every node\n",
     "D=33 E=5", 1, "multiply"},
    {"of a matrix",
     "model m\nstructure tree(*)\ninput w : token\nparam M[30, D, 2], U[D, D]\nstate h[D, 2]\nleaf:\n h = "
     "M[w]\n"
     "inner:\n s = sum(k.h for k in children)\n h = tanh(U @ s) * sigmoid(s)\noutput y = h at every node\n",
     "D=16", 2, "multiply"},
    {"of states that one node has",
     "model m\n" CHILDREN "param U[D, D], V[D, D], W[D, E]\nstate h[D], c[D]\nnode:\n"
     " s = sum(k.h for k in children) + W @ x\n t = sum(k.c for k in children)\n"
     " c = sigmoid(U @ s) * t + tanh(V @ s)\n h = sigmoid(V @ s) * tanh(U @ t)\noutput y = h at every node\n"
     "output d = c at every node\n",
     "D=16 E=5", 5, "fma"},
    {"for parents that read a part of it, too",
     "model m\n" CHILDREN "param U[D, D], V[D, E], W[D, E]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n"
     " s = sum(k.h for k in children)\n"
     " h = tanh(U @ s) * sigmoid(V @ sum(k.h[:E] for k in children))\noutput y = h at every node\n",
     "D=20 E=16", 2, "multiply"},
    {"and cases that end otherwise pass their value through",
     "model m\n" CHILDREN "input tag : token\ncase a = inner when tag == 1\nparam U[D, D], V[D, D], W[D, E]\n"
     "state h[D]\nleaf:\n h = W @ x\ninner:\n s = sum(k.h for k in children)\n h = sigmoid(V @ s) * tanh(U @ "
     "s)\n"
     "a:\n h = tanh(V @ sum(k.h for k in children))\noutput y = h at every node\n",
     "D=16 E=5", 2, "multiply"},
};
enum { MODELS = sizeof models / sizeof *models };

/* Reasons for which nothing is moved. */
static const struct {
	const char *what, *text, *sizes, *why;
} refused[] = {
    {"an expensive operator would be computed for each edge",
     "model m\n" CHILDREN "param U[D, D], W[D, E]\nstate h[D]\nnode:\n"
     " h = tanh(U @ sum(k.h for k in children) + W @ x)\noutput y = h at every node\n",
     "D=18 E=5", "; h: its last operator is not a cheap one on the elements of f32 rows"},
    {"integers are not moved",
     "model m\nstructure tree(*)\ninput x[D] : i32\nparam U[D, D] : i32\nstate h[D] : i32\nnode:\n"
     " h = x * (U @ sum(k.h for k in children))\noutput y = h at every node\n",
     "D=24", "; h: no parent reads all of it as f32"},
    {"a state of which parents read a part",
     "model m\n" CHILDREN
     "param U[D, E], W[D, E]\nstate h[D]\nnode:\n t = U @ sum(k.h[:E] for k in children)\n"
     " h = tanh(W @ x) * tanh(t)\noutput y = h at every node\n",
     "D=20 E=16", "; h: no parent reads all of it as f32"},
    {"a state that its own node computes with",
     "model m\n" CHILDREN "param U[D, D], W[D, E]\nstate h[D], c[D]\nnode:\n"
     " c = tanh(U @ sum(k.c for k in children)) * tanh(W @ x)\n h = tanh(c)\noutput y = h at every node\n",
     "D=16 E=5", "; h: no parent reads all of it as f32; c: its node computes with it, too"},
    {"leaves whose value no numbers pass through",
     "model m\n" CHILDREN "param U[D, D], W[D, E]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n"
     " h = relu(U @ sum(k.h for k in children))\noutput y = h at every node\n",
     "D=16 E=5", "; h: not all nodes end with its last operator, which is the identity with no numbers"},
};
enum { REFUSED = sizeof refused / sizeof *refused };

static bool keeps(struct test_model *t, const char *schedule, int operands, const char *operator)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct str s = str_in(&t->arena);
	char of_child[40];
	snprintf(of_child, sizeof of_child, "] = %s ", operator);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "refactor", &s);
	print_diags(&t->diags);
	int states = count(str_text(&s), "\nderived "), stores = count(str_text(&s), "  store refactor");
	int bodies = count(str_text(&s), " with children]") + count(str_text(&s), " without children]");
	if (ok && states == operands && stores == bodies * operands && strstr(str_text(&s), of_child))
		return true;
	printf("# %s%d states, %d stores\n%s", schedule, states, stores, str_text(&s));
	return false;
}

static void test_tail(size_t i)
{
	struct test_model t = {0};
	struct option_texts o = {.target = "avx2", .rules = "all"};
	if (tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), models[i].sizes), "parsed")) {
		tap_ok(keeps(&t, "refactor all\n", models[i].operands, models[i].operator) &&
			   keeps(&t, "", 0, models[i].operator),
		       "parents apply, if they are to: %s", models[i].what);
		tap_ok(moves_no_bit(&t, o, "refactor", true), "same bits: %s", models[i].what);
	}
	free_model(&t);
}

/* Loops whose blocks threads divide. */
static int count_swept(struct test_model *t, const char *schedule)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct str s = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "sweep", &s);
	print_diags(&t->diags);
	return ok ? count(str_text(&s), " swept {") : -1;
}

/* A kernel reads rows of children, all columns, and stores rows of its nodes in the same buffer. */
static void test_blocks(void)
{
	struct test_model t = {0};
	if (tap_ok(load_text(&t, "m", models[1].text, strlen(models[1].text), "D=128 E=5"), "parsed")) {
		int off = count_swept(&t, "refactor off\n");
		tap_ok(off > 0 && count_swept(&t, "refactor all\n") == off,
		       "kernels keep their blocks of columns");
	}
	free_model(&t);
}

/* By each back end. */
static void test_backends(void)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = "refactor off\n"};
	struct test_run r;
	const char *const text = models[1].text;
	bool ok = load_text(&t, "m", text, strlen(text), "D=18 E=5") && start_run(&r, &t, &o);
	if (tap_ok(ok, "runs")) {
		make_forest(&s.forest, &r.image, 5, 30);
		bool begun = begin_setting(&s, &r);
		o.schedule = "refactor all\n";
		const char *name;
		for (int i = 0; begun && (name = backend_at(i)); i++) {
			o.backend = name;
			tap_ok(agrees(&s, &o), "same bits by %s", name);
		}
		end_setting(&s);
		end_run(&r);
	}
	skip_backends();
	free_model(&t);
}

static void test_refused(size_t i)
{
	struct test_model t = {0};
	tap_ok(load_text(&t, "m", refused[i].text, strlen(refused[i].text), refused[i].sizes) &&
		   refuses(&t, "refactor all\n", refused[i].why),
	       "refused: %s", refused[i].what);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < MODELS; i++)
		test_tail(i);
	for (size_t i = 0; i < REFUSED; i++)
		test_refused(i);
	test_blocks();
	test_backends();
	return tap_done();
}
