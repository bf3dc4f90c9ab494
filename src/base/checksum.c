/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct checksum checksum_of(const void *bytes, size_t n)
{
	XXH128_canonical_t canonical;
	struct checksum sum;
	_Static_assert(sizeof canonical == sizeof sum, "128 bits");
	XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, n));
	__builtin_memcpy(&sum, &canonical, sizeof sum);
	return sum;
}
