/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS = 40 }; /* as many as the system follows */

/* Every step of the walk starts from a descriptor, so that the folder that was checked is the one that is
 * entered. */
struct walk {
	int at;		     /* the folder that was reached */
	char rest[PATH_MAX]; /* the path from there */
	uid_t system; /* the owner of the root, who can change everything; not always user 0 in a container */
	int links;    /* how many were followed */
	bool create;
	char *problem;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static bool refuse_path(struct walk *w, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(w->problem, w->size, format, args);
	va_end(args);
	errno = EPERM;
	return false;
}

static bool refuse_errno(struct walk *w)
{
	int error = errno;
	refuse_path(w, "it cannot be opened: %s", strerror(error));
	errno = error;
	return false;
}

/* Makes an open folder the current one; of none, reports errno and changes nothing. */
static bool step_into(struct walk *w, int folder)
{
	if (folder < 0)
		return refuse_errno(w);
	if (w->at >= 0)
		close(w->at);
	w->at = folder;
	return true;
}

/* --- owners and writers --- */

static bool check_owner(struct walk *w, const struct stat *st, const char *name)
{
	return st->st_uid == geteuid() || st->st_uid == 0 || st->st_uid == w->system ||
	       refuse_path(w, "'%.60s' on the path to it belongs to user %u", name, (unsigned)st->st_uid);
}

/* A group with the number of the owner has no other member. */
static bool check_writers(struct walk *w, const struct stat *st, const char *name)
{
	mode_t others = st->st_gid == st->st_uid ? S_IWOTH : S_IWOTH | S_IWGRP;
	return !(st->st_mode & others) || st->st_mode & S_ISVTX ||
	       refuse_path(w, "others can write in '%.60s' on the path to it (mode %03o)", name,
			   (unsigned)st->st_mode & 07777);
}

static bool check_folder(struct walk *w, const char *name)
{
	struct stat st;
	return fstat(w->at, &st) != 0 ? refuse_errno(w)
				      : check_owner(w, &st, name) && check_writers(w, &st, name);
}

/* --- the path --- */

static bool begin_at_root(struct walk *w)
{
	struct stat st;
	if (!step_into(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)))
		return false;
	if (fstat(w->at, &st) != 0)
		return refuse_errno(w);
	w->system = st.st_uid;
	return check_folder(w, "/");
}

/* Removes the first component of the path; false when there is none. */
static bool take_component(struct walk *w, char name[PATH_MAX])
{
	size_t slashes = strspn(w->rest, "/"), n = strcspn(w->rest + slashes, "/");
	size_t after = slashes + n + strspn(w->rest + slashes + n, "/");
	memcpy(name, w->rest + slashes, n);
	name[n] = 0;
	memmove(w->rest, w->rest + after, strlen(w->rest + after) + 1);
	return n > 0;
}

/* Puts the target of a link before the rest of the path. */
static bool prepend_target(struct walk *w, const char *target, size_t n)
{
	size_t rest = strlen(w->rest);
	if (n + 1 + rest >= sizeof w->rest) {
		errno = ENAMETOOLONG;
		return refuse_errno(w);
	}
	memmove(w->rest + n + 1, w->rest, rest + 1);
	memcpy(w->rest, target, n);
	w->rest[n] = '/';
	return target[0] != '/' || begin_at_root(w);
}

static bool follow_open(struct walk *w, int link, const char *name)
{
	struct stat st;
	char target[PATH_MAX];
	ssize_t n;
	if (fstat(link, &st) != 0)
		return refuse_errno(w);
	errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
	if (!S_ISLNK(st.st_mode) || !w->rest[0] || w->links++ == LINKS)
		return refuse_errno(w);
	if (!check_owner(w, &st, name))
		return false;
	if ((n = readlinkat(link, "", target, sizeof target)) <= 0)
		return refuse_errno(w);
	return prepend_target(w, target, n);
}

static bool follow_link(struct walk *w, const char *name)
{
	int link = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (link < 0)
		return refuse_errno(w);
	bool ok = follow_open(w, link, name);
	close(link);
	return ok;
}

/* O_DIRECTORY triggers automounts. */
static int open_in(const struct walk *w, const char *name, int flags)
{
	int folder = openat(w->at, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0 || errno != ENOENT || !w->create)
		return folder;
	if (mkdirat(w->at, name, 0700) != 0 && errno != EEXIST)
		return -1;
	return openat(w->at, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool enter_folder(struct walk *w, const char *name)
{
	bool last = !w->rest[0];
	int folder = open_in(w, name, last ? O_RDONLY : O_PATH);
	if (folder < 0 && (errno == ENOTDIR || errno == ELOOP))
		return follow_link(w, name);
	return step_into(w, folder) && (last || check_folder(w, name));
}

/* A relative path starts at the current directory. */
static bool set_path(struct walk *w, const char *path)
{
	char here[PATH_MAX] = "";
	if (path[0] != '/' && !getcwd(here, sizeof here))
		return refuse_errno(w);
	if (snprintf(w->rest, sizeof w->rest, "%s/%s", here, path) < (int)sizeof w->rest)
		return true;
	errno = ENAMETOOLONG;
	return refuse_errno(w);
}

int io_folder_open(const char *path, bool create, char *problem, size_t size)
{
	struct walk w = {.at = -1, .create = create, .problem = problem, .size = size};
	char name[PATH_MAX];
	bool ok = set_path(&w, path) && begin_at_root(&w);
	while (ok && take_component(&w, name))
		ok = enter_folder(&w, name);
	if (ok)
		return w.at;
	int error = errno;
	if (w.at >= 0)
		close(w.at);
	errno = error;
	return -1;
}
