# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""PyTorch and the package in one process, whichever is imported first, with the OpenMP runtime of each, and of LLVM if it is
there: both compute in several threads at once, and get what they get alone."""
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, importlib, sys, threading
import numpy as np
for name in sys.argv[1:]:
    ctypes.CDLL(name).omp_get_max_threads() if ".so" in name else importlib.import_module(name)
import espalier, torch
from conftest import TREE, WEIGHTS

torch.set_num_threads(2)
model = espalier.load(TREE, WEIGHTS, context=espalier.Context(threads=2, cache=False))
batch = [((i % 4, 1), (2, (3, i % 3))) for i in range(200)]
x = torch.arange(300 * 300, dtype=torch.float32).reshape(300, 300) % 7
wanted = model(batch)["side"].copy(), (x @ x).relu().sum(0)
wrong = []

def work():
    for _ in range(20):
        if not (np.array_equal(model(batch)["side"], wanted[0]) and torch.equal((x @ x).relu().sum(0), wanted[1])):
            wrong.append(1)

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
shared = torch.from_dlpack(model(batch).rows("side"))
assert not wrong and np.array_equal(shared.numpy(), wanted[0])
print("equal")
"""
LIBOMP = find_library("omp")


@pytest.mark.parametrize("first", [("espalier", "torch"), ("torch", "espalier"), (LIBOMP, "espalier", "torch"), (LIBOMP, "torch", "espalier")],
                         ids=lambda names: "-".join(str(name) for name in names))  # fmt: skip
def test_both_compute(first):
    pytest.importorskip("torch", reason="torch is missing")
    if None in first:
        pytest.skip("libomp is missing")
    command = [sys.executable, "-c", PROGRAM, *first]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False, timeout=300)  # if they block each other
    assert done.stdout == "equal\n", done.stderr
