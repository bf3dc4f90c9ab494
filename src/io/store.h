/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A private folder of files by 128-bit key.
 *
 * The folder is made with mode 0700.  It is used only while it is a real folder that belongs to the effective
 * user, that nobody else can read, and that nobody else can replace by another one (io/folder.h); a
 * file in it only while it is a regular file of that user which nobody else can write, and which has no other
 * name.  Files appear complete, by renaming, but are not synced to the disk: a power cut may damage those
 * that were written last.  Any number of processes may read and write at once, and a file may vanish at any
 * time.  Checking the contents is left to the caller. */
#ifndef ESPALIER_IO_STORE_H
#define ESPALIER_IO_STORE_H

#include "base/checksum.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum io_store_status {
	IO_STORE_OK,
	IO_STORE_ABSENT,  /* no such folder, or no such file in it */
	IO_STORE_REFUSED, /* the folder is unsafe, or a system call failed; see `problem` */
	IO_STORE_DAMAGED  /* the file is not what was written; see `problem` */
};

struct io_store {
	int folder; /* descriptor; -1 = closed */
	char problem[160];
};

/* Opens the folder `path`; with `create`, makes it and those above it where they are missing. */
enum io_store_status io_store_open(struct io_store *, const char *path, bool create);
void io_store_close(struct io_store *);

/* A file's content, at most `limit` bytes, in the arena; never escapes.  Marks the file as used. */
enum io_store_status io_store_read(struct io_store *, struct arena *, const struct checksum *key,
				   size_t limit, void **bytes, size_t *n);
/* Puts a file in place of whatever has the key. */
enum io_store_status io_store_write(struct io_store *, const struct checksum *key, const void *bytes,
				    size_t n);
/* Whether this process can write in the folder and now holds the exclusive right that this function gives,
 * until the store is closed. */
bool io_store_claim(const struct io_store *);
/* Removes the files that were used least recently until the rest has `limit` bytes, and temporary files of
 * writers that died.  The scratch arena is left to its owner; never escapes. */
void io_store_trim(struct io_store *, struct arena *scratch, uint64_t limit);

#endif
