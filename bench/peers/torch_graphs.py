#!/usr/bin/python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""More models of examples/ over trees and graphs in PyTorch, as a good engineer would write them: DAG-RNN, MV-RNN, attention
over the nodes of a tree, labelled edges.

  torch_graphs.py MODEL FOLDER [--variant level|compile|node] [--threads N]

`espalier bench --keep FOLDER` writes FOLDER; requests come on standard input (common.py); the answer to "outputs" has all
outputs of the model. A time includes linearizing (index tensors from the structures' lists), running and outputs. The weights
of gates are joined into one matrix once, before. An edge has the label of the word that it leads to.

--variant level   one set of operators per level of the minibatch; input projections of all nodes in one product
          compile the same, with each level and the outputs compiled by torch.compile for any number of rows (PyTorch 2)
          node    one node at a time

Any PyTorch from 1.13 on; Debian's: packages python3-torch, python3-numpy, libopenblas0-pthread.
"""
import argparse
import sys

import numpy as np
import torch

import common
from torch_trees import joined, product, store_by_columns


# --- linearizing ---

class Level:
    """Nodes at [begin, end) whose children are all in levels below."""

    def __init__(self, begin, end, child, label):
        self.begin, self.end = begin, end
        self.child = torch.from_numpy(child)  # [nodes, most]; beyond the last child of a node: the number of all nodes
        self.label = label  # of the children, [nodes, most]


class Order:
    """The nodes of a minibatch by levels: the node at each place and the place of each node, words and structures of places."""

    def __init__(self, structures, single):
        heights, words, children, owner, roots = [], [], [], [], []
        for number, s in enumerate(structures):
            base = len(heights)
            for of in s.children:
                children.append([base + child for child in of])
                heights.append(max((heights[base + child] for child in of), default=-1) + 1)
            words += s.words
            owner += [number] * len(s.words)
            roots.append(len(heights) - 1)
        self.nodes = len(heights)
        heights = np.array(heights)
        order = np.argsort(heights, kind="stable")
        place = np.empty(self.nodes + 1, np.int64)
        place[order] = np.arange(self.nodes)
        place[self.nodes] = self.nodes
        words = np.array(words)[order]
        self.leaves = int((heights == 0).sum())
        self.node = torch.from_numpy(order)
        self.words, self.owner = torch.from_numpy(words), torch.from_numpy(np.array(owner)[order])
        self.place, self.roots = torch.from_numpy(place[:-1]), torch.from_numpy(place[roots])
        self.structures = len(structures)
        most = max(map(len, children))
        child = place[np.array([of + [self.nodes] * (most - len(of)) for of in children])[order]]
        label = np.append(words, 0)[child]
        ends = np.cumsum(np.bincount(heights))
        self.levels = []
        for begin, end in zip(ends[:-1], ends[1:]):
            for first in range(begin, end) if single else (begin,):
                last = first + 1 if single else end
                self.levels.append(Level(first, last, child[first:last], label[first:last]))


def take_rows(rows, index):
    """[n, k, ...] from rows of an index [n, k]."""
    return rows.index_select(0, index.reshape(-1)).view(*index.shape, *rows.shape[1:])


# --- models: called with the order of a minibatch they return outputs at all nodes and outputs at roots ---

class DagRnn:
    def __init__(self, weights):
        self.U, self.W, self.b, self.V, self.c = (weights[name] for name in ("U", "W", "b", "V", "c"))
        self.inputs = self.U.size(1)

    def level(self, below, x):
        return torch.addmm(x, below.sum(1), self.W.t()).relu_()

    def output(self, h):
        return product(h, self.V, self.c).softmax(1)

    def __call__(self, order):
        x = product(order.vectors.index_select(0, order.node), self.U, self.b)
        h = torch.zeros(order.nodes + 1, x.size(1))  # the last row stands for children that there are none of
        h[:order.leaves] = x[:order.leaves].relu()
        for level in order.levels:
            h[level.begin:level.end] = self.level(take_rows(h, level.child), x[level.begin:level.end])
        return [self.output(h[:order.nodes])], []


class MvRnn:
    """The matrices of nodes are stored transposed: then the matrices of a level are one product."""

    def __init__(self, weights):
        self.embedding, matrix = weights["vector.weight"], weights["matrix.weight"]
        self.words, self.d = self.embedding.shape
        self.matrix = matrix.transpose(1, 2).contiguous()
        self.W, self.b, self.W_M = weights["W"], weights["b"], weights["W_M"]
        self.label = weights["label.weight"]
        self.none = torch.zeros(self.label.size(0))

    def level(self, p, P):
        n, d = p.size(0), self.d
        changed = torch.bmm(p.view(2 * n, 1, d), P.flip(1).reshape(2 * n, d, d)).view(n, 2 * d)
        both = P.transpose(1, 2).reshape(n * d, 2 * d)
        return product(changed, self.W, self.b).tanh(), torch.mm(both, self.W_M.t()).view(n, d, d)

    def output(self, p):
        return product(p, self.label, self.none).softmax(1)

    def __call__(self, order):
        words = order.words[:order.leaves] % self.words
        p = torch.empty(order.nodes, self.d)
        P = torch.empty(order.nodes, self.d, self.d)
        torch.index_select(self.embedding, 0, words, out=p[:order.leaves])
        torch.index_select(self.matrix, 0, words, out=P[:order.leaves])
        for level in order.levels:
            rows = slice(level.begin, level.end)
            p[rows], P[rows] = self.level(take_rows(p, level.child), take_rows(P, level.child))
        return [self.output(p)], []


class Attention:
    """The binary TreeLSTM of torch_trees.py; leaves i o u, inner nodes i fl fr o u."""

    def __init__(self, weights):
        self.embedding = weights["embedding.weight"]
        self.leaf_w, self.leaf_b = joined(weights, "leaf.W_{}", "iou"), joined(weights, "leaf.b_{}", "iou")
        gates = ("i", "fl", "fr", "o", "u")
        self.node_w = torch.cat([joined(weights, "node.U_" + gate + "_{}", ("left", "right"), 1) for gate in gates])
        self.node_b = joined(weights, "node.b_{}", gates)
        self.score_w, self.score_b, self.v = (weights["attention." + name] for name in ("W", "b", "v"))
        self.output_w, self.output_b = weights["output.weight"], weights["output.bias"]
        self.d = self.node_w.size(1) // 2

    def leaf(self, words):
        a = product(self.embedding.index_select(0, words % self.embedding.size(0)), self.leaf_w, self.leaf_b)
        gates = a[:, :2 * self.d].sigmoid()
        c = gates[:, :self.d] * a[:, 2 * self.d:].tanh()
        return gates[:, self.d:] * c.tanh(), c

    def level(self, h, c):
        d = self.d
        a = product(h.view(-1, 2 * d), self.node_w, self.node_b)
        s = a[:, :4 * d].sigmoid()
        kept = c.view(-1, 2 * d) * s[:, d:3 * d]
        new = torch.addcmul(kept[:, :d], s[:, :d], a[:, 4 * d:].tanh()).add_(kept[:, d:])
        return s[:, 3 * d:] * new.tanh(), new

    def score(self, h):
        return torch.mv(product(h, self.score_w, self.score_b).tanh(), self.v)

    def output(self, h, score, owner, most):
        weight = (score - most.index_select(0, owner)).exp_()
        total = torch.zeros_like(most).index_add_(0, owner, weight)
        summary = torch.zeros(most.size(0), self.d).index_add_(0, owner, weight.unsqueeze(1) * h).div_(total.unsqueeze(1))
        return summary, product(summary, self.output_w, self.output_b)

    def __call__(self, order):
        h, c = torch.empty(order.nodes, self.d), torch.empty(order.nodes, self.d)
        h[:order.leaves], c[:order.leaves] = self.leaf(order.words[:order.leaves])
        for level in order.levels:
            rows = slice(level.begin, level.end)
            h[rows], c[rows] = self.level(take_rows(h, level.child), take_rows(c, level.child))
        score = self.score(h)
        most = torch.full((order.structures,), float("-inf")).scatter_reduce_(0, order.owner, score, "amax")
        return [score.unsqueeze(1)], self.output(h, score, order.owner, most)


class Labelled:
    """Gates i o u, of which children add to all, and f of each child. A model defines messages(level, h, iou, f): what the
    labelled edges of a level add to x's i o u, [nodes, 3 D], and to the f of each child, [nodes, 2, D]."""

    def __init__(self, weights):
        self.embedding = weights["embedding.weight"]
        self.x_w, self.x_b = joined(weights, "W_{}", "iouf"), joined(weights, "b_{}", "iouf")
        self.output_w, self.output_b = weights["output.weight"], weights["output.bias"]
        self.d = self.output_w.size(1)

    def project(self, words):
        return product(self.embedding.index_select(0, words % self.embedding.size(0)), self.x_w, self.x_b)

    def finish(self, iou, kept):
        d = self.d
        s = iou[:, :2 * d].sigmoid()
        c = s[:, :d] * iou[:, 2 * d:].tanh() + kept
        return s[:, d:] * c.tanh(), c

    def level(self, x, iou, f, c):
        kept = ((f + x[:, 3 * self.d:].unsqueeze(1)).sigmoid_() * c).sum(1)
        return self.finish(iou + x[:, :3 * self.d], kept)

    def output(self, h):
        return product(h, self.output_w, self.output_b)

    def __call__(self, order):
        x = self.project(order.words)
        h, c = torch.empty(order.nodes, self.d), torch.empty(order.nodes, self.d)
        h[:order.leaves], c[:order.leaves] = self.finish(x[:order.leaves, :3 * self.d], torch.zeros(self.d))
        self.prepare()
        for level in order.levels:
            rows = slice(level.begin, level.end)
            iou, f = self.messages(level, h)
            h[rows], c[rows] = self.level(x[rows], iou, f, take_rows(c, level.child))
        return [], [self.output(h.index_select(0, order.roots))]


class LabelEmbedding(Labelled):
    def __init__(self, weights):
        super().__init__(weights)
        self.sum_w, self.f_w = joined(weights, "U_{}", "iou"), weights["U_f"]
        self.label, self.label_w = weights["label.weight"], joined(weights, "L_{}", "iouf")
        self.none = torch.zeros(4 * self.d)

    def prepare(self):
        self.table = product(self.label, self.label_w, self.none)  # of each label, for all edges

    def states(self, h, of_label):
        d = self.d
        iou = torch.addmm(of_label[:, :, :3 * d].sum(1), h.sum(1), self.sum_w.t())
        return iou, torch.addmm(of_label[:, :, 3 * d:].reshape(-1, d), h.view(-1, d), self.f_w.t()).view(-1, 2, d)

    def messages(self, level, h):
        label = torch.from_numpy(level.label % self.label.size(0))
        return self.states(take_rows(h, level.child), take_rows(self.table, label))


class LabelMatrix(Labelled):
    """Edges of a label are one product: the matrices are read once a level, and not copied."""

    def __init__(self, weights):
        super().__init__(weights)
        self.labels = weights["U_i"].size(0)
        both = torch.cat([weights["U_" + gate] for gate in "iouf"], 1)  # [labels, 4 D, D]
        self.w = list(both.transpose(1, 2).contiguous().transpose(1, 2))
        self.none = torch.zeros(4 * self.d)

    def prepare(self):
        pass

    def messages(self, level, h):
        d = self.d
        label = level.label.reshape(-1) % self.labels
        order = np.argsort(label, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        found, begin = np.unique(label[order], return_index=True)
        rows = h.index_select(0, level.child.reshape(-1)[torch.from_numpy(order)])
        products = [product(part, self.w[k], self.none) for k, part in
                    zip(found, rows.tensor_split(torch.from_numpy(begin[1:])))]
        edges = torch.cat(products).index_select(0, torch.from_numpy(place)).view(-1, 2, 4 * d)
        return edges[:, :, :3 * d].sum(1), edges[:, :, 3 * d:]


MODELS = {"dagrnn": DagRnn, "mvrnn": MvRnn, "attention": Attention, "label embedding": LabelEmbedding,
          "label matrix": LabelMatrix}


def compile_parts(model):
    """Compiles the functions of a level during the first minibatches, which are not timed."""
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    for name in ("project", "leaf", "level", "states", "finish", "score", "output"):
        if hasattr(model, name):
            setattr(model, name, torch.compile(getattr(model, name), dynamic=True))


def outputs_by_structure(at_nodes, at_roots, order):
    """The outputs of each structure, one after the other: of each output those of all its nodes, or the one of its root."""
    first = np.cumsum(np.bincount(order.owner.numpy()))[:-1]
    outputs = [np.split(output.index_select(0, order.place).numpy(), first) for output in at_nodes]
    outputs += [output.numpy() for output in at_roots]
    return np.concatenate([output[i].reshape(-1) for i in range(order.structures) for output in outputs])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder")
    parser.add_argument("--variant", choices=("level", "compile", "node"), default="level")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    with torch.inference_mode():
        weights = {name: torch.from_numpy(array) for name, array in common.read_weights(options.folder).items()}
        model = MODELS[options.model](weights)
        del weights
        store_by_columns(model)
        if options.variant == "compile":
            compile_parts(model)
        structures = common.read_structures(options.folder)
        if hasattr(model, "inputs"):
            for s in structures:
                s.vectors = torch.from_numpy(common.vectors_of(s, model.inputs))
        print(f"torch {torch.__version__} {options.variant}, {options.threads} threads, BLAS {common.blas_of(torch)}",
              file=sys.stderr)

        def run(chosen):
            order = Order(chosen, options.variant == "node")
            if hasattr(model, "inputs"):
                order.vectors = torch.cat([s.vectors for s in chosen])
            return *model(order), order

        common.serve(len(structures), run, lambda chosen: outputs_by_structure(*run(chosen)),
                     lambda first, count: common.chosen(structures, first, count))


if __name__ == "__main__":
    main()
