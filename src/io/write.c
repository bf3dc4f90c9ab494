#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void discard(struct io_writer *w)
{
	if (w->fd >= 0 && w->owned)
		close(w->fd);
	w->fd = -1;
	if (w->atomic)
		unlink(w->temporary);
	w->atomic = false;
}

/* `error` is taken first: discard changes errno. */
static bool fail(struct io_writer *w, int error)
{
	discard(w);
	const char *hint = error == ENOSPC || error == EDQUOT ? "make room on the device, or write elsewhere"
			   : error == EPIPE ? "the program that reads the output ended before its end"
					    : "check the path and the permissions";
	return diag_add(w->diags, DIAG_CANNOT_WRITE, (struct diag_at){.file = w->path}, hint,
			"cannot write '%s': %s", w->path, strerror(error));
}

static int open_again(const char *path, int flags, mode_t mode)
{
	int fd;
	do
		fd = open(path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* Names beside the target until one is free. */
static bool open_temporary(struct io_writer *w)
{
	for (int i = 0; i < 1000; i++) {
		int n = snprintf(w->temporary, sizeof w->temporary, "%s.%ld-%d.tmp", w->target,
				 (long)getpid(), i);
		if (n >= (int)sizeof w->temporary)
			return fail(w, ENAMETOOLONG);
		w->fd = open_again(w->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
		if (w->fd >= 0)
			return w->atomic = true;
		if (errno != EEXIST)
			break;
	}
	return fail(w, errno);
}

/* The file that is there: links are followed, the mode is kept.  Without the right to write to it there is
 * none to replace it. */
static bool replace(struct io_writer *w, const struct stat *st)
{
	if (access(w->path, W_OK) != 0 || !realpath(w->path, w->target))
		return fail(w, errno);
	if (!open_temporary(w))
		return false;
	return fchmod(w->fd, st->st_mode & 0777) == 0 || fail(w, errno);
}

bool io_create(struct io_writer *w, struct diags *diags, const char *path)
{
	w->diags = diags;
	w->owned = path && strcmp(path, "-") != 0;
	w->path = w->owned ? path : "standard output";
	w->fd = w->owned ? -1 : STDOUT_FILENO;
	w->atomic = false;
	w->n = 0;
	if (!w->owned)
		return true;
	struct stat st;
	bool there = stat(path, &st) == 0;
	if (there && S_ISREG(st.st_mode))
		return replace(w, &st);
	if (there)
		return (w->fd = open_again(path, O_WRONLY, 0)) >= 0 || fail(w, errno);
	if (strlen(path) >= sizeof w->target)
		return fail(w, ENAMETOOLONG);
	strcpy(w->target, path);
	return open_temporary(w);
}

static bool write_all(struct io_writer *w, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(w->fd, bytes, n);
		if (done < 0 && errno != EINTR)
			return fail(w, errno);
		if (done > 0)
			bytes += done, n -= done;
	}
	return true;
}

static bool flush(struct io_writer *w)
{
	size_t n = w->n;
	w->n = 0;
	return write_all(w, w->buffer, n);
}

bool io_write(struct io_writer *w, const void *bytes, size_t n)
{
	if (w->fd < 0)
		return false;
	if (n > sizeof w->buffer - w->n && !flush(w))
		return false;
	if (n > sizeof w->buffer)
		return write_all(w, bytes, n);
	if (n)
		memcpy(w->buffer + w->n, bytes, n);
	w->n += n;
	return true;
}

bool io_puts(struct io_writer *w, const char *text)
{
	return io_write(w, text, strlen(text));
}

/* Closing may be where a remote disk reports that it is full. */
static bool finish(struct io_writer *w)
{
	int fd = w->fd;
	w->fd = -1;
	if (w->owned && close(fd) != 0 && errno != EINTR)
		return fail(w, errno);
	if (w->atomic && rename(w->temporary, w->target) != 0)
		return fail(w, errno);
	w->atomic = false;
	return true;
}

bool io_commit(struct io_writer *w)
{
	return w->fd >= 0 && flush(w) && finish(w);
}

void io_abort(struct io_writer *w)
{
	discard(w);
}
