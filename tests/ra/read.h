/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A text file of the tests, as a terminated string that the caller frees; NULL when it cannot be read. */
#ifndef ESPALIER_TESTS_RA_READ_H
#define ESPALIER_TESTS_RA_READ_H

#include <stdio.h>
#include <stdlib.h>

static inline char *read_text(const char *path, size_t *length)
{
	*length = 0;
	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	char *text = NULL;
	size_t capacity = 0;
	do {
		capacity = 2 * capacity + 4096;
		text = realloc(text, capacity + 1);
		*length += fread(text + *length, 1, capacity - *length, f);
	} while (*length == capacity);
	fclose(f);
	text[*length] = 0;
	return text;
}

/* Test inputs lie in $srcdir, as make check sets it; without it, in the working directory's project. */
static inline const char *source_path(const char *path)
{
	static char full[4096];
	const char *srcdir = getenv("srcdir");
	snprintf(full, sizeof full, "%s/%s", srcdir ? srcdir : ".", path);
	return full;
}

#endif
