/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sets rounding, traps and the treatment of denormals for this thread.  The library computes by the defaults
 * of IEEE 754 whatever its caller has set, and restores the caller's settings, flags included. */
#ifndef ESPALIER_BASE_FLOATS_H
#define ESPALIER_BASE_FLOATS_H

#include <stdbool.h>
#include <stdint.h>

#if defined __x86_64__
#include <xmmintrin.h>
#elif !defined __aarch64__
#include <fenv.h>
#endif

/* The settings of the caller. */
struct float_mode {
#if defined __x86_64__
	uint32_t vectors;
	uint16_t stack; /* of the x87, whose rounding the C library uses when it reads numbers */
#elif defined __aarch64__
	uint64_t control, status;
#else
	fenv_t all;
#endif
};

#if defined __x86_64__

/* Denormal operands count as zeros (bit 6), and so do denormal results (bit 15); bits 0 to 5 are flags. */
#define FLOAT_FLAGS 0x003fu
#define FLOAT_USUAL 0x1f80u
#define FLOAT_FLUSH 0x8040u

/* Rounds to nearest, traps nothing; with `flush` denormals are zeros. */
static inline void float_mode_set(bool flush)
{
	uint32_t wanted = FLOAT_USUAL | (flush ? FLOAT_FLUSH : 0), now = _mm_getcsr();
	if ((now & ~FLOAT_FLAGS) != wanted)
		_mm_setcsr(wanted | (now & FLOAT_FLAGS));
}

static inline struct float_mode float_mode_enter(bool flush)
{
	static const uint16_t usual = 0x037f;
	struct float_mode before = {.vectors = _mm_getcsr()};
	__asm__ volatile("fnstcw %0" : "=m"(before.stack));
	if (before.stack != usual)
		__asm__ volatile("fldcw %0" : : "m"(usual));
	float_mode_set(flush);
	return before;
}

static inline void float_mode_leave(const struct float_mode *before)
{
	uint16_t stack;
	__asm__ volatile("fnstcw %0" : "=m"(stack));
	if (stack != before->stack)
		__asm__ volatile("fldcw %0" : : "m"(before->stack));
	if (_mm_getcsr() != before->vectors)
		_mm_setcsr(before->vectors);
}

#elif defined __aarch64__

#define FLOAT_FLUSH (UINT64_C(1) << 24)

static inline void float_mode_set(bool flush)
{
	uint64_t wanted = flush ? FLOAT_FLUSH : 0, now;
	__asm__ volatile("mrs %0, fpcr" : "=r"(now));
	if (now != wanted)
		__asm__ volatile("msr fpcr, %0" : : "r"(wanted));
}

static inline struct float_mode float_mode_enter(bool flush)
{
	struct float_mode before;
	__asm__ volatile("mrs %0, fpcr" : "=r"(before.control));
	__asm__ volatile("mrs %0, fpsr" : "=r"(before.status));
	float_mode_set(flush);
	return before;
}

static inline void float_mode_leave(const struct float_mode *before)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(before->control));
	__asm__ volatile("msr fpsr, %0" : : "r"(before->status));
}

#else

/* Denormals stay what they are. */
static inline void float_mode_set(bool flush)
{
	(void)flush;
	fesetenv(FE_DFL_ENV);
}

static inline struct float_mode float_mode_enter(bool flush)
{
	struct float_mode before;
	fegetenv(&before.all);
	float_mode_set(flush);
	return before;
}

static inline void float_mode_leave(const struct float_mode *before)
{
	fesetenv(&before->all);
}

#endif

#endif
