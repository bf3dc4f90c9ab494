/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"

#include <locale.h>
#include <stdlib.h>

const double decimal_power[DECIMAL_EXACT + 1] = {1e0,  1e1,  1e2,  1e3,	 1e4,  1e5,  1e6,  1e7,
						 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
						 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

double decimal_to_double(const char *text)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c)
		return strtod(text, NULL);
	double value = strtod_l(text, NULL, c);
	freelocale(c);
	return value;
}

float decimal_to_float(const char *text)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c)
		return strtof(text, NULL);
	float value = strtof_l(text, NULL, c);
	freelocale(c);
	return value;
}
