/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The targets that code is made for.  Includes nothing, so that the command can include it, too.
 *
 * X(ID, "name", "description", "architecture", lanes, registers)
 *   lanes      f32 lanes of a vector register
 *   registers  vector registers */
#ifndef ESPALIER_BASE_TARGETS_H
#define ESPALIER_BASE_TARGETS_H

#define EACH_TARGET(X)                                                                                       \
	X(GENERIC, "generic", "x86-64: SSE2", "x86_64", 4, 16)                                               \
	X(AVX2, "avx2", "x86-64-v3: AVX2 and FMA", "x86_64", 8, 16)                                          \
	X(AVX512, "avx512", "x86-64-v4: AVX-512", "x86_64", 16, 32)                                          \
	X(AARCH64, "aarch64", "AArch64: Advanced SIMD", "aarch64", 4, 32)

#define TARGET_ID(id, ...) TARGET_##id,
enum target_id { EACH_TARGET(TARGET_ID) TARGETS };

/* Stands for the best target that this machine can run, or interpret where it can run none. */
#define TARGET_NATIVE "native"

/* All names as one text: for people, and as the words of an option. */
#define TARGET_AFTER_COMMA(id, name, ...) ", " name
#define TARGET_AFTER_BAR(id, name, ...) "|" name
#define TARGET_NAMES TARGET_NATIVE EACH_TARGET(TARGET_AFTER_COMMA)
#define TARGET_WORDS TARGET_NATIVE EACH_TARGET(TARGET_AFTER_BAR)

#endif
