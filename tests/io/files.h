/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder share: a folder of their own, files in it, and what a diagnostic must say. */
#ifndef ESPALIER_TESTS_IO_FILES_H
#define ESPALIER_TESTS_IO_FILES_H

#include "base/diag.h"
#include "tests/tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct arena arena;
static struct diags diags;
static char folder[] = "/tmp/espalier-test-XXXXXX";

static inline void begin_tests(void)
{
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (!mkdtemp(folder)) {
		puts("Bail out! no temporary folder");
		exit(99);
	}
}

static inline const char *path_of(const char *name)
{
	struct str s = str_in(&arena);
	str_printf(&s, "%s/%s", folder, name);
	return str_text(&s);
}

/* How many files the folder holds. */
static inline int files_there(void)
{
	int n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return n;
}

static inline int end_tests(void)
{
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));)
		unlink(path_of(e->d_name));
	if (d)
		closedir(d);
	rmdir(folder);
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}

static inline const char *write_file(const char *name, const void *bytes, size_t n)
{
	const char *path = path_of(name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		printf("# cannot write %s\n", path);
	return path;
}

/* A file of the data that the project does not hold; NULL when it is not there. */
static inline const char *data_path(const char *name)
{
	const char *data = getenv("ESPALIER_DATA"), *source = getenv("srcdir");
	struct str s = str_in(&arena);
	str_printf(&s, "%s%s/%s", data || !source ? "" : source,
		   data	    ? data
		   : source ? "/../shared/data"
			    : "../shared/data",
		   name);
	return access(str_text(&s), R_OK) == 0 ? str_text(&s) : NULL;
}

/* One diagnostic: its id, a part of its message.  Forgets it. */
static inline bool refused(enum diag_id id, const char *part)
{
	bool ok = diags.n == 1 && diags.at[0].id == id && strstr(diags.at[0].message, part);
	for (size_t i = 0; i < diags.n && !ok; i++)
		printf("# [%s] %s\n", diag_spelling(diags.at[i].id), diags.at[i].message);
	diags_free(&diags);
	return ok;
}

/* As long as nothing was refused. */
static inline bool accepted(bool result)
{
	bool ok = result && diags.n == 0;
	for (size_t i = 0; i < diags.n; i++)
		printf("# [%s] %s\n", diag_spelling(diags.at[i].id), diags.at[i].message);
	diags_free(&diags);
	return ok;
}

#endif
