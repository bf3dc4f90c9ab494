/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The description of the machine at hand: what differs between the machines of one target is asked of it. */
#ifndef ESPALIER_BASE_MACHINE_H
#define ESPALIER_BASE_MACHINE_H

#include "base/measure.h"
#include "base/target.h"

/* Sets what the system says of caches, below the folder `root` ("" = the real one) and by sysconf; what it does not
 * say, or what cannot be, stays as it is. */
void machine_ask_caches(struct target *, const char *root);
/* Sets what was measured; the caches are known.  False, and nothing is set, when a number cannot be. */
bool machine_describe(struct target *, const struct machine *);

#endif
