/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/reader.h"

#include "io/conllu.h"
#include "io/json.h"
#include "io/plain.h"

#include <string.h>

/* --- which format --- */

static const struct {
	const char *end;
	enum io_format format;
} ends[] = {
    {".conllu", IO_CONLLU}, {".conll", IO_CONLLU}, {".json", IO_JSON},	  {".jsonl", IO_JSON},
    {".ndjson", IO_JSON},   {".ptb", IO_BRACKETS}, {".mrg", IO_BRACKETS},
};

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);
	return n > m && strcmp(path + n - m, end) == 0;
}

enum io_format io_format_of_name(const char *path)
{
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (ends_with(path, ends[i].end))
			return ends[i].format;
	return IO_AUTO;
}

/* The number of a line of CoNLL-U, 3, 3-4 or 3.1, and the tab behind it. */
static bool begins_with_id(const char *p, const char *end)
{
	if (p == end || *p < '0' || *p > '9')
		return false;
	while (p < end && ((*p >= '0' && *p <= '9') || *p == '-' || *p == '.'))
		p++;
	return p < end && *p == '\t';
}

enum io_format io_format_of_text(const char *text, size_t length, enum io_format otherwise)
{
	const char *end = text + length, *p = io_skip_space(text, end);
	char c = p < end ? *p : 0;
	if (c == '{' || c == '[')
		return IO_JSON;
	if (c == '#' || begins_with_id(p, end))
		return IO_CONLLU;
	return c == '(' ? IO_BRACKETS : otherwise;
}

/* --- brackets --- */

static const char *words_of(const struct io_tree *t, struct arena *arena)
{
	struct str s = str_in(arena);
	for (int32_t n = 0; n < t->nodes; n++) {
		if (t->word[n].text && s.n)
			str_add(&s, " ", 1);
		if (t->word[n].text)
			str_add(&s, t->word[n].text, t->word[n].length);
	}
	return str_text(&s);
}

static struct io_structure structure_of(const struct io_tree *t, struct arena *arena)
{
	struct io_column *column = ARENA_ARRAY(arena, struct io_column, 2);
	column[0] = (struct io_column){.names = "word|form|token", .text = t->word};
	column[1] = (struct io_column){.names = "label|tag|category", .text = t->label};
	return (struct io_structure){.nodes = t->nodes,
				     .root = t->nodes - 1,
				     .child_begin = t->child_begin,
				     .children = t->children,
				     .column = column,
				     .columns = 2,
				     .sentence = words_of(t, arena)};
}

static enum io_next next_tree(struct io_text *t, const struct io_view *v, struct arena *arena,
			      struct diags *diags, struct io_structure *to)
{
	struct io_tree tree;
	enum io_next next = io_ptb_next(t, arena, diags, &tree);
	if (next != IO_TREE)
		return next;
	if (v->collapse)
		tree = io_collapse(&tree, arena);
	if (v->binarize)
		tree = io_binarize(&tree, (enum io_side)v->binarize, arena);
	*to = structure_of(&tree, arena);
	return IO_TREE;
}

enum io_next io_next_structure(struct io_text *t, const struct io_view *v, struct arena *arena,
			       struct diags *diags, struct io_structure *to)
{
	if (t->stopped)
		return IO_END;
	switch (v->format) {
	case IO_CONLLU:
		return io_conllu_next(t, v->enhanced, arena, diags, to);
	case IO_JSON:
		return io_json_next(t, v->sequence, arena, diags, to);
	case IO_PLAIN:
		return io_plain_next(t, arena, diags, to);
	case IO_BRACKETS:
	case IO_AUTO:
		break;
	}
	return next_tree(t, v, arena, diags, to);
}
