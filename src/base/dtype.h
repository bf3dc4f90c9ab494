/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The types of elements, as dtype.def lists them. */
#ifndef ESPALIER_BASE_DTYPE_H
#define ESPALIER_BASE_DTYPE_H

#include <stdbool.h>

enum dtype {
#define DTYPE(name, spelling, bits, kind, safetensors, meaning) DTYPE_##name,
#include "base/dtype.def"
	DTYPES
};

enum dtype_kind { DTYPE_FLOAT, DTYPE_SIGNED, DTYPE_UNSIGNED, DTYPE_TRUTH };

/* The row of a type in dtype.def. */
struct dtype_traits {
	const char *spelling, *safetensors;
	int bytes; /* of an element in memory */
	enum dtype_kind kind;
};

const struct dtype_traits *dtype_traits_of(enum dtype);

/* The type that is spelled so, as "f32"; false when there is none. */
bool dtype_read(const char *spelling, enum dtype *);

/* Whether every value of one type is one of the other, which is the same or a wider one of its kind. */
bool dtype_widens(enum dtype from, enum dtype to);

#endif
