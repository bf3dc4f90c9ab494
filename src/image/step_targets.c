/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include <string.h>

static const char *const names[] = {
#define STEP_TARGET(name, spelling, meaning) spelling,
#include "image/step_targets.def"
};

const char *image_target_name(enum image_target target)
{
	return names[target];
}

bool image_find_target(const char *name, enum image_target *target)
{
	for (int i = 0; i < IMAGE_TARGETS; i++)
		if (!strcmp(names[i], name)) {
			*target = (enum image_target)i;
			return true;
		}
	return false;
}
