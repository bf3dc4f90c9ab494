/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "vta/vta_pack.h"

#include "vta/vta.h"

int64_t vta_blocks(int64_t channels)
{
	return (channels + VTA_BLOCK - 1) / VTA_BLOCK;
}

/* A walk over packed vectors in their order: where the first channel of each lies in the host's array. */
struct vector {
	int64_t image, block, row, column;
};

static bool next_vector(struct vector *v, const struct vta_activations *a)
{
	if (++v->column < a->size[1])
		return true;
	v->column = 0;
	if (++v->row < a->size[0])
		return true;
	v->row = 0;
	if (++v->block < vta_blocks(a->channels))
		return true;
	v->block = 0;
	return ++v->image < a->images;
}

static int64_t find_vector(const struct vector *v, const struct vta_strides *by)
{
	return v->image * by->image + v->block * VTA_BLOCK * by->channel + v->row * by->row +
	       v->column * by->column;
}

/* Channels that a vector has. */
static int count_channels(const struct vector *v, const struct vta_activations *a)
{
	int64_t left = a->channels - v->block * VTA_BLOCK;
	return left < VTA_BLOCK ? (int)left : VTA_BLOCK;
}

static int8_t add_modulo(int8_t x, int y)
{
	return (int8_t)(uint8_t)((uint32_t)x + (uint32_t)y);
}

/* The elements of activations that lie in the host's array as they are packed; 0 = they do not. */
static int64_t count_in_place(const struct vta_activations *a, const struct vta_strides *by)
{
	int64_t row = a->size[1] * VTA_BLOCK, image = a->size[0] * row;
	bool same = a->channels == VTA_BLOCK && by->channel == 1 && (a->size[1] == 1 || by->column == VTA_BLOCK) &&
		    (a->size[0] == 1 || by->row == row) && (a->images == 1 || by->image == image);
	return same ? a->images * image : 0;
}

/* Adds to bytes that stay where they are in their order. */
static void add_to_bytes(int8_t *to, const int8_t *from, int64_t n, int added)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = add_modulo(from[i], added);
}

void vta_pack_activations(struct vta_activations a, struct vta_strides by, int zero, const int8_t *from,
			  int8_t *packed)
{
	struct vector v = {0};
	int64_t in_place = count_in_place(&a, &by);
	if (in_place) {
		add_to_bytes(packed, from, in_place, -zero);
		return;
	}
	do {
		int64_t at = find_vector(&v, &by);
		int n = count_channels(&v, &a);
		for (int c = 0; c < VTA_BLOCK; c++)
			packed[c] = c < n ? add_modulo(from[at + c * by.channel], -zero) : 0;
		packed += VTA_BLOCK;
	} while (next_vector(&v, &a));
}

void vta_unpack_activations(struct vta_activations a, struct vta_strides by, int zero, const int8_t *packed,
			    int8_t *to)
{
	struct vector v = {0};
	int64_t in_place = count_in_place(&a, &by);
	if (in_place) {
		add_to_bytes(to, packed, in_place, zero);
		return;
	}
	do {
		int64_t at = find_vector(&v, &by);
		for (int c = 0, n = count_channels(&v, &a); c < n; c++)
			to[at + c * by.channel] = add_modulo(packed[c], zero);
		packed += VTA_BLOCK;
	} while (next_vector(&v, &a));
}

static uint32_t join_bytes(const int8_t *byte, int64_t apart)
{
	uint32_t sum = 0;
	for (int plane = 0; plane < 4; plane++)
		sum |= (uint32_t)(uint8_t)byte[plane * apart] << 8 * plane;
	return sum;
}

void vta_unpack_sums(struct vta_activations a, struct vta_strides by, int zero, const int8_t *planes,
		     int32_t *to)
{
	int64_t apart = a.images * vta_blocks(a.channels) * a.size[0] * a.size[1] * VTA_BLOCK;
	struct vector v = {0};
	for (int64_t i = 0, n = count_in_place(&a, &by); i < n; i++)
		to[i] = (int32_t)(join_bytes(planes + i, apart) + (uint32_t)zero);
	if (count_in_place(&a, &by))
		return;
	do {
		int64_t at = find_vector(&v, &by);
		for (int c = 0, n = count_channels(&v, &a); c < n; c++)
			to[at + c * by.channel] = (int32_t)(join_bytes(planes + c, apart) + (uint32_t)zero);
		planes += VTA_BLOCK;
	} while (next_vector(&v, &a));
}

void vta_pack_weights(int64_t outputs, int64_t inputs, const int64_t kernel[2], const int8_t *from,
		      int8_t *packed)
{
	int64_t in_blocks = vta_blocks(inputs), places = kernel[0] * kernel[1];
	for (int64_t o = 0; o < vta_blocks(outputs) * VTA_BLOCK; o++)
		for (int64_t i = 0; i < in_blocks * VTA_BLOCK; i++)
			for (int64_t k = 0; k < places; k++) {
				int64_t block = (o / VTA_BLOCK * in_blocks + i / VTA_BLOCK) * places + k;
				packed[(block * VTA_BLOCK + o % VTA_BLOCK) * VTA_BLOCK + i % VTA_BLOCK] =
				    o < outputs && i < inputs ? from[(o * inputs + i) * places + k] : 0;
			}
}
