# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Where the time of a run went."""
from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")
_WIDTH, _LANE, _LEFT = 900, 26, 70


class Step(NamedTuple):
    """A step of the program: a kernel and its rows."""

    name: str
    over: int
    operations: int  # of a row, estimated; 0 = unknown
    blocks: int
    tile: int
    weight_bytes: int


class Range(NamedTuple):
    """Rows, and the steps that ran over them; times are nanoseconds since the run began."""

    step: int
    steps: int
    level: int
    row: int
    rows: int
    split: int
    start: int
    stop: int


class Event(NamedTuple):
    """What a thread did: a call of a kernel, or (`waits`) waiting for the others."""

    waits: bool
    thread: int
    share: int
    range: int
    step: int
    row: int
    rows: int
    start: int
    stop: int


class Profile:
    """What was recorded of one run (`Model.profile`).  print() shows a table of kernels, a notebook a picture of the threads;
    `steps`, `ranges` and `events` are those of espalier_profile.h, `facts` the rest."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.steps = [Step(*each) for each in raw.pop("steps")]
        self.ranges = [Range(*each) for each in raw.pop("ranges")]
        self.events = [Event(*each) for each in raw.pop("events")]
        self.facts: dict[str, int] = raw

    def _kernels(self) -> list[tuple[str, int, int, int]]:
        """Name, calls, rows and nanoseconds of each kernel, the longest first."""
        sums: dict[str, list[int]] = {}
        for each in self.events:
            if not each.waits:
                of_kernel = sums.setdefault(self.steps[each.step].name, [0, 0, 0])
                for i, more in enumerate((1, each.rows, each.stop - each.start)):
                    of_kernel[i] += more
        return sorted(((name, each[0], each[1], each[2]) for name, each in sums.items()), key=lambda each: -each[3])

    def __str__(self) -> str:
        f = self.facts
        waits = sum(each.stop - each.start for each in self.events if each.waits)
        lines = [
            f"{f['structures']} structures, {f['nodes']} nodes, {f['levels']} levels, {f['threads']} threads",
            f"linearize {f['linearize'] / 1e3:.1f} us, fill {f['fill'] / 1e3:.1f} us, run {f['run'] / 1e3:.1f} us",
        ]
        for name, calls, rows, time in self._kernels():
            lines.append(f"  {name:24} {calls:6} calls {rows:8} rows {time / 1e3:10.1f} us")
        lines.append(f"  {'waiting':24} {'':6}       {'':8}      {waits / 1e3:10.1f} us")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<espalier.Profile: {self.facts['nodes']} nodes in {self.facts['run'] / 1e3:.1f} us>"

    def _repr_svg_(self) -> str:
        """Threads as lanes, kernels by colour, waiting in grey."""
        names = [name for name, *_ in self._kernels()]
        colour = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
        first = min((each.start for each in self.events), default=0)
        last = max((each.stop for each in self.events), default=1)
        scale = _WIDTH / max(last - first, 1)
        threads = 1 + max((each.thread for each in self.events), default=0)
        height = threads * _LANE + 22 + 18 * len(names)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 10}" height="{height}" font-family="sans-serif" font-size="12">'
        ]
        for thread in range(threads):
            parts.append(f'<text x="4" y="{thread * _LANE + 17}">thread {thread}</text>')
        for each in self.events:
            name = "waiting" if each.waits else self.steps[each.step].name
            x, width = _LEFT + (each.start - first) * scale, max((each.stop - each.start) * scale, 0.3)
            title = f"{name}, {each.rows} rows, {(each.stop - each.start) / 1e3:.2f} us"
            parts.append(
                f'<rect x="{x:.2f}" y="{each.thread * _LANE + 3}" width="{width:.2f}" height="{_LANE - 6}" '
                f'fill="{"#ddd" if each.waits else colour[name]}"><title>{escape(title)}</title></rect>'
            )
        y = threads * _LANE + 14
        parts.append(f'<text x="{_LEFT}" y="{y}">{(last - first) / 1e3:.1f} us</text>')
        for name, calls, _, time in self._kernels():
            y += 18
            parts.append(f'<rect x="{_LEFT}" y="{y - 10}" width="12" height="12" fill="{colour[name]}"/>')
            parts.append(f'<text x="{_LEFT + 18}" y="{y}">{escape(name)}: {calls} calls, {time / 1e3:.1f} us</text>')
        return "".join([*parts, "</svg>"])
