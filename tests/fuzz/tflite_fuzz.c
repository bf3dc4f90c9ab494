/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models of TensorFlow Lite: the graph that is read holds together, and the model that it becomes prints,
 * reads back as itself and takes the tensors of the file as its weights. */
#include "tests/fuzz/graphs.h"
#include "tflite/lite.h"

static bool import_bytes(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct onnx_graph *g;
	f->most = FUZZ_GRAPH_BYTES;
	if (!tflite_read_graph(&f->arena, &f->diags, "m.tflite", bytes, n, &g))
		return false;
	return fuzz_import_graph(f, g);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(import_bytes, bytes, n);
}
