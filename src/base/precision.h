/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What products with weights can be computed in, as precision.def lists it. */
#ifndef ESPALIER_BASE_PRECISION_H
#define ESPALIER_BASE_PRECISION_H

#include <stdbool.h>

enum precision {
#define PRECISION(name, spelling, bytes, places, meaning) PRECISION_##name,
#include "base/precision.def"
	PRECISIONS
};

/* A row of precision.def. */
struct precision_traits {
	const char *spelling;
	int bytes;
	int places;
};

const struct precision_traits *precision_traits_of(enum precision);
/* The one that is spelled so; false when there is none. */
bool precision_read(const char *spelling, enum precision *);
/* All spellings, with commas between. */
const char *precision_list(void);

#endif
