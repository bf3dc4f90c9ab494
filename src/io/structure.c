/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/structure.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_WORD = 80 };

struct io_structure io_sequence(int32_t nodes, struct arena *arena)
{
	int32_t *begin = ARENA_ARRAY(arena, int32_t, (size_t)nodes + 1);
	int32_t *children = ARENA_ARRAY(arena, int32_t, nodes);
	for (int32_t n = 1; n < nodes; n++) {
		begin[n + 1] = n;
		children[n - 1] = n - 1;
	}
	return (struct io_structure){
	    .nodes = nodes, .root = nodes - 1, .child_begin = begin, .children = children, .sentence = ""};
}

/* --- columns --- */

static bool has_name(const char *names, const char *name)
{
	size_t wanted = strlen(name);
	for (const char *p = names; *p;) {
		size_t n = strcspn(p, "|");
		if (n == wanted && memcmp(p, name, n) == 0)
			return true;
		p += n + (p[n] == '|');
	}
	return false;
}

const struct io_column *io_find_column(const struct io_structure *s, const char *name, bool on_edges)
{
	const struct io_column *of_nodes = NULL;
	for (int i = 0; i < s->columns; i++) {
		const struct io_column *c = &s->column[i];
		bool json = !c->text;
		if (!has_name(c->names, name))
			continue;
		if (json || c->on_edges == on_edges)
			return c;
		if (!c->on_edges)
			of_nodes = c;
	}
	return of_nodes;
}

const char *io_column_names(const struct io_structure *s, struct arena *arena)
{
	struct str names = str_in(arena);
	for (int i = 0; i < s->columns; i++) {
		const char *name = s->column[i].names;
		if (!i || !s->column[i].on_edges)
			str_printf(&names, "%s%.*s", names.n ? ", " : "", (int)strcspn(name, "|"), name);
	}
	return str_text(&names);
}

/* --- tokens --- */

/* The id of a text, after removing as few of its last subtypes as needed. */
static int32_t cut_token(const struct io_vocab *v, struct io_span text)
{
	while (text.length && io_vocab_get(v, text.text, text.length) < 0) {
		const char *colon = memrchr(text.text, ':', text.length);
		text.length = colon ? (size_t)(colon - text.text) : 0;
	}
	return text.length ? io_vocab_get(v, text.text, text.length) : -1;
}

int32_t io_token(const struct io_text *t, const struct io_wanted *w, struct io_span text, const char *p,
		 struct diags *diags)
{
	char message[200];
	int32_t token = w->cut ? cut_token(w->vocab, text) : -1;
	if (token < 0)
		token = io_vocab_find(w->vocab, text.text, text.length);
	if (token >= 0)
		return token;
	snprintf(message, sizeof message, "'%.*s' is not in the vocabulary",
		 text.length < SHOWN_WORD ? (int)text.length : SHOWN_WORD, text.text);
	io_refuse(t, diags, DIAG_UNKNOWN_WORD, p,
		  "add a line <unk> to the vocabulary if the model was trained with one", message);
	return -1;
}

static bool refuse_missing(const struct io_text *t, const struct io_wanted *w, int32_t row,
			   struct diags *diags)
{
	return diag_add(diags, DIAG_MISSING_DATA,
			(struct diag_at){.file = t->file, .line = io_place(t->line.number)},
			"declare the input a token, or read it only at nodes that have one",
			"%s %d of structure %lld has no text that could be the integer '%s'",
			w->on_edges ? "edge" : "node", row, (long long)t->structures - 1, w->input);
}

/* A node or an edge without a text has no token, -1; an integer has no such value. */
static bool fill_missing(const struct io_text *t, const struct io_structure *s, const struct io_wanted *w,
			 int32_t row, int32_t *to, struct diags *diags)
{
	*to = w->integer ? 0 : -1;
	bool leaf = !w->on_edges && s->child_begin[row] == s->child_begin[row + 1];
	return !w->integer || !io_is_read(w, leaf) || refuse_missing(t, w, row, diags);
}

bool io_fill(const struct io_text *t, const struct io_structure *s, const struct io_column *c,
	     const struct io_wanted *w, struct arena *arena, void *to, struct diags *diags)
{
	if (!c->text)
		return io_json_fill(t, s, c, w, arena, to, diags);
	int32_t rows = w->on_edges ? s->child_begin[s->nodes] : s->nodes, *token = to;
	bool of_child = w->on_edges && !c->on_edges;
	for (int32_t i = 0; i < rows; i++) {
		struct io_span text = c->text[of_child ? s->children[i] : i];
		if (text.text ? (token[i] = io_token(t, w, text, text.text, diags)) < 0
			      : !fill_missing(t, s, w, i, &token[i], diags))
			return false;
	}
	return true;
}

/* --- words --- */

void io_add_word(struct str *to, struct io_span word)
{
	for (size_t i = 0; i < word.length; i++)
		str_add(to, word.text[i] == '\n' ? " " : word.text + i, 1);
	str_add(to, "\n", 1);
}

static const struct io_column *word_column(const struct io_structure *s)
{
	static const char *const names[] = {"word", "form", "token"};
	const struct io_column *c = NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names && !c; i++)
		c = io_find_column(s, names[i], false);
	return c;
}

static const char *join_texts(const struct io_structure *s, const struct io_column *c, struct arena *arena)
{
	struct str words = str_in(arena);
	if (c && !c->text)
		io_json_words(s, c, arena, &words);
	else
		for (int32_t n = 0; n < s->nodes; n++)
			io_add_word(&words, c ? c->text[n] : (struct io_span){0});
	return str_text(&words);
}

const char *io_node_words(const struct io_structure *s, struct arena *arena)
{
	return join_texts(s, word_column(s), arena);
}

const char *io_node_texts(const struct io_structure *s, const char *column, struct arena *arena)
{
	return join_texts(s, io_find_column(s, column, false), arena);
}
