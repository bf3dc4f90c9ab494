/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How frames of generated code are unwound: the call frame information of its functions, as .eh_frame has it.
 *
 * Of the many forms that the format allows, one is taken, which LLVM and GCC write: entries of 32-bit length,
 * augmented by "zR", with addresses relative to their place, of 32 bits. */
#ifndef ESPALIER_IMAGE_FRAMES_H
#define ESPALIER_IMAGE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Call frame information that lies at `place` from where places are counted. */
struct image_frames {
	const unsigned char *bytes; /* NULL = there is none */
	int64_t size, place;
};

/* Whether these bytes are entries of that form, about functions that begin at places from 0 to `limit` - 1,
 * and end with a zero of 32 bits.  What the entries say is not checked: who runs the code trusts it. */
bool image_check_frames(const struct image_frames *, int64_t limit);

/* The function that the entry at an offset, or the next one that is about a function, describes: where it
 * begins, and its bytes. Sets the offset behind the entry; false at the end. */
bool image_next_frame(const struct image_frames *, int64_t *at, int64_t *place, int64_t *bytes);

enum { IMAGE_FRAME_HEADER = 20 };
/* Copies what there is about the function that begins at a place to `to`, as it must be at `distance` bytes
 * behind the function, with a zero at the end; NULL = only counts.  Returns the bytes, 0 = there is nothing.
 */
int64_t image_copy_frame(const struct image_frames *, int64_t place, int64_t distance, unsigned char *to);
/* Writes the header of IMAGE_FRAME_HEADER bytes (.eh_frame_hdr) that stands right behind a copy of so many
 * bytes. */
void image_put_frame_header(unsigned char *to, const unsigned char *copy, int64_t bytes, int64_t distance);

/* Tells the unwinder of GCC of frame information in memory, if it is in this process (libgcc_s.so.1):
 * exceptions, backtrace() and profilers use it.  Returns whether it must be taken back before the memory
 * goes. */
bool image_register_frames(const void *);
void image_deregister_frames(const void *);

#endif
