/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The targets that code is made for.  Includes nothing, so that the command can include it, too.
 *
 * X(ID, "name", "description", "architecture", lanes, registers, matrices, rows)
 *   lanes      f32 lanes of a vector register
 *   registers  vector registers
 *   matrices   matrix registers for products of bytes and of bf16
 *   rows       of a matrix register */
#ifndef ESPALIER_BASE_TARGETS_H
#define ESPALIER_BASE_TARGETS_H

#define EACH_TARGET(X)                                                                                       \
	X(GENERIC, "generic", "x86-64: SSE2", "x86_64", 4, 16, 0, 0)                                         \
	X(AVX2, "avx2", "x86-64-v3: AVX2 and FMA", "x86_64", 8, 16, 0, 0)                                    \
	X(AVX512, "avx512", "x86-64-v4: AVX-512", "x86_64", 16, 32, 0, 0)                                    \
	X(AMX, "amx", "x86-64-v4 with VNNI, AVX512-BF16, AMX-INT8 and AMX-BF16", "x86_64", 16, 32, 8, 16)                           \
	X(AARCH64, "aarch64", "AArch64: Advanced SIMD", "aarch64", 4, 32, 0, 0)

#define TARGET_ID(id, ...) TARGET_##id,
enum target_id { EACH_TARGET(TARGET_ID) TARGETS };

/* Processors with numbers in target.def or times in iteration.def.  They are targets, too: code is made for the target, and
 * its schedule chosen for the processor.
 *
 * X(ID, "name", TARGET); ZEN5 is one with datapaths of 512 bits */
#define EACH_PROCESSOR(X)                                                                                    \
	X(ZEN3, "zen3", AVX2)                                                                                \
	X(ZEN4, "zen4", AVX512)                                                                              \
	X(SAPPHIRE_RAPIDS, "sapphire-rapids", AVX512)                                                        \
	X(SAPPHIRE_RAPIDS_AMX, "sapphire-rapids-amx", AMX)                                                   \
	X(ZEN5, "zen5", AVX512)                                                                              \
	X(ZEN5_AVX2, "zen5-avx2", AVX2)

#define TARGET_PROCESSOR_ID(id, ...) TARGET_##id,
enum target_processor { EACH_PROCESSOR(TARGET_PROCESSOR_ID) TARGET_PROCESSORS };

/* How they are recognized: X(ID, "maker", family, first model, last model), as cpuid says it; several rows may be one
 * processor.  Of family 0x1a those that compute on 512 bits at once */
#define EACH_MODEL(X)                                                                                        \
	X(ZEN3, "AuthenticAMD", 0x19, 0x00, 0x0f)                                                            \
	X(ZEN3, "AuthenticAMD", 0x19, 0x20, 0x2f)                                                            \
	X(ZEN3, "AuthenticAMD", 0x19, 0x40, 0x5f)                                                            \
	X(ZEN4, "AuthenticAMD", 0x19, 0x10, 0x1f)                                                            \
	X(ZEN4, "AuthenticAMD", 0x19, 0x60, 0x7f)                                                            \
	X(ZEN4, "AuthenticAMD", 0x19, 0xa0, 0xaf)                                                            \
	X(SAPPHIRE_RAPIDS, "GenuineIntel", 6, 0x8f, 0x8f)                                                    \
	X(SAPPHIRE_RAPIDS, "GenuineIntel", 6, 0xcf, 0xcf)                                                    \
	X(SAPPHIRE_RAPIDS_AMX, "GenuineIntel", 6, 0x8f, 0x8f)                                                \
	X(SAPPHIRE_RAPIDS_AMX, "GenuineIntel", 6, 0xcf, 0xcf)                                                \
	X(ZEN5, "AuthenticAMD", 0x1a, 0x00, 0x1f)                                                            \
	X(ZEN5, "AuthenticAMD", 0x1a, 0x40, 0x4f)                                                            \
	X(ZEN5_AVX2, "AuthenticAMD", 0x1a, 0x00, 0x1f)                                                       \
	X(ZEN5_AVX2, "AuthenticAMD", 0x1a, 0x40, 0x4f)

/* Stands for the best target that this machine can run, or interpret where it can run none. */
#define TARGET_NATIVE "native"

/* All names as one text: for people, and as the words of an option. */
#define TARGET_AFTER_COMMA(id, name, ...) ", " name
#define TARGET_AFTER_BAR(id, name, ...) "|" name
#define TARGET_NAMES TARGET_NATIVE EACH_TARGET(TARGET_AFTER_COMMA) EACH_PROCESSOR(TARGET_AFTER_COMMA)
#define TARGET_WORDS TARGET_NATIVE EACH_TARGET(TARGET_AFTER_BAR) EACH_PROCESSOR(TARGET_AFTER_BAR)

/* Where the loop of a product finds its weights: in the first level of the caches, in the second, or beyond
 * it. */
#define EACH_CACHE(X) X(L1, "l1") X(L2, "l2") X(BEYOND, "beyond")

#define TARGET_CACHE(id, ...) TARGET_##id,
enum target_cache { EACH_CACHE(TARGET_CACHE) TARGET_CACHES };

/* Sizes of register tiles whose times are known: m rows and n vectors of columns, from 1. */
enum { TARGET_ROWS = 12, TARGET_VECTORS = 8 };

/* Times of an iteration of the loop over the reduced dimension, in which a tile's sums get a product each: by
 * the cache, rows - 1 and vectors - 1. */
typedef double target_times[TARGET_CACHES][TARGET_ROWS][TARGET_VECTORS];

#endif
