# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong is said: what, where, and what to do."""
import numpy as np
import pytest
from conftest import TREE, WEIGHTS, load
from test_structures import VECTORS, W

import espalier
from espalier import Structures


def refused(call, id, text, kind=espalier.InputError):
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert id in [each.id for each in error.diagnostics]
    assert text in str(error) and str(error).count("error: ") == len(error.diagnostics)
    assert isinstance(error, espalier.Error)
    return error.diagnostics[0]


def test_models(tmp_path):
    first = refused(lambda: load(TREE.replace("left.h", "left.g"), WEIGHTS), "unknown-name", "hint: did you mean")
    assert first.line == 10 and first.column > 0 and first.source and first.hint
    path = tmp_path / "bad.ra"
    path.write_text("model\n")
    assert refused(lambda: load(path, WEIGHTS), "syntax", "bad.ra").file == str(path)
    refused(lambda: load(tmp_path / "none.ra", WEIGHTS), "cannot-read", "none.ra")
    assert issubclass(espalier.InputError, ValueError) and issubclass(espalier.OutOfMemoryError, MemoryError)
    message, explanation, fix = espalier.explain_error("unknown-name")
    assert message and explanation and fix
    with pytest.raises(KeyError):
        espalier.explain_error("no-such-id")


def test_texts_that_are_no_utf_8(tmp_path):
    path = str(tmp_path / "caf\udce9.ra")
    assert refused(lambda: load(path, WEIGHTS), "cannot-read", "caf").file == path
    long = "\u00e4" * 300  # whose UTF-8 is cut in the middle of a letter
    refused(lambda: load(TREE, WEIGHTS, vocab=["red"])([(long, "red")]), "unknown-word", "\u00e4\u00e4")


def test_words():
    for wrong in ("red\nblue", "red\r", 5, None):
        with pytest.raises(ValueError, match="word 1 is"):
            load(TREE, WEIGHTS, vocab=["green", wrong])
    with pytest.raises(ValueError, match="word 0 is"):
        load(TREE, WEIGHTS, vocab=b"abc")


def test_weights(tmp_path):
    refused(lambda: load(TREE, {**WEIGHTS, "W": np.ones((3, 2), np.float32)}), "extent-conflict", "W")
    refused(lambda: load(TREE, {"E": WEIGHTS["E"]}), "missing-weight", "W")
    refused(lambda: load(TREE, b"nothing"), "bad-weights", "")
    with pytest.raises(TypeError, match="weights"):
        load(TREE, None)
    with pytest.raises(espalier.InputError, match="complex"):
        load(TREE, {**WEIGHTS, "W": np.ones((2, 2), np.complex64)})


def test_bounds():
    text = "model b\nstructure none\ninput x[D] within 0.5\nparam W[D, D]\noutput y = W @ x\n"
    rows = load(text, {"W": np.eye(2, dtype=np.float32)})
    assert rows.inputs[0].within == 0.5
    assert rows(x=np.float32([[0.5, -0.5]]))["y"].tolist() == [[0.5, -0.5]]
    wrong = np.float32([[0, 0], [0, 0.75]])
    at = refused(lambda: rows(x=wrong), "input-beyond-bound", "'x[1]' of node 0 of input 1 is 0.75")
    assert (at.structure, at.node) == (1, 0)


def test_nodes(tree):
    assert refused(lambda: tree([(0, 1), (0, 9)]), "token-out-of-range", "hint").structure == 1
    at = refused(lambda: tree([(0, 1), ((0, 1), 2.5)]), "bad-argument", "is no token: 2.5")
    assert (at.structure, at.node) == (1, 3)
    refused(lambda: tree([(0, 2**40)]), "bad-argument", "too large")
    refused(lambda: tree([(0, None)]), "missing-data", "carries no 'word'")
    refused(lambda: tree([(0, {"children": [1, 2, 3]})]), "wrong-arity", "3 children")
    refused(lambda: tree("(1 red"), "unbalanced-tree", "text:1:1")
    refused(lambda: load(TREE, WEIGHTS)([("red", 0)]), "bad-argument", "vocab=")
    refused(lambda: load(TREE, WEIGHTS, vocab=["red"])([("red", "blue")]), "unknown-word", "<unk>")
    out = tree([(0, 1)])
    assert out["total"].tolist() == [10] and out[np.int64(0)]["total"] == 10
    for wrong in (1.0, slice(1), None):
        with pytest.raises(TypeError, match="integer"):
            out[wrong]


def test_cycles(tree):
    node = [0, 0]
    node[1] = node
    refused(lambda: tree([node]), "cycle", "below itself")
    record = {"children": [0]}
    record["children"].append(record)
    refused(lambda: tree([record]), "cycle", "below itself")


def test_arrays(tree):
    good = dict(child_begin=[0, 0, 0, 2], children=[0, 1], node_begin=None, root=None)

    def given(data=None, **changed):
        return lambda: tree(Structures(*{**good, **changed}.values(), **(data or {"word": [0, 1, -1]})))

    assert given()()["total"].tolist() == [10]
    refused(given(child_begin=[]), "bad-argument", "child_begin")
    refused(given(child_begin=[0, 0, 0, 3]), "bad-argument", "'children' has 2 elements")
    refused(given(child_begin=[0, 5, 0, 2]), "bad-child-begin", "")
    refused(given(child_begin=[-4, 0, 0, 2]), "bad-child-begin", "")
    refused(given(children=[0, 7]), "dangling-child", "")
    refused(given(node_begin=[0, 9]), "bad-argument", "child_begin")
    refused(given(node_begin=[]), "bad-argument", "node_begin")
    refused(given(node_begin=[3, 0]), "bad-argument", "ascend", espalier.ArgumentError)
    refused(given(node_begin=[-2, 3]), "bad-argument", "ascend", espalier.ArgumentError)
    refused(given(root=[1, 2]), "bad-argument", "root")
    refused(given(root=[9]), "bad-root", "")
    refused(given(data={"word": [0, 1]}), "shape-mismatch", "3 rows of 1")
    refused(given(data={"words": [0, 1, 2]}), "missing-data", "'word'")
    with pytest.raises(espalier.InputError, match="floats"):
        given(data={"word": np.zeros(3)})()
    with pytest.raises(espalier.InputError, match="cannot hold"):
        given(data={"word": np.array([0, 1, 2**40])})()
    with pytest.raises(espalier.InputError, match="no array|objects|dimension"):
        given(children=[[0], [1, 2]])()


class OnGpu:
    dtype = "float32"

    def __dlpack_device__(self):
        return (2, 0)


def test_vectors():
    model = load(VECTORS.format(structure="tree(*)", rest=" + sum(k.h for k in children)"), W)
    x = np.ones(2, np.float32)
    assert model([x])["y"].tolist() == [[11, 1100]]
    refused(lambda: model([np.ones(3, np.float32)]), "shape-mismatch", "has 3 elements; the model takes 2")
    refused(lambda: model([{"children": [x]}]), "missing-data", "carries no 'x'")
    for wrong, text in ((np.ones(2), "float64"), (OnGpu(), "another device"), (np.ones(2, np.int32), "integers"), ("red", "holds objects")):
        with pytest.raises(espalier.InputError, match=text):
            model([{"x": wrong, "children": []}])
    with pytest.raises(espalier.InputError, match="another device"):
        model(Structures([0, 0], [], x=OnGpu()))
    with pytest.raises(espalier.InputError, match="another device"):
        load(TREE, {**WEIGHTS, "W": OnGpu()})


def test_random_arrays(tree):
    """Whatever arrays are passed is a result or an exception."""
    random = np.random.default_rng(3)

    def made():
        numbers = random.integers(-2, 6, random.integers(0, 9))
        kind = random.choice(["int8", "int32", "int64", "uint16", "float32", "bool", "S3", "object"], p=[0.1, 0.4, 0.2, 0.1, 0.05, 0.05, 0.05, 0.05])
        array = numbers.astype(kind)
        return [array, np.sort(array), array[::2], array[::-1], array.reshape(-1, 1), array.tolist(), memoryview(array[:3].tobytes())][random.integers(7)]

    ran = 0
    for _ in range(1500):
        begin = np.cumsum(random.integers(0, 2, random.integers(1, 6)) * 2) if random.integers(2) else made()
        arrays = [begin, made(), made() if random.integers(3) == 0 else None, made() if random.integers(3) == 0 else None]
        try:
            ran += len(tree(Structures(*arrays, word=made()))) > 0
            tree(Structures([0, 0], np.zeros(0, np.int32), word=made()))
        except (espalier.Error, TypeError, ValueError):
            pass
    assert ran or tree(Structures([0], [], [0], word=[])) is not None
