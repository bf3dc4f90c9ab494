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
    pytest.importorskip("ray.exceptions", reason="ray is missing")  # a folder ray alone would be a module of that name
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


@pytest.fixture
def three_processors(monkeypatch):
    class Runtime:
        def get_assigned_resources(self):
            return {"CPU": 3.0}

    monkeypatch.setattr("ray.get_runtime_context", Runtime)


@pytest.fixture
def saved(tmp_path):
    espalier.load(TREE, WEIGHTS, vocab=WORDS).save(tmp_path / "tree.espalier")
    return tmp_path / "tree.espalier"


def test_a_saved_program_runs_in_the_context_that_is_there(tree, saved, monkeypatch, three_processors):
    espalier.model.default_context()

    def make_another(**_):
        raise AssertionError("a second context is made")

    monkeypatch.setattr(espalier._native, "Context", make_another)
    opened = espalier.ray.open_model(saved, vocab=WORDS)
    assert opened(TEXTS)["total"].tobytes() == tree(TEXTS)["total"].tobytes()


def test_a_new_context_has_the_processors_of_ray(saved, monkeypatch, three_processors):
    monkeypatch.setattr(espalier.model, "_contexts", {})
    espalier.ray.open_model(saved, vocab=WORDS)
    assert "3 threads" in repr(espalier.model.default_context())


class Handle:
    """Of a deployment whose replicas die under the first requests."""

    def __init__(self, model, deaths):
        self.model, self.deaths, self.deadlines = model, list(deaths), []

    @property
    def run(self):
        return self

    async def remote(self, batch, priority, deadline):
        self.deadlines.append(deadline)
        if self.deaths:
            raise self.deaths.pop(0)
        return espalier.ray.columns(self.model(batch))


def test_what_dies_is_asked_again(tree, caplog):
    from ray.exceptions import ActorDiedError, ActorUnavailableError, ObjectLostError

    deaths = [ActorDiedError(), ActorUnavailableError("gone", None)]
    handle = Handle(tree, deaths)
    with caplog.at_level("INFO", "espalier.ray"):
        answer = asyncio.run(espalier.ray.submit(handle, TEXTS[0], deadline=60))
    assert answer["total"].tobytes() == tree(TEXTS[0])["total"].tobytes()
    assert 60 >= handle.deadlines[0] > handle.deadlines[1] > handle.deadlines[2] > 0
    assert [record.args[:2] for record in caplog.records] == [(1, 3), (2, 3)]
    with pytest.raises(ObjectLostError):
        asyncio.run(espalier.ray.submit(Handle(tree, [ActorDiedError(), ObjectLostError("00", None, "")]), TEXTS[0], attempts=2))
    with pytest.raises(ZeroDivisionError):  # what the model itself refuses is not asked again
        asyncio.run(espalier.ray.submit(Handle(tree, [ZeroDivisionError()]), TEXTS[0]))
    with pytest.raises(ValueError, match="at least one attempt, not 0"):
        asyncio.run(espalier.ray.submit(handle, TEXTS[0], attempts=0))


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


def _run_example(name, *arguments):
    """The report of an example, of whose cluster no process is left."""
    token = secrets.token_hex(32)
    command = [sys.executable, EXAMPLES / "ray" / name, *arguments]
    run = subprocess.run(command, env={**os.environ, "RAY_AUTH_TOKEN": token}, capture_output=True, text=True, timeout=90)
    assert run.returncode == 0, run.stdout + run.stderr
    assert _processes(token) == []
    return json.loads(next(line for line in reversed(run.stdout.splitlines()) if line.startswith("{")))


def test_a_killed_node_loses_no_record():
    pytest.importorskip("pyarrow", reason="pyarrow is missing")
    report = _run_example("batch.py", "--nodes", "2", "--kill-after", "0.25")
    assert report["records"] == 1200 and report["lost"] == 0 and report["differ"] == 0 and "killed_s" in report


@pytest.mark.parametrize("killed", ["replica", "node"])
def test_a_kill_under_ray_serve_loses_no_request(killed):
    pytest.importorskip("ray.serve", reason="ray[serve] is missing")
    report = _run_example("serving.py", "--requests", "1000", "--kill", killed)
    assert report["requests"] == 1000 and report["lost"] == 0 and report["differ"] == 0
    assert report["killed_s"] < report["all_s"]  # how many were asked again depends on what was in the replica just then
