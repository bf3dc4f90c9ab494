/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/store.h"

#include "io/folder.h"
#include "io/write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	NAME = 2 * sizeof(struct checksum), /* characters of a file's name */
	TOUCH_SECONDS = 24 * 60 * 60,	    /* the precision of the last use */
	DEAD_SECONDS = 60 * 60		    /* a file that is still temporary after that has no writer */
};

static const char temporary[] = ".new-";

__attribute__((format(printf, 2, 3))) static enum io_store_status refuse_use(struct io_store *s,
									     const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(s->problem, sizeof s->problem, format, args);
	va_end(args);
	return IO_STORE_REFUSED;
}

static enum io_store_status refuse_errno(struct io_store *s, const char *what)
{
	return refuse_use(s, "%s: %s", what, strerror(errno));
}

/* --- the folder --- */

static enum io_store_status check_folder(struct io_store *s)
{
	struct stat st;
	if (fstat(s->folder, &st) != 0)
		return refuse_errno(s, "it cannot be looked at");
	if (st.st_uid != geteuid())
		return refuse_use(s, "it belongs to user %u, not to user %u", (unsigned)st.st_uid,
				  (unsigned)geteuid());
	if (st.st_mode & 077)
		return refuse_use(s, "others have access to it (mode %03o, wanted 700)",
				  (unsigned)st.st_mode & 0777);
	return IO_STORE_OK;
}

enum io_store_status io_store_open(struct io_store *s, const char *path, bool create)
{
	enum io_store_status status;
	*s = (struct io_store){.folder = -1};
	s->folder = io_folder_open(path, create, s->problem, sizeof s->problem);
	if (s->folder < 0)
		return errno == ENOENT && !create ? IO_STORE_ABSENT : IO_STORE_REFUSED;
	if ((status = check_folder(s)) != IO_STORE_OK)
		io_store_close(s);
	return status;
}

void io_store_close(struct io_store *s)
{
	if (s->folder >= 0)
		close(s->folder);
	s->folder = -1;
}

static void write_name(char name[NAME + 1], const struct checksum *key)
{
	for (size_t i = 0; i < sizeof key->bytes; i++)
		snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
}

static bool is_name(const char *name)
{
	return strlen(name) == NAME && strspn(name, "0123456789abcdef") == NAME;
}

/* --- reading --- */

static enum io_store_status report_damage(struct io_store *s, const char *name, const char *what)
{
	refuse_use(s, "%s: %s", name, what);
	return IO_STORE_DAMAGED;
}

static enum io_store_status check_file(struct io_store *s, const char *name, const struct stat *st,
				       size_t limit)
{
	if (!S_ISREG(st->st_mode))
		return report_damage(s, name, "it is not a regular file");
	if (st->st_uid != geteuid() || st->st_mode & 022)
		return report_damage(s, name, "others can write it");
	if (st->st_nlink > 1)
		return report_damage(s, name, "it has another name, which may not be the user's");
	if (st->st_size < 0 || (uint64_t)st->st_size > limit)
		return report_damage(s, name, "it is too long");
	return IO_STORE_OK;
}

/* Reads `n` bytes; less when the file ends before. */
static ssize_t read_bytes(int fd, char *to, size_t n)
{
	size_t done = 0;
	while (done < n) {
		ssize_t got = read(fd, to + done, n - done);
		if (got == 0)
			break;
		if (got > 0)
			done += got;
		else if (errno != EINTR)
			return -1;
	}
	return done;
}

/* The last use is kept as the time of the last change: not every file system keeps that of the last access.
 */
static void mark_used(int fd, const struct stat *st)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec - st->st_mtim.tv_sec > TOUCH_SECONDS)
		(void)!futimens(fd, NULL);
}

static enum io_store_status read_open(struct io_store *s, struct arena *a, int fd, const char *name,
				      size_t limit, void **bytes, size_t *n)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return refuse_errno(s, name);
	enum io_store_status status = check_file(s, name, &st, limit);
	if (status != IO_STORE_OK)
		return status;
	*n = st.st_size;
	if (!(*bytes = arena_try(a, *n + 1, 1)))
		return refuse_use(s, "%s: no memory for its %zu bytes", name, *n);
	ssize_t got = read_bytes(fd, *bytes, *n);
	if (got < 0)
		return refuse_errno(s, name);
	if ((size_t)got != *n)
		return report_damage(s, name, "it became shorter");
	mark_used(fd, &st);
	return IO_STORE_OK;
}

/* Opened without blocking, in case it is a pipe. */
enum io_store_status io_store_read(struct io_store *s, struct arena *a, const struct checksum *key,
				   size_t limit, void **bytes, size_t *n)
{
	char name[NAME + 1];
	write_name(name, key);
	int fd = openat(s->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return IO_STORE_ABSENT;
	if (fd < 0)
		return errno == ELOOP ? report_damage(s, name, "it is a link") : refuse_errno(s, name);
	enum io_store_status status = read_open(s, a, fd, name, limit, bytes, n);
	close(fd);
	return status;
}

/* --- writing --- */

/* The name is unique: it has the number of the process, a counter, and the time, in case an earlier process
 * of that number left files. */
static int open_temporary(const struct io_store *s, char *name, size_t size)
{
	static atomic_uint count;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(name, size, "%s%ld-%u-%lld%09ld", temporary, (long)getpid(), atomic_fetch_add(&count, 1),
		 (long long)now.tv_sec, now.tv_nsec);
	return openat(s->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

enum io_store_status io_store_write(struct io_store *s, const struct checksum *key, const void *bytes,
				    size_t n)
{
	char name[NAME + 1], new[80];
	write_name(name, key);
	int fd = open_temporary(s, new, sizeof new);
	if (fd < 0)
		return refuse_errno(s, "a file cannot be made in it");
	bool ok = io_write_bytes(fd, bytes, n);
	int error = errno;
	if (close(fd) != 0 && ok) {
		ok = false;
		error = errno;
	}
	if (ok && renameat(s->folder, new, s->folder, name) == 0)
		return IO_STORE_OK;
	error = ok ? errno : error;
	unlinkat(s->folder, new, 0);
	errno = error;
	return refuse_errno(s, "a file cannot be written in it");
}

/* Some file systems have no locks: then every process gets the right. */
bool io_store_claim(const struct io_store *s)
{
	return faccessat(s->folder, ".", W_OK, AT_EACCESS) == 0 &&
	       (flock(s->folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
}

/* --- trimming --- */

struct entry {
	char name[NAME + 1];
	int64_t used, size;
};

struct listing {
	struct entry *at;
	size_t n, capacity;
	uint64_t bytes;
};

/* Entries for which there is no memory are ignored. */
static void add_entry(struct listing *l, struct arena *a, const char *name, const struct stat *st)
{
	if (l->n == l->capacity) {
		size_t capacity = l->capacity ? 2 * l->capacity : 64;
		struct entry *at = arena_try(a, capacity, sizeof *at);
		if (!at)
			return;
		if (l->n)
			memcpy(at, l->at, l->n * sizeof *at);
		l->at = at;
		l->capacity = capacity;
	}
	struct entry *e = &l->at[l->n++];
	memcpy(e->name, name, sizeof e->name);
	e->used = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	e->size = st->st_size;
	l->bytes += e->size;
}

static void examine_file(const struct io_store *s, struct listing *l, struct arena *a, const char *name)
{
	struct stat st;
	bool left = strncmp(name, temporary, strlen(temporary)) == 0;
	if ((!left && !is_name(name)) || fstatat(s->folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (!left && S_ISREG(st.st_mode))
		add_entry(l, a, name, &st);
	else if (left && time(NULL) - st.st_mtim.tv_sec > DEAD_SECONDS)
		unlinkat(s->folder, name, 0);
}

static int by_use(const void *a, const void *b)
{
	const struct entry *p = a, *q = b;
	return (p->used > q->used) - (p->used < q->used);
}

/* Opens the folder again: reading by its descriptor would move the position that all share. */
static void list_files(const struct io_store *s, struct listing *l, struct arena *a)
{
	int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (const struct dirent *d; (d = readdir(folder));)
		examine_file(s, l, a, d->d_name);
	closedir(folder);
}

void io_store_trim(struct io_store *s, struct arena *scratch, uint64_t limit)
{
	struct listing l = {0};
	list_files(s, &l, scratch);
	if (l.bytes <= limit)
		return;
	qsort(l.at, l.n, sizeof *l.at, by_use);
	for (size_t i = 0; i < l.n && l.bytes > limit; i++) {
		unlinkat(s->folder, l.at[i].name, 0);
		l.bytes -= l.at[i].size;
	}
}
