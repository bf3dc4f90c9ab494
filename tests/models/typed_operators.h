/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators between values of several types: arithmetic of integers, comparisons, conversions, choices. */
#ifndef ESPALIER_TESTS_MODELS_TYPED_OPERATORS_H
#define ESPALIER_TESTS_MODELS_TYPED_OPERATORS_H

#include "tests/models/atoms.h"

/* --- texts: % and a letter stand for an argument, or for a word --- */

/* r, f   an f32: any; one on which a jump may depend
 * n, l   an i32, an i64
 * i      of the type of the value
 * b      a bool
 * t      no argument: the name of the value's type */
#define CLAMPED(x) "minimum(maximum(" x ", -9), 9)"

static const char *const rounded_texts[] = {
    CLAMPED("cast(%n, f32)"), CLAMPED("cast(%l, f32)"), "cast(%b, f32)", "where(%b, %r, %r)",
    "where(%b, %r, 0)",	      "round(%f)",		"floor(%f)",	 "(0.25 * round(4 * %f))",
    "sin(%r)",		      "cos(%r)",		"atan(%r)",		"(%r * %f)",	 "(%r * cast(%b, f32))",
};

static const char *const exact_texts[] = {
    CLAMPED("cast(%n, f32)"), CLAMPED("cast(%l, f32)"), "cast(%b, f32)", "where(%b, %f, %f)", "round(%f)",
    "floor(%f)",	      "(-%f)",			"abs(%f)",	 "maximum(%f, %f)",   "minimum(%f, %f)",
    CLAMPED("4 * %f"),	      "sign(%f)",		"ceil(%f)",	      "relu(%f)",		"minimum(%f, 0.5)",
};

static const char *const integer_texts[] = {
    "(-%i)",	       "abs(%i)",	     "(%i + %i)",	       "(%i - %i)",
    "(%i * %i)",       "(%i + %i)",	     "(%i * %i)",	       "maximum(%i, %i)",
    "minimum(%i, %i)", "where(%b, %i, %i)",  "where(%b, 2, %i)",       "(3 - %i)",
    "(2 * %i)",	       "minimum(%i, 7)",     "relu(%i)",	       "square(%i)",
    "cast(%f, %t)",    "cast(8 * %f, %t)",   "cast(round(4 * %f), %t)", "cast(floor(%f), %t)",
    "cast(%n, %t)",    "cast(%l, %t)",	     "cast(%b, %t)",	       "(q = %i; q * q - q)",
    "quotient(%i, %i)", "quotient(%i, 3)",   "modulo(%i, %i)",	       "remainder(%i, -7)",
};

static const char *const truth_texts[] = {
    "(%f < %f)",  "(%f <= %f)", "(%f > 0.1)", "(%f >= %f)",	"(%f == %f)",	   "(%n != %n)",
    "(%n < %n)",  "(%n == 3)",	"(%l > %l)",  "(%l <= %l)",	"(%l == %l)",	   "(%n >= 0)",
    "(%b and %b)", "(%b or %b)", "(not %b)",  "cast(%n, bool)", "cast(%l, bool)", "cast(%f, bool)",
    "where(%b, %b, %b)",
};

#define TEXTS(list) {list, sizeof(list) / sizeof *(list)}
static const struct {
	const char *const *at;
	int n;
} texts_of[KINDS] = {[ROUNDED] = TEXTS(rounded_texts),
		     [EXACT] = TEXTS(exact_texts),
		     [INTEGER] = TEXTS(integer_texts),
		     [TRUTH] = TEXTS(truth_texts)};

/* The form of the argument that a letter stands for. */
static inline struct form argument_form(struct generator *g, char letter, const struct form *f)
{
	switch (letter) {
	case 'f':
		return with_type(g, f, DTYPE_F32);
	case 'n':
		return with_type(g, f, DTYPE_I32);
	case 'l':
		return with_type(g, f, DTYPE_I64);
	case 'b':
		return with_type(g, f, DTYPE_BOOL);
	default:
		return *f;
	}
}

static inline int arguments_of(const char *text)
{
	int n = 0;
	for (; *text; text++)
		n += text[0] == '%' && text[1] != 't';
	return n;
}

/* One of the arguments has the shape of the value, others may be broadcast to it. */
static inline bool put_typed(struct generator *g, const struct form *f, int depth)
{
	const char *text = texts_of[kind_of(f)].at[random_below(texts_of[kind_of(f)].n)];
	for (int whole = random_below(arguments_of(text)); *text; text++) {
		if (*text != '%') {
			put(&g->body, "%c", *text);
		} else if (*++text == 't') {
			put(&g->body, "%s", dtype_traits_of(f->dtype)->spelling);
		} else {
			struct form a = argument_form(g, *text, f), unused = a;
			if (whole-- != 0)
				drop_axes(&a, random_below(3) ? 0 : random_below(f->rank + 1));
			if (whole != -1)
				make_ones(f, &unused, &a);
			put_value(g, &a, depth);
		}
	}
	return true;
}

/* --- positions --- */

static inline bool put_argmax(struct generator *g, const struct form *f, int depth)
{
	static const enum dtype types[] = {DTYPE_F32, DTYPE_I32, DTYPE_I64};
	struct form more = with_type(g, f, types[random_below(3)]);
	struct extent k = random_extent();
	int axis = random_below(f->rank + 1);
	if (f->dtype != DTYPE_I32 || f->rank == RA_MAX_RANK || too_large(g, f, &k))
		return false;
	insert_axis(&more, axis, k);
	put(&g->body, random_below(2) ? "argmax(" : "argmin(");
	put_value(g, &more, depth);
	put(&g->body, axis == f->rank ? ")" : ", axis=%d)", axis);
	return true;
}

/* --- truths over neighbours and nodes --- */

/* Whether the largest number of a neighbour, or of a node of the input, is zero or is not; one must exist. */
static inline bool put_any(struct generator *g, const struct form *f, int depth)
{
	struct form number = with_type(g, f, DTYPE_I32);
	bool zero = random_below(2), neighbours = has_neighbours(g) && g->where != IN_NODE;
	if (g->in_sum || g->flat)
		return false;
	g->over_nodes = !neighbours || random_below(4) == 0;
	put(&g->body, zero ? "(0 == " : "cast(");
	put_each(g, "max", &number, depth);
	put(&g->body, zero ? ")" : ", bool)");
	return true;
}

#endif
