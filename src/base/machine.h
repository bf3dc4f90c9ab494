/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Completes the description of this machine by what differs between the machines of one target. */
#ifndef ESPALIER_BASE_MACHINE_H
#define ESPALIER_BASE_MACHINE_H

#include "base/cpu.h"
#include "base/measure.h"
#include "base/target.h"

/* Sets the numbers of the processor where it is known, and runs code for this target best. */
void machine_recognize(struct target *, const struct cpu_model *);
/* Sets the sizes of caches, read below the folder `root` ("" = the real one) and by sysconf; a size that the
 * system does not know, or that is impossible, stays as it is. */
void machine_read_caches(struct target *, const char *root);
/* Sets the bytes of weights that machine_measure reads for the times of iterations, by the sizes of caches,
 * so that `threads` find them there at once. */
void machine_choose_sets(const struct target *, int threads, size_t sets[TARGET_CACHES]);
/* Sets the rates and times that were measured; the sizes of caches are set already, and what is known of the
 * processor.  False, and nothing is set, when a number is out of its bounds. */
bool machine_describe(struct target *, const struct machine *);

#endif
