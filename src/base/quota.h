/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How much processor time the control groups of this process allow it. */
#ifndef ESPALIER_BASE_QUOTA_H
#define ESPALIER_BASE_QUOTA_H

/* Processors that the least quota on the way from the process's control group to the root amounts to, rounded up
 * (version 2: cpu.max; version 1: cpu.cfs_quota_us over cpu.cfs_period_us); 0 = there is none, or it cannot be
 * read.  All paths are taken below `root`, which is "" but for tests. */
int quota_processors(const char *root);

#endif
