/* Whole files into memory, and files written in one stroke.  In both directions "-" is the standard stream.
 */
#ifndef ESPALIER_IO_FILE_H
#define ESPALIER_IO_FILE_H

#include "base/diag.h"

#include <limits.h>

#define IO_FILE_LIMIT ((size_t)1 << 30)

/* The bytes of a file, then a zero byte that `*length` does not count.  NULL after a diagnostic: the file
 * cannot be opened or read, is longer than IO_FILE_LIMIT, or changed its size while it was read. */
char *io_read_file(struct arena *, struct diags *, const char *path, size_t *length);
char *io_read_limited(struct arena *, struct diags *, const char *path, size_t limit, size_t *length);

/* Opens for reading; -1 after a diagnostic.  Not for "-". */
int io_open(struct diags *, const char *path);

/* A file being written.
 *
 * A regular file appears at its path complete or not at all: the bytes go to a temporary file in the same
 * folder, which io_commit renames.  What `path` named before keeps its mode, and a symbolic link stays a
 * link.  Standard output ("-" or NULL), devices and pipes take the bytes as they come, whole buffers at a
 * time; io_abort cannot call them back.
 *
 * After the first failure, which is a diagnostic, io_write and io_commit only return false.  Writing to a
 * pipe that nobody reads raises SIGPIPE as usual; a program that ignores the signal gets a diagnostic. */
struct io_writer {
	struct diags *diags;
	const char *path; /* as given; lives as long as the writer */
	char target[PATH_MAX], temporary[PATH_MAX];
	int fd; /* -1 = failed, committed or aborted */
	bool owned, atomic;
	size_t n;
	char buffer[16 * 1024];
};

bool io_create(struct io_writer *, struct diags *, const char *path);
bool io_write(struct io_writer *, const void *bytes, size_t n);
bool io_puts(struct io_writer *, const char *text);
/* Either of the two ends the writer; more calls of them do nothing. */
bool io_commit(struct io_writer *);
void io_abort(struct io_writer *);

#endif
