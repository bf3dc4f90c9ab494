/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

size_t utf8_length(const char *text, size_t n)
{
	static const struct {
		unsigned char first, last, low, high; /* range of the first byte, of the second */
		unsigned char length;
	} forms[] = {
	    {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};
	const unsigned char *p = (const unsigned char *)text;
	for (size_t i = 0; n && i < sizeof forms / sizeof *forms; i++) {
		size_t length = forms[i].length;
		if (*p < forms[i].first || *p > forms[i].last)
			continue;
		if (length > n || (length > 1 && (p[1] < forms[i].low || p[1] > forms[i].high)))
			return 0;
		for (size_t k = 2; k < length; k++)
			if ((p[k] & 0xc0) != 0x80)
				return 0;
		return length;
	}
	return 0;
}
