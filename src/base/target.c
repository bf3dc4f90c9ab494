/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/target.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* --- targets --- */

/* A target and its column of the numbers, which stand in the order of the members. */
static const struct target targets[] = {
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, meaning)                    \
	[TARGET_GENERIC].member = (generic), [TARGET_AVX2].member = (avx2),                                  \
	[TARGET_AVX512].member = (avx512), [TARGET_AARCH64].member = (aarch64),
#include "base/target.def"
#undef TARGET_NUMBER
#define TARGET(ID, words, text, architecture, width, vectors)                                                \
	[TARGET_##ID].id = TARGET_##ID, [TARGET_##ID].name = (words), [TARGET_##ID].description = (text),    \
	[TARGET_##ID].arch = (architecture), [TARGET_##ID].lanes = (width),                                  \
	[TARGET_##ID].registers = (vectors),
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

/* --- numbers --- */

static const struct target_number numbers[] = {
#define TARGET_NUMBER(member, unit, least, most, generic, avx2, avx512, aarch64, meaning)                    \
	{#member, unit, meaning, least, most},
#include "base/target.def"
#undef TARGET_NUMBER
};

static const size_t offsets[] = {
#define TARGET_NUMBER(member, ...) offsetof(struct target, member),
#include "base/target.def"
#undef TARGET_NUMBER
};

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

void target_print(const struct target *t, struct str *s)
{
	for (int i = 0; i < TARGET_NUMBERS; i++) {
		str_printf(s, "%s ", numbers[i].member);
		target_print_value(t, i, s);
		str_printf(s, "%s%s\n", numbers[i].unit[0] ? " " : "", numbers[i].unit);
	}
}

/* The value of the line that begins with a name; the line is left. */
static bool read_line(const char **at, const char *name, double *value)
{
	size_t n = strlen(name);
	const char *end = strchr(*at, '\n');
	if (!end || strncmp(*at, name, n) != 0 || (*at)[n] != ' ')
		return false;
	*value = str_read_double(*at + n + 1);
	*at = end + 1;
	return true;
}

bool target_read(struct target *t, const char *text, const char **end)
{
	struct target read = *t;
	double value;
	for (int i = 0; i < TARGET_NUMBERS; i++)
		if (!read_line(&text, numbers[i].member, &value) || !target_set(&read, i, value))
			return false;
	*t = read;
	*end = text;
	return true;
}
