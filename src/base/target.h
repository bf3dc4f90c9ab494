/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The machines that code is made for: what the schedule must know of them. */
#ifndef ESPALIER_BASE_TARGET_H
#define ESPALIER_BASE_TARGET_H

struct target {
	const char *name;
	const char *description;
	const char *arch; /* instruction set: "x86_64", "aarch64" */
	int lanes;     /* f32 lanes of a vector register */
	int registers; /* vector registers */
	int l1_bytes, l2_bytes; /* of a core's first- and second-level cache */
	/* What a core gets from the second level, and from beyond, sustained. */
	int l2_bytes_per_cycle, l3_bytes_per_cycle;
};

/* By name; "native" is the best that this machine can run, or interpret where it can run none.  NULL when there is no such target. */
const struct target *target_find(const char *name);
/* Whether this machine can run code made for it. */
int target_runs_here(const struct target *);
/* The i-th target, NULL past the last. */
const struct target *target_at(int i);

#endif
