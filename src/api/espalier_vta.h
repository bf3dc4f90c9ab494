/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier_vta.h - streams of instructions for the Versatile Tensor Accelerator (doc/vta.md): read, verified,
 * written and executed in the place of the device. */
#ifndef ESPALIER_VTA_H
#define ESPALIER_VTA_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* A stream that was verified; it never changes, and any number of threads may use it at a time. */
typedef struct esp_vta_stream esp_vta_stream;

/* Reads a file, as text or in the binary form, and verifies it: it ends, stays inside its memory, and gives
 * one result however the modules of the device overlap.  The file is not trusted.  ESP_ERROR_INPUT: it cannot
 * be read, or is refused; the message names the instruction. */
esp_status esp_vta_open(esp_context *, const char *path, esp_vta_stream **out, esp_error **error);
void esp_vta_free(esp_vta_stream *);

/* Bytes of the host's memory that it works on. */
size_t esp_vta_memory(const esp_vta_stream *);

/* A part of that memory, and what it is for: uops, constant (both come with the stream), input, output,
 * scratch. */
typedef struct esp_vta_segment {
	const char *name, *role;
	size_t begin, bytes; /* multiples of 16 */
} esp_vta_segment;
/* By its number, in the order of the memory; belongs to the stream.  NULL past the last. */
const esp_vta_segment *esp_vta_segment_at(const esp_vta_stream *, size_t i);

enum {
	ESP_VTA_TEXT = 0, /* as esp_vta_open reads it */
	ESP_VTA_COST = 1  /* cycles, estimated, and what is moved and computed */
};
/* A text that esp_text_free frees. */
esp_status esp_vta_print(const esp_vta_stream *, int form, char **text, esp_error **error);
/* Writes the binary form; the file appears when it is complete. */
esp_status esp_vta_save(const esp_vta_stream *, const char *path, esp_error **error);

/* Runs the stream on `memory`, of esp_vta_memory bytes: the caller has put inputs into their segments,
 * constants are put there by the call, and outputs are in theirs when it returns, bit for bit as the device
 * would leave them. */
esp_status esp_vta_run(const esp_vta_stream *, void *memory, size_t bytes, esp_error **error);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
