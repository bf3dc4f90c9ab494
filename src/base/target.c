/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/target.h"

#include <string.h>

static const struct target targets[] = {
    {"generic", "x86-64: SSE2", "x86_64", 4, 16, 32 << 10, 512 << 10, 16, 10},
    {"avx2", "x86-64-v3: AVX2 and FMA", "x86_64", 8, 16, 32 << 10, 512 << 10, 31, 24},
    {"avx512", "x86-64-v4: AVX-512", "x86_64", 16, 32, 32 << 10, 2 << 20, 48, 10},
    {"aarch64", "AArch64: Advanced SIMD", "aarch64", 4, 32, 32 << 10, 512 << 10, 16, 10},
};

enum { TARGETS = sizeof targets / sizeof *targets };

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

const struct target *target_find(const char *name)
{
	const struct target *found = NULL;
	for (const struct target *t = targets; t < targets + TARGETS; t++)
		if (strcmp(name, "native") == 0 ? target_runs_here(t) : strcmp(name, t->name) == 0)
			found = t;
	return found;
}
