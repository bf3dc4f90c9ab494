/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The trace of --trace: the last events of the requests of all models. */
#include "serve.h"

#include <string.h>

/* The number of the first model's process: that of `espalier profile` is 1. */
enum { FIRST_PROCESS = 2 };

/* Each model's trace is a list of its own, whose brackets are on the first and the last line: all are one. */
static bool put_trace(FILE *to, const struct entry *e, int process)
{
	char *text;
	esp_error *error;
	esp_status status = esp_service_trace(e->now->service, e->name, process, &text, &error);
	if (status)
		return report_failure(status, error) == 0;
	const char *begin = strchr(text, '\n') + 1, *end = strrchr(text, ']') - 1;
	fprintf(to, "%s%.*s", process == FIRST_PROCESS ? "" : ",\n", (int)(end - begin), begin);
	esp_text_free(text);
	return true;
}

bool models_trace(const struct models *m)
{
	struct output to;
	int process = FIRST_PROCESS;
	bool ok = true;
	if (!m->options->trace)
		return true;
	if (!output_open(&to, m->options->trace))
		return false;
	fputs("[\n", to.file);
	for (const struct entry *e = m->first; e && ok; e = e->next)
		ok = !e->now || put_trace(to.file, e, process++);
	fputs("\n]\n", to.file);
	if (ok)
		return output_commit(&to);
	output_abort(&to);
	return false;
}
