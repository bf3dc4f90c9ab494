/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Types of elements, and shapes, as callers see them. */
#include "api/objects.h"

static const esp_dtype public_types[DTYPES] = {
#define DTYPE(name, spelling, bits, kind, safetensors, meaning) [DTYPE_##name] = ESP_##name,
#include "base/dtype.def"
};

esp_dtype api_dtype(enum dtype type)
{
	return public_types[type];
}

/* NULL = there is no such type. */
static const struct dtype_traits *traits_of(esp_dtype type)
{
	for (int i = 0; i < DTYPES; i++)
		if (public_types[i] == type)
			return dtype_traits_of(i);
	return NULL;
}

const char *esp_dtype_name(esp_dtype type)
{
	const struct dtype_traits *t = traits_of(type);
	return t ? t->spelling : NULL;
}

size_t esp_dtype_size(esp_dtype type)
{
	const struct dtype_traits *t = traits_of(type);
	return t ? (size_t)t->bytes : 0;
}

const size_t *api_shape(struct arena *arena, const int64_t *shape, int rank)
{
	size_t *copy = ARENA_ARRAY(arena, size_t, rank);
	for (int d = 0; d < rank; d++)
		copy[d] = (size_t)shape[d];
	return copy;
}
