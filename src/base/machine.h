/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Completes the description of this machine by what differs between the machines of one target. */
#ifndef ESPALIER_BASE_MACHINE_H
#define ESPALIER_BASE_MACHINE_H

#include "base/measure.h"
#include "base/target.h"

/* Sets the sizes of caches, read below the folder `root` ("" = the real one) and by sysconf; a size that the
 * system does not know, or that is impossible, stays as it is. */
void machine_read_caches(struct target *, const char *root);
/* Sets the rates that were measured; the sizes of caches are set already.  False, and nothing is set, when a
 * number is out of its bounds. */
bool machine_describe(struct target *, const struct machine *);

#endif
