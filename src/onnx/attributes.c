/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "onnx/reading.h"

#include <stdio.h>
#include <string.h>

struct making {
	struct onnx_making *graph;
	const struct onnx_node *node;
	const Onnx__AttributeProto *from;
	struct onnx_attribute *to;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct making *m, const char *format, ...)
{
	char text[400];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return onnx_refuse(m->graph->reading->diags, m->graph->graph, m->node, DIAG_BAD_ONNX, NULL,
			   "its attribute '%.100s' %s", onnx_text_of(m->from->name), text);
}

/* The kinds by number, and whether the message has a value of the kind. */
static const char *kind_name(int type)
{
	static const char *const names[] = {"UNDEFINED",      "FLOAT",	    "INT",	  "STRING",
					    "TENSOR",	      "GRAPH",	    "FLOATS",	  "INTS",
					    "STRINGS",	      "TENSORS",    "GRAPHS",	  "SPARSE_TENSOR",
					    "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
	return type > 0 && type < (int)(sizeof names / sizeof *names) ? names[type] : NULL;
}

/* Files before version 2 of the format do not say the kind: the value that is there does. */
static int find_kind(const Onnx__AttributeProto *a)
{
	if (a->has_type)
		return a->type;
	return a->has_f	      ? ONNX_KIND_FLOAT
	       : a->has_i     ? ONNX_KIND_INT
	       : a->has_s     ? ONNX_KIND_STRING
	       : a->t	      ? ONNX_KIND_TENSOR
	       : a->g	      ? ONNX_KIND_GRAPH
	       : a->n_floats  ? ONNX_KIND_FLOATS
	       : a->n_ints    ? ONNX_KIND_INTS
	       : a->n_strings ? ONNX_KIND_STRINGS
			      : 0;
}

static bool make_texts(struct making *m)
{
	struct arena *arena = m->graph->reading->arena;
	struct onnx_text *text = ARENA_ARRAY(arena, struct onnx_text, m->from->n_strings + 1);
	for (size_t i = 0; i < m->from->n_strings; i++)
		text[i] = onnx_text_of_bytes(arena, m->from->strings[i]);
	m->to->strings = text;
	m->to->n = m->from->n_strings;
	return true;
}

static bool make_tensor(struct making *m)
{
	struct onnx_reading *r = m->graph->reading;
	char what[200];
	snprintf(what, sizeof what, "the attribute '%.60s' of node %d (%.60s)", m->to->name, m->node->number,
		 m->node->op);
	struct onnx_tensor *t = ARENA_NEW(r->arena, struct onnx_tensor);
	m->to->tensor = t;
	return m->from->t ? onnx_make_tensor(r, what, m->from->t, t)
			  : refuse(m, "has no tensor, though it is one");
}

static bool make_graph(struct making *m)
{
	if (!m->from->g)
		return refuse(m, "has no graph, though it is one");
	m->to->graph = onnx_make_graph(m->graph->reading, m->graph, m->from->g);
	return m->to->graph;
}

/* A value of the kind that is not there is 0, the value that a writer may leave out. */
static bool make_value(struct making *m)
{
	const Onnx__AttributeProto *a = m->from;
	m->to->n = 1;
	switch (m->to->kind) {
	case ONNX_KIND_FLOAT:
		return m->to->f = a->f, true;
	case ONNX_KIND_INT:
		return m->to->i = a->i, true;
	case ONNX_KIND_STRING:
		return m->to->s = onnx_text_of_bytes(m->graph->reading->arena, a->s), true;
	case ONNX_KIND_TENSOR:
		return make_tensor(m);
	case ONNX_KIND_GRAPH:
		return make_graph(m);
	case ONNX_KIND_FLOATS:
		return m->to->floats = a->floats, m->to->n = a->n_floats, true;
	case ONNX_KIND_INTS:
		return m->to->ints = a->ints, m->to->n = a->n_ints, true;
	case ONNX_KIND_STRINGS:
		return make_texts(m);
	default:
		return true;
	}
}

static bool make_attribute(struct making *m)
{
	const Onnx__AttributeProto *a = m->from;
	int kind = find_kind(a);
	if (!a->name || !*a->name)
		return refuse(m, "has no name");
	for (const struct onnx_attribute *before = m->node->attribute; before < m->to; before++)
		if (strcmp(before->name, a->name) == 0)
			return refuse(m, "comes twice");
	if (a->ref_attr_name && *a->ref_attr_name)
		return refuse(m, "refers to an attribute of a function, outside of one");
	if (!kind_name(kind))
		return refuse(m, kind ? "is of kind %d, which is not known" : "says no kind", kind);
	*m->to = (struct onnx_attribute){.name = a->name,
					 .kind = kind <= ONNX_KIND_STRINGS ? (enum onnx_kind)kind
									   : ONNX_OTHER_KIND,
					 .kind_name = kind_name(kind)};
	return make_value(m);
}

/* Operators have a dozen attributes at most, so that many are compared with each other. */
enum { MOST = 256 };

bool onnx_make_attributes(struct onnx_making *g, const Onnx__NodeProto *from, struct onnx_node *node)
{
	if (from->n_attribute > MOST)
		return onnx_refuse(g->reading->diags, g->graph, node, DIAG_BAD_ONNX, NULL,
				   "it has %zu attributes; at most %d are read", from->n_attribute, MOST);
	struct onnx_attribute *to =
	    ARENA_ARRAY(g->reading->arena, struct onnx_attribute, from->n_attribute + 1);
	node->attribute = to;
	node->attributes = from->n_attribute;
	for (size_t i = 0; i < from->n_attribute; i++)
		if (!make_attribute(&(struct making){g, node, from->attribute[i], &to[i]}))
			return false;
	return true;
}
