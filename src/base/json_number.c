/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers of JSON: their form, and what they are. */
#include "base/decimal.h"
#include "base/json_scan.h"

#include <math.h>

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
	/* Something stands behind it, so that what reads it again ends there. */
	if (!p || p == s->end)
		return scan_fault(s, s->at, "a number is missing here");
	n->whole = p == whole;
	s->at = p;
	return true;
}

/* Rounds to binary64 once, or where the digits are more than it has (`!exact`) twice: then two units in the
 * last place from the number at most.  False: the power of ten is too large, or too small. */
static bool find_near(const struct number *n, double *near, bool *exact)
{
	if (n->exponent > DECIMAL_EXACT || n->exponent < -DECIMAL_EXACT)
		return false;
	*near = decimal_shift((double)n->digits, (int)n->exponent);
	*exact = !n->cut && n->digits <= UINT64_C(1) << 53;
	return true;
}

bool number_double(const struct number *n, double *to)
{
	double near;
	bool exact;
	if (find_near(n, &near, &exact) && exact)
		*to = n->negative ? -near : near;
	else
		*to = decimal_to_double(n->text);
	return isfinite(*to);
}

bool number_float(const struct number *n, float *to)
{
	double near;
	bool exact;
	if (find_near(n, &near, &exact) && decimal_is_decided(near, exact ? 0 : 2))
		*to = (float)(n->negative ? -near : near);
	else
		*to = decimal_to_float(n->text);
	return isfinite(*to);
}

bool number_integer(const struct number *n, int64_t low, int64_t high, int64_t *to)
{
	if (!n->whole || n->cut || n->exponent || n->digits > (uint64_t)INT64_MAX + n->negative)
		return false;
	*to = n->negative ? (int64_t)-n->digits : (int64_t)n->digits;
	return *to >= low && *to <= high;
}
