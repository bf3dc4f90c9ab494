/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *spelling;
	enum diag_status status;
} registry[] = {
#define DIAG(name, status, spelling, message, explanation, fix) {spelling, DIAG_STATUS_##status},
#include "base/diag.def"
#undef DIAG
};

const char *diag_spelling(enum diag_id id)
{
	return registry[id].spelling;
}

enum diag_status diag_status(enum diag_id id)
{
	return registry[id].status;
}

bool diag_find(const char *spelling, enum diag_id *id)
{
	for (int i = 0; i < DIAG_COUNT; i++)
		if (strcmp(registry[i].spelling, spelling) == 0) {
			*id = i;
			return true;
		}
	return false;
}

void diags_init(struct diags *d, const struct allocator *allocator)
{
	*d = (struct diags){.allocator = allocator};
}

static void *resize_memory(struct diags *d, void *p, size_t old_size, size_t new_size)
{
	return d->allocator->resize(d->allocator->context, p, old_size, new_size);
}

static void free_text(struct diags *d, char *text)
{
	if (text)
		resize_memory(d, text, strlen(text) + 1, 0);
}

static void free_one(struct diags *d, struct diag *g)
{
	free_text(d, g->message);
	free_text(d, g->hint);
	free_text(d, g->file);
	free_text(d, g->source);
}

void diags_free(struct diags *d)
{
	for (size_t i = 0; i < d->n; i++)
		free_one(d, &d->at[i]);
	if (d->at)
		resize_memory(d, d->at, d->capacity * sizeof *d->at, 0);
	diags_init(d, d->allocator);
}

/* Copies a text, which may be NULL.  Sets `lost` when there is no memory for it. */
static char *copy_text(struct diags *d, const char *text, size_t length)
{
	if (!text)
		return NULL;
	char *p = resize_memory(d, NULL, 0, length + 1);
	if (!p)
		return d->lost = true, NULL;
	memcpy(p, text, length);
	p[length] = 0;
	return p;
}

static char *copy_string(struct diags *d, const char *text)
{
	return copy_text(d, text, text ? strlen(text) : 0);
}

static char *copy_format(struct diags *d, const char *format, va_list args)
{
	va_list again;
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	char *p = resize_memory(d, NULL, 0, length + 1);
	if (p)
		vsnprintf(p, length + 1, format, again);
	else
		d->lost = true;
	va_end(again);
	return p;
}

static struct diag *next_slot(struct diags *d)
{
	if (d->n == d->capacity) {
		size_t capacity = d->capacity ? 2 * d->capacity : 4;
		void *p = resize_memory(d, d->at, d->capacity * sizeof *d->at, capacity * sizeof *d->at);
		if (!p)
			return d->lost = true, NULL;
		d->at = p;
		d->capacity = capacity;
	}
	return &d->at[d->n];
}

/* Longer lines are not shown: they help nobody, and a file may be one line. */
enum { SHOWN_LINE = 4000 };

static char *copy_line(struct diags *d, const char *line)
{
	size_t length = line ? strcspn(line, "\n\r") : 0;
	return length <= SHOWN_LINE ? copy_text(d, line, length) : NULL;
}

bool(diag_add)(struct diags *d, enum diag_id id, struct diag_at at, const char *hint, const char *format, ...)
{
	struct diag *slot = next_slot(d);
	if (!slot)
		return false;
	va_list args;
	va_start(args, format);
	*slot = (struct diag){
	    .id = id,
	    .message = copy_format(d, format, args),
	    .hint = copy_string(d, hint),
	    .file = copy_string(d, at.file),
	    .source = copy_line(d, at.source),
	    .line = at.line,
	    .column = at.column,
	    .input = -1,
	    .node = -1,
	};
	va_end(args);
	if (slot->message)
		d->n++;
	else
		free_one(d, slot);
	return false;
}

bool diag_about(struct diags *d, int64_t input, int64_t node)
{
	if (d->n) {
		d->at[d->n - 1].input = input;
		d->at[d->n - 1].node = node;
	}
	return false;
}

void diags_move(struct diags *d, struct diags *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct diag *slot = next_slot(d);
		if (!slot) {
			free_one(from, &from->at[i]);
			continue;
		}
		*slot = from->at[i];
		d->n++;
	}
	d->lost |= from->lost;
	from->n = 0;
	diags_free(from);
}

void diags_copy(struct diags *d, const struct diags *from)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct diag *g = &from->at[i];
		size_t before = d->n;
		struct diag_at at = {g->file, g->line, g->column, g->source, 0};
		(diag_add)(d, g->id, at, g->hint, "%s", g->message);
		if (d->n > before)
			diag_about(d, g->input, g->node);
	}
	d->lost |= from->lost;
}

/* The caret's line repeats the tabs of the source, so that the caret is right at any tab width.  A source
 * without a column is a text that was passed to a builder. */
static void print_source(const struct diag *g, struct str *s)
{
	str_printf(s, "    %s\n", g->source);
	if (!g->column)
		return;
	str_puts(s, "    ");
	for (int i = 0; i + 1 < g->column && g->source[i]; i++)
		str_puts(s, g->source[i] == '\t' ? "\t" : (g->source[i] & 0xC0) == 0x80 ? "" : " ");
	str_puts(s, "^\n");
}

static const char *severity_of(enum diag_id id)
{
	return diag_status(id) == DIAG_STATUS_NOTICE ? "note" : "error";
}

void diag_print(const struct diag *g, struct str *s)
{
	if (g->file)
		str_printf(s, "%s:", g->file);
	if (g->file && g->line)
		str_printf(s, "%d:", g->line);
	if (g->file && g->line && g->column)
		str_printf(s, "%d:", g->column);
	str_printf(s, "%s%s: %s [%s]\n", g->file ? " " : "", severity_of(g->id), g->message,
		   diag_spelling(g->id));
	if (g->source && g->source[0])
		print_source(g, s);
	if (g->hint)
		str_printf(s, "    hint: %s\n", g->hint);
}
