/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers in bodies: floats are read as strtof reads them, and written as the shortest text that it reads as
 * the same. */
#include "serve/body.h"
#include "base/json_scan.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t drawn = 88172645463325252u;

static uint64_t draw(void)
{
	drawn ^= drawn << 13;
	drawn ^= drawn >> 7;
	drawn ^= drawn << 17;
	return drawn;
}

static float float_of(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static bool same(float a, float b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

/* --- writing --- */

static void is_written(float v, const char *wanted)
{
	char text[FLOAT_BYTES + 1];
	text[put_float(text, v)] = 0;
	if (strcmp(text, wanted) != 0)
		printf("# got %s\n", text);
	tap_ok(strcmp(text, wanted) == 0, "%a is %s", v, wanted);
}

static void test_golden(void)
{
	is_written(0, "0");
	is_written(-0.0f, "-0");
	is_written(1, "1");
	is_written(-1.5f, "-1.5");
	is_written(0.1f, "0.1");
	is_written(1.0f / 3, "0.33333334");
	is_written(1e-5f, "0.00001");
	is_written(1e-6f, "1e-6");
	is_written(1.25e-9f, "1.25e-9");
	is_written(16777216, "16777216");
	is_written(1e9f, "1e9");
	is_written(123456792, "123456790");
	is_written(0x1p-149f, "1.40129846e-45");
	is_written(0x1.fffffep127f, "3.40282347e+38");
	is_written(NAN, "null");
	is_written(-INFINITY, "null");
}

static int count_digits(const char *text)
{
	int n = 0, zeros = 0;
	for (; *text && *text != 'e'; text++) {
		if (*text >= '0' && *text <= '9' && (n || *text != '0')) {
			n++;
			zeros = *text == '0' ? zeros + 1 : 0;
		}
	}
	return n - zeros;
}

/* As few digits as any number has that reads back. */
static int fewest_digits(float v)
{
	char text[40];
	for (int p = 1; p < 9; p++) {
		snprintf(text, sizeof text, "%.*e", p - 1, v);
		if (same(strtof(text, NULL), v))
			return count_digits(text);
	}
	return 9;
}

static void test_random_written(void)
{
	bool back = true, json = true, shortest = true;
	char text[FLOAT_BYTES + 1];
	for (int i = 0; i < 300000; i++) {
		/* Every second near 1, as results are. */
		float v =
		    i % 2 ? float_of((uint32_t)draw()) : float_of((uint32_t)draw() % 0x06000000 + 0x3b000000);
		if (!isfinite(v))
			continue;
		size_t n = put_float(text, v);
		text[n] = 0;
		struct scan s = {.at = text, .end = text + n + 1};
		struct number number;
		float read;
		back &= same(strtof(text, NULL), v);
		json &= scan_number(&s, &number) && s.at == text + n && number_float(&number, &read) &&
			same(read, v);
		if (i % 8 == 0 && fabsf(v) > 1e-13f && fabsf(v) < 1e20f)
			shortest &= count_digits(text) == fewest_digits(v);
	}
	tap_ok(back, "random floats read back as the same bits");
	tap_ok(json, "by JSON, too");
	tap_ok(shortest, "and have as few digits as can be");
}

/* --- reading --- */

static bool reads_as_c(const char *text)
{
	struct scan s = {.at = text, .end = text + strlen(text) + 1};
	struct number n;
	float got = 0, wanted = strtof(text, NULL);
	bool taken = scan_number(&s, &n), finite = taken && number_float(&n, &got);
	bool ok = taken && *s.at == 0 && finite == (isfinite(wanted) != 0) && (!finite || same(got, wanted));
	if (!ok)
		printf("# %s: got %a, wanted %a\n", text, got, wanted);
	return ok;
}

/* Decimals in the middle between two floats, one digit below it and one above. */
static void test_middles(void)
{
	bool ok = true;
	char text[200];
	for (int i = 0; i < 20000; i++) {
		uint32_t bits = (uint32_t)draw() % 0x7f000000;
		double middle = ((double)float_of(bits) + (double)float_of(bits + 1)) / 2;
		int digits = i % 2 ? 17 : 120;
		snprintf(text, sizeof text, "%.*e", digits, middle);
		ok &= reads_as_c(text);
		char *last = strchr(text, 'e') - 1;
		*last = (char)(*last == '9' ? '8' : *last + 1);
		ok &= reads_as_c(text);
	}
	tap_ok(ok, "numbers near the middle of two floats are rounded once");
}

static void test_random_read(void)
{
	bool ok = true;
	char text[80];
	for (int i = 0; i < 200000; i++) {
		int digits = (int)(draw() % 20), exponent = (int)(draw() % 100) - 50;
		uint64_t m = draw() >> (draw() % 64);
		if (i % 3)
			snprintf(text, sizeof text, "%s%" PRIu64 ".%0*" PRIu64 "e%d", i % 2 ? "-" : "", m,
				 digits, draw() % 1000000, exponent);
		else
			snprintf(text, sizeof text, "%.*g", digits, float_of((uint32_t)draw() % 0x7f000000));
		ok &= reads_as_c(text);
	}
	tap_ok(ok, "random numbers are read as strtof reads them");
}

/* Zeros before the digits and an exponent that makes up for them. */
static void test_long(void)
{
	static char text[200100];
	bool ok = true;
	for (int zeros = 99990; zeros < 100010; zeros++) {
		strcpy(text, "0.");
		memset(text + 2, '0', zeros);
		sprintf(text + 2 + zeros, "125e%d", zeros);
		ok &= reads_as_c(text);
		memset(text, '7', zeros);
		sprintf(text + zeros, "e-%d", zeros);
		ok &= reads_as_c(text);
	}
	tap_ok(ok, "so are long ones");
}

static void test_forms(void)
{
	static const char *const good[] = {"0",	       "-0",	   "0.0",   "1e5",
					   "1E+5",     "-1.5e-3",  "1e400", "-1e999999999999999999999",
					   "1e-99999", "16777217", "65504", "1e38"},
				 *const bad[] = {"",   "-",   "+1",  ".5",	  "1.",
						 "1e", "1e+", "NaN", "-Infinity", "x"};
	bool ok = true;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		ok &= reads_as_c(good[i]);
	tap_ok(ok, "numbers of JSON are numbers");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct scan s = {.at = bad[i], .end = bad[i] + strlen(bad[i]) + 1};
		struct number n;
		ok &= !scan_number(&s, &n) && s.fault;
	}
	struct scan hex = {.at = "0x10", .end = hex.at + 5}, open = {.at = "12", .end = open.at + 2};
	struct number n;
	ok &= scan_number(&hex, &n) && *hex.at == 'x' && n.digits == 0 && !scan_number(&open, &n);
	tap_ok(ok, "others are none");
}

static bool integer_is(const char *text, int64_t wanted, bool valid)
{
	struct scan s = {.at = text, .end = text + strlen(text) + 1};
	struct number n;
	int64_t got = 0;
	return scan_number(&s, &n) && number_integer(&n, INT64_MIN, INT64_MAX, &got) == valid &&
	       (!valid || got == wanted);
}

static void test_integers(void)
{
	tap_ok(integer_is("9223372036854775807", INT64_MAX, true) &&
		   integer_is("-9223372036854775808", INT64_MIN, true) && integer_is("-0", 0, true) &&
		   integer_is("9223372036854775808", 0, false) &&
		   integer_is("-9223372036854775809", 0, false) &&
		   integer_is("100000000000000000000", 0, false) && integer_is("1.0", 0, false) &&
		   integer_is("1e2", 0, false),
	       "integers have 64 bits");
	struct body b = {0};
	size_t n;
	body_integer(&b, INT64_MIN);
	body_puts(&b, " ");
	body_elements(&b, (int64_t[]){0, -7, INT64_MAX}, ESP_I64, 3);
	body_puts(&b, " ");
	body_elements(&b, (uint8_t[]){0, 1}, ESP_BOOL, 2);
	body_puts(&b, " ");
	body_elements(&b, (uint16_t[]){0x3c00, 0x0001, 0x7e00}, ESP_F16, 3);
	body_puts(&b, " ");
	body_elements(&b, (uint16_t[]){0x3f80, 0xc040}, ESP_BF16, 2);
	char *text = body_take(&b, &n);
	tap_ok(
	    text &&
		strcmp(text,
		       "-9223372036854775808 0,-7,9223372036854775807 false,true 1,5.9604645e-8,null 1,-3") ==
		    0,
	    "elements are written by their types");
	free(text);
}

int main(void)
{
	test_golden();
	test_random_written();
	test_middles();
	test_random_read();
	test_long();
	test_forms();
	test_integers();
	return tap_done();
}
