/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Windows that are read in place have the bits of those that a copy with a border is read through, interpreted and by each
 * back end: by scalars and vectors of each width, in tiles that end at the borders or do not, with rows that are shorter than a
 * vector, equal to it and longer, and with vectors put together from aligned ones or not. */
#include "tests/models/agree.h"

#define HEAD "model m\nstructure tree(left, right)\ninput x[C, H, X]\nparam W[C, U, V]\nstate y[C, "
#define TAIL "inner:\n y = left.y - right.y\noutput z[c, i] = sum(y[c, i, j] for j) at root\n"

static const struct {
	const char *what, *text;
} models[] = {
    {"a sum over neighbours",
     HEAD "H, X]\nleaf:\n y[c, i in H, j in X] = sum(W[c, u, v] * x[c, i + u - U/2, j + v - V/2] for u, v)\n" TAIL},
    {"a sum over windows of every second element",
     HEAD "(H + 1)/2, (X + 1)/2]\nleaf:\n y[c, i in (H + 1)/2, j in (X + 1)/2] = sum(W[c, u, v] * x[c, 2*i + u - U/2, 2*j + v - V/2] for u, v)\n" TAIL},
    {"a maximum over windows of every second element",
     HEAD "(H + 1)/2, (X + 1)/2]\nleaf:\n y[c, i in (H + 1)/2, j in (X + 1)/2] = max(x[c, 2*i + u - U/2, 2*j + v - V/2] for u in U, v in V) * W[c, 0, 0]\n" TAIL},
    {"windows that stay inside", HEAD "H/2, X/2]\nleaf:\n y[c, i in H/2, j in X/2] = max(x[c, 2*i + u, 2*j + v] for u in 2, v in 2) + W[c, 0, 0]\n" TAIL},
    {"windows of a child's state",
     "model m\nstructure tree(left, right)\ninput x[C, H, X]\nparam W[C, U, V]\nstate y[C, H, X]\nleaf:\n y = x\ninner:\n"
     " y[c, i in H, j in X] = right.y[c, i, j] + sum(W[c, u, v] * left.y[c, i + u - U/2, j + v - V/2] for u, v)\n"
     "output z[c, i] = sum(y[c, i, j] for j) at root\n"},
};

static const char *const sizes[] = {"C=3 H=5 X=7 U=3 V=3", "C=2 H=9 X=16 U=3 V=3", "C=2 H=7 X=53 U=3 V=5",
				    "C=2 H=5 X=28 U=3 V=3",
				    "C=1 H=2 X=2 U=3 V=3", "C=2 H=6 X=80 U=1 V=3", "C=1 H=5 X=14 U=3 V=5", "C=1 H=4 X=36 U=1 V=7"};

static const char *const schedules[] = {
    "vectorize 16\n", "vectorize 16\nalign off\n", "vectorize 8\n", "vectorize 4\n", "vectorize off\n", "pad all\n",
    "pad all\nlocal off\n", "fuse none\n", "specialize none\n"};

/* Of each model and size the first schedule, and one in seven of the others. */
enum { SAMPLE_ONE_IN = 7 };

static bool agrees_by_all(struct setting *s, const char *schedule)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	bool same = agrees(s, &o);
	o.target = "native";
	for (int i = 0; same && backend_at(i); i++) {
		o.backend = backend_at(i);
		same = agrees(s, &o);
	}
	return same;
}

static bool is_taken(size_t schedule, size_t model)
{
	return schedule == 0 || (schedule + model) % SAMPLE_ONE_IN == 0;
}

/* `pad all` is refused where nothing is copied. */
static bool is_legal(const struct test_model *t, const char *schedule)
{
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	if (strncmp(schedule, "pad", 3) != 0)
		return true;
	bool legal = compile_run(&r, t, &o);
	end_run(&r);
	return legal;
}

static void test_windows(size_t model, size_t size)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run base = {0};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = "pad off\nvectorize off\n"};
	double worst;
	random_state = 5;
	bool ok = load_text(&t, "m", models[model].text, strlen(models[model].text), sizes[size]) && start_run(&base, &t, &o);
	if (tap_ok(ok, "%s, %s", models[model].what, sizes[size])) {
		make_forest(&s.forest, &base.image, 3, 6);
		tap_ok(begin_setting(&s, &base) && near_oracle(&s, &base, 1e-4, &worst), "near to the oracle");
		for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
			if (is_taken(i, model + size) && is_legal(&t, schedules[i]))
				tap_ok(agrees_by_all(&s, schedules[i]), "the same bits: %.*s", (int)strcspn(schedules[i], "\n"),
				       schedules[i]);
		end_setting(&s);
	}
	end_run(&base);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
			test_windows(i, k);
	skip_backends();
	return tap_done();
}
