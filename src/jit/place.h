/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Interprets loads and stores for all back ends.  Each plug-in has its own copy. */
#ifndef ESPALIER_JIT_PLACE_H
#define ESPALIER_JIT_PLACE_H

#include "ilir/ilir.h"

/* Elements of a register buffer at most: more would take compilers too long, and no machine has so many
 * registers. */
enum { JIT_REGISTER_LIMIT = 1 << 14 };

/* Where an access begins: the last index of a vector access is ramp(lanes, first, step), or broadcast(lanes, only).
 */
struct jit_place {
	ilir_expr last;
	enum ilir_op spread; /* RAMP, BROADCAST, or VAR for a scalar */
	int lanes, step; /* of a RAMP: from lane to lane in memory */
};

/* An access; `problem`: why there is no code for it, NULL = there is. */
struct jit_access {
	ilir_buffer buffer;
	const ilir_expr *index;
	int indices;
	struct jit_place place;
	bool stores; /* never to rows of a table */
	const char *problem;
};
struct jit_access jit_read_load(const struct ilir_module *, ilir_expr load);
struct jit_access jit_read_store(const struct ilir_module *, const struct ilir_stmt *);
/* The same of a load of which only the place matters. */
struct jit_access jit_read_prefetch(const struct ilir_module *, ilir_expr load);

/* How many adjacent elements the access reads or writes. */
int jit_lanes_in_memory(const struct jit_access *);

enum { JIT_MAX_TERMS = 2 * ILIR_MAX_RANK };

/* An address, row-major over padded extents: the sum of `index` times `stride` of all terms, and a
 * displacement, in elements.  Constants in an index belong to the displacement, also those in sums and multiples, so
 * that the sum is the same for all accesses of an unrolled loop; and the variable `counted`, unless it is 0, is a term
 * of its own. */
struct jit_address {
	int terms;
	ilir_expr index[JIT_MAX_TERMS];
	uint64_t stride[JIT_MAX_TERMS], displacement;
	ilir_expr row; /* of a load of a state with a table: the row, which is no term then; none = it is one */
	uint64_t row_stride;
};
struct jit_address jit_address_of(const struct ilir_module *, const struct jit_access *, ilir_var counted);

unsigned jit_element_bytes(const struct ilir_buffer_decl *);

/* The elements of a register; 0 = too many. */
int64_t jit_register_elements(const struct ilir_buffer_decl *);
/* The number of the first element of a register that an access reads or writes, or why there is none. */
enum { JIT_OUTSIDE = -1 /* or no constant, though it is not parked */, JIT_SELECTED = -2 /* variables select it */ };
int64_t jit_register_element(const struct ilir_module *, const struct jit_access *);
extern const char jit_register_problem[];

/* By expression: whether it reads memory, so that it must not be computed speculatively. */
bool *jit_find_reads(const struct ilir_module *, struct arena *);
/* Whether a select must be a branch: it is scalar, and the index of the side that is not chosen may be out of
 * bounds (as in a concatenation). */
bool jit_must_branch(const struct ilir_module *, const bool *reads, ilir_expr select);

/* The constant that an index is divided by; 0 when it is not a positive constant. */
int64_t jit_divisor(const struct ilir_module *, ilir_expr);
static inline bool jit_is_power_of_two(int64_t n)
{
	return n > 0 && (n & (n - 1)) == 0;
}

#endif
