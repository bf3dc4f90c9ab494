/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers of JSON: their form, and what they are. */
#include "scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT = 22 };				      /* the last power of ten that binary64 has exactly */
static const int64_t far = INT64_C(1000000000000000); /* an exponent that no number of digits makes up for */

static bool is_digit(const struct scan *s, const char *p)
{
	return p < s->end && *p >= '0' && *p <= '9';
}

/* Adds digits to the number; NULL = there is none.  They are gathered in variables, which no store through a
 * pointer changes. */
static const char *take_digits(const struct scan *s, const char *p, struct number *n, int step)
{
	const char *begin = p, *end = s->end;
	uint64_t digits = n->digits;
	for (; p < end && *p >= '0' && *p <= '9' && digits < UINT64_C(1000000000000000000); p++)
		digits = 10 * digits + (uint64_t)(*p - '0');
	n->digits = digits;
	n->exponent -= step * (p - begin);
	for (; is_digit(s, p); p++) {
		n->cut = true;
		n->exponent += 1 - step;
	}
	return p == begin ? NULL : p;
}

static const char *take_exponent(const struct scan *s, const char *p, struct number *n)
{
	bool minus = p < s->end && *p == '-';
	int64_t exponent = 0;
	p += p < s->end && (*p == '-' || *p == '+');
	const char *begin = p;
	for (; is_digit(s, p); p++)
		exponent = exponent < far ? 10 * exponent + (*p - '0') : exponent;
	n->exponent += minus ? -exponent : exponent;
	return p == begin ? NULL : p;
}

bool scan_number(struct scan *s, struct number *n)
{
	scan_peek(s);
	const char *p = s->at;
	*n = (struct number){.text = p, .negative = p < s->end && *p == '-'};
	p += n->negative;
	p = p < s->end && *p == '0' ? p + 1 : take_digits(s, p, n, 0);
	const char *whole = p;
	if (p && p < s->end && *p == '.')
		p = take_digits(s, p + 1, n, 1);
	if (p && p < s->end && (*p == 'e' || *p == 'E'))
		p = take_exponent(s, p + 1, n);
	/* Something stands behind it, so strtof ends there. */
	if (!p || p == s->end)
		return scan_fault(s, s->at, "a number is missing here");
	n->whole = p == whole;
	s->at = p;
	return true;
}

/* The nearest binary64, by one rounding of exact operands; false: it must be found in another way, also when
 * it is the middle between two binary32, where rounding twice may go wrong. */
static bool find_near(const struct number *n, double *near)
{
	static const double ten[EXACT + 1] = {1e0,  1e1,  1e2,	1e3,  1e4,  1e5,  1e6,	1e7,
					      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	uint64_t bits;
	if (n->cut || n->digits > UINT64_C(1) << 53 || n->exponent > EXACT || n->exponent < -EXACT)
		return false;
	*near =
	    n->exponent >= 0 ? (double)n->digits * ten[n->exponent] : (double)n->digits / ten[-n->exponent];
	memcpy(&bits, near, sizeof bits);
	return (bits & 0x1fffffff) != 0x10000000 && (*near >= 0x1p-126 || *near == 0);
}

bool number_float(const struct number *n, float *to)
{
	double near;
	if (find_near(n, &near))
		*to = (float)(n->negative ? -near : near);
	else
		*to = strtof(n->text, NULL);
	return isfinite(*to);
}

bool number_integer(const struct number *n, int64_t low, int64_t high, int64_t *to)
{
	if (!n->whole || n->cut || n->exponent || n->digits > (uint64_t)INT64_MAX + n->negative)
		return false;
	*to = n->negative ? (int64_t)-n->digits : (int64_t)n->digits;
	return *to >= low && *to <= high;
}
