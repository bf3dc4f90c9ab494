/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/image_file.h"

#include "base/checksum.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "words are little-endian in the file and in memory");

/* --- the description --- */

enum kind {
	NUMBER, /* `count` integers of `size` bytes, each within low .. high */
	TEXT,	/* a terminated text */
	INLINE, /* `count` structs that are part of this one */
	LIST	/* a pointer to structs, and their number at `count` */
};

/* One member of a struct. */
struct member {
	const char *name;
	enum kind kind;
	size_t at, size, count;
	int64_t low, high;
	const struct layout *of;
};

/* One struct, or another element of a list. */
struct layout {
	size_t size;
	int members;
	const struct member *member;
};

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
#define TEXT_IN(s, m)                                                                                        \
	{                                                                                                    \
#m, TEXT, offsetof(struct s, m), 0, 1, 0, 0, NULL                                            \
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

static const struct member step_members[] = {
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
LAYOUT(all, sizeof(struct image), image_members);

/* --- the frame --- */

enum section { KEY, TABLES, CODE, WEIGHTS, SECTIONS };

struct frame {
	char magic[8];
	struct checksum checksum;
	uint64_t stamp, size;
	struct {
		uint64_t offset, size;
	} section[SECTIONS];
};

static const char magic[8] = {'e', 's', 'p', 'i', 'm', 'g', '\r', '\n'};
enum { UNSEALED = offsetof(struct frame, stamp), VERSION = 4 };

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

/* A hash of the description, so that files of another one are recognised.  A change of meaning alone needs a
 * new VERSION. */
static uint64_t own_stamp(void)
{
	return mix_layout(VERSION + IMAGE_CONVENTION * (UINT64_C(1) << 32), &all);
}

/* --- writing --- */

static void put_word(struct str *s, int64_t word)
{
	str_add(s, (const char *)&word, sizeof word);
}

static void pad_to_word(struct str *s)
{
	str_add(s, "\0\0\0\0\0\0\0", -s->n % sizeof(int64_t));
}

static int64_t number_at(const char *at, size_t size)
{
	int64_t wide;
	int32_t narrow;
	if (size == sizeof wide)
		return memcpy(&wide, at, sizeof wide), wide;
	if (size == sizeof narrow)
		return memcpy(&narrow, at, sizeof narrow), narrow;
	return *(const bool *)at;
}

static void put_text(struct str *s, const char *text)
{
	text = text ? text : "";
	size_t n = strlen(text);
	put_word(s, n);
	str_add(s, text, n + 1);
	pad_to_word(s);
}

static void put_structs(struct str *s, const struct layout *l, const char *at, size_t n);

static void put_member(struct str *s, const struct member *m, const char *base)
{
	const char *at = base + m->at, *list;
	int n;
	switch (m->kind) {
	case NUMBER:
		for (size_t i = 0; i < m->count; i++)
			put_word(s, number_at(at + i * m->size, m->size));
		break;
	case TEXT:
		put_text(s, *(const char *const *)at);
		break;
	case INLINE:
		put_structs(s, m->of, at, m->count);
		break;
	case LIST:
		memcpy(&list, at, sizeof list);
		memcpy(&n, base + m->count, sizeof n);
		put_word(s, n);
		put_structs(s, m->of, list, n);
		break;
	}
}

static void put_structs(struct str *s, const struct layout *l, const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < l->members; k++)
			put_member(s, &l->member[k], at + i * l->size);
}

/* The checksum of the header covers all that stands between it and the weights.  False when they lie outside.
 */
static bool checksum_frame(const void *bytes, size_t n, const struct frame *f, struct checksum *sum)
{
	size_t end = f->section[WEIGHTS].offset;
	if (end > n || end < sizeof *f)
		return false;
	*sum = checksum_of((const char *)bytes + UNSEALED, end - UNSEALED);
	return true;
}

void image_seal(void *bytes, size_t n)
{
	struct frame f;
	struct checksum sum;
	if (n < sizeof f)
		return;
	memcpy(&f, bytes, sizeof f);
	if (checksum_frame(bytes, n, &f, &sum))
		memcpy((char *)bytes + offsetof(struct frame, checksum), &sum, sizeof sum);
}

/* A section begins at a whole word, counted from the beginning of the file. */
static void begin_section(struct frame *f, enum section which, struct str *s)
{
	pad_to_word(s);
	f->section[which].offset = s->n;
}

static void end_section(struct frame *f, enum section which, const struct str *s)
{
	f->section[which].size = s->n - f->section[which].offset;
}

static void put_sections(const struct image *image, struct frame *f, struct str *s)
{
	const char *key = image->key ? image->key : "";
	str_add(s, (const char *)f, sizeof *f);
	begin_section(f, KEY, s);
	str_add(s, key, strlen(key) + 1);
	end_section(f, KEY, s);
	begin_section(f, TABLES, s);
	put_structs(s, &all, (const char *)image, 1);
	end_section(f, TABLES, s);
	begin_section(f, CODE, s);
	if (image->blob.size)
		str_add(s, (const char *)image->blob.bytes, image->blob.size);
	end_section(f, CODE, s);
}

static const char zeros[IMAGE_PAGE];

static int64_t round_to_line(int64_t n)
{
	return (n + IMAGE_LINE - 1) / IMAGE_LINE * IMAGE_LINE;
}

/* Writes everything before the weights. */
static void put_head(const struct image *image, struct str *s)
{
	struct frame f = {.stamp = own_stamp()};
	memcpy(f.magic, magic, sizeof f.magic);
	put_sections(image, &f, s);
	if (image->packs)
		str_add(s, zeros, -s->n % IMAGE_PAGE);
	f.section[WEIGHTS].offset = s->n;
	for (int i = 0; i < image->packs; i++)
		f.section[WEIGHTS].size += round_to_line(image->packed[i].bytes);
	f.size = s->n + f.section[WEIGHTS].size;
	memcpy(s->text, &f, sizeof f);
	image_seal(s->text, s->n);
}

int image_pieces(const struct image *image, struct arena *a, const struct io_piece **pieces)
{
	struct io_piece *piece = ARENA_ARRAY(a, struct io_piece, 1 + 2 * (size_t)image->packs);
	struct str head = str_in(a);
	int n = 0;
	put_head(image, &head);
	piece[n++] = (struct io_piece){head.text, head.n};
	for (int i = 0; i < image->packs; i++) {
		const struct image_packed *p = &image->packed[i];
		if (!p->at)
			continue;
		piece[n++] = (struct io_piece){p->at, p->bytes};
		piece[n++] = (struct io_piece){zeros, round_to_line(p->bytes) - p->bytes};
	}
	*pieces = piece;
	return n;
}

void image_write(const struct image *image, struct str *out)
{
	const struct io_piece *piece;
	int n = image_pieces(image, out->arena, &piece);
	for (int i = 0; i < n; i++)
		str_add(out, piece[i].bytes, piece[i].n);
}

struct image_packed image_pack(const struct image *image, int recipe, const void *at)
{
	struct image_packed p = {.at = at};
	if (!at)
		return p;
	p.bytes = image_recipe_bytes(&image->recipe[recipe]);
	struct checksum sum = checksum_of(at, p.bytes);
	memcpy(p.sum, &sum, sizeof p.sum);
	return p;
}

/* --- reading --- */

struct reading {
	struct arena *arena;
	const char *at, *end; /* of the tables */
	const char *problem;  /* NULL = none */
	const char *where;
};

static bool refuse_member(struct reading *r, const struct member *m, const char *problem)
{
	r->problem = problem;
	r->where = m->name;
	return false;
}

static bool get_word(struct reading *r, const struct member *m, int64_t low, int64_t high, int64_t *word)
{
	if ((size_t)(r->end - r->at) < sizeof *word)
		return refuse_member(r, m, "it ends too early");
	memcpy(word, r->at, sizeof *word);
	r->at += sizeof *word;
	return (*word >= low && *word <= high) || refuse_member(r, m, "a number is out of its range");
}

static bool get_number(struct reading *r, const struct member *m, char *to)
{
	int64_t word;
	if (!get_word(r, m, m->low, m->high, &word))
		return false;
	int32_t narrow = word;
	if (m->size == sizeof word)
		memcpy(to, &word, sizeof word);
	else if (m->size == sizeof narrow)
		memcpy(to, &narrow, sizeof narrow);
	else
		*(bool *)to = word;
	return true;
}

static bool get_text(struct reading *r, const struct member *m, const char **text)
{
	int64_t n;
	if (!get_word(r, m, 0, INT32_MAX, &n))
		return false;
	size_t bytes = (n / sizeof n + 1) * sizeof n;
	if ((size_t)(r->end - r->at) < bytes || strnlen(r->at, n + 1) != (size_t)n)
		return refuse_member(r, m, "a text does not end where it should");
	*text = r->at;
	r->at += bytes;
	return true;
}

static bool get_structs(struct reading *r, const struct layout *l, char *at, size_t n);

/* Each element of a list takes at least a word, so the file bounds the memory. */
static bool get_list(struct reading *r, const struct member *m, char *base)
{
	int64_t n;
	if (!get_word(r, m, 0, (r->end - r->at) / (int64_t)sizeof n, &n))
		return false;
	int count = n;
	char *list = arena_take(r->arena, n, m->of->size);
	memcpy(base + m->at, &list, sizeof list);
	memcpy(base + m->count, &count, sizeof count);
	return get_structs(r, m->of, list, n);
}

static bool get_member(struct reading *r, const struct member *m, char *base)
{
	bool ok = true;
	switch (m->kind) {
	case NUMBER:
		for (size_t i = 0; ok && i < m->count; i++)
			ok = get_number(r, m, base + m->at + i * m->size);
		return ok;
	case TEXT:
		return get_text(r, m, (const char **)(base + m->at));
	case INLINE:
		return get_structs(r, m->of, base + m->at, m->count);
	case LIST:
		return get_list(r, m, base);
	}
	return false;
}

static bool get_structs(struct reading *r, const struct layout *l, char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < l->members; k++)
			if (!get_member(r, &l->member[k], at + i * l->size))
				return false;
	return true;
}

/* The problem of the frame; NULL = none, and sections lie inside of the file. */
static const char *check_frame(const void *bytes, size_t n, struct frame *f)
{
	if (n < sizeof *f)
		return "it is shorter than its header";
	memcpy(f, bytes, sizeof *f);
	if (memcmp(f->magic, magic, sizeof f->magic) != 0)
		return "it is no program image";
	if (f->size != n)
		return "it is not as long as it was";
	struct checksum sum;
	if (!checksum_frame(bytes, n, f, &sum))
		return "a section lies outside of it";
	if (memcmp(&sum, &f->checksum, sizeof sum) != 0)
		return "its checksum is wrong";
	if (f->stamp != own_stamp())
		return "it was written by another version";
	for (int s = 0; s < SECTIONS; s++)
		if (f->section[s].offset > n || f->section[s].size > n - f->section[s].offset)
			return "a section lies outside of it";
	return NULL;
}

static bool refuse_file(struct diags *diags, const char *where, const char *problem)
{
	return diag_add(diags, DIAG_BAD_IMAGE, (struct diag_at){0}, "compile the model again", "%s%s%s",
			where, *where ? ": " : "", problem);
}

/* Finds the packed weights that are in the tables.  NULL, or a problem. */
static const char *find_weights(struct image *image, const char *at, uint64_t size)
{
	struct image_packed *packed = (struct image_packed *)image->packed;
	for (int i = 0; i < image->packs; i++) {
		struct image_packed *p = &packed[i];
		uint64_t bytes = round_to_line(p->bytes);
		if (bytes > size)
			return "its weights end too early";
		p->at = bytes ? (const float *)at : NULL;
		struct image_packed found = image_pack(image, i, p->at);
		if (memcmp(found.sum, p->sum, sizeof found.sum) != 0)
			return "the checksum of its weights is wrong";
		at += bytes;
		size -= bytes;
	}
	return size ? "it has weights that are not in its tables" : NULL;
}

bool image_read(struct arena *arena, const void *bytes, size_t n, struct image *image, struct diags *diags)
{
	struct frame f;
	const char *problem = check_frame(bytes, n, &f), *base = bytes;
	*image = (struct image){0};
	if (problem)
		return refuse_file(diags, "", problem);
	const char *tables = base + f.section[TABLES].offset;
	struct reading r = {arena, tables, tables + f.section[TABLES].size, NULL, ""};
	struct image read = {.key = base + f.section[KEY].offset,
			     .blob.bytes = (const unsigned char *)base + f.section[CODE].offset,
			     .blob.size = f.section[CODE].size};
	if (!f.section[KEY].size || strnlen(read.key, f.section[KEY].size) != f.section[KEY].size - 1)
		return refuse_file(diags, "key", "a text does not end where it should");
	if (!get_structs(&r, &all, (char *)&read, 1))
		return refuse_file(diags, r.where, r.problem);
	if (r.at != r.end)
		return refuse_file(diags, "", "its tables do not end where they should");
	if (!image_check(&read, diags))
		return false;
	if (read.packs && ((uintptr_t)base | f.section[WEIGHTS].offset) % IMAGE_LINE)
		return refuse_file(diags, "", "its weights do not begin at a multiple of 64 bytes");
	problem = find_weights(&read, base + f.section[WEIGHTS].offset, f.section[WEIGHTS].size);
	if (problem)
		return refuse_file(diags, "", problem);
	*image = read;
	return true;
}
