/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_CHUNK = 64 * 1024 };

struct reading {
	struct arena *arena;
	struct diags *diags;
	const char *path; /* its name in diagnostics */
	int fd;
	size_t limit, n, capacity;
	char *bytes;
};

static bool refuse_read(const struct reading *r, const char *what)
{
	return diag_add(r->diags, DIAG_CANNOT_READ, (struct diag_at){.file = r->path},
			"check the path and the permissions", "cannot read '%s': %s", r->path, what);
}

static bool refuse_length(const struct reading *r)
{
	return diag_add(r->diags, DIAG_FILE_TOO_LARGE, (struct diag_at){.file = r->path}, "split the file",
			"'%s' is longer than the %zu bytes that are read at most", r->path, r->limit);
}

static bool copy_stat(bool there, const struct stat *st, int64_t *size, int64_t *modified)
{
	if (!there)
		return false;
	*size = st->st_size;
	*modified = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	return true;
}

bool io_stat(const char *path, int64_t *size, int64_t *modified)
{
	struct stat st;
	return copy_stat(stat(path, &st) == 0, &st, size, modified);
}

bool io_stat_open(int fd, int64_t *size, int64_t *modified)
{
	struct stat st;
	return copy_stat(fstat(fd, &st) == 0, &st, size, modified);
}

static int open_with(struct diags *diags, const char *path, int flags)
{
	int fd;
	do
		fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		refuse_read(&(struct reading){.diags = diags, .path = path}, strerror(errno));
	return fd;
}

int io_open(struct diags *diags, const char *path)
{
	return open_with(diags, path, 0);
}

int io_open_at_once(struct diags *diags, const char *path)
{
	return open_with(diags, path, O_NONBLOCK);
}

int io_open_regular(struct diags *diags, const char *path)
{
	struct stat st;
	int fd = open_with(diags, path, O_NONBLOCK);
	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	refuse_read(&(struct reading){.diags = diags, .path = path}, "it is not a regular file");
	close(fd);
	return -1;
}

bool io_read_at(struct diags *diags, const char *path, int fd, void *to, int64_t n, int64_t offset)
{
	for (char *p = to; n;) {
		ssize_t got = pread(fd, p, n, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return diag_add(diags, DIAG_CANNOT_READ, (struct diag_at){.file = path}, NULL,
					"cannot read '%s': %s", path, strerror(errno));
		if (got == 0)
			return diag_add(diags, DIAG_CANNOT_READ, (struct diag_at){.file = path},
					"replace files that are in use by renaming, not by writing into them",
					"'%s' became shorter while in use: it ends before byte %lld", path,
					(long long)(offset + n));
		p += got, offset += got, n -= got;
	}
	return true;
}

/* Must not escape, since the descriptor is open. */
static bool reserve_bytes(struct reading *r, size_t capacity)
{
	char *p = arena_try(r->arena, capacity + 1, 1);
	if (!p)
		return diag_add(r->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){.file = r->path}, NULL,
				"no memory for the %zu bytes of '%s'", capacity, r->path);
	if (r->n)
		memcpy(p, r->bytes, r->n);
	r->bytes = p;
	r->capacity = capacity;
	return true;
}

/* Reads until the end.  The buffer is one byte larger than the known size, so that the end is found without
 * growing it. */
static bool read_all(struct reading *r)
{
	for (;;) {
		if (r->n > r->limit)
			return refuse_length(r);
		if (r->n == r->capacity && !reserve_bytes(r, 2 * r->capacity))
			return false;
		ssize_t got = read(r->fd, r->bytes + r->n, r->capacity - r->n);
		if (got == 0)
			return true;
		if (got > 0)
			r->n += got;
		else if (errno != EINTR)
			return refuse_read(r, strerror(errno));
	}
}

/* Files without a known size (pipes, /proc) have size 0 here. */
static bool read_open(struct reading *r)
{
	struct stat st;
	if (fstat(r->fd, &st) != 0)
		return refuse_read(r, strerror(errno));
	size_t size = S_ISREG(st.st_mode) ? st.st_size : 0;
	if (size > r->limit)
		return refuse_length(r);
	if (!reserve_bytes(r, size ? size + 1 : FIRST_CHUNK) || !read_all(r))
		return false;
	return !size || size == r->n || refuse_read(r, "its size changed while it was read");
}

char *io_read_limited(struct arena *arena, struct diags *diags, const char *path, size_t limit,
		      size_t *length)
{
	bool standard = strcmp(path, "-") == 0;
	struct reading r = {arena, diags, standard ? "standard input" : path, STDIN_FILENO, limit, 0,
			    0,	   NULL};
	if (!standard && (r.fd = io_open(diags, path)) < 0)
		return NULL;
	bool ok = read_open(&r);
	if (!standard)
		close(r.fd);
	if (!ok)
		return NULL;
	r.bytes[r.n] = 0;
	*length = r.n;
	return r.bytes;
}

char *io_read_file(struct arena *arena, struct diags *diags, const char *path, size_t *length)
{
	return io_read_limited(arena, diags, path, IO_FILE_LIMIT, length);
}
