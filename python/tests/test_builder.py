# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Models by calls are the models of texts."""
import numpy as np
import pytest
from conftest import TREE, WEIGHTS, load

import espalier


def test_same_as_text(tree):
    b = espalier.Builder("tiny", "tree(left, right)")
    word, E, W = b.token("word"), b.param("E", "V, D"), b.param("W", "D, D")
    b.state("h", "D")
    b.body("leaf")
    b.assign("h", E[word])
    b.body("inner")
    b.assign("h", W @ b.child(0).h + b.child(1)["h"])
    b.body("output")
    h = b.get("h")
    b.output("twice", h + h, at="all")
    b.output("total", b.sum(h))
    b.output("side", h, labels=["first", "second"])
    model = load(b, WEIGHTS)
    batch = [((0, 1), 2), (3, (1, 1))]
    for name in ("twice", "total", "side"):
        assert (model(batch)[name] == tree(batch)[name]).all()
    assert model(batch).label() == tree(batch).label()
    assert str(b.finish()) == str(espalier.ModelText.parse(espalier.Context(), "tiny", TREE))
    assert "tiny" in repr(b.finish()) and "tiny" in repr(b)


def test_operators():
    b = espalier.Builder("m", "dag(*)")
    x, W = b.input("x", "F"), b.param("W", "F, F")
    b.state("h", "F")
    b.body("leaf")
    b.assign("h", (-x + 2 * x - 1 + 1.5) / 0.5)
    b.body("inner")
    swapped = b.indexed("(W, x)[i] = sum(W[j, i] * x[j] for j)", W, x)
    b.assign("h", (x + 0.5) / 0.5 + swapped * b.children(lambda k: k.h) + b.children(lambda k: k.h, "max"))
    b.body("output")
    b.output("y", b.get("h")[0:1] + b.members(lambda n: n.h)[0:1] + b.zeros("1") + b.dimension("F") * 0)
    w = np.eye(2, dtype=np.float32)
    model = load(b, {"W": w})
    x = np.array([1, 2], np.float32)
    leaf = (x + 0.5) / 0.5
    top = leaf + x * leaf + leaf
    got = model([{"x": x, "children": [{"x": x}]}])["y"]
    assert got.tolist() == [[2 * top[0] + leaf[0]]]


def test_mistakes():
    b = espalier.Builder("m", "tree(*)")
    E = b.param("E", "V, D")
    b.state("h", "D")
    b.body("node")
    b.assign("h", E @ E)
    with pytest.raises(espalier.InputError, match="test_builder.py") as caught:
        b.finish()
    assert any(each.line > 0 and each.file == __file__ for each in caught.value.diagnostics)
    other = espalier.Builder("n", "tree(*)")
    with pytest.raises(ValueError, match="belongs"):
        other.param("W", "D") + E
    with pytest.raises(TypeError):
        E + "text"
    with pytest.raises(TypeError):
        list(E)
    with pytest.raises(ValueError, match="no step"):
        E[::2]
