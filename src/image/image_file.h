/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images as bytes, for caches and saved programs.
 *
 *   magic      8 bytes
 *   checksum   of all that follows but for the packed weights, 16 bytes
 *   stamp      the hash of the description that it was written by, 8 bytes
 *   size       of the file, 8 bytes
 *   sections   where key, tables, code and packed weights lie: offset and size, 8 bytes each
 *   key        image.key, terminated
 *   tables     the members of struct image in the order of the description in members.c: numbers and counts as
 *              64-bit words, texts as length, bytes and a zero, filled up to whole words
 *   code       image.blob.bytes
 *   weights    of each recipe that has packed ones, from the next multiple of 64 bytes on; the first at one
 * of IMAGE_PAGE.  Their checksums are in the tables
 *
 * Words are little-endian.  Everything but the code is checked, streams of the accelerator are verified: an image that image_read returns can be
 * bound, loaded and queried safely, whoever wrote it.  The code cannot be checked; so images are only read
 * from places that nobody else can write to. */
#ifndef ESPALIER_IMAGE_IMAGE_FILE_H
#define ESPALIER_IMAGE_IMAGE_FILE_H

#include "image/image.h"
#include "io/write.h"

enum { IMAGE_PAGE = 4096, IMAGE_LINE = 64 };

/* The bytes of an image, as pieces that follow each other; packed weights stay where they are, all else is in
 * the arena.  Loaded code (image.code) is left out.  Returns how many pieces there are. */
int image_pieces(const struct image *, struct arena *, const struct io_piece **);
/* Appends all these pieces. */
void image_write(const struct image *, struct str *);
/* The description of a recipe's packed weights at that address; NULL: there are none. */
struct image_packed image_pack(const struct image *, int recipe, const void *at);

/* Reads an image.  Texts, code and weights stay in `bytes`, which must outlive it, and begin at a multiple of
 * IMAGE_LINE if there may be weights; tables are in the arena.  False after `bad-image`. */
bool image_read(struct arena *, const void *bytes, size_t n, struct image *, struct diags *);
/* Corrects the checksum, for images that were changed by hand. */
void image_seal(void *bytes, size_t n);

/* Reads and verifies the streams of all calls, which must be as vta_write makes them: what runs them needs
 * image_call.opened.  Done by image_read; whoever makes an image does it when its calls are complete.  False after
 * what vta_read or vta_verify report. */
bool image_open_calls(struct arena *, struct image *, struct diags *);

/* Whether an image is consistent: its indices, shapes, recipes, calls and places of kernels.  The calls were opened.
 * False after `bad-image`. */
bool image_check(const struct image *, struct diags *);
/* The problem of a call, or of a step of the accelerator; NULL = none. */
const char *image_find_call_fault(const struct image *, int call);
const char *image_find_target_fault(const struct image *, int step);

#endif
