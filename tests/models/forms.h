/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Texts that grow, and shapes of symbols: what random model texts are made of. */
#ifndef ESPALIER_TESTS_MODELS_FORMS_H
#define ESPALIER_TESTS_MODELS_FORMS_H

#include "tests/models/helper.h"

#include <ctype.h>
#include <stdarg.h>

/* --- text --- */

struct text {
	char at[2 * (1 << 16)];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static inline void put(struct text *t, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int n = vsnprintf(t->at + t->n, sizeof t->at - t->n, format, list);
	va_end(list);
	t->n += t->n + n < sizeof t->at ? (size_t)n : 0;
}

/* --- shapes --- */

enum { SYMBOLS = 3 };

struct extent {
	int of[SYMBOLS], plus; /* of[0]*A + of[1]*B + of[2]*C + plus */
};

/* A shape and the type of its elements, f32 unless another is set.  An exact f32 is the same number however
 * arithmetic rounds: what jumps, as a comparison does, may depend on it. */
struct form {
	int rank;
	struct extent dim[RA_MAX_RANK];
	enum dtype dtype;
	bool exact;
};

struct named {
	char name[24];
	struct form form;
	enum dtype stored; /* of an input or a parameter: the form's type, or a narrower one */
	bool table;	   /* of a parameter: it has an axis V before these */
};

/* Whether what has one form can stand where the other is wanted. */
static inline bool fits_form(const struct form *has, const struct form *wanted)
{
	return has->rank == wanted->rank &&
	       memcmp(has->dim, wanted->dim, has->rank * sizeof *has->dim) == 0 &&
	       has->dtype == wanted->dtype && (has->exact || !wanted->exact);
}

static inline struct extent random_extent(void)
{
	struct extent e = {{0}, 0};
	int kind = random_below(10);
	if (kind == 0)
		e.plus = 1 + random_below(5);
	else
		e.of[random_below(SYMBOLS)]++;
	if (kind < 3)
		e.of[random_below(SYMBOLS)]++;
	return e;
}

static inline struct form random_form(int most)
{
	static const int ranks[] = {0, 1, 1, 1, 1, 2, 2, 3};
	struct form f = {.rank = ranks[random_below(8)]};
	f.rank = f.rank > most ? most : f.rank;
	for (int d = 0; d < f.rank; d++)
		f.dim[d] = random_extent();
	return f;
}

static inline void put_extent(struct text *t, const struct extent *e)
{
	bool any = false;
	for (int i = 0; i < SYMBOLS; i++)
		if (e->of[i]) {
			put(t, any ? " + " : "");
			if (e->of[i] > 1)
				put(t, "%d*", e->of[i]);
			put(t, "%c", 'A' + i);
			any = true;
		}
	if (e->plus || !any)
		put(t, any ? " + %d" : "%d", e->plus);
}

static inline void put_dims(struct text *t, const struct form *f)
{
	for (int d = 0; d < f->rank; d++) {
		put(t, d ? ", " : "");
		put_extent(t, &f->dim[d]);
	}
}

static inline void put_form(struct text *t, const struct form *f)
{
	put(t, f->rank ? "[" : "");
	put_dims(t, f);
	put(t, f->rank ? "]" : "");
}

/* " : i32"; nothing for f32. */
static inline void put_type(struct text *t, enum dtype dtype)
{
	if (dtype != DTYPE_F32)
		put(t, " : %s", dtype_traits_of(dtype)->spelling);
}

#endif
