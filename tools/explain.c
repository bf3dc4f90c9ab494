/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier explain: what the model was rewritten to, and what that saves. */
#include "tool.h"

static int write_explanation(const struct objects *o, const struct options *options)
{
	struct output output;
	esp_error *error;
	char *text;
	int form = options->format == FORMAT_JSON ? ESP_FORM_JSON : options->layers ? ESP_FORM_LAYERS : ESP_FORM_TEXT;
	const char *stage = options->check_mutants ? "checked-mutants" : "mutants";
	esp_status status = options->mutants || options->check_mutants
				? esp_program_dump(o->program, stage, &text, &error)
				: esp_program_explain_weights(o->program, o->weights, form, &text, &error);
	if (status)
		return report_failure(status, error);
	bool ok =
	    output_open(&output, options->output) && output_puts(&output, text) && output_commit(&output);
	esp_text_free(text);
	return ok ? 0 : EXIT_INPUT;
}

/* Mutants are lines of a schedule, whatever form an explanation may have. */
static bool check_forms(const struct options *o)
{
	if (!o->mutants && !o->check_mutants)
		return true;
	if (o->format == FORMAT_JSON)
		return complain("mutants are lines of a schedule: leave out --format json");
	return !o->layers || complain("mutants are lines of a schedule: leave out --layers");
}

int command_explain(const struct options *options)
{
	struct objects o;
	if (needs_weights(options, options->operand[0])) {
		complain("explain needs --weights FILE: what is worth rewriting depends on the sizes");
		return EXIT_USAGE;
	}
	if (!check_forms(options))
		return EXIT_USAGE;
	int status = objects_open(&o, options, options->operand[0], place_of(options))
			 ? write_explanation(&o, options)
			 : o.status;
	objects_close(&o);
	return status;
}
