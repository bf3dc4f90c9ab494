/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Makes streams of operations on int8 activations: convolutions and products of matrices with all that the
 * accelerator can do behind them.
 *
 *     sum = bias + products of inputs and weights
 *     y = min(max(round(sum / 2^shift) + offset + (residual << residual_shift), low), high)
 *
 * or, where the residual comes first, min(max(round((sum + (residual << residual_shift)) / 2^shift) + offset,
 * low), high).
 *
 * Scales that are powers of two are requantised so; others need a multiplication that the device does not
 * have: then the sums themselves are stored, and the host requantises.  Sums are int32, which wraps around,
 * and so do the additions by which they are rounded: a sum is rounded as it should be if it lies 2^shift or
 * more from the limits.
 *
 * Activations lie in memory as [image][block of 16 channels][row][column][16], weights as [block of
 * outputs][block of inputs of its group][row][column][16 outputs][16 inputs].  Around images are zeros. */
#ifndef ESPALIER_VTA_VTA_GENERATE_H
#define ESPALIER_VTA_VTA_GENERATE_H

#include "vta/vta.h"
#include "vta/vta_pack.h"

/* How a sum is divided by 2^shift: to the nearest integer, and of two that are as near */
enum vta_rounding {
	VTA_HALF_UP,   /* the larger */
	VTA_HALF_EVEN, /* the even one, as ONNX and IEEE 754 do */
	VTA_HALF_TWICE /* rounded twice: to a multiple of 2, halves up, then to one of 2^shift, halves away
			* from zero, as TensorFlow Lite's products with multiples of a power of two do */
};

/* Sizes along [0] rows and [1] columns of an image.  A product of a matrix of N rows is a convolution of one
 * image of one row and N columns with a kernel of 1 x 1. */
struct vta_operation {
	const char *name; /* of the operation; its constants are NAME.w, NAME.b, NAME.r and NAME.h */
	const char *input, *output, *residual; /* names of activations; residual: NULL = none */
	int64_t images, in_blocks, out_blocks;
	int64_t size[2];	      /* of the input */
	int64_t kernel[2], stride[2]; /* kernel: at most 16 */
	int64_t before[2], after[2];  /* zeros around an image, fewer than the kernel has places */
	int shift;		      /* 0 to 31; of two roundings, the first of which divides by 2 */
	int residual_shift;	      /* 0 to 6; the residual has the size of the output */
	int offset;		      /* what is added to the quotient: -256 to 256 */
	bool residual_first;	      /* it is part of the sum that is divided, or stored */
	int low, high;		      /* -128 to 127 */
	const int8_t *weights;	      /* packed */
	const int32_t *bias;	      /* [out_blocks * 16]; NULL = zeros */
	int64_t groups; /* of blocks, of one as many as of another: outputs of a group are computed of its
			   inputs alone.  0 or 1 = of all.  Depthwise, a group is a block, and its blocks of
			   weights are diagonal */
	bool bound;	/* weights and bias are none of the stream's constants but inputs, NAME.w and NAME.b,
			   which are laid out likewise, and both pointers are NULL */
	enum vta_rounding rounding;
	int planes; /* 4 = the output is the sums, as four planes: [byte, the lowest first][activations].
		       There is no shift then, no residual but a first one, and no bounds.  Else 0 or 1: int8
		     */
};

/* The rows (0) or columns (1) of the output. */
int64_t vta_output_size(const struct vta_operation *, int axis);

/* A stream that runs the operations one after the other.  Activations that no operation computes are inputs
 * of the stream, those that none reads are outputs, others scratch memory.  False after `vta-operation`.  The
 * operations need not live longer than the call. */
bool vta_generate(struct arena *, struct diags *, const struct vta_operation *, size_t n,
		  struct vta_stream *);

/* At least as many instructions as an operation takes in a stream of several; a stream has one more, which ends it, and
 * VTA_INSNS_LIMIT at most.  The operation is one that vta_generate takes. */
int64_t vta_bound_insns(const struct vta_operation *);

/* --- what the files of the generator share --- */

/* How an operation is divided: blocks of outputs and inputs, rows and columns of the output.  A tile of
 * outputs is summed up over steps, one for each tile of inputs. */
struct vta_tile {
	int64_t outputs, inputs, size[2];
};

/* Entries of a half of each memory; weights leave the last block for the residual. */
enum {
	VTA_HALF_INPUT = 1024,
	VTA_HALF_WEIGHT = 511,
	VTA_WEIGHT_HALVES = 512,
	VTA_HALF_ACCUMULATOR = 1024,
	VTA_RESIDUAL_BLOCK = 1023
};

/* The tile with the least estimated time.  One block, row and column fits every operation. */
struct vta_tile vta_choose_tile(const struct vta_operation *);
/* The blocks of one group. */
int64_t vta_inputs_of_group(const struct vta_operation *);
int64_t vta_outputs_of_group(const struct vta_operation *);
/* Whether rounding needs a copy of the sums. */
bool vta_copies_sums(const struct vta_operation *);
/* Whether a bias is added; and the constants of rounding, which are so many entries: half of the last place,
 * and the last place. */
bool vta_adds_bias(const struct vta_operation *);
bool vta_adds_half(const struct vta_operation *);
enum { VTA_ROUNDING_ENTRIES = 2 };
/* Rows or columns of inputs that outputs are computed of. */
int64_t vta_window(const struct vta_operation *, int axis, int64_t outputs);

struct vta_emitter;
struct vta_emitter *vta_emitter_create(struct arena *);
/* Appends an instruction; it can be changed until the next is appended. */
struct vta_insn *vta_emit(struct vta_emitter *, struct vta_insn);
/* How many there are, and one of them, until the next is appended. */
size_t vta_count_insns(const struct vta_emitter *);
struct vta_insn *vta_insn_at(struct vta_emitter *, size_t);
/* Where micro-ops lie in the memory of micro-ops; loads them when they are not there. */
uint32_t vta_place_uops(struct vta_emitter *, const struct vta_uop *, uint32_t n);
/* The instructions, with micro-ops that lie from byte `begin` of the host's memory on. */
void vta_take_insns(struct vta_emitter *, uint64_t begin, struct vta_stream *);
/* All micro-ops as a segment. */
struct vta_segment vta_take_uops(struct vta_emitter *, uint64_t begin);

#endif
