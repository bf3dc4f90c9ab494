/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums that are read through a reshape: which are stored in their own order, and that no bit of a result depends on it. */
#include "tests/move/moving.h"

#define NONE "model m\nstructure none\n"
#define DIGITS(of) "reshape(transpose(reshape(" of ", 4, 2, 2, 6, 6), 0, 3, 1, 4, 2), 4, 12, 12)"

/* Models, the groups and stored values that they have with `arrange off`, and as it is chosen. */
static const struct {
	const char *what, *text;
	int off[2], on[2];
} models[] = {
    {"channels that become pixels", NONE "input x[40, 6, 6]\nparam W[16, 40]\nnode:\n y[k, i, j] = sum(W[k, c] * x[c, i, j] for c)\n"
				    "output z = " DIGITS("y") "\n",
     {1, 0}, {2, 1}},
    {"the same, of so few terms that a copy costs more",
     NONE "input x[2, 6, 6]\nparam W[16, 2]\nnode:\n y[k, i, j] = sum(W[k, c] * x[c, i, j] for c)\noutput z = " DIGITS("y") "\n",
     {1, 0}, {1, 0}},
    {"the same, behind an operator",
     NONE "input x[40, 6, 6]\nparam W[16, 40]\nnode:\n y[k, i, j] = sum(W[k, c] * x[c, i, j] for c)\n"
	  "output z = relu(" DIGITS("y + 1") ")\n",
     {1, 0}, {2, 1}},
    {"channels in groups, which share what they read", NONE "input x[80, 2, 16]\nparam W[40, 40, 1, 1]\noutput z = conv(x, W, groups=2)\n",
     {1, 0}, {2, 1}},
    {"each channel by itself, which shares nothing", NONE "input x[40, 6, 16]\nparam W[40, 1, 3, 3]\noutput z = conv(x, W, groups=40, pad=1)\n",
     {1, 0}, {1, 0}},
    {"images side by side, of which each is shorter than a vector",
     NONE "input x[8, 40, 3, 5]\nparam W[16, 40]\n"
	  "node:\n y[k, i, j] = sum(W[k, c] * reshape(transpose(x, 1, 2, 0, 3), 40, 3, 40)[c, i, j] for c)\n"
	  "output z = transpose(reshape(y, 16, 3, 8, 5), 2, 0, 1, 3)\n",
     {1, 0}, {2, 1}},
    {"heads along which vectors run as they do along columns", NONE "input x[20, 64]\nparam W[64, 64]\noutput z = reshape(x @ W, 20, 2, 32)\n",
     {1, 0}, {1, 0}},
    {"a dimension that is only moved", NONE "input x[20, 64]\nparam W[64, 64]\noutput z = transpose(x @ W)\n", {1, 0}, {1, 0}},
};

/* The groups and the values that are stored, as the schedule counts them in the body of the output. */
static bool has_groups(struct test_model *t, const char *schedule, const int *expected)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx512", .schedule = schedule};
	struct str s = str_in(&t->arena);
	int found[2] = {0};
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "sched", &s);
	const char *line = ok ? strstr(str_text(&s), "# output: ") : NULL;
	print_diags(&t->diags);
	ok = line && sscanf(line, "# output: %d groups in %*d supersteps, %*d reductions, %d intermediates", &found[0], &found[1]) == 2;
	printf("# %d groups, %d stored\n", found[0], found[1]);
	return ok && found[0] == expected[0] && found[1] == expected[1];
}

static void test_groups(struct test_model *t, size_t i)
{
	bool stores = models[i].on[1] > 0;
	tap_ok(has_groups(t, stores ? "arrange off\n" : "", models[i].off) && has_groups(t, "", models[i].on), "groups: %s", models[i].what);
	tap_ok(stores ? has_groups(t, "arrange on\n", models[i].on) : refuses(t, "arrange on\n", "costs more than it saves"),
	       "by the schedule: %s", models[i].what);
}

/* Whether results have the bits that they have where no sum is stored for its order. */
static bool moves_no_bit_by(const struct test_model *t, struct option_texts o, bool stores)
{
	static const char *const schedules[] = {"", "fuse none\ndynamic_batch off\n", "vectorize off\n", "fuse grow always\n",
						"arrange all\n"};
	struct setting s = {.model = t};
	struct test_run r;
	double worst;
	o.schedule = "arrange off\n";
	o.backend = "interpreter";
	bool same = start_run(&r, t, &o);
	if (same) {
		make_forest(&s.forest, &r.image, 1, 1);
		same = begin_setting(&s, &r) && near_oracle(&s, &r, 1e-4, &worst);
		for (size_t i = 0; same && i < sizeof schedules / sizeof *schedules; i++)
			if (stores || strncmp(schedules[i], "arrange", 7) != 0)
				same = agrees_with(&s, o, schedules[i], i == 0);
		end_setting(&s);
	}
	end_run(&r);
	return same;
}

static void test_bits(size_t i)
{
	static const char *const maths[] = {"exact", "reassociate"}, *const targets[] = {"avx2", "avx512", "generic"};
	struct test_model t = {0};
	if (!tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), ""), "parsed: %s", models[i].what))
		return;
	struct option_texts o = {.target = targets[i % 3], .math = maths[i % 2], .rules = "-tables"};
	tap_ok(moves_no_bit_by(&t, o, models[i].on[1] > 0), "same bits, %s, %s: %s", o.target, o.math, models[i].what);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct test_model t = {0};
		if (tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), ""), "parsed: %s", models[i].what))
			test_groups(&t, i);
		free_model(&t);
		test_bits(i);
	}
	return tap_done();
}
