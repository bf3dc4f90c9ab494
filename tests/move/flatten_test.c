/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which traversals are no recursion and run for all nodes at once, and that no bit of a result depends on it. */
#include "ilir/passes.h"
#include "tests/move/moving.h"

#define BEGIN "model m\nstructure tree(left, right)\ninput x[E]\nparam W[D, E], U[D, D], b[D]\nstate h[D]\n"
#define REST "output rest = h + U @ b + W[:, 0:1] @ b[0:1] at every node\n" /* no parameter may be unused */
#define END "output y = h at every node\n"
#define SECOND "traversal up\nstate g[D]\n"
#define SECOND_END REST "output y = g at every node\n"
#define RECURSION "leaf:\n h = tanh(W @ x)\ninner:\n h = tanh(W @ x + U @ left.h)\n"

/* `flat` traversals become bodies ahead. */
static const struct {
	const char *what, *text;
	int flat;
} models[] = {
    {"what a node carries, and weights", BEGIN "node:\n h = tanh(W @ x + b)\n" REST END, 1},
    {"a row of a table", "model m\nstructure tree(*)\ninput word : token\nparam T[20, D]\nstate h[D]\nnode:\n h = T[word]\n" END, 1},
    {"a body for leaves and one for others that are the same", BEGIN "leaf:\n h = tanh(W @ x)\ninner:\n h = tanh(W @ x)\n" REST END, 1},
    {"a state of another traversal, which is a recursion", BEGIN RECURSION SECOND "node:\n g = tanh(U @ h + b)\n" SECOND_END, 1},
    {"two traversals", BEGIN "node:\n h = tanh(W @ x + b)\n" SECOND "node:\n g = tanh(U @ h + b)\n" SECOND_END, 2},
    {"all nodes of the input", BEGIN RECURSION SECOND "node:\n g = max(n.h * h for n in nodes)\n" SECOND_END, 1},
    {"all nodes of the input, twice",
     BEGIN "node:\n h = W @ max(n.x for n in nodes)\n" SECOND "node:\n m = max(dot(h, n.h) for n in nodes)\n"
	   " g = sum(exp(dot(h, n.h) - m) * n.h for n in nodes) / sum(exp(dot(h, n.h) - m) for n in nodes)\n" SECOND_END,
     2},
    {"downwards", BEGIN RECURSION "traversal down\nstate g[D]\nnode:\n g = tanh(U @ h + b)\n" SECOND_END, 1},
    {"before a traversal that reads it of children",
     BEGIN "node:\n h = tanh(W @ x + b)\n" SECOND "leaf:\n g = h\ninner:\n g = tanh(U @ left.h + right.g)\n" SECOND_END, 1},
    {"before a traversal that reads it of parents",
     BEGIN "node:\n h = tanh(W @ x + b)\ntraversal down\nstate g[D]\nroot:\n g = h\nbelow:\n g = tanh(U @ parent.h + parent.g)\n" SECOND_END,
     1},
    {"not what reads a child", BEGIN RECURSION REST END, 0},
    {"not where leaves compute something else", BEGIN "leaf:\n h = tanh(W @ x)\ninner:\n h = tanh(W @ x + b)\n" REST END, 0},
    {"not what reads a state that children have of an earlier traversal",
     BEGIN RECURSION SECOND "node:\n g = tanh(U @ left.h + b)\n" SECOND_END, 0},
    {"not what reads a state that the parent has of an earlier traversal",
     BEGIN RECURSION "traversal down\nstate g[D]\nroot:\n g = h\nbelow:\n g = tanh(parent.h + b)\n" SECOND_END, 0},
    {"not what reads edges",
     "model m\nstructure tree(*)\ninput x[E]\nedge a[D]\nparam W[D, E]\nstate h[D]\nnode:\n"
     " h = tanh(W @ x + sum(k.a for k in children))\n" END,
     0},
    {"not where nodes are of cases that differ",
     "model m\nstructure tree(*)\ninput x[E], tag : token\ncase a = inner when tag == 1\nparam W[D, E], b[D]\nstate h[D]\n"
     "leaf:\n h = tanh(W @ x)\ninner:\n h = tanh(W @ x)\na:\n h = tanh(W @ x + b)\n" END,
     0},
    {"a traversal that does not distinguish the cases of another",
     "model m\nstructure tree(*)\ninput x[E], tag : token\ncase a = inner when tag == 1\nparam W[D, E], b[D], U[D, D]\nstate h[D]\n"
     "leaf:\n h = tanh(W @ x)\ninner:\n h = tanh(W @ x)\na:\n h = tanh(W @ x + b)\n" SECOND
     "node:\n g = tanh(U @ h + b)\n" SECOND_END,
     1},
};

static void test_flat(struct test_model *t, size_t i, const char *schedule, int flat)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .rules = "-tables", .schedule = schedule};
	struct str s = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "flatten", &s);
	int found = ok ? count(str_text(&s), " [n] ahead\n") : -1;
	print_diags(&t->diags);
	if (!tap_ok(found == flat, "flat, %s: %s", *schedule ? "hoist off" : "as it is", models[i].what))
		printf("# %d traversals\n", found);
}

static void test_note(void)
{
	struct test_model t = {0};
	tap_ok(load_text(&t, "m", models[4].text, strlen(models[4].text), "D=9 E=17") &&
		   explains(&t, "\nnode2 is no recursion, and is computed for all nodes at once\n"),
	       "the explanation says so");
	free_model(&t);
}

/* A model without a structure that scans has states of whole rows, which its text writes ahead: nothing was flattened. */
static void test_rows(void)
{
	static const char text[] = "model m\nstructure none\ninput x[E, D]\nparam W[D, D]\nstate p[E, D]\nnode:\n p = x @ W\n"
				   "traversal up over E\nstate h[D]\nnode:\n h = tanh(at_step(p) + W @ previous.h)\noutput y = h\n";
	struct test_model t = {0};
	struct option_texts o = {.target = "avx2", .rules = "-tables"};
	tap_ok(load_text(&t, "m", text, strlen(text), "D=9 E=17") && moves_no_bit(&t, o, "hoist", false) &&
		   refuses(&t, "hoist all\n", "each product with weights"),
	       "of rows without a structure nothing moves, and 'hoist off' is taken");
	print_diags(&t.diags);
	free_model(&t);
}

/* A body ahead that needs what the recursion has yet to compute is a fault. */
static void test_fault(void)
{
	struct test_model t = {0};
	struct sub_program p;
	struct sched_plan plan;
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	const char *text = models[10].text;
	if (!tap_ok(load_text(&t, "m", text, strlen(text), "D=9 E=17") &&
			compile_plan_as(&t.arena, &t.diags, t.model, t.sizes, &o, &p, &plan),
		    "planned"))
		return;
	body_of(&p, SUB_INNER)->domain = SUB_AHEAD;
	tap_ok(is_faulty(&plan, "needs a state"), "the verifier finds a body ahead that reads a child");
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct test_model t = {0};
		struct option_texts o = {.target = "avx2", .rules = "-tables"};
		if (tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), "D=9 E=17"), "parsed")) {
			test_flat(&t, i, "", models[i].flat);
			test_flat(&t, i, "hoist off\n", 0);
			tap_ok(moves_no_bit(&t, o, "hoist", models[i].flat), "same bits: %s", models[i].what);
		} else {
			print_diags(&t.diags);
		}
		free_model(&t);
	}
	test_note();
	test_rows();
	test_fault();
	return tap_done();
}
