/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What targets promise of graphs that were read, and of the models that they become. */
#ifndef ESPALIER_TESTS_FUZZ_GRAPHS_H
#define ESPALIER_TESTS_FUZZ_GRAPHS_H

#include "onnx/graph.h"
#include "tests/fuzz/fuzz.h"

/* What is larger takes too long to be one execution of many; memory is refused earlier than import does. */
enum { FUZZ_GRAPH_BYTES = 64 << 20 };

/* The graph holds together: values know where they come from, producers come before users, constants have their elements. */
void fuzz_check_graph(struct fuzz *, const struct onnx_graph *);
/* Checks the graph, and the model that it becomes if it is small enough for one execution of many: the model prints, reads back
 * as itself and takes the tensors of its file.  False after diagnostics. */
bool fuzz_import_graph(struct fuzz *, const struct onnx_graph *);

#endif
