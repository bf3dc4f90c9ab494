# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Weights of 8 bits by a calibration."""

import numpy as np
import pytest

import espalier

SUMS = """model sums
structure tree(left, right)
input word : token
param E[V, D]
param L[D, D], R[D, D]
state h[D]
leaf:
    h = E[word]
inner:
    h = tanh(L @ left.h + R @ right.h)
output y = h at root
"""
random = np.random.default_rng(3)
WEIGHTS = {
    "E": random.normal(size=(5, 16)).astype("f4"),
    "L": random.normal(size=(16, 16)).astype("f4") / 4,
    "R": random.normal(size=(16, 16)).astype("f4") / 4,
}
TREES = [((0, 1), 2), (3, (4, 0)), ((1, 2), (3, 4)), (2, 2)]


def test_quantise(tmp_path):
    path = tmp_path / "q.safetensors"
    report = espalier.quantise(SUMS, WEIGHTS, iter(TREES), path)
    assert [(each.name, each.computed, each.bound_is) for each in report.products] == [("L*h", "i8", "calibrated"), ("R*h", "i8", "calibrated")]
    assert report.products[0].bound == pytest.approx(np.abs(WEIGHTS["E"][[0, 3, 4, 1, 2]]).max(), rel=1e-6)
    assert report.products[1].differs is not None and 0 < report.products[1].differs.rms < report.products[1].differs.reference_rms / 20
    assert 0 < report.outputs["y"].rms < 0.05
    wide, narrow = espalier.load(SUMS, WEIGHTS)(TREES), espalier.load(SUMS, path)(TREES)
    assert 0 < np.abs(wide["y"] - narrow["y"]).max() < 0.2


def test_keep(tmp_path):
    path = tmp_path / "q.safetensors"
    report = espalier.quantise(SUMS, WEIGHTS, TREES, path, keep=["L"], precision="i16", evaluate=TREES[:1], batch=1)
    assert [each.computed for each in report.products] == ["f32", "i16"]
    with pytest.raises(espalier.InputError, match="neither a product nor a parameter 'Q'"):
        espalier.quantise(SUMS, WEIGHTS, TREES, path, keep=["Q"])
    with pytest.raises(espalier.InputError, match="no node was run"):
        espalier.quantise(SUMS, WEIGHTS, [], path)
    with pytest.raises(espalier.InputError, match="quantised for another model"):
        espalier.load(SUMS.replace("+ R", "- R"), path)


def test_weights_only(tmp_path):
    path = tmp_path / "q.safetensors"
    report = espalier.quantise(SUMS, WEIGHTS, TREES, path, weights_only=True)
    assert [(each.name, each.computed) for each in report.products] == [("L*h", "f32"), ("R*h", "f32")]
    for each in report.products:
        assert each.scales is not None and 0 < each.scales.chosen_error <= each.scales.plain_error < 0.05
    assert 0 < report.outputs["y"].rms < 0.05
    wide, narrow = espalier.load(SUMS, WEIGHTS)(TREES), espalier.load(SUMS, path)(TREES)
    assert 0 < np.abs(wide["y"] - narrow["y"]).max() < 0.05
    assert all(each.scales is None for each in espalier.quantise(SUMS, WEIGHTS, TREES, path).products)


@pytest.mark.parametrize("other", [{"keep": ["L"]}, {"precision": "i16"}])
def test_weights_only_alone(tmp_path, other):
    path = tmp_path / "q.safetensors"
    with pytest.raises(espalier.ArgumentError, match="weights_only"):
        espalier.quantise(SUMS, WEIGHTS, TREES, path, weights_only=True, **other)
    assert not path.exists()
