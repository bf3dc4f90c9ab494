/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Options of rewriting as texts: families of rules, arithmetic, what is assumed, types of weights, precision. */
#include "rewrite/rewrite.h"

#include <stdio.h>
#include <string.h>

static const char *const families[] = {
#define REWRITE_FAMILY(name, spelling, meaning) spelling,
#include "rewrite/families.def"
#undef REWRITE_FAMILY
};

const char *rewrite_family_spelling(int family)
{
	return family < REWRITE_FAMILIES ? families[family] : NULL;
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* The families of one word as bits; 0 if there are none of that name. */
static unsigned bits_of(const char *text, size_t length)
{
	for (int i = 0; i < REWRITE_FAMILIES; i++)
		if (is_word(text, length, families[i]))
			return 1u << i;
	return is_word(text, length, "all") ? (1u << REWRITE_FAMILIES) - 1 : 0;
}

static bool refuse_family(const char *word, size_t length, struct diags *diags)
{
	char names[256] = "all, none";
	for (int i = 0; i < REWRITE_FAMILIES; i++) {
		size_t n = strlen(names);
		snprintf(names + n, sizeof names - n, ", %s", families[i]);
	}
	return diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0}, names,
			"there is no family of rules '%.*s'", length < 40 ? (int)length : 40, word);
}

/* Begins with all families if the text begins with a minus, else with none. */
bool rewrite_read_families(const char *text, unsigned *off, struct diags *diags)
{
	unsigned all = (1u << REWRITE_FAMILIES) - 1, on = *text == '-' ? all : 0;
	for (bool more = true; more; text++) {
		bool minus = *text == '-';
		const char *word = text + minus;
		size_t n = strcspn(word, ",");
		unsigned bits = bits_of(word, n);
		if (!bits && (minus || !is_word(word, n, "none")))
			return refuse_family(word, n, diags);
		on = minus ? on & ~bits : on | bits;
		text = word + n;
		more = *text == ',';
	}
	*off = all & ~on;
	return true;
}

static const char *const maths[] = {"exact", "reassociate", "fast"};

const char *rewrite_math_spelling(int math)
{
	return math < (int)(sizeof maths / sizeof *maths) ? maths[math] : NULL;
}

bool rewrite_read_math(const char *text, enum rewrite_math *math, struct diags *diags)
{
	for (int i = 0; rewrite_math_spelling(i); i++)
		if (strcmp(maths[i], text) == 0) {
			*math = i;
			return true;
		}
	return diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0}, "exact, reassociate, fast",
			"math cannot be '%.40s'", text);
}

const char *rewrite_assumption_spelling(bool finite)
{
	return finite ? "finite" : "nothing";
}

bool rewrite_read_assumption(const char *text, bool *finite, struct diags *diags)
{
	*finite = strcmp(text, "finite") == 0;
	return *finite || strcmp(text, "nothing") == 0 ||
	       diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0}, "nothing, finite", "'%.40s' cannot be assumed",
			text);
}

bool rewrite_read_weight_type(const char *text, enum dtype *dtype, struct diags *diags)
{
	static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I8};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(dtype_traits_of(types[i])->spelling, text) == 0) {
			*dtype = types[i];
			return true;
		}
	return diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0}, "f32, f16, bf16, i8", "weights cannot be kept as '%.40s'", text);
}

bool rewrite_read_precision(const char *text, enum precision *precision, struct diags *diags)
{
	return precision_read(text, precision) ||
	       diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0}, precision_list(), "the precision cannot be '%.40s'", text);
}
