/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Texts for families of rules and for arithmetic. */
#include "rewrite/rewrite.h"
#include "tests/tap.h"

#include <string.h>

enum {
	ALL = (1u << REWRITE_FAMILIES) - 1,
	TABLES = 1u << REWRITE_FAMILY_TABLES,
	NEUTRAL = 1u << REWRITE_FAMILY_NEUTRAL
};

static const struct {
	const char *text;
	unsigned off;
} rows[] = {
    {"all", 0},
    {"none", ALL},
    {"tables", ALL & ~TABLES},
    {"tables,neutral", ALL & ~TABLES & ~NEUTRAL},
    {"-tables", TABLES},
    {"-tables,-neutral", TABLES | NEUTRAL},
    {"all,-neutral", NEUTRAL},
    {"none,tables", ALL & ~TABLES},
    {"-all", ALL},
    {"-all,tables", ALL & ~TABLES},
    {"tables,-tables", ALL},
};

static const char *const refused[] = {"",      ",",	 "tables,", ",tables",	"-",	   "--tables",
				      "-none", "Tables", "table",   "all none", "tabless", "tables neutral"};

int main(void)
{
	struct diags d;
	unsigned off;
	enum rewrite_math math;
	diags_init(&d, &allocator_default);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		tap_ok(rewrite_read_families(rows[i].text, &off, &d) && off == rows[i].off, "'%s' is off %x",
		       rows[i].text, rows[i].off);
	for (int i = 0; i < REWRITE_FAMILIES; i++)
		tap_ok(rewrite_read_families(rewrite_family_spelling(i), &off, &d) &&
			   off == (ALL & ~(1u << i)),
		       "'%s' is a family", rewrite_family_spelling(i));
	tap_ok(!rewrite_family_spelling(REWRITE_FAMILIES), "there are no more");
	for (int i = 0; rewrite_math_spelling(i); i++)
		tap_ok(rewrite_read_math(rewrite_math_spelling(i), &math, &d) && (int)math == i,
		       "'%s' is math", rewrite_math_spelling(i));
	tap_ok(d.n == 0 && math == REWRITE_FAST, "all without a word");
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		tap_ok(!rewrite_read_families(refused[i], &off, &d) && d.n == i + 1 &&
			   d.at[i].id == DIAG_BAD_ARGUMENT,
		       "'%s' is refused", refused[i]);
	tap_ok(!rewrite_read_math("fastest", &math, &d), "'fastest' is no math");
	bool finite = true;
	tap_ok(rewrite_read_assumption("nothing", &finite, &d) && !finite, "nothing is assumed");
	tap_ok(rewrite_read_assumption("finite", &finite, &d) && finite, "or that numbers are finite");
	tap_ok(!rewrite_read_assumption("normal", &finite, &d), "'normal' is no assumption");
	diags_free(&d);
	return tap_done();
}
