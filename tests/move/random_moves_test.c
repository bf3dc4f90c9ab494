/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random programs of sub-operators: what is computed ahead of the recursion, or at the child, keeps all its
 * bits, since rounding is part of the program.
 *
 *     random_moves_test [FIRST COUNT]     seeds FIRST .. FIRST+COUNT-1; ESPALIER_SEEDS = another COUNT */
#include "sched/sched.h"
#include "tests/subop/random.h"

enum { SEEDS = 1500 };

static int moved;

static bool same_bits(const char *what, const double *before, const double *after, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (before[i] != after[i] && !(isnan(before[i]) && isnan(after[i]))) {
			printf("# %s: element %lld is %.9g, was %.9g\n", what, (long long)i, after[i],
			       before[i]);
			return false;
		}
	return true;
}

static bool check_program(struct bench *b, const struct data *d)
{
	const struct rewrite_options options = {.table_bytes = 1 << 20};
	struct sub_program contracted, folded, refactored, hoisted;
	sub_init(&contracted, &b->arena, "test");
	sub_init(&folded, &b->arena, "test");
	sub_init(&refactored, &b->arena, "test");
	sub_init(&hoisted, &b->arena, "test");
	rewrite_contract(&contracted, &b->p, NULL, NULL);
	rewrite_fold(&folded, &contracted, &options, NULL);
	move_refactor(&refactored, &folded, MOVE_ALL, &options, NULL);
	move_hoist(&hoisted, &refactored, MOVE_ALL, &options, NULL);
	moved += move_is_refactored(&refactored) || move_is_hoisted(&hoisted);
	if (!sub_verify(&contracted, &b->diags) || !sub_verify(&folded, &b->diags) ||
	    !sub_verify(&refactored, &b->diags) || !sub_verify(&hoisted, &b->diags))
		return print_diags(&b->diags), false;
	const double *written = evaluate(&contracted, SUB_BINARY32, d, &b->arena);
	return same_bits("fold", written, evaluate(&folded, SUB_BINARY32, d, &b->arena), d->results) &&
	       same_bits("refactor", written, evaluate(&refactored, SUB_BINARY32, d, &b->arena),
			 d->results) &&
	       same_bits("hoist", written, evaluate(&hoisted, SUB_BINARY32, d, &b->arena), d->results);
}

static bool check_seed(uint64_t seed)
{
	struct bench b;
	struct generator g;
	struct data d;
	bench_open(&b);
	generate_program(&b, &g, seed, seed % 2, false);
	random_data(&b.p, &b.arena, seed % 2, &d);
	bool ok = check_program(&b, &d);
	if (!ok)
		printf("# seed %llu\n", (unsigned long long)seed);
	bench_close(&b);
	return ok;
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, right = 0;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : seeds ? strtoull(seeds, NULL, 10) : SEEDS;
	for (uint64_t i = first; i < first + count; i++)
		right += check_seed(i);
	tap_ok(right == count, "seeds %llu..%llu: folding, refactoring and hoisting change no bit",
	       (unsigned long long)first, (unsigned long long)(first + count - 1));
	tap_ok(moved > 0, "in %d programs something moved", moved);
	return tap_done();
}
