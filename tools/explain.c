/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier explain: what the model was rewritten to, and what that saves. */
#include "tool.h"

static int write_explanation(esp_program *p, const struct options *options)
{
	struct output output;
	esp_error *error;
	char *text;
	esp_status status = esp_program_explain(
	    p, options->format == FORMAT_JSON ? ESP_FORM_JSON : ESP_FORM_TEXT, &text, &error);
	if (status)
		return report_failure(status, error);
	bool ok =
	    output_open(&output, options->output) && output_puts(&output, text) && output_commit(&output);
	esp_text_free(text);
	return ok ? 0 : EXIT_INPUT;
}

int command_explain(const struct options *options)
{
	struct objects o;
	if (needs_weights(options, options->operand[0])) {
		complain("explain needs --weights FILE: what is worth rewriting depends on the sizes");
		return EXIT_USAGE;
	}
	int status = objects_open(&o, options, options->operand[0], place_of(options))
			 ? write_explanation(o.program, options)
			 : o.status;
	objects_close(&o);
	return status;
}
