# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Models whose results are small integers, random structures for them in every form that a call takes, and what the results must
be.  test_random_calls.py uses them."""
import array

import numpy as np
from conftest import TREE, WEIGHTS, WORDS

from espalier import Structures

GRAPH = """model graph
structure {structure}
input word : token
edge rel : token
param E[V, D]
param R[L, D]
state h[D]
node:
    h = E[word] + sum(R[k.rel] * k.h for k in children)
output y = h at root
output each = h at every node
"""
SEQUENCE = """model sequence
structure sequence
input x[F]
param W[D, F]
state h[D]
leaf:
    h = W @ x
inner:
    h = W @ x + previous.h
output y = h at root
output each = h at every node
"""
ROWS = """model rows
structure none
input x[F]
param W[D, F]
output y = W @ x
"""
RELATIONS = np.array([[1, 1], [0, 1], [1, -1]], np.float32)
PRODUCT = np.array([[1, 2], [3, -4], [0, 5]], np.float32)


class Node:
    """A node; of a sequence its only child is the element before it."""

    def __init__(self, word, x, children=(), rels=()):
        self.word, self.x, self.children, self.rels = word, x, list(children), list(rels)


def in_order(root):
    """The nodes, children first, each once, as the package numbers nested objects."""
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, closed = stack.pop()
        if closed:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in reversed(node.children)]
    return order


class Kind:
    """A model, its random structures, and what it computes of one: by output a row, or a row for each node in order."""

    def __init__(self, text, weights, structure, vocab=None):
        self.text, self.weights, self.structure, self.vocab = text, weights, structure, vocab

    def grow(self, random):
        """A random structure of 1 to 12 nodes."""
        n = random.choice((1, 2, 3, 5, 8, 12))
        def make(children=(), rels=()):
            return Node(random.randrange(4), np.array([random.randrange(-4, 5), random.randrange(5)], np.float32), children, rels)
        if self.structure in ("sequence", "none"):
            node = make()
            for _ in range(n - 1 if self.structure == "sequence" else 0):
                node = make([node])
            return node
        nodes = [make() for _ in range(n)]
        while len(nodes) > 1:
            most = 2 if self.structure == "binary" else random.randrange(1, 4)
            below = [nodes.pop(random.randrange(len(nodes))) for _ in range(min(most, len(nodes)))]
            if self.structure == "dag" and below[0].children and random.random() < 0.5:
                below.append(below[0].children[0])
            nodes.append(make(below, [random.randrange(3) for _ in below]))
        return nodes[0]

    def compute(self, root, scale=1):
        """What the outputs are; `scale` is what the weights are multiplied by that are multiplied once."""
        states = {}
        for node in in_order(root):
            states[id(node)] = self._state(node, [states[id(child)] for child in node.children], scale)
        rows = np.stack(list(states.values()))
        top = states[id(root)]
        if self.structure == "binary":
            return {"twice": rows * 2, "total": top.sum(), "side": top}
        return {"y": rows} if self.structure == "none" else {"y": top, "each": rows}

    def _state(self, node, below, scale):
        if self.structure == "binary":
            return below[0][::-1] + below[1] if below else self.weights["E"][node.word] * scale
        if self.structure in ("sequence", "none"):
            own = self.weights["W"] @ node.x * scale
            return own + below[0] if below else own
        return self.weights["E"][node.word] * scale + sum((RELATIONS[rel] * h for rel, h in zip(node.rels, below)), np.zeros(2, np.float32))

    def scaled(self, scale):
        """The weights that `compute` means by a scale."""
        return {name: value * scale if name == ("W" if "E" not in self.weights else "E") else value for name, value in self.weights.items()}


KINDS = {
    "binary": Kind(TREE, WEIGHTS, "binary", WORDS),
    "tree": Kind(GRAPH.format(structure="tree(*)"), {"E": WEIGHTS["E"], "R": RELATIONS}, "tree", {"word": WORDS}),
    "dag": Kind(GRAPH.format(structure="dag(*)"), {"E": WEIGHTS["E"], "R": RELATIONS}, "dag", {"word": WORDS}),
    "sequence": Kind(SEQUENCE, {"W": PRODUCT}, "sequence"),
    "none": Kind(ROWS, {"W": PRODUCT}, "none"),
}

# --- forms ---


class Labelled(list):
    """As a tree of nltk."""

    def label(self):
        return "S"


class Graph:
    """As a directed graph of networkx."""

    def __init__(self, nodes, succ):
        self.succ, self.pred = succ, {name: {} for name in nodes}
        for parent, children in succ.items():
            for child, data in children.items():
                self.pred[child][parent] = data
        self.nodes = type("Nodes", (dict,), {"__call__": lambda self, data: self.items()})(nodes)


class Stored:
    """Only an array by __array__."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)


def _word(random, node):
    return random.choice((node.word, WORDS[node.word], np.int64(node.word), np.uint8(node.word)))


def vector(random, values):
    """Numbers in one of the forms of an array of f32."""
    values = np.asarray(values, np.float32)
    wide = np.repeat(values, 2, axis=-1)[..., ::2]
    frozen = values.copy()
    frozen.flags.writeable = False
    return random.choice((values, wide, frozen, np.flip(np.flip(values, -1).copy(), -1), values.tolist(), Stored(values)))


def integers(random, values):
    """Numbers in one of the forms of an array of i32."""
    small = np.array(values, np.int32)
    frozen = small.copy()
    frozen.flags.writeable = False
    return random.choice((list(values), small, np.array(values, np.int64), np.array(values, np.int16), np.repeat(small, 2)[::2], frozen,
                          small[::-1].copy()[::-1], array.array("i", values), memoryview(small), small.astype(">i4")))  # fmt: skip


def nested(kind, random, node, made=None):
    """Tuples, lists and dicts."""
    made = {} if made is None else made
    if kind.structure == "none":
        return {"x": vector(random, node.x)}
    if kind.structure == "sequence":
        order = in_order(node)
        if random.random() < 0.4:
            rows = vector(random, np.stack([each.x for each in order]))
            return rows if isinstance(rows, np.ndarray) else tuple(each.x for each in order)
        items = [(each.x, vector(random, each.x)) for each in order]
        return tuple(plain if random.random() < 0.5 and not isinstance(x, list) else {"x": x} for plain, x in items)
    for each in in_order(node):
        below = [made[id(child)] for child in each.children]
        if kind.structure == "binary":
            plain = random.choice((_word(random, each), {"word": _word(random, each)})) if not below else None
            made[id(each)] = plain if not below else random.choice((tuple, list, Labelled, lambda x: {"children": x}))(below)
        else:
            made[id(each)] = {"word": _word(random, each), "children": random.choice((list, tuple))(below), "edges": [{"rel": rel} for rel in each.rels]}
    top = made[id(node)]
    return node.word if isinstance(top, (str, np.integer)) else tuple(top) if type(top) is list else top  # a text would be brackets


def text(kind, random, node):
    """Brackets."""
    below = " ".join(text(kind, random, child) for child in node.children)
    return f"({random.randrange(3)} {below or WORDS[node.word]})"


def graph(kind, random, root):
    """A graph whose edges are in the order of the children, or None if a child is there twice."""
    order = in_order(root)
    if any(len({id(child) for child in node.children}) < len(node.children) for node in order):
        return None
    names = {id(node): f"node {number}" for number, node in enumerate(order)}
    succ = {names[id(node)]: {names[id(child)]: {"rel": rel} for child, rel in zip(node.children, node.rels)} for node in order}
    return Graph({names[id(node)]: {"word": _word(random, node)} for node in order}, succ)


def flat(kind, random, roots):
    """`Structures` of several, with nodes in a random order, and the numbers that the nodes of each got, children first."""
    node_begin, child_begin, children, root, words, xs, rels, orders = [0], [0], [], [], [], [], [], []
    for top in roots:
        order = in_order(top)
        placed = order if kind.structure == "sequence" else random.sample(order, len(order))
        number = {id(node): i for i, node in enumerate(placed)}
        orders.append([number[id(node)] for node in order])
        root.append(number[id(top)])
        for node in placed:
            children += [number[id(child)] for child in node.children]
            child_begin.append(len(children))
            words.append(node.word)
            xs.append(node.x)
            rels += node.rels
        node_begin.append(len(child_begin) - 1)
    data = {"x": vector(random, np.stack(xs))} if kind.structure in ("sequence", "none") else {"word": integers(random, words)}
    if kind.structure in ("tree", "dag"):
        data["rel"] = integers(random, rels)
    return Structures(*(integers(random, each) for each in (child_begin, children, node_begin, root)), **data), orders


class Part:
    """Structures as one item of a minibatch: the object, its roots, and of each the numbers of its nodes, children first (None:
    not known)."""

    def __init__(self, given, roots, orders=None):
        self.given, self.roots = given, roots
        self.orders = orders or [list(range(len(in_order(root)))) for root in roots]


def part(kind, random):
    """One to three structures in a random form."""
    root, form = kind.grow(random), random.random()
    if form < 0.25:
        roots = [root] + [kind.grow(random) for _ in range(random.randrange(3))]
        given, orders = flat(kind, random, roots)
        return Part(given, roots, orders)
    if form < 0.4 and kind.structure == "binary":
        return Part(text(kind, random, root), [root], [None])
    if form < 0.4 and kind.structure in ("tree", "dag") and (given := graph(kind, random, root)):
        return Part(given, [root], [None])
    return Part(nested(kind, random, root), [root])


def batch(kind, random):
    """A minibatch in a random form, or one structure alone; with its parts."""
    parts = [part(kind, random) for _ in range(random.choice((1, 1, 2, 3, 6)))]
    given = [each.given for each in parts]
    alone = len(parts) == 1 and type(given[0]) is not list
    return random.choice((list, iter, lambda x: (each for each in x), lambda x: x[0] if alone else x))(given), parts


# --- wrong things ---


class Hostile:
    """Whatever asks it runs `act`."""

    def __init__(self, act):
        self._act = act

    def __index__(self):
        return self._act() or 1

    def __array__(self, dtype=None, copy=None):
        self._act()
        return np.ones(2, dtype or np.float32)

    def __len__(self):
        self._act()
        return 2

    def __getitem__(self, at):
        self._act()
        return 1


class HostileTree(list):
    """A tree of nltk whose children change while they are read."""

    act = None

    def label(self):
        self.act()
        return "S"

    def __getitem__(self, at):
        self.act()
        return list.__getitem__(self, at)


class OnGpu:
    dtype = "float32"

    def __dlpack_device__(self):
        return (2, 0)


def wrong_value(random, act):
    """Something that is no token, and no vector of two numbers, or only by chance."""
    return random.choice((
        None, 1.5, -5, 9, 2**31, 2**70, "purple", "\ud800", "ä" * 300, "", b"xy", object(), set(), range(2), OnGpu(), Hostile(act), {}, [], (), float("nan"),
        np.zeros(2), np.zeros(3, np.float32), np.zeros((2, 2), np.float32), np.zeros(0, np.float32), np.zeros(2, np.complex64), np.array("x"),
        np.array([1, "x"], object), np.zeros(2, "datetime64[s]"), np.zeros(2, [("a", "f4")]), memoryview(b"12345678"), memoryview(b"1234")[::2], True,
        type, Structures([0], []), np.float16(1), {"children": 3}, {"word": 1, "children": (1,), "edges": 5}, [[]], [None, None]))  # fmt: skip


def spoil_nested(random, given, act):
    """Changes one thing, anywhere."""
    if isinstance(given, dict):
        key = random.choice([*given, "children", "edges", "word", "x", 5])
        return {**given, key: spoil_nested(random, given.get(key), act) if random.random() < 0.7 else wrong_value(random, act)}
    if isinstance(given, (list, tuple)) and given and random.random() < 0.8:
        items = list(given)
        at = random.randrange(len(items))
        items[at] = spoil_nested(random, items[at], act)
        if random.random() < 0.2:
            items.insert(at, items[at])
        if random.random() < 0.1:
            items.append(items)
        if random.random() < 0.1:
            hostile = HostileTree(items)
            hostile.act = random.choice((act, hostile.clear))
            return hostile
        return type(given)(items) if type(given) in (list, tuple) else items
    if isinstance(given, str) and given:
        at = random.randrange(len(given))
        return given[:at] + random.choice(("", "(", ")", "\0", "\udc80", "ä", "1")) + given[at + random.randrange(2) :]
    if isinstance(given, Structures):
        return spoil_flat(random, given, act)
    return wrong_value(random, act)


def spoil_flat(random, s, act):
    """Changes an array, or one number of it."""
    arrays = {"child_begin": s.child_begin, "children": s.children, "node_begin": s.node_begin, "root": s.root, **s.data}
    name = random.choice(list(arrays))
    array = np.array(arrays[name]) if not isinstance(arrays[name], Stored) else arrays[name].__array__()
    way = random.randrange(6)
    if way == 0:
        array = array[: random.randrange(len(array) + 1)]
    elif way == 1 and array.size:
        array = array.copy()
        array.flat[random.randrange(array.size)] = random.choice((-1, -(2**31), 2**31 - 1, 3, 100))
    elif way == 2:
        array = array.astype(random.choice(("f8", "f2", "c8", "u8", "S3", "O", "bool", ">f4", ">i4")), copy=False)
    elif way == 3:
        array = np.concatenate([array, array])
    elif way == 4:
        array = wrong_value(random, act)
    else:
        array = array[::-1]
    arrays[name] = array
    if random.random() < 0.1:
        arrays[random.choice(list(arrays))] = None
    four = [arrays.pop(name) for name in ("child_begin", "children", "node_begin", "root")]
    return Structures(*four, **arrays)
