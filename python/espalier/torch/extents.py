# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Shapes as a trace has them: extents are numbers, or symbols for how many children or nodes there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from .errors import Refused

Extent = Union[int, str]  # a symbol is text: "s27", "s27 + 1"
Shape = tuple[Extent, ...]
Axes = tuple[int, ...]
GivenAxes = Union[Iterable[int], int, None]  # as operators of PyTorch take them: some, one or all


def fixed(extent: Extent) -> int:
    """An extent that has to be a number."""
    if isinstance(extent, str):
        raise Refused("an axis of children or nodes is used like one of a fixed number of elements", "reduce along it")
    return extent
