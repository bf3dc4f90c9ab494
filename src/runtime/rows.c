/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rows of results: the caller reads them row-major without gaps, kernels store them padded and perhaps with
 * their dimensions in another order. */
#include "runtime/shared.h"

#include <string.h>

bool rt_is_dense(const struct image_buffer *b)
{
	int64_t stride = 1;
	for (int d = b->rank; d-- > 0; stride *= b->shape[d])
		if (b->shape[d] > 1 && b->stride[d] != stride)
			return false;
	return true;
}

int64_t rt_row_elements(const struct image_buffer *b)
{
	int64_t n = 1;
	for (int d = 0; d < b->rank; d++)
		n *= b->shape[d];
	return n;
}

/* Whether the caller's rows of a result, each of which may be several of a buffer, do not lie there without gaps. */
bool rt_copies_results(const struct image *image, const struct image_buffer *b)
{
	return !rt_is_dense(b) || (image_stack(image) > 1 && b->row_elements != rt_row_elements(b));
}

/* The last dimensions of a row that lie in the buffer without gaps, in the caller's order. */
struct piece {
	int first;	  /* dimension; those before it are stepped through */
	int64_t elements; /* 1 = the last dimension has gaps as well */
};

static struct piece find_piece(const struct image_buffer *b)
{
	struct piece p = {b->rank, 1};
	while (p.first > 0 && (b->shape[p.first - 1] == 1 || b->stride[p.first - 1] == p.elements))
		p.elements *= b->shape[--p.first];
	return p;
}

/* Advances the index of the dimensions before the piece in row-major order and returns its offset in the buffer. */
static int64_t next_piece(const struct image_buffer *b, const struct piece *p, int64_t *index, int64_t at)
{
	for (int d = p->first; d-- > 0;) {
		at += b->stride[d];
		if (++index[d] < b->shape[d])
			break;
		at -= b->shape[d] * b->stride[d];
		index[d] = 0;
	}
	return at;
}

/* Bytes of an element. */
static size_t width_of(const struct image_buffer *b)
{
	return (size_t)dtype_traits_of(b->dtype)->bytes;
}

void rt_get_row(const struct image_buffer *b, const void *from, int64_t row, void *to)
{
	struct piece p = find_piece(b);
	int64_t index[TENSOR_MAX_RANK] = {0}, n = rt_row_elements(b), at = 0;
	size_t width = width_of(b);
	const char *begin = (const char *)from + (size_t)(row * b->row_elements) * width;
	for (int64_t i = 0; i < n; i += p.elements, at = next_piece(b, &p, index, at))
		memcpy((char *)to + (size_t)i * width, begin + (size_t)at * width, (size_t)p.elements * width);
}

/* Rows of results are often as short as this many bytes: a call takes longer than to copy them by words. */
enum { SHORT_ROW = 64 };

static void copy_short_row(char *to, const char *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += sizeof(uint32_t))
		memcpy(to + i, from + i, sizeof(uint32_t));
}

void rt_get_rows(const struct image_buffer *b, const void *from, const struct rt_rows *rows, void *to)
{
	const struct piece p = find_piece(b);
	const int64_t n = rt_row_elements(b);
	const size_t width = width_of(b), bytes = (size_t)n * width, stride = (size_t)b->row_elements * width;
	const bool whole = p.elements == n, is_short = bytes <= SHORT_ROW && bytes % sizeof(uint32_t) == 0;
	for (int64_t i = 0; i < rows->n; i++) {
		const int64_t place = rows->place ? rows->place[i] : i;
		const int64_t row = rows->row ? rows->row[place] : rows->first + place;
		const char *begin = (const char *)from + (size_t)row * stride;
		char *at = (char *)to + (size_t)place * bytes;
		if (!whole)
			rt_get_row(b, from, row, at);
		else if (is_short)
			copy_short_row(at, begin, bytes);
		else
			memcpy(at, begin, bytes);
	}
}

void rt_put_row(const struct image_buffer *b, const void *from, int64_t row, void *to)
{
	struct piece p = find_piece(b);
	int64_t index[TENSOR_MAX_RANK] = {0}, n = rt_row_elements(b), at = 0;
	size_t width = width_of(b);
	char *begin = (char *)to + (size_t)(row * b->row_elements) * width;
	for (int64_t i = 0; i < n; i += p.elements, at = next_piece(b, &p, index, at))
		memcpy(begin + (size_t)at * width, (const char *)from + (size_t)i * width, (size_t)p.elements * width);
}

/* Where a row of a buffer begins, in memory of rows like its own. */
static const char *row_in(const struct image_buffer *b, const void *memory, int64_t row)
{
	return (const char *)memory + (size_t)(row * b->row_elements) * width_of(b);
}

/* A row in memory of rows like the buffer's, or a dense copy of it as row `to`, which is valid until the next run.  No other
 * thread uses the session meanwhile. */
static const void *dense_row(const struct rt_session *s, int buffer, const void *memory, int64_t row, int64_t to)
{
	const struct image_buffer *b = &s->image->buffer[buffer];
	if (!rt_copies_results(s->image, b))
		return row_in(b, memory, row);
	char *dense = (char *)s->dense[buffer] + (size_t)(to * rt_row_elements(b)) * width_of(b);
	rt_get_row(b, memory, row, dense);
	return dense;
}

/* A row as the caller counts them, which may be several of the buffer. */
static const void *buffer_row(const struct rt_session *s, int buffer, int64_t row)
{
	int64_t stack = image_stack(s->image), first = row * stack;
	for (int64_t i = stack; i-- > 1;)
		dense_row(s, buffer, s->buffers[buffer], first + i, first + i);
	return dense_row(s, buffer, s->buffers[buffer], first, first);
}

/* How many nodes, or inputs, the caller counts. */
static int64_t count_given(const struct rt_session *s, enum image_size size)
{
	return s->sizes[size] / image_stack(s->image);
}

const void *rt_session_row(const struct rt_session *s, int output, int64_t row)
{
	if (output < 0 || output >= s->image->outputs)
		return NULL;
	bool at_root = s->image->output[output].at_root;
	if (row < 0 || row >= count_given(s, at_root ? IMAGE_INPUTS : IMAGE_NODES))
		return NULL;
	bool as_given = at_root || image_stack(s->image) > 1; /* the rows of stacks are numbered in place */
	return buffer_row(s, s->image->output[output].buffer, as_given ? row : s->order.number[row]);
}

const void *rt_session_root_row(const struct rt_session *s, int output, int64_t input)
{
	if (output < 0 || output >= s->image->outputs || input < 0 || input >= count_given(s, IMAGE_INPUTS))
		return NULL;
	const struct image_output *o = &s->image->output[output];
	int64_t stack = image_stack(s->image);
	return buffer_row(s, o->buffer, o->at_root ? input : s->order.root[input * stack] / stack);
}

const void *rt_session_rows(const struct rt_session *s, int output, size_t *stride)
{
	const struct image_output *o = output >= 0 && output < s->image->outputs ? &s->image->output[output] : NULL;
	int64_t inputs = count_given(s, IMAGE_INPUTS);
	if (!o || !inputs || !(o->at_root || s->order.in_place))
		return NULL;
	const struct image_buffer *b = &s->image->buffer[o->buffer];
	bool copied = rt_copies_results(s->image, b);
	*stride = (size_t)(copied ? rt_row_elements(b) : b->row_elements) * (size_t)image_stack(s->image) * width_of(b);
	for (int64_t i = inputs; copied && i-- > 0;)
		buffer_row(s, o->buffer, i);
	return buffer_row(s, o->buffer, 0);
}

const void *rt_session_state_row(const struct rt_session *s, int state, int64_t node)
{
	if (state < 0 || state >= s->image->states || node < 0 || node >= s->sizes[IMAGE_NODES])
		return NULL;
	const struct image_state *st = &s->image->state[state];
	const struct image_buffer *b = &s->image->buffer[st->buffer];
	int32_t number = s->order.number[node];
	int32_t row = b->read_row ? ((const int32_t *)s->buffers[b->read_row - 1])[number] : number;
	if (row < 0)
		return dense_row(s, st->buffer, s->buffers[b->table - 1], -1 - (int64_t)row, number);
	return buffer_row(s, st->buffer, st->layout == IMAGE_BY_PARENT ? s->order.place[number] : number);
}
