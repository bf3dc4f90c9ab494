# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What the tests share: small models whose results are small integers, and a report for the suite of the library."""
import os
from pathlib import Path

import numpy as np
import pytest

import espalier

EXAMPLES = Path(os.environ.get("ESPALIER_EXAMPLES", Path(__file__).parents[2] / "examples"))

TREE = """model tiny
structure tree(left, right)
input word : token
param E[V, D]
param W[D, D]
state h[D]
leaf:
    h = E[word]
inner:
    h = W @ left.h + right.h
output twice = h + h at every node
output total = sum(h) at root
output side = h at root labels "first", "second"
"""
# W swaps the two elements.
WEIGHTS = {"E": np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32), "W": np.array([[0, 1], [1, 0]], np.float32)}
WORDS = ["red", "green", "blue", "<unk>"]


def pytest_runtest_logreport(report):
    """A line for each test: its outcome, its name, why it was skipped."""
    if report.when == "call" or report.outcome != "passed":
        note(report)


def pytest_collectreport(report):
    """And one for each file that is skipped, or cannot be read."""
    if report.outcome != "passed":
        note(report)


def note(report):
    path = os.environ.get("ESPALIER_REPORT")
    if not path:
        return
    name = report.nodeid.split("/")[-1].replace("\t", " ").replace("#", "no. ")
    why = str(report.longrepr[2]) if report.outcome == "skipped" and isinstance(report.longrepr, tuple) else ""
    with open(path, "a", encoding="utf-8") as file:
        print(report.outcome, name, why.replace("\n", " "), sep="\t", file=file)


@pytest.fixture(scope="session")
def tree():
    return espalier.load(TREE, WEIGHTS, vocab=WORDS, backend="interpreter")


def load(text, weights, **options):
    return espalier.load(text, weights, backend="interpreter", **options)
