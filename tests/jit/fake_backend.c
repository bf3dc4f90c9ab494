/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A plug-in of another version, for load_test: espalier-fake.so. */
#include "jit/jit.h"

__attribute__((visibility("default")))
const struct jit_backend espalier_backend = {.abi = JIT_ABI + 1, .name = "fake"};
