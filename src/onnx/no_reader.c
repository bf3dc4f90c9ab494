/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The reader of a build without protobuf-c. */
#include "onnx/graph.h"

static bool refuse(struct diags *diags, const char *file)
{
	return diag_add(diags, DIAG_NO_ONNX, (struct diag_at){.file = file},
			"build the library with protobuf-c and the description of the format: apt-get "
			"install libprotobuf-c-dev "
			"protobuf-c-compiler libonnx-dev",
			"'%s' cannot be read: this library was built without protobuf-c", file);
}

bool onnx_read_graph(struct arena *arena, struct diags *diags, const char *file, const void *bytes, size_t n,
		     const struct onnx_choices *choices, struct onnx_graph **out)
{
	(void)arena, (void)bytes, (void)n, (void)choices;
	*out = NULL;
	return refuse(diags, file);
}

bool onnx_read_tensor(struct arena *arena, struct diags *diags, const char *file, const void *bytes, size_t n,
		      struct onnx_tensor *out)
{
	(void)arena, (void)bytes, (void)n, (void)out;
	return refuse(diags, file);
}
