/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What profilers are told of kernels: their names, or, with their lines and frames, a dump (jitdump.h). */
#ifndef ESPALIER_IMAGE_PERF_H
#define ESPALIER_IMAGE_PERF_H

#include "base/memory.h"
#include "image/frames.h"
#include "image/image.h"

/* A function of code that is loaded. */
struct image_function {
	const char *name;
	const void *at;
	int64_t bytes, place;	       /* place: in `blob` */
	const struct image_blob *blob; /* its lines and call frame information */
};

/* The lines of a function: of these rows of its blob the first may begin before it.  Returns how many there
 * are. */
int image_lines_of(const struct image_function *, const struct image_line **);
/* Its call frame information. */
struct image_frames image_frames_of(const struct image_function *);

/* Adds functions of a model's code to /tmp/perf-PID.map, where perf looks for code that is in no file: a line
 * for each, of its address and bytes in hexadecimal and MODEL:NAME.  The file is made private to the user;
 * one that is there is added to when it is a regular file of the user with one name, which nobody else can
 * write; names that an earlier process of the same number
 * left in it are removed.  False after `perf-map-unusable`. */
bool image_name_functions(const char *model, const struct image_function *, int n, struct diags *);
/* The kernels of a blob that is loaded, in the arena; returns how many, none for code that is interpreted. */
int image_list_functions(struct arena *, const struct image *, struct image_function **);

#endif
