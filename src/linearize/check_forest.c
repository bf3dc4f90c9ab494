/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Checks of a forest before it is walked, and names of its nodes for diagnostics. */
#include "linearize/linearize.h"

#include <stdio.h>
#include <string.h>

#define MOST_NODES (INT32_MAX - 1) /* nodes + 1 is still an int32 */

static const struct diag_at nowhere;

/* --- sizes --- */

static bool check_counts(const struct lin_forest *f, struct diags *diags)
{
	if (f->nodes < 0 || f->inputs < 0)
		return diag_add(diags, DIAG_BAD_ARGUMENT, nowhere, NULL,
				"a forest of %lld nodes and %lld inputs", (long long)f->nodes,
				(long long)f->inputs);
	if (f->nodes > MOST_NODES || f->inputs > MOST_NODES)
		return diag_add(diags, DIAG_TOO_MANY_NODES, nowhere, "run fewer inputs at a time",
				"a forest of %lld nodes and %lld inputs; at most %d can be numbered",
				(long long)f->nodes, (long long)f->inputs, MOST_NODES);
	return true;
}

static bool refuse_missing(struct diags *diags, const char *array)
{
	return diag_add(diags, DIAG_BAD_ARGUMENT, nowhere, NULL, "a forest without its array '%s'", array);
}

/* The numbers of children of all nodes, or-ed together: negative where child_begin descends anywhere, or is negative.  Every
 * minibatch is checked, so the loop has no branch, and blocks for vectors.  Differences wrap; without a negative number none
 * does. */
static int32_t collect_counts(const struct lin_forest *f)
{
	enum { BLOCK = 16 };
	const int32_t *begin = f->child_begin;
	uint32_t counts = 0, signs = begin[0];
	int64_t n = 0;
	for (; n + BLOCK <= f->nodes; n += BLOCK)
		for (int i = 0; i < BLOCK; i++) {
			counts |= (uint32_t)begin[n + i + 1] - (uint32_t)begin[n + i];
			signs |= (uint32_t)begin[n + i + 1];
		}
	for (; n < f->nodes; n++) {
		counts |= (uint32_t)begin[n + 1] - (uint32_t)begin[n];
		signs |= (uint32_t)begin[n + 1];
	}
	return (int32_t)(counts | (signs & INT32_MIN));
}

static bool refuse_begin(const struct lin_forest *f, struct diags *diags)
{
	int64_t n = 0;
	while (f->child_begin[n] >= 0 && f->child_begin[n] <= f->child_begin[n + 1])
		n++;
	return diag_add(diags, DIAG_BAD_CHILD_BEGIN, nowhere,
			"child_begin must ascend from 0 or more; it has an entry more than there are nodes",
			"the children of node %lld begin at %d and end at %d", (long long)n,
			f->child_begin[n], f->child_begin[n + 1]);
}

bool lin_check_sizes(const struct lin_forest *f, int32_t *counts, struct diags *diags)
{
	int32_t all = 0;
	if (!check_counts(f, diags))
		return false;
	if (f->inputs && !f->root)
		return refuse_missing(diags, "root");
	if (f->nodes && !f->child_begin)
		return refuse_missing(diags, "child_begin");
	if (f->nodes && (all = collect_counts(f)) < 0)
		return refuse_begin(f, diags);
	if (f->nodes && f->child_begin[f->nodes] > f->child_begin[0] && !f->children)
		return refuse_missing(diags, "children");
	if (counts)
		*counts = all;
	return true;
}

/* --- names --- */

/* Whether the root reaches the node. */
static bool is_reached(const struct lin_forest *f, int32_t root, int32_t id, int32_t *stack, int32_t *seen)
{
	int32_t n = 0;
	if (root < 0 || root >= f->nodes || seen[root])
		return false;
	for (seen[stack[n++] = root] = 1; n;) {
		int32_t at = stack[--n];
		for (int32_t i = f->child_begin[at]; i < f->child_begin[at + 1]; i++) {
			int32_t c = f->children[i];
			if (c >= 0 && c < f->nodes && !seen[c])
				seen[stack[n++] = c] = 1;
		}
	}
	return seen[id];
}

/* The first input that contains the node, or -1. */
static int64_t input_of(const struct lin_forest *f, int32_t id, int32_t *scratch, int32_t *marks)
{
	int64_t i = 0;
	if (f->input_begin) {
		while (i + 1 < f->inputs && f->input_begin[i + 1] <= id)
			i++;
		return f->inputs ? i : -1;
	}
	memset(marks, 0, f->nodes * sizeof *marks);
	while (i < f->inputs && !is_reached(f, f->root[i], id, scratch, marks))
		i++;
	return i < f->inputs ? i : -1;
}

struct lin_name lin_name_of(const struct lin_forest *f, int64_t input, int32_t id)
{
	struct lin_name name = {.input = input, .node = id};
	const struct lin_origin *origin = input >= 0 && input < f->origins ? &f->origin[input] : NULL;
	bool read = origin && origin->file;
	if (input >= 0 && f->input_begin)
		name.node -= f->input_begin[input];
	if (read) {
		name.at = (struct diag_at){.file = origin->file, .line = origin->line};
		name.may_collapse = origin->may_collapse;
		name.may_binarize = origin->may_binarize;
	}
	if (input < 0)
		snprintf(name.text, sizeof name.text, "node %d", id);
	else
		snprintf(name.text, sizeof name.text, "node %lld of %s %lld", (long long)name.node,
			 read ? "structure" : "input", (long long)(read ? origin->structure : input));
	return name;
}

struct lin_name lin_name(const struct lin_forest *f, int32_t id, int32_t *scratch, int32_t *marks)
{
	return lin_name_of(f, input_of(f, id, scratch, marks), id);
}
