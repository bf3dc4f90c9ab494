/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ranges of states that follow by induction: which states have one, and that what is computed keeps to it. */
#include "rewrite/rule_engine.h"
#include "tests/models/helper.h"

#include <math.h>

#define SEQUENCE "model test\nstructure sequence\ninput x[D]\nstate h[D]\nnode:\n"
#define SUMS "model test\nstructure tree(*)\ninput x[D]\nstate h[D]\nleaf:\n    h = tanh(x)\ninner:\n"
#define PAIRS "model test\nstructure tree(left, right)\ninput x[D]\nstate h[D]\nleaf:\n    h = tanh(x)\ninner:\n"

static const struct {
	const char *what, *text;
	double low, high; /* of h */
} models[] = {
    {"what a tanh gives", SEQUENCE "    h = tanh(x + previous.h)\n", -1, 1},
    {"a mean of itself and of a tanh",
     SEQUENCE "    z = sigmoid(x)\n    h = (1 - z) * tanh(x) + z * previous.h\n", -1, 1},
    {"the same with its terms in another order",
     SEQUENCE "    z = sigmoid(x)\n    h = previous.h * z + tanh(x) * (1 - z)\n", -1, 1},
    {"the same with the complement named",
     SEQUENCE "    z = 1 - sigmoid(x)\n    h = (1 - z) * tanh(x) + z * previous.h\n", -1, 1},
    {"a mean of a state and of what is not negative",
     PAIRS "    z = sigmoid(right.h)\n    h = z * left.h + (1 - z) * maximum(tanh(x), 0)\n", -1, 1},
    {"a mean of two states, which may grow by rounding",
     PAIRS "    z = sigmoid(x)\n    h = z * left.h + (1 - z) * right.h\n", -INFINITY, INFINITY},
    {"a mean with weights that are not each other's complements",
     SEQUENCE "    h = (1 - sigmoid(x)) * tanh(x) + sigmoid(x + previous.h) * previous.h\n", -INFINITY, INFINITY},
    {"a mean with a weight that may be negative",
     SEQUENCE "    z = tanh(x)\n    h = (1 - z) * tanh(x) + z * previous.h\n", -INFINITY, INFINITY},
    {"a state times a weight that was rounded",
     SEQUENCE "    z = sigmoid(x)\n    h = z * tanh(x) + (1 - z) * previous.h\n", -INFINITY, INFINITY},
    {"a state that is halved before something is added", SEQUENCE "    h = 0.5 * previous.h + 0.5 * tanh(x)\n", -1, 1},
    {"a sum that grows in each step", SEQUENCE "    h = previous.h + sigmoid(x)\n", 0, INFINITY},
    {"a sum over children", SUMS "    h = sum(k.h for k in children)\n", -INFINITY, INFINITY},
    {"a mean of a tanh and of a sum over children",
     SUMS "    z = sigmoid(x)\n    h = z * sum(k.h for k in children) + (1 - z) * tanh(x)\n", -INFINITY, INFINITY},
    {"an input that is declared within a bound",
     "model test\nstructure sequence\ninput x[D] within 1.5\nstate h[D]\nnode:\n    h = x\n", -1.5, 1.5},
    {"a state that is halved before such an input is added",
     "model test\nstructure sequence\ninput x[D] : f16 within 2\nstate h[D]\nnode:\n    h = 0.5 * previous.h + x\n", -4, 4},
    {"what edges carry within a bound",
     "model test\nstructure tree(2)\nedge w[D] within 3\nstate h[D]\nleaf:\n    h = zeros(D)\ninner:\n    h = "
     "maximum(children[0].w, children[1].w)\n",
     -3, 3},
    {"the bounds of `clamp`", SUMS "    h = minimum(maximum(sum(k.h for k in children), -3), 2)\n", -3, 2},
};

/* The range of the first state in a contracted program. */
static bool find_range(struct test_model *m, struct rewrite_range *range)
{
	struct sub_program written, p;
	struct rewrite_options options = {.math = REWRITE_REASSOCIATE};
	struct arena *a = &m->arena;
	sub_init(&written, a, "test");
	sub_init(&p, a, "test");
	bool ok = sub_lower_model(&written, m->model, m->sizes, SUB_AT_MODEL, &m->diags);
	print_diags(&m->diags);
	if (!ok)
		return false;
	rewrite_contract(&p, &written, NULL, NULL);
	const struct rewrite_range *ranges = rewrite_find_ranges(&p, &options, a);
	for (uint32_t i = 1; i < p.values.n; i++)
		if (p.values.at[i].op == SUB_STATE)
			*range = ranges[i];
	return true;
}

/* A bound that was found may be a little further away than it must be. */
static bool is_near(double bound, double exact)
{
	return bound == exact || (fabs(bound) >= fabs(exact) && fabs(bound - exact) < 0x1p-10);
}

static void test_range(size_t i)
{
	struct test_model m;
	struct rewrite_range r = {NAN, NAN, true};
	char text[1000];
	int n = snprintf(text, sizeof text, "%soutput y = h at every node\n", models[i].text);
	bool ok = load_text(&m, "test", text, n, "D=4") && find_range(&m, &r);
	tap_ok(ok && is_near(r.low, models[i].low) && is_near(r.high, models[i].high), "%s: %g .. %g", models[i].what,
	       r.low, r.high);
	free_model(&m);
}

/* The largest number that a mean of itself and of 1 becomes, in each way to compute it; t is near to 0 or 1,
 * where roundings count most. */
static float find_largest(int way, float start)
{
	uint32_t random = 1;
	float h = start, largest = start;
	for (int i = 0; i < 1000000; i++) {
		random = random * 1664525 + 1013904223;
		float t = ldexpf((float)(random >> 8 & 0xff), -8 - (int)(random >> 16) % 24);
		t = random >> 31 ? 1 - t : t;
		volatile float rest = 1 - t, kept = t * h, other = rest * 1, sum = kept + other;
		h = way == 0 ? fmaf(t, h, other) : way == 1 ? fmaf(rest, 1, kept) : sum;
		largest = fmaxf(largest, h);
	}
	return largest;
}

static void test_rounding(void)
{
	static const char *const ways[] = {"t * a added last", "(1 - t) * b added last", "both products rounded"};
	for (int way = 0; way < 3; way++) {
		float bound = 1 + 0x1p-21f;
		tap_ok(find_largest(way, 1) <= bound && find_largest(way, bound) <= bound,
		       "a mean, %s, stays in its range", ways[way]);
	}
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_range(i);
	test_rounding();
	return tap_done();
}
