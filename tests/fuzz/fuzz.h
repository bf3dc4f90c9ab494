/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share.
 *
 * A target is a program with one function, LLVMFuzzerTestOneInput, whose body feeds bytes to one reader of
 * the library and holds the result against what the reader promises.  It runs under libFuzzer (--enable-fuzz)
 * or under replay.c, which takes files.  A broken promise ends the program by abort.  Whatever a target does
 * is a function of the bytes alone, so that a finding can be repeated. */
#ifndef ESPALIER_TESTS_FUZZ_FUZZ_H
#define ESPALIER_TESTS_FUZZ_FUZZ_H

#include "base/diag.h"

#include <stdint.h>

/* One run of a body: all of the memory that it may use, and where it complains. */
struct fuzz {
	struct allocator allocator;
	struct arena arena;
	struct diags diags;
	size_t held, blocks;
	size_t most;  /* bytes beyond which memory is refused, 0 = beyond which a small input is a finding */
	long left;    /* allocations until one is refused */
	bool refused; /* one was: from now on any failure is excused, but not a leak */
};

/* False = the reader refused the bytes, which it must have explained.  When memory runs out the arena leaves
 * the body by its escape, so a body holds nothing else while it calls what may take from the arena. */
typedef bool fuzz_body(struct fuzz *, const uint8_t *bytes, size_t n);

/* Runs a body, then checks that what it refused was explained and that all memory came back.  One input in
 * eight is run again with an allocation that fails.  Always 0, as libFuzzer wants it. */
int fuzz_run(fuzz_body *, const uint8_t *bytes, size_t n);
/* The same without the second run: for a body that holds other things than memory of the arena. */
int fuzz_run_once(fuzz_body *, const uint8_t *bytes, size_t n);

/* Ends the program when a promise is broken; nothing is promised once memory was refused. */
void fuzz_check(const struct fuzz *, bool kept, const char *promise);

/* A number made of the bytes. */
uint64_t fuzz_hash(const void *bytes, size_t n);
/* The path of a file that holds these bytes until the next call. */
const char *fuzz_file(const void *bytes, size_t n);

/* The entry point; libFuzzer and replay.c call it. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#endif
