/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Runs a target over files, or over numbers: what a target is linked with where there is no libFuzzer.
 *
 *     model_fuzz FILE...
 *     drawn_fuzz -numbers FIRST COUNT
 *
 * A number is an input of eight bytes, the least first: enough for a target that draws what it does.  A finding ends
 * the program; the name printed last is that of its file, or the number. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The block ends with the file, so that a byte read beyond it is noticed. */
static bool replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return false;
	uint8_t *bytes = NULL, *grown;
	size_t n = 0, got;
	uint8_t chunk[4096];
	while ((got = fread(chunk, 1, sizeof chunk, file))) {
		if (!(grown = realloc(bytes, n + got)))
			break;
		bytes = grown;
		for (size_t i = 0; i < got; i++)
			bytes[n++] = chunk[i];
	}
	bool ok = !ferror(file) && !got;
	fclose(file);
	if (ok)
		LLVMFuzzerTestOneInput(bytes, n);
	free(bytes);
	return ok;
}

static int run_numbers(uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		uint8_t bytes[8];
		for (int b = 0; b < 8; b++)
			bytes[b] = i >> 8 * b;
		printf("Running: %llu\n", (unsigned long long)i);
		fflush(stdout);
		LLVMFuzzerTestOneInput(bytes, sizeof bytes);
	}
	return 0;
}

static int run_files(char **path, int n)
{
	for (int i = 0; i < n; i++) {
		printf("Running: %s\n", path[i]);
		fflush(stdout);
		if (!replay(path[i])) {
			fprintf(stderr, "cannot read %s\n", path[i]);
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "-numbers") == 0)
		return run_numbers(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	return run_files(argv + 1, argc - 1);
}
