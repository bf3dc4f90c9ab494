# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Requests and streams, waited for by threads and by event loops; profiles and pictures."""
import asyncio
import gc
import threading
import xml.dom.minidom

import numpy as np
import pytest
from conftest import TREE, WEIGHTS, WORDS, load
from test_structures import VECTORS, W

import espalier


@pytest.fixture(scope="module")
def served():
    return load(TREE, WEIGHTS, vocab=WORDS, continuous=True)


@pytest.fixture(scope="module")
def streamed():
    rule = "leaf:\n    h = W @ x\ninner:\n    h = W @ x + previous.h"
    return load(VECTORS.format(structure="sequence", rest="").replace("node:\n    h = W @ x", rule), W, continuous=True)


TREES = [((i % 4, (i + 1) % 4), i % 3) for i in range(40)]


def test_tickets(served):
    service = served.service()
    tickets = [service.submit(tree, priority=i % 3) for i, tree in enumerate(TREES)]
    expected = served(TREES)
    outs = [ticket.result() for ticket in tickets]
    assert [float(out["total"][0]) for out in outs] == expected["total"].tolist()
    assert all((out["twice"] == expected[i]["twice"]).all() for i, out in enumerate(outs))
    assert outs[0].label("side") == [expected.label("side")[0]] and outs[0].generation == 1
    assert (outs[3].root("twice") == expected[3].root("twice")).all()
    assert tickets[0].done() and tickets[0].times[2] >= tickets[0].times[0] > 0
    view, before = outs[0]["side"], outs[0]["side"].copy()
    del outs, tickets
    gc.collect()
    served(TREES)
    assert (view == before).all()
    assert service.counts()["done"] == 40 and "espalier" in service.metrics() and "40 done" in repr(service)
    counts = service.counts()
    assert counts["forests"] <= counts["supersteps"] and counts["forest_requests"] <= 40
    assert counts["forest_nodes"] <= counts["nodes"]
    with pytest.raises(TypeError, match="no states"):
        service.submit(TREES).result().state("h")


def test_refusals(served, tree):
    with pytest.raises(espalier.ArgumentError):
        tree.service()
    service = served.service(requests=1)
    ticket = service.submit(TREES[0])
    with pytest.raises(espalier.BusyError):
        service.submit(TREES[0])
    ticket.cancel()
    with pytest.raises(espalier.CancelledError):
        ticket.result()
    with pytest.raises(espalier.ExpiredError):
        service.submit(TREES[0], deadline=-1).result()
    with pytest.raises(espalier.InputError):
        service.submit((0, 9)).result()
    with pytest.raises(espalier.InputError):
        service.submit((0, 1.5))
    for nan in (lambda: service.submit(TREES[0], deadline=float("nan")), lambda: service.submit(TREES[0]).result(float("nan"))):
        with pytest.raises(ValueError, match="NaN"):
            nan()
    gc.collect()
    assert service.submit(TREES[0], deadline=1e300).result(float("inf"))
    pending = service.submit(TREES[0])
    with pytest.raises(espalier.BusyError):
        pending.result(0)
    assert pending.result(10)["total"].shape == (1,)


def test_asyncio(served):
    expected = served(TREES)["total"].tolist()

    async def all_of_them():
        outs = await asyncio.gather(*(served.submit(tree) for tree in TREES))
        assert [float(out["total"][0]) for out in outs] == expected
        with pytest.raises(espalier.InputError, match="token-out-of-range"):
            await served.submit((0, 9))
        task = asyncio.ensure_future(served.submit(TREES[0]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(outs)

    assert asyncio.run(all_of_them()) == 40
    assert asyncio.run(all_of_them()) == 40
    threads = [threading.Thread(target=asyncio.run, args=(all_of_them(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_streams(streamed):
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    whole = streamed([x])["y"]
    service = streamed.service()
    stream = service.stream()
    stream.push(x[:2])
    other = stream.copy()
    saved = stream.save()
    assert (stream.push(x[2:])["y"] == whole).all()
    assert (service.stream(saved).push([row for row in x[2:]])["y"] == whole).all()
    assert [other.push(x[i : i + 1])["y"].shape for i in range(2, 6)] == [(1, 2)] * 4
    for wrong, error in ((x[:0], espalier.ArgumentError), ([1.5], espalier.InputError), (3, TypeError)):
        with pytest.raises(error):
            stream.push(wrong)
    with pytest.raises(espalier.InputError):
        service.stream(saved[:-1])
    assert (stream.push(x[:1])["y"] != whole).all()


def test_no_streams_of_trees(served):
    with pytest.raises(espalier.ArgumentError):
        served.service().stream()


def test_profile(tree):
    profile = tree.profile(TREES)
    assert profile.facts["structures"] == 40 and profile.facts["nodes"] == 200
    assert profile.steps and profile.ranges and all(each.stop >= each.start for each in profile.events)
    assert profile.steps[0].name in str(profile) and "200 nodes" in repr(profile)
    xml.dom.minidom.parseString(profile._repr_svg_())
    assert tree(TREES)._raw.profile is None


def test_pictures(tree):
    out = tree([((0, 1), 2)])[0]
    picture = out.svg("twice")
    assert xml.dom.minidom.parseString(picture).getElementsByTagName("line").length == 4
    assert out.texts() == ["0", "1", "2", "3", "4"] or out._repr_svg_()
    assert "&lt;" in out.svg(texts=["<"] * 5) and ">7<" in out.svg(texts=[7] * 5)
    with pytest.raises(ValueError, match="every node"):
        out.svg("side")


def test_drawing(tree):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    assert len(tree([((0, 1), 2)])[0].draw().texts) == 5
