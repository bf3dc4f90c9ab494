#!/usr/bin/python3
"""The binary TreeLSTM of examples/treelstm in PyTorch, as a good engineer would write it: the peer we are compared with.

  treelstm_torch.py WEIGHTS VOCAB TREES --check           logits of every node, post order, on standard output
  treelstm_torch.py WEIGHTS VOCAB TREES --golden FILE     compares with such a file; status 1 above --tolerance
  treelstm_torch.py WEIGHTS VOCAB TREES --serve           answers "run FIRST COUNT REPEATS" (a minibatch of COUNT trees
                                                          from tree FIRST on) by REPEATS times in microseconds

--variant level   one set of operators per level of the minibatch (default)
          script  the same, compiled by TorchScript
          node    one node at a time

A time is that of linearizing (index tensors from the trees' arrays) and running (logits of all nodes). Reading trees,
looking words up, and joining the weights of the gates into one matrix come before, once.

Debian's PyTorch: packages python3-torch, python3-numpy, libopenblas0-pthread.
"""
import argparse
import gc
import json
import os
import sys
import time
from typing import List

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read once, when libgomp is loaded

import numpy as np  # noqa: E402
import torch  # noqa: E402

GATES = ("i", "fl", "fr", "o", "u")
DTYPES = {"F32": "<f4", "F16": "<f2"}


# --- files ---

def read_safetensors(path):
    """Name -> float32 array."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    tensors = {}
    for name, info in header.items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            values = np.frombuffer(data[begin:end], DTYPES[info["dtype"]])
            tensors[name] = values.astype(np.float32).reshape(info["shape"])
    return tensors


def read_vocabulary(path):
    with open(path, "rb") as file:
        return {word: number for number, word in enumerate(file.read().split(b"\n")[:-1])}


class Tree:
    """In post order: word[n] is -1 at inner nodes, left[n] and right[n] are meaningless at leaves."""

    def __init__(self, line, vocabulary):
        self.word, self.left, self.right = [], [], []
        open_nodes = [[]]
        tokens = line.replace(b"(", b" ( ").replace(b")", b" ) ").split()
        for before, token in zip([b")"] + tokens, tokens):
            if token == b"(":
                open_nodes.append([])
            elif token == b")":
                content = open_nodes.pop()
                open_nodes[-1].append(self.add(content, vocabulary))
            elif before != b"(":  # what follows a bracket is the label
                open_nodes[-1].append(token)

    def add(self, content, vocabulary):
        if len(content) == 1:
            self.word.append(vocabulary.get(content[0].lower(), vocabulary[b"<unk>"]))
            left, right = -1, -1
        else:
            self.word.append(-1)
            left, right = content
        self.left.append(left)
        self.right.append(right)
        return len(self.word) - 1


def read_trees(path, vocabulary):
    with open(path, "rb") as file:
        return [Tree(line, vocabulary) for line in file if line.strip()]


# --- linearizing ---

class Batches:
    """Nodes renumbered so that batch b is begin[b] .. begin[b + 1]; of a leaf batch index holds the words, of an inner
    batch the children, left and right in turn. number[n] is the new number of node n of the minibatch."""

    def __init__(self, number, begin, index, is_leaf):
        self.number, self.begin, self.index, self.is_leaf = number, begin, index, is_leaf


def linearize_levels(trees):
    heights, words, lefts, rights = [], [], [], []
    for tree in trees:
        base = len(heights)
        words += tree.word
        for left, right in zip(tree.left, tree.right):
            if left < 0:
                heights.append(0)
                lefts.append(0)
                rights.append(0)
            else:
                left += base
                right += base
                a, b = heights[left], heights[right]
                heights.append((a if a > b else b) + 1)
                lefts.append(left)
                rights.append(right)
    heights = np.array(heights)
    order = np.argsort(heights, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    begin = [0] + np.cumsum(np.bincount(heights)).tolist()
    leaves = begin[1]
    children = number[np.array([lefts, rights]).T[order[leaves:]]]
    index = torch.from_numpy(np.concatenate([np.array(words)[order[:leaves]], children.reshape(-1)]))
    sizes = [leaves] + [2 * (end - start) for start, end in zip(begin[1:], begin[2:])]
    return Batches(number, begin, list(index.split(sizes)), [True] + [False] * (len(begin) - 2))


def linearize_nodes(trees):
    index, is_leaf = [], []
    for tree in trees:
        base = len(index)
        for word, left, right in zip(tree.word, tree.left, tree.right):
            is_leaf.append(word >= 0)
            index.append(torch.tensor([word] if word >= 0 else [left + base, right + base]))
    return Batches(np.arange(len(index)), list(range(len(index) + 1)), index, is_leaf)


# --- the model ---

def product(w, x, b):
    """x @ w.T + b, in the form that is fastest with OpenBLAS: a matrix product of one row takes three times as long as
    the vector product, and one of two or three rows a quarter longer than its transpose."""
    rows = x.size(0)
    if rows == 1:
        return torch.addmv(b, w, x[0]).unsqueeze(0)
    if rows < 4:
        return torch.addmm(b.unsqueeze(1), w, x.t()).t()
    return torch.addmm(b, x, w.t())


def run_batches(begin: List[int], index: List[torch.Tensor], is_leaf: List[bool], embedding, leaf_w, leaf_b, node_w,
                node_b, output_w, output_b):
    """Logits of all nodes. Gates: i o u of a leaf, i fl fr o u of an inner node; weights are [gates * d, in]."""
    n = begin[len(begin) - 1]
    d = node_w.size(1) // 2
    h = torch.empty((n, d))
    c = torch.empty((n, d))
    for b in range(len(index)):
        rows = slice(begin[b], begin[b + 1])
        state = c[rows]
        if is_leaf[b]:
            gates = product(leaf_w, embedding.index_select(0, index[b]), leaf_b)
            s = gates[:, :2 * d].sigmoid_()
            u = gates[:, 2 * d:].tanh_()
            torch.mul(s[:, :d], u, out=state)
            o = s[:, d:]
        else:
            m = begin[b + 1] - begin[b]
            below = h.index_select(0, index[b]).view(m, 2 * d)
            below_c = c.index_select(0, index[b]).view(m, 2 * d)
            gates = product(node_w, below, node_b)
            s = gates[:, :4 * d].sigmoid_()
            u = gates[:, 4 * d:].tanh_()
            kept = below_c.mul_(s[:, d:3 * d])
            torch.addcmul(kept[:, :d], s[:, :d], u, out=state)
            state.add_(kept[:, d:])
            o = s[:, 3 * d:]
        torch.mul(o, state.tanh(), out=h[rows])
    return product(output_w, h, output_b)


class Model:
    def __init__(self, tensors, variant):
        def joined(*names):
            return np.concatenate([tensors[name] for name in names])

        def node_gate(gate):
            return np.concatenate([tensors[f"node.U_{gate}_left"], tensors[f"node.U_{gate}_right"]], axis=1)

        weights = (
            tensors["embedding.weight"],
            joined("leaf.W_i", "leaf.W_o", "leaf.W_u"),
            joined("leaf.b_i", "leaf.b_o", "leaf.b_u"),
            np.concatenate([node_gate(gate) for gate in GATES]),
            joined(*(f"node.b_{gate}" for gate in GATES)),
            tensors["output.weight"],
            tensors["output.bias"],
        )
        self.weights = [torch.from_numpy(array) for array in weights]
        self.linearize = linearize_nodes if variant == "node" else linearize_levels
        self.run_batches = torch.jit.script(run_batches) if variant == "script" else run_batches

    def run(self, trees):
        batches = self.linearize(trees)
        return batches, self.run_batches(batches.begin, batches.index, batches.is_leaf, *self.weights)

    def logits(self, trees):
        """In post order, tree after tree."""
        batches, logits = self.run(trees)
        return logits.numpy()[batches.number]


# --- modes ---

def golden_lines(model, trees):
    for number, tree in enumerate(trees):
        logits = model.logits([tree])
        yield f"tree {number} {len(logits)} {logits.shape[1]} {len(logits) - 1} {logits[-1].argmax()}"
        for row in logits:
            yield " ".join(f"{value:.9g}" for value in row)


def read_golden(path):
    """[(logits of a tree's nodes, class of its root)]"""
    trees, rows = [], []
    with open(path) as file:
        for line in file:
            if line.startswith("tree"):
                rows = []
                trees.append((rows, int(line.split()[5])))
            else:
                rows.append([float(word) for word in line.split()])
    return [(np.array(rows), root) for rows, root in trees]


def compare_golden(model, trees, path, tolerance):
    golden = read_golden(path)
    together = np.split(model.logits(trees[:len(golden)]), np.cumsum([len(rows) for rows, _ in golden])[:-1])
    worst, classes = 0.0, 0
    for tree, many, (wanted, root) in zip(trees, together, golden):
        for found in (model.logits([tree]), many):
            worst = max(worst, float(np.abs(found - wanted).max()))
            classes += int(found[-1].argmax() != root)
    print(f"{len(golden)} trees, alone and together: largest difference {worst:.2e}, {classes} other root classes")
    return worst <= tolerance and not classes


def serve(model, trees):
    gc.collect()
    gc.disable()
    for line in sys.stdin:
        try:
            command, first, count, repeats = line.split()
            first, count, repeats = int(first), int(count), int(repeats)
            assert command == "run" and 0 <= first < first + count <= len(trees) and repeats > 0
        except (ValueError, AssertionError):
            print(f"error: 'run FIRST COUNT REPEATS' within {len(trees)} trees is wanted, not {line!r}", flush=True)
            continue
        minibatch, times = trees[first:first + count], []
        for _ in range(repeats):
            start = time.perf_counter_ns()
            model.run(minibatch)
            times.append((time.perf_counter_ns() - start) / 1000)
        print(*(f"{microseconds:.1f}" for microseconds in times), flush=True)
        gc.collect()


def loaded_blas():
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line.split()[-1] or "libmkl" in line}
    return " ".join(sorted(os.path.realpath(path) for path in paths)) or "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("vocab")
    parser.add_argument("trees")
    parser.add_argument("--variant", choices=("level", "script", "node"), default="level")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--golden", metavar="FILE")
    mode.add_argument("--serve", action="store_true")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    trees = read_trees(options.trees, read_vocabulary(options.vocab))
    with torch.inference_mode():
        model = Model(read_safetensors(options.weights), options.variant)
        print(f"torch {torch.__version__} {options.variant}, {options.threads} threads, BLAS {loaded_blas()}",
              file=sys.stderr)
        if options.serve:
            serve(model, trees)
        elif options.check:
            sys.stdout.writelines(line + "\n" for line in golden_lines(model, trees))
        elif not compare_golden(model, trees, options.golden, options.tolerance):
            sys.exit(1)


if __name__ == "__main__":
    main()
