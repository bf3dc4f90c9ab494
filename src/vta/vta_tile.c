/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Chooses tiles: of those that fit half of each memory, so that one half can be filled while the other is
 * used, the one with the least estimated time. */
#include "vta/vta_generate.h"

/* Factors of loops are below this. */
enum { VTA_FACTORS = 2048 };

int64_t vta_window(const struct vta_operation *op, int axis, int64_t outputs)
{
	return (outputs - 1) * op->stride[axis] + op->kernel[axis];
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static bool does_fit(const struct vta_operation *op, const struct vta_tile *tile)
{
	int64_t width = vta_window(op, 1, tile->size[1]);
	int64_t inputs = tile->inputs * vta_window(op, 0, tile->size[0]) * width;
	int64_t weights = tile->outputs * tile->inputs * op->kernel[0] * op->kernel[1];
	int64_t sums = tile->outputs * tile->size[0] * tile->size[1] * (vta_copies_sums(op) ? 2 : 1);
	int64_t constants = tile->outputs + (vta_adds_half(op) ? VTA_ROUNDING_ENTRIES : 0);
	bool down = tile->size[0] == 1 || op->stride[0] * width < VTA_FACTORS;
	bool right = tile->size[1] == 1 || op->stride[1] < VTA_FACTORS;
	return down && right && inputs <= VTA_HALF_INPUT && weights <= VTA_HALF_WEIGHT &&
	       sums + constants <= VTA_HALF_ACCUMULATOR;
}

/* Cycles of what is done with a sum besides products: it is cleared, shifted and stored; rounding works on a
 * copy of it. */
static int64_t cycles_of_sum(const struct vta_operation *op)
{
	return op->planes == 4 ? 11 : vta_copies_sums(op) ? 27 : 9;
}

/* Cycles: the busier of load and compute, and what cannot overlap, the first step.  Weights of a tile of
 * outputs stay when it is summed up in one step. */
static int64_t estimate_cycles(const struct vta_operation *op, const struct vta_tile *tile)
{
	int64_t places = op->kernel[0] * op->kernel[1];
	int64_t across = op->images * divide_up(vta_output_size(op, 0), tile->size[0]) *
			 divide_up(vta_output_size(op, 1), tile->size[1]);
	int64_t in_blocks = vta_inputs_of_group(op), out_blocks = vta_outputs_of_group(op);
	int64_t along = op->out_blocks / out_blocks * divide_up(out_blocks, tile->outputs),
		steps = divide_up(in_blocks, tile->inputs);
	int64_t window = vta_window(op, 0, tile->size[0]) * vta_window(op, 1, tile->size[1]);
	int64_t weights = tile->outputs * in_blocks * places * (256 / VTA_DMA_BYTES);
	int64_t inputs = in_blocks * window * (16 / VTA_DMA_BYTES);
	int64_t load = along * (across * inputs + (steps == 1 ? 1 : across) * weights);
	int64_t sums = tile->outputs * tile->size[0] * tile->size[1];
	int64_t loops = steps * tile->inputs * places + 6;
	int64_t compute = along * across *
			  (sums * (in_blocks * places + cycles_of_sum(op)) + 2 * loops + 8 * tile->outputs);
	return (load > compute ? load : compute) + (inputs + weights) / steps;
}

/* The sizes that are tried of an extent: all of it, and its halves rounded up, down to one. */
static int64_t next_size(int64_t size)
{
	return size == 1 ? 0 : divide_up(size, 2);
}

static void offer_tile(const struct vta_operation *op, const struct vta_tile *tile, struct vta_tile *best,
		       int64_t *least)
{
	if (!does_fit(op, tile))
		return;
	int64_t cycles = estimate_cycles(op, tile);
	if (*least < 0 || cycles < *least) {
		*least = cycles;
		*best = *tile;
	}
}

struct vta_tile vta_choose_tile(const struct vta_operation *op)
{
	int64_t least = -1;
	struct vta_tile tile, best = {1, 1, {1, 1}};
	for (tile.outputs = vta_outputs_of_group(op); tile.outputs; tile.outputs = next_size(tile.outputs))
		for (tile.inputs = vta_inputs_of_group(op); tile.inputs; tile.inputs = next_size(tile.inputs))
			for (tile.size[0] = vta_output_size(op, 0); tile.size[0];
			     tile.size[0] = next_size(tile.size[0]))
				for (tile.size[1] = vta_output_size(op, 1); tile.size[1];
				     tile.size[1] = next_size(tile.size[1]))
					offer_tile(op, &tile, &best, &least);
	return best;
}

/* Loops may each be preceded by a load of their micro-ops. */
enum { LOOP = 2, MOST_ROUNDING_LOOPS = 20 };

int64_t vta_bound_insns(const struct vta_operation *op)
{
	struct vta_tile t = vta_choose_tile(op);
	int64_t of_group = vta_outputs_of_group(op), planes = op->planes == 4 ? 4 : 1;
	int64_t tiles = op->images * (op->out_blocks / of_group) * divide_up(of_group, t.outputs) *
			divide_up(vta_output_size(op, 0), t.size[0]) * divide_up(vta_output_size(op, 1), t.size[1]);
	int64_t steps = divide_up(vta_inputs_of_group(op), t.inputs);
	int64_t step = 2 + t.inputs * (1 + LOOP * op->kernel[0] * op->kernel[1]);
	int64_t residual = op->residual ? t.outputs + LOOP : 0;
	int64_t ending = LOOP * MOST_ROUNDING_LOOPS + 2 + residual + planes * (t.outputs + LOOP);
	return 2 + tiles * (LOOP + steps * step + ending);
}
