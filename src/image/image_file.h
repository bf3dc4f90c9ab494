/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Images as bytes: what a cache holds, and what programs are saved as.
 *
 *   magic      8 bytes
 *   checksum   of all that follows but for the packed weights, 16 bytes
 *   stamp      which build of the description below wrote it, 8 bytes
 *   size       of the whole, 8 bytes
 *   sections   where key, tables, code and packed weights lie: offset and size, 8 bytes each
 *   key        image.key, terminated
 *   tables     the members of struct image in the order of the description in image_file.c: numbers and counts as
 *              64-bit words, texts as length, bytes and a zero, filled up to whole words
 *   code       image.blob.bytes
 *   weights    of each recipe that has packed ones, from the next multiple of 64 bytes on; the first at one of
 *              IMAGE_PAGE.  Their checksums are in the tables
 *
 * Words are little-endian.  Nothing is taken on trust but the code: an image that image_read returns can be
 * bound, loaded and asked for anything, whoever wrote it.  What its code does nobody can check; so images are
 * only read from places that nobody else can write to. */
#ifndef ESPALIER_IMAGE_IMAGE_FILE_H
#define ESPALIER_IMAGE_IMAGE_FILE_H

#include "image/image.h"
#include "io/write.h"

enum { IMAGE_PAGE = 4096, IMAGE_LINE = 64 };

/* The bytes of an image, as pieces that follow each other; packed weights stay where they are, all else is in
 * the arena.  Code that is loaded (image.code) is no part of it.  Returns how many pieces there are. */
int image_pieces(const struct image *, struct arena *, const struct io_piece **);
/* Appends them all. */
void image_write(const struct image *, struct str *);
/* What an image says of a recipe's packed weights that lie there; of NULL that there are none. */
struct image_packed image_pack(const struct image *, int recipe, const void *at);

/* Reads an image.  Texts, code and weights stay in `bytes`, which must outlive it, and begin at a multiple of
 * IMAGE_LINE if there may be weights; tables are in the arena.  False after `bad-image`. */
bool image_read(struct arena *, const void *bytes, size_t n, struct image *, struct diags *);
/* Puts the checksum right, for those who make images by hand. */
void image_seal(void *bytes, size_t n);

/* Whether what an image says of itself holds together: indices, shapes, recipes, the places of kernels. False
 * after `bad-image`. */
bool image_check(const struct image *, struct diags *);

#endif
