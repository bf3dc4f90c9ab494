/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier vta: verifies, shows, converts and executes streams for the Versatile Tensor Accelerator. */
#include "tool.h"

#include "espalier_vta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum as { AS_COST, AS_TEXT, AS_BINARY, AS_OUTPUTS };

/* --- texts and files --- */

static int write_text_form(const esp_vta_stream *stream, const struct options *options)
{
	struct output output;
	esp_error *error;
	char *text;
	esp_status status =
	    esp_vta_print(stream, options->as == AS_TEXT ? ESP_VTA_TEXT : ESP_VTA_COST, &text, &error);
	if (status)
		return report_failure(status, error);
	bool ok =
	    output_open(&output, options->output) && output_puts(&output, text) && output_commit(&output);
	esp_text_free(text);
	return ok ? 0 : EXIT_INPUT;
}

static int write_binary_form(const esp_vta_stream *stream, const struct options *options)
{
	sigset_t before;
	esp_error *error;
	bool hold = interrupt_hold_writing(options->output, &before);
	esp_status status = esp_vta_save(stream, options->output, &error);
	if (hold)
		interrupt_release(&before, NULL);
	return status ? report_failure(status, error) : 0;
}

/* --- running --- */

static const esp_vta_segment *find_input(const esp_vta_stream *stream, const char *name, size_t length)
{
	const esp_vta_segment *s;
	for (size_t i = 0; (s = esp_vta_segment_at(stream, i)); i++)
		if (strlen(s->name) == length && !memcmp(s->name, name, length) && !strcmp(s->role, "input"))
			return s;
	return NULL;
}

/* Reads a file that is exactly as long as the segment. */
static bool fill_segment(const esp_vta_segment *s, const char *path, char *memory)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return complain("cannot read %s: %s", path, strerror(errno));
	size_t n = fread(memory + s->begin, 1, s->bytes, file);
	bool exact = n == s->bytes && fgetc(file) == EOF && !ferror(file);
	fclose(file);
	return exact ||
	       complain("%s: input '%s' has %zu bytes, and the file another number", path, s->name, s->bytes);
}

/* NAME=FILE */
static bool fill_input(const esp_vta_stream *stream, const char *word, char *memory)
{
	const char *equals = strchr(word, '=');
	const esp_vta_segment *s = equals ? find_input(stream, word, (size_t)(equals - word)) : NULL;
	if (!s)
		return complain("--input %s: is not NAME=FILE for an input of the stream", word);
	return fill_segment(s, equals + 1, memory);
}

static bool is_given(const struct words *inputs, const char *name)
{
	size_t n = strlen(name);
	for (int i = 0; i < inputs->n; i++)
		if (!strncmp(inputs->word[i], name, n) && inputs->word[i][n] == '=')
			return true;
	return false;
}

static bool fill_inputs(const esp_vta_stream *stream, const struct words *inputs, char *memory)
{
	const esp_vta_segment *s;
	for (int i = 0; i < inputs->n; i++)
		if (!fill_input(stream, inputs->word[i], memory))
			return false;
	for (size_t i = 0; (s = esp_vta_segment_at(stream, i)); i++)
		if (!strcmp(s->role, "input") && !is_given(inputs, s->name))
			return complain("the stream has an input '%s': --input %s=FILE gives its %zu bytes",
					s->name, s->name, s->bytes);
	return true;
}

static bool write_outputs(const esp_vta_stream *stream, const char *path, const char *memory)
{
	struct output output;
	const esp_vta_segment *s;
	if (!output_open(&output, path))
		return false;
	for (size_t i = 0; (s = esp_vta_segment_at(stream, i)); i++)
		if (!strcmp(s->role, "output"))
			fwrite(memory + s->begin, 1, s->bytes, output.file);
	return output_commit(&output);
}

static int run_stream(const esp_vta_stream *stream, const struct options *options)
{
	esp_error *error;
	size_t bytes = esp_vta_memory(stream);
	char *memory = calloc(bytes + 1, 1);
	int result = EXIT_INPUT;
	if (!memory) {
		complain("no memory for %zu bytes", bytes);
	} else if (fill_inputs(stream, &options->input, memory)) {
		esp_status status = esp_vta_run(stream, memory, bytes, &error);
		if (status)
			result = report_failure(status, error);
		else
			result = write_outputs(stream, options->output, memory) ? 0 : EXIT_INPUT;
	}
	free(memory);
	return result;
}

/* --- the command --- */

static int show_stream(const esp_vta_stream *stream, const struct options *options)
{
	if (options->as == AS_OUTPUTS)
		return run_stream(stream, options);
	return options->as == AS_BINARY ? write_binary_form(stream, options)
					: write_text_form(stream, options);
}

int command_vta(const struct options *options)
{
	struct objects o;
	esp_vta_stream *stream = NULL;
	esp_error *error;
	if (options->as == AS_BINARY && !options->output) {
		complain("--as binary needs --output FILE");
		return EXIT_USAGE;
	}
	if (options->as != AS_OUTPUTS && options->input.n) {
		complain("--input is for --as outputs");
		return EXIT_USAGE;
	}
	int result = 0;
	if (!objects_open_context(&o, options))
		result = o.status;
	else {
		esp_status status = esp_vta_open(o.context, options->operand[0], &stream, &error);
		result = status ? report_failure(status, error) : show_stream(stream, options);
	}
	esp_vta_free(stream);
	objects_close(&o);
	return result;
}
