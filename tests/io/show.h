/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures as text, for tests of their readers. */
#ifndef ESPALIER_TESTS_IO_SHOW_H
#define ESPALIER_TESTS_IO_SHOW_H

#include "io/structure.h"

#include "tests/io/files.h"

static inline void show_span(struct str *s, struct io_span span)
{
	str_add(s, span.text ? span.text : "-", span.text ? span.length : 1);
}

/* Nodes in order, each as the text of the column, or its number, and its children with what stands on the
 * edges to them: `a b[0:det,2:obj] c ^1`, the root last. */
static inline const char *show_structure(const struct io_structure *t, const char *name)
{
	struct str s = str_in(&arena);
	const struct io_column *c = io_find_column(t, name, false), *e = io_find_column(t, "deprel", true);
	for (int32_t n = 0; n < t->nodes; n++) {
		str_puts(&s, n ? " " : "");
		if (c && c->text)
			show_span(&s, c->text[n]);
		else
			str_printf(&s, "%d", n);
		for (int32_t i = t->child_begin[n]; i < t->child_begin[n + 1]; i++) {
			str_printf(&s, "%s%d", i == t->child_begin[n] ? "[" : ",", t->children[i]);
			if (e) {
				str_puts(&s, ":");
				show_span(&s, e->text[i]);
			}
			str_puts(&s, i + 1 == t->child_begin[n + 1] ? "]" : "");
		}
	}
	str_printf(&s, " ^%d", t->root);
	return str_text(&s);
}

#endif
