/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier compile: a program that runs without a compiler, in a file or in an object for a linker; or as C. */
#include "bench/bench.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct compiling {
	const struct options *options;
	struct objects objects;
	struct sizes sizes;
	int form;   /* ESP_SAVE_... */
	char *name; /* of symbols, NULL = the program is a file of its own */
	char *header;
};

/* --- names --- */

static bool is_object(const char *path)
{
	size_t n = strlen(path);
	return n > 2 && strcmp(path + n - 2, ".o") == 0;
}

static bool is_identifier(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	return n && !text[n] && !isdigit((unsigned char)*text);
}

enum { PROGRAM, C }; /* --as */

/* The last part of a path without so many bytes at its end. */
static char *copy_base(const char *path, size_t suffix)
{
	size_t end = strlen(path), begin;
	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin && path[begin - 1] != '/';)
		begin--;
	return strndup(path + begin, end - begin - suffix);
}

static bool take_header(struct compiling *c)
{
	c->header = strdup(c->options->output);
	if (c->header)
		c->header[strlen(c->header) - 1] = 'h';
	return c->header || complain("no memory");
}

/* dir/tree.o gives the name tree and the header dir/tree.h, and the folder dir/tree of source the name tree. */
static bool take_names(struct compiling *c)
{
	const struct options *o = c->options;
	c->form = o->as == C ? ESP_SAVE_SOURCE : is_object(o->output) ? ESP_SAVE_OBJECT : ESP_SAVE_PROGRAM;
	if (c->form == ESP_SAVE_PROGRAM)
		return !o->name || complain("--name goes with an object, -o FILE.o, or with --as c");
	c->name = o->name ? strdup(o->name) : copy_base(o->output, c->form == ESP_SAVE_OBJECT ? 2 : 0);
	if (!c->name)
		return complain("no memory");
	if (!is_identifier(c->name))
		return complain("'%s' is no identifier of C: give --name NAME", c->name);
	return c->form == ESP_SAVE_SOURCE || take_header(c);
}

/* --- the header --- */

/* Writes one constant of an enum; `what` says its kind, the name comes from the model. */
static void put_constant(FILE *to, const char *name, const char *what, const char *of, const char *end,
			 int64_t value)
{
	fprintf(to, "\t%s_%s_", name, what);
	for (; *of; of++)
		fputc(isalnum((unsigned char)*of) ? *of : '_', to);
	fprintf(to, "%s = %" PRId64 ",\n", end, value);
}

/* Writes nothing without dimensions: C has no empty enum. */
static void put_sizes(FILE *to, const char *name, const esp_program *p)
{
	const char *dimension;
	int64_t size;
	if (!esp_program_size(p, 0, NULL))
		return;
	fputs("\n/* The dimensions of the model. */\nenum {\n", to);
	for (size_t i = 0; (dimension = esp_program_size(p, i, &size)); i++)
		put_constant(to, name, "size", dimension, "", size);
	fputs("};\n", to);
}

static void put_inputs(FILE *to, const char *name, const esp_program *p)
{
	const esp_input *in;
	if (!esp_program_inputs(p))
		return;
	fputs("\n/* Inputs by number, and the floats of those that are not tokens. */\nenum {\n", to);
	for (size_t i = 0; (in = esp_program_input(p, i)); i++) {
		put_constant(to, name, "input", in->name, "", (int64_t)i);
		if (!in->is_token)
			put_constant(to, name, "input", in->name, "_elements", (int64_t)in->elements);
	}
	fputs("};\n", to);
}

static void put_outputs(FILE *to, const char *name, const esp_program *p)
{
	const esp_output *out;
	if (!esp_program_outputs(p))
		return;
	fputs("\n/* Outputs by number, and their floats. */\nenum {\n", to);
	for (size_t i = 0; (out = esp_program_output(p, i)); i++) {
		put_constant(to, name, "output", out->name, "", (int64_t)i);
		put_constant(to, name, "output", out->name, "_elements", (int64_t)out->elements);
	}
	fputs("};\n", to);
}

static void put_header(FILE *to, const char *name, const esp_program *p)
{
	fprintf(to,
		"/* A program that was compiled ahead of time (espalier compile), for\n"
		" * esp_program_load_memory(context, %s_program, %s_size, &program, &error). */\n"
		"#ifndef %s_PROGRAM_H\n#define %s_PROGRAM_H\n\n#include <stddef.h>\n\n"
		"#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
		"extern const unsigned char %s_program[];\nextern const size_t %s_size;\n"
		"#ifdef __cplusplus\n}\n#endif\n",
		name, name, name, name, name, name);
	put_sizes(to, name, p);
	put_inputs(to, name, p);
	put_outputs(to, name, p);
	fputs("\n#endif\n", to);
}

static int write_header(const struct compiling *c)
{
	struct output output;
	if (!output_open(&output, c->header))
		return EXIT_INPUT;
	put_header(output.file, c->name, c->objects.program);
	return output_commit(&output) ? 0 : EXIT_INPUT;
}

/* --- the program --- */

static int save_program(const struct compiling *c)
{
	esp_error *error;
	sigset_t before;
	esp_save_options o = {.size = sizeof o,
			      .form = c->form,
			      .symbol = c->name,
			      .weights = c->options->pack || c->form == ESP_SAVE_SOURCE ? c->objects.weights : NULL};
	bool hold = interrupt_hold_writing(c->options->output, &before);
	esp_status status = esp_program_save(c->objects.program, c->options->output, &o, &error);
	if (hold)
		interrupt_release(&before, NULL);
	return status ? report_failure(status, error) : 0;
}

/* Without weights the sizes come from --sizes. */
static bool open_sized(struct compiling *c, int at)
{
	c->objects.status = EXIT_USAGE;
	if (!sizes_read(&c->sizes, c->objects.model, c->options->sizes))
		return false;
	c->objects.sizes = c->sizes.at;
	return objects_compile(&c->objects, c->options, at);
}

static int compile_model(struct compiling *c)
{
	const struct options *o = c->options;
	int at = place_of(o);
	if (!objects_open_any(&c->objects, o, o->operand[0], at))
		return c->objects.status;
	if (!c->objects.program && !open_sized(c, at))
		return c->objects.status;
	int status = save_program(c);
	return status || !c->header ? status : write_header(c);
}

int command_compile(const struct options *options)
{
	struct compiling c = {.options = options};
	int status = EXIT_USAGE;
	if (!options->output || strcmp(options->output, "-") == 0)
		complain("compile needs -o FILE");
	else if (options->pack && !options->weights && !is_graph(options->operand[0]))
		complain("--pack needs --weights FILE");
	else if (options->weights && options->sizes)
		complain("--sizes is for a model without --weights, which have sizes of their own");
	else if (!options->sizes && needs_weights(options, options->operand[0]))
		complain("compile needs --weights FILE or --sizes LIST");
	else if (take_names(&c))
		status = compile_model(&c);
	objects_close(&c.objects);
	free(c.name);
	free(c.header);
	return status;
}
