/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes files, which appear complete. */
#include "io/write.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 100 };

struct writing {
	struct diags *diags;
	const char *path;
	char *target;	    /* the path without links; NULL = written in place */
	const char *folder; /* of the target */
	char *temporary; /* beside it */
	size_t capacity; /* of `temporary` */
	mode_t mode;	 /* of the file that is replaced, 0 = there is none */
	int fd;
};

static bool refuse_write(const struct writing *w, int why)
{
	return diag_add(w->diags, DIAG_CANNOT_WRITE, (struct diag_at){.file = w->path},
			"check the folder, its permissions and the space that is left",
			"cannot write '%s': %s", w->path, strerror(why));
}

/* Takes all memory before a descriptor is open, since it may escape. */
static bool find_target(struct arena *a, struct writing *w)
{
	struct stat st;
	bool exists = stat(w->path, &st) == 0;
	if (exists && !S_ISREG(st.st_mode))
		return true;
	w->target = arena_take(a, PATH_MAX, 1);
	w->mode = exists ? st.st_mode & 07777 : 0;
	if (strlen(w->path) >= PATH_MAX)
		return refuse_write(w, ENAMETOOLONG);
	if (exists ? !realpath(w->path, w->target) : !strcpy(w->target, w->path))
		return refuse_write(w, errno);
	w->folder = dirname(arena_string(a, w->target));
	w->capacity = strlen(w->target) + 40;
	w->temporary = arena_take(a, w->capacity, 1);
	return true;
}

static int open_retrying(const char *path, int flags)
{
	int fd;
	do
		fd = open(path, flags | O_CLOEXEC, 0666);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* Opens the temporary file, by a name that no other writer has, in this process or another. */
static bool open_file(struct writing *w)
{
	if (!w->target) {
		w->fd = open_retrying(w->path, O_WRONLY);
		return w->fd >= 0 || refuse_write(w, errno);
	}
	for (int i = 0; i < ATTEMPTS; i++) {
		snprintf(w->temporary, w->capacity, "%s.%ld.%d", w->target, (long)getpid(), i);
		w->fd = open_retrying(w->temporary, O_WRONLY | O_CREAT | O_EXCL);
		if (w->fd >= 0 || errno != EEXIST)
			break;
	}
	return w->fd >= 0 || refuse_write(w, errno);
}

/* Signals that end a process that writes to a closed pipe, or past the limit on the size of files. */
static void fatal_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

/* Removes the blocked signal that a failed write left pending for this thread, unless the host had one
 * pending before. */
static void take_signal(int error, const sigset_t *before)
{
	int number = error == EPIPE ? SIGPIPE : SIGXFSZ;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	if ((error == EPIPE || error == EFBIG) && !sigismember(before, number))
		while (sigtimedwait(&set, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
			;
}

bool io_write_bytes(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;
	sigset_t fatal, mask, pending;
	int error = 0;
	fatal_signals(&fatal);
	pthread_sigmask(SIG_BLOCK, &fatal, &mask);
	sigpending(&pending);
	while (n && !error) {
		ssize_t put = write(fd, p, n > 1 << 30 ? 1 << 30 : n);
		if (put < 0)
			error = errno == EINTR ? 0 : errno;
		else
			p += put, n -= put;
	}
	take_signal(error, &pending);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return !error;
}

/* Waits until the written bytes are on the disk. */
static bool sync_retrying(int fd)
{
	int status;
	do
		status = fsync(fd);
	while (status != 0 && errno == EINTR);
	return status == 0;
}

/* File systems that cannot sync a folder are no error. */
static bool sync_folder(int fd)
{
	return sync_retrying(fd) || errno == EINVAL || errno == EBADF || errno == ENOTSUP;
}

static bool warn_of_power_cut(const struct writing *w, int why)
{
	return diag_add(w->diags, DIAG_CANNOT_WRITE, (struct diag_at){.file = w->path},
			"write it again, and check the disk",
			"'%s' is written, but may not survive a power cut: %s", w->path, strerror(why));
}

/* A new name survives a power cut once its folder is on the disk.  The folder is opened
 * first, so that a failure changes nothing; one that may not be read is not synced. */
static bool replace_target(const struct writing *w)
{
	int folder = open_retrying(w->folder, O_RDONLY | O_DIRECTORY);
	bool ok = (folder >= 0 || errno == EACCES) && rename(w->temporary, w->target) == 0;
	if (!ok) {
		refuse_write(w, errno);
		unlink(w->temporary);
	} else if (folder >= 0 && !sync_folder(folder)) {
		ok = warn_of_power_cut(w, errno);
	}
	if (folder >= 0)
		close(folder);
	return ok;
}

/* Syncs the bytes before the new name appears, so that no power cut leaves a name without them. */
static bool finish_file(const struct writing *w, bool ok)
{
	if (ok && w->mode)
		(void)!fchmod(w->fd, w->mode);
	if (ok && w->target && !sync_retrying(w->fd))
		ok = refuse_write(w, errno);
	if (close(w->fd) != 0 && ok)
		ok = refuse_write(w, errno);
	if (!w->target)
		return ok;
	if (ok)
		return replace_target(w);
	unlink(w->temporary);
	return false;
}

bool io_write_file(struct arena *a, struct diags *diags, const char *path, const struct io_piece *piece,
		   int n)
{
	struct writing w = {.diags = diags, .path = path};
	if (!find_target(a, &w) || !open_file(&w))
		return false;
	bool ok = true;
	for (int i = 0; ok && i < n; i++)
		ok = io_write_bytes(w.fd, piece[i].bytes, piece[i].n) || refuse_write(&w, errno);
	return finish_file(&w, ok);
}

int64_t io_tensor_bytes(const struct io_tensor *t)
{
	int64_t bytes = dtype_traits_of(t->dtype)->bytes;
	for (int i = 0; i < t->rank; i++)
		bytes *= t->shape[i];
	return bytes;
}
