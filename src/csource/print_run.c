/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The function that runs a program, and the header that declares it. */
#include "csource/writer.h"

#include "ilir/spelling.h"

#include <inttypes.h>

/* --- the header --- */

void csource_print_parameters(struct csource_writer *w)
{
	const struct image *image = w->program->image;
	str_puts(w->to, "(int64_t rows");
	for (int i = 0; i < image->inputs; i++)
		str_printf(w->to, ", const %s *%s", csource_type((enum ilir_dtype)image->input[i].dtype), csource_input_name(w, i));
	for (int o = 0; o < image->outputs; o++)
		str_printf(w->to, ", %s *%s", csource_type((enum ilir_dtype)image->output[o].dtype), csource_output_name(w, o));
	str_puts(w->to, ")");
}

static const char *write_shape(struct csource_writer *w, int rank, const int64_t *shape)
{
	struct str s = str_in(w->arena);
	str_puts(&s, "[rows");
	for (int d = 0; d < rank; d++)
		str_printf(&s, ", %" PRId64, shape[d]);
	str_puts(&s, "]");
	return str_text(&s);
}

static void describe_input(struct csource_writer *w, int i)
{
	const struct image_input *in = &w->program->image->input[i];
	const char *type = dtype_traits_of(in->dtype)->spelling;
	if (in->token && in->limit)
		csource_line(w, " *   %-12s [rows] of %s, each from 0 to %" PRId64, csource_input_name(w, i), type, in->limit - 1);
	else if (in->within > 0)
		csource_line(w, " *   %-12s %s of %s, each within %s", csource_input_name(w, i), write_shape(w, in->rank, in->shape), type,
			     csource_float(w->arena, in->within));
	else
		csource_line(w, " *   %-12s %s of %s", csource_input_name(w, i), write_shape(w, in->rank, in->shape), type);
}

static void describe_output(struct csource_writer *w, int o)
{
	const struct image_output *out = &w->program->image->output[o];
	csource_line(w, " *   %-12s %s of %s, written", csource_output_name(w, o), write_shape(w, out->rank, out->shape),
		     dtype_traits_of(out->dtype)->spelling);
}

void csource_print_header(struct csource_writer *w)
{
	const char *name = w->program->name;
	const struct image *image = w->program->image;
	csource_line(w, "/* The model %s as a function of C (espalier compile).", csource_identifier(w->arena, image->name));
	csource_line(w, " *\n * Arrays are row-major, without padding, and must not overlap; elements of f16 and bf16 are their bits, of bool a byte.");
	for (int i = 0; i < image->inputs; i++)
		describe_input(w, i);
	for (int o = 0; o < image->outputs; o++)
		describe_output(w, o);
	if (image->calls)
		csource_line(w, " *\n * Parts of it run on an accelerator, by the function that %s_device.h declares.", name);
	csource_line(w, " *\n * It keeps nothing between calls, so any number of threads may call it at once; it takes memory by calloc and frees it. */");
	csource_line(w, "#ifndef %s_H\n#define %s_H\n\n#include <stdint.h>\n", name, name);
	csource_line(w, "#ifdef __cplusplus\nextern \"C\" {\n#endif");
	csource_line(w, "/* BAD_ROWS: their number is negative; BAD_TOKEN: one is outside of its range; BEYOND_BOUND: an element of an input is, or is");
	csource_line(w, " * no number.  Nothing is written then. */");
	csource_line(w, "enum { %s_DONE, %s_NO_MEMORY, %s_BAD_ROWS, %s_BAD_TOKEN, %s_BEYOND_BOUND };", name, name, name, name, name);
	if (image->calls) {
		csource_line(w, "/* %s_device_run failed: what outputs have then is not defined. */", name);
		csource_line(w, "enum { %s_DEVICE_FAILED = %s_BEYOND_BOUND + 1 };", name, name);
	}
	csource_line(w, "%s", "");
	str_printf(w->to, "int %s_run", name);
	csource_print_parameters(w);
	csource_line(w, ";\n#ifdef __cplusplus\n}\n#endif\n\n#endif");
}

/* --- steps --- */

/* How the kernels of neighbouring steps run over rows that are all leaves of one batch. */
enum way { NEVER, ALL_ROWS, EACH_ROW, EACH_ROW_DOWN, EACH_STEP };

static const enum way ways[] = {
    [IMAGE_DOMAIN_ONCE] = ALL_ROWS,	 [IMAGE_DOMAIN_LEAVES] = ALL_ROWS,   [IMAGE_DOMAIN_INNER] = NEVER,
    [IMAGE_DOMAIN_INNER_NODE] = NEVER,	 [IMAGE_DOMAIN_BATCH] = ALL_ROWS,    [IMAGE_DOMAIN_NODE] = EACH_ROW,
    [IMAGE_DOMAIN_NODES] = ALL_ROWS,	 [IMAGE_DOMAIN_PAST_LEAVES] = NEVER, [IMAGE_DOMAIN_INPUTS] = ALL_ROWS,
    [IMAGE_DOMAIN_BATCH_DOWN] = ALL_ROWS, [IMAGE_DOMAIN_NODE_DOWN] = EACH_ROW_DOWN, [IMAGE_DOMAIN_SCAN] = EACH_STEP,
    [IMAGE_DOMAIN_BINDING] = NEVER,
};

/* Opens the loop that the steps run in, if there is one. */
static void open_way(struct csource_writer *w, const struct image_step *s)
{
	if (ways[s->domain] == EACH_ROW)
		csource_open(w, "for (int64_t row = 0; row < rows; row++)");
	else if (ways[s->domain] == EACH_ROW_DOWN)
		csource_open(w, "for (int64_t row = rows - 1; row >= 0; row--)");
	else if (ways[s->domain] == EACH_STEP)
		csource_open(w, "for (step = %d; step < %d; step++)", s->first, s->last);
}

static void print_step(struct csource_writer *w, const struct image_step *s, const char *rows)
{
	if (s->target == IMAGE_TARGET_HOST) {
		csource_line(w, "kernel_%d(&all, %s);", s->kernel, rows);
		return;
	}
	csource_open(w, "if (call_%d(&all, %s))", s->call, rows);
	csource_line(w, "free(memory);");
	csource_line(w, "return %s_DEVICE_FAILED;", w->program->name);
	csource_close(w);
}

static void print_steps(struct csource_writer *w, int first, int next)
{
	const struct image_step *step = w->program->image->step;
	enum way way = ways[step[first].domain];
	bool loop = way != ALL_ROWS, single = way == EACH_ROW || way == EACH_ROW_DOWN;
	if (way == NEVER)
		return;
	open_way(w, &step[first]);
	for (int i = first; i < next; i++)
		print_step(w, &step[i], single ? "row, row + 1" : "0, rows");
	if (loop)
		csource_close(w);
}

/* Neighbours of one domain all run over one of its ranges before the next, up to one that is to run apart. */
static void print_all_steps(struct csource_writer *w)
{
	const struct image *image = w->program->image;
	for (int i = image->folds, next; i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && image->step[next].domain == image->step[i].domain && !image->step[next].apart;)
			next++;
		print_steps(w, i, next);
	}
}

static void print_token_checks(struct csource_writer *w)
{
	const struct image *image = w->program->image;
	for (int i = 0; i < image->inputs; i++) {
		const char *name = csource_input_name(w, i);
		if (!image->input[i].token || !image->input[i].limit)
			continue;
		csource_open(w, "for (int64_t i = 0; i < rows; i++)");
		csource_open(w, "if (%s[i] < 0 || %s[i] >= %" PRId64 ")", name, name, image->input[i].limit);
		csource_line(w, "return %s_BAD_TOKEN;", w->program->name);
		csource_close(w);
		csource_close(w);
	}
}

/* Refuses inputs that are not within their declared bounds. */
static void print_bound_checks(struct csource_writer *w)
{
	const struct image *image = w->program->image;
	for (int i = 0; i < image->inputs; i++) {
		const struct image_input *in = &image->input[i];
		const char *widen = in->dtype == DTYPE_F16 ? "f32_of_f16" : in->dtype == DTYPE_BF16 ? "f32_of_bf16" : "";
		if (!(in->within > 0))
			continue;
		csource_open(w, "for (int64_t i = 0; i < rows * %" PRId64 "; i++)", image_input_elements(image, i));
		csource_open(w, "if (!(fabsf(%s(%s[i])) <= %s))", widen, csource_input_name(w, i), csource_float(w->arena, in->within));
		csource_line(w, "return %s_BEYOND_BOUND;", w->program->name);
		csource_close(w);
		csource_close(w);
	}
}

/* The rows of the program that the caller's are. */
static void print_stack(struct csource_writer *w)
{
	int64_t stack = image_stack(w->program->image);
	if (stack == 1)
		return;
	csource_open(w, "if (rows > INT32_MAX / %" PRId64 ")", stack);
	csource_line(w, "return %s_NO_MEMORY;", w->program->name);
	csource_close(w);
	csource_line(w, "rows *= %" PRId64 "; /* each of the caller's is so many, one after the other */", stack);
}

static void print_function(struct csource_writer *w)
{
	const char *name = w->program->name;
	str_printf(w->to, "\nint %s_run", name);
	csource_print_parameters(w);
	str_puts(w->to, "\n");
	csource_block(w);
	csource_line(w, "struct arrays all;\n\tint32_t step = 0;");
	csource_line(w, "(void)step;");
	csource_open(w, "if (rows <= 0)");
	csource_line(w, "return rows ? %s_BAD_ROWS : %s_DONE;", name, name);
	csource_close(w);
	print_stack(w);
	print_token_checks(w);
	print_bound_checks(w);
	csource_print_places(w);
	csource_print_inputs(w);
	print_all_steps(w);
	csource_print_outputs(w);
	csource_line(w, "free(memory);");
	csource_line(w, "return %s_DONE;", name);
	csource_close(w);
}

/* Kernels and drivers of runs, each once. */
static void print_kernels(struct csource_writer *w)
{
	const struct image *image = w->program->image;
	bool *done = ARENA_ARRAY(w->arena, bool, image->kernels), *called = ARENA_ARRAY(w->arena, bool, image->calls);
	for (int i = image->folds; i < image->steps; i++) {
		const struct image_step *s = &image->step[i];
		bool host = s->target == IMAGE_TARGET_HOST, *printed = host ? &done[s->kernel] : &called[s->call];
		if (ways[s->domain] == NEVER || *printed)
			continue;
		*printed = true;
		if (host)
			csource_print_kernel(w, s->kernel);
		else
			csource_print_call(w, s->call);
	}
}

/* The headers of what is written beside, and of the standard library. */
static void include_headers(struct csource_writer *w)
{
	const char *name = w->program->name;
	bool calls = w->program->image->calls;
	csource_line(w, "#include \"%s.h\"\n\n#include \"%s_arithmetic.h\"", name, name);
	if (calls)
		csource_line(w, "#include \"%s_device.h\"", name);
	csource_line(w, "#include \"%s_weights.h\"\n\n#include <stdlib.h>%s", name, calls ? "\n#include <string.h>" : "");
}

void csource_print_run(struct csource_writer *w)
{
	csource_line(w, "/* The kernels of %s, and the order in which they run. */", w->program->name);
	include_headers(w);
	csource_print_arrays(w);
	print_kernels(w);
	print_function(w);
}
