# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What structures can be, and that each gives what the others give."""
import array
import sys

import numpy as np
import pytest
from conftest import WEIGHTS, WORDS, load

import espalier
from espalier import Structures

CHILDSUM = """model sums
structure {structure}
input word : token
edge rel : token
param E[V, D]
param R[L, D]
state h[D]
node:
    h = E[word] + sum(R[k.rel] * k.h for k in children)
output h0 = h at root
"""
EDGES = {"E": WEIGHTS["E"], "R": np.array([[1, 1], [2, 3]], np.float32)}
VECTORS = """model vectors
structure {structure}
input x[F]
param W[D, F]
state h[D]
node:
    h = W @ x{rest}
output y = h at root
"""
W = {"W": np.array([[1, 10], [100, 1000]], np.float32)}


def total(model, *structures):
    return model(list(structures))["total"].tolist()


def test_nested(tree):
    assert total(tree, ((0, 1), 2), [[0, 1], 2], (("red", "green"), "blue"), ((np.int64(0), np.uint8(1)), 2)) == [21] * 4
    assert total(tree, {"children": [(0, {"word": "green"}), {"word": 2}]}) == [21]


def test_texts(tree):
    assert total(tree, "(3 (2 (1 red) (1 green)) (1 blue))", "(1 red)\n(1 green)") == [21, 3, 7]
    assert tree("(0 (0 (0 red) (0 green)) (0 blue))")["total"].tolist() == [21]


def test_order_of_mixed_kinds(tree):
    flat = Structures([0, 0, 0, 2], [0, 1], word=[0, 1, -1])
    assert total(tree, 3, "(1 red)", (0, 1), flat, "(1 green)", 2) == [15, 3, 10, 10, 7, 11]


def test_nltk(tree):
    nltk = pytest.importorskip("nltk")
    assert total(tree, nltk.Tree.fromstring("(S (NP (D red) (N green)) (N blue))")) == [21]


def test_labels_of_trees():
    model = load(
        "model m\nstructure tree(left, right)\ninput word : token\ninput label : token\nparam E[V, D]\nparam L[K, D]\nstate h[D]\n"
        "leaf:\n    h = E[word] + L[label]\ninner:\n    h = left.h + right.h + L[label]\noutput total = sum(h) at root\n",
        {"E": WEIGHTS["E"], "L": np.array([[0, 0], [100, 0], [1000, 0]], np.float32)},
        vocab={"word": WORDS, "label": ["0", "1", "2"]},
    )

    class Tree(list):
        def label(self):
            return self.name

    tree = Tree([Tree(["red"]), Tree(["green"])])
    tree.name, tree[0].name, tree[1].name = "2", "1", 1
    assert total(model, tree, "(2 (1 red) (1 green))") == [1210, 1210]
    with pytest.raises(espalier.InputError, match="carries no 'label'"):
        model([(0, 1)])


def test_sequences():
    model = load(VECTORS.format(structure="sequence", rest="").replace("node:\n    h = W @ x", "leaf:\n    h = W @ x\ninner:\n    h = W @ x + previous.h"), W)
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    expected = (W["W"] @ x.T).sum(axis=1).tolist()
    strided = np.zeros((3, 4), np.float32)[:, ::2]
    strided[:] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for each in (x, tuple(x), strided, frozen, tuple({"x": row.tolist()} for row in x), tuple(array.array("f", row) for row in x)):
        assert model([each])["y"].tolist() == [expected]
    flat = Structures([0, 0, 1, 2], [0, 1], x=x)
    assert model(flat)["y"].tolist() == [expected]
    with pytest.raises(espalier.InputError, match="no node"):
        model([()])


def test_graphs():
    model = load(CHILDSUM.format(structure="dag(*)"), EDGES, vocab={"word": WORDS})
    shared = {"word": "green"}
    top = {"word": "red", "children": [shared, {"word": 2, "children": [shared], "edges": [{"rel": 1}]}],
           "edges": [{"rel": 0}, {"rel": 1}]}  # fmt: skip
    out = model([top])
    assert out[0].nodes == 3 and out["h0"].tolist() == [[1 + 3 + 2 * (5 + 6), 2 + 4 + 3 * (6 + 12)]]
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    for name, word in (("a", 0), ("b", 1), ("c", 2)):
        graph.add_node(name, word=word)
    graph.add_edge("a", "b", rel=0)
    graph.add_edge("a", "c", rel=1)
    graph.add_edge("c", "b", rel=1)
    assert (model(graph)["h0"] == out["h0"]).all()
    graph.add_edge("b", "a", rel=1)
    with pytest.raises(ValueError, match="one root"):
        model(graph)


class TokenList(list):
    """As that of conllu."""

    def serialize(self):
        return "\n".join("\t".join(map(str, token.values())) for token in self) + "\n\n"


class Sentences(list):
    """As conllu.parse returns."""


def labelled():
    return load(CHILDSUM.format(structure="tree(*)"), EDGES,
                 vocab={"word": WORDS, "rel": ["root", "obj"]}, columns={"rel": "deprel"})  # fmt: skip


def two_words():
    rows = [(1, "red", "_", "_", "_", "_", 0, "root", "_", "_"), (2, "green", "_", "_", "_", "_", 1, "obj", "_", "_")]
    return TokenList(dict(zip(("id", "form", "l", "u", "x", "f", "head", "deprel", "deps", "misc"), row)) for row in rows)


def test_sentences():
    assert labelled()([two_words()])["h0"].tolist() == [[1 + 2 * 3, 2 + 3 * 4]]
    assert labelled()(Sentences([two_words()] * 2))["h0"].tolist() == [[7, 14]] * 2
    assert labelled()(two_words().serialize())["h0"].tolist() == [[7, 14]]


def test_conllu():
    conllu = pytest.importorskip("conllu")
    sentences = conllu.parse(2 * two_words().serialize())
    assert labelled()(sentences)["h0"].tolist() == labelled()(list(sentences))["h0"].tolist() == [[7, 14]] * 2


def test_arrays(tree):
    word = [0, 1, -1, 3, 2, 2, -1]
    child_begin, children = [0, 0, 0, 2, 2, 2, 2, 4], [0, 1, 0, 1]
    for kind in (list, np.array, lambda x: np.array(x, np.int32), lambda x: array.array("i", x), lambda x: np.repeat(x, 2)[::2]):
        many = Structures(kind(child_begin), kind(children), kind([0, 3, 4, 7]), None, word=kind(word))
        assert tree(many)["total"].tolist() == [10, 15, 22]
    assert tree(Structures(child_begin, children, [3, 4], word=word))["total"].tolist() == [15]
    assert tree(Structures(child_begin, children, [0, 3], [1], word=word))["total"].tolist() == [7]
    assert many.data.keys() == {"word"} and many.root is None


def test_deep_and_temporary(tree):
    deep = 0
    for _ in range(20000):
        deep = (deep, 0)
    assert tree([deep])[0].nodes == 40001

    class Fleeting(list):
        """Its children exist only while they are read."""

        def __getitem__(self, i):
            return (int(str(i)), int("1"))

    assert total(tree, Fleeting([0, 0])) == total(tree, ((0, 1), (1, 1)))


def test_random_objects(tree):
    """Whatever is passed is a result or an exception."""
    random = np.random.default_rng(7)

    def made(depth):
        leaves = [0, 3, "red", None, 1.5, b"x", np.float32(2), np.zeros(2), object(), {}, {"word": 1}, {"children": 3}, -5, 2**70, "",
                  True, float("nan"), range(2), set(), {"word": [1]}, {"children": [], "edges": 3}]  # fmt: skip
        if depth == 0 or random.integers(3) == 0:
            return leaves[random.integers(len(leaves))]
        parts = [made(depth - 1) for _ in range(random.integers(4))]
        return [tuple, list, lambda x: {"children": x}][random.integers(3)](parts)

    ran = 0
    for _ in range(400):
        try:
            ran += len(tree([made(4)])) > 0
        except (espalier.Error, TypeError, ValueError, OverflowError):
            pass
    assert ran and sys.getrefcount(tree) < 50
