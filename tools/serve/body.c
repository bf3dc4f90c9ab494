/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "body.h"

#include "base/convert.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and a NUL; NULL = there is none. */
static char *reserve(struct body *b, size_t more)
{
	if (b->lost || more < b->capacity - b->n)
		return b->lost ? NULL : b->text + b->n;
	size_t capacity = b->capacity ? b->capacity : 512;
	while (capacity - b->n <= more && capacity <= SIZE_MAX / 2)
		capacity *= 2;
	char *text = capacity - b->n > more ? realloc(b->text, capacity) : NULL;
	if (!text) {
		b->lost = true;
		return NULL;
	}
	b->text = text;
	b->capacity = capacity;
	return text + b->n;
}

void body_add(struct body *b, const char *text, size_t length)
{
	char *to = reserve(b, length);
	if (!to)
		return;
	memcpy(to, text, length);
	b->n += length;
}

void body_puts(struct body *b, const char *text)
{
	body_add(b, text, strlen(text));
}

void body_integer(struct body *b, int64_t i)
{
	char digits[24];
	int n = sizeof digits;
	uint64_t rest = i < 0 ? -(uint64_t)i : (uint64_t)i;
	do
		digits[--n] = (char)('0' + rest % 10);
	while (rest /= 10);
	if (i < 0)
		digits[--n] = '-';
	body_add(b, digits + n, sizeof digits - n);
}

/* A character that a string of JSON cannot hold as it is. */
static void put_escape(struct body *b, unsigned char c)
{
	char escape[8];
	int n = c == '"' || c == '\\' ? sprintf(escape, "\\%c", c) : sprintf(escape, "\\u%04x", c);
	body_add(b, escape, n);
}

void body_string(struct body *b, const char *text, size_t length)
{
	size_t i = 0, from = 0;
	body_add(b, "\"", 1);
	while (i < length) {
		unsigned char c = text[i];
		size_t n = c < 0x80 ? 1 : utf8_length(text + i, length - i);
		if (n && c >= ' ' && c != '"' && c != '\\' && c != 0x7f) {
			i += n;
			continue;
		}
		body_add(b, text + from, i - from);
		if (n)
			put_escape(b, c);
		else
			body_puts(b, "\\ufffd");
		from = ++i;
	}
	body_add(b, text + from, length - from);
	body_add(b, "\"", 1);
}

static float float_at(const void *row, esp_dtype dtype, size_t i)
{
	return dtype == ESP_F32	  ? ((const float *)row)[i]
	       : dtype == ESP_F16 ? f32_of_f16(((const uint16_t *)row)[i])
				  : f32_of_bf16(((const uint16_t *)row)[i]);
}

static int64_t integer_at(const void *row, esp_dtype dtype, size_t i)
{
	switch (dtype) {
	case ESP_I64:
		return ((const int64_t *)row)[i];
	case ESP_I32:
		return ((const int32_t *)row)[i];
	case ESP_I16:
		return ((const int16_t *)row)[i];
	case ESP_I8:
		return ((const int8_t *)row)[i];
	default:
		return ((const uint8_t *)row)[i];
	}
}

void body_elements(struct body *b, const void *elements, esp_dtype dtype, size_t n)
{
	bool floats = dtype == ESP_F32 || dtype == ESP_F16 || dtype == ESP_BF16;
	for (size_t i = 0; i < n; i++) {
		char *to = floats ? reserve(b, FLOAT_BYTES + 1) : NULL;
		if (to) {
			*to = ',';
			b->n += put_float(to + (i > 0), float_at(elements, dtype, i)) + (i > 0);
			continue;
		}
		if (i)
			body_add(b, ",", 1);
		if (dtype == ESP_BOOL)
			body_puts(b, integer_at(elements, dtype, i) ? "true" : "false");
		else if (!floats)
			body_integer(b, integer_at(elements, dtype, i));
	}
}

char *body_take(struct body *b, size_t *n)
{
	char *text = b->lost || !reserve(b, 1) ? NULL : b->text;
	if (text)
		text[b->n] = 0;
	else
		free(b->text);
	*n = text ? b->n : 0;
	*b = (struct body){0};
	return text;
}
