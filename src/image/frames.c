/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/frames.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Of an entry: its length, without that of the length; 0 in a common entry, or the distance back to it; in
 * the entry of a function the place of the function, relative, and its bytes. */
enum { LENGTH = 0, COMMON = 4, BEGIN = 8, RANGE = 12, LEAST = 17 };
/* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
enum { RELATIVE = 0x1b };

static int32_t word_at(const unsigned char *at)
{
	int32_t word;
	memcpy(&word, at, sizeof word);
	return word;
}

static void put_word(unsigned char *at, int32_t word)
{
	memcpy(at, &word, sizeof word);
}

/* The bytes of the entry at an offset with its length; 0 = the zero at the end, -1 = it does not fit. */
static int64_t entry_bytes(const struct image_frames *f, int64_t at)
{
	if (f->size - at < (int64_t)sizeof(int32_t))
		return -1;
	int64_t length = (uint32_t)word_at(f->bytes + at);
	if (!length)
		return 0;
	return length < LEAST - COMMON || length > f->size - at - COMMON ? -1 : length + COMMON;
}

/* Skips a number of seven bits a byte; false past the end. */
static bool skip_number(const unsigned char **at, const unsigned char *end)
{
	while (*at < end && **at & 0x80)
		++*at;
	return (*at)++ < end;
}

/* Version 1, the augmentation, two factors, a register, and the one byte that the augmentation has. */
static bool is_common(const struct image_frames *f, int64_t at, int64_t bytes)
{
	const unsigned char *p = f->bytes + at + BEGIN, *end = f->bytes + at + bytes;
	if (word_at(f->bytes + at + COMMON) || memcmp(p, "\1zR", 4) != 0)
		return false;
	p += 4;
	for (int i = 0; i < 3; i++)
		if (!skip_number(&p, end))
			return false;
	return end - p >= 2 && p[0] == 1 && p[1] == RELATIVE;
}

/* The offset of the common entry of a function's. */
static int64_t common_of(const struct image_frames *f, int64_t at)
{
	return at + COMMON - word_at(f->bytes + at + COMMON);
}

static int64_t begin_of(const struct image_frames *f, int64_t at)
{
	return f->place + at + BEGIN + word_at(f->bytes + at + BEGIN);
}

static bool is_function(const struct image_frames *f, int64_t at, int64_t limit)
{
	int64_t common = common_of(f, at), bytes = common >= 0 && common < at ? entry_bytes(f, common) : -1;
	int64_t begin = begin_of(f, at), range = word_at(f->bytes + at + RANGE);
	return bytes > 0 && is_common(f, common, bytes) && begin >= 0 && begin < limit && range >= 0 &&
	       range <= limit - begin;
}

bool image_check_frames(const struct image_frames *f, int64_t limit)
{
	int64_t at = 0, bytes;
	for (; (bytes = entry_bytes(f, at)) > 0; at += bytes)
		if (!is_common(f, at, bytes) && !is_function(f, at, limit))
			return false;
	return bytes == 0 && at + (int64_t)sizeof(int32_t) == f->size;
}

bool image_next_frame(const struct image_frames *f, int64_t *at, int64_t *place, int64_t *bytes)
{
	int64_t entry = *at, size;
	while ((size = entry_bytes(f, entry)) > 0 && !word_at(f->bytes + entry + COMMON))
		entry += size;
	if (size <= 0)
		return false;
	*place = begin_of(f, entry);
	*bytes = word_at(f->bytes + entry + RANGE);
	*at = entry + size;
	return true;
}

int64_t image_copy_frame(const struct image_frames *f, int64_t place, int64_t distance, unsigned char *to)
{
	int64_t at = 0, bytes = 0;
	while (f->bytes && (bytes = entry_bytes(f, at)) > 0 &&
	       (!word_at(f->bytes + at + COMMON) || begin_of(f, at) != place))
		at += bytes;
	if (!f->bytes || bytes <= 0)
		return 0;
	int64_t common = common_of(f, at), first = entry_bytes(f, common);
	if (to) {
		memcpy(to, f->bytes + common, first);
		memcpy(to + first, f->bytes + at, bytes);
		put_word(to + first + COMMON, first + COMMON);
		put_word(to + first + BEGIN, -(distance + first + BEGIN));
		put_word(to + first + bytes, 0);
	}
	return first + bytes + (int64_t)sizeof(int32_t);
}

/* Version 1; how addresses are written (relative to their place; as 32 bits; relative to the header); the
 * copy; the table of one function: where it begins, and its entry. */
void image_put_frame_header(unsigned char *to, const unsigned char *copy, int64_t bytes, int64_t distance)
{
	static const unsigned char forms[] = {1, RELATIVE, 0x03, 0x3b};
	int64_t first = (uint32_t)word_at(copy) + COMMON;
	memcpy(to, forms, sizeof forms);
	put_word(to + 4, -(bytes + 4));
	put_word(to + 8, 1);
	put_word(to + 12, -(distance + bytes));
	put_word(to + 16, first - bytes);
}

/* --- the unwinder --- */

/* A function of the unwinder, if it is here: loading it would take longer than many a program runs. */
static void (*find_function(const char *name))(const void *)
{
	void *library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD),
	     *found = library ? dlsym(library, name) : NULL;
	void (*function)(const void *) = NULL;
	memcpy(&function, &found, sizeof function);
	if (library)
		dlclose(library);
	return function;
}

bool image_register_frames(const void *frames)
{
	void (*tell)(const void *) = find_function("__register_frame");
	if (tell)
		tell(frames);
	return tell;
}

void image_deregister_frames(const void *frames)
{
	void (*tell)(const void *) = find_function("__deregister_frame");
	if (tell)
		tell(frames);
}
