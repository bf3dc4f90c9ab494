/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/target.h"

#include "base/cpu.h"
#include "base/decimal.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- targets --- */

/* A target and its column of the numbers, which stand in the order of the members. */
static const struct target targets[] = {
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, ...)                        \
	[TARGET_GENERIC].member = (generic), [TARGET_AVX2].member = (avx2),                                  \
	[TARGET_AVX512].member = (avx512), [TARGET_AMX].member = (avx512),                                   \
	[TARGET_AARCH64].member = (aarch64),
#include "base/target.def"
#undef TARGET_NUMBER
#define TARGET(ID, words, text, architecture, width, vectors, tiles, rows)                                   \
	[TARGET_##ID].id = TARGET_##ID, [TARGET_##ID].name = (words), [TARGET_##ID].description = (text),    \
	[TARGET_##ID].arch = (architecture), [TARGET_##ID].lanes = (width),                                  \
	[TARGET_##ID].registers = (vectors), [TARGET_##ID].amx_int8 = (tiles) > 0,                           \
	[TARGET_##ID].matrices = (tiles), [TARGET_##ID].matrix_rows = (rows),                                \
	[TARGET_##ID].known = TARGET_PROCESSORS,
    EACH_TARGET(TARGET)
#undef TARGET
};

const struct target *target_at(int i)
{
	return i < TARGETS ? &targets[i] : NULL;
}

int target_runs_here(const struct target *t)
{
#if defined __x86_64__
	if (strcmp(t->arch, "x86_64") != 0)
		return 0;
	if (t->amx_int8 && (cpu_lacks("avx512vnni avx512bf16") || !cpu_permits_matrices()))
		return 0;
	if (t->lanes == 16)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
		       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
	if (t->lanes == 8)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	return 1;
#elif defined __aarch64__
	return strcmp(t->arch, "aarch64") == 0;
#else
	return t == targets;
#endif
}

const struct target *target_of_machine(void)
{
	const struct target *found = targets;
	for (const struct target *t = targets; t < targets + TARGETS; t++)
		if (!t->amx_int8 && target_runs_here(t))
			found = t;
	return found;
}

bool target_is_native(const char *name)
{
	return strcmp(name, TARGET_NATIVE) == 0;
}

const struct target *target_find(const char *name)
{
	const struct target *found = NULL;
	for (const struct target *t = targets; t < targets + TARGETS; t++)
		if (target_is_native(name) ? target_runs_here(t) : strcmp(name, t->name) == 0)
			found = t;
	return found;
}

static const struct {
	const char *name;
	enum target_id target;
} processors[] = {
#define PROCESSOR(id, name, target) {name, TARGET_##target},
    EACH_PROCESSOR(PROCESSOR)
#undef PROCESSOR
};

enum target_id target_of_processor(enum target_processor p)
{
	return processors[p].target;
}

const char *target_processor_name(enum target_processor p)
{
	return p < TARGET_PROCESSORS ? processors[p].name : NULL;
}

bool target_find_any(const char *name, struct target *t)
{
	const struct target *found = target_find(name);
	enum target_processor p = 0;
	if (found) {
		*t = *found;
		return true;
	}
	while (p < TARGET_PROCESSORS && strcmp(name, processors[p].name) != 0)
		p++;
	if (p == TARGET_PROCESSORS)
		return false;
	*t = targets[processors[p].target];
	target_set_processor(t, p);
	t->processor = processors[p].name;
	return true;
}

/* --- numbers --- */

static const struct target_number numbers[] = {
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, zen4, sapphire_rapids, zen5, \
		      zen5_avx2, meaning)                                                                    \
	{#member, unit, meaning, least, most},
#include "base/target.def"
#undef TARGET_NUMBER
};

static const size_t offsets[] = {
#define TARGET_NUMBER(member, ...) offsetof(struct target, member),
#include "base/target.def"
#undef TARGET_NUMBER
};

/* Columns of known processors. */
static const double known[][TARGET_NUMBERS] = {
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, ...)                                         \
	[TARGET_ZEN3][TARGET_AT_##member] = (avx2),
#include "base/target.def"
#undef TARGET_NUMBER
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, zen4, ...)                  \
	[TARGET_ZEN4][TARGET_AT_##member] = (zen4),
#include "base/target.def"
#undef TARGET_NUMBER
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, zen4, sapphire_rapids, ...) \
	[TARGET_SAPPHIRE_RAPIDS][TARGET_AT_##member] = (sapphire_rapids),                                    \
	[TARGET_SAPPHIRE_RAPIDS_AMX][TARGET_AT_##member] = (sapphire_rapids),
#include "base/target.def"
#undef TARGET_NUMBER
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, zen4, sapphire_rapids, zen5, ...) \
	[TARGET_ZEN5][TARGET_AT_##member] = (zen5),
#include "base/target.def"
#undef TARGET_NUMBER
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, zen4, sapphire_rapids, zen5, zen5_avx2, ...) \
	[TARGET_ZEN5_AVX2][TARGET_AT_##member] = (zen5_avx2),
#include "base/target.def"
#undef TARGET_NUMBER
};

struct target target_with_numbers(const struct target *t, const struct target *numbers)
{
	struct target both = *t;
	for (int i = 0; i < TARGET_NUMBERS; i++)
		memcpy((char *)&both + offsets[i], (const char *)numbers + offsets[i], sizeof(double));
	memcpy(both.iteration, numbers->iteration, sizeof both.iteration);
	both.processor = numbers->processor;
	both.known = numbers->known;
	return both;
}

const struct target_number *target_number_at(int i)
{
	return i < TARGET_NUMBERS ? &numbers[i] : NULL;
}

double target_value(const struct target *t, int i)
{
	double value;
	memcpy(&value, (const char *)t + offsets[i], sizeof value);
	return value;
}

bool target_set(struct target *t, int i, double value)
{
	if (!(value >= numbers[i].least && value <= numbers[i].most))
		return false;
	memcpy((char *)t + offsets[i], &value, sizeof value);
	return true;
}

void target_print_value(const struct target *t, int i, struct str *s)
{
	double value = target_value(t, i);
	if (value == floor(value) && value < 1e15)
		str_printf(s, "%.0f", value);
	else
		str_double(s, value);
}

/* --- times of iterations --- */

enum { PICOSECONDS = 1000 /* of a nanosecond */ };

static const char *const caches[] = {
#define CACHE(id, word) [TARGET_##id] = (word),
    EACH_CACHE(CACHE)
#undef CACHE
};

int target_most_vectors(const struct target *t, int m)
{
	int n = TARGET_VECTORS;
	while (n > 1 && !target_holds(t, m, n))
		n--;
	return n;
}

bool target_set_iteration_time(struct target *t, int m, int n, enum target_cache cache, double time)
{
	double rounded = round(time * PICOSECONDS);
	if (!(rounded >= 1 && rounded < 1e8))
		return false;
	t->iteration[cache][m - 1][n - 1] = rounded / PICOSECONDS;
	return true;
}

/* The time of two activities that overlap, but not wholly: between the longer and their sum. */
static double overlap_times(double a, double b, double sharpness)
{
	double longer = fmax(a, b), shorter = fmin(a, b);
	return longer * pow(1 + pow(shorter / longer, sharpness), 1 / sharpness);
}

/* Multiply-adds at the peak, each sum once per iteration; loads of the operands from the first level; and the
 * weights' way to it. */
static double estimate_iteration(const struct target *t, int m, int n, enum target_cache cache)
{
	double computing = fmax(m * n * target_multiply_add_time(t), t->multiply_add);
	double work = fmax(computing, (m + n) * target_load_time(t)), bytes = 4.0 * t->lanes * n;
	switch (cache) {
	case TARGET_L1:
		return work;
	case TARGET_L2:
		return overlap_times(work, bytes / t->l2_rate, t->overlap);
	default:
		return overlap_times(work, bytes / t->l3_rate, t->overlap);
	}
}

double target_iteration_time(const struct target *t, int m, int n, enum target_cache cache)
{
	const double *time = t->iteration[cache][m - 1];
	int most = target_most_vectors(t, m);
	if (time[most - 1] <= 0)
		return estimate_iteration(t, m, n, cache);
	if (n <= most)
		return time[n - 1];
	double further = most > 1 ? time[most - 1] - time[most - 2] : time[0];
	return fmax(time[most - 1] + (n - most) * further, m * n * target_multiply_add_time(t));
}

/* Rows of iteration.def. */
static const struct {
	enum target_processor processor;
	enum target_cache cache;
	int rows;
	int time[TARGET_VECTORS]; /* [ps]; 0 = the registers do not hold so many vectors */
} iterations[] = {
#define ITERATIONS(processor, cache, rows, ...) {TARGET_##processor, TARGET_##cache, rows, {__VA_ARGS__}},
#include "base/iteration.def"
#undef ITERATIONS
};

/* The processor whose times of iterations are those of another one. */
static enum target_processor timed_as(enum target_processor processor)
{
	return processor == TARGET_SAPPHIRE_RAPIDS_AMX ? TARGET_SAPPHIRE_RAPIDS : processor;
}

void target_set_processor(struct target *t, enum target_processor processor)
{
	for (int i = 0; i < TARGET_NUMBERS; i++)
		target_set(t, i, known[processor][i]);
	t->known = processor;
	memset(t->iteration, 0, sizeof t->iteration);
	for (size_t i = 0; i < sizeof iterations / sizeof *iterations; i++)
		for (int n = 1; iterations[i].processor == timed_as(processor) && n <= TARGET_VECTORS; n++)
			target_set_iteration_time(t, iterations[i].rows, n, iterations[i].cache,
						  (double)iterations[i].time[n - 1] / PICOSECONDS);
}

/* --- texts --- */

void target_print_iterations(const struct target *t, struct str *s)
{
	for (int cache = 0; cache < TARGET_CACHES; cache++)
		for (int m = 1; m <= TARGET_ROWS; m++) {
			str_printf(s, "iteration.%s.%d", caches[cache], m);
			for (int n = 1; n <= target_most_vectors(t, m); n++)
				str_printf(s, " %.0f", PICOSECONDS * target_iteration_time(t, m, n, cache));
			str_puts(s, " ps\n");
		}
}

void target_print(const struct target *t, struct str *s)
{
	for (int i = 0; i < TARGET_NUMBERS; i++) {
		str_printf(s, "%s ", numbers[i].member);
		target_print_value(t, i, s);
		str_printf(s, "%s%s\n", numbers[i].unit[0] ? " " : "", numbers[i].unit);
	}
	target_print_iterations(t, s);
}

/* The value of the line that begins with a name; the line is left. */
static bool read_line(const char **at, const char *name, double *value)
{
	size_t n = strlen(name);
	const char *end = strchr(*at, '\n');
	if (!end || strncmp(*at, name, n) != 0 || (*at)[n] != ' ')
		return false;
	*value = decimal_to_double(*at + n + 1);
	*at = end + 1;
	return true;
}

/* The same for times of tiles of m rows, as many as there must be. */
static bool read_iterations(struct target *t, const char **at, enum target_cache cache, int m)
{
	char name[40], *next = (char *)*at;
	size_t length = snprintf(name, sizeof name, "iteration.%s.%d", caches[cache], m);
	if (strncmp(next, name, length) != 0)
		return false;
	next += length;
	for (int n = 1; n <= target_most_vectors(t, m); n++)
		if (*next != ' ' ||
		    !target_set_iteration_time(t, m, n, cache, (double)strtol(next, &next, 10) / PICOSECONDS))
			return false;
	*at = next + 4;
	return strncmp(next, " ps\n", 4) == 0;
}

bool target_read(struct target *t, const char *text, const char **end)
{
	struct target read = *t;
	double value;
	for (int i = 0; i < TARGET_NUMBERS; i++)
		if (!read_line(&text, numbers[i].member, &value) || !target_set(&read, i, value))
			return false;
	for (int cache = 0; cache < TARGET_CACHES; cache++)
		for (int m = 1; m <= TARGET_ROWS; m++)
			if (!read_iterations(&read, &text, cache, m))
				return false;
	*t = read;
	*end = text;
	return true;
}
