/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A file of structures of which no more is in memory than the structure that is being read; "-" is the standard input. */
#ifndef ESPALIER_IO_STREAM_H
#define ESPALIER_IO_STREAM_H

#include "base/diag.h"
#include "io/extent.h"
#include "io/text.h"

struct io_stream {
	const struct allocator *allocator;
	const char *path; /* as diagnostics call it */
	int fd;		  /* -1 = not open */
	bool owned;	  /* which is to be closed */
	bool ended, begun;
	char *bytes; /* what is in memory of it: the text that is read begins and ends there */
	size_t n, capacity;
	size_t limit, chunk; /* of a structure at most, and of one read; io_stream_open sets them */
	int64_t size, gone;  /* of the file, 0 = unknown; before `bytes` */
};

/* Opens a file and an empty text over it.  `path` must outlive both.  False after a diagnostic; closing is legal
 * then, and of a stream that is zero. */
bool io_stream_open(struct io_stream *, const struct allocator *, const char *path, struct io_text *, struct diags *);
void io_stream_close(struct io_stream *);

/* Reads until the text holds the next structure of the format, or ends where the file does.  What the text held
 * before its place may be gone then, and the rest stand elsewhere.  False after a diagnostic: without memory the call can be
 * made again, otherwise the text has stopped. */
bool io_stream_fill(struct io_stream *, struct io_text *, enum io_format, struct diags *);

/* How much of the file the text is behind, 0 to 1; 0 while its size is unknown. */
double io_stream_progress(const struct io_stream *, const struct io_text *);

#endif
