/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include <string.h>

static const struct dtype_traits traits[] = {
#define DTYPE(name, spelling, bits, kind, safetensors, meaning) {spelling, safetensors, (bits) / 8, DTYPE_##kind},
#include "base/dtype.def"
};

const struct dtype_traits *dtype_traits_of(enum dtype d)
{
	return &traits[d];
}

bool dtype_read(const char *spelling, enum dtype *d)
{
	for (int i = 0; i < DTYPES; i++)
		if (strcmp(spelling, traits[i].spelling) == 0)
			return *d = i, true;
	return false;
}

bool dtype_widens(enum dtype from, enum dtype to)
{
	const struct dtype_traits *a = &traits[from], *b = &traits[to];
	bool kind = a->kind == b->kind || (a->kind == DTYPE_UNSIGNED && b->kind == DTYPE_SIGNED);
	return from == to || (kind && a->bytes < b->bytes);
}
