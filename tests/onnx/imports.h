/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Graphs that a test puts together are imported: what their models print, or what refuses them. */
#ifndef ESPALIER_TESTS_ONNX_IMPORTS_H
#define ESPALIER_TESTS_ONNX_IMPORTS_H

#include "onnx/graph.h"
#include "ra/ra.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct diags diags;
static jmp_buf escape; /* of the arena */

/* The text of the model; NULL after a diagnostic. */
static inline const char *import_graph(const struct onnx_graph *g)
{
	struct onnx_model m;
	struct str text = str_in(&arena);
	diags_free(&diags);
	diags_init(&diags, &allocator_default);
	if (!onnx_import(&arena, &diags, g, &m))
		return NULL;
	ra_print(m.model, &text);
	return str_text(&text);
}

static inline int count_parts(const char *text, const char *part)
{
	int n = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

/* The text has a part so many times; -1 = at least once. */
static inline void check_text(const struct onnx_graph *g, const char *part, int times, const char *what)
{
	const char *text = import_graph(g);
	int n = text ? count_parts(text, part) : -2;
	if (!tap_ok(times < 0 ? n > 0 : n == times, "%s", what))
		printf("# %s\n", text ? text : diags.n ? diags.at[0].message : "");
}

static inline void check_refusal(const struct onnx_graph *g, enum diag_id id, const char *part,
				 const char *what)
{
	const char *text = import_graph(g);
	bool good = !text && diags.n && diags.at[0].id == id && strstr(diags.at[0].message, part);
	if (!tap_ok(good, "%s", what))
		printf("# %s\n", text ? text : diags.n ? diags.at[0].message : "");
}

/* Runs the tests; returns what main does. */
static inline int run_imports(void (*const *test)(void), int tests)
{
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &escape))
		return 1;
	for (int i = 0; i < tests; i++)
		test[i]();
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}

#endif
