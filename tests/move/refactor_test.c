/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What parents compute of one child goes to the child, and no bit of a result depends on it. */
#include "ilir/passes.h"
#include "tests/move/moving.h"
#include "tests/sample.h"

#define TREE "structure tree(left, right)\ninput x[E]\n"
#define CHILDREN "structure tree(*)\ninput x[E]\n"

/* `derived` states under `refactor all`, `worth` of them under `refactor on`; `tables` of them are looked up
 * at leaves. */
static const struct {
	const char *what, *text, *sizes;
	int derived, worth, tables;
} models[] = {
    {"nothing where products need all children",
     "model m\n" CHILDREN "param U[D, D], W[D, E]\nstate h[D]\nnode:\n"
     " h = tanh(U @ sum(k.h for k in children) + W @ x)\noutput y = h at every node\n",
     "D=18 E=5", 0, 0, 0},
    {"a product of each child",
     "model m\n" CHILDREN "param U[D, D], W[D, E]\nstate h[D]\nnode:\n f = W @ x\n"
     " h = tanh(f + sum(sigmoid(f + U @ k.h) * k.h for k in children))\noutput y = h at every node\n",
     "D=19 E=5", 1, 1, 0},
    {"with the parameter that it goes on from, and what follows in the order of the text",
     "model m\n" CHILDREN "param U[D, D], W[D, E], V[D, E], a[D], b[D]\nstate h[D]\nnode:\n f = W @ x\n"
     " g = tanh(V @ x)\n"
     " h = tanh(f + sum(sigmoid(f + g + a + U @ k.h + b) * k.h for k in children))\noutput y = h at every "
     "node\n",
     "D=17 E=5", 1, 1, 0},
    {"as far as it is of one child alone",
     "model m\n" CHILDREN "param U[D, D], W[D, E], b[D]\nstate h[D], c[D]\nnode:\n"
     " c = tanh(W @ x) + sum(sigmoid(U @ k.h + b) * k.c for k in children)\n h = tanh(c)\n"
     "output y = h at every node\n",
     "D=21 E=5", 1, 1, 0},
    {"two chains of one sum",
     "model m\n" CHILDREN "param U[D, D], V[D, D], W[D, E]\nstate h[D], c[D]\nnode:\n f = W @ x\n"
     " c = f + sum(sigmoid(f + U @ k.h + V @ k.c) * k.c for k in children)\n h = tanh(c)\n"
     "output y = h at every node\n",
     "D=16 E=5", 1, 1, 0},
    {"the beginning of a sum whose other chain needs more",
     "model m\n" CHILDREN "param U[D, D], V[D, D], W[D, E]\nstate h[D]\nnode:\n f = tanh(W @ x)\n"
     " h = f + sum(sigmoid(U @ k.h + V @ (k.h * f)) * k.h for k in children) / 8\noutput y = h at every "
     "node\n",
     "D=16 E=5", 1, 1, 0},
    {"several, one of them of a part of the state",
     "model m\n" CHILDREN "param U[D, D], V[D, E], W[D, E]\nstate h[D]\nnode:\n f = W @ x\n"
     " h = tanh(f + sum(sigmoid(f + U @ k.h) * tanh(V @ k.h[:E] - f) for k in children))\n"
     "output y = h at every node\n",
     "D=20 E=16", 2, 2, 0},
    {"one product after the other",
     "model m\n" CHILDREN "param U[D, D], V[D, D], W[D, E]\nstate h[D]\nnode:\n f = W @ x\n"
     " h = tanh(f + sum(f * tanh(V @ tanh(U @ k.h)) for k in children))\noutput y = h at every node\n",
     "D=16 E=5", 1, 1, 0},
    {"of nodes with several parents",
     "model m\nstructure dag(*)\ninput x[E]\nparam U[D, D], W[D, E]\nstate h[D]\nnode:\n f = W @ x\n"
     " h = tanh(f + sum(sigmoid(f + U @ k.h) for k in children))\noutput y = h at every node\n",
     "D=16 E=5", 1, 1, 0},
    {"of matrices",
     "model m\nstructure tree(*)\ninput w : token\nparam M[30, D, 2], U[D, D], b[D, 2]\nstate h[D, "
     "2]\nnode:\n"
     " h = tanh(b + sum(sigmoid(U @ k.h + M[w]) for k in children))\noutput y = h at every node\n",
     "D=16", 1, 1, 0},
    {"what each slot has alike, once",
     "model m\n" TREE "param U[D, D], W[D, E]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n"
     " h = sigmoid(U @ left.h) * right.h + sigmoid(U @ right.h) * left.h\noutput y = h at every node\n",
     "D=23 E=5", 1, 1, 0},
    {"what slots have each, which does not pay",
     "model m\n" TREE "param U[D, D], V[D, D], W[D, E]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n"
     " h = sigmoid(U @ left.h) * right.h + sigmoid(V @ right.h) * left.h\noutput y = h at every node\n",
     "D=16 E=5", 2, 0, 0},
    {"of the node before, which does not pay",
     "model m\nstructure sequence\ninput x[E]\nparam U[D, D], W[D, E], b[D]\nstate h[D]\nnode:\n"
     " z = sigmoid(U @ previous.h + b)\n h = z * tanh(W @ x) + previous.h\noutput y = h at every "
     "node\n",
     "D=16 E=5", 1, 0, 0},
    {"all of a state",
     "model m\n" TREE
     "param U[D, D], W[D, E]\nstate h[D]\nleaf:\n h = W @ x\ninner:\n h = tanh(U @ right.h)\n"
     "output y = h at every node\n",
     "D=16 E=5", 1, 0, 0},
    {"looked up where the states of leaves are",
     "model m\nstructure tree(*)\ninput w : token\nparam M[50, D], N[50, D], U[D, D], b[D]\n"
     "state h[D], c[D]\nleaf:\n h = M[w]\n c = N[w]\ninner:\n"
     " c = sum(sigmoid(U @ (k.h + k.c) + b) * k.c for k in children)\n h = tanh(c)\noutput y = h at every "
     "node\n",
     "D=22", 1, 1, 1},
    {"looked up by what nodes carry, too",
     "model m\nstructure tree(*)\ninput w : token\nparam M[50, E], W[D, E], V[D, E], U[D, D], b[D]\nstate "
     "h[D]\n"
     "node:\n x = M[w]\n f = W @ x + b\n"
     " h = tanh(V @ x) + sum(sigmoid(f + U @ k.h) * k.h for k in children) / 8\noutput y = h at every node\n",
     "D=16 E=7", 1, 1, 1},
    {"a product that parents of all cases want of each child, which looks it up if it is a leaf of any",
     "model m\nstructure tree(*)\ninput w : token\ninput tag : token\ncase a = inner when tag == 1\n"
     "case z = leaf when tag == 2\nparam E[30, D], U[D, D], b[D]\nstate h[D]\nleaf:\n h = E[w]\nz:\n h = "
     "tanh(E[w])\n"
     "inner:\n h = tanh(b + sum(sigmoid(U @ k.h + b) * k.h for k in children))\n"
     "a:\n h = sum(sigmoid(U @ k.h + b) * tanh(k.h) for k in children)\noutput y = h at every node\n",
     "D=16", 1, 1, 2},
    {"nothing that parents of one case alone want",
     "model m\nstructure tree(*)\ninput x[E]\ninput tag : token\ncase a = inner when tag == 1\n"
     "param W[D, E], U[D, D], V[D, D], b[D]\nstate h[D]\nleaf:\n h = W @ x\n"
     "inner:\n h = tanh(b + sum(sigmoid(U @ k.h + b) * k.h for k in children))\n"
     "a:\n h = tanh(V @ sum(k.h for k in children))\noutput y = h at every node\n",
     "D=16 E=5", 1, 0, 0},
    {"a product of integers",
     "model m\nstructure tree(*)\ninput x[D] : i32\nparam U[D, D] : i32\nstate h[D] : i32\nnode:\n"
     " h = x + sum((U @ k.h) * k.h for k in children)\noutput y = h at every node\n",
     "D=24", 1, 1, 0},
    {"a product of integers, looked up",
     "model m\nstructure dag(*)\ninput w : token\nparam M[40, D] : i64, U[D, D] : i64\nstate h[D] : "
     "i64\nleaf:\n"
     " h = M[w]\ninner:\n h = sum((U @ k.h) * k.h for k in children)\noutput y = h at every node\n",
     "D=17", 1, 1, 1},
    {"the largest sum of pairs",
     "model m\n" CHILDREN "param U[D, D], W[D, E]\nstate h[D]\nnode:\n f = W @ x\n"
     " h = tanh(f + sum(sigmoid(f + max(U + k.h)) for k in children))\noutput y = h at every node\n",
     "D=18 E=5", 1, 1, 0},
};
enum { MODELS = sizeof models / sizeof *models };

/* --- what goes to the children --- */

static bool keeps(struct test_model *t, const char *schedule, const char *rules, int derived, int tables)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .rules = rules, .schedule = schedule};
	struct str all = str_in(&t->arena), none = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "refactor", &all) &&
		  compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "subop", &none);
	print_diags(&t->diags);
	if (!ok)
		return false;
	int states = count(str_text(&all), "\nderived ");
	int stores = count(str_text(&all), "  store refactor");
	int bodies =
	    count(str_text(&all), "[n with children]") + count(str_text(&all), "[n without children]");
	int made = count(str_text(&all), "\nfolded ") - count(str_text(&none), "\nfolded ");
	if (states != derived || stores != bodies * derived || made != tables)
		printf("# %s# rules %s: %d states, %d stores, %d tables\n", schedule, rules, states, stores,
		       made);
	return states == derived && stores == bodies * derived && made == tables;
}

static void test_derived(struct test_model *t, size_t i)
{
	tap_ok(keeps(t, "refactor all\n", "all", models[i].derived, models[i].tables) &&
		   keeps(t, "refactor all\n", "-tables", models[i].derived, 0) &&
		   keeps(t, "", "all", models[i].worth, models[i].tables) &&
		   keeps(t, "refactor off\n", "all", 0, 0),
	       "children keep: %s", models[i].what);
}

/* --- bits --- */

static void test_bits(struct test_model *t, size_t i, const char *rules)
{
	struct option_texts o = {.target = "avx2", .rules = rules};
	tap_ok(moves_no_bit(t, o, "refactor", models[i].derived > 0), "same bits, rules %s: %s", rules,
	       models[i].what);
}

/* --- what others see --- */

static void test_image(struct test_model *t)
{
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .schedule = "layout refactor0 parent\n"};
	struct test_run r;
	bool ok = start_run(&r, t, &o);
	tap_ok(ok && r.image.states == (int)t->model->states.n,
	       "a derived state can be laid out, and is nobody else's");
	end_run(&r);
}

/* --- bytes --- */

/* Tables that are made where they may take so many bytes; -1 after a diagnostic. */
static int count_tables(struct test_model *t, uint64_t table_bytes)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .table_bytes = table_bytes};
	struct str s = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "refactor", &s);
	print_diags(&t->diags);
	return ok ? count(str_text(&s), "\nfolded ") : -1;
}

static void test_bytes(void)
{
	static const char text[] =
	    "model m\nstructure tree(*)\ninput w : token\nparam M[50, D], U[D, D]\nstate h[D]\nleaf:\n h = "
	    "M[w]\n"
	    "inner:\n h = tanh(cast(sum(cast(U @ k.h, i64) for k in children), f32))\noutput y = h at every "
	    "node\n";
	enum { TABLE = 50 * 24 * 8 };
	struct test_model t = {0};
	if (tap_ok(load_text(&t, "m", text, strlen(text), "D=24"), "parsed")) {
		tap_ok(
		    explains(&t,
			     "\nrefactor0 is computed once at each node, for its parents: 192 bytes each\n"),
		    "the bytes of a derived state are those of its type");
		tap_ok(count_tables(&t, TABLE) == 1 && count_tables(&t, TABLE - 1) == 0,
		       "so are those of the table that leaves look it up in");
	}
	free_model(&t);
}

/* --- what is refused --- */

static void test_refusals(struct test_model *none, struct test_model *edges, struct test_model *slots)
{
	tap_ok(refuses(edges, "refactor\n", "wrong argument") &&
		   refuses(edges, "refactor often\n", "wrong argument") &&
		   refuses(edges, "refactor on on\n", "wrong argument"),
	       "what is no way of refactoring is refused");
	tap_ok(refuses(edges, "refactor on\nrefactor off\n", "another line") &&
		   refuses(edges, "refactor on\nrefactor all\n", "another line"),
	       "two lines that contradict each other are refused");
	tap_ok(refuses(none, "refactor all\n", "more than one child's states, or continues a sum") &&
		   refuses(none, "refactor on\n", "saves more than storing it costs"),
	       "refactoring is refused where nothing is of one child");
	tap_ok(refuses(slots, "refactor on\n", "saves more than storing it costs") &&
		   !refuses(slots, "refactor all\n", ""),
	       "a value that not all children have is not profitable, but can be kept");
}

/* --- what the verifier finds --- */

static void test_faults(struct test_model *t)
{
	struct sub_program p;
	struct sched_plan plan;
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	if (!tap_ok(compile_plan_as(&t->arena, &t->diags, t->model, t->sizes, &o, &p, &plan) &&
			sched_verify(&plan, &t->diags),
		    "planned"))
		return;
	struct sub_body *leaf = body_of(&p, SUB_LEAF);
	leaf->stores.n--;
	tap_ok(is_faulty(&plan, "was not kept by all"), "leaves must keep what parents read");
	leaf->stores.n++;
	for (uint32_t i = 1; i < p.values.n; i++) {
		struct sub_value *v = &p.values.at[i];
		if (v->op == SUB_ASSIGN && v->map[0].function == SUB_EDGE_CHILD &&
		    sub_at(&p, v->arg[0].value)->which == (int)p.states.n - 1)
			sub_copy_maps(v, ARENA_ARRAY(&t->arena, struct sub_map, SUB_MAX_VARS))->function =
			    SUB_AFFINE;
	}
	tap_ok(is_faulty(&plan, "is read, but not of a child"),
	       "nodes read what their children keep, not their own");
}

int main(void)
{
	static struct test_model t[MODELS];
	bool ok = true;
	for (size_t i = 0; i < MODELS; i++)
		ok &= load_text(&t[i], "m", models[i].text, strlen(models[i].text), models[i].sizes);
	for (size_t i = 0; tap_ok(ok, "parsed") && i < MODELS; i++) {
		test_derived(&t[i], i);
		if (in_sample(i))
			test_bits(&t[i], i, "all");
		if (in_sample(i + 1))
			test_bits(&t[i], i, "-tables");
	}
	if (ok) {
		test_image(&t[1]);
		test_bytes();
		test_refusals(&t[0], &t[1], &t[11]);
		test_faults(&t[1]);
	}
	for (size_t i = 0; i < MODELS; i++)
		free_model(&t[i]);
	return tap_done();
}
