# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Shared by the drivers of peers: the folder that `espalier bench --keep FOLDER` wrote, requests, names of libraries.

As a program it writes weights and structures as plain numbers, for drivers in C and C++ (write_raw, write_trees):

  common.py FOLDER FILE
"""
import gc
import json
import os
import re
import sys
import time

import numpy as np

DTYPES = {"F32": "<f4", "F16": "<f2"}


# --- the folder ---

def read_safetensors(path):
    """Name -> float32 array; each is read by itself, so that no tensor is in memory twice."""
    tensors = {}
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.tell()
        for name, info in header.items():
            if name != "__metadata__":
                begin, end = info["data_offsets"]
                dtype = np.dtype(DTYPES[info["dtype"]])
                file.seek(data + begin)
                values = np.fromfile(file, dtype, (end - begin) // dtype.itemsize)
                tensors[name] = values.astype(np.float32, copy=False).reshape(info["shape"])
    return tensors


def read_weights(folder):
    return read_safetensors(os.path.join(folder, "weights.safetensors"))


class Structure:
    """Nodes, children before their parents; each has a word, which is any number, and children."""

    def __init__(self, line):
        numbers = [int(word) for word in line.split()]
        self.words, self.children = [], []
        at = 0
        while at < len(numbers):
            count = numbers[at + 1]
            self.words.append(numbers[at])
            self.children.append(numbers[at + 2:at + 2 + count])
            at += 2 + count


def read_structures(folder):
    with open(os.path.join(folder, "structures.txt")) as file:
        return [Structure(line) for line in file]


def vectors_of(structure, elements):
    """[nodes, elements]: the vectors of nodes, drawn from generators seeded with their words."""
    state = np.array(structure.words, np.uint64)
    columns = []
    for _ in range(elements):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        columns.append((state >> np.uint64(40)).astype(np.float32) * np.float32(2 / (1 << 24)) - 1)
    return np.ascontiguousarray(np.stack(columns, axis=1))


# --- memory ---

def peak_memory():
    """The largest resident set of this process so far [KiB]."""
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s*(\d+) kB", file.read())[1])


START = peak_memory()  # drivers import their libraries first


# --- requests ---

def serve(count, run, root, prepare=lambda first, count: (first, count)):
    """Answers requests until the end of input: "run FIRST COUNT REPEATS", which runs once more than REPEATS, with
    so many times in microseconds, "root FIRST
    COUNT" or "outputs FIRST COUNT", whichever of the two a driver computes, with the numbers of an array, "memory" with the
    peaks of resident memory [KiB], after the libraries were loaded and now. `run` and `root` get the result of `prepare` for
    FIRST and COUNT, which is not timed. After the last structure the first follows."""
    gc.collect()
    gc.disable()
    for line in sys.stdin:
        command, *numbers = line.split() or [""]
        numbers = [int(number) for number in numbers if number.isdigit()]
        if command == "memory":
            print(START, peak_memory(), flush=True)
            continue
        if (command, len(numbers)) not in (("run", 3), ("root", 2), ("outputs", 2)) or numbers[1] < 1:
            print(f"error: 'run FIRST COUNT REPEATS', 'root FIRST COUNT', 'outputs FIRST COUNT' or 'memory' is wanted, not {line!r}",
                  flush=True)
            continue
        given = prepare(*numbers[:2])
        if command != "run":
            print(*(f"{number:.9g}" for number in np.asarray(root(given)).reshape(-1)), flush=True)
            continue
        times = []
        run(given)
        for _ in range(numbers[2]):
            start = time.perf_counter_ns()
            run(given)
            times.append((time.perf_counter_ns() - start) / 1000)
        print(*(f"{microseconds:.1f}" for microseconds in times), flush=True)
        if times:  # a server under load has no time for it
            gc.collect()


def chosen(structures, first, count):
    return [structures[i % len(structures)] for i in range(first, first + count)]


def loaded(*parts):
    """Paths of this process's libraries whose names contain one of the parts."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/" in line}
    found = {os.path.realpath(path) for path in paths if any(part in os.path.basename(path) for part in parts)}
    return " ".join(sorted(found)) or "none"


def blas_of(torch):
    """The BLAS that PyTorch was built with, or, if any BLAS will do, the one that is loaded."""
    built_with = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return loaded("blas") if not built_with or built_with[1] == "generic" else built_with[1]


# --- sequence models ---

class Sequences:
    """Weights under the names of torch.nn.LSTM and torch.nn.GRU, and equally long sequences of vectors."""

    def __init__(self, folder):
        weights = read_weights(folder)
        self.w_ih, self.w_hh = weights["weight_ih_l0"], weights["weight_hh_l0"]
        self.b_ih, self.b_hh = weights["bias_ih_l0"], weights["bias_hh_l0"]
        self.hidden, self.inputs = self.w_hh.shape[1], self.w_ih.shape[1]
        self.gates = self.w_hh.shape[0] // self.hidden  # 4 of an LSTM: i f g o; 3 of a GRU: r z n
        self.x = [vectors_of(s, self.inputs) for s in read_structures(folder)]

    def minibatch(self, first, count):
        """[steps, sequences, inputs]"""
        return np.ascontiguousarray(np.stack(chosen(self.x, first, count), axis=1))


def write_raw(folder, path):
    """Five int32: gates, hidden, inputs, steps, sequences; then f32: w_ih, w_hh, b_ih, b_hh as torch has them, then the
    sequences, [sequences, steps, inputs]."""
    s = Sequences(folder)
    with open(path, "wb") as file:
        file.write(np.array([s.gates, s.hidden, s.inputs, len(s.x[0]), len(s.x)], "<i4").tobytes())
        for array in (s.w_ih, s.w_hh, s.b_ih, s.b_hh, *s.x):
            file.write(array.astype("<f4").tobytes())


def write_trees(folder, path):
    """Integers are uint32. The number of tensors; for each the length of its name, the name, rows, columns (1 for a vector) and
    f32 values, row by row. The number of trees; for each the number of nodes, and for each node its word, the number of its
    children, and their numbers."""
    with open(path, "wb") as file:
        def numbers(*values):
            file.write(np.array(values, "<u4").tobytes())

        tensors, structures = read_weights(folder), read_structures(folder)
        numbers(len(tensors))
        for name, array in tensors.items():
            numbers(len(name))
            file.write(name.encode())
            numbers(*(array.shape if array.ndim == 2 else (array.size, 1)))
            file.write(array.astype("<f4").tobytes())
        numbers(len(structures))
        for s in structures:
            numbers(len(s.words))
            for word, children in zip(s.words, s.children):
                numbers(word, len(children), *children)


if __name__ == "__main__":
    sequences = "weight_hh_l0" in read_weights(sys.argv[1])
    (write_raw if sequences else write_trees)(*sys.argv[1:3])
