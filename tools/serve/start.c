/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier serve: a program of its own goes on with it, so that no other command loads the library for HTTP and
 * the ones that this needs, which takes longer than to start. */
#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef PKGLIBEXECDIR
#define PKGLIBEXECDIR "/usr/local/libexec/espalier"
#endif

/* Folders of the program, from that of the command: where both were built; where they are installed, also when the
 * whole was moved. */
static const char *const folders[] = {"", "../libexec/espalier/", PKGLIBEXECDIR "/"};
static const char program[] = "espalier-serve";

/* The folder of the command with a slash, or an empty text. */
static void find_own_folder(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	path[n < 0 ? 0 : n] = 0;
	char *slash = strrchr(path, '/');
	path[slash ? slash - path + 1 : 0] = 0;
}

int command_serve(const struct options *o)
{
	char own[PATH_MAX], path[2 * PATH_MAX];
	find_own_folder(own, sizeof own);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		snprintf(path, sizeof path, "%s%s%s", *folders[i] == '/' ? "" : own, folders[i], program);
		execv(path, o->arguments);
		if (errno != ENOENT && errno != ENOTDIR)
			break;
	}
	if (errno == ENOENT || errno == ENOTDIR)
		complain("serve is not part of this build: %s is not there, as when it was made without libmicrohttpd "
			 "(see ./configure --help)",
			 path);
	else
		complain("cannot run %s: %s", path, strerror(errno));
	return EXIT_USAGE;
}
