/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/precision.h"

#include <string.h>

static const struct precision_traits traits[] = {
#define PRECISION(name, spelling, bytes, places, meaning) {spelling, bytes, places},
#include "base/precision.def"
};

const struct precision_traits *precision_traits_of(enum precision p)
{
	return &traits[p];
}

bool precision_read(const char *spelling, enum precision *precision)
{
	int p = 0;
	while (p < PRECISIONS && strcmp(traits[p].spelling, spelling) != 0)
		p++;
	if (p < PRECISIONS)
		*precision = (enum precision)p;
	return p < PRECISIONS;
}

const char *precision_list(void)
{
	static const char list[] =
#define PRECISION(name, spelling, bytes, places, meaning) ", " spelling
#include "base/precision.def"
	    ;
	return list + 2;
}
