/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Two operators, minimum2 and product, added by one row in each table: the files that have a table of
 * operators are compiled again for this test with those rows, and nothing else is. */
#include "ilir/passes.h"
#include "jit/jit.h"
#include "tests/models/agree.h"

static const char text[] =
    "model extra\nstructure tree(left, right)\ninput x[6]\nstate h[6]\nparam W[6, 6]\n"
    "leaf:\n h = tanh(x)\ninner:\n h = tanh(minimum2(W @ left.h, right.h) + product(left.h * W + 1))\n"
    "output least = minimum2(h, 0.1) at root\noutput all = product(h + 1) at every node\n";

static bool contains(struct test_model *t, const char *stage, const char *words)
{
	struct str s = str_in(&t->arena);
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, &s);
	print_diags(&t->diags);
	return ok && strstr(str_text(&s), words);
}

static void test_texts(struct test_model *t)
{
	tap_ok(contains(t, "ra", "minimum2(") && contains(t, "ra", "product("),
	       "the model is printed with them");
	tap_ok(contains(t, "subop", " = lesser ") && contains(t, "subop", " = product_"),
	       "so are the sub-operators");
	tap_ok(contains(t, "sched", "tile inner.0"), "they are planned");
	tap_ok(contains(t, "lower", "neg(max(neg("), "and lowered as their rows say");
	tap_ok(sub_traits_of(SUB_PRODUCT)->combine == SUB_MULTIPLY &&
		   sub_traits_of(SUB_PRODUCT)->price == SUB_EXPENSIVE &&
		   sub_traits_of(SUB_LESSER)->arity == 2,
	       "what their rows say can be asked for");
}

static void compare(struct test_model *t, const char *backend, const char *last)
{
	struct option_texts o = {.backend = backend, .target = "native", .last_pass = last};
	struct setting s = {.model = t};
	struct test_run r;
	double worst = INFINITY;
	if (start_run(&r, t, &o)) {
		make_forest(&s.forest, &r.image, 3, 9);
		if (run_forest(&r, &s.forest.minibatch)) {
			s.expected =
			    gather_outputs(&r, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
			worst = distance(&s, &r, ask_oracle(&s, &t->arena, &r.session.order));
			free(s.expected);
		}
		free_forest(&s.forest);
	}
	end_run(&r);
	tap_ok(worst < 1e-5, "%s%s%s computes them to %.1e", backend, last ? " after " : "", last ? last : "",
	       worst);
}

/* One node, whose outputs are computed by hand. */
static void test_values(struct test_model *t)
{
	struct sub_program p;
	float x[6] = {0.25f, -1, 3, 0, 0.1f, -0.5f}, W[36] = {0};
	const void *params[] = {W};
	double h[6], least[6], all, *states[] = {h}, *outputs[] = {least, &all}, product = 1;
	const int32_t begin[] = {0, 0}, root[] = {0}, order[] = {0};
	const void *data[] = {x};
	struct sub_forest f = {1, 1, begin, NULL, root, order, data, NULL};
	bool ok = true;
	sub_init(&p, &t->arena, "extra");
	tap_ok(sub_lower_model(&p, t->model, t->sizes, SUB_AT_MODEL, &t->diags) && sub_verify(&p, &t->diags),
	       "verified");
	sub_evaluate(&p, &f, params, states, outputs, &t->arena);
	for (int i = 0; i < 6; i++) {
		double v = tanh(x[i]);
		ok &= least[i] == (v < 0.1 ? v : 0.1);
		product *= v + 1;
	}
	tap_ok(ok, "the oracle takes the smaller");
	tap_ok(fabs(all - product) < 1e-15, "and multiplies");
}

int main(void)
{
	struct test_model t = {0};
	if (!tap_ok(load_text(&t, "extra", text, sizeof text - 1, ""),
		    "a model calls operators that only this test has"))
		return tap_done();
	test_texts(&t);
	test_values(&t);
	compare(&t, "interpreter", "infer_bounds");
	compare(&t, "interpreter", NULL);
	for (int i = 0; backend_at(i); i++)
		compare(&t, backend_at(i), NULL);
	skip_backends();
	free_model(&t);
	return tap_done();
}
