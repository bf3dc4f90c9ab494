/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/members.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "words are little-endian in the file and in memory");

static void put_word(struct str *s, int64_t word)
{
	str_add(s, (const char *)&word, sizeof word);
}

static void pad_to_word(struct str *s)
{
	str_add(s, "\0\0\0\0\0\0\0", -s->n % sizeof(int64_t));
}

static int64_t number_at(const char *at, size_t size)
{
	int64_t wide;
	int32_t narrow;
	if (size == sizeof wide)
		return memcpy(&wide, at, sizeof wide), wide;
	if (size == sizeof narrow)
		return memcpy(&narrow, at, sizeof narrow), narrow;
	return *(const bool *)at;
}

static void put_text(struct str *s, const char *text)
{
	text = text ? text : "";
	size_t n = strlen(text);
	put_word(s, n);
	str_add(s, text, n + 1);
	pad_to_word(s);
}

static void put_bytes(struct str *s, const char *bytes, int64_t n)
{
	put_word(s, n);
	str_add(s, bytes, n);
	pad_to_word(s);
}

static void put_structs(struct str *s, const struct layout *l, const char *at, size_t n);

static void put_member(struct str *s, const struct member *m, const char *base)
{
	const char *at = base + m->at, *list;
	int n;
	switch (m->kind) {
	case BYTES:
		put_bytes(s, *(const char *const *)at, number_at(base + m->count, sizeof(int64_t)));
		break;
	case NUMBER:
		for (size_t i = 0; i < m->count; i++)
			put_word(s, number_at(at + i * m->size, m->size));
		break;
	case TEXT:
		put_text(s, *(const char *const *)at);
		break;
	case INLINE:
		put_structs(s, m->of, at, m->count);
		break;
	case LIST:
		memcpy(&list, at, sizeof list);
		memcpy(&n, base + m->count, sizeof n);
		put_word(s, n);
		put_structs(s, m->of, list, n);
		break;
	}
}

static void put_structs(struct str *s, const struct layout *l, const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < l->members; k++)
			put_member(s, &l->member[k], at + i * l->size);
}

/* A section begins at a whole word, counted from the beginning of the file. */
static void begin_section(struct header *h, enum section which, struct str *s)
{
	pad_to_word(s);
	h->section[which].offset = s->n;
}

static void end_section(struct header *h, enum section which, const struct str *s)
{
	h->section[which].size = s->n - h->section[which].offset;
}

static void put_sections(const struct image *image, struct header *h, struct str *s)
{
	const char *key = image->key ? image->key : "";
	str_add(s, (const char *)h, sizeof *h);
	begin_section(h, KEY, s);
	str_add(s, key, strlen(key) + 1);
	end_section(h, KEY, s);
	begin_section(h, TABLES, s);
	put_structs(s, &image_layout, (const char *)image, 1);
	end_section(h, TABLES, s);
	begin_section(h, CODE, s);
	if (image->blob.size)
		str_add(s, (const char *)image->blob.bytes, image->blob.size);
	end_section(h, CODE, s);
}

static const char zeros[IMAGE_PAGE];

/* Writes everything before the weights. */
static void put_head(const struct image *image, struct str *s)
{
	struct header h = {.stamp = image_hash_members()};
	memcpy(h.magic, image_magic, sizeof h.magic);
	put_sections(image, &h, s);
	if (image->packs)
		str_add(s, zeros, -s->n % IMAGE_PAGE);
	h.section[WEIGHTS].offset = s->n;
	for (int i = 0; i < image->packs; i++)
		h.section[WEIGHTS].size += image_round_to_line(image->packed[i].bytes);
	h.size = s->n + h.section[WEIGHTS].size;
	memcpy(s->text, &h, sizeof h);
	image_seal(s->text, s->n);
}

int image_pieces(const struct image *image, struct arena *a, const struct io_piece **pieces)
{
	struct io_piece *piece = ARENA_ARRAY(a, struct io_piece, 1 + 2 * (size_t)image->packs);
	struct str head = str_in(a);
	int n = 0;
	put_head(image, &head);
	piece[n++] = (struct io_piece){head.text, head.n};
	for (int i = 0; i < image->packs; i++) {
		const struct image_packed *p = &image->packed[i];
		if (!p->at)
			continue;
		piece[n++] = (struct io_piece){p->at, p->bytes};
		piece[n++] = (struct io_piece){zeros, image_round_to_line(p->bytes) - p->bytes};
	}
	*pieces = piece;
	return n;
}

void image_write(const struct image *image, struct str *out)
{
	const struct io_piece *piece;
	int n = image_pieces(image, out->arena, &piece);
	for (int i = 0; i < n; i++)
		str_add(out, piece[i].bytes, piece[i].n);
}

struct image_packed image_pack(const struct image *image, int recipe, const void *at)
{
	struct image_packed p = {.at = at};
	if (!at)
		return p;
	p.bytes = image_recipe_bytes(&image->recipe[recipe]);
	struct checksum sum = checksum_of(at, p.bytes);
	memcpy(p.sum, &sum, sizeof p.sum);
	return p;
}
