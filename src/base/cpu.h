/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Identifies the processor, as far as code made for it depends on it. */
#ifndef ESPALIER_BASE_CPU_H
#define ESPALIER_BASE_CPU_H

#include "base/str.h"

/* Appends a text that is the same on processors that can run each other's code and schedule it alike, but for code that needs a
 * permission of the system, which has a target of its own.  It is read by cpuid, which takes some 10 us a leaf on a virtual machine. */
void cpu_print(struct str *);

/* The maker, and the numbers by which it tells its processors apart; "" and 0 = unknown. */
struct cpu_model {
	char maker[13];
	int family, model;
};
struct cpu_model cpu_model(void);

/* Appends the brand name of the processor, in one line; nothing when it has none. */
void cpu_name(struct str *);

/* Appends the extensions of the instruction set that code made for this very processor may use, as words that
 * cpu_lacks understands on any processor.  Asks whether matrix registers are permitted. */
void cpu_extensions(struct str *);
/* The first of these words that this processor does not have, which ends at a space or with the text; NULL = it
 * has all.  Asks whether matrix registers are permitted if they are among the words. */
const char *cpu_lacks(const char *extensions);

/* Whether this process may use matrix registers for products of bytes and of bf16 (AMX-INT8, AMX-BF16): the processor has them, the system saves
 * them, and permits the process to use them, which the first call asks for.  All threads of the process are permitted then,
 * and the frames of their signals grow by 8 KB; so nothing calls this but what makes, or is about to run, code that may use them. */
bool cpu_permits_matrices(void);
/* Whether that was called before. */
bool cpu_has_asked_for_matrices(void);

#endif
