/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bodies of texts: the first byte says for which model and of which type. */
#include "tests/fuzz/served.h"

static const char *const types[] = {NULL, "text/plain", "application/json", "application/x-ndjson;x=y"};
enum { TYPES = sizeof types / sizeof *types };

static bool read_body(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	static const struct infer_limits limits = {.bytes = 100000, .nodes = 200, .depth = 50};
	struct infer_failure why = {0};
	const struct served *s = served_model(n && bytes[0] / TYPES % 2 ? SERVED_SEQUENCE : SERVED_TREE);
	const char *type = types[n ? bytes[0] % TYPES : 0], *body = (const char *)bytes + (n > 0);
	n -= n > 0;
	long before = served_blocks();
	uint64_t h = fuzz_hash(body, n);
	if (h % 8 == 0) {
		served_fail((long)(h / 8 % 32));
		infer_free(infer_parse_text(&s->model, &limits, type, body, n, &why));
		served_fail(-1);
	}
	fuzz_check(f, served_blocks() == before, "all memory comes back, also when some is refused");
	served_check(f, s, infer_parse_text(&s->model, &limits, type, body, n, &why), &why, 0);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run_once(read_body, bytes, n);
}
