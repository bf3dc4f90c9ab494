/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Words of bytes: which are read where the bytes are stored, and that no bit of a result depends on it. */
#include "tests/move/moving.h"

#define NONE "model m\nstructure none\n"
#define QUANTISE "def quantise(v) = cast(minimum(maximum(round(cast(v, f32) * 0.003) + 128, 0), 255), i32)\n"

/* Models, the groups and stored values that they have with `words off`, and as it is chosen. */
static const struct {
	const char *what, *text;
	int off[2], on[2];
} models[] = {
    {"bytes of a run by weights",
     NONE "input x[24, 64] : u8\nparam W[64, 40] : i8\nnode:\n y[i in 24, j in 40] = sum(x[i, c] * W[c, j] for c)\noutput z = y\n",
     {2, 1}, {1, 0}},
    {"bytes that a layer stores",
     NONE "input x[24, 64] : u8\nparam W[64, 48] : i8, V[48, 40] : i8\n" QUANTISE "node:\n"
	  " a[i in 24, j in 48] = sum(x[i, c] * W[c, j] for c)\n"
	  " b[i in 24, j in 48] = quantise(a[i, j])\n"
	  " y[i in 24, j in 40] = sum(b[i, c] * V[c, j] for c)\noutput z = y\n",
     {4, 3}, {2, 1}},
    {"bytes of two matrices of a run, one of which lie apart",
     NONE "input x[24, 64] : u8, w[64, 40] : i8\nnode:\n y[i in 24, j in 40] = sum(x[i, c] * w[c, j] for c)\noutput z = y\n",
     {3, 2}, {2, 1}},
    {"windows that stay in an image whose channels lie side by side",
     NONE "input x[9, 8, 16] : u8\nparam W[40, 3, 3, 16] : i8\n"
	  "node:\n y[i in 7, j in 6, k in 40] = sum(W[k, u, v, c] * x[i + u, j + v, c] for u, v, c)\noutput z = y\n",
     {2, 1}, {1, 0}},
    {"windows that leave it",
     NONE "input x[9, 8, 16] : u8\nparam W[40, 3, 3, 16] : i8\n"
	  "node:\n y[i in 9, j in 8, k in 40] = sum(W[k, u, v, c] * x[i + u - 1, j + v - 1, c] for u, v, c)\noutput z = y\n",
     {3, 2}, {3, 2}},
    {"bytes that lie apart",
     NONE "input x[64, 24] : u8\nparam W[64, 40] : i8\nnode:\n y[i in 24, j in 40] = sum(x[c, i] * W[c, j] for c)\noutput z = y\n",
     {2, 1}, {2, 1}},
    {"sums of no whole words",
     NONE "input x[24, 66] : u8\nparam W[66, 40] : i8\nnode:\n y[i in 24, j in 40] = sum(x[i, c] * W[c, j] for c)\noutput z = y\n",
     {2, 1}, {2, 1}},
};

static bool dump_stage(struct test_model *t, const char *schedule, const char *stage, struct str *s)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx512", .schedule = schedule};
	*s = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, s);
	print_diags(&t->diags);
	return ok;
}

/* The groups and the values that are stored, as the schedule counts them in the body of the output. */
static bool has_groups(struct test_model *t, const char *schedule, const int *expected)
{
	struct str s;
	int found[2] = {0};
	const char *line = dump_stage(t, schedule, "sched", &s) ? strstr(str_text(&s), "# output: ") : NULL;
	bool ok = line && sscanf(line, "# output: %d groups in %*d supersteps, %*d reductions, %d intermediates", &found[0], &found[1]) == 2;
	printf("# %d groups, %d stored\n", found[0], found[1]);
	return ok && found[0] == expected[0] && found[1] == expected[1];
}

/* Whether a dot product has a word of memory in place of a load of a stored one, by vectors. */
static bool multiplies_bytes(struct test_model *t, const char *schedule)
{
	struct str s;
	return dump_stage(t, schedule, "vectorize", &s) && strstr(str_text(&s), "dot4(broadcast(16, word_of(");
}

static void test_groups(struct test_model *t, size_t i)
{
	bool reads = models[i].on[0] < models[i].off[0];
	tap_ok(has_groups(t, "words off\n", models[i].off) && has_groups(t, "", models[i].on), "groups: %s", models[i].what);
	tap_ok(!multiplies_bytes(t, "words off\n") && multiplies_bytes(t, "") == reads, "loops: %s", models[i].what);
	tap_ok(reads ? has_groups(t, "words on\n", models[i].on) : refuses(t, "words on\n", "no product alone reads words"),
	       "by the schedule: %s", models[i].what);
}

/* Whether results have the bits that they have where words are stored. */
static bool moves_no_bit_by(const struct test_model *t, struct option_texts o, bool reads)
{
	static const char *const schedules[] = {"", "fuse greedy\n", "fuse none\ndynamic_batch off\n", "vectorize off\n", "words all\n"};
	struct setting s = {.model = t};
	struct test_run r;
	double worst;
	o.schedule = "words off\n";
	o.backend = "interpreter";
	bool same = start_run(&r, t, &o);
	if (same) {
		make_forest(&s.forest, &r.image, 1, 1);
		same = begin_setting(&s, &r) && near_oracle(&s, &r, 1e-4, &worst);
		for (size_t i = 0; same && i < sizeof schedules / sizeof *schedules; i++)
			if (reads || strncmp(schedules[i], "words", 5) != 0)
				same = agrees_with(&s, o, schedules[i], i == 0);
		end_setting(&s);
	}
	end_run(&r);
	return same;
}

static void test_bits(size_t i)
{
	static const char *const targets[] = {"avx2", "avx512", "generic"};
	struct test_model t = {0};
	if (!tap_ok(load_text(&t, "m", models[i].text, strlen(models[i].text), ""), "parsed: %s", models[i].what))
		return;
	for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
		struct option_texts o = {.target = targets[k], .rules = "-tables"};
		tap_ok(moves_no_bit_by(&t, o, models[i].on[0] < models[i].off[0]), "same bits, %s: %s", o.target, models[i].what);
	}
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
