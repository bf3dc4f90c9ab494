/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/members.h"

#include <string.h>

enum { MAX_CHILDREN = 1 << 16, MAX_COUNT = 1 << 24 };
#define MAX_EXTENT INT32_MAX
#define MAX_ELEMENTS ((int64_t)1 << 48)
/* The sum over all blocks of a step, at most MAX_COUNT, fits 64 bits. */
#define MAX_BLOCK_BYTES ((int64_t)1 << 36)
#define MAX_WEIGHT_BYTES ((int64_t)1 << 48)

#define SIZE(s, m) sizeof(((struct s *)0)->m)
#define NUMBER_IN(s, m, low, high)                                                                           \
	{                                                                                                    \
#m, NUMBER, offsetof(struct s, m), SIZE(s, m), 1, low, high, NULL                            \
	}
#define NUMBERS_IN(s, m, low, high)                                                                          \
	{                                                                                                    \
#m, NUMBER, offsetof(struct s, m), SIZE(s, m[0]), SIZE(s, m) / SIZE(s, m[0]), low, high,     \
		    NULL                                                                                     \
	}
/* A float that is neither negative, infinite nor a NaN: its bits, as an integer, rise with it. */
#define MAGNITUDE_IN(s, m) NUMBER_IN(s, m, 0, 0x7f7fffff)
#define TEXT_IN(s, m)                                                                                        \
	{                                                                                                    \
#m, TEXT, offsetof(struct s, m), 0, 1, 0, 0, NULL                                            \
	}
#define BYTES_IN(s, m, n)                                                                                    \
	{                                                                                                    \
#m, BYTES, offsetof(struct s, m), 1, offsetof(struct s, n), 0, 0, NULL                       \
	}
#define INLINE_IN(s, m, layout)                                                                              \
	{                                                                                                    \
#m, INLINE, offsetof(struct s, m), SIZE(s, m), SIZE(s, m) / SIZE(s, m[0]), 0, 0, &layout     \
	}
#define LIST_IN(s, m, n, layout)                                                                             \
	{                                                                                                    \
#m, LIST, offsetof(struct s, m), 0, offsetof(struct s, n), 0, 0, &layout                     \
	}
#define LAYOUT(name, size, members)                                                                          \
	static const struct layout name = {size, sizeof members / sizeof *members, members}

static const struct member text_members[] = {{"text", TEXT, 0, 0, 1, 0, 0, NULL}};
LAYOUT(text, sizeof(char *), text_members);

static const struct member place_members[] = {{"place", NUMBER, 0, 8, 1, 0, IMAGE_BLOB_LIMIT, NULL}};
LAYOUT(place, sizeof(int64_t), place_members);

static const struct member input_members[] = {
    TEXT_IN(image_input, name),
    NUMBER_IN(image_input, token, 0, 1),
    NUMBER_IN(image_input, dtype, DTYPE_F32, DTYPE_BOOL),
    NUMBER_IN(image_input, elements, 0, MAX_ELEMENTS),
    NUMBER_IN(image_input, limit, 0, MAX_EXTENT),
    NUMBER_IN(image_input, at_leaf, 0, 1),
    NUMBER_IN(image_input, at_inner, 0, 1),
    NUMBER_IN(image_input, on_edge, 0, 1),
    MAGNITUDE_IN(image_input, within),
    NUMBER_IN(image_input, cases, 0, INT32_MAX),
    NUMBER_IN(image_input, rank, 0, IMAGE_MAX_RANK),
    NUMBERS_IN(image_input, shape, 0, MAX_EXTENT),
};
LAYOUT(input, sizeof(struct image_input), input_members);

static const struct member param_members[] = {
    TEXT_IN(tensor_info, name),
    NUMBER_IN(tensor_info, dtype, DTYPE_F32, DTYPE_BOOL),
    NUMBER_IN(tensor_info, rank, 0, TENSOR_MAX_RANK),
    NUMBERS_IN(tensor_info, shape, 0, MAX_EXTENT),
};
LAYOUT(param, sizeof(struct tensor_info), param_members);

static const struct member buffer_members[] = {
    TEXT_IN(image_buffer, name),
    NUMBER_IN(image_buffer, kind, 0, IMAGE_BUFFER_KINDS - 1),
    NUMBER_IN(image_buffer, dtype, DTYPE_F32, DTYPE_BOOL),
    NUMBER_IN(image_buffer, rows, IMAGE_ONE, IMAGE_SIZES - 1),
    NUMBER_IN(image_buffer, which, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, home, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, first, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, last, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, first_access, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, last_access, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, table, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, read_row, 0, MAX_COUNT),
    NUMBER_IN(image_buffer, at_binding, 0, 1),
    NUMBER_IN(image_buffer, row_elements, 0, MAX_ELEMENTS),
    NUMBER_IN(image_buffer, rank, 0, TENSOR_MAX_RANK),
    NUMBERS_IN(image_buffer, shape, 0, MAX_EXTENT),
    NUMBERS_IN(image_buffer, stride, 0, MAX_ELEMENTS),
};
LAYOUT(buffer, sizeof(struct image_buffer), buffer_members);

static const struct member pack_dim_members[] = {
    NUMBER_IN(image_pack_dim, axis, IMAGE_PACK_SOURCE, TENSOR_MAX_RANK - 1),
    NUMBER_IN(image_pack_dim, extent, 0, MAX_EXTENT),
    NUMBER_IN(image_pack_dim, stride, 0, MAX_EXTENT),
};
LAYOUT(pack_dim, sizeof(struct image_pack_dim), pack_dim_members);

static const struct member pack_source_members[] = {
    NUMBER_IN(image_pack_source, param, 0, MAX_COUNT),
    NUMBERS_IN(image_pack_source, begin, 0, MAX_EXTENT),
    NUMBERS_IN(image_pack_source, end, 0, MAX_EXTENT),
};
LAYOUT(pack_source, sizeof(struct image_pack_source), pack_source_members);

static const struct member recipe_members[] = {
    NUMBER_IN(image_recipe, dims, 0, IMAGE_PACK_DIMS),
    INLINE_IN(image_recipe, dim, pack_dim),
    LIST_IN(image_recipe, source, sources, pack_source),
    NUMBER_IN(image_recipe, dtype, DTYPE_F32, DTYPE_BOOL),
    NUMBER_IN(image_recipe, selected_by, 0, INT32_MAX),
};
LAYOUT(recipe, sizeof(struct image_recipe), recipe_members);

static const struct member fold_members[] = {
    TEXT_IN(image_fold, tensor.name),
    NUMBER_IN(image_fold, tensor.dtype, DTYPE_F32, DTYPE_BOOL),
    NUMBER_IN(image_fold, tensor.rank, 0, TENSOR_MAX_RANK),
    NUMBERS_IN(image_fold, tensor.shape, 0, MAX_EXTENT),
    NUMBER_IN(image_fold, recipe, 0, MAX_COUNT),
};
LAYOUT(fold, sizeof(struct image_fold), fold_members);

static const struct member match_members[] = {
    NUMBER_IN(image_match, input, 0, MAX_COUNT),
    NUMBER_IN(image_match, value, 0, MAX_EXTENT),
};
LAYOUT(match, sizeof(struct image_match), match_members);

static const struct member case_members[] = {
    TEXT_IN(image_case, name),
    NUMBER_IN(image_case, inner, 0, 1),
    NUMBER_IN(image_case, children, -1, MAX_CHILDREN),
    NUMBER_IN(image_case, parent, IMAGE_EITHER, IMAGE_YES),
    LIST_IN(image_case, match, matches, match),
};
LAYOUT(node_case, sizeof(struct image_case), case_members);

static const struct member sort_members[] = {
    NUMBER_IN(image_sort, input, 0, MAX_COUNT),
    NUMBER_IN(image_sort, slot, -1, MAX_CHILDREN),
    NUMBER_IN(image_sort, edges, 0, 1),
};
LAYOUT(sort, sizeof(struct image_sort), sort_members);

static const struct member operand_members[] = {
    TEXT_IN(image_operand, segment),
    NUMBER_IN(image_operand, buffer, 0, MAX_COUNT),
    NUMBER_IN(image_operand, role, IMAGE_OPERAND_INPUT, IMAGE_OPERAND_CONSTANT),
    NUMBER_IN(image_operand, extent.images, 0, MAX_EXTENT),
    NUMBER_IN(image_operand, extent.channels, 0, MAX_EXTENT),
    NUMBERS_IN(image_operand, extent.size, 0, MAX_EXTENT),
    NUMBER_IN(image_operand, stride.image, 0, MAX_ELEMENTS),
    NUMBER_IN(image_operand, stride.channel, 0, MAX_ELEMENTS),
    NUMBER_IN(image_operand, stride.row, 0, MAX_ELEMENTS),
    NUMBER_IN(image_operand, stride.column, 0, MAX_ELEMENTS),
    NUMBER_IN(image_operand, zero, INT16_MIN, INT16_MAX),
    NUMBER_IN(image_operand, planes, 1, 4),
};
LAYOUT(operand, sizeof(struct image_operand), operand_members);

static const struct member call_members[] = {
    TEXT_IN(image_call, name),
    BYTES_IN(image_call, stream, bytes),
    LIST_IN(image_call, operand, operands, operand),
};
LAYOUT(call, sizeof(struct image_call), call_members);

static const struct member step_members[] = {
    NUMBER_IN(image_step, target, IMAGE_TARGET_HOST, IMAGE_TARGETS - 1),
    NUMBER_IN(image_step, call, 0, MAX_COUNT),
    NUMBER_IN(image_step, kernel, 0, MAX_COUNT),
    NUMBER_IN(image_step, domain, IMAGE_DOMAIN_ONCE, IMAGE_DOMAIN_BINDING),
    NUMBER_IN(image_step, first, 0, MAX_COUNT),
    NUMBER_IN(image_step, last, 0, MAX_COUNT),
    NUMBER_IN(image_step, rows, 0, MAX_COUNT),
    NUMBER_IN(image_step, tiles, 0, INT32_MAX),
    NUMBER_IN(image_step, operations, 0, INT32_MAX),
    NUMBER_IN(image_step, head, 0, INT32_MAX),
    NUMBER_IN(image_step, blocks, 1, MAX_COUNT),
    NUMBER_IN(image_step, columns, 0, MAX_COUNT),
    NUMBER_IN(image_step, after, 0, MAX_COUNT),
    NUMBER_IN(image_step, block_bytes, 0, MAX_BLOCK_BYTES),
    NUMBER_IN(image_step, weight_bytes, 0, MAX_WEIGHT_BYTES),
    NUMBER_IN(image_step, edge_bytes, 0, MAX_WEIGHT_BYTES),
    NUMBER_IN(image_step, edge_input, 0, MAX_COUNT),
    NUMBER_IN(image_step, state_bytes, 0, MAX_WEIGHT_BYTES),
    NUMBER_IN(image_step, read_bytes, 0, MAX_WEIGHT_BYTES),
    NUMBER_IN(image_step, moved_bytes, 0, MAX_WEIGHT_BYTES),
    NUMBER_IN(image_step, cases, 0, INT32_MAX),
    NUMBER_IN(image_step, sort, 0, MAX_COUNT),
    NUMBER_IN(image_step, apart, 0, 1),
    NUMBER_IN(image_step, strategy, IMAGE_CHEAPEST, IMAGE_SUBTREES),
};
LAYOUT(step, sizeof(struct image_step), step_members);

static const struct member output_members[] = {
    TEXT_IN(image_output, name),
    NUMBER_IN(image_output, buffer, 0, MAX_COUNT),
    NUMBER_IN(image_output, at_root, 0, 1),
    LIST_IN(image_output, label, labels, text),
    NUMBER_IN(image_output, dtype, DTYPE_F32, DTYPE_BOOL),
    NUMBER_IN(image_output, rank, 0, IMAGE_MAX_RANK),
    NUMBERS_IN(image_output, shape, 0, MAX_EXTENT),
    NUMBER_IN(image_output, elements, 0, MAX_ELEMENTS),
};
LAYOUT(output, sizeof(struct image_output), output_members);

static const struct member state_members[] = {
    TEXT_IN(image_state, name),
    NUMBER_IN(image_state, layout, IMAGE_BY_NODE, IMAGE_BY_PARENT),
    NUMBER_IN(image_state, buffer, 0, MAX_COUNT),
    NUMBER_IN(image_state, dtype, DTYPE_F32, DTYPE_BOOL),
    NUMBER_IN(image_state, rank, 0, IMAGE_MAX_RANK),
    NUMBERS_IN(image_state, shape, 0, MAX_EXTENT),
    NUMBER_IN(image_state, elements, 0, MAX_ELEMENTS),
};
LAYOUT(state, sizeof(struct image_state), state_members);

static const struct member dimension_members[] = {
    TEXT_IN(image_dimension, name),
    NUMBER_IN(image_dimension, size, 1, MAX_EXTENT),
};
LAYOUT(dimension, sizeof(struct image_dimension), dimension_members);

static const struct member tool_members[] = {
    TEXT_IN(image_tool, path),
    NUMBER_IN(image_tool, size, 0, INT64_MAX),
    NUMBER_IN(image_tool, modified, INT64_MIN, INT64_MAX),
};
LAYOUT(tool, sizeof(struct image_tool), tool_members);

static const struct member symbol_members[] = {
    TEXT_IN(image_symbol, name),
    NUMBER_IN(image_symbol, place, 0, IMAGE_BLOB_LIMIT),
    NUMBER_IN(image_symbol, bytes, 0, IMAGE_BLOB_LIMIT),
};
LAYOUT(symbol, sizeof(struct image_symbol), symbol_members);

static const struct member line_members[] = {
    NUMBER_IN(image_line, place, 0, IMAGE_BLOB_LIMIT),
    NUMBER_IN(image_line, line, 0, INT32_MAX),
};
LAYOUT(line, sizeof(struct image_line), line_members);

static const struct member packed_members[] = {
    NUMBER_IN(image_packed, bytes, 0, MAX_ELEMENTS),
    NUMBERS_IN(image_packed, sum, INT64_MIN, INT64_MAX),
};
LAYOUT(packed, sizeof(struct image_packed), packed_members);

static const struct member image_members[] = {
    TEXT_IN(image, name),
    TEXT_IN(image, target),
    TEXT_IN(image, extensions),
    NUMBER_IN(image, children, -1, MAX_CHILDREN),
    NUMBER_IN(image, shared_children, 0, 1),
    NUMBER_IN(image, unroll, 0, MAX_CHILDREN),
    NUMBER_IN(image, stacked, 0, INT32_MAX),
    LIST_IN(image, input, inputs, input),
    LIST_IN(image, case_at, cases, node_case),
    LIST_IN(image, sort, sorts, sort),
    LIST_IN(image, param, params, param),
    LIST_IN(image, buffer, buffers, buffer),
    LIST_IN(image, recipe, recipes, recipe),
    LIST_IN(image, fold, folds, fold),
    LIST_IN(image, step, steps, step),
    NUMBER_IN(image, migrating, 0, 1),
    NUMBER_IN(image, flush, 0, 1),
    NUMBER_IN(image, step_barriers, 0, 1),
    LIST_IN(image, kernel_name, kernels, text),
    LIST_IN(image, call, calls, call),
    LIST_IN(image, output, outputs, output),
    LIST_IN(image, state, states, state),
    LIST_IN(image, dimension, dimensions, dimension),
    LIST_IN(image, tool, tools, tool),
    NUMBER_IN(image, blob.alignment, 1, IMAGE_BLOB_ALIGNMENT),
    NUMBER_IN(image, blob.machine, 0, UINT16_MAX),
    LIST_IN(image, blob.kernel, blob.kernels, place),
    NUMBER_IN(image, blob.frames, 0, IMAGE_BLOB_LIMIT),
    NUMBER_IN(image, blob.frame_bytes, 0, IMAGE_BLOB_LIMIT),
    LIST_IN(image, blob.function, blob.functions, symbol),
    LIST_IN(image, blob.line, blob.lines, line),
    TEXT_IN(image, listing),
    LIST_IN(image, packed, packs, packed),
};
const struct layout image_layout = {sizeof(struct image), sizeof image_members / sizeof *image_members, image_members};

/* --- the header --- */

const char image_magic[8] = {'e', 's', 'p', 'i', 'm', 'g', '\r', '\n'};
enum { UNSEALED = offsetof(struct header, stamp), VERSION = 4 };

static uint64_t mix_layout(uint64_t stamp, const struct layout *l)
{
	for (int i = 0; i < l->members; i++) {
		const struct member *m = &l->member[i];
		for (const char *c = m->name; *c; c++)
			stamp = (stamp ^ (unsigned char)*c) * 1099511628211u;
		stamp = (stamp ^ (m->kind + m->size * 8 + (uint64_t)m->high * 64)) * 1099511628211u;
		stamp = m->of ? mix_layout(stamp, m->of) : stamp;
	}
	return stamp;
}

/* A change of meaning alone needs a new VERSION. */
uint64_t image_hash_members(void)
{
	return mix_layout(VERSION + IMAGE_CONVENTION * (UINT64_C(1) << 32), &image_layout);
}

bool image_take_checksum(const void *bytes, size_t n, const struct header *h, struct checksum *sum)
{
	size_t end = h->section[WEIGHTS].offset;
	if (end > n || end < sizeof *h)
		return false;
	*sum = checksum_of((const char *)bytes + UNSEALED, end - UNSEALED);
	return true;
}

void image_seal(void *bytes, size_t n)
{
	struct header h;
	struct checksum sum;
	if (n < sizeof h)
		return;
	memcpy(&h, bytes, sizeof h);
	if (image_take_checksum(bytes, n, &h, &sum))
		memcpy((char *)bytes + offsetof(struct header, checksum), &sum, sizeof sum);
}
