# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Cells of PyTorch's recurrent layers, and whole layers as traversals of a sequence.

Each layer and direction is a traversal with states of its own, up for the first direction and down for the reverse one;
a layer reads the complete states of the one below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .contract import linear
from .elementwise import add, multiply, subtract, unary
from .errors import Refused
from .extents import Shape, fixed
from .shapes import cat, select, split
from .tensor import Item, Tensor, filled, whole

if TYPE_CHECKING:
    from torch.fx import Node

    from .lower import Body, Model

Used = tuple[tuple[int, int], ...]  # which of the last states are used: pairs of 0 (h) or 1 (c) and a row

_sigmoid, _tanh, _relu = (unary(f) for f in ("sigmoid", "tanh", "relu"))


def _lstm(body: Body, x: Tensor, p: Tensor, hx: Sequence[Tensor]) -> list[Tensor]:
    i, f, g, o = _gates(body, add(body, x, p), 4)
    c = add(body, multiply(body, _sigmoid(body, f), hx[1]), multiply(body, _sigmoid(body, i), _tanh(body, g)))
    return [multiply(body, _sigmoid(body, o), _tanh(body, c)), c]


def _gru(body: Body, x: Tensor, p: Tensor, hx: Sequence[Tensor]) -> list[Tensor]:
    (xr, xz, xn), (pr, pz, pn) = _gates(body, x, 3), _gates(body, p, 3)
    r, z = _sigmoid(body, add(body, xr, pr)), _sigmoid(body, add(body, xz, pz))
    n = _tanh(body, add(body, xn, multiply(body, r, pn)))
    return [add(body, multiply(body, subtract(body, 1.0, z), n), multiply(body, z, hx[0]))]


def _gates(body: Body, x: Tensor, n: int) -> list[Tensor]:
    return split(body.builder, x, -1, [fixed(x.shape[-1]) // n] * n)


def _rnn_tanh(body: Body, x: Tensor, p: Tensor, hx: Sequence[Tensor]) -> list[Tensor]:
    return [_tanh(body, add(body, x, p))]


def _rnn_relu(body: Body, x: Tensor, p: Tensor, hx: Sequence[Tensor]) -> list[Tensor]:
    return [_relu(body, add(body, x, p))]


# A cell by the name that PyTorch gives it: the new states of W_ih @ x + b_ih, W_hh @ h + b_hh and the old states.
_CELLS = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _rnn_tanh, "RNN_RELU": _rnn_relu}


def step(body: Body, mode: str, x: Tensor, hx: Sequence[Tensor], weights: Sequence[Tensor | None]) -> list[Tensor]:
    """The states after a step: [h], or [h, c] of an LSTM; `weights`: w_ih, w_hh and, if there are any, b_ih, b_hh."""
    w_ih, w_hh, b_ih, b_hh = (*weights, None, None)[:4]
    assert w_ih is not None and w_hh is not None
    return _CELLS[mode](body, linear(body, x, w_ih, b_ih), linear(body, hx[0], w_hh, b_hh), hx)


class Recurrent:
    """One nn.LSTM, nn.GRU or nn.RNN of a trace: the states that its traversals compute, named as its parameters are."""

    def __init__(self, node: Node, prefix: str, mode: str, input: Node, hx: list[Node], weights: list[Node],
                 layers: int, bidirectional: bool, batch_first: bool, biases: bool) -> None:
        self.prefix = prefix
        self.node, self.mode, self.input, self.hx, self.batch_first = node, mode, input, hx, batch_first
        self.directions, self.layers = 1 + bidirectional, layers
        each = 4 if biases else 2
        self.weights = [weights[i:i + each] for i in range(0, len(weights), each)]
        self.size = int(weights[1].meta["val"].shape[1])
        self.kinds = ("h", "c") if mode == "LSTM" else ("h",)

    def states(self, layer: int, direction: int) -> list[str]:
        """Their names."""
        suffix = "_reverse" if direction else ""
        return [f"{self.prefix}{kind}_l{layer}{suffix}" for kind in self.kinds]

    def emit(self, model: Model) -> None:
        """Writes the traversals."""
        for layer in range(self.layers):
            for direction in range(self.directions):
                self._traverse(model, layer, direction)

    def _traverse(self, model: Model, layer: int, direction: int) -> None:
        names = self.states(layer, direction)
        model.traverse("down" if direction else "up", {name: (self.size,) for name in names})
        for body in model.bodies():
            x = body.at_node(self.input) if layer == 0 else self._below(body, layer - 1)
            weights = [body.value(w) for w in self.weights[layer * self.directions + direction]]
            hx = self._initial(body, layer, direction) if body.is_first else [
                whole(body.before(name), (self.size,)) for name in names]
            body.place(self.node)
            for name, state in zip(names, step(body, self.mode, x, hx, weights)):
                body.assign(name, (self.size,), state)

    def _below(self, body: Body, layer: int) -> Tensor:
        """What a layer computed at the node at hand."""
        parts = [whole(body.state(self.states(layer, d)[0]), (self.size,)) for d in range(self.directions)]
        return parts[0] if len(parts) == 1 else cat(body.builder, parts, -1, (self.size * 2,))

    def _initial(self, body: Body, layer: int, direction: int) -> list[Tensor]:
        if not self.hx:
            return [filled(0.0, (self.size,)) for _ in self.kinds]
        given = [body.value(hx) for hx in self.hx]
        return [replace(_first(body, t, layer * self.directions + direction), shape=(self.size,)) for t in given]

    def carry(self, model: Model, used: Used) -> None:
        """Writes a traversal that brings the reverse direction's last states, those of the first node, to the root: those of
        `used`, pairs of a kind, 0 = h, and a row."""
        names = [self.states(row // 2, 1)[kind] for kind, row in used if self.directions == 2 and row % 2]
        if names:
            model.carry({f"{name}_last": ((self.size,), partial(self._read, name)) for name in names})

    def _read(self, name: str, body: Body) -> Tensor:
        return whole(body.state(name), (self.size,))

    def output(self, body: Body) -> list[Tensor | None]:
        """[what the last layer computed at all nodes, the last h, the last c] as tensors of the trace."""
        shapes = [body.shape_of(t) for t in self.node.meta["val"]]
        parts = self._below(body, self.layers - 1)
        axis = 1 if self.batch_first and len(shapes[0]) == 3 else 0
        y = Tensor(shapes[0], () if shapes[0][-1] == 1 else (len(shapes[0]) - 1,), axis, (Item(parts.value, body.reading),))
        return [y, *(self._last(body, kind, shape) for kind, shape in enumerate(shapes[1:]))]

    def _last(self, body: Body, kind: int, shape: Shape) -> Tensor | None:
        if not body.at_root:
            return None
        names = [(self.states(layer, d)[kind], d) for layer in range(self.layers) for d in range(self.directions)]
        items = [Item(body.builder.get(f"{name}_last" if d else name)) for name, d in names]
        kept = () if self.size == 1 else (len(shape) - 1,)
        if len(items) == 1:
            return Tensor(shape, kept, None, tuple(items))
        return Tensor(shape, kept, 0, tuple(items))


def _first(body: Body, tensor: Tensor, n: int) -> Tensor:
    """Row n of an initial state, [layers * directions, 1, size]."""
    if any(i.each for i in tensor.items):
        raise Refused("the initial state of a layer depends on nodes", "let it be zeros or a parameter")
    row = select(body.builder, tensor, 0, n)
    return row if row.rank == 1 else select(body.builder, row, 0, 0)
