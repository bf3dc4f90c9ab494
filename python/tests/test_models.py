# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Loading, running, results and how long they live; saving; threads and processes."""
import gc
import mmap
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import EXAMPLES, TREE, WEIGHTS, WORDS, load
from random_structures import SEQUENCE
from test_random_calls import read_buffer

import espalier


def test_example():
    folder = EXAMPLES / "treelstm"
    model = espalier.load(
        folder / "treelstm.ra", folder / "sst-treelstm-small.safetensors", vocab=folder / "sst-vocab.txt"
    )
    out = model((folder / "sentences.ptb").read_text())
    assert len(out) == 12
    assert np.allclose(out["sentiment"].sum(axis=1), 1, atol=1e-5)
    assert out.label()[0] == "positive"
    assert "treelstm" not in repr(model) and "sentiment[5]" in repr(model)


def test_results(tree):
    out = tree([((0, 1), 2), 3])
    assert out.keys() == ["twice", "total", "side"] and len(out) == 2
    assert out["total"].tolist() == [10 + 11, 15]
    assert out["total"].dtype == np.float32
    assert out.label("side") == ["second", "second"] and out[1].label() == "second"
    assert out.begin == [0, 5, 6]
    assert out["twice"].tolist() == [[2, 4], [6, 8], [10, 10], [10, 12], [20, 22], [14, 16]]
    assert out[0].children[out[0].root_node] == [2, 3]
    assert out[0].nodes == 5
    assert (out[0].root("twice") == out[0]["twice"][out[0].root_node]).all()
    assert (out.state("h") * 2 == out["twice"]).all()
    assert out[-1]["total"].shape == () and out[-1]["total"] == 15
    assert [each["total"].item() for each in out] == [21, 15]
    with pytest.raises(IndexError):
        out[2]
    with pytest.raises(KeyError, match="twice, total, side"):
        out["nothing"]


def test_views_never_change(tree):
    out = tree([((0, 1), 2)])
    view, before = out["side"], out["side"].copy()
    assert out.rows("side").is_view and not view.flags.writeable
    del out
    gc.collect()
    kept = [tree([(i % 4, i % 3)])["side"] for i in range(40)]
    assert (view == before).all()
    assert [each.tolist() for each in kept] == [tree([(i % 4, i % 3)])["side"].tolist() for i in range(40)]


def test_memory_comes_back(tree):
    for _ in range(50):
        tree([((0, 1), 2)] * 20)["side"]
    held = tree._program.context.memory
    for _ in range(50):
        tree([((0, 1), 2)] * 20)["side"]
    assert tree._program.context.memory == held


def test_buffers(tree):
    rows = tree([((0, 1), 2), 3]).rows("side")
    view = memoryview(rows)
    assert view.shape == (2, 2) and view.readonly and view.format == "f" and rows.shape == (2, 2) and rows.dtype == "f32"
    assert rows.__dlpack_device__() == (1, 0)
    capsule = rows.__dlpack__()
    assert "dltensor" in repr(capsule)
    del capsule, rows
    gc.collect()
    assert view[1, 0] == 7
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(view, np.float32)[0] = 1


def test_buffers_of_any_order(tree):
    c_order, fortran, any_order, strides, simple = 0x38, 0x58, 0x98, 0x18, 0
    out = tree([((0, 1), 2), 3, (0, 0)])
    rows, one = out.rows("side"), out[0].rows("side")
    assert read_buffer(rows, strides).tolist() == np.array(rows).tolist()
    for flags in (c_order, fortran, any_order, simple):
        assert read_buffer(one, flags).tolist() == np.array(one).tolist()  # one axis is in either order
        with pytest.raises(BufferError, match="contiguous|Fortran"):
            read_buffer(rows, flags)
    whole = tree([((0, 1), 2)]).rows("side")
    assert whole.shape == (1, 2) and read_buffer(whole, fortran).tolist() == [[10, 11]]
    twice = load(SEQUENCE, {"W": np.ones((16, 2), np.float32)})([np.ones((3, 2), np.float32)]).rows("each")
    assert read_buffer(twice, c_order).tolist() == np.array(twice).tolist()
    with pytest.raises(BufferError, match="Fortran"):
        read_buffer(twice, fortran)


def test_dlpack(tree):
    out = tree([((0, 1), 2), 3])
    array = np.from_dlpack(out.rows("side"))
    del out
    gc.collect()
    for _ in range(5):
        tree([(0, 0)] * 2)
    assert array.tolist() == [[10, 11], [7, 8]]
    rows = tree([0])[0].rows("total")
    assert np.from_dlpack(rows).shape == () and rows.__dlpack__(dl_device=(1, 0), copy=False)
    for wrong in ({"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            rows.__dlpack__(**wrong)


def test_empty(tree):
    out = tree([])
    assert len(out) == 0 and out["total"].shape == (0,) and out["twice"].shape == (0, 2)


def test_generators(tree):
    assert tree((0, i) for i in range(3))["total"].tolist() == [6, 10, 14]

    def failing():
        yield (0, 1)
        raise ZeroDivisionError("in the middle")

    with pytest.raises(ZeroDivisionError, match="in the middle"):
        tree(failing())
    assert tree([(0, 1)])["total"].tolist() == [10]


def test_calls_within_calls(tree):
    def nested():
        yield (0, int(tree([(0, 1)])["total"][0]) - 9)

    assert tree(nested())["total"].tolist() == [10]


def test_options():
    model = load(TREE, WEIGHTS, vocab=WORDS, at="all")
    assert not any(each.at_root for each in model.outputs)
    assert model.structure == "tree" and model.sizes == {"V": 4, "D": 2}
    assert "matmul" in model.explain() or model.explain()
    assert "state" in model.dump("ra") or model.dump("ra")
    assert model.prepare() is model and model.times()
    with pytest.raises(TypeError):
        load(TREE, WEIGHTS, no_such_option=1)
    with pytest.raises(espalier.ArgumentError):
        espalier.load(TREE, WEIGHTS, math="wild")
    with pytest.raises(espalier.ArgumentError):
        espalier.load(TREE, WEIGHTS, precision="i4")
    with pytest.raises(espalier.ArgumentError):
        espalier.load(TREE, WEIGHTS, assume="infinite")
    with pytest.raises(espalier.ArgumentError):
        espalier.load(TREE, WEIGHTS, accelerator="gpu")
    assert espalier.load(TREE, WEIGHTS, accelerator="vta").prepare()
    assert "finite numbers" in espalier.load(TREE, WEIGHTS, assume="finite").explain().splitlines()[0]
    for wrong in ({"at": "leaf"}, {"binarize": "up"}, {"graph": ["basic"]}):
        with pytest.raises(ValueError, match="is none of"):
            load(TREE, WEIGHTS, **wrong)
    with pytest.raises(ValueError, match="no token input 'colour'"):
        load(TREE, WEIGHTS, vocab={"colour": WORDS})


def test_swap():
    model = load(TREE, WEIGHTS)
    out = model([(0, 1)])
    view = out["side"]
    model.swap({**WEIGHTS, "E": WEIGHTS["E"] * 2})
    assert model.generation == 2 and out.generation == 1
    assert model([(0, 1)])["total"][0] == 20 and view.tolist() == [[5, 5]]


def test_lazy():
    weights = {name: array.copy() for name, array in WEIGHTS.items()}
    model = load(TREE, weights, lazy=True)
    weights.clear()
    gc.collect()
    assert model([(0, 1)])["total"][0] == 10


def test_lazy_swap():
    """A result of weights that were exchanged may read them still."""
    model = load(TREE, {name: array.copy() for name, array in WEIGHTS.items()}, lazy=True)
    for scale in (2, 3):
        model.swap({**WEIGHTS, "E": WEIGHTS["E"] * scale})
        gc.collect()
        assert model([(0, 1)])["total"][0] == 10 * scale and model([(3, 2)])["total"][0] == 26 * scale


def test_context():
    context = espalier.Context(threads=1, cache=False)
    assert context.threads == 1 and "1 threads" in repr(context)
    model = load(TREE, WEIGHTS, context=context)
    assert context.memory > 0
    context.close()
    with pytest.raises(espalier.ClosedError):
        model([(0, 1)])


def test_saved(tmp_path):
    model = espalier.load(TREE, WEIGHTS, vocab=WORDS)
    expected = model([("red", "green")])["total"].tolist()
    for again in (pickle.loads(pickle.dumps(model)), espalier.load(bytes(model), vocab=WORDS)):
        assert again([("red", "green")])["total"].tolist() == expected
        assert again.structure == "tree"
    model.save(tmp_path / "m.espalier", pack=False)
    assert espalier.load(tmp_path / "m.espalier", WEIGHTS)([(0, 1)])["total"].tolist() == expected
    assert bytes(espalier.load(bytes(model)))
    with pytest.raises(espalier.InputError):
        espalier.load(b"no program", WEIGHTS)


def test_bytes_are_used_where_they_are(tmp_path):
    expected = load(TREE, WEIGHTS)
    espalier.load(TREE, WEIGHTS).save(tmp_path / "m.espalier")
    for access, is_copied in ((mmap.ACCESS_READ, False), (mmap.ACCESS_COPY, True)):
        with open(tmp_path / "m.espalier", "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=access)
        model = espalier.load(mapped)
        if not is_copied:
            with pytest.raises(BufferError):
                mapped.close()
            out = model([(0, 1)])
            del model
            with pytest.raises(BufferError):
                mapped.close()
            assert out["total"].tolist() == expected([(0, 1)])["total"].tolist()
            del out
        mapped.close()
        if is_copied:
            assert model([(0, 1)])["total"].tolist() == expected([(0, 1)])["total"].tolist()


def test_pickled_out_of_band(tmp_path):
    (tmp_path / "words").write_text("".join(f"{word}\n" for word in WORDS))
    model = espalier.load(TREE, WEIGHTS, vocab=tmp_path / "words")
    assert pickle.loads(pickle.dumps(espalier.load(TREE, WEIGHTS, vocab=iter(WORDS))))([("red", "green")])["total"].tolist() == [10]
    buffers = []
    rest = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    assert [bytes(buffer) for buffer in buffers] == [bytes(model)] and len(rest) < 1000
    (tmp_path / "words").unlink()
    again = pickle.loads(rest, buffers=buffers)
    assert again([("red", "green")])["total"].tolist() == model([("red", "green")])["total"].tolist()


def test_threads(tree):
    expected = [tree([((i % 4, 1), 2)])["total"].tolist() for i in range(8)]
    wrong = []

    def work(i):
        for _ in range(50):
            if tree([((i % 4, 1), 2)])["total"].tolist() != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_fork(tree):
    tree([(0, 1)])
    child = os.fork()
    if not child:
        status = 1
        try:
            tree([(0, 1)])
        except espalier.ForkedError:
            fresh = load(TREE, WEIGHTS)
            status = 0 if fresh([(0, 1)])["total"][0] == 10 else 2
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_import_takes_nothing():
    """Of other packages none, of Python's own none that take long."""
    code = "import sys; before = set(sys.modules); import espalier; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "espalier" in loaded and loaded - {"espalier"} <= sys.stdlib_module_names
    assert not loaded & {"asyncio", "ctypes", "email", "http", "importlib.metadata", "json", "multiprocessing", "socket", "ssl", "subprocess", "unittest", "xml"}


def test_command():
    code = "import sys, espalier._command; sys.argv = ['espalier', '--version']; espalier._command.main()"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert espalier.__version__ in shown
