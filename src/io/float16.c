/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/float16.h"

static void widen_f16(const char *from, float *to, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		uint16_t h;
		memcpy(&h, from + 2 * i, sizeof h);
		to[i] = f32_of_f16(h);
	}
}

void io_widen_bf16(const void *from, float *to, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		uint16_t h;
		memcpy(&h, (const char *)from + 2 * i, sizeof h);
		to[i] = f32_of_bf16(h);
	}
}

#ifdef __x86_64__

#include <immintrin.h>

/* Reads eight before it writes eight, which end at the next eight at the latest. */
__attribute__((target("avx,f16c"))) static void widen_f16_by_8(const char *from, float *to, int64_t count)
{
	int64_t i = 0;
	for (; i + 8 <= count; i += 8)
		_mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + 2 * i))));
	widen_f16(from + 2 * i, to + i, count - i);
}

void io_widen_f16(const void *from, float *to, int64_t count)
{
	bool fast = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
	(fast ? widen_f16_by_8 : widen_f16)(from, to, count);
}

#else

void io_widen_f16(const void *from, float *to, int64_t count)
{
	widen_f16(from, to, count);
}

#endif
