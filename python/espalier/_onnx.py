# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Graphs of ONNX and TensorFlow Lite: files, and graphs in memory, which are read as if they were files."""
from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from . import _native

# The ends of names of files, and the bytes at a place that graphs in memory have: those of TensorFlow Lite, and the field
# `ir_version`, with which serialized graphs of ONNX begin.
_FORMATS = ((".tflite", 4, b"TFL3"), (".onnx", 0, b"\x08"))


class Decisions(NamedTuple):
    """What a graph leaves open; see `espalier.load`."""

    sizes: Mapping[str, int] | None = None
    constants: Mapping[str, Any] | None = None
    outputs: Iterable[str] | str | None = None

    def __bool__(self) -> bool:
        return any(each is not None for each in self)


def _bytes_of(source: Any) -> bytes | None:
    """A graph in memory: an onnx.ModelProto, a file object such as io.BytesIO, or bytes; None = it is none."""
    # Of the type, since a Builder has any attribute that a function of the language may be called by.
    if hasattr(type(source), "SerializeToString"):
        return bytes(source.SerializeToString())
    if hasattr(type(source), "getvalue"):
        source = source.getvalue()
    if isinstance(source, (bytes, bytearray, memoryview)) and _ending_of(source):
        return bytes(source)
    return None


def _ending_of(graph: Any) -> str | None:
    """The end of the name that a file of these bytes has; None = they are no graph."""
    return next((ending for ending, at, first in _FORMATS if bytes(graph[at:at + len(first)]) == first), None)


def is_graph(source: Any) -> bool:
    """Whether this is a graph, by the name of a file or by what is in memory."""
    if isinstance(source, (str, os.PathLike)):
        return str(os.fspath(source)).endswith(tuple(ending for ending, _, _ in _FORMATS))
    return _bytes_of(source) is not None


def read(context: _native.Context, source: Any, decisions: Decisions) -> _native.ModelText:
    """The model that a graph becomes."""
    from ._arrays import constant

    if not isinstance(source, (str, os.PathLike)):
        graph = _bytes_of(source)
        if graph is None:
            raise TypeError("sizes, constants and outputs are of ONNX graphs")
        with tempfile.NamedTemporaryFile(prefix="graph", suffix=_ending_of(graph)) as file:
            file.write(graph)
            file.flush()
            return read(context, file.name, decisions)
    if "\n" in os.fspath(source):
        raise TypeError("sizes, constants and outputs are of ONNX graphs")
    constants = tuple(constant(name, value) for name, value in dict(decisions.constants or {}).items())
    outputs = (decisions.outputs,) if isinstance(decisions.outputs, str) else tuple(decisions.outputs or ())
    return _native.ModelText.read(context, source, tuple(dict(decisions.sizes or {}).items()), constants, outputs)


def _own_name(name: str, known: Mapping[str, Any]) -> str:
    """What a tensor of the graph is called in the model, which lacks the characters that no name of a text can have."""
    plain = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    return next((each for each in (name, plain, f"_{plain}", f"{plain}_") if each in known), name)


def fit_weights(tensors: Mapping[str, Any], bound: _native.Weights) -> dict[str, Any]:
    """Tensors under the names and in the shapes of those that the model has, from which they may differ by axes of 1."""
    known = {name: shape for name, _, shape in bound.tensors()}
    fitted = {}
    for name, value in tensors.items():
        own = _own_name(name, known)
        has, wanted = tuple(getattr(value, "shape", ())), known.get(own, ())
        if has != wanted and [n for n in has if n != 1] == [n for n in wanted if n != 1]:
            value = value.reshape(wanted)
        fitted[own] = value
    return fitted
