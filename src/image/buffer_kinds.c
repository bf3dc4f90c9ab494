/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

static const struct image_buffer_traits traits[] = {
#define BUFFER(name, spelling, holds, memory, type, rows, more, which, meaning) \
	{spelling, meaning, IMAGE_HOLDS_##holds, IMAGE_IN_##memory, type, rows, more, IMAGE_COUNTS_##which},
#include "image/buffer_kinds.def"
};

const struct image_buffer_traits *image_traits_of(enum image_buffer_kind kind)
{
	return &traits[kind];
}
