/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The protocol between a process and the helper that compiles for it, over one stream socket.
 *
 *   host    helper_request, the set of processors, the module as text (ilir/README.md)
 *   helper  records: a helper_record each, then its bytes and zeros up to a multiple of HELPER_ALIGNMENT.
 *           Diagnostics, or the compiler and the objects; then HELPER_END
 *
 * The socket is the helper's standard input; what compilers print goes to a file of the host.  SIGTERM, or
 * the death of its host, ends the helper, at once or as soon as temporary files are removed.  Both sides are
 * of one version of the library (JIT_ABI), on one machine: numbers are as in memory. */
#ifndef ESPALIER_JIT_HELPER_H
#define ESPALIER_JIT_HELPER_H

#include "jit/jit.h"

enum { HELPER_ALIGNMENT = 16, HELPER_NAME = 40 };

struct helper_request {
	uint32_t abi, native, threads;
	uint32_t where_bytes; /* of the set of processors that follows; 0 = where the helper is */
	uint64_t text_bytes;  /* of the module, behind it */
	uint64_t memory;      /* the most bytes of data, 0 = no limit */
	uint64_t lines;	      /* as in struct jit_options */
	char backend[HELPER_NAME], target[HELPER_NAME];
};

enum helper_kind {
	HELPER_DIAGNOSTIC = 1, /* spelling, message and hint, which may be empty, each ended by a zero */
	HELPER_COMPILER,       /* the file that it was loaded from, ended by a zero */
	HELPER_OBJECT, /* the seconds of its phases, padded, and an object; in the order of the kernels */
	HELPER_END     /* `which`: how many objects there were */
};

struct helper_record {
	uint32_t kind, which;
	uint64_t bytes;
};

/* The seconds before an object; a multiple of HELPER_ALIGNMENT. */
struct helper_seconds {
	_Alignas(HELPER_ALIGNMENT) double phase[JIT_PHASES];
};

static inline uint64_t helper_padded(uint64_t bytes)
{
	return (bytes + HELPER_ALIGNMENT - 1) / HELPER_ALIGNMENT * HELPER_ALIGNMENT;
}

#endif
