/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random programs of sub-operators: the interpreter after every pass and compiled code against the oracle.  Where all
 * operators are rounded once, to the bit of the program once sums are contracted and constants folded.
 *
 *     random_lower_test [FIRST COUNT]     seeds FIRST .. FIRST+COUNT-1; ESPALIER_SEEDS = another COUNT */
#include "tests/subop/random.h"

enum { SEEDS = 150, COMPILE_EACH = 10 };

static int runs, exact_runs;

static bool tame(const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(x[i]) < 1e4))
			return false;
	return true;
}

static double distance(const double *expected, const float *got, int64_t n)
{
	double worst = got ? 0 : INFINITY;
	for (int64_t i = 0; got && i < n; i++) {
		double error = fabs(expected[i] - got[i]) / (1 + fabs(expected[i]));
		worst = error > worst || isnan(error) ? error : worst;
	}
	return worst;
}

/* Where every operator is rounded once the oracle knows the bits of the results. */
static bool has_written_bits(const struct sub_program *p, const struct data *d, const float *got, struct arena *a)
{
	exact_runs++;
	const double *written = evaluate(p, SUB_BINARY32, d, a);
	for (int64_t i = 0; i < d->results; i++)
		if (written[i] != got[i]) {
			printf("# element %lld is %.9g, and written as %.9g\n", (long long)i, got[i], written[i]);
			return false;
		}
	return true;
}

static bool check_variant(struct bench *b, const struct data *d, const double *expected, bool rational,
			  const char *backend, const char *target, const char *last)
{
	static const int limits[] = {ROWS, ROWS, ROWS};
	struct compiled c;
	float *got = NULL;
	runs++;
	if (compile_program(&c, &b->arena, &b->p, limits, backend, target, last, &b->diags))
		got = run_compiled(&c, &b->arena, d, &b->diags);
	double far = distance(expected, got, d->results);
	bool ok = far < 1e-3 && (!rational || has_written_bits(&c.folded, d, got, &b->arena));
	if (!ok) {
		printf("# %s, %s, last pass %s: error %g\n", backend, target, last ? last : "none", far);
		print_diags(&b->diags);
	}
	return ok;
}

static bool check_variants(struct bench *b, const struct data *d, const double *expected, bool rational,
			   bool compile)
{
	bool ok = true;
	for (int i = 1; ok && ilir_pass_at(i - 1); i++)
		ok = check_variant(b, d, expected, rational, "interpreter", "avx2", ilir_pass_at(i - 1)->name);
	ok = ok && check_variant(b, d, expected, rational, "interpreter", "generic", NULL);
	return ok && (!compile || check_variant(b, d, expected, rational, usual_backend(), "native", NULL));
}

/* -1 = its values are too large to be compared. */
static int check_seed(uint64_t seed, bool compile)
{
	struct bench b;
	struct generator g;
	struct data d;
	int ok = 0;
	bench_open(&b);
	generate_program(&b, &g, seed, false, seed % 3 == 0);
	random_data(&b.p, &b.arena, false, &d);
	if (sub_verify(&b.p, &b.diags)) {
		double *expected = evaluate(&b.p, SUB_BINARY64, &d, &b.arena);
		ok = !tame(expected, d.results) ? -1 : check_variants(&b, &d, expected, g.rational, compile);
	}
	if (!ok) {
		struct str s = str_in(&b.arena);
		sub_print(&b.p, &s);
		printf("# seed %llu\n", (unsigned long long)seed);
		print_diags(&b.diags);
		for (char *line = strtok((char *)str_text(&s), "\n"); line; line = strtok(NULL, "\n"))
			printf("# %s\n", line);
	}
	bench_close(&b);
	return ok;
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, right = 0, wild = 0;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : seeds ? strtoull(seeds, NULL, 10) : SEEDS;
	bool compiler = backend_at(0) != NULL;
	for (uint64_t i = first; i < first + count; i++) {
		int ok = check_seed(i, compiler && (argc > 1 || i % COMPILE_EACH == 0));
		right += ok != 0;
		wild += ok < 0;
	}
	tap_ok(right == count,
	       "seeds %llu..%llu: %llu programs agree in all variants, %d runs; %llu have too large values",
	       (unsigned long long)first, (unsigned long long)(first + count - 1),
	       (unsigned long long)(right - wild), runs, (unsigned long long)wild);
	tap_ok(2 * wild < count, "most of them are tame");
	tap_ok(exact_runs, "in %d runs all bits are those of the program as it is written", exact_runs);
	return tap_done();
}
