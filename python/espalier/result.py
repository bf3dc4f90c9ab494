# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Results of a run."""
from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import numpy as np

    from .draw import Picture
    from .model import Model

_OUTPUT, _STATE, _ROOT = 0, 1, 2


def _array(rows: _native.Rows) -> np.ndarray:
    import numpy

    return numpy.asarray(rows)


def _names_of_largest(labels: tuple[str, ...], array: np.ndarray) -> Any:
    """For each row of an array the label of its largest element."""
    best = array.argmax(axis=-1)
    return labels[int(best)] if best.ndim == 0 else [labels[i] for i in best.tolist()]


class _Outputs:
    """What results of a minibatch and of one of its structures have in common."""

    _raw: _native.RawResult
    _model: Model
    _structure: int

    def _rows(self, kind: int, name: str) -> _native.Rows:
        names = self._model._state_names if kind == _STATE else self._model._names
        if name not in names:
            what = "state" if kind == _STATE else "output"
            raise KeyError(f"there is no {what} '{name}'; there are {', '.join(names)}")
        return self._raw.rows(kind, names[name], self._structure)

    def rows(self, name: str) -> _native.Rows:
        """An output for memoryview(), numpy.asarray() and torch.from_dlpack()."""
        return self._rows(_OUTPUT, name)

    def __getitem__(self, name: str) -> np.ndarray:
        return _array(self._rows(_OUTPUT, name))

    def state(self, name: str) -> np.ndarray:
        """A state of every node, in the caller's order."""
        return _array(self._rows(_STATE, name))

    def root(self, name: str) -> np.ndarray:
        """An output at the root, wherever it is computed."""
        return _array(self._rows(_ROOT, name))

    def label(self, name: str | None = None) -> Any:
        """The label of the largest element of an output; of the only one that has labels unless it is named."""
        labelled = {each.name: each.labels for each in self._model.outputs if each.labels}
        if name is None:
            if len(labelled) != 1:
                raise TypeError(f"label() needs the name of an output: {', '.join(labelled) or 'none'} have labels")
            (name,) = labelled
        if name not in labelled:
            raise KeyError(f"the output '{name}' has no labels; those with labels: {', '.join(labelled) or 'none'}")
        return _names_of_largest(labelled[name], _array(self._rows(_OUTPUT, name)))

    def keys(self) -> list[str]:
        """The names of the outputs."""
        return list(self._model._names)


class Result(_Outputs):
    """The results of a minibatch.

    out["name"] is a NumPy array: of an output at the root a row for each structure, of an output at every node a row for each
    node, structure after structure.  It is a view where the rows lie at equal distances in memory, as those of roots always
    do, and else a copy (`rows(name).is_view`).  Views cannot be written, and never change: while one lives, later runs take
    other memory.

    out[i] has the results of structure i.
    """

    def __init__(self, raw: _native.RawResult, model: Model) -> None:
        self._raw = raw
        self._model = model
        self._structure = -1

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return _array(self._rows(_OUTPUT, key))
        at = operator.index(key)
        at += len(self._raw) if at < 0 else 0
        if not 0 <= at < len(self._raw):
            raise IndexError(f"structure {key} of {len(self._raw)}")
        return StructureResult(self._raw, self._model, at)

    def __len__(self) -> int:
        """How many structures there are."""
        return len(self._raw)

    def __iter__(self) -> Iterator[StructureResult]:
        return (self[i] for i in range(len(self)))

    @property
    def generation(self) -> int:
        """Which weights it was computed with (`Model.generation`)."""
        return self._raw.generation

    @property
    def begin(self) -> list[int]:
        """Where the nodes of each structure begin in an output at every node; one more is their end."""
        ends = [0]
        for i in range(len(self)):
            ends.append(ends[-1] + self._raw.nodes(i))
        return ends

    def __repr__(self) -> str:
        return f"<espalier.Result of {len(self)} structures: {', '.join(self.keys())}>"


class StructureResult(_Outputs):
    """The results of one structure: an output at the root is a row, of an output at every node there is a row for each node.
    Nodes of nested objects are numbered children first, those of arrays and files as they are there."""

    def __init__(self, raw: _native.RawResult, model: Model, structure: int) -> None:
        self._raw = raw
        self._model = model
        self._structure = structure

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return self._raw.nodes(self._structure)

    @property
    def root_node(self) -> int:
        """The number of its root."""
        return self._raw.root(self._structure)

    @property
    def children(self) -> list[list[int]]:
        """The children of each node, by their numbers."""
        return self._raw.children(self._structure)

    def texts(self, name: str | None = None) -> list[str]:
        """A text for each node: the label of an output at every node or, of one without labels, its largest element or its
        number; without a name the numbers of the nodes."""
        if name is None:
            return [str(node) for node in range(self.nodes)]
        rows = self[name]
        labels = next(each.labels for each in self._model.outputs if each.name == name)
        if len(rows) != self.nodes or rows.ndim > 2:
            raise ValueError(f"'{name}' is no output of one axis at every node")
        if rows.ndim == 1:
            return [f"{each:.3g}" for each in rows]
        return [labels[i] if labels else str(i) for i in rows.argmax(axis=1).tolist()]

    def draw(self, name: str | None = None, texts: list[str] | None = None, axes: Any = None) -> Any:
        """Draws the structure by matplotlib, with what `texts` returns or the texts that are given; returns the axes."""
        from . import draw

        return draw.on_axes(self.children, self.root_node, texts or self.texts(name), axes)

    def svg(self, name: str | None = None, texts: list[str] | None = None) -> Picture:
        """The same as SVG, without matplotlib: a text, which a notebook shows as a picture."""
        from . import draw

        return draw.as_svg(self.children, self.root_node, texts or self.texts(name))

    def _repr_svg_(self) -> str | None:
        return self.svg() if self.nodes <= 500 else None

    def __repr__(self) -> str:
        return f"<espalier.StructureResult {self._structure} of {self.nodes} nodes: {', '.join(self.keys())}>"
