/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* One parse: its arena, its diagnostics and what came out. */
#ifndef ESPALIER_TESTS_RA_SESSION_H
#define ESPALIER_TESTS_RA_SESSION_H

#include "ra/ra.h"

#include <stdlib.h>
#include <string.h>

struct session {
	struct arena arena;
	struct diags diags;
	struct ra_model *model;
	bool out_of_memory;
};

static inline void session_parse(struct session *s, const struct allocator *allocator, const char *text,
				 size_t length)
{
	jmp_buf escape;
	memset(s, 0, sizeof *s);
	arena_init(&s->arena, allocator);
	diags_init(&s->diags, allocator);
	if (arena_guard(&s->arena, &escape)) {
		s->model = NULL;
		s->out_of_memory = true;
		return;
	}
	s->model = ra_parse(&s->arena, &s->diags, "test.ra", text, length);
}

static inline void session_end(struct session *s)
{
	diags_free(&s->diags);
	arena_free(&s->arena);
}

/* The canonical text, in the session's arena. */
static inline const char *session_print(struct session *s)
{
	struct str text = str_in(&s->arena);
	ra_print(s->model, &text);
	return str_text(&text);
}

#endif
