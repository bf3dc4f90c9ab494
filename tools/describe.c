/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier machine: the description of this machine that schedules are chosen by. */
#include "tool.h"

static int write_description(struct objects *o, const struct options *options)
{
	esp_error *error;
	char *text;
	esp_status status = esp_context_machine(o->context, options->measure, &text, &error);
	if (status)
		return report_failure(status, error);
	struct output output;
	bool ok =
	    output_open(&output, options->output) && output_puts(&output, text) && output_commit(&output);
	esp_text_free(text);
	return ok ? 0 : EXIT_INPUT;
}

int command_machine(const struct options *options)
{
	struct objects o;
	int status = objects_open_context(&o, options) ? write_description(&o, options) : o.status;
	objects_close(&o);
	return status;
}
