/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Identifies the processor, as far as code made for it depends on it. */
#ifndef ESPALIER_BASE_CPU_H
#define ESPALIER_BASE_CPU_H

#include "base/str.h"

/* Appends a text that is the same on processors that can run each other's code and schedule it alike.  It is
 * read by cpuid, which takes some 10 us a leaf on a virtual machine. */
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
 * cpu_lacks understands on any processor. */
void cpu_extensions(struct str *);
/* The first of these words that this processor does not have, which ends at a space or with the text; NULL = it
 * has all. */
const char *cpu_lacks(const char *extensions);

#endif
