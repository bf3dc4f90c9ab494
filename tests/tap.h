/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Test Anything Protocol, the least of it: tap_ok for each thing checked, return tap_done() from main. */
#ifndef ESPALIER_TESTS_TAP_H
#define ESPALIER_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_count, tap_failed;

static inline void tap_line(bool ok, const char *directive, const char *format, va_list args)
{
	printf("%sok %d - ", ok ? "" : "not ", ++tap_count);
	vprintf(format, args);
	printf("%s\n", directive);
	fflush(stdout);
}

__attribute__((format(printf, 2, 3))) static inline bool tap_ok(bool ok, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	tap_line(ok, "", format, args);
	va_end(args);
	tap_failed += !ok;
	return ok;
}

/* Two whole numbers that must be equal; both are shown when they are not. */
static inline bool tap_is(long got, long wanted, const char *what)
{
	if (got != wanted)
		printf("# got %ld, wanted %ld\n", got, wanted);
	return tap_ok(got == wanted, "%s", what);
}

/* `reason` says what is absent. */
__attribute__((format(printf, 2, 3))) static inline void tap_skip(const char *reason, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char directive[200];
	snprintf(directive, sizeof directive, " # SKIP %s", reason);
	tap_line(true, directive, format, args);
	va_end(args);
}

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed != 0;
}

#endif
