/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The processor time that the control groups allow this process. */
#ifndef ESPALIER_BASE_QUOTA_H
#define ESPALIER_BASE_QUOTA_H

/* The smallest quota between the process's control group and the root, in processors, rounded up (version 2:
 * cpu.max; version 1: cpu.cfs_quota_us over cpu.cfs_period_us); 0 = there is none, or it cannot be read.  All
 * paths are below `root`, which is "" but for tests. */
int quota_processors(const char *root);

#endif
