/* Runs a target over files: what a target is linked with where there is no libFuzzer.
 *
 *     model_fuzz FILE...
 *
 * A finding ends the program; the name printed last is that of its file. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

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

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		printf("Running: %s\n", argv[i]);
		fflush(stdout);
		if (!replay(argv[i])) {
			fprintf(stderr, "cannot read %s\n", argv[i]);
			return 1;
		}
	}
	return 0;
}
