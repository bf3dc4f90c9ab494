/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rules on images: borders that windows read past, and kernels that are merged into one, cost what is written without them does. */
#include "sched/sched.h"
#include "tests/rewrite/derivation.h"

/* --- borders of images --- */

/* Each text means the same as the other, which has one copy of the image at most. */
static const struct {
	const char *what, *value, *same, *rules;
} pads[] = {
    {"a border of a border is one", "pad(pad(x, 1), 2)", "pad(x, 3)", "assign_assign"},
    {"a convolution reads past the border of an image with one", "conv(pad(x, 1), W)", "conv(x, W, pad=1)", "assign_assign"},
    {"a border of nothing is none from the beginning", "pad(x, 0)", "x", ""},
    {"the inner part of an image with a border is the image",
     "(p = pad(x, 1); q[c, i in 4, j in 4] = p[c, i + 1, j + 1]; q)", "x", "assign_assign"},
    {"zeros beside an image are a border", "conv(concat(zeros(2, 1, 4), x, axis=1), W)",
     "(o[k, i in 3, j in 2] = sum(W[k, c, u, v] * x[c, i + u - 1, j + v] for c, u, v); o)", "assign_cond_number_left"},
    {"also those behind it", "conv(concat(x, zeros(2, 1, 4), axis=1), W)",
     "(o[k, i in 3, j in 2] = sum(W[k, c, u, v] * x[c, i + u, j + v] for c, u, v); o)", "assign_cond_number"},
    {"a window may leave an image that is a part of one, but not where it is cut",
     "conv((p[c in 1, i in 4, j in 4] = x[c + 1, i, j]; p), W[:, 0:1, :, :], pad=1)",
     "(o[k, i in 4, j in 4] = sum(W[k, 0, u, v] * x[1, i + u - 1, j + v - 1] for u, v); o)", "assign_assign"},
};

static double cost_of_pads(const char *value, const char **rules, struct derivation *d)
{
	char text[400];
	*d = with(REWRITE_EXACT, 0, 1 << 20);
	snprintf(text, sizeof text,
		 "model m\nstructure none\ninput x[2, 4, 4]\nparam W[3, 2, 3, 3]\noutput y = exp(%s)\n"
		 "output z = sum(W)\n",
		 value);
	derive(d, text, "");
	*rules = rules_of(d, "output");
	return sched_operations(&d->to, &d->to.bodies.at[0]);
}

static void test_pads(void)
{
	for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
		struct derivation written, same;
		const char *rules, *none;
		double cost = cost_of_pads(pads[i].value, &rules, &written);
		says(rules, pads[i].rules, pads[i].what);
		tap_ok(cost == cost_of_pads(pads[i].same, &none, &same), "and costs what %s does", pads[i].same);
		free_model(&written.model);
		free_model(&same.model);
	}
}

/* --- convolutions of one image --- */

/* Each value costs what the other does. Nothing is done of those that need finite numbers by default, as an image may have an
 * infinite element. */
static const struct {
	const char *what, *value, *same, *rules;
	bool finite;
} merged[] = {
    {"an image is its convolution by a unit kernel", "conv(x, W, pad=1) + x", "conv(x, W, pad=1)", "conv_add_self", true},
    {"beside a bias, too", "conv(x, W, pad=1) + p + x", "conv(x, W, pad=1) + p", "conv_add_self_apart", true},
    {"multiples of channels", "conv(x, W, pad=1) + x * p", "conv(x, W, pad=1)", "conv_add_scaled", true},
    {"beside a bias", "conv(x, W, pad=1) + p + x * p", "conv(x, W, pad=1) + p", "conv_add_scaled_apart", true},
    {"a convolution of single elements has its kernel in the middle of the other", "conv(x, W, pad=1) + conv(x, V)",
     "conv(x, W, pad=1)", "conv_add_conv", true},
    {"beside a bias", "conv(x, W, pad=1) + p + conv(x, V)", "conv(x, W, pad=1) + p", "conv_add_conv_apart", true},
    {"with strides", "conv(x, W, pad=1, stride=2) + conv(x, V, stride=2)", "conv(x, W, pad=1, stride=2)", "conv_add_conv", true},
    {"a row of a kernel, in the other order", "(o[k, i, j] = sum(R[k, c, v] * x[c, i, j + v - 1] for c, v in 3); o) + conv(x, W, pad=1)",
     "conv(x, W, pad=1)", "conv_add_conv", true},
    {"a product of each element", "conv(x, W, pad=1) + (o[k, i, j] = sum(R[k, c, 0] * x[c, i, j] for c); o)", "conv(x, W, pad=1)",
     "conv_add_matmul", true},
    {"beside a bias", "conv(x, W, pad=1) + p + (o[k, i, j] = sum(R[k, c, 0] * x[c, i, j] for c); o)", "conv(x, W, pad=1) + p",
     "conv_add_matmul_apart", true},
    {"but no other image", "conv(x, W, pad=1) + exp(x)", "conv(x, W, pad=1) + exp(x)", "", true},
    {"nor one that the window does not reach", "conv(x, W) + (o[k, i in 2, j in 2] = x[k, i + 1, 3 - 2*j]; o)",
     "conv(x, W) + (o[k, i in 2, j in 2] = x[k, i + 1, 3 - 2*j]; o)", "", true},
    {"channels of zeros take no products", "conv(concat(x, zeros(3, 4, 4), axis=0), F, pad=1)", "conv(x, F[:, 0:3, :, :], pad=1)",
     "assign_cond_number sum_mul_border", false},
    {"nor does a kernel of zeros around an image of one element", "conv((o[c, i in 1, j in 1] = sum(x[c, a, b] for a, b); o), W, pad=1)",
     "conv((o[c, i in 1, j in 1] = sum(x[c, a, b] for a, b); o), W[:, :, 1:2, 1:2])", NULL, false},
};

static double cost_of_merged(const char *value, bool finite, const char **rules, struct derivation *d)
{
	char text[700];
	*d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
	d->options.finite = finite;
	snprintf(text, sizeof text,
		 "model m\nstructure none\ninput x[3, 4, 4]\nparam W[3, 3, 3, 3], V[3, 3, 1, 1], R[3, 3, 3], F[3, 6, 3, 3], p[3, 1, 1]\n"
		 "output y = %s\noutput z = sum(W)\noutput sv = sum(V)\noutput sr = sum(R)\noutput sf = sum(F)\noutput sp = sum(p)\n",
		 value);
	derive(d, text, "");
	*rules = rules_of(d, "output");
	return sched_operations(&d->to, &d->to.bodies.at[0]);
}

static void test_merged_kernels(void)
{
	for (size_t i = 0; i < sizeof merged / sizeof *merged; i++)
		for (int finite = 0; finite < 2; finite++) {
			struct derivation written, same;
			const char *rules, *none;
			double cost = cost_of_merged(merged[i].value, finite, &rules, &written);
			bool fires = finite || !merged[i].finite;
			if (merged[i].rules || !fires)
				says(rules, fires ? merged[i].rules : "", merged[i].what);
			tap_ok((cost == cost_of_merged(merged[i].same, finite, &none, &same)) == (fires || !*merged[i].rules),
			       "%s cost what %s does", fires ? "and" : "does not", merged[i].same);
			free_model(&written.model);
			free_model(&same.model);
		}
}

int main(void)
{
	test_pads();
	test_merged_kernels();
	return tap_done();
}
