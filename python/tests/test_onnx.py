# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Files of ONNX, written here field by field: y = Relu(x @ W + b), and z = Reshape(y, shape)."""
import asyncio
import io
import pickle

import numpy as np
import pytest
from test_errors import refused

import espalier

W = np.array([[1, -2, 3], [0, 1, -1]], np.float32)
B = np.array([1, 0, -1], np.float32)
X = np.array([[1, 2], [3, 4], [-1, 0], [2, -3]], np.float32)
FLOAT, INT64 = 1, 7


def number(n):
    """A varint."""
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)


def field(tag, value):
    """A field of a message: an integer, or bytes."""
    return number(tag << 3) + number(value) if isinstance(value, int) else number(tag << 3 | 2) + number(len(value)) + value


def text(tag, value):
    return field(tag, value.encode())


def tensor(name, array):
    return b"".join(field(1, n) for n in array.shape) + field(2, FLOAT) + text(8, name) + field(9, array.tobytes())


def value(name, kind, *shape):
    """An input or an output; a size is a number or a name."""
    dims = b"".join(field(1, field(1, n) if isinstance(n, int) else text(2, n)) for n in shape)
    return text(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def node(operator, inputs, output):
    return b"".join(text(1, each) for each in inputs) + text(2, output) + text(4, operator)


def onnx(nodes, inputs, outputs, tensors):
    graph = b"".join(
        [field(1, each) for each in nodes] + [text(2, "tiny")] + [field(5, each) for each in tensors]
        + [field(11, each) for each in inputs] + [field(12, each) for each in outputs]
    )  # fmt: skip
    return field(1, 8) + field(7, graph) + field(8, text(1, "") + field(2, 17))


@pytest.fixture
def layer(tmp_path):
    path = tmp_path / "m.onnx"
    nodes = [node("MatMul", ["in/x", "W"], "p"), node("Add", ["p", "b"], "s"), node("Relu", ["s"], "y")]
    path.write_bytes(onnx(nodes, [value("in/x", FLOAT, "N", 2)], [value("y", FLOAT, "N", 3)], [tensor("W", W), tensor("b", B)]))
    return path


def load(path, **options):
    try:
        return espalier.load(path, backend="interpreter", **options)
    except espalier.Error as error:
        if any(each.id == "no-onnx" for each in error.diagnostics):
            pytest.skip("built without protobuf-c")
        raise


def test_a_call(layer):
    model = load(layer, sizes={"N": 4})
    assert repr(model) == "<espalier.Model without a structure: in/x[4, 2] -> y[4, 3]>"
    wanted = np.maximum(X @ W + B, 0)
    for out in (model({"in/x": X}), model(in_x=X), model({"in_x": X.tolist()})):
        assert out["y"].shape == (1, 4, 3) and np.array_equal(out["y"][0], wanted)
        assert np.array_equal(out[0].root("y"), wanted)
    several = model(in_x=np.stack([X, 2 * X]))
    assert len(several) == 2 and np.array_equal(several["y"][1], np.maximum(2 * X @ W + B, 0))
    assert [each.name for each in model.inputs] == ["in/x"]
    compiled = espalier.load(layer, sizes={"N": 4})
    assert np.array_equal(pickle.loads(pickle.dumps(compiled))(in_x=X)["y"][0], wanted)


def test_decisions(layer, tmp_path):
    out = load(layer, sizes={"N": 4}, outputs=["p", "y"])(in_x=X)
    assert out.keys() == ["p", "y"] and np.array_equal(out["p"][0], X @ W)
    other = load(layer, sizes={"N": 4}, weights={"W": 2 * W, "b": B})
    assert np.array_equal(other(in_x=X)["y"][0], np.maximum(2 * X @ W + B, 0))
    path = tmp_path / "reshape.onnx"
    inputs = [value("x", FLOAT, 4, 2), value("shape", INT64, 2)]
    path.write_bytes(onnx([node("Reshape", ["x", "shape"], "z")], inputs, [value("z", FLOAT, "A", "B")], []))
    for shape in (np.array([2, 4]), [2, -1]):
        model = load(path, constants={"shape": shape})
        assert [each.name for each in model.inputs] == ["x"] and np.array_equal(model(x=X)["z"][0], X.reshape(2, 4))
    refused(lambda: load(path), "onnx-constant", "shape")


def test_names_of_outputs(tmp_path):
    path = tmp_path / "named.onnx"
    path.write_bytes(onnx([node("Relu", ["x:0"], "out/y:0")], [value("x:0", FLOAT, 4, 2)], [value("out/y:0", FLOAT, 4, 2)], []))
    out = load(path)({"x:0": X})
    assert out.keys() == ["out/y:0"] and np.array_equal(out["out/y:0"][0], np.maximum(X, 0))
    other = tmp_path / "other.onnx"
    other.write_bytes(path.read_bytes().replace(b"out/y:0", b"out_y:0"))
    assert espalier.load(path)({"x:0": X}).keys() == ["out/y:0"] and espalier.load(other)({"x:0": X}).keys() == ["out_y:0"]


def test_requests(layer):
    model = load(layer, sizes={"N": 4}, continuous=True)
    assert np.array_equal(model.service().submit({"in/x": X}).result()["y"][0], np.maximum(X @ W + B, 0))


def layer_of(weights, bias):
    nodes = [node("MatMul", ["in/x", "layer:W"], "p"), node("Add", ["p", "b"], "s"), node("Relu", ["s"], "y")]
    inputs, outputs = [value("in/x", FLOAT, "N", 2)], [value("y", FLOAT, "N", 3)]
    return onnx(nodes, inputs, outputs, [tensor("layer:W", weights), tensor("b", bias)])


def test_other_weights(tmp_path):
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    first.write_bytes(layer_of(W, B))
    second.write_bytes(layer_of(2 * W, -B))
    wanted, other = np.maximum(X @ W + B, 0), np.maximum(X @ (2 * W) - B, 0)
    model = load(first, sizes={"N": 4})
    for weights in (second, {"layer:W": 2 * W, "b": -B}, {"layer_W": 2 * W, "b": -B[None]}):
        model.swap(weights)
        assert np.array_equal(model(in_x=X)["y"][0], other)
        model.swap(first)
        assert np.array_equal(model(in_x=X)["y"][0], wanted)
        assert np.array_equal(load(first, weights=weights, sizes={"N": 4})(in_x=X)["y"][0], other)
    refused(lambda: model.swap({"layer:W": W.T, "b": B}), "extent-conflict", "layer_W")
    compiled = espalier.load(first, sizes={"N": 4})
    carried = pickle.loads(pickle.dumps(compiled))
    carried.swap(second)
    assert np.array_equal(carried(in_x=X)["y"][0], other)
    compiled.save(tmp_path / "bare.espalier", pack=False)
    bare = espalier.load(tmp_path / "bare.espalier", weights=second, sizes={"N": 4})
    assert np.array_equal(bare(in_x=X)["y"][0], other)
    with pytest.raises(TypeError, match="needs weights"):
        espalier.load(tmp_path / "bare.espalier")
    with pytest.raises(TypeError, match="ONNX"):
        espalier.load(tmp_path / "bare.espalier", weights={"layer_W": W, "b": B}, sizes={"N": 4})


def test_graphs_in_memory(layer):
    class Proto:
        def SerializeToString(self):
            return layer.read_bytes()

    for graph in (layer.read_bytes(), memoryview(layer.read_bytes()), io.BytesIO(layer.read_bytes()), Proto()):
        out = load(graph, sizes={"N": 4}, outputs="p")(in_x=X)
        assert out.keys() == ["p"] and np.array_equal(out["p"][0], X @ W)
    refused(lambda: load(layer.read_bytes()[:60]), "bad-onnx", "graph")


def test_arrays_by_name_everywhere(layer):
    model = load(layer, sizes={"N": 4}, continuous=True)
    wanted = model(in_x=X)["y"]
    assert np.array_equal(model.service().submit(in_x=X).result()["y"], wanted)
    assert np.array_equal(asyncio.run(model.submit(in_x=X, deadline=60))["y"], wanted)
    assert "nodes" in repr(model.profile(in_x=X))
    for call in (model.profile, model.service().submit):
        with pytest.raises(TypeError, match="by their names"):
            call({"in_x": X}, in_x=X)
    with pytest.raises(espalier.InputError, match="by the names of the inputs"):
        model([()])


def test_refusals(layer, tmp_path):
    refused(lambda: load(layer), "onnx-shape", "sizes={'N': ...}")
    refused(lambda: load(layer, sizes={"N": 4, "M": 1}), "onnx-choice", "M")
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(layer.read_bytes()[:60])
    refused(lambda: load(cut), "bad-onnx", "cut.onnx")
    model = load(layer, sizes={"N": 4})
    refused(lambda: model(x=X), "bad-array", "'x' is of no input")
    refused(lambda: model({}), "bad-array", "'in/x' is missing")
    refused(lambda: model({"in/x": X, "in_x": X}), "bad-array", "comes twice")
    refused(lambda: model(in_x=X[:3]), "bad-array", "the shape (3, 2), its input (4, 2)")
    with pytest.raises(espalier.InputError, match="takes f32"):
        model(in_x=X.astype(np.float64))
    with pytest.raises(espalier.InputError, match="complex64"):
        load(layer, constants={"in/x": X.astype(np.complex64)})
    for wrong in ({"N": "4"}, {4: 4}):
        with pytest.raises(TypeError):
            load(layer, sizes=wrong)
    with pytest.raises(TypeError, match="by their names"):
        model(X, in_x=X)
    with pytest.raises(TypeError, match="ONNX"):
        load("model m\nstructure none\n", sizes={"N": 1})
