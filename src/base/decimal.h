/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Decimals to binary, whatever the locale of the process; and the arithmetic by which most need no library. */
#ifndef ESPALIER_BASE_DECIMAL_H
#define ESPALIER_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number that a text begins with, as the C locale writes it. */
float decimal_to_float(const char *text);
double decimal_to_double(const char *text);

enum { DECIMAL_EXACT = 22 }; /* the last power of ten that binary64 has exactly */
extern const double decimal_power[DECIMAL_EXACT + 1];

/* v * 10^places, rounded once; `places` is from -DECIMAL_EXACT to DECIMAL_EXACT. */
static inline double decimal_shift(double v, int places)
{
	return places >= 0 ? v * decimal_power[places] : v / decimal_power[-places];
}

/* Whether the binary32 nearest to `near` is nearest to each number from which `near` was made, too: so many
 * units of its last place lie between it and the middle of two binary32.  With 0 it was rounded once.  `near`
 * is no smaller than a normal binary32. */
static inline bool decimal_is_decided(double near, int units)
{
	int64_t bits;
	memcpy(&bits, &near, sizeof bits);
	return llabs((bits & 0x1fffffff) - 0x10000000) > units;
}

#endif
