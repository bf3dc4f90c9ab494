/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A file of structures, of which only the structure that is being read is in memory; "-" is the standard
 * input. */
#ifndef ESPALIER_IO_STRUCTURE_STREAM_H
#define ESPALIER_IO_STRUCTURE_STREAM_H

#include "base/diag.h"
#include "io/extent.h"
#include "io/text.h"

/* Decides whether to wait on for bytes that do not come: false after a diagnostic.  goes_on NULL = always. */
struct io_watch {
	bool (*goes_on)(void *context, struct diags *);
	void *context;
};

struct io_stream {
	const struct allocator *allocator;
	struct io_watch watch; /* called about every 20 ms while a pipe is empty; set after io_stream_open */
	const char *path; /* its name in diagnostics */
	int fd;		  /* -1 = not open */
	bool owned;	  /* io_stream_close closes it */
	bool waits; /* its bytes come when others write them: it is no regular file */
	bool ended, begun;
	char *bytes; /* the window of the file that is in memory; the text lies in it */
	size_t n, capacity;
	size_t limit, chunk; /* bytes of a structure, and of one read, at most; io_stream_open sets them */
	int64_t size, gone;  /* of the file, 0 = unknown; before `bytes` */
};

/* Opens a file and an empty text over it.  `path` must outlive both.  False after a diagnostic; closing is
 * legal then, and of a stream that is zero. */
bool io_stream_open(struct io_stream *, const struct allocator *, const char *path, struct io_text *,
		    struct diags *);
/* The same of bytes in memory, which must outlive what is read from them; always true. */
bool io_stream_open_memory(struct io_stream *, const char *name, const char *bytes, size_t n, struct io_text *);
void io_stream_close(struct io_stream *);

/* Reads until the text holds the next structure of the format, or ends where the file does.  The text before
 * its place may be gone then, and the rest may have moved.  False after a diagnostic: without memory the call
 * can be made again, otherwise the text has stopped. */
bool io_stream_fill(struct io_stream *, struct io_text *, enum io_format, struct diags *);

/* How much of the file has been read, 0 to 1; 0 while its size is unknown. */
double io_stream_progress(const struct io_stream *, const struct io_text *);

#endif
