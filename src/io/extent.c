/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/extent.h"

#include "io/text.h"

static const char *end_of_tree(struct io_extent *e, const char *p, const char *end)
{
	for (; p < end; p++) {
		if (*p == '(')
			e->open++;
		else if (*p == ')' ? --e->open <= 0 : !*p || (!e->open && !io_is_space(*p)))
			return p + 1;
	}
	return NULL;
}

/* A blank line ends a sentence that has a line. */
static const char *end_of_sentence(struct io_extent *e, const char *p, const char *end)
{
	for (; p < end; p++) {
		if (*p != '\n') {
			e->comment = e->line ? e->comment : *p == '#';
			e->line = true;
			e->text |= !io_is_space(*p);
			continue;
		}
		if (!e->text && e->words)
			return p + 1;
		e->words |= e->text && !e->comment;
		e->line = e->text = e->comment = false;
	}
	return NULL;
}

/* Skips the bytes of a string. */
static void pass_in_string(struct io_extent *e, char c)
{
	e->string = e->escaped || c != '"';
	e->escaped = !e->escaped && c == '\\';
}

/* Between objects stand spaces, and brackets and commas of a list. */
static bool may_precede_object(char c)
{
	return io_is_space(c) || c == '[' || c == ']' || c == ',';
}

static const char *end_of_object(struct io_extent *e, const char *p, const char *end)
{
	for (; p < end; p++) {
		if (e->string)
			pass_in_string(e, *p);
		else if (!e->open && *p != '{' && !may_precede_object(*p))
			return p + 1;
		else if (*p == '"')
			e->string = true;
		else if (*p == '{' || (*p == '[' && e->open))
			e->open++;
		else if ((*p == '}' || *p == ']') && e->open && --e->open == 0)
			return p + 1;
	}
	return NULL;
}

static const char *end_of_line(struct io_extent *e, const char *p, const char *end)
{
	for (; p < end; p++) {
		e->text |= !io_is_space(*p);
		if (*p == '\n' && e->text)
			return p + 1;
	}
	return NULL;
}

/* A number is read up to the byte behind it. */
static const char *end_of_beginning(struct io_extent *e, const char *p, const char *end)
{
	for (; p < end; p++) {
		bool number = (*p >= '0' && *p <= '9') || (e->text && (*p == '-' || *p == '.'));
		if (!number && (e->text || !io_is_space(*p)))
			return p + 1;
		e->text |= number;
	}
	return NULL;
}

const char *io_extent_end(struct io_extent *e, const char *piece, const char *end)
{
	static const char *(*const ends[])(struct io_extent *, const char *,
					   const char *) = {[IO_BRACKETS] = end_of_tree,
							    [IO_CONLLU] = end_of_sentence,
							    [IO_JSON] = end_of_object,
							    [IO_PLAIN] = end_of_line,
							    [IO_AUTO] = end_of_beginning};
	return ends[e->format](e, piece, end);
}
