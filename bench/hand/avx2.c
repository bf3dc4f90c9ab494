/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* For sixteen registers of eight lanes: with four nodes, three gates are twelve sums, a broadcast operand and
 * three weights. */

/* Set here, so that the file compiles with any flags; main checks that the processor has these vectors. */
#pragma GCC target("avx2,fma")
#include <immintrin.h>

#define LANES 8
#define WIDE 3
#define VEC_ALL _mm256_set1_ps
#define VEC_MIN _mm256_min_ps
#define VEC_MAX _mm256_max_ps
#define VEC_ROUND(a) _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#include "bench/hand/body.h"

TILE(1)
TILE(2)
TILE(3)
TILE(4)

const struct level_kernels kernels_avx2 = {LANES,	 WIDE,	     4, {0, tile_1, tile_2, tile_3, tile_4},
					   multiply_add, read_floats};
