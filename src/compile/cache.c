/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "compile/cache.h"

#include "image/image_file.h"
#include "io/file.h"
#include "io/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { LARGEST = 64 << 20 }; /* size of a kept program [bytes] */

/* --- the folder --- */

/* As the XDG base directory specification has it: a path that is not absolute is ignored. */
static const char *read_absolute_path(const char *name)
{
	const char *path = getenv(name);
	return path && path[0] == '/' ? path : NULL;
}

const char *cache_folder(const struct cache *c, struct arena *a, const char *name)
{
	struct str path = str_in(a);
	const char *cache = read_absolute_path("XDG_CACHE_HOME"), *home = read_absolute_path("HOME");
	if (c->off || getauxval(AT_SECURE))
		return NULL;
	if (c->folder)
		str_printf(&path, "%s/%s", c->folder, name);
	else if (cache)
		str_printf(&path, "%s/espalier/%s", cache, name);
	else if (home)
		str_printf(&path, "%s/.cache/espalier/%s", home, name);
	else
		return NULL;
	return path.text;
}

static void note_folder(const char *folder, const struct io_store *s, struct diags *notices)
{
	diag_add(
	    notices, DIAG_CACHE_UNUSABLE, (struct diag_at){.file = folder},
	    "make the folder private (chmod 700) and its disk writable, name another one that only you and "
	    "the system can write above, or turn the cache off",
	    "compiled programs are not kept in '%s': %s", folder, s->problem);
}

static void note_entry(const char *folder, const char *problem, struct diags *notices)
{
	diag_add(notices, DIAG_CACHE_ENTRY_DAMAGED, (struct diag_at){.file = folder}, NULL,
		 "a compiled program kept in '%s' is not used: %s", folder, problem);
}

static void note_status(enum io_store_status status, const char *folder, const struct io_store *s,
			struct diags *notices)
{
	if (status == IO_STORE_REFUSED)
		note_folder(folder, s, notices);
	if (status == IO_STORE_DAMAGED)
		note_entry(folder, s->problem, notices);
}

/* --- finding --- */

/* Reads an entry into the arena.  The arena may escape: nothing else is held then. */
static bool read_file(const char *folder, struct arena *a, const char *key, void **bytes, size_t *n,
		      struct diags *notices)
{
	struct checksum name = checksum_of(key, strlen(key));
	struct io_store s;
	enum io_store_status status = io_store_open(&s, folder, false);
	if (status == IO_STORE_OK)
		status = io_store_read(&s, a, &name, LARGEST, bytes, n);
	io_store_close(&s);
	note_status(status, folder, &s, notices);
	return status == IO_STORE_OK;
}

/* Whether a tool that made the code has changed since. */
static bool is_stale(const struct image *image)
{
	int64_t size, modified;
	for (int i = 0; i < image->tools; i++) {
		const struct image_tool *t = &image->tool[i];
		if (!io_stat(t->path, &size, &modified) || size != t->size || modified != t->modified)
			return true;
	}
	return false;
}

/* Reads an image; its diagnostic becomes a notice. */
static bool read_image(const char *folder, struct arena *a, const void *bytes, size_t n, struct image *image,
		       struct diags *notices)
{
	size_t before = notices->n;
	if (image_read(a, bytes, n, image, notices))
		return true;
	note_entry(folder, notices->n > before ? notices->at[before].message : "no memory", notices);
	return false;
}

bool cache_find(const struct cache *c, struct arena *a, const char *key, struct image *image,
		struct diags *notices)
{
	const char *folder = key ? cache_folder(c, a, "images") : NULL;
	void *bytes;
	size_t n;
	if (!folder || !read_file(folder, a, key, &bytes, &n, notices) ||
	    !read_image(folder, a, bytes, n, image, notices))
		return false;
	if (strcmp(image->key, key) == 0)
		return !is_stale(image);
	note_entry(folder, "it is another program, under a name that is not its own", notices);
	return false;
}

/* --- keeping --- */

static void write_file(const char *folder, const struct cache *c, struct arena *a, const char *key,
		       const struct str *bytes, struct diags *notices)
{
	uint64_t limit = c->limit ? c->limit : CACHE_LIMIT;
	struct checksum name = checksum_of(key, strlen(key));
	struct io_store s;
	if (bytes->n > limit || bytes->n > LARGEST)
		return;
	enum io_store_status status = io_store_open(&s, folder, true);
	if (status == IO_STORE_OK)
		status = io_store_write(&s, &name, bytes->text, bytes->n);
	if (status == IO_STORE_OK)
		io_store_trim(&s, a, limit);
	io_store_close(&s);
	note_status(status, folder, &s, notices);
}

static void keep_image(const struct cache *c, struct arena *a, const struct image *image,
		       struct diags *notices)
{
	const char *folder = cache_folder(c, a, "images");
	struct str bytes = str_in(a);
	if (!folder)
		return;
	image_write(image, &bytes);
	write_file(folder, c, a, image->key, &bytes, notices);
}

void cache_keep(const struct cache *c, const struct allocator *allocator, const struct image *image,
		struct diags *notices)
{
	struct arena a;
	jmp_buf escape;
	if (!image->key)
		return;
	arena_init(&a, allocator);
	if (!arena_guard(&a, &escape))
		keep_image(c, &a, image, notices);
	arena_free(&a);
}

/* --- listings --- */

const char *cache_listing(const struct cache *c, struct arena *a, const char *listing, struct diags *notices)
{
	struct checksum name = checksum_of(listing, strlen(listing));
	const char *folder = cache_folder(c, a, "listings");
	struct str path = str_in(a);
	if (folder)
		write_file(folder, c, a, listing,
			   &(struct str){.text = (char *)listing, .n = strlen(listing)}, notices);
	str_printf(&path, "%s/", folder ? folder : "");
	for (size_t i = 0; i < sizeof name.bytes; i++)
		str_printf(&path, "%02x", name.bytes[i]);
	return path.text;
}
