/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The description of a machine that schedules and the run leg use.
 *
 * targets.h and target.def have a description for each target.  That of the machine at hand begins as the one of the
 * best target that it has without asking, and then takes over what is measured (measure.h).  No bit of a result depends on it. */
#ifndef ESPALIER_BASE_TARGET_H
#define ESPALIER_BASE_TARGET_H

#include "base/str.h"
#include "base/targets.h"

#include <stdbool.h>

/* Units and meanings of the numbers stand in target.def. */
struct target {
	enum target_id id;
	const char *name;
	const char *description;
	const char *arch; /* instruction set: "x86_64", "aarch64" */
	int lanes;	  /* f32 lanes of a vector register */
	int registers;	  /* vector registers */
	bool amx_int8;	  /* it has tiles (matrix registers) for products of bytes and of bf16 */
	int matrices;	  /* so many */
	int matrix_rows;  /* of each; 0 = it has none */
	const char *processor; /* that was asked for by its name, and whose numbers these are; NULL = none was */
	enum target_processor known; /* the one that it is, or was recognized to be; TARGET_PROCESSORS = none that is known */
#define TARGET_NUMBER(member, ...) double member;
#include "base/target.def"
#undef TARGET_NUMBER
	target_times iteration; /* as measured [ns]; 0 = estimated: see target_iteration_time */
};

bool target_is_native(const char *name);
/* By name, TARGET_NATIVE among them, which asks for all permissions that targets need, but no processor.  NULL when there is no such target. */
const struct target *target_find(const char *name);
/* The same as a copy, or a known processor by its name; false when there is neither. */
bool target_find_any(const char *name, struct target *);
/* Whether this machine can run code made for it.  If it has matrix registers, asks for the permission to use them. */
int target_runs_here(const struct target *);
/* The best target of this machine that needs no permission of the system: a description of the machine begins as it. */
const struct target *target_of_machine(void);
/* One target with the numbers and times of another. */
struct target target_with_numbers(const struct target *, const struct target *numbers);
/* The i-th target, NULL past the last. */
const struct target *target_at(int i);
/* The target of a processor, and its name; NULL for TARGET_PROCESSORS. */
enum target_id target_of_processor(enum target_processor);
const char *target_processor_name(enum target_processor);

/* The numbers of a description, for loops over all of them. */
struct target_number {
	const char *member, *unit, *meaning;
	double least, most;
};

enum {
#define TARGET_NUMBER(member, ...) TARGET_AT_##member,
#include "base/target.def"
#undef TARGET_NUMBER
	TARGET_NUMBERS
};

/* The i-th; and its value in a description. */
const struct target_number *target_number_at(int i);
double target_value(const struct target *, int i);
/* Sets the i-th number; false when the value is out of its bounds. */
bool target_set(struct target *, int i, double value);
/* Sets all numbers to those of a known processor, and its times of iterations where they are known. */
void target_set_processor(struct target *, enum target_processor);
/* Appends the i-th. */
void target_print_value(const struct target *, int i, struct str *);
/* Appends the times of iterations, a line "iteration.CACHE.ROWS T... ps" each with those of 1, 2, ...
 * vectors. */
void target_print_iterations(const struct target *, struct str *);
/* Appends all numbers, a line "member value unit" each, and the times of iterations. */
void target_print(const struct target *, struct str *);
/* Sets all of these from such lines, which need not be trusted; `end` gets the text after them.  False, and
 * the target is as before, when one is missing or out of its bounds. */
bool target_read(struct target *, const char *text, const char **end);

/* --- times of iterations --- */

/* Whether the registers hold the sums of m x n vectors, the smaller side of the operands and one vector of
 * the other. */
static inline bool target_holds(const struct target *t, int m, int n)
{
	return m * n + (m < n ? m : n) + 1 <= t->registers;
}

/* The most vectors, TARGET_VECTORS at most, of a tile of m rows that the registers hold. */
int target_most_vectors(const struct target *, int m);
/* Nanoseconds of an iteration in which a tile of m rows and n vectors reads its weights from a cache; m is
 * TARGET_ROWS at most.  Measured where it was, continued for more vectors, but within the peak; else estimated from the peak and
 * the reading rates. */
double target_iteration_time(const struct target *, int m, int n, enum target_cache);
/* Sets a time that was measured; false when it cannot be. */
bool target_set_iteration_time(struct target *, int m, int n, enum target_cache, double);

/* Nanoseconds of a vector multiply-add at the peak; target_load_time: of reading a vector from the first
 * level. */
static inline double target_multiply_add_time(const struct target *t)
{
	return 2 * t->lanes / t->peak;
}

/* Operations a nanosecond of kernels that do not wait for memory: they load, store and loop besides the
 * multiply-adds of the peak. */
static inline double target_kernel_rate(const struct target *t)
{
	return 0.87 * t->peak;
}

/* Nanoseconds of giving work to threads that poll for it and waiting for its end. */
static inline double target_handing_time(const struct target *t)
{
	return t->barrier + t->skew;
}

static inline double target_load_time(const struct target *t)
{
	return 4 * t->lanes / t->l1_rate;
}

#endif
