/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* machine: the numbers of this processor for a target, as src/base/target.def and iteration.def have them.
 *
 *   usage: machine TARGET [MEASUREMENTS [THREADS]]
 *
 * Of so many measurements (3) with so many threads (2) at once: of rates the best, of times the least.  Run
 * it while the machine computes nothing else. */
#include "base/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the larger of two rates, and the smaller of two other numbers. */
static void merge_numbers(struct target *best, const struct target *other)
{
	for (int i = 0; i < TARGET_NUMBERS; i++) {
		bool rate = strstr(target_number_at(i)->unit, "/ns");
		double a = target_value(best, i), b = target_value(other, i);
		target_set(best, i, rate ? fmax(a, b) : fmin(a, b));
	}
	for (int cache = 0; cache < TARGET_CACHES; cache++)
		for (int m = 1; m <= TARGET_ROWS; m++)
			for (int n = 1; n <= target_most_vectors(best, m); n++)
				target_set_iteration_time(best, m, n, cache,
							  fmin(target_iteration_time(best, m, n, cache),
							       target_iteration_time(other, m, n, cache)));
}

static bool measure_target(const struct target *of, int threads, struct target *t)
{
	struct machine m;
	size_t sets[TARGET_CACHES];
	*t = *of;
	machine_read_caches(t, "");
	machine_choose_sets(t, threads, sets);
	return machine_measure(&m, of->id, threads, MACHINE_MEMORY, sets) && machine_describe(t, &m);
}

/* With weights that are nearer an iteration takes no longer. */
static double nearest_time(const struct target *t, int m, int n, int cache)
{
	double time = target_iteration_time(t, m, n, cache);
	for (int farther = cache + 1; farther < TARGET_CACHES; farther++)
		time = fmin(time, target_iteration_time(t, m, n, farther));
	return time;
}

static void print_iterations(const struct target *t)
{
	static const char *const caches[] = {
#define CACHE(id, word) #id,
	    EACH_CACHE(CACHE)
#undef CACHE
	};
	for (int cache = 0; cache < TARGET_CACHES; cache++)
		for (int m = 1; m <= TARGET_ROWS; m++) {
			printf("ITERATIONS(, %s, %d", caches[cache], m);
			for (int n = 1; n <= target_most_vectors(t, m); n++)
				printf(", %.0f", 1000 * nearest_time(t, m, n, cache));
			puts(")");
		}
}

int main(int argc, char **argv)
{
	const struct target *of = argc > 1 ? target_find(argv[1]) : NULL;
	int measurements = argc > 2 ? atoi(argv[2]) : 3, threads = argc > 3 ? atoi(argv[3]) : 2;
	struct target best, other;
	if (!of || measurements < 1 || threads < 1) {
		fputs("usage: machine TARGET [MEASUREMENTS [THREADS]]\n", stderr);
		return 2;
	}
	for (int i = 0; i < measurements; i++) {
		if (!measure_target(of, threads, i ? &other : &best)) {
			fputs(
			    "machine: this processor has not the registers, or there is no memory or no "
			    "thread\n",
			    stderr);
			return 1;
		}
		if (i)
			merge_numbers(&best, &other);
	}
	for (int i = 0; i < TARGET_NUMBERS; i++)
		printf("%s %g %s\n", target_number_at(i)->member, target_value(&best, i),
		       target_number_at(i)->unit);
	print_iterations(&best);
	return 0;
}
