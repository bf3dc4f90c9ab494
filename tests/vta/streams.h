/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the tests of streams share: a small one, and numbers that look random. */
#ifndef ESPALIER_TESTS_VTA_STREAMS_H
#define ESPALIER_TESTS_VTA_STREAMS_H

#include "vta/vta.h"

#define CELL "  00000000000000000000000000000000\n"
#define BLOCK CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL

/* y = max(W x, 0) for two vectors, where the first row of W is ones and the second has -1 first. */
static const char stream_text[] =
    "memory 1536\n"
    "uops u 0 16\n"
    "  0 0 0\n"
    "  0 0 0\n"
    "  0 0 0\n"
    "  0 0 0\n"
    "constant w 256 512\n"
    "  01010101010101010101010101010101\n"
    "  ff000000000000000000000000000000\n" CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL CELL
	CELL CELL BLOCK
    "input x 768 32\n"
    "output y 1024 32\n"
    "load uop y_size=1 x_size=1 x_stride=1\n"
    "gemm reset uop_end=1 iter_out=2 iter_in=1 dst_factor_out=1\n"
    "load input dram_base=48 y_size=1 x_size=2 x_stride=2\n"
    "load push_next weight dram_base=1 y_size=1 x_size=1 x_stride=1\n"
    "gemm pop_prev uop_end=1 iter_out=2 iter_in=1 dst_factor_out=1 src_factor_out=1\n"
    "alu push_next uop_end=1 iter_out=2 iter_in=1 dst_factor_out=1 max use_imm\n"
    "store pop_prev push_prev output dram_base=64 y_size=1 x_size=2 x_stride=2\n"
    "finish pop_next\n";

static uint64_t draw_state = 1;

/* The next number of a linear congruence, its high bits. */
static inline uint32_t draw(void)
{
	draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(draw_state >> 32);
}

/* From low to high. */
static inline int64_t draw_between(int64_t low, int64_t high)
{
	return low + draw() % (uint32_t)(high - low + 1);
}

#endif
