/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From a model text to a checked graph. */
#include "ra/syntax.h"

struct ra_def *ra_parse_prelude(struct arena *a, struct ra_report *r, struct ra_syntax *syntax, int function)
{
	struct str text = str_in(a);
	str_printf(&text, "def %s\n", ra_prelude[function].text);
	ra_parse_text(a, r, syntax, RA_PRELUDE_FILE, str_text(&text), text.n, true);
	return syntax->defs.at[syntax->defs.n - 1];
}

struct ra_model *ra_make_graph(struct arena *a, struct ra_report *report, struct ra_syntax *syntax,
			       struct ra_model *model)
{
	struct ra_graph g = {.arena = a, .report = report, .model = model, .syntax = syntax};
	ra_declare(&g);
	if (!syntax->incomplete) {
		ra_expand_bodies(&g);
		ra_expand_outputs(&g);
	}
	if (!report->seen.n) {
		ra_keep_locals(&g);
		ra_finish(&g);
	}
	return report->seen.n ? NULL : model;
}

struct ra_model *ra_parse(struct arena *a, struct diags *diags, const char *file, const char *text,
			  size_t length)
{
	return ra_parse_keeping(a, diags, file, text, length, NULL, 0);
}

struct ra_model *ra_parse_keeping(struct arena *a, struct diags *diags, const char *file, const char *text,
				  size_t length, const struct ra_keep *keep, size_t n)
{
	struct ra_report report = {.arena = a, .diags = diags};
	struct ra_syntax syntax = {.keep = keep, .keeps = n};
	struct ra_model *model = ARENA_NEW(a, struct ra_model);
	model->file = arena_string(a, file ? file : "model");
	if (length > RA_TEXT_LIMIT)
		return ra_report(&report, DIAG_MODEL_LARGE, (struct diag_at){.file = model->file}, NULL,
				 "the text has %zu bytes, more than %d", length, RA_TEXT_LIMIT),
		       NULL;
	text = arena_text(a, length ? text : "", length);
	ra_parse_text(a, &report, &syntax, model->file, text, length, false);
	return ra_make_graph(a, &report, &syntax, model);
}
