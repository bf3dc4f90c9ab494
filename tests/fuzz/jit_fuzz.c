/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs drawn from bytes through the oracle, the interpreter and every back end that there is. */
#include "tests/fuzz/drawn.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_drawn(FUZZ_BACKENDS, bytes, n);
}
