/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The models of cases/ give what TensorFlow Lite's interpreter computes with its reference kernels: the same
 * bytes of int8, and floats as near as sums in another order are.  With arguments: FOLDER in place of cases/.
 */
#include "tests/onnx/runnable.h"
#include "tests/tap.h"

#include <glob.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 8 };

/* A file whole, which is the caller's to free; NULL after a line of what failed. */
static char *read_whole(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *bytes = f && fseek(f, 0, SEEK_END) == 0 ? malloc((size_t)ftell(f) + 1) : NULL;
	if (bytes) {
		*n = (size_t)ftell(f);
		rewind(f);
		if (fread(bytes, 1, *n, f) != *n)
			*n = 0;
	}
	if (f)
		fclose(f);
	if (!bytes)
		printf("# %s cannot be read\n", path);
	return bytes;
}

/* The path of a model with another ending. */
static const char *beside(const char *model, const char *ending)
{
	static char path[4096];
	snprintf(path, sizeof path, "%.*s%s", (int)(strlen(model) - strlen("tflite")), model, ending);
	return path;
}

/* Inputs x0, x1 ... lie one after the other. */
static bool call_with(struct runnable *r, const char *bytes, size_t n)
{
	static const char *const names[MOST_INPUTS] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
	esp_array array[MOST_INPUTS];
	size_t inputs = esp_program_inputs(r->program), at = 0;
	esp_error *error = NULL;
	for (size_t i = 0; i < inputs; i++) {
		const esp_input *in =
		    esp_program_input(r->program, esp_program_find_input(r->program, names[i]));
		if (!in)
			return false;
		array[i] = (esp_array){names[i], in->dtype, in->rank, in->shape, bytes + at};
		at += in->elements * esp_dtype_size(in->dtype);
	}
	bool good = at == n && !esp_session_call(r->session, array, inputs, &error);
	if (!good)
		printf("# %s", error ? esp_error_text(error) : "the inputs have other sizes\n");
	esp_error_free(error);
	return good;
}

/* Elements that differ; of a result of another size, all. */
static size_t count_different(const struct runnable *r, const char *wanted, size_t n)
{
	const esp_output *out = esp_program_output(r->program, 0);
	const void *got = esp_session_root_elements(r->session, 0, 0);
	const size_t width = out->dtype == ESP_F32 ? 4 : 1;
	size_t different = 0;
	if (!got || out->elements * width != n)
		return n;
	for (size_t i = 0; i < out->elements; i++) {
		float f;
		memcpy(&f, wanted + 4 * i * (width == 4), sizeof f);
		different += width == 4 ? !(fabsf(((const float *)got)[i] - f) <= 1e-5f * (1 + fabsf(f)))
					: ((const int32_t *)got)[i] != (int8_t)wanted[i];
	}
	return different;
}

static bool compare_case(esp_context *context, const char *model, const char *backend, const char *accelerator)
{
	struct runnable r;
	size_t ins = 0, outs = 0, different = 0;
	char *in = read_whole(beside(model, "input"), &ins),
	     *out = read_whole(beside(model, "wanted"), &outs);
	bool good = open_runnable_on(accelerator, context, &r, model, NULL, backend) && in && out && call_with(&r, in, ins);
	if (good && (different = count_different(&r, out, outs)))
		printf("# %zu of %zu bytes\n", different, outs);
	close_runnable(&r);
	free(in);
	free(out);
	return good && !different;
}

int main(int argc, char **argv)
{
	const char *source = getenv("srcdir");
	char pattern[4096];
	glob_t all;
	esp_context *context;
	esp_error *error = NULL;
	if (argc > 1)
		snprintf(pattern, sizeof pattern, "%s/*.tflite", argv[1]);
	else
		snprintf(pattern, sizeof pattern, "%s/tests/tflite/cases/*.tflite", source ? source : ".");
	if (esp_context_create(NULL, &context, &error) || glob(pattern, 0, NULL, &all))
		return !tap_ok(false, "there are cases");
	for (size_t i = 0; i < all.gl_pathc; i++) {
		const char *name = strrchr(all.gl_pathv[i], '/') + 1;
		tap_ok(compare_case(context, all.gl_pathv[i], "interpreter", NULL),
		       "%s: the interpreter's result is that of TensorFlow Lite", name);
		tap_ok(compare_case(context, all.gl_pathv[i], NULL, NULL), "%s: so is that of compiled code", name);
		tap_ok(compare_case(context, all.gl_pathv[i], NULL, "vta"), "%s: so is that with an accelerator", name);
	}
	globfree(&all);
	esp_context_free(context);
	return tap_done();
}
