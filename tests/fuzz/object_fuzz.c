/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Relocatable objects: a blob that was linked lies within the limits, its kernels in it. */
#include "image/link.h"
#include "tests/fuzz/fuzz.h"

static bool link_object(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	static const char *const kernels[] = {"first", "second"};
	struct image_blob blob;
	if (!image_link(&f->arena, &(struct image_object){bytes, n}, 1, "fuzz", 2, kernels, &blob, &f->diags))
		return false;
	fuzz_check(f, blob.size > 0 && blob.size <= IMAGE_BLOB_LIMIT, "a blob has a size within the limit");
	fuzz_check(f, blob.alignment >= 1 && blob.alignment <= IMAGE_BLOB_ALIGNMENT, "and such an alignment");
	fuzz_check(f, blob.kernels == 2, "a blob has a place for each kernel");
	for (int i = 0; i < blob.kernels; i++)
		fuzz_check(f, blob.kernel[i] >= 0 && blob.kernel[i] < blob.size, "kernels lie in the blob");
	fuzz_check(f, fuzz_hash(blob.bytes, blob.size), "all of a blob can be read");
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(link_object, bytes, n);
}
