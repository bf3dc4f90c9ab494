/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Text under construction, in an arena: what every printer writes to. */
#ifndef ESPALIER_BASE_STR_H
#define ESPALIER_BASE_STR_H

#include "base/memory.h"

#include <stdarg.h>

struct str {
	struct arena *arena;
	char *text; /* terminated once anything was written; str_text() is never NULL */
	size_t n, capacity;
};

static inline struct str str_in(struct arena *a)
{
	return (struct str){.arena = a};
}

void str_add(struct str *, const char *text, size_t length);
void str_puts(struct str *, const char *text);
__attribute__((format(printf, 2, 3))) void str_printf(struct str *, const char *format, ...);
__attribute__((format(printf, 2, 0))) void str_vprintf(struct str *, const char *format, va_list);
const char *str_text(const struct str *);
/* A text of its own. */
__attribute__((format(printf, 2, 3))) const char *str_format(struct arena *, const char *format, ...);
/* As a string of JSON or of Python, in quotes. */
void str_json(struct str *, const char *text);
void str_python(struct str *, const char *text);

/* The shortest decimal spelling that reads back as the same number, whatever the locale of the process. */
void str_float(struct str *, float);
void str_double(struct str *, double);

#endif
