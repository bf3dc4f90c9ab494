# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Models on nodes of Ray: columns, replicas, and a cluster that loses a node."""
import asyncio
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import EXAMPLES, TREE, WEIGHTS, WORDS

import espalier

TEXTS = ["(0 (0 red) (0 green))", "(0 blue)", "(0 (0 (0 red) (0 blue)) (0 green))"]


@pytest.fixture(autouse=True)
def needs_ray():
    pytest.importorskip("ray", reason="ray is missing")
    import espalier.ray  # noqa: F401


def test_columns(tree):
    batch = {"id": np.arange(3), "text": np.array(TEXTS, object)}
    made = espalier.ray.Predictor(tree, column="text")(batch)
    expected = tree(TEXTS)
    assert list(made) == ["id", "text", "twice", "total", "side", "side_label"]
    assert made["total"].tobytes() == expected["total"].tobytes()
    assert [len(rows) for rows in made["twice"]] == [3, 1, 5]
    assert np.concatenate(list(made["twice"])).tobytes() == expected["twice"].tobytes()
    assert made["side_label"].tolist() == expected.label("side")
    assert list(espalier.ray.Predictor(tree, "text", outputs=["total"])(batch)) == ["id", "text", "total"]


def test_labels_of_nodes(tree):
    model = espalier.load(TREE, WEIGHTS, vocab=WORDS, backend="interpreter", at="all")
    labels = espalier.ray.columns(model(TEXTS))["side_label"]
    assert [len(each) for each in labels] == [3, 1, 5] and all(type(each) is list for each in labels)
    assert [each[-1] for each in labels] == tree(TEXTS).label("side")


def test_refused_records(tree):
    predictor = espalier.ray.Predictor(tree)
    with pytest.raises(KeyError, match="no column 'structure'; there are text"):
        predictor({"text": np.array(TEXTS)})
    with pytest.raises(ValueError, match="this one 2: '\\(0 red\\)"):
        predictor({"structure": np.array([TEXTS[0], "(0 red)\n(0 blue)"], object)})
    with pytest.raises(ValueError, match="column 'total' already"):
        predictor({"structure": np.array(TEXTS, object), "total": np.zeros(3)})


def test_replica():
    model = espalier.load(TREE, WEIGHTS, vocab=WORDS, backend="interpreter", continuous=True)
    replica = espalier.ray.Replica(model)

    async def ask():
        return await asyncio.gather(*(replica.run(text) for text in TEXTS))

    answers = asyncio.run(ask())
    assert [answer["total"].tolist() for answer in answers] == [[each] for each in model(TEXTS)["total"].tolist()]


def _processes(token: str) -> list[str]:
    """Processes that have the token in their environment."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if token.encode() in environment.read_bytes():
                found.append(environment.parent.name)
        except OSError:
            pass
    return found


def test_a_killed_node_loses_no_record():
    pytest.importorskip("pyarrow", reason="pyarrow is missing")
    token = secrets.token_hex(32)
    command = [sys.executable, EXAMPLES / "ray/batch.py", "--nodes", "2", "--kill-after", "0.25"]
    run = subprocess.run(command, env={**os.environ, "RAY_AUTH_TOKEN": token}, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    assert report["records"] == 1200 and report["lost"] == 0 and report["differ"] == 0 and "killed_s" in report
    assert _processes(token) == []
