/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random programs of sub-operators, as they are and as rewritten by the rules and folded: exact mathematics
 * keeps every bit of binary32 whatever the numbers, the others keep values.
 *
 *     random_rewrite_test [FIRST COUNT]     seeds FIRST .. FIRST+COUNT-1; ESPALIER_SEEDS = another COUNT */
#include "tests/sample.h"
#include "tests/subop/random.h"

enum { SEEDS = 2500 / SAMPLE };

static const struct variant {
	const char *name;
	enum rewrite_math math;
	bool wild;
	enum sub_arithmetic arithmetic;
	double tolerance; /* 0 = every bit */
} variants[] = {
    {"exact", REWRITE_EXACT, true, SUB_BINARY32, 0},
    {"reassociate", REWRITE_REASSOCIATE, false, SUB_BINARY64, 1e-6},
    {"fast", REWRITE_FAST, false, SUB_BINARY64, 1e-6},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static long changes[VARIANTS], tamed[VARIANTS];

static void print_lines(const char *title, const char *text)
{
	printf("# --- %s\n# ", title);
	for (; *text; text++)
		printf(*text == '\n' && text[1] ? "\n# " : "%c", *text);
	printf("\n");
}

static void print_program(const char *title, const struct sub_program *p)
{
	struct str s = str_in(p->arena);
	sub_print(p, &s);
	print_lines(title, str_text(&s));
}

/* A NaN is a NaN, whatever its bits. */
static bool same_number(const struct variant *variant, double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	if (variant->tolerance == 0)
		return memcmp(&a, &b, sizeof a) == 0;
	return fabs(a - b) <= variant->tolerance * (1 + fabs(a));
}

static bool tame(const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(x[i]) < 1e6))
			return false;
	return true;
}

static void report(const struct variant *variant, uint64_t seed, const struct sub_program *from,
		   const struct sub_program *to, const struct rewrite_trace *trace)
{
	printf("# seed %llu, %s\n", (unsigned long long)seed, variant->name);
	print_program("as written", from);
	for (size_t i = 0; i < trace->changes.n; i++) {
		const struct rewrite_change *c = &trace->changes.at[i];
		printf("# %s in %s:\n#   %s\n#   %s\n", c->rule, c->body, c->before ? c->before : "",
		       c->after ? c->after : "");
	}
	print_program("rewritten", to);
}

static bool check_variant(struct bench *b, const struct data *d, int w, uint64_t seed)
{
	const struct variant *variant = &variants[w];
	struct rewrite_options options = {.math = variant->math, .table_bytes = 1 << 20};
	struct rewrite_trace trace = {.texts = true};
	struct sub_program contracted, rewritten, to;
	bool exact = variant->math == REWRITE_EXACT;
	sub_init(&contracted, &b->arena, "test");
	sub_init(&rewritten, &b->arena, "test");
	sub_init(&to, &b->arena, "test");
	if (exact)
		rewrite_contract(&contracted, &b->p, NULL, NULL);
	const struct sub_program *from = exact ? &contracted : &b->p;
	rewrite_optimize(&rewritten, from, &options, &trace);
	changes[w] += trace.changes.n;
	if (!exact)
		rewrite_contract(&contracted, &rewritten, NULL, NULL);
	rewrite_fold(&to, exact ? &rewritten : &contracted, &options, &trace);
	bool ok =
	    sub_verify(from, &b->diags) && sub_verify(&contracted, &b->diags) && sub_verify(&to, &b->diags);
	double *before = evaluate(from, variant->arithmetic, d, &b->arena);
	if (ok && (variant->tolerance == 0 || tame(before, d->results))) {
		double *after = evaluate(&to, variant->arithmetic, d, &b->arena);
		tamed[w]++;
		for (int64_t i = 0; ok && i < d->results; i++)
			if (!same_number(variant, before[i], after[i])) {
				printf("# element %lld of %lld is %.17g, was %.17g\n", (long long)i,
				       (long long)d->results, after[i], before[i]);
				ok = false;
			}
	}
	if (!ok) {
		print_diags(&b->diags);
		report(variant, seed, from, &to, &trace);
	}
	return ok;
}

static bool check_seed(uint64_t seed)
{
	bool ok = true;
	for (int wild = 0; wild < 2; wild++) {
		struct bench b;
		struct generator g;
		struct data d;
		bench_open(&b);
		generate_program(&b, &g, seed, wild, false);
		random_data(&b.p, &b.arena, wild, &d);
		ok &= sub_verify(&b.p, &b.diags);
		print_diags(&b.diags);
		for (int w = 0; ok && w < VARIANTS; w++)
			if (variants[w].wild == wild)
				ok = check_variant(&b, &d, w, seed);
		bench_close(&b);
	}
	return ok;
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, right = 0;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : seeds ? strtoull(seeds, NULL, 10) : SEEDS;
	for (uint64_t i = first; i < first + count; i++)
		right += check_seed(i);
	tap_ok(right == count, "seeds %llu..%llu: %llu programs mean the same when they are rewritten",
	       (unsigned long long)first, (unsigned long long)(first + count - 1), (unsigned long long)right);
	for (int w = 0; w < VARIANTS; w++)
		tap_ok(changes[w] > (long)count / 2 && 2 * tamed[w] > (long)count,
		       "%s: %ld applications, %ld programs compared", variants[w].name, changes[w], tamed[w]);
	return tap_done();
}
