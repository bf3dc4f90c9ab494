/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/members.h"

#include <string.h>

struct reading {
	struct arena *arena;
	const char *at, *end; /* of the tables */
	const char *problem;  /* NULL = none */
	const char *where;
};

static bool refuse_member(struct reading *r, const struct member *m, const char *problem)
{
	r->problem = problem;
	r->where = m->name;
	return false;
}

static bool get_word(struct reading *r, const struct member *m, int64_t low, int64_t high, int64_t *word)
{
	if ((size_t)(r->end - r->at) < sizeof *word)
		return refuse_member(r, m, "it ends too early");
	memcpy(word, r->at, sizeof *word);
	r->at += sizeof *word;
	return (*word >= low && *word <= high) || refuse_member(r, m, "a number is out of its range");
}

static bool get_number(struct reading *r, const struct member *m, char *to)
{
	int64_t word;
	if (!get_word(r, m, m->low, m->high, &word))
		return false;
	int32_t narrow = word;
	if (m->size == sizeof word)
		memcpy(to, &word, sizeof word);
	else if (m->size == sizeof narrow)
		memcpy(to, &narrow, sizeof narrow);
	else
		*(bool *)to = word;
	return true;
}

static bool get_text(struct reading *r, const struct member *m, const char **text)
{
	int64_t n;
	if (!get_word(r, m, 0, INT32_MAX, &n))
		return false;
	size_t bytes = (n / sizeof n + 1) * sizeof n;
	if ((size_t)(r->end - r->at) < bytes || strnlen(r->at, n + 1) != (size_t)n)
		return refuse_member(r, m, "a text does not end where it should");
	*text = r->at;
	r->at += bytes;
	return true;
}

static bool get_bytes(struct reading *r, const struct member *m, char *base)
{
	int64_t n;
	if (!get_word(r, m, 0, r->end - r->at, &n))
		return false;
	int64_t whole = (n + (int64_t)sizeof n - 1) / (int64_t)sizeof n * (int64_t)sizeof n;
	if (whole > r->end - r->at)
		return refuse_member(r, m, "it ends too early");
	memcpy(base + m->at, &r->at, sizeof r->at);
	memcpy(base + m->count, &n, sizeof n);
	r->at += whole;
	return true;
}

static bool get_structs(struct reading *r, const struct layout *l, char *at, size_t n);

/* Each element of a list takes at least a word, so the file bounds the memory. */
static bool get_list(struct reading *r, const struct member *m, char *base)
{
	int64_t n;
	if (!get_word(r, m, 0, (r->end - r->at) / (int64_t)sizeof n, &n))
		return false;
	int count = n;
	char *list = arena_take(r->arena, n, m->of->size);
	memcpy(base + m->at, &list, sizeof list);
	memcpy(base + m->count, &count, sizeof count);
	return get_structs(r, m->of, list, n);
}

static bool get_member(struct reading *r, const struct member *m, char *base)
{
	bool ok = true;
	switch (m->kind) {
	case NUMBER:
		for (size_t i = 0; ok && i < m->count; i++)
			ok = get_number(r, m, base + m->at + i * m->size);
		return ok;
	case TEXT:
		return get_text(r, m, (const char **)(base + m->at));
	case BYTES:
		return get_bytes(r, m, base);
	case INLINE:
		return get_structs(r, m->of, base + m->at, m->count);
	case LIST:
		return get_list(r, m, base);
	}
	return false;
}

static bool get_structs(struct reading *r, const struct layout *l, char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < l->members; k++)
			if (!get_member(r, &l->member[k], at + i * l->size))
				return false;
	return true;
}

/* The problem of the header; NULL = none, and sections lie inside of the file. */
static const char *check_header(const void *bytes, size_t n, struct header *h)
{
	if (n < sizeof *h)
		return "it is shorter than its header";
	memcpy(h, bytes, sizeof *h);
	if (memcmp(h->magic, image_magic, sizeof h->magic) != 0)
		return "it is no program image";
	if (h->size != n)
		return "it is not as long as it was";
	struct checksum sum;
	if (!image_take_checksum(bytes, n, h, &sum))
		return "a section lies outside of it";
	if (memcmp(&sum, &h->checksum, sizeof sum) != 0)
		return "its checksum is wrong";
	if (h->stamp != image_hash_members())
		return "it was written by another version";
	for (int s = 0; s < SECTIONS; s++)
		if (h->section[s].offset > n || h->section[s].size > n - h->section[s].offset)
			return "a section lies outside of it";
	return NULL;
}

static bool refuse_file(struct diags *diags, const char *where, const char *problem)
{
	return diag_add(diags, DIAG_BAD_IMAGE, (struct diag_at){0}, "compile the model again", "%s%s%s",
			where, *where ? ": " : "", problem);
}

/* Finds the packed weights that are in the tables.  NULL, or a problem. */
static const char *find_weights(struct image *image, const char *at, uint64_t size)
{
	struct image_packed *packed = (struct image_packed *)image->packed;
	for (int i = 0; i < image->packs; i++) {
		struct image_packed *p = &packed[i];
		uint64_t bytes = image_round_to_line(p->bytes);
		if (bytes > size)
			return "its weights end too early";
		p->at = bytes ? (const float *)at : NULL;
		struct image_packed found = image_pack(image, i, p->at);
		if (memcmp(found.sum, p->sum, sizeof found.sum) != 0)
			return "the checksum of its weights is wrong";
		at += bytes;
		size -= bytes;
	}
	return size ? "it has weights that are not in its tables" : NULL;
}

bool image_read(struct arena *arena, const void *bytes, size_t n, struct image *image, struct diags *diags)
{
	struct header h;
	const char *problem = check_header(bytes, n, &h), *base = bytes;
	*image = (struct image){0};
	if (problem)
		return refuse_file(diags, "", problem);
	const char *tables = base + h.section[TABLES].offset;
	struct reading r = {arena, tables, tables + h.section[TABLES].size, NULL, ""};
	struct image read = {.key = base + h.section[KEY].offset,
			     .blob.bytes = (const unsigned char *)base + h.section[CODE].offset,
			     .blob.size = h.section[CODE].size};
	if (!h.section[KEY].size || strnlen(read.key, h.section[KEY].size) != h.section[KEY].size - 1)
		return refuse_file(diags, "key", "a text does not end where it should");
	if (!get_structs(&r, &image_layout, (char *)&read, 1))
		return refuse_file(diags, r.where, r.problem);
	if (r.at != r.end)
		return refuse_file(diags, "", "its tables do not end where they should");
	if (!image_open_calls(arena, &read, diags) || !image_check(&read, diags))
		return false;
	if (read.packs && ((uintptr_t)base | h.section[WEIGHTS].offset) % IMAGE_LINE)
		return refuse_file(diags, "", "its weights do not begin at a multiple of 64 bytes");
	problem = find_weights(&read, base + h.section[WEIGHTS].offset, h.section[WEIGHTS].size);
	if (problem)
		return refuse_file(diags, "", problem);
	*image = read;
	return true;
}
