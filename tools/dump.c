/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier dump: the model after a stage of the compiler. */
#include "tool.h"

#include <string.h>

static int list_stages(void)
{
	for (size_t i = 0; esp_dump_stage(i); i++)
		puts(esp_dump_stage(i));
	return 0;
}

static bool is_stage(const char *name)
{
	for (size_t i = 0; esp_dump_stage(i); i++)
		if (strcmp(esp_dump_stage(i), name) == 0)
			return true;
	return complain("there is no stage '%s'; 'espalier dump' lists them", name);
}

static int write_dump(const char *text, const char *path)
{
	struct output output;
	if (!output_open(&output, path))
		return EXIT_INPUT;
	return output_puts(&output, text) && output_commit(&output) ? 0 : EXIT_INPUT;
}

/* The stage ra needs no sizes, hence no weights and no program. */
static int dump_stage(const struct objects *o, const char *stage, const char *path)
{
	char *text;
	esp_error *error;
	esp_status status = o->program ? esp_program_dump(o->program, stage, &text, &error)
				       : esp_model_print(o->model, &text, &error);
	if (status)
		return report_failure(status, error);
	int exit_status = write_dump(text, path);
	esp_text_free(text);
	return exit_status;
}

int command_dump(const struct options *options)
{
	if (!options->operands)
		return list_stages();
	const char *stage = options->operand[0];
	if (!is_stage(stage))
		return EXIT_USAGE;
	if (options->changed && strcmp(stage, "subop") != 0) {
		complain("--changed is for dump subop: no other stage is made by rules");
		return EXIT_USAGE;
	}
	if (options->changed)
		stage = "derivation";
	if (options->operands < 2 || (strcmp(stage, "ra") != 0 && needs_weights(options, options->operand[1]))) {
		complain("dump %s needs %s", stage, options->operands < 2 ? "MODEL.ra" : "--weights FILE");
		return EXIT_USAGE;
	}
	struct objects o;
	int status = objects_open(&o, options, options->operand[1], place_of(options))
			 ? dump_stage(&o, stage, options->output)
			 : o.status;
	objects_close(&o);
	return status;
}
