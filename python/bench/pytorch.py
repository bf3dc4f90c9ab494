# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What PyTorch takes for one structure, and the model that espalier.torch.compile makes of it.

    python python/bench/pytorch.py [--seconds 5] [--size 150] [--without-compile]

The cells of python/tests/pytorch/cells.py, of a tree of 39 nodes (a recursive function calls the cell at each) and a
sentence of 39 words: eager PyTorch, torch.compile of the cell or the tagger, PyTorch by levels (all nodes of a height at
once, with index tensors that were made before), and Espalier with nested dicts or tuples that are read anew each time.
Contestants take turns; printed are the least and the median in milliseconds.
"""
import argparse
import random
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

import espalier.torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/pytorch"))
import cells

NODES, WORDS = 39, 2000


def grow(random_children):
    """A random tree of NODES nodes: binary, or with any number of children."""
    nodes = [{"word": random.randrange(WORDS), "children": []} for _ in range(NODES)]
    if not random_children:
        open_nodes, rest = [nodes[0]], nodes[1:]
        while rest:
            node = open_nodes.pop(random.randrange(len(open_nodes)))
            node["children"] = [rest.pop(), rest.pop()]
            open_nodes += node["children"]
        return nodes[0]
    for i in range(1, NODES):
        nodes[random.randrange(i)]["children"].append(nodes[i])
    return nodes[0]


def child_sum(cell, net, tree):
    def state(node):
        x = net.emb.weight[node["word"]][None]
        if not node["children"]:
            return cell(x, torch.zeros(1, cells.H), torch.zeros(1, cells.H))
        c, h = zip(*map(state, node["children"]))
        return cell(x, torch.cat(c), torch.cat(h))
    return net.out(state(tree)[1])


def mailbox(cell, net, tree):
    def state(node):
        if not node["children"]:
            return net.leaf(net.emb.weight[node["word"]][None])
        states = [state(child) for child in node["children"]]
        return cell(*(torch.stack([s[name] for s in states], 1) for name in ("h", "c")))
    return net.out(state(tree)["h"])


def attention(cell, net, tree):
    def state(node):
        children = [state(child) for child in node["children"]]
        return cell(net.emb.weight[node["word"]][None], torch.cat(children) if children else torch.zeros(0, cells.H))
    return net.out(state(tree))


# --- all nodes of a height at once ---


def levels(tree):
    """For each height the words of its nodes, the rows of their children in the order of all levels, and of each child which
    of the nodes is its parent."""
    heights = {}
    def visit(node):
        height = 1 + max(map(visit, node["children"]), default=-1)
        heights.setdefault(height, []).append(node)
        return height
    visit(tree)
    row, made = {}, []
    for height in range(len(heights)):
        nodes = heights[height]
        children = [(row[id(child)], i) for i, node in enumerate(nodes) for child in node["children"]]
        row.update({id(node): len(row) + i for i, node in enumerate(nodes)})
        made.append((torch.tensor([node["word"] for node in nodes]), *torch.tensor(children, dtype=torch.long).reshape(-1, 2).T))
    return made


def child_sum_by_levels(net, made):
    h = c = torch.zeros(0, cells.H)
    for words, child, parent in made:
        x, none = net.emb(words), torch.zeros(len(words), cells.H)
        i, o, u = (net.gates_x(x) + net.gates_h(none.index_add(0, parent, h[child]))).chunk(3, 1)
        if len(child):
            f = torch.sigmoid(net.forget_h(h[child]) + net.forget_x(x)[parent])
            none = none.index_add(0, parent, f * c[child])
        c = torch.cat([c, torch.sigmoid(i) * torch.tanh(u) + none])
        h = torch.cat([h, torch.sigmoid(o) * torch.tanh(c[len(h):])])
    return net.out(h[-1:])


def mailbox_by_levels(net, made):
    h = c = torch.zeros(0, cells.H)
    for words, child, _ in made:
        if len(child):
            nodes = SimpleNamespace(mailbox={"h": h[child].view(-1, 2, cells.H), "c": c[child].view(-1, 2, cells.H)})
            nodes.data = net.reduce(nodes)
        else:
            nodes = SimpleNamespace(data={"iou": net.iou_x(net.emb(words)), "c": torch.zeros(len(words), cells.H)})
        states = net.apply(nodes)
        h, c = torch.cat([h, states["h"]]), torch.cat([c, states["c"]])
    return net.out(h[-1:])


def attention_by_levels(net, made):
    """Scores are small enough for exp."""
    h = torch.zeros(0, cells.H)
    for words, child, parent in made:
        weight = torch.exp(net.score(torch.tanh(net.key(h[child]))))
        sums = torch.zeros(len(words), 1).index_add(0, parent, weight)
        old = torch.zeros(len(words), cells.H).index_add(0, parent, weight / sums[parent] * h[child])
        h = torch.cat([h, net.gru(net.emb(words), old)])
    return net.out(h[-1:])


def entrants():
    """(name, the function that is traced, how a structure is computed with it, by levels, a structure, the model, what it takes)"""
    net = cells.ChildSum().eval()
    yield "child-sum TreeLSTM", net.node, lambda f, tree, net=net: child_sum(f, net, tree), partial(child_sum_by_levels, net), grow(True), espalier.torch.compile(
        net.node, "tree(*)", {"x": f"emb.weight[word][1, {cells.X}]", "child_c": "children.c", "child_h": "children.h"},
        f"c[{cells.H}], h[{cells.H}]", leaf="zeros", outputs={"y": (net.out, "h")}), None
    net, view = cells.Mailbox().eval(), f"[1, 2, {cells.H}]"
    yield "binary TreeLSTM", net.inner, lambda f, tree, net=net: mailbox(f, net, tree), partial(mailbox_by_levels, net), grow(False), espalier.torch.compile(
        net.inner, "tree(2)", {"h": "children.h" + view, "c": "children.c" + view}, f"h[{cells.H}], c[{cells.H}]",
        leaf=espalier.torch.leaf(net.leaf, {"x": f"emb.weight[word][1, {cells.X}]"}), outputs={"y": (net.out, "h")}), None
    net = cells.Attention().eval()
    yield "GRU, attention", net, lambda f, tree, net=net: attention(f, net, tree), partial(attention_by_levels, net), grow(True), espalier.torch.compile(
        net, "tree(*)", {"x": f"emb.weight[word][1, {cells.X}]", "child_h": "children.h"}, f"h[{cells.H}]",
        outputs={"y": (net.out, "h")}), None
    net = cells.Tagger(num_layers=2, bidirectional=True, batch_first=True).eval()
    words = torch.randint(WORDS, (1, NODES))
    yield "biLSTM tagger", net, lambda f, words: f(words), None, words, espalier.torch.compile(
        net, "sequence", {"words": "word[1, nodes] : token"}, outputs="y"), tuple(words[0].tolist())


def measure(contestants, seconds):
    """[(least, median)] of functions that take turns, in milliseconds."""
    for function in contestants:
        for _ in range(5):
            function()
    times, end = [[] for _ in contestants], time.perf_counter() + seconds
    while time.perf_counter() < end:
        for function, taken in zip(contestants, times):
            begin = time.perf_counter()
            function()
            taken.append((time.perf_counter() - begin) * 1e3)
    return [(min(taken), statistics.median(taken)) for taken in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--size", type=int, default=150)
    parser.add_argument("--without-compile", action="store_true")
    options = parser.parse_args()
    cells.WORDS, cells.X, cells.H = WORDS, 2 * options.size, options.size
    random.seed(0)
    torch.manual_seed(0)
    names = ["eager", "torch.compile", "by levels", "espalier"]
    print(f"{'ms, least and median':24}" + "".join(f"{name:>20}" for name in names))
    with torch.no_grad():
        for name, function, run, at_once, structure, model, own in entrants():
            compiled = function if options.without_compile else torch.compile(function, dynamic=True)
            given = [own if own is not None else structure]
            contestants = {"eager": lambda: run(function, structure), "torch.compile": lambda: run(compiled, structure),
                           "espalier": lambda: model(given)["y"]}
            if at_once:
                made = levels(structure)
                contestants["by levels"] = lambda: at_once(made)
            wanted = contestants["eager"]().flatten()
            assert all(torch.allclose(wanted, torch.tensor(np.asarray(each())).flatten(), atol=1e-4) for each in contestants.values())
            found = dict(zip(contestants, measure(list(contestants.values()), options.seconds)))
            shown = (f"{found[each][0]:11.3f} {found[each][1]:8.3f}" if each in found else f"{'':20}" for each in names)
            print(f"{name:24}" + "".join(shown), flush=True)


if __name__ == "__main__":
    main()
