/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A program that is being cut, as the files of this folder share it. */
#ifndef ESPALIER_SPLIT_CUTTING_H
#define ESPALIER_SPLIT_CUTTING_H

#include "split/target_split.h"

/* A constant in blocks, and the parameter that has it. */
struct split_moved {
	sub_ref value;
	int param;
};

struct cutting {
	struct sub_program *to;
	const struct sub_program *from;
	struct split_products *products;
	/* by value of `from`: the number + 1 of the input of `to` that has it as the model does, and of the one that has it in blocks */
	int *input_of, *blocks_of;
	int *call_of;  /* by value: the number + 1 of the call that computes it */
	sub_ref *now;  /* by value: its copy in the body at hand */
	VEC(struct split_moved) moved;
	int traversals; /* with bodies */
	int inputs;	/* that were added */
};

/* Declares an input of `to` with the dimensions of a value. */
int split_add_input(struct cutting *, const struct sub_value *, enum dtype);
/* The type of bytes from `low` on. */
enum dtype split_byte_type(double low);
/* Copies a value of `from`, with what it needs, as the model has it. */
sub_ref split_copy_value(struct cutting *, sub_ref);
/* Lets a call unpack a result: to an input of `to` with dimensions that are the images, channels, rows and columns of the extent. */
void split_add_output(struct cutting *, uint32_t result, int input, struct vta_activations, const int *axis);

/* --- compute_blocks.c --- */

/* Whether a value of `from` is there in blocks, or is computed by a call, which can leave it in blocks. */
bool split_has_blocks(const struct cutting *, uint32_t value);
/* The number of the input that has such a value. */
int split_find_blocks(struct cutting *, uint32_t value);
/* Copies a value with a layout in blocks, [n][image * blocks + block][row][column][16]. */
sub_ref split_copy_blocks(struct cutting *, sub_ref);
/* Reads a value that is there in blocks as the model has it. */
sub_ref split_read_blocks(struct cutting *, uint32_t value);
/* What a function reads of blocks: their extent, and the dimensions of rows. */
struct vta_activations split_count_blocks(const int64_t extent[SPLIT_AXES]);
extern const int split_axes_of_blocks[SPLIT_AXES];

#endif
