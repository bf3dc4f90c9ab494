/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* https://github.com/huggingface/safetensors#format: the length of the header, the header, the values. */
#include "io/write.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "values are little-endian in the file and in memory");

enum { ALIGNMENT = 8 };

static void put_tensor(struct str *s, const struct io_tensor *t, int64_t begin)
{
	str_json(s, t->name);
	str_printf(s, ":{\"dtype\":\"%s\",\"shape\":[", dtype_traits_of(t->dtype)->safetensors);
	for (int i = 0; i < t->rank; i++)
		str_printf(s, "%s%lld", i ? "," : "", (long long)t->shape[i]);
	str_printf(s, "],\"data_offsets\":[%lld,%lld]}", (long long)begin,
		   (long long)(begin + io_tensor_bytes(t)));
}

static void put_metadata(struct str *s, const struct io_pair *text, int texts)
{
	str_puts(s, "\"__metadata__\":{");
	for (int i = 0; i < texts; i++) {
		str_puts(s, i ? "," : "");
		str_json(s, text[i].key);
		str_puts(s, ":");
		str_json(s, text[i].value);
	}
	str_puts(s, "}");
}

/* Blanks at the end align the values. */
static struct str header_of(struct arena *a, const struct io_pair *text, int texts, const struct io_tensor *t, int n)
{
	struct str s = str_in(a);
	int64_t begin = 0;
	str_puts(&s, "{");
	if (texts)
		put_metadata(&s, text, texts);
	for (int i = 0; i < n; i++) {
		str_puts(&s, i || texts ? "," : "");
		put_tensor(&s, &t[i], begin);
		begin += io_tensor_bytes(&t[i]);
	}
	str_puts(&s, "}");
	while (s.n % ALIGNMENT)
		str_puts(&s, " ");
	return s;
}

bool io_safetensors_write_with(struct arena *a, struct diags *diags, const char *path, const struct io_pair *text, int texts,
			       const struct io_tensor *t, int n)
{
	struct str header = header_of(a, text, texts, t, n);
	uint64_t length = header.n;
	struct io_piece *piece = ARENA_ARRAY(a, struct io_piece, n + 2);
	piece[0] = (struct io_piece){&length, sizeof length};
	piece[1] = (struct io_piece){header.text, (int64_t)header.n};
	for (int i = 0; i < n; i++)
		piece[i + 2] = (struct io_piece){t[i].values, io_tensor_bytes(&t[i])};
	return io_write_file(a, diags, path, piece, n + 2);
}

bool io_safetensors_write(struct arena *a, struct diags *diags, const char *path, const struct io_tensor *t,
			  int n)
{
	return io_safetensors_write_with(a, diags, path, NULL, 0, t, n);
}
