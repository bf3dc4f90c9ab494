/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The pass table. */
#include "ilir/passes.h"

static const struct ilir_pass passes[] = {
#define ILIR_PASS(name, establishes, meaning) {#name, ilir_##name, establishes, meaning},
#include "ilir/passes.def"
#undef ILIR_PASS
};

const struct ilir_pass *ilir_pass_at(int i)
{
	return i >= 0 && i < (int)(sizeof passes / sizeof *passes) ? &passes[i] : NULL;
}
