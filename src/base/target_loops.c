/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/target_loops.h"

#include <stdbool.h>

typedef float vector4 __attribute__((vector_size(16)));

/* All tiles of at most TARGET_ROWS and TARGET_VECTORS that 16 and 32 registers hold, with the smaller side of
 * the operands and one vector of the other. */
#define TILES_1(X, m) X(m, 1)
#define TILES_2(X, m) TILES_1(X, m) X(m, 2)
#define TILES_3(X, m) TILES_2(X, m) X(m, 3)
#define TILES_4(X, m) TILES_3(X, m) X(m, 4)
#define TILES_5(X, m) TILES_4(X, m) X(m, 5)
#define TILES_6(X, m) TILES_5(X, m) X(m, 6)
#define TILES_8(X, m) TILES_6(X, m) X(m, 7) X(m, 8)
#define TILES_OF_16(X)                                                                                       \
	TILES_8(X, 1)                                                                                        \
	TILES_6(X, 2) TILES_4(X, 3) TILES_3(X, 4) TILES_2(X, 5) TILES_2(X, 6) TILES_1(X, 7) TILES_1(X, 8)    \
	    TILES_1(X, 9) TILES_1(X, 10) TILES_1(X, 11) TILES_1(X, 12)
#define TILES_OF_32(X)                                                                                       \
	TILES_8(X, 1)                                                                                        \
	TILES_8(X, 2) TILES_8(X, 3) TILES_6(X, 4) TILES_5(X, 5) TILES_4(X, 6) TILES_3(X, 7) TILES_3(X, 8)    \
	    TILES_3(X, 9) TILES_2(X, 10) TILES_2(X, 11) TILES_2(X, 12)

#define UNROLL_ALL _Pragma("GCC unroll 64")
#define UNROLL_TWICE _Pragma("GCC unroll 2")

/* What is measured is the processor: not what a sanitizer adds. */
#define MEASURED \
	TARGET __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

#if defined __x86_64__
#include <immintrin.h>
#define REGISTER "x"
typedef float vector8 __attribute__((vector_size(32)));
typedef float vector16 __attribute__((vector_size(64)));

#define LOOPS(name) avx512_##name
#define VECTOR vector16
#define TARGET __attribute__((target("avx512f")))
#define MULTIPLY_ADD(a, b, c) (VECTOR) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define EACH_TILE TILES_OF_32
#include "base/measure_loops.h"

#define LOOPS(name) avx2_##name
#define VECTOR vector8
#define TARGET __attribute__((target("avx2,fma")))
#define MULTIPLY_ADD(a, b, c) (VECTOR) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define EACH_TILE TILES_OF_16
#include "base/measure_loops.h"
#else
#define REGISTER "w"
#endif

#define LOOPS(name) generic_##name
#define VECTOR vector4
#define TARGET
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#if defined __x86_64__
#define EACH_TILE TILES_OF_16
#else
#define EACH_TILE TILES_OF_32
#endif
#include "base/measure_loops.h"

/* Whether this processor has the registers of a target. */
static bool has_registers_of(enum target_id id)
{
#if defined __x86_64__
	__builtin_cpu_init();
	switch (id) {
	case TARGET_AVX512:
		return __builtin_cpu_supports("avx512f");
	case TARGET_AVX2:
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	default:
		return id == TARGET_GENERIC;
	}
#else
	return id == TARGET_GENERIC;
#endif
}

/* The best come first. */
static const struct loops all_loops[] = {
#define LOOPS_OF(ID, loops, vector)                                                                          \
	{TARGET_##ID, loops##_multiply, loops##_chain, loops##_read, loops##_tiles, sizeof(vector)},
#if defined __x86_64__
    LOOPS_OF(AVX512, avx512, vector16) LOOPS_OF(AVX2, avx2, vector8)
#endif
	LOOPS_OF(GENERIC, generic, vector4)};

const struct loops *machine_find_loops(enum target_id target)
{
	for (size_t i = 0; i < sizeof all_loops / sizeof *all_loops; i++)
		if (has_registers_of(all_loops[i].target) &&
		    (target == TARGETS || all_loops[i].target == target))
			return &all_loops[i];
	return NULL;
}
