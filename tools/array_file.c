/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "array_file.h"

#include "tool.h"

#include <string.h>

/* By esp_dtype, the type that a .npy file has; NumPy has no bf16. */
static const enum reference_type types[] = {
    [0] = REFERENCE_TYPES,     [ESP_F32] = REFERENCE_F32, [ESP_F16] = REFERENCE_F16, [ESP_BF16] = REFERENCE_TYPES,
    [ESP_I8] = REFERENCE_I8,   [ESP_U8] = REFERENCE_U8,	  [ESP_I16] = REFERENCE_I16, [ESP_I32] = REFERENCE_I32,
    [ESP_I64] = REFERENCE_I64, [ESP_BOOL] = REFERENCE_BOOL,
};
enum { TYPES = sizeof types / sizeof *types };

static bool is_tensor(const char *path)
{
	size_t n = strlen(path);
	return n > 3 && strcmp(path + n - 3, ".pb") == 0;
}

static bool open_tensor(struct array_file *a, esp_context *context)
{
	esp_error *error;
	esp_status status = esp_weights_open(context, a->path, &a->tensor, &error);
	const esp_tensor *t = status ? NULL : esp_weights_tensor(a->tensor, 0);
	if (status)
		return report_failure(status, error) == 0;
	a->dtype = t->dtype;
	a->rank = t->rank;
	a->shape = t->shape;
	return true;
}

static bool open_npy(struct array_file *a)
{
	if (!reference_open(&a->npy, a->path))
		return false;
	if (strcmp(reference_form_name(&a->npy), "npy") != 0)
		return complain("%s: is neither a .npy file, which numpy.save writes, nor a .pb file with a tensor of ONNX",
				a->path);
	const struct reference_tensor *t = a->npy.tensor;
	int dtype = TYPES - 1;
	while (dtype && types[dtype] != t->type)
		dtype--;
	if (!dtype)
		return complain("%s: its values are '%s': save them as one of the types f32, f16, i8, u8, i16, i32, i64 and bool",
				a->path, reference_type_name(t->type));
	a->dtype = dtype;
	a->rank = t->rank;
	a->shape = t->shape;
	return true;
}

bool array_file_open(struct array_file *a, esp_context *context, const char *path)
{
	*a = (struct array_file){.path = path};
	return is_tensor(path) ? open_tensor(a, context) : open_npy(a);
}

bool array_file_load(struct array_file *a)
{
	if (a->tensor)
		a->elements = esp_weights_elements(a->tensor, 0);
	else if (!reference_load(&a->npy, a->npy.tensor))
		return false;
	else
		a->elements = a->npy.tensor->values;
	return a->elements || complain("%s: has no elements", a->path);
}

const char *array_file_hint(const struct array_file *a, esp_dtype dtype)
{
	if (a->tensor || types[dtype] == REFERENCE_TYPES)
		return "save it as that type";
	static char hint[40];
	snprintf(hint, sizeof hint, "write x.astype('%s')", reference_type_name(types[dtype]));
	return hint;
}

void array_file_close(struct array_file *a)
{
	if (a->path && !is_tensor(a->path))
		reference_close(&a->npy);
	esp_weights_free(a->tensor);
}
