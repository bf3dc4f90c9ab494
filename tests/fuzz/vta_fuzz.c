/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams, as text or as files: what is read prints and writes as itself; what is verified stays inside its
 * memory and gives the same bytes whichever module runs first. */
#include "tests/fuzz/fuzz.h"
#include "vta/vta.h"

#include <string.h>

enum { MOST_BYTES = 1 << 14, MOST_CYCLES = 1 << 15 };

static bool read_stream(struct fuzz *f, const uint8_t *bytes, size_t n, struct vta_stream *stream)
{
	if (n >= 7 && !memcmp(bytes, "VTASTRM", 7))
		return vta_read(&f->arena, &f->diags, "fuzz", bytes, n, stream);
	return vta_parse(&f->arena, &f->diags, "fuzz", arena_text(&f->arena, (const char *)bytes, n), stream);
}

/* Reads the text and the file of a stream again, which must print as it does. */
static void check_forms(struct fuzz *f, const struct vta_stream *stream)
{
	struct str text = str_in(&f->arena), again = str_in(&f->arena), filed = str_in(&f->arena);
	struct vta_stream back;
	size_t n;
	vta_print(stream, &text);
	fuzz_check(f, vta_parse(&f->arena, &f->diags, "text", str_text(&text), &back),
		   "what is printed can be read");
	vta_print(&back, &again);
	fuzz_check(f, !strcmp(str_text(&text), str_text(&again)), "and prints as itself");
	const uint8_t *file = vta_write(&f->arena, stream, &n);
	fuzz_check(f, vta_read(&f->arena, &f->diags, "file", file, n, &back), "what is written can be read");
	vta_print(&back, &filed);
	fuzz_check(f, !strcmp(str_text(&text), str_text(&filed)), "and is the same");
}

static uint64_t run_stream(struct fuzz *f, const struct vta_stream *stream,
			   const enum vta_module order[VTA_MODULES])
{
	uint8_t *memory = ARENA_ARRAY(&f->arena, uint8_t, stream->bytes + 1);
	for (uint64_t i = 0; i < stream->bytes; i++)
		memory[i] = (uint8_t)(i * 37 + i / 256);
	vta_execute(&f->arena, stream, order, memory);
	return fuzz_hash(memory, stream->bytes);
}

static bool check_stream(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	static const enum vta_module late[] = {VTA_MODULE_STORE, VTA_MODULE_COMPUTE, VTA_MODULE_LOAD};
	struct vta_stream stream;
	struct vta_cost cost;
	if (!read_stream(f, bytes, n, &stream))
		return false;
	check_forms(f, &stream);
	if (stream.bytes > MOST_BYTES)
		return true;
	if (!vta_verify(&f->arena, &f->diags, &stream, &cost))
		return false;
	if (cost.cycles <= MOST_CYCLES)
		fuzz_check(f, run_stream(f, &stream, NULL) == run_stream(f, &stream, late),
			   "order does not matter");
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(check_stream, bytes, n);
}
