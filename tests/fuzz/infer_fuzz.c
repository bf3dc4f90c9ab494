/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bodies of inference requests: structures as tensors of all types, or as texts. */
#include "tests/fuzz/served.h"

static void read_for(const struct fuzz *f, const struct served *s, const char *body, size_t n)
{
	struct infer_failure why = {0};
	long before = served_blocks();
	uint64_t h = fuzz_hash(body, n);
	if (h % 8 == 0) {
		served_fail((long)(h / 8 % 32));
		infer_free(infer_parse(&s->model, NULL, NULL, body, n, &why));
		served_fail(-1);
	}
	fuzz_check(f, served_blocks() == before, "all memory comes back, also when some is refused");
	served_check(f, s, infer_parse(&s->model, NULL, NULL, body, n, &why), &why, 1);
}

static bool read_body(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	read_for(f, served_model(SERVED_TYPES), (const char *)bytes, n);
	read_for(f, served_model(SERVED_TREE), (const char *)bytes, n);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run_once(read_body, bytes, n);
}
