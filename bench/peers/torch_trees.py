#!/usr/bin/python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The tree models of examples/ in PyTorch, as a good engineer would write them.

  torch_trees.py MODEL FOLDER [--variant level|script|compile|node] [--threads N]

`espalier bench --keep FOLDER` writes FOLDER; requests come on standard input (common.py). A time includes linearizing
(index tensors from the trees' lists), running and outputs. The weights of gates are joined into one matrix once, before.
Trees are binary, and the child-sum models here make use of that; Espalier's do not.

--variant level   one set of operators per level of the minibatch; input projections of all nodes in one product
          script  the same, compiled by TorchScript
          compile the same, with leaves, levels and outputs compiled by torch.compile for any number of rows (PyTorch 2;
                  it needs a C++ compiler). Whole runs are not compiled: each number of levels would be a program of its own
          node    one node at a time

Any PyTorch from 1.13 on; Debian's: packages python3-torch, python3-numpy, libopenblas0-pthread.
"""
import argparse
import sys
from typing import List

import numpy as np
import torch
from torch import Tensor, nn

import common


# --- linearizing ---

def levels_of(trees):
    """Nodes in the order of levels: words, where each level begins, the children of each level but the first (left,
    right for each node), the roots."""
    heights, words, lefts, rights, roots = [], [], [], [], []
    for tree in trees:
        base = len(heights)
        words += tree.words
        for children in tree.children:
            if not children:
                heights.append(0)
                lefts.append(0)
                rights.append(0)
            else:
                left, right = base + children[0], base + children[1]
                a, b = heights[left], heights[right]
                heights.append((a if a > b else b) + 1)
                lefts.append(left)
                rights.append(right)
        roots.append(len(heights) - 1)
    heights = np.array(heights)
    order = np.argsort(heights, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    begin = [0] + np.cumsum(np.bincount(heights)).tolist()
    children = torch.from_numpy(number[np.array([lefts, rights]).T[order[begin[1]:]]].reshape(-1))
    index = list(children.split([2 * (end - start) for start, end in zip(begin[1:], begin[2:])]))
    return torch.from_numpy(np.array(words)[order]), begin, index, torch.from_numpy(number[roots])


def nodes_of(trees):
    """The same, with a level for every inner node."""
    words, leaves, inner, number, roots = [], 0, [], [], []
    leaves = sum(1 for tree in trees for children in tree.children if not children)
    leaf_words, at, index = [], 0, []
    for tree in trees:
        base = len(number)
        for word, children in zip(tree.words, tree.children):
            if children:
                number.append(leaves + len(inner))
                inner.append(word)
                index.append(torch.tensor([number[base + child] for child in children]))
            else:
                number.append(at)
                at += 1
                leaf_words.append(word)
        roots.append(number[-1])
    words = torch.tensor(leaf_words + inner)
    return words, [0] + list(range(leaves, leaves + len(inner) + 1)), index, torch.tensor(roots)


# --- models ---

def product(x, w, b):
    """x @ w.T + b, in the form that is fastest with OpenBLAS and with MKL: for a single row the matrix-vector product."""
    if x.size(0) == 1:
        return torch.addmv(b, w, x[0]).unsqueeze(0)
    return torch.addmm(b, x, w.t())


def store_by_columns(model):
    """Stores the elements of each matrix by columns, its shape unchanged: products of few rows are up to three times as fast."""
    for name, value in list(vars(model).items()):
        if isinstance(value, Tensor) and value.dim() == 2 and name != "embedding":
            setattr(model, name, value.t().contiguous().t())


class Tree(nn.Module):
    """Runs level after level. A model defines leaf(x) and inner(h, c, x), which return h and c for the leaves or a level of
    inner nodes. The arguments h and c are those of the children, two rows per node; x is the result of `project` for the
    words of the rows. Tensors that a model does not have are empty."""

    def __init__(self, weights):
        super().__init__()
        self.embedding = weights["embedding.weight"]
        self.words = self.embedding.size(0)
        self.everywhere = False  # outputs at every node
        self.inner_words = False  # inner nodes read words
        self.has_c = False
        self.none = torch.empty((0, 0))

    def forward(self, words: Tensor, begin: List[int], index: List[Tensor], roots: Tensor):
        leaves, n = begin[1], begin[len(begin) - 1]
        x = self.project(words if self.inner_words else words[:leaves])
        first, first_c = self.leaf(x[:leaves])
        h = torch.empty((n, first.size(1)))
        h[:leaves] = first
        c = self.none
        if self.has_c:
            c = torch.empty((n, first.size(1)))
            c[:leaves] = first_c
        for level in range(len(index)):
            start, end = begin[level + 1], begin[level + 2]
            below = h.index_select(0, index[level])
            below_c = c.index_select(0, index[level]) if self.has_c else c
            h[start:end], level_c = self.inner(below, below_c, x[start:end] if self.inner_words else x)
            if self.has_c:
                c[start:end] = level_c
        return self.output(h if self.everywhere else h.index_select(0, roots))


class Logits(Tree):
    def __init__(self, weights):
        super().__init__(weights)
        self.output_w, self.output_b = weights["output.weight"], weights["output.bias"]

    def output(self, h):
        return product(h, self.output_w, self.output_b)


def joined(weights, pattern, gates, axis=0):
    return torch.cat([weights[pattern.format(gate)] for gate in gates], axis)


class TreeLSTM(Logits):
    """Leaves i o u, inner nodes i fl fr o u."""

    def __init__(self, weights):
        super().__init__(weights)
        self.has_c = True
        self.everywhere = True
        self.leaf_w = joined(weights, "leaf.W_{}", "iou")
        self.leaf_b = joined(weights, "leaf.b_{}", "iou")
        gates = ("i", "fl", "fr", "o", "u")
        self.node_w = torch.cat([joined(weights, "node.U_" + gate + "_{}", ("left", "right"), 1) for gate in gates])
        self.node_b = joined(weights, "node.b_{}", gates)
        self.d = self.node_w.size(1) // 2

    def project(self, words):
        return product(self.embedding.index_select(0, words), self.leaf_w, self.leaf_b)

    def leaf(self, x):
        d = self.d
        gates = x[:, :2 * d].sigmoid()
        c = gates[:, :d] * x[:, 2 * d:].tanh()
        return gates[:, d:] * c.tanh(), c

    def inner(self, h, c, x):
        d = self.d
        rows = h.size(0) // 2
        a = product(h.view(rows, 2 * d), self.node_w, self.node_b)
        s = a[:, :4 * d].sigmoid()
        kept = c.view(rows, 2 * d) * s[:, d:3 * d]
        new = torch.addcmul(kept[:, :d], s[:, :d], a[:, 4 * d:].tanh()).add_(kept[:, d:])
        return s[:, 3 * d:] * new.tanh(), new


class ChildSum(Logits):
    """Gates i o u of the sum, f of each child."""

    def __init__(self, weights):
        super().__init__(weights)
        self.has_c = True
        self.inner_words = True
        self.x_w = joined(weights, "W_{}", "iouf")
        self.x_b = joined(weights, "b_{}", "iouf")
        self.sum_w = joined(weights, "U_{}", "iou")
        self.f_w = weights["U_f"]
        self.d = self.f_w.size(0)
        self.zeros = torch.zeros(3 * self.d)
        self.zero = torch.zeros(self.d)

    def project(self, words):
        return product(self.embedding.index_select(0, words), self.x_w, self.x_b)

    def finish(self, a, kept):
        d = self.d
        s = a[:, :2 * d].sigmoid()
        c = s[:, :d] * a[:, 2 * d:3 * d].tanh() + kept
        return s[:, d:] * c.tanh(), c

    def leaf(self, x):
        return self.finish(x, self.zero)

    def inner(self, h, c, x):
        d = self.d
        rows = h.size(0) // 2
        f = product(h, self.f_w, self.zero).view(rows, 2, d) + x[:, 3 * d:].unsqueeze(1)
        kept = (f.sigmoid_() * c.view(rows, 2, d)).sum(1)
        return self.finish(product(h.view(rows, 2, d).sum(1), self.sum_w, self.zeros) + x[:, :3 * d], kept)


class TreeGRU(Logits):
    """Leaves z n; inner nodes r z of the sum, n of the reset sum."""

    def __init__(self, weights):
        super().__init__(weights)
        self.x_w = joined(weights, "W_{}", "zn")
        self.x_b = joined(weights, "b_{}", "zn")
        self.gate_w = joined(weights, "U_{}", "rz")
        self.gate_b = joined(weights, "b_{}", "rz")
        self.n_w, self.n_b = weights["U_n"], weights["b_n"]
        self.d = self.n_w.size(0)
        self.keeps = True  # z keeps some of the sum

    def project(self, words):
        return product(self.embedding.index_select(0, words), self.x_w, self.x_b)

    def leaf(self, x):
        n = x[:, self.d:].tanh()
        return n - x[:, :self.d].sigmoid() * n, self.none

    def inner(self, h, c, x):
        d = self.d
        s = h.view(h.size(0) // 2, 2, d).sum(1)
        g = product(s, self.gate_w, self.gate_b).sigmoid()
        z = g[:, d:]
        n = product(g[:, :d] * s, self.n_w, self.n_b).tanh()
        if self.keeps:
            return torch.addcmul(n, z, s - n), self.none
        return n - z * n, self.none


class SimpleTreeGRU(TreeGRU):
    def __init__(self, weights):
        super().__init__(weights)
        self.keeps = False


class TreeRNN(Logits):
    def __init__(self, weights):
        super().__init__(weights)
        self.x_w, self.w, self.b = weights["W"], weights["U"], weights["b"]
        self.d = self.w.size(0)

    def project(self, words):
        return product(self.embedding.index_select(0, words), self.x_w, self.b)

    def leaf(self, x):
        return x.tanh(), self.none

    def inner(self, h, c, x):
        return product(h.view(h.size(0) // 2, 2, self.d).sum(1), self.w, self.b).tanh(), self.none


class TreeFC(Tree):
    def __init__(self, weights):
        super().__init__(weights)
        self.w, self.b = weights["W"], weights["b"]
        self.d = self.w.size(0)

    def project(self, words):
        return self.embedding.index_select(0, words)

    def leaf(self, x):
        return x, self.none

    def inner(self, h, c, x):
        return product(h.view(h.size(0) // 2, 2 * self.d), self.w, self.b).relu_(), self.none

    def output(self, h):
        return h


MODELS = {"treelstm": TreeLSTM, "childsum": ChildSum, "treegru": TreeGRU, "simpletreegru": SimpleTreeGRU,
          "treernn": TreeRNN, "treefc": TreeFC}


def compile_parts(model):
    """Compiles the functions of a level during the first minibatches, which are not timed. Too many recompilations are an error
    instead of a silent return to uncompiled functions."""
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    for name in ("project", "leaf", "inner", "output"):
        setattr(model, name, torch.compile(getattr(model, name), dynamic=True))
    return model


COMPILE = {"script": torch.jit.script, "compile": compile_parts}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder")
    parser.add_argument("--variant", choices=("level", "script", "compile", "node"), default="level")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    linearize = nodes_of if options.variant == "node" else levels_of
    with torch.inference_mode():
        weights = {name: torch.from_numpy(array) for name, array in common.read_weights(options.folder).items()}
        model = MODELS[options.model](weights).eval()
        del weights
        store_by_columns(model)
        forward = COMPILE.get(options.variant, lambda as_it_is: as_it_is)(model)
        structures = common.read_structures(options.folder)
        for structure in structures:
            structure.words = [word % model.words for word in structure.words]
        print(f"torch {torch.__version__} {options.variant}, {options.threads} threads, "
              f"BLAS {common.blas_of(torch)}", file=sys.stderr)

        def run(trees):
            words, begin, index, roots = linearize(trees)
            return forward(words, begin, index, roots), roots

        def root(trees):
            outputs, roots = run(trees)
            return (outputs[roots] if model.everywhere else outputs).numpy()

        common.serve(len(structures), run, root, lambda first, count: common.chosen(structures, first, count))


if __name__ == "__main__":
    main()
