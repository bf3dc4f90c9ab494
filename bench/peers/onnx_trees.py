#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The TreeLSTM of examples/ in ONNX Runtime, which has no recursion over trees: a graph for each minibatch.

  onnx_trees.py treelstm FOLDER [--threads N]

`espalier bench --keep FOLDER` writes FOLDER; requests come on standard input (common.py). A graph is unrolled by
levels, with the rows of children as constants and words as its input; a level's gates are one Gemm. Making the graph and
its session is not timed, although a program would have to do it for every new shape of tree.

Python packages onnxruntime, onnx, numpy.
"""
import argparse
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import common
import onnx_session


class Graph:
    """A graph that grows operator by operator; values are names."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array, name=None):
        name = name or f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def apply(self, operator, *inputs, outputs=1, **attributes):
        names = [f"value{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, words, output):
        graph = helper.make_graph(
            self.nodes, "trees", [helper.make_tensor_value_info(words, TensorProto.INT64, ["leaves"])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


class TreeLSTM:
    """Leaves i o u, inner nodes i fl fr o u; outputs at every node."""

    def __init__(self, weights):
        def joined(pattern, gates):
            return np.concatenate([weights[pattern.format(gate)] for gate in gates])

        gates = ("i", "fl", "fr", "o", "u")
        self.embedding = weights["embedding.weight"]
        self.words = len(self.embedding)
        self.leaf = joined("leaf.W_{}", "iou").T, joined("leaf.b_{}", "iou")
        both = np.concatenate([joined("node.U_{}_left", gates), joined("node.U_{}_right", gates)], axis=1)
        self.node = both.T, joined("node.b_{}", gates)
        self.output = weights["output.weight"].T, weights["output.bias"]

    def unroll(self, levels):
        """The model for a forest, given by the rows of the children of each level but the first."""
        g = Graph()
        leaf, node, output = ([g.constant(array) for array in pair] for pair in (self.leaf, self.node, self.output))
        x = g.apply("Gemm", g.apply("Gather", g.constant(self.embedding), "words"), *leaf)
        i, o, u = g.apply("Split", x, outputs=3, axis=1)
        c = g.apply("Mul", g.apply("Sigmoid", i), g.apply("Tanh", u))
        h = g.apply("Mul", g.apply("Sigmoid", o), g.apply("Tanh", c))
        width = g.constant(np.array([-1, self.node[0].shape[0]]))
        for children in levels:
            rows = g.constant(children)
            below, kept = (g.apply("Reshape", g.apply("Gather", states, rows), width) for states in (h, c))
            level_c, level_h = self.inner(g, g.apply("Gemm", below, *node), kept)
            h, c = g.apply("Concat", h, level_h, axis=0), g.apply("Concat", c, level_c, axis=0)
        return g.model("words", g.apply("Gemm", h, *output))

    def inner(self, g, gates, kept):
        d = len(self.node[1]) // 5
        s, u = g.apply("Split", gates, g.constant(np.array([4 * d, d])), outputs=2, axis=1)
        i, forget, o = g.apply("Split", g.apply("Sigmoid", s), g.constant(np.array([d, 2 * d, d])), outputs=3, axis=1)
        left, right = g.apply("Split", g.apply("Mul", forget, kept), outputs=2, axis=1)
        c = g.apply("Add", g.apply("Mul", i, g.apply("Tanh", u)), g.apply("Add", left, right))
        return c, g.apply("Mul", o, g.apply("Tanh", c))


def levels_of(trees):
    """Words of the leaves, the rows of the children of each level but the first (left, right for each node), the roots' rows."""
    heights, nodes, roots = [], [], []
    for tree in trees:
        base = len(nodes)
        for word, children in zip(tree.words, tree.children):
            nodes.append((word, [base + child for child in children]))
            heights.append(1 + max((heights[child] for child in nodes[-1][1]), default=-1))
        roots.append(len(nodes) - 1)
    order = sorted(range(len(nodes)), key=heights.__getitem__)
    row = {node: row for row, node in enumerate(order)}
    levels = [[] for _ in range(max(heights))]
    for node in order:
        if heights[node]:
            levels[heights[node] - 1] += [row[child] for child in nodes[node][1]]
    words = [nodes[node][0] for node in order if not heights[node]]
    return words, [np.array(level) for level in levels], [row[root] for root in roots]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=("treelstm",))
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    model = TreeLSTM(common.read_weights(options.folder))
    structures = common.read_structures(options.folder)
    print(onnx_session.versions(options.threads), file=sys.stderr)
    sessions = {}

    def prepare(first, count):
        words, levels, roots = levels_of(common.chosen(structures, first, count))
        if (first, count) not in sessions:
            sessions[first, count] = onnx_session.open_session(model.unroll(levels), options.threads)
        return sessions[first, count], {"words": np.array(words) % model.words}, roots

    common.serve(len(structures), lambda given: given[0].run(None, given[1])[0],
                 lambda given: given[0].run(None, given[1])[0][given[2]], prepare)


if __name__ == "__main__":
    main()
