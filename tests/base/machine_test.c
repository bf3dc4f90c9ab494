/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of machines: the table, caches from folders that look like the system's, measurements that
 * were made up.  Nothing is measured. */
#include "base/cpu.h"
#include "base/machine.h"
#include "tests/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_table(void)
{
	for (int i = 0; target_at(i); i++) {
		const struct target *t = target_at(i);
		struct target copy = *t;
		bool bounded = true;
		for (int k = 0; k < TARGET_NUMBERS; k++)
			bounded &= target_set(&copy, k, target_value(t, k));
		tap_ok(bounded, "numbers of %s are within their bounds", t->name);
		tap_ok(t->l1_bytes <= t->l2_bytes && t->l2_bytes <= t->l3_bytes && t->l1_rate >= t->l2_rate &&
			   t->l2_rate >= t->l3_rate && t->l3_rate >= t->memory_rate,
		       "caches of %s grow, and slow down", t->name);
		tap_ok(target_find(t->name) == t && t->id == (enum target_id)i, "%s is found by its name",
		       t->name);
	}
	const struct target *native = target_find(TARGET_NATIVE);
	tap_ok(native && !strstr(native->name, TARGET_NATIVE), "this machine has one of them");
	tap_ok(!target_find("avx3") && !target_at(TARGETS) && !target_number_at(TARGET_NUMBERS),
	       "and no other");
	const struct target *amx = target_find("amx");
	tap_ok(amx && amx->amx_int8 && !target_find("avx512")->amx_int8 && (cpu_permits_matrices() || !target_runs_here(amx)) &&
		   native->amx_int8 == (target_runs_here(amx) != 0) && !cpu_lacks("amx-int8") == cpu_permits_matrices(),
	       "matrix registers are used where the process may use them");
	tap_ok(strcmp(TARGET_NAMES, "native, generic, avx2, avx512, amx, aarch64, zen3, zen4, sapphire-rapids, sapphire-rapids-amx, zen5, zen5-avx2") == 0 &&
		   strcmp(TARGET_WORDS, "native|generic|avx2|avx512|amx|aarch64|zen3|zen4|sapphire-rapids|sapphire-rapids-amx|zen5|zen5-avx2") == 0,
	       "their names as texts");
	struct target zen, typical;
	tap_ok(target_find_any("zen5-avx2", &zen) && zen.id == TARGET_AVX2 && strcmp(zen.name, "avx2") == 0 &&
		   strcmp(zen.processor, "zen5-avx2") == 0,
	       "a processor is found by its name, with its target");
	tap_ok(target_find_any("avx2", &typical) && !typical.processor && typical.peak != zen.peak &&
		   !target_find_any("zen1", &zen) && !target_find("zen5-avx2"),
	       "and has numbers of its own");
}

/* --- texts --- */

static bool reads(const char *text, struct target *t)
{
	const char *end;
	*t = *target_find("generic");
	return target_read(t, text, &end) && strcmp(end, "rest") == 0;
}

/* The text of a description in which a line has been put in place of another. */
static bool reads_with(const char *text, const char *line, const char *other)
{
	static char changed[8000];
	struct target t = {0};
	const char *at = strstr(text, line);
	snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, other, at + strlen(line));
	bool ok = reads(changed, &t);
	return ok || memcmp(&t, target_find("generic"), sizeof t) != 0;
}

static void test_texts(void)
{
	struct arena a;
	struct target t = {0};
	arena_init(&a, &allocator_default);
	struct str text = str_in(&a);
	target_print(target_find("avx2"), &text);
	str_puts(&text, "rest");
	bool same = reads(text.text, &t);
	for (int i = 0; i < TARGET_NUMBERS; i++)
		same &= target_value(&t, i) == target_value(target_find("avx2"), i);
	tap_ok(same && t.lanes == 4, "what was printed is read as it was, but for what a target is");
	tap_ok(!reads_with(text.text, "peak 103.68", "peak 1e30") &&
		   !reads_with(text.text, "peak 103.68", "peak nan") &&
		   !reads_with(text.text, "peak 103.68", "peak -90") &&
		   !reads_with(text.text, "peak 103.68", "peak"),
	       "a number that no machine has is refused, and nothing taken");
	tap_ok(!reads_with(text.text, "l2_rate", "l9_rate") &&
		   !reads_with(text.text, "peak 103.68 ops/ns\n", ""),
	       "so is another, or none in its place");
	tap_ok(!reads_with(text.text, "iteration.l2.4 ", "iteration.l2.4 0 ") &&
		   !reads_with(text.text, "iteration.l2.4 ", "iteration.l2.4 -7 ") &&
		   !reads_with(text.text, "iteration.l2.4 ", "iteration.l2.4 999999999999999999999 ") &&
		   !reads_with(text.text, "iteration.l2.4 ", "iteration.l2.4 x ") &&
		   !reads_with(text.text, "iteration.l2.4 ", "iteration.l2.5 ") &&
		   !reads_with(text.text, "iteration.l2.4 ", "iteration.l2.4 1000 "),
	       "times that cannot be are refused, and more or other ones than there are tiles");
	arena_free(&a);
}

/* --- times of iterations --- */

/* How much of the peak a tile reaches. */
static double share_of_peak(const struct target *t, int m, int n, enum target_cache cache)
{
	return m * n * target_multiply_add_time(t) / target_iteration_time(t, m, n, cache);
}

static struct target recognized_as(const char *target, const char *maker, int family, int model)
{
	struct target t = *target_find(target);
	struct cpu_model cpu = {.family = family, .model = model};
	snprintf(cpu.maker, sizeof cpu.maker, "%s", maker);
	machine_recognize(&t, &cpu);
	return t;
}

static struct target recognized(const char *maker, int family, int model)
{
	return recognized_as("avx512", maker, family, model);
}

static void test_processors(void)
{
	struct target usual = *target_find("avx512"), old = *target_find("avx2");
	struct target zen = recognized("AuthenticAMD", 0x19, 0x11),
		      intel = recognized("GenuineIntel", 6, 0x8f);
	struct target other = recognized("AuthenticAMD", 0x19, 0x21),
		      another = recognized("GenuineIntel", 6, 0x11);
	tap_ok(zen.peak == 118 && intel.peak == 217 && zen.registers == usual.registers &&
		   memcmp(&other, &usual, sizeof usual) == 0 && memcmp(&another, &usual, sizeof usual) == 0,
	       "processors are known by their makers and models");
	struct cpu_model cpu = {"AuthenticAMD", 0x19, 0x11};
	machine_recognize(&old, &cpu);
	tap_ok(memcmp(&old, target_find("avx2"), sizeof old) == 0, "for the target that they run best alone");
	memset(intel.iteration, 0, sizeof intel.iteration);
	tap_ok(share_of_peak(&intel, 4, 4, TARGET_L1) > 0.99 &&
		   share_of_peak(&intel, 4, 4, TARGET_L2) < 0.8 &&
		   share_of_peak(&intel, 6, 4, TARGET_L2) > 1.1 * share_of_peak(&intel, 4, 4, TARGET_L2),
	       "reading the second level is not hidden by few multiply-adds of a fast core");
	tap_ok(share_of_peak(&zen, 4, 4, TARGET_L2) > 0.98, "but by those of a slower one, by estimates");
	tap_ok(share_of_peak(&zen, 1, 1, TARGET_L1) < 0.3, "a lone sum waits for itself");
}

/* Whether each tile that the registers hold has a time of its own: no less than its multiply-adds take at the
 * peak, and from beyond the caches no less than from the first level, but for the precision of measurements.
 */
static bool knows_iterations(const struct target *t)
{
	bool all = true;
	for (int m = 1; m <= TARGET_ROWS; m++)
		for (int n = 1; n <= TARGET_VECTORS; n++) {
			const double near = t->iteration[TARGET_L1][m - 1][n - 1],
				     far = t->iteration[TARGET_BEYOND][m - 1][n - 1];
			bool held = target_holds(t, m, n);
			all &= held == (near > 0) && held == (far > 0) &&
			       (!held ||
				(far > 0.99 * near && near >= 0.99 * m * n * target_multiply_add_time(t)));
		}
	return all;
}

static void test_known_iterations(void)
{
	struct target usual = *target_find("avx2"), other = recognized_as("avx2", "GenuineIntel", 6, 0x9e);
	struct target zen = recognized_as("avx2", "AuthenticAMD", 0x19, 0x01);
	tap_ok(knows_iterations(&zen) && !knows_iterations(&usual) && zen.peak == usual.peak,
	       "a Zen 3 has measured times of all tiles, beside the numbers of its target");
	tap_ok(memcmp(&other, &usual, sizeof usual) == 0,
	       "a processor that is not known has its target's alone");
	tap_ok(share_of_peak(&zen, 4, 3, TARGET_L2) > 0.97 &&
		   share_of_peak(&zen, 6, 2, TARGET_BEYOND) > 0.97 &&
		   share_of_peak(&zen, 12, 1, TARGET_L1) < 0.9,
	       "it reaches its peak with tiles that read few vectors for each multiply-add");
	target_set_processor(&zen, TARGET_ZEN4);
	tap_ok(!knows_iterations(&zen), "another processor does not keep them");
	struct target wide = recognized("AuthenticAMD", 0x1a, 0x02), narrow = recognized("AuthenticAMD", 0x1a, 0x24);
	tap_ok(knows_iterations(&wide) && wide.peak > 2 * target_find("avx2")->peak && !knows_iterations(&narrow),
	       "a Zen 5 has its own as well, if it computes on 512 bits at once");
	struct target rapids = recognized("GenuineIntel", 6, 0xcf), with_matrices = recognized_as("amx", "GenuineIntel", 6, 0x8f);
	tap_ok(knows_iterations(&rapids) && knows_iterations(&with_matrices) && share_of_peak(&rapids, 4, 4, TARGET_L2) > 0.9 &&
		   share_of_peak(&rapids, 4, 4, TARGET_BEYOND) < 0.4 &&
		   memcmp(rapids.iteration, with_matrices.iteration, sizeof rapids.iteration) == 0,
	       "and an Emerald Rapids, with and without AMX: tiles hide the second level, and not what is beyond it");
}

static void test_iterations(void)
{
	struct target t = *target_find("avx512");
	tap_ok(target_most_vectors(&t, 1) == 8 && target_most_vectors(&t, 4) == 6 &&
		   target_most_vectors(&t, 8) == 3 && target_most_vectors(target_find("avx2"), 3) == 4,
	       "as many vectors as registers hold");
	double estimated = target_iteration_time(&t, 4, 4, TARGET_L2);
	for (int n = 1; n <= 8; n++)
		target_set_iteration_time(&t, 1, n, TARGET_L2, n + 0.5);
	tap_ok(target_iteration_time(&t, 1, 3, TARGET_L2) == 3.5 &&
		   target_iteration_time(&t, 4, 4, TARGET_L2) == estimated,
	       "what was measured is taken, the rest estimated");
	tap_ok(target_iteration_time(&t, 1, 20, TARGET_L2) == 20.5, "and continued for wider tiles");
	for (int n = 1; n <= target_most_vectors(&t, 1); n++)
		target_set_iteration_time(&t, 1, n, TARGET_L1, 100 * target_multiply_add_time(&t));
	tap_ok(target_iteration_time(&t, 1, 200, TARGET_L1) == 200 * target_multiply_add_time(&t), "but within the peak");
	tap_ok(!target_set_iteration_time(&t, 1, 1, TARGET_L2, NAN) &&
		   !target_set_iteration_time(&t, 1, 1, TARGET_L2, 0) &&
		   !target_set_iteration_time(&t, 1, 1, TARGET_L2, 1e9) &&
		   target_iteration_time(&t, 1, 1, TARGET_L2) == 1.5,
	       "times that cannot be change nothing");
	size_t sets[TARGET_CACHES];
	machine_choose_sets(&t, 2, sets);
	tap_ok(sets[TARGET_L1] < t.l1_bytes && sets[TARGET_L2] > t.l1_bytes && sets[TARGET_L2] < t.l2_bytes &&
		   sets[TARGET_BEYOND] > t.l2_bytes && 2 * sets[TARGET_BEYOND] <= t.l3_bytes,
	       "weights lie where they are measured");
}

/* --- caches --- */

static char root[] = "/tmp/espalier-test-XXXXXX";

static void put_cache(int index, const char *level, const char *type, const char *size, const char *line)
{
	const struct {
		const char *file, *text;
	} file[] = {{"level", level}, {"type", type}, {"size", size}, {"coherency_line_size", line}};
	char path[400];
	snprintf(path, sizeof path, "mkdir -p %s/sys/devices/system/cpu/cpu0/cache/index%d", root, index);
	if (system(path) != 0)
		printf("# %s failed\n", path);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu0/cache/index%d/%s", root, index,
			 file[i].file);
		FILE *f = fopen(path, "w");
		fprintf(f, "%s\n", file[i].text);
		fclose(f);
	}
}

static struct target asked(void)
{
	struct target t = *target_find("avx512");
	machine_read_caches(&t, root);
	return t;
}

static void clear(void)
{
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s/sys", root);
	if (system(command) != 0)
		printf("# %s failed\n", command);
}

static void test_caches(void)
{
	const struct target *usual = target_find("avx512");
	struct target t = asked();
	tap_ok(memcmp(&t, usual, sizeof t) == 0, "a system that says nothing has the caches of the target");
	put_cache(0, "1", "Data", "48K", "64");
	put_cache(1, "1", "Instruction", "64K", "64");
	put_cache(2, "2", "Unified", "1280K", "64");
	put_cache(3, "3", "Unified", "54M", "128");
	t = asked();
	tap_ok(t.l1_bytes == 48 << 10 && t.l2_bytes == 1280 << 10 && t.l3_bytes == 54 << 20 &&
		   t.line_bytes == 128,
	       "what the system says of caches for data is taken");
	tap_ok(t.peak == usual->peak && t.l2_rate == usual->l2_rate, "how fast they are it does not say");
	put_cache(2, "2", "Unified", "0K", "0");
	t = asked();
	tap_ok(t.l1_bytes == 48 << 10 && t.l2_bytes == usual->l2_bytes, "a size that cannot be is not taken");
	put_cache(2, "2", "Unified", "200M", "64");
	t = asked();
	tap_ok(memcmp(&t, usual, sizeof t) == 0, "nothing of caches that shrink");
	clear();
	put_cache(0, "1", "Data", "64K", "64");
	put_cache(1, "2", "Unified", "32M", "64");
	t = asked();
	tap_ok(t.l2_bytes == 32 << 20 && t.l3_bytes == 32 << 20,
	       "a machine of two levels has its last one twice");
	clear();
}

/* --- measurements --- */

static void test_describing(void)
{
	struct target t = *target_find("avx512");
	struct machine m = {.vector = "made up",
			    .threads = 2,
			    .peak = 123.456e9,
			    .multiply_add = 1.0714e-9,
			    .sets = MACHINE_SETS,
			    .barrier = 80e-9,
			    .skew = 21e-9,
			    .exchange = 6.4e9,
			    .wake = 45.67e-6,
			    .create = 67.89e-6,
			    .kept = 512 << 10};
	t.l1_bytes = 32 << 10, t.l2_bytes = 1 << 20, t.l3_bytes = 32 << 20;
	for (int set = 0; set < m.sets; set++)
		m.bandwidth[set] = set <= 1 ? 300e9 : set <= 6 ? 150e9 : set <= 10 ? 60e9 : 20e9;
	tap_ok(machine_describe(&t, &m) && t.peak == 123 && t.multiply_add == 1.07 && t.barrier == 80,
	       "what was measured is taken, as exact as it is");
	tap_ok(t.l1_rate == 300 && t.l2_rate == 150 && t.l3_rate == 60 && t.memory_rate == 20,
	       "each cache by working sets that only it holds");
	tap_ok(t.skew == 21 && t.exchange_rate == 6.4 && t.kept_share == 0.5, "and what passes between cores");
	tap_ok(t.wake == 45700 && t.create == 67900, "and how long threads take to wake up, and to be made");
	static const double times[] = {0, 1, INFINITY};
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		struct target other = *target_find("avx512");
		double wake = other.wake, create = other.create;
		m.wake = m.create = times[i];
		tap_ok(machine_describe(&other, &m) && other.wake >= 0.12 * wake && other.wake <= 4 * wake &&
			   (other.wake > wake) == (times[i] > 0) && other.create >= 0.12 * create &&
			   other.create <= 4 * create && (other.create > create) == (times[i] > 0),
		       "but not without bounds: %g s", times[i]);
	}
	m.wake = 45.67e-6, m.create = 67.89e-6;
	m.kept = 3 << 20;
	tap_ok(machine_describe(&t, &m) && t.kept_share == 1, "no more is kept than a cache holds");
	m.kept = 0;
	const struct target before = t;
	m.peak = 0;
	tap_ok(!machine_describe(&t, &m) && memcmp(&t, &before, sizeof t) == 0,
	       "what cannot be changes nothing");
	m.peak = 1e11;
	m.threads = 1;
	m.barrier = 0;
	tap_ok(machine_describe(&t, &m) && t.barrier == 80 && t.peak == 100, "one thread has no barrier");
	m.threads = 2, m.barrier = m.skew = 3e-3;
	struct target busy = t;
	tap_ok(machine_describe(&busy, &m) && busy.barrier == target_number_at(TARGET_AT_barrier)->most &&
		   busy.skew == target_number_at(TARGET_AT_skew)->most,
	       "threads that other programs stopped meanwhile wait for each other no longer than a machine may say");
	m.threads = 1;
	m.vector = t.name;
	tap_ok(!machine_describe(&t, &m), "times of iterations are measured with the rest");
	for (int i = 0; i < TARGET_CACHES * TARGET_ROWS * TARGET_VECTORS; i++)
		(&m.iteration[0][0][0])[i] = 1e-9 * (i + 1);
	tap_ok(machine_describe(&t, &m) && target_iteration_time(&t, 1, 2, TARGET_L1) == 2 &&
		   target_iteration_time(&t, 2, 1, TARGET_L1) == 1 + TARGET_VECTORS,
	       "and taken in nanoseconds");
	struct target slower = t;
	m.multiply_add = 2 * 1.07e-9;
	m.iteration[0][0][0] = 1.5e-9;
	m.iteration[0][0][1] = 5e-9;
	tap_ok(machine_describe(&slower, &m) && target_iteration_time(&slower, 1, 1, TARGET_L1) == 1.5 &&
		   target_iteration_time(&slower, 1, 2, TARGET_L1) == 4,
	       "but no longer ones than the processor is known to take at this clock");
	m.multiply_add = 1.07e-9;
	m.vector = "made up";
	m.bandwidth[0] = m.bandwidth[1] = 100e9;
	tap_ok(machine_describe(&t, &m) && t.l2_rate == 100, "no cache is faster than the one before it");
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	test_table();
	test_texts();
	test_processors();
	test_known_iterations();
	test_iterations();
	test_caches();
	test_describing();
	rmdir(root);
	return tap_done();
}
