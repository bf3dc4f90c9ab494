#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct str *s, size_t more)
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
	reserve(s, length);
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
		reserve(s, length);
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

const char *str_text(const struct str *s)
{
	return s->text ? s->text : "";
}

void str_float(struct str *s, float value)
{
	char text[32];
	for (int digits = 1; digits <= 9; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtof(text, NULL) == value || value != value)
			break;
	}
	str_puts(s, text);
}
