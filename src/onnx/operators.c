/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of operators, and the attributes of a node: what it says, or else the table. */
#include "onnx/operators.h"

#include <stdio.h>
#include <stdlib.h>

const struct onnx_operator onnx_operators[] = {
#define ONNX_OP(name, domain, since, last, attributes, takes, gives, write, text)                            \
	{#name, domain, since, last, attributes, ONNX_##takes, ONNX_##gives, onnx_write_##write, text},
#include "onnx/onnx_ops.def"
};

const int onnx_operator_count = sizeof onnx_operators / sizeof *onnx_operators;

static const struct onnx_table *table_of(const struct onnx_graph *graph)
{
	static const struct onnx_table own = {onnx_operators, sizeof onnx_operators / sizeof *onnx_operators, "doc/onnx.md", "opset"};
	return graph->table ? graph->table : &own;
}

/* --- rows --- */

static bool takes_type(enum onnx_takes takes, enum onnx_type type)
{
	if (takes == ONNX_ANY || type == ONNX_UNKNOWN_TYPE)
		return true;
	switch (onnx_computed(type)) {
	case DTYPE_F32:
		return takes == ONNX_FLOATS || takes == ONNX_NUMBERS;
	case DTYPE_BOOL:
		return takes == ONNX_TRUTHS;
	default:
		return takes == ONNX_INTEGERS || takes == ONNX_NUMBERS;
	}
}

enum { HINT = 120 };

static const char *print_hint(char hint[static HINT], const struct onnx_graph *graph, const char *what)
{
	snprintf(hint, HINT, "%s lists %s", table_of(graph)->page, what);
	return hint;
}

const struct onnx_operator *onnx_find_operator(struct diags *diags, const struct onnx_graph *graph,
					       const struct onnx_node *n, enum onnx_type first)
{
	const struct onnx_table *table = table_of(graph);
	bool known = false, covered = false;
	char hint[HINT];
	for (int i = 0; i < table->rows; i++) {
		const struct onnx_operator *row = &table->row[i];
		if (strcmp(row->name, n->op) != 0 || strcmp(row->domain, n->domain) != 0)
			continue;
		known = true;
		if (n->opset < row->since || n->opset > row->last)
			continue;
		covered = true;
		if (takes_type(row->takes, first))
			return row;
	}
	if (covered)
		onnx_refuse(diags, graph, n, DIAG_ONNX_TYPE, "export the model in 32-bit types",
			    "it takes no inputs of type %s here", onnx_type_traits_of(first)->name);
	else
		onnx_refuse(diags, graph, n, DIAG_ONNX_OPERATOR,
			    print_hint(hint, graph, "the operators; write what it computes with those"),
			    known ? "the operator is not imported from this version%s%s"
				  : "there is no such operator here%s%s",
			    *n->domain ? " of the domain " : "", n->domain);
	return NULL;
}

/* --- attributes --- */

const struct onnx_attribute *onnx_attribute(const struct onnx_op *o, const char *name)
{
	return onnx_find_attribute(o->node, name);
}

bool onnx_has(const struct onnx_op *o, const char *name)
{
	return onnx_attribute(o, name) != NULL;
}

/* Where `name:` stands in the attributes of the row, behind the colon; NULL = nowhere. */
static const char *find_declared(const struct onnx_op *o, const char *name)
{
	size_t length = strlen(name);
	for (const char *p = o->row->attributes; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strncmp(p, name, length) == 0 && p[length] == ':')
			return p + length + 1;
	return NULL;
}

/* What the table says for an attribute that the node lacks: "" = nothing. */
static const char *find_default(const struct onnx_op *o, const char *name)
{
	const char *p = find_declared(o, name);
	if (!p || p[1] != '=')
		return "";
	return arena_text(o->arena, p + 2, strcspn(p + 2, " "));
}

static char letter_of(enum onnx_kind kind)
{
	static const char letters[] = {
	    [ONNX_KIND_FLOAT] = 'f',  [ONNX_KIND_INT] = 'i',	[ONNX_KIND_STRING] = 's',
	    [ONNX_KIND_TENSOR] = 't', [ONNX_KIND_GRAPH] = 'g', [ONNX_KIND_FLOATS] = 'F', [ONNX_KIND_INTS] = 'I',
	    [ONNX_KIND_STRINGS] = 'S'};
	return (size_t)kind < sizeof letters ? letters[kind] : 0;
}

bool onnx_check_attributes(const struct onnx_op *o)
{
	bool good = true;
	char hint[HINT];
	for (size_t i = 0; i < o->node->attributes; i++) {
		const struct onnx_attribute *a = &o->node->attribute[i];
		const char *declared = find_declared(o, a->name);
		if (declared && *declared == letter_of(a->kind))
			continue;
		good = onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE,
				      print_hint(hint, o->graph, "the attributes of each operator"),
				      declared ? "the attribute '%s' has the type %s"
					       : "the attribute '%s' (%s) is not supported",
				      a->name, a->kind_name);
	}
	return good;
}

int64_t onnx_int(const struct onnx_op *o, const char *name)
{
	const struct onnx_attribute *a = onnx_attribute(o, name);
	return a ? a->i : strtoll(find_default(o, name), NULL, 10);
}

double onnx_float(const struct onnx_op *o, const char *name)
{
	const struct onnx_attribute *a = onnx_attribute(o, name);
	return a ? a->f : strtod(find_default(o, name), NULL);
}

const char *onnx_string(const struct onnx_op *o, const char *name)
{
	const struct onnx_attribute *a = onnx_attribute(o, name);
	return a ? a->s.text : find_default(o, name);
}

bool onnx_ints(const struct onnx_op *o, const char *name, int n, int64_t otherwise, int64_t *out)
{
	const struct onnx_attribute *a = onnx_attribute(o, name);
	size_t given = a ? a->n : 0;
	if (given > (size_t)n)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "the attribute '%s' has %zu numbers, and at most %d make sense", name,
				      given, n);
	for (int i = 0; i < n; i++)
		out[i] = (size_t)i < given ? onnx_bounded(a->ints[i]) : otherwise;
	return true;
}

int onnx_axis(const struct onnx_op *o, int64_t axis, int rank)
{
	if (axis >= -rank && axis < rank)
		return (int)(axis < 0 ? axis + rank : axis);
	onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "there is no axis %lld of %d", (long long)axis, rank);
	return -1;
}
