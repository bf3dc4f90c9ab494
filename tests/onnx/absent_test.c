/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A library that is built without protobuf-c says so, and what to install. */
#define onnx_read_graph absent_read_graph
#define onnx_read_tensor absent_read_tensor
#include "onnx/no_reader.c"

#include "tests/io/files.h"

int main(void)
{
	struct onnx_graph *graph;
	struct onnx_tensor tensor;
	begin_tests();
	tap_ok(!onnx_read_graph(&arena, &diags, "m.onnx", "", 0, NULL, &graph) && !graph &&
		   refused(DIAG_NO_ONNX, "m.onnx"),
	       "models are refused");
	tap_ok(!onnx_read_tensor(&arena, &diags, "x.pb", "", 0, &tensor) && refused(DIAG_NO_ONNX, "x.pb"),
	       "so are tensors");
	return end_tests();
}
