# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What Python adds to a run: the same minibatch through the package, and by the functions of the library that C would call.

    python python/bench/overhead.py [--trees 100] [--words 20] [--seconds 2]

The model adds a number a node, so that a run is nearly all overhead.  All ways are measured in turns in one process.  The
functions of the library are called by ctypes; what three calls of it take that do nothing is subtracted.  Printed are the
least and the median of a minibatch, and what is more than C for each tree [us].
"""
import argparse
import ctypes as c
import statistics
import time
from pathlib import Path

import numpy as np

import espalier

TEXT = """model count
structure tree(left, right)
input word : token
param E[V]
state h
leaf:
    h = E[word]
inner:
    h = left.h + right.h
output total = h at root
"""


class Arrays(c.Structure):
    """struct esp_structures"""

    _fields_ = [("size", c.c_size_t), ("structures", c.c_size_t)] + [
        (name, c.c_void_p) for name in ("node_begin", "child_begin", "children", "root", "data")
    ]


def nested(random, words):
    """A random tree over words, as nested tuples."""
    if words == 1:
        return int(random.integers(100))
    left = int(random.integers(1, words))
    return nested(random, left), nested(random, words - left)


def flatten(trees):
    """The arrays of nested tuples, children before parents."""
    child_begin, children, node_begin, word = [0], [], [0], []

    def add(tree, first):
        below = [add(child, first) for child in tree] if isinstance(tree, tuple) else []
        children.extend(below)
        child_begin.append(len(children))
        word.append(-1 if below else tree)
        return len(word) - 1 - first

    for tree in trees:
        add(tree, node_begin[-1])
        node_begin.append(len(word))
    return [np.array(each, np.int32) for each in (child_begin, children, node_begin, word)]


def by_library(weights_path, model_path, child_begin, children, node_begin, word):
    """A function that clears, adds and runs as a program in C would."""
    library = c.CDLL(str(next((Path(espalier.__file__).parent / "_lib").glob("libespalier.so.?"))))
    made = {}

    def make(function, name, *arguments):
        made[name] = c.c_void_p()
        status = getattr(library, function)(*arguments, c.byref(made[name]), None)
        assert status == 0, function
        return made[name]

    context = make("esp_context_create", "context", None)
    model = make("esp_model_read", "model", context, str(model_path).encode())
    weights = make("esp_weights_open", "weights", context, str(weights_path).encode())
    program = make("esp_program_create", "program", model, weights, None)
    binding = make("esp_binding_create", "binding", program, weights)
    forest = make("esp_forest_create", "forest", program)
    session = make("esp_session_create", "session", binding)
    data = (c.c_void_p * 1)(word.ctypes.data)
    arrays = Arrays(c.sizeof(Arrays), len(node_begin) - 1, node_begin.ctypes.data, child_begin.ctypes.data, children.ctypes.data,
                    None, c.cast(data, c.c_void_p))  # fmt: skip
    clear, add, run = library.esp_forest_clear, library.esp_forest_add_many, library.esp_session_run
    at = c.byref(arrays)

    def call():
        clear(forest)
        add(forest, at, None)
        run(session, forest, None)

    def nothing():
        clear(None)
        clear(None)
        clear(None)

    return call, nothing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    trees = [nested(random, options.words) for _ in range(options.trees)]
    child_begin, children, node_begin, word = flatten(trees)
    weights = {"E": np.arange(100, dtype=np.float32)}
    model = espalier.load(TEXT, weights)
    flat = espalier.Structures(child_begin, children, node_begin, word=word)
    assert (model(flat)["total"] == model(trees)["total"]).all()
    import tempfile

    from espalier._arrays import pack_weights

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "count.ra").write_text(TEXT)
        (Path(folder) / "w.safetensors").write_bytes(pack_weights(weights))
        in_c, nothing = by_library(Path(folder) / "w.safetensors", Path(folder) / "count.ra", child_begin, children, node_begin, word)
    ways = {"empty calls": nothing, "C": in_c, "arrays": lambda: model(flat)["total"], "nested tuples": lambda: model(trees)["total"]}
    times = {name: [] for name in ways}
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append((time.perf_counter() - start) * 1e6)
    least, median = ({name: f(each) for name, each in times.items()} for f in (min, statistics.median))
    print(f"{options.trees} trees of {2 * options.words - 1} nodes, {len(times['C'])} minibatches each [us]")
    for f in (least, median):
        f["C"] -= f.pop("empty calls")
    for name in least:
        above = [(f[name] - f["C"]) / options.trees for f in (least, median)]
        print(f"{name:14} least {least[name]:8.1f} median {median[name]:8.1f}   above C for each tree {above[0]:6.3f} {above[1]:6.3f}")


if __name__ == "__main__":
    main()
