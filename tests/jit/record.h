/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What tests/jit/record writes and tests/jit/replay reads: programs as code of another machine, each with the
 * kernel calls of a run, what was in memory before each and what the interpreter left there.
 *
 *   record_program, its kernels' places (int64_t each), its code; then calls
 *   record_call, the bytes of each buffer (int64_t each), all buffers before, all buffers after; the last
 * call of a program has kernel -1 and nothing behind it */
#ifndef ESPALIER_TESTS_JIT_RECORD_H
#define ESPALIER_TESTS_JIT_RECORD_H

#include <stdint.h>

struct record_program {
	char name[64];
	int64_t kernels, bytes;
};

struct record_call {
	int64_t kernel, begin, end, first, blocks, direction;
	int64_t buffers;
};

#endif
