/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes ONNX files, field by field of the standard's onnx.proto: graphs that hold graphs, of any size. */
#ifndef ESPALIER_TESTS_ONNX_ENCODE_H
#define ESPALIER_TESTS_ONNX_ENCODE_H

#include "base/str.h"

#include <stdint.h>
#include <string.h>

enum { FLOATS = 1, INTS = 7, TRUTHS = 9 }; /* types of elements */

static inline void put_varint(struct str *s, uint64_t n)
{
	for (; n > 127; n >>= 7)
		str_add(s, (char[]){(char)((n & 127) | 128)}, 1);
	str_add(s, (char[]){(char)n}, 1);
}

static inline void put_number(struct str *s, int field, int64_t n)
{
	put_varint(s, (uint64_t)field << 3);
	put_varint(s, (uint64_t)n);
}

static inline void put_bytes(struct str *s, int field, const void *bytes, size_t n)
{
	put_varint(s, (uint64_t)field << 3 | 2);
	put_varint(s, n);
	str_add(s, bytes, n);
}

static inline void put_text(struct str *s, int field, const char *text)
{
	put_bytes(s, field, text, strlen(text));
}

static inline void put_part(struct str *s, int field, const struct str *part)
{
	put_bytes(s, field, str_text(part), part->n);
}

/* --- attributes of a node --- */

static inline void put_integer(struct str *node, const char *name, int64_t n)
{
	struct str s = str_in(node->arena);
	put_text(&s, 1, name);
	put_number(&s, 3, n);
	put_number(&s, 20, 2);
	put_part(node, 5, &s);
}

static inline void put_integers(struct str *node, const char *name, const int64_t *n, int count)
{
	struct str s = str_in(node->arena);
	put_text(&s, 1, name);
	for (int i = 0; i < count; i++)
		put_number(&s, 8, n[i]);
	put_number(&s, 20, 7);
	put_part(node, 5, &s);
}

static inline void put_graph(struct str *node, const char *name, const struct str *graph)
{
	struct str s = str_in(node->arena);
	put_text(&s, 1, name);
	put_part(&s, 6, graph);
	put_number(&s, 20, 5);
	put_part(node, 5, &s);
}

/* --- parts of a graph --- */

static inline struct str begin_node(struct arena *a, const char *op, int inputs, const char *const *in,
				    int outputs, const char *const *out)
{
	struct str s = str_in(a);
	for (int i = 0; i < inputs; i++)
		put_text(&s, 1, in[i]);
	for (int i = 0; i < outputs; i++)
		put_text(&s, 2, out[i]);
	put_text(&s, 4, op);
	return s;
}

static inline void put_node(struct str *graph, const struct str *node)
{
	put_part(graph, 1, node);
}

/* An input of the whole graph. */
static inline void put_input(struct str *graph, const char *name, int type, int rank, const int64_t *dim)
{
	struct str shape = str_in(graph->arena), tensor = shape, kind = shape, value = shape;
	for (int d = 0; d < rank; d++) {
		struct str extent = str_in(graph->arena);
		put_number(&extent, 1, dim[d]);
		put_part(&shape, 1, &extent);
	}
	put_number(&tensor, 1, type);
	put_part(&tensor, 2, &shape);
	put_part(&kind, 1, &tensor);
	put_text(&value, 1, name);
	put_part(&value, 2, &kind);
	put_part(graph, 11, &value);
}

/* A value of which the type and the shape are left out. */
static inline void put_name(struct str *graph, int field, const char *name)
{
	struct str value = str_in(graph->arena);
	put_text(&value, 1, name);
	put_part(graph, field, &value);
}

static inline void put_body_input(struct str *graph, const char *name)
{
	put_name(graph, 11, name);
}

static inline void put_output(struct str *graph, const char *name)
{
	put_name(graph, 12, name);
}

static inline void put_tensor(struct str *graph, const char *name, int type, int rank, const int64_t *dim,
			      const void *elements, size_t bytes)
{
	struct str s = str_in(graph->arena);
	for (int d = 0; d < rank; d++)
		put_number(&s, 1, dim[d]);
	put_number(&s, 2, type);
	put_text(&s, 8, name);
	put_bytes(&s, 9, elements, bytes);
	put_part(graph, 5, &s);
}

/* The bytes of a file. */
static inline struct str finish_model(const struct str *graph, int opset)
{
	struct str s = str_in(graph->arena), set = s;
	put_text(&set, 1, "");
	put_number(&set, 2, opset);
	put_number(&s, 1, 8);
	put_part(&s, 7, graph);
	put_part(&s, 8, &set);
	return s;
}

#endif
