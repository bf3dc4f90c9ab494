/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers in texts are those of the C locale, whatever the process has chosen. */
#include "base/decimal.h"
#include "base/str.h"
#include "tests/tap.h"

#include <locale.h>
#include <math.h>
#include <string.h>

static struct arena arena;

static const char *written(double value, bool is_float)
{
	struct str s = str_in(&arena);
	if (is_float)
		str_float(&s, value);
	else
		str_double(&s, value);
	return str_text(&s);
}

static void test_numbers(const char *where)
{
	tap_ok(strcmp(written(0.1f, true), "0.1") == 0 && strcmp(written(1.5, false), "1.5") == 0 &&
		   strcmp(written(0.1, false), "0.1") == 0 && strcmp(written(1e30f, true), "1e+30") == 0,
	       "%s: numbers are written as short as can be", where);
	tap_ok(decimal_to_float("0.25x") == 0.25f && decimal_to_double("-2.5e3") == -2500, "%s: numbers are read",
	       where);
	bool same = true;
	for (float v = 1e-40f; v < 1e38f; v *= 3.7f)
		same &= decimal_to_float(written(v, true)) == v && decimal_to_double(written(v, false)) == v;
	tap_ok(same && decimal_to_double(written(INFINITY, false)) == INFINITY,
	       "%s: what is written reads back", where);
}

int main(void)
{
	static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR", "ru_RU.UTF-8"};
	bool found = false;
	arena_init(&arena, &allocator_default);
	test_numbers("C");
	for (size_t i = 0; !found && i < sizeof commas / sizeof *commas; i++)
		found = setlocale(LC_ALL, commas[i]) && *localeconv()->decimal_point == ',';
	if (found)
		test_numbers("a locale with a decimal comma");
	else
		tap_skip("no such locale is installed", "a locale with a decimal comma");
	arena_free(&arena);
	return tap_done();
}
