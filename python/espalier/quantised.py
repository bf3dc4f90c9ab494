# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Weights in 8 bits, by a calibration (doc/quantise.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from . import _adapt, _native, _onnx
from .model import _listed_vocab, _own_weights, _read_model, _read_vocabs, _read_weights, default_context


@dataclass(frozen=True)
class Difference:
    """How far values are from those in f32: the largest, and the root of the mean square, of the differences and of f32's own."""

    largest: float
    rms: float
    reference_largest: float
    reference_rms: float


@dataclass(frozen=True)
class Scales:
    """The root of the mean square of the errors of a product's sums that weights of 8 bits make, in proportion to that of the
    sums: with the scale of the largest weight of each row, and with the scales that the calibration chose."""

    plain_error: float
    chosen_error: float


@dataclass(frozen=True)
class Product:
    """A product with weights: see esp_product in espalier_quantise.h."""

    name: str
    terms: int
    sums: int
    computed: str
    why: str | None
    bound_is: str
    per_edge: bool
    bound: float
    observed: float
    differs: Difference | None
    scales: Scales | None  # with `weights_only`


@dataclass(frozen=True)
class Quantised:
    """What `quantise` says of the weights that it wrote."""

    path: str
    products: tuple[Product, ...]
    outputs: dict[str, Difference]


def _batches(structures: Iterable[Any], size: int) -> Iterator[list[Any]]:
    each = iter(structures)
    while batch := list(islice(each, size)):
        yield batch


def quantise(
    model: Any,
    weights: Any,
    structures: Iterable[Any],
    path: str | os.PathLike[str],
    *,
    evaluate: Iterable[Any] | None = None,
    vocab: Any = None,
    keep: Iterable[str] = (),
    precision: str | None = None,
    weights_only: bool = False,
    batch: int = 64,
    context: _native.Context | None = None,
    backend: str | None = None,
    math: str | None = None,
    rules: str = "-tables",
    table_bytes: int = 0,
    columns: Mapping[str, str] | None = None,
) -> Quantised:
    """Runs structures in f32, observes what weights multiply, and writes weights of 8 bits to `path`, which `load` takes like
    others.

        model, weights, vocab, columns   as `load` takes them
        structures  typical ones, some dozens or more, as a model is called with them
        evaluate    structures that the errors are of; those of the calibration by default
        keep        names of products, or of parameters, that stay in f32
        precision   "i8" (the default), or "i16" or "i8x3", which keep the weights as they are
        weights_only  products are computed in f32, with weights of 8 bits whose scales have the least errors of the sums that
            the structures make; with neither `keep` nor `precision`
    """
    context = context or default_context()
    calibrating = list(structures)
    text = _read_model(context, model)
    bound = _read_weights(context, weights, _onnx.Decisions(None, None, None)) or _own_weights(text)
    listed = _listed_vocab(vocab)

    def observe(of: _native.Weights, precision: str | None) -> _native.Program:
        program = _native.Program.calibrate(
            context, text, of, backend=backend, math=math, rules=rules, table_bytes=table_bytes, precision=precision
        )
        tokens = [name for name, is_token, *_ in program.inputs if is_token]
        program.read(_adapt.structure, _read_vocabs(context, listed, tokens), dict(columns or {}), 0, 0, 0, 0)
        return program

    wide = observe(bound, "f32")
    for each in _batches(calibrating, batch):
        wide.observe(each)
    wide.quantise(path, precision, tuple(keep), weights_only)
    scales = {name: Scales(*errors) for name, *_, errors in wide.products()[0] if errors}
    written = _read_weights(context, path, _onnx.Decisions(None, None, None))
    assert written is not None
    narrow = observe(written, None)
    for each in _batches(calibrating if evaluate is None else evaluate, batch):
        narrow.compare(wide, each)
    products, outputs = narrow.products()
    names = [name for name, *_ in narrow.outputs]
    return Quantised(
        os.fspath(path),
        tuple(
            Product(*rest, Difference(*differs) if differs else None, scales.get(rest[0])) for *rest, differs, _ in products
        ),
        {name: Difference(*differs) for name, differs in zip(names, outputs)},
    )
