/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* For thirty-two registers of sixteen lanes: with five nodes, five gates are 25 sums and five weights;
 * operands are broadcast by the multiply-adds themselves. */
#pragma GCC target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")
#include <immintrin.h>

#define LANES 16
#define WIDE 5
#define VEC_ALL _mm512_set1_ps
#define VEC_MIN _mm512_min_ps
#define VEC_MAX _mm512_max_ps
#define VEC_ROUND(a) _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#include "bench/hand/body.h"

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)

const struct level_kernels kernels_avx512 = {
    LANES, WIDE, 5, {0, tile_1, tile_2, tile_3, tile_4, tile_5}, multiply_add, read_floats};
