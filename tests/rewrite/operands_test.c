/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operands that tell a rule from the text: divisors that are zero, factors whose products overflow or vanish on the way.  By
 * default a result is finite, infinite or a NaN where it is in exact arithmetic, and no further from it than by rounding. */
#include "tests/models/helper.h"

#include <stdlib.h>

enum { N = 4, OPERANDS = 3 };

/* Of inputs x, y and w, in this order: those that the value does not name have no part in it. */
static const struct example {
	const char *what, *value;
	float operand[OPERANDS][N];
} examples[] = {
    {"terms over a root that is zero", "x / sqrt(y) + w / sqrt(y)", {{20, 20, 3, 0}, {0, 4, 0, 0}, {-1, -1, 2, 1}}},
    {"a difference over a root that is zero", "x / sqrt(y) - w / sqrt(y)", {{20, 20, 3, 0}, {0, 4, 0, 0}, {1, 1, -2, 1}}},
    {"a sum over a root that is zero", "sum(x / sqrt(y[0])) + y * w", {{20, -1, 3, 4}, {0, 1, 1, 1}, {1, 1, 1, 1}}},
    {"terms over a root that is not zero", "x / sqrt(1 + y * y) + w / sqrt(1 + y * y)",
     {{20, 20, 3, INFINITY}, {0, INFINITY, NAN, 1}, {-1, -1, 2, -INFINITY}}},
    {"a quotient by a root that is zero, as a product", "x / sqrt(y[0]) + y * w",
     {{20, 0, -1, INFINITY}, {0, 0, 0, 0}, {1, 1, 1, 1}}},
    {"a product of exponentials that vanishes on the way", "prod(exp(60 * tanh(x))) + y * w",
     {{-20, -20, 20, 20}, {1, 1, 1, 1}, {0, 0, 0, 0}}},
    {"a product of exponentials that overflows on the way", "prod(exp(60 * tanh(x))) + y * w",
     {{20, 20, -20, -20}, {1, 1, 1, 1}, {0, 0, 0, 0}}},
    {"a product of exponentials that may do neither", "prod(exp(21 * tanh(x))) + y * w",
     {{20, 20, -20, -20}, {1, 1, 1, 1}, {0, 0, 0, 0}}},
    {"nor along two axes", "prod(prod(exp(10 * tanh(reshape(x, 2, 2))))) + y * w",
     {{20, 20, -20, -20}, {1, 1, 1, 1}, {0, 0, 0, 0}}},
};

static bool set_operands(struct test_forest *f, const struct image *image, const struct example *e)
{
	for (int i = 0; i < image->inputs; i++) {
		int of = image->input[i].name[0] == 'x' ? 0 : image->input[i].name[0] == 'y' ? 1 : 2;
		if (image->input[i].elements != N)
			return false;
		memcpy(f->owned[i], e->operand[of], sizeof e->operand[of]);
	}
	return image->inputs == OPERANDS;
}

/* What the model gives of these operands; the caller frees it.  NULL if it cannot be run. */
static double *run_operands(const struct test_model *t, const struct example *e, const char *math, int64_t *count)
{
	struct option_texts o = {.backend = "interpreter", .target = "generic", .math = math};
	struct test_run r;
	struct test_forest f;
	double *all = NULL;
	if (start_run(&r, t, &o)) {
		make_forest(&f, &r.image, 1, 1);
		if (set_operands(&f, &r.image, e) && run_forest(&r, &f.minibatch))
			all = gather_outputs(&r, f.nodes, f.minibatch.forest.inputs, count);
		free_forest(&f);
	}
	end_run(&r);
	return all;
}

static bool is_rounded(double a, double exact)
{
	if (!isfinite(a) || !isfinite(exact))
		return isnan(a) ? isnan(exact) : a == exact;
	return fabs(a - exact) <= 1e-5 * fabs(exact);
}

static void test_operands(const struct example *e)
{
	char text[300];
	struct test_model t = {0};
	int64_t n = 0, m = 0;
	int length = snprintf(text, sizeof text,
			      "model operands\nstructure none\ninput x[N]\ninput y[N]\ninput w[N]\noutput r = %s\n", e->value);
	if (!tap_ok(load_text(&t, "operands", text, length, "N=4"), "%s", e->value))
		return;
	double *exact = run_operands(&t, e, "exact", &n), *by_default = run_operands(&t, e, NULL, &m);
	bool same = exact && by_default && n == m && n > 0;
	for (int64_t i = 0; same && i < n; i++)
		if (!is_rounded(by_default[i], exact[i])) {
			printf("# element %lld is %.9g, in exact arithmetic %.9g\n", (long long)i, by_default[i], exact[i]);
			same = false;
		}
	tap_ok(same, "%s", e->what);
	free(exact);
	free(by_default);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		test_operands(&examples[i]);
	return tap_done();
}
