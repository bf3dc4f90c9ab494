/* Images as bytes: what a cache holds.
 *
 *   magic      8 bytes
 *   checksum   of all that follows, 16 bytes
 *   stamp      which build of the description below wrote it, 8 bytes
 *   size       of the whole, 8 bytes
 *   sections   where key, tables and code lie: offset and size, 8 bytes each
 *   key        image.key, terminated
 *   tables     the members of struct image in the order of the description in file.c: numbers and counts as
 *              64-bit words, texts as length, bytes and a zero, filled up to whole words
 *   code       image.blob.bytes
 *
 * Words are little-endian.  Nothing is taken on trust but the code: an image that image_read returns can be
 * bound, loaded and asked for anything, whoever wrote it.  What its code does nobody can check; so images are
 * only read from places that nobody else can write to. */
#ifndef ESPALIER_IMAGE_FILE_H
#define ESPALIER_IMAGE_FILE_H

#include "image/image.h"

/* Appends the image.  Code that is loaded (image.code) is no part of it. */
void image_write(const struct image *, struct str *);
/* Reads an image.  Texts and code stay in `bytes`, which must outlive it; tables are in the arena.  False
 * after `bad-image`. */
bool image_read(struct arena *, const void *bytes, size_t n, struct image *, struct diags *);
/* Puts the checksum right, for those who make images by hand. */
void image_seal(void *bytes, size_t n);

/* Whether what an image says of itself holds together: indices, shapes, recipes, the places of kernels. False
 * after `bad-image`. */
bool image_check(const struct image *, struct diags *);

#endif
