/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the processor --- */

void machine_recognize(struct target *t, const struct cpu_model *cpu)
{
	static const struct {
		enum target_processor processor;
		struct cpu_model from;
		int to;
	} models[] = {
#define MODEL(id, maker, family, first, last) {TARGET_##id, {maker, family, first}, last},
	    EACH_MODEL(MODEL)
#undef MODEL
	};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		const struct cpu_model *from = &models[i].from;
		if (t->id == target_of_processor(models[i].processor) && strcmp(cpu->maker, from->maker) == 0 &&
		    cpu->family == from->family && cpu->model >= from->model && cpu->model <= models[i].to)
			target_set_processor(t, models[i].processor);
	}
}

/* --- caches --- */

enum { LEVELS = 3, MOST_CACHES = 16 };

/* Bytes by level, and of a line; 0 = unknown. */
struct caches {
	double bytes[LEVELS + 1], line;
};

/* The first word of a file of a cache; false when there is none. */
static bool read_word(const char *root, int cache, const char *file, char word[32])
{
	char path[4096];
	snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu0/cache/index%d/%s", root, cache, file);
	FILE *f = fopen(path, "re");
	bool ok = f && fscanf(f, "%31s", word) == 1;
	if (f)
		fclose(f);
	return ok;
}

/* A size is written as 32K or 1M. */
static double read_size(const char *word)
{
	char *end;
	double n = strtol(word, &end, 10);
	return *end == 'K' ? n * 1024 : *end == 'M' ? n * 1024 * 1024 : n;
}

static bool read_cache(const char *root, int cache, struct caches *c)
{
	char level[32], type[32], size[32], line[32];
	if (!read_word(root, cache, "level", level) || !read_word(root, cache, "type", type) ||
	    !read_word(root, cache, "size", size))
		return false;
	int at = atoi(level);
	if (at < 1 || at > LEVELS || strcmp(type, "Instruction") == 0)
		return true;
	c->bytes[at] = read_size(size);
	if (read_word(root, cache, "coherency_line_size", line))
		c->line = read_size(line);
	return true;
}

/* Fills in what is still unknown.  The C library computes the last level of some virtual processors too
 * large, so the system's files come first. */
static void ask_library(struct caches *c)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
	static const int names[] = {0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
	for (int level = 1; level <= LEVELS; level++)
		if (c->bytes[level] <= 0)
			c->bytes[level] = sysconf(names[level]);
#endif
	(void)c;
}

/* On a machine without a third level, the second counts as the last. */
void machine_read_caches(struct target *t, const char *root)
{
	static const int member[] = {0, TARGET_AT_l1_bytes, TARGET_AT_l2_bytes, TARGET_AT_l3_bytes};
	struct caches c = {{0}, 0};
	struct target asked = *t;
	for (int i = 0; i < MOST_CACHES && read_cache(root, i, &c); i++)
		;
	if (!*root)
		ask_library(&c);
	for (int level = 1; level <= LEVELS; level++)
		target_set(&asked, member[level], c.bytes[level]);
	if (c.bytes[1] > 0 && c.bytes[2] > 0 && c.bytes[3] <= 0)
		asked.l3_bytes = fmax(asked.l3_bytes, asked.l2_bytes);
	target_set(&asked, TARGET_AT_line_bytes, c.line);
	if (asked.l1_bytes <= asked.l2_bytes && asked.l2_bytes <= asked.l3_bytes)
		*t = asked;
}

/* --- rates --- */

/* To three digits: measurements have no more. */
static double round_digits(double value)
{
	double scale = value > 0 ? pow(10, 2 - floor(log10(value))) : 1;
	return round(value * scale) / scale;
}

/* Bytes a nanosecond from a working set that fills half of a cache, so that no other data evict it, but that
 * the caches before it cannot hold. */
static double rate_of(const struct machine *m, double bytes, double before)
{
	return machine_bandwidth(m, fmax(bytes / 2, fmin(2 * before, bytes))) * 1e-9;
}

/* Weights from the first level leave room for rows; those from beyond the second level do not fit there, and
 * leave room in the last level for what other processes have. */
void machine_choose_sets(const struct target *t, int threads, size_t sets[TARGET_CACHES])
{
	sets[TARGET_L1] = t->l1_bytes / 2;
	sets[TARGET_L2] = fmax(4 * t->l1_bytes, t->l2_bytes / 8);
	sets[TARGET_BEYOND] = fmax(2 * t->l2_bytes, fmin(4 * t->l2_bytes, t->l3_bytes / (2 * threads)));
}

/* A measured time, or what the processor is known to take at the measured clock where that is less: then
 * other programs disturbed the measurement. [ns] */
static double undisturbed_time(const struct target *known, const struct machine *m, int cache, int rows,
			       int n)
{
	double measured = 1e9 * m->iteration[cache][rows - 1][n - 1];
	double usual = known->iteration[cache][rows - 1][n - 1] * 1e9 * m->multiply_add / known->multiply_add;
	return usual > 0 ? fmin(measured, usual) : measured;
}

/* Whether the loops that measured a machine have the registers of a target. */
static bool has_same_registers(const struct machine *m, const struct target *t)
{
	const struct target *by = target_find(m->vector);
	return by && strcmp(by->arch, t->arch) == 0 && by->lanes == t->lanes && by->registers == t->registers;
}

/* Machines that were measured by loops for other registers, or without them, have estimated times. */
static bool set_iterations(struct target *t, const struct target *known, const struct machine *m)
{
	memset(t->iteration, 0, sizeof t->iteration);
	for (int cache = 0; has_same_registers(m, t) && cache < TARGET_CACHES; cache++)
		for (int rows = 1; rows <= TARGET_ROWS; rows++)
			for (int n = 1; n <= target_most_vectors(t, rows); n++)
				if (!target_set_iteration_time(t, rows, n, cache,
							       undisturbed_time(known, m, cache, rows, n)))
					return false;
	return true;
}

/* The time until a thread runs that is woken or made [ns]. A busy machine makes it longer without a limit, so it is taken
 * to be within some times what is usual. */
static double starting_time(double usual, double measured)
{
	enum { SHORTER = 8, LONGER = 4 };
	return fmax(usual / SHORTER, fmin(usual * LONGER, 1e9 * measured));
}

/* A time that threads wait for each other, at most the longest that a description may have: other programs that take the
 * processors from a team make it longer without a limit. */
static bool set_waiting_time(struct target *t, int number, double measured)
{
	return target_set(t, number, round_digits(fmin(1e9 * measured, target_number_at(number)->most)));
}

/* What several threads are needed for. */
static bool set_exchange(struct target *t, const struct machine *m)
{
	return set_waiting_time(t, TARGET_AT_barrier, m->barrier) && set_waiting_time(t, TARGET_AT_skew, m->skew) &&
	       target_set(t, TARGET_AT_exchange_rate, round_digits(m->exchange * 1e-9)) &&
	       target_set(t, TARGET_AT_wake, round_digits(starting_time(t->wake, m->wake))) &&
	       target_set(t, TARGET_AT_create, round_digits(starting_time(t->create, m->create)));
}

static bool set_kept_share(struct target *t, const struct machine *m)
{
	return target_set(t, TARGET_AT_kept_share, round_digits(fmin(m->kept / t->l2_bytes, 1)));
}

bool machine_describe(struct target *t, const struct machine *m)
{
	struct target d = *t;
	double l1 = rate_of(m, t->l1_bytes, 0), l2 = fmin(l1, rate_of(m, t->l2_bytes, t->l1_bytes));
	double l3 = fmin(l2, rate_of(m, fmin(t->l3_bytes, 8 * t->l2_bytes), t->l2_bytes));
	double memory = fmin(l3, m->bandwidth[m->sets - 1] * 1e-9);
	bool ok = target_set(&d, TARGET_AT_peak, round_digits(m->peak * 1e-9)) &&
		  target_set(&d, TARGET_AT_multiply_add, round_digits(m->multiply_add * 1e9)) &&
		  target_set(&d, TARGET_AT_l1_rate, round_digits(l1)) &&
		  target_set(&d, TARGET_AT_l2_rate, round_digits(l2)) &&
		  target_set(&d, TARGET_AT_l3_rate, round_digits(l3)) &&
		  target_set(&d, TARGET_AT_memory_rate, round_digits(memory)) &&
		  (m->threads < 2 || set_exchange(&d, m)) && (m->kept <= 0 || set_kept_share(&d, m)) &&
		  set_iterations(&d, t, m);
	if (ok)
		*t = d;
	return ok;
}
