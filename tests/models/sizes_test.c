/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* No model is known to the compiler: the TreeLSTM of the example with other hidden sizes, and texts made here
 * with other numbers of children and of gates.  Compiled code agrees with the interpreter to the bit, and
 * both with the oracle. */
#include "tests/models/agree.h"

static void compare(struct setting *s, const struct test_run *r, const char *name)
{
	struct option_texts compiled = {.backend = usual_backend(), .target = "native"};
	double worst;
	s->expected = gather_outputs(r, s->forest.nodes, s->forest.minibatch.forest.inputs, &s->count);
	bool near = near_oracle(s, r, 5e-5, &worst);
	tap_ok(near, "%s: as the oracle, to %.1e, %lld values", name, worst, (long long)s->count);
	tap_ok(agrees(s, &compiled), "%s: compiled as interpreted", name);
	free(s->expected);
}

static void test_text(const char *name, const char *text, const char *sizes)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "native"};
	random_state = 11;
	if (!tap_ok(load_text(&t, name, text, strlen(text), sizes) && start_run(&r, &t, &o), "%s: lowered",
		    name))
		return;
	make_forest(&s.forest, &r.image, 3, 9);
	if (tap_ok(run_forest(&r, &s.forest.minibatch), "%s: interpreted", name))
		compare(&s, &r, name);
	end_run(&r);
	free_forest(&s.forest);
	free_model(&t);
}

/* --- the example, in other sizes --- */

static void test_sizes(void)
{
	static const int hidden[] = {150, 64, 1, 17, 256, 300};
	size_t length;
	char *text = read_text(source_path("examples/treelstm/treelstm.ra"), &length);
	if (!tap_ok(text, "the example is there"))
		return;
	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
		char name[64], sizes[64];
		snprintf(name, sizeof name, "hidden size %d", hidden[i]);
		snprintf(sizes, sizeof sizes, "D=%d E=%d V=20", hidden[i], hidden[i] / 2 + 1);
		test_text(name, text, sizes);
	}
	free(text);
}

/* --- other cells --- */

/* b + sum of U @ h over the children: what a gate sees. */
static void put_gate(struct str *t, const char *gate, int children)
{
	str_printf(t, "b_%s", gate);
	for (int k = 0; k < children; k++)
		str_printf(t, " + U_%s_%d @ children[%d].h", gate, k, k);
}

/* Names of the gates: g0, g1 ... for the new content, f0, f1 ... for each child's old. */
static const char *gate_name(char name[16], int gate, int gates)
{
	snprintf(name, 16, "%c%d", gate < gates ? 'g' : 'f', gate < gates ? gate : gate - gates);
	return name;
}

static void put_params(struct str *t, int children, int gates)
{
	char name[16];
	str_puts(t, "param E[V, D], b_u[D]\n");
	for (int k = 0; k < children; k++)
		str_printf(t, "param U_u_%d[D, D]\n", k);
	for (int g = 0; g < gates + children; g++) {
		str_printf(t, "param b_%s[D]\n", gate_name(name, g, gates));
		for (int k = 0; k < children; k++)
			str_printf(t, "param U_%s_%d[D, D]\n", name, k);
	}
}

/* c = tanh(u) * the product of `gates` gates + the sum over the children of c * a gate of the child's own. */
static void put_inner(struct str *t, int children, int gates)
{
	char name[16];
	str_puts(t, "inner:\n    c = tanh(");
	put_gate(t, "u", children);
	str_puts(t, ")");
	for (int g = 0; g < gates + children; g++) {
		str_printf(t, " %s sigmoid(", g < gates ? "*" : "+");
		put_gate(t, gate_name(name, g, gates), children);
		str_puts(t, ")");
		if (g >= gates)
			str_printf(t, " * children[%d].c", g - gates);
	}
	str_puts(t, "\n    h = tanh(c)\n");
}

static void test_cell(struct arena *a, int children, int gates, const char *sizes)
{
	char name[64];
	struct str t = str_in(a);
	snprintf(name, sizeof name, "%d children, %d gates, %s", children, gates + children, sizes);
	str_printf(&t, "model cell\nstructure tree(%d)\ninput word : token\nstate h[D], c[D]\n", children);
	put_params(&t, children, gates);
	str_puts(&t, "leaf:\n    c = E[word]\n    h = tanh(c)\n");
	put_inner(&t, children, gates);
	str_puts(&t, "output hidden = h\noutput total = sum(c) at root\n");
	test_text(name, str_text(&t), sizes);
}

static void test_cells(void)
{
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	if (tap_ok(!arena_guard(&a, &jump), "memory for texts"))
		for (int children = 1; children <= 4; children++)
			for (int gates = 0; gates <= 6; gates += 3)
				test_cell(&a, children, gates,
					  (children + gates / 3) % 2 ? "D=17 V=20" : "D=24 V=20");
	arena_free(&a);
}

int main(void)
{
	test_sizes();
	test_cells();
	return tap_done();
}
