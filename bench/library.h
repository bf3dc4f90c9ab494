/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* For benchmarks that use the library: ending when a call fails, and making weights. */
#ifndef ESPALIER_BENCH_LIBRARY_H
#define ESPALIER_BENCH_LIBRARY_H

#include "espalier.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static esp_error *error; /* of the last call */

static inline _Noreturn void give_up(const char *why)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
	exit(1);
}

static inline void check_status(esp_status status)
{
	if (status)
		give_up(esp_error_text(error));
}

/* Opens weights from a temporary file of the safetensors header and the values that `put` writes. The file
 * is removed before this returns. */
static inline esp_weights *make_weights(esp_context *context, const char *header, void (*put)(FILE *, void *),
					void *user)
{
	char path[] = "/tmp/espalier-bench-XXXXXX";
	uint64_t n = strlen(header), length = (n + 7) / 8 * 8;
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f)
		give_up("cannot write weights");
	fwrite(&length, sizeof length, 1, f);
	fprintf(f, "%s%*s", header, (int)(length - n), "");
	put(f, user);
	if (ferror(f) | fclose(f))
		give_up("cannot write weights");
	esp_weights *w;
	check_status(esp_weights_open(context, path, &w, &error));
	unlink(path);
	return w;
}

#endif
