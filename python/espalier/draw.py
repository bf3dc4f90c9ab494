# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Pictures of structures."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

_X, _Y, _MARGIN = 64, 48, 40


def place(children: list[list[int]], root: int) -> dict[int, tuple[float, int]]:
    """Where nodes that the root reaches stand: x counts leaves from the left, y levels above the leaves.  A node that is
    reached twice stands where it is reached first."""
    places: dict[int, tuple[float, int]] = {}
    leaves = 0
    stack = [(root, False)]
    seen = set()
    while stack:
        node, closed = stack.pop()
        if closed:
            below = [places[child] for child in children[node]]
            places[node] = (sum(x for x, _ in below) / len(below), 1 + max(y for _, y in below))
        elif node not in seen:
            seen.add(node)
            if children[node]:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(children[node]))
            else:
                places[node] = (float(leaves), 0)
                leaves += 1
    return places


class Picture(str):
    """The text of an SVG, which a notebook shows as a picture."""

    def _repr_svg_(self) -> str:
        return str(self)


def as_svg(children: list[list[int]], root: int, texts: Sequence[str]) -> Picture:
    """The structure with a text at each node."""
    places = place(children, root)
    top = max(y for _, y in places.values())
    at = {node: (_MARGIN + x * _X, 20 + (top - y) * _Y) for node, (x, y) in places.items()}
    width, height = max(x for x, _ in at.values()) + _MARGIN, 20 + top * _Y + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-family="sans-serif" font-size="12" text-anchor="middle">'
    ]
    for node, (x, y) in at.items():
        for child in children[node]:
            parts.append(
                f'<line x1="{x:.1f}" y1="{y + 4}" x2="{at[child][0]:.1f}" y2="{at[child][1] - 12}" stroke="#999"/>'
            )
    for node, (x, y) in at.items():
        parts.append(f'<text x="{x:.1f}" y="{y}">{escape(str(texts[node]))}</text>')
    return Picture("".join([*parts, "</svg>"]))


def on_axes(children: list[list[int]], root: int, texts: Sequence[str], axes: Any = None) -> Any:
    """The same by matplotlib; returns the axes."""
    if axes is None:
        from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

        axes = pyplot.gca()
    at = place(children, root)
    for node, (x, y) in at.items():
        for child in children[node]:
            axes.plot((x, at[child][0]), (y, at[child][1]), color="#999", zorder=1)
        axes.annotate(str(texts[node]), (x, y), ha="center", va="center", backgroundcolor="white", zorder=2)
    axes.axis("off")
    return axes
