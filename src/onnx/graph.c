/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "onnx/graph.h"

#include "ra/ra.h"

#include <stdio.h>
#include <string.h>

const struct onnx_type_traits *onnx_type_traits_of(enum onnx_type type)
{
	static const struct onnx_type_traits traits[ONNX_TYPES] = {
	    [ONNX_UNKNOWN_TYPE] = {"unknown", 0, DTYPES},
#define ONNX_TYPE(name, number, spelling, bits, dtype) [number] = {spelling, bits, dtype},
#include "onnx/onnx_types.def"
	};
	return &traits[(unsigned)type < ONNX_TYPES ? type : ONNX_UNKNOWN_TYPE];
}

/* Names may be long: what a message shows of one ends in the middle of none of its characters. */
static int count_shown(const char *name)
{
	enum { MOST = 120 };
	size_t n = strnlen(name, MOST + 1);
	if (n <= MOST)
		return n;
	for (n = MOST; n && (name[n] & 0xc0) == 0x80; n--)
		;
	return n;
}

/* With the graph, if that stands in another one's node. */
static int print_node(char *to, size_t size, const struct onnx_graph *graph, const struct onnx_node *node)
{
	bool named = *node->name, foreign = *node->domain, within = graph->outer;
	int n = within ? snprintf(to, size, "graph '%.*s', ", count_shown(graph->name), graph->name) : 0;
	return n + snprintf(to + n, size - n, "node %d%s%.*s%s (%.*s%s%.*s, %s %lld): ", node->number,
			named ? " '" : "", count_shown(node->name), node->name, named ? "'" : "",
			count_shown(node->domain), node->domain, foreign ? "." : "", count_shown(node->op), node->op,
			graph->table ? graph->table->version : "opset", (long long)node->opset);
}

bool(onnx_refuse)(struct diags *diags, const struct onnx_graph *graph, const struct onnx_node *node,
		  enum diag_id id, const char *hint, const char *format, ...)
{
	char text[1200];
	int n = print_node(text, sizeof text, graph, node);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + n, sizeof text - n, format, arguments);
	va_end(arguments);
	return diag_add(diags, id, (struct diag_at){.file = graph->file}, hint, "%s", text);
}

/* Of ASCII, whatever the locale. */
static bool is_letter(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_of_names(char c)
{
	return is_letter(c) || c == '.' || (c >= '0' && c <= '9');
}

const struct onnx_attribute *onnx_find_attribute(const struct onnx_node *n, const char *name)
{
	for (size_t i = 0; i < n->attributes; i++)
		if (strcmp(n->attribute[i].name, name) == 0)
			return &n->attribute[i];
	return NULL;
}

const char *onnx_spell_name(struct arena *a, const char *name)
{
	size_t n = strlen(name), shift = is_of_names(*name) && !is_letter(*name);
	char *to = ARENA_ARRAY(a, char, n + 3);
	to[0] = '_';
	for (size_t i = 0; i < n; i++)
		to[i + shift] = is_of_names(name[i]) ? name[i] : '_';
	if (!ra_is_name(to))
		to[n + shift] = '_';
	return to;
}

bool onnx_is_spelled(const char *own, const char *name)
{
	if (is_of_names(*name) && !is_letter(*name) && *own++ != '_')
		return false;
	for (; *name; name++, own++)
		if (*own != (is_of_names(*name) ? *name : '_'))
			return false;
	return !*own || (*own == '_' && !own[1]);
}
