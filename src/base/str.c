/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve_bytes(struct str *s, size_t more)
{
	if (s->n + more < s->capacity)
		return;
	size_t capacity = s->capacity ? s->capacity : 64;
	while (capacity <= s->n + more)
		capacity *= 2;
	char *text = arena_take(s->arena, capacity, 1);
	if (s->n)
		memcpy(text, s->text, s->n);
	s->text = text;
	s->capacity = capacity;
}

void str_add(struct str *s, const char *text, size_t length)
{
	reserve_bytes(s, length);
	memcpy(s->text + s->n, text, length);
	s->text[s->n += length] = 0;
}

void str_puts(struct str *s, const char *text)
{
	str_add(s, text, strlen(text));
}

void str_vprintf(struct str *s, const char *format, va_list args)
{
	va_list again;
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	if (length > 0) {
		reserve_bytes(s, length);
		vsnprintf(s->text + s->n, length + 1, format, again);
		s->n += length;
	}
	va_end(again);
}

void str_printf(struct str *s, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	str_vprintf(s, format, args);
	va_end(args);
}

const char *str_format(struct arena *a, const char *format, ...)
{
	struct str s = str_in(a);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	return str_text(&s);
}

const char *str_text(const struct str *s)
{
	return s->text ? s->text : "";
}

void str_json(struct str *s, const char *text)
{
	str_puts(s, "\"");
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
			str_printf(s, "\\u%04x", *text);
		else
			str_add(s, text, 1);
	str_puts(s, "\"");
}

void str_python(struct str *s, const char *text)
{
	str_puts(s, "'");
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f || *text == '\'' || *text == '\\')
			str_printf(s, "\\x%02x", *text);
		else
			str_add(s, text, 1);
	str_puts(s, "'");
}

/* --- numbers, as the C locale writes them --- */

static void write_number(struct str *s, double value, int most_digits, bool (*is_same)(const char *, double))
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = c ? uselocale(c) : (locale_t)0;
	char text[40];
	for (int digits = 1; digits <= most_digits; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (is_same(text, value))
			break;
	}
	if (c) {
		uselocale(old);
		freelocale(c);
	}
	str_puts(s, text);
}

static bool is_same_double(const char *text, double value)
{
	return strtod(text, NULL) == value || value != value;
}

static bool is_same_float(const char *text, double value)
{
	return strtof(text, NULL) == (float)value || value != value;
}

void str_double(struct str *s, double value)
{
	write_number(s, value, 17, is_same_double);
}

void str_float(struct str *s, float value)
{
	write_number(s, value, 9, is_same_float);
}
