/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The machine is measured, and what was found is read between its points.  How fast it is, no test says. */
#include "tests/tap.h"
#include "tools/machine.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_reading_between(void)
{
	struct machine m = {.vector = "none",
			    .threads = 2,
			    .peak = 1e9,
			    .bandwidth = {8e9, 4e9, 1e9},
			    .sets = 3,
			    .barrier = 1e-6};
	const double least = MACHINE_LEAST;
	tap_ok(machine_bandwidth(&m, 0) == 8e9 && machine_bandwidth(&m, least / 2) == 8e9,
	       "less than the least working set is read like it");
	tap_ok(near(machine_bandwidth(&m, 2 * least), 4e9) &&
		   near(machine_bandwidth(&m, least * sqrt(2)), 6e9),
	       "a working set is read as it was measured, and between two by the logarithm");
	tap_ok(machine_bandwidth(&m, 4 * least) == 1e9 && machine_bandwidth(&m, 1e15) == 1e9,
	       "beyond the largest as the largest");
}

static void test_merging(void)
{
	struct machine a = {.threads = 2, .peak = 2e9, .bandwidth = {1e9, 5e9}, .sets = 2, .barrier = 3e-6};
	const struct machine slow = {
	    .threads = 2, .peak = 1e9, .bandwidth = {3e9, 4e9}, .sets = 2, .barrier = 1e-6};
	const struct machine like = {.threads = 2, .peak = 1.95e9, .sets = 2, .barrier = 2e-6};
	machine_merge(&a, &slow);
	tap_ok(a.peak == 2e9 && a.bandwidth[0] == 3e9 && a.bandwidth[1] == 5e9,
	       "of two measurements the best of each counts");
	tap_ok(a.barrier == 3e-6, "but no barrier of threads that do not reach the peak");
	machine_merge(&a, &like);
	tap_ok(a.barrier == 2e-6, "the shorter of two that do");
	struct machine b = slow;
	machine_merge(&b, &like);
	tap_ok(b.peak == 1.95e9 && b.barrier == 2e-6, "a higher peak takes its barrier along");
}

/* All positive, a set of memory for each thread. */
static void test_measuring(int threads)
{
	struct machine m;
	bool all = machine_measure(&m, TARGETS, threads, MACHINE_MEMORY, NULL) && m.threads == threads && m.sets > 8 &&
		   m.peak > 0;
	for (int set = 0; all && set < m.sets; set++)
		all = m.bandwidth[set] > 0;
	tap_ok(all && (threads > 1 ? m.barrier > 0 : m.barrier == 0), "%d threads are measured", threads);
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);
	machine_print_json(&m, file);
	fclose(file);
	json_t *json = json_loads(text, 0, NULL);
	tap_ok(json_integer_value(json_object_get(json, "threads")) == threads &&
		   json_array_size(json_object_get(json, "read")) == (size_t)m.sets,
	       "and told as JSON");
	json_decref(json);
	free(text);
}

int main(void)
{
	struct machine m;
	test_reading_between();
	test_merging();
	test_measuring(1);
	test_measuring(3);
	tap_ok(!machine_measure(&m, TARGETS, 0, MACHINE_MEMORY, NULL), "no threads measure nothing");
	const size_t sets[TARGET_CACHES] = {16 << 10, 256 << 10, 2 << 20}, huge[TARGET_CACHES] = {1 << 20, 1 << 30, 1};
	bool all = machine_measure(&m, TARGETS, 2, MACHINE_MEMORY, sets);
	for (int cache = 0; cache < TARGET_CACHES; cache++)
		for (int i = 1; i < TARGET_VECTORS; i++)
			all &= m.iteration[cache][0][i] > 0 && m.iteration[cache][i][0] > 0;
	tap_ok(all && m.iteration[TARGET_L1][TARGET_ROWS - 1][TARGET_VECTORS - 1] == 0,
	       "iterations of tiles that registers hold are measured, too");
	tap_ok(!machine_measure(&m, TARGETS, 1, 64 << 10, huge), "if there is memory for their weights");
	return tap_done();
}
