/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Executes the instructions of AMX-INT8 and AMX-BF16 on processors that do not have them: they raise SIGILL, whose handler reads the
 * instruction (Intel's manual of the architecture, volume 2), changes tiles that are kept here, and goes on behind it.
 * An instruction that breaks a rule of the manual stays illegal.  x86-64 only. */
#ifndef ESPALIER_TESTS_JIT_AMX_H
#define ESPALIER_TESTS_JIT_AMX_H

#include <stdbool.h>

#ifdef __x86_64__

#include "base/convert.h"
#include "base/cpu.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

struct amx {
	bool configured;
	uint8_t rows[AMX_TILES];
	uint16_t row_bytes[AMX_TILES];
	uint32_t word[AMX_TILES][AMX_ROWS][AMX_ROW_BYTES / 4];
	long products, configurations, releases;
	struct sigaction before;
};

static struct amx amx;

/* An instruction with a VEX prefix of three bytes; its memory operand is base + row * stride. */
struct amx_instruction {
	int length, prefix, opcode, mode, reg, rm, vvvv;
	char *base;
	int64_t stride;
};

static greg_t amx_register(const ucontext_t *u, int n)
{
	static const int number[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	return u->uc_mcontext.gregs[number[n]];
}

static int32_t amx_displacement(const uint8_t *at, int bytes)
{
	int32_t d = 0;
	memcpy(&d, at, bytes);
	return bytes == 1 ? (int8_t)d : d;
}

/* Reads the address behind the byte of the mode; `extend` has the upper bits of its registers. */
static void amx_read_address(const ucontext_t *u, const uint8_t *code, const uint8_t extend[3], struct amx_instruction *i)
{
	int bytes = i->mode == 1 ? 1 : i->mode == 2 ? 4 : 0, base = (i->rm & 7) | extend[2] << 3;
	bool relative = false;
	if ((i->rm & 7) == 4) {
		uint8_t sib = code[i->length++];
		int index = (sib >> 3 & 7) | extend[1] << 3;
		base = (sib & 7) | extend[2] << 3;
		i->stride = index == 4 ? 0 : amx_register(u, index) * ((int64_t)1 << (sib >> 6));
		bytes = i->mode == 0 && (sib & 7) == 5 ? 4 : bytes;
		base = i->mode == 0 && (sib & 7) == 5 ? -1 : base;
	} else if (i->mode == 0 && (i->rm & 7) == 5) {
		relative = true;
		bytes = 4;
		base = -1;
	}
	int32_t displacement = amx_displacement(code + i->length, bytes);
	i->length += bytes;
	int64_t at = relative ? (int64_t)(uintptr_t)code + i->length : base < 0 ? 0 : amx_register(u, base);
	i->base = (char *)(uintptr_t)(at + displacement);
}

static bool amx_read(const ucontext_t *u, struct amx_instruction *i)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || code[2] & 0x84)
		return false;
	const uint8_t extend[3] = {!(code[1] & 0x80), !(code[1] & 0x40), !(code[1] & 0x20)};
	*i = (struct amx_instruction){.length = 5,
				      .prefix = code[2] & 3,
				      .opcode = code[3],
				      .mode = code[4] >> 6,
				      .reg = (code[4] >> 3 & 7) | extend[0] << 3,
				      .rm = code[4] & 7,
				      .vvvv = ~(code[2] >> 3) & 15};
	if (i->mode != 3)
		amx_read_address(u, code, extend, i);
	return i->reg < AMX_TILES;
}

static bool amx_configure(const uint8_t *bytes)
{
	memset(amx.word, 0, sizeof amx.word);
	for (int t = 0; t < AMX_TILES; t++) {
		memcpy(&amx.row_bytes[t], bytes + 16 + 2 * t, 2);
		amx.rows[t] = bytes[48 + t];
		if (amx.rows[t] > AMX_ROWS || amx.row_bytes[t] > AMX_ROW_BYTES || !amx.rows[t] != !amx.row_bytes[t])
			return false;
	}
	amx.configurations++;
	return amx.configured = bytes[0] == 1;
}

static bool amx_move(const struct amx_instruction *i, bool load)
{
	int t = i->reg;
	if (!amx.configured || !amx.rows[t] || i->rm != 4)
		return false;
	memset(amx.word[t], 0, load ? sizeof amx.word[t] : 0);
	for (int r = 0; r < amx.rows[t]; r++) {
		char *row = i->base + r * i->stride;
		memcpy(load ? (char *)amx.word[t][r] : row, load ? row : (char *)amx.word[t][r], amx.row_bytes[t]);
	}
	return true;
}

/* One element of tdpbf16ps: its sums of even and of odd products, and both of them, with denormal numbers as zeros. */
static float amx_add_bf16(int a, int b, int m, int n, float sum)
{
	float temp[2] = {0, 0};
	for (int k = 0; k < amx.rows[b]; k++)
		for (int odd = 0; odd < 2; odd++) {
			float x = flush_denormal(f32_of_bf16((uint16_t)(amx.word[a][m][k] >> 16 * odd))),
			      y = flush_denormal(f32_of_bf16((uint16_t)(amx.word[b][k][n] >> 16 * odd)));
			temp[odd] = add_flushed_product(x, y, temp[odd]);
		}
	return flush_denormal(flush_denormal(sum) + flush_denormal(temp[0] + temp[1]));
}

/* tdpbusd: the bytes of the second register are unsigned, those of the third signed; or tdpbf16ps. */
static bool amx_multiply(const struct amx_instruction *i, bool floats)
{
	int to = i->reg, a = i->rm, b = i->vvvv;
	bool differ = to != a && to != b && a != b && b < AMX_TILES;
	if (!amx.configured || !differ || amx.rows[to] != amx.rows[a] || amx.row_bytes[to] != amx.row_bytes[b] ||
	    amx.row_bytes[a] != 4 * amx.rows[b] || !amx.rows[to] || !amx.rows[b])
		return false;
	for (int m = 0; m < amx.rows[to]; m++)
		for (int n = 0; n < amx.row_bytes[to] / 4; n++) {
			uint32_t *sum = &amx.word[to][m][n];
			for (int k = 0; k < amx.rows[b] && !floats; k++)
				*sum = dot_bytes(amx.word[a][m][k], amx.word[b][k][n], *sum);
			*sum = floats ? bits_of_f32(amx_add_bf16(a, b, m, n, f32_of_bits(*sum))) : *sum;
		}
	amx.products++;
	return true;
}

enum { AMX_NO_PREFIX, AMX_66, AMX_F3, AMX_F2 };

static bool amx_execute(const struct amx_instruction *i)
{
	if (i->opcode == 0x49 && i->prefix == AMX_NO_PREFIX && i->mode != 3 && i->reg == 0)
		return amx_configure((const uint8_t *)i->base);
	if (i->opcode == 0x49 && i->prefix == AMX_NO_PREFIX && i->reg == 0 && i->rm == 0) {
		amx.releases++;
		amx.configured = false;
		return true;
	}
	if (i->opcode == 0x4b && i->mode != 3 && (i->prefix == AMX_F2 || i->prefix == AMX_F3))
		return amx_move(i, i->prefix == AMX_F2);
	bool floats = i->opcode == 0x5c && i->prefix == AMX_F3, bytes = i->opcode == 0x5e && i->prefix == AMX_66;
	return (floats || bytes) && i->mode == 3 && amx_multiply(i, floats);
}

static void amx_handle(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	ucontext_t *u = context;
	struct amx_instruction i;
	if (amx_read(u, &i) && amx_execute(&i))
		u->uc_mcontext.gregs[REG_RIP] += i.length;
	else
		sigaction(SIGILL, &amx.before, NULL);
}

/* Whether code for the target amx can be run from here on: by the processor, or by this process in its place, no two threads at
 * once.  What is not of AMX must be of the processor. */
static inline bool amx_begin(void)
{
	struct sigaction a = {.sa_sigaction = amx_handle, .sa_flags = SA_SIGINFO};
	return !cpu_lacks("avx512vnni avx512bf16 avx512vl avx512bw") && (cpu_permits_matrices() || sigaction(SIGILL, &a, &amx.before) == 0);
}

/* Whether tiles have been released as often as they were configured, as far as that was seen here. */
static inline bool amx_is_released(void)
{
	return !amx.configured && amx.configurations == amx.releases;
}

#else

static inline bool amx_begin(void)
{
	return false;
}

static inline bool amx_is_released(void)
{
	return true;
}

#endif
#endif
