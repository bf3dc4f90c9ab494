# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Whether a model computes what PyTorch does: on small structures with random inputs, before it is handed out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from .errors import TraceError
from .signature import Argument, build
from .trace import TYPES, Trace, place_of

if TYPE_CHECKING:
    from .. import model as core
    from . import lower
    from .convert import Output


class Node(dict[str, Any]):
    """A node as espalier.Model takes it, {"x": ..., "children": [...]}, told apart by identity."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


def ordered(root: Node) -> list[Node]:
    """The nodes of a structure, children first, as results number them."""
    found, known = [], set()

    def visit(node: Node) -> None:
        if node in known:
            return
        known.add(node)
        for child in node["children"]:
            visit(child)
        found.append(node)
    visit(root)
    return found


def compare(model: core.Model, task: Cell | Sequence, tolerance: float) -> None:
    """Raises TraceError with the largest difference if one is above `tolerance` * (1 + |PyTorch's|)."""
    generator = random.Random(0)
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            for shape, root in task.structures():
                _fill(model, root, generator)
                _compare(model, task, shape, root, tolerance)
    finally:
        torch.random.set_rng_state(state)


def _fill(model: core.Model, root: Node, generator: random.Random) -> None:
    for node in ordered(root):
        for each in model.inputs:
            if each.is_token or not each.shape and each.dtype in ("i32", "i64"):
                node[each.name] = generator.randrange(each.limit or 4)
            else:
                dtype = TYPES[each.dtype]
                value = torch.randn(each.shape) if each.dtype == "f32" else torch.randint(2, each.shape).to(dtype)
                node[each.name] = value.numpy() if each.shape else value.item()


def _compare(model: core.Model, task: Cell | Sequence, shape: str, root: Node, tolerance: float) -> None:
    result = model([root])[0]
    worst = (0.0, "")
    for what, name, expected in task.expected(root):
        own = torch.tensor(result.state(name) if what == "state" else result[name]).reshape(expected.shape)
        difference = ((own - expected).abs() / (1 + expected.abs())).nan_to_num(nan=float("inf"))
        difference[own.isnan() & expected.isnan()] = 0
        worst = max(worst, (float(difference.max()) if difference.numel() else 0.0, f"{what} '{name}'"))
    task.differences[shape] = worst[0]
    if worst[0] > tolerance:
        raise TraceError(f"the {worst[1]} differs from PyTorch's by {worst[0]:.3g} on {shape} (tolerance {tolerance:g})",
                         "does the function depend on how many children there are, on random numbers, or on state of its own?",
                         place_of(task.function))


def _node(*children: Node) -> Node:
    return Node(children=list(children))


def _chain(n: int) -> Node:
    node = _node()
    for _ in range(n - 1):
        node = _node(node)
    return node


Values = dict[Node, Mapping[str, torch.Tensor]]  # the states of nodes


@dataclass
class Cell:
    """A function at one node.  `lone`: how many children of zeros a leaf has where nodes have any number of them;
    `outputs`: {name: (Output, its arguments)}."""

    model: lower.Model
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    leaf: Callable[..., Any]
    leaf_arguments: tuple[Any, ...]
    lone: int
    outputs: Mapping[str, tuple[Output, tuple[Any, ...]]]
    differences: dict[str, float] = field(default_factory=dict)

    def structures(self) -> Iterator[tuple[str, Node]]:
        """(what it is, the root)"""
        slots = self.model.structure.slots
        yield "one node", _node()
        if slots == 1:
            yield "a sequence of 5 nodes", _chain(5)
            return
        if slots is None:
            yield "a chain of 3 nodes", _chain(3)
            yield "a bushy tree", _node(_node(), _node(_chain(3), _node()), _node(*(_node() for _ in range(4))))
        else:
            def full(*deeper: Node) -> Node:
                return _node(*deeper, *(_node() for _ in range(slots - len(deeper))))

            yield "a small tree", full()
            yield "a deep tree", full(full(full()), full())
        if self.model.structure.kind == "dag":
            shared = _node(*(_node() for _ in range(slots or 3)))
            yield "a graph with a shared node", _node(*[_node(*[shared] * (slots or 2)) for _ in range(slots or 2)])

    def expected(self, root: Node) -> Iterator[tuple[str, str, torch.Tensor]]:
        """(what, name, tensor) of all states and outputs."""
        nodes, states = ordered(root), Values()
        for node in nodes:
            states[node] = self._state(node, states)
        for name, shape in self.model.states.items():
            yield "state", name, torch.stack([states[n][name].reshape(shape) for n in nodes])
        for name, (output, arguments) in self.outputs.items():
            rows = [self._output(output, arguments, n, nodes, states) for n in ([root] if output.at == "root" else nodes)]
            yield "output", name, rows[0] if output.at == "root" else torch.stack(rows)

    def _state(self, node: Node, states: Values) -> Mapping[str, torch.Tensor]:
        is_leaf = not node["children"]
        function, arguments = (self.leaf, self.leaf_arguments) if is_leaf else (self.function, self.arguments)
        result = function(*build(arguments, lambda a: self._argument(a, node, states)))
        if isinstance(result, dict):
            return result
        return dict(zip(self.model.states, [result] if isinstance(result, torch.Tensor) else result))

    def _argument(self, argument: Argument, node: Node, states: Values) -> torch.Tensor:
        if argument.kind in ("child", "children"):
            return self._children(argument, node, states)
        return _as_seen(carried(self.model, argument, [node]), argument, 1)

    def _children(self, argument: Argument, node: Node, states: Values) -> torch.Tensor:
        shape = self.model.states[argument.name]
        of = [states[child][argument.name].reshape(shape) for child in node["children"]]
        slots = self.model.structure.slots
        if not of:
            of = [torch.zeros(shape)] * (self.lone if slots is None else slots)
        if argument.kind == "child":
            return _as_seen(of[argument.slot], argument, 1)
        stacked = torch.stack(of) if of else torch.zeros(0, *shape)
        return _as_seen(stacked, argument, len(of))

    def _output(self, output: Output, arguments: tuple[Any, ...], node: Node, nodes: list[Node],
                states: Values) -> torch.Tensor:
        def value(argument: Argument) -> torch.Tensor:
            if argument.kind == "nodes":
                return _as_seen(torch.stack([states[n][argument.name] for n in nodes]), argument, len(nodes))
            return _as_seen(states[node][argument.name], argument, 1)
        result = output.function(*build(arguments, value))
        first: torch.Tensor = result[0] if isinstance(result, (tuple, list)) else result
        return first


def _as_seen(tensor: torch.Tensor, argument: Argument, count: int) -> torch.Tensor:
    """The tensor in the shape that the function sees; `count`: how many children or nodes are stacked in it."""
    return tensor.reshape([count if isinstance(n, str) else n for n in argument.shape])


def carried(model: lower.Model, argument: Argument, nodes: list[Node]) -> torch.Tensor:
    """What nodes carry, as a tensor with a row for each."""
    if argument.kind == "row":
        table = model.tensors[argument.name]
        return torch.stack([table[n[argument.token]] for n in nodes])
    return torch.stack([torch.as_tensor(n[argument.name]) for n in nodes])


@dataclass
class Sequence:
    """A module over a whole sequence; `results`: {name: node of the trace}."""

    model: lower.Model
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    trace: Trace
    results: Mapping[str, torch.fx.Node]
    differences: dict[str, float] = field(default_factory=dict)

    def structures(self) -> Iterator[tuple[str, Node]]:
        for n in (1, 2, 6):
            yield f"a sequence of {n} nodes", _chain(n)

    def expected(self, root: Node) -> Iterator[tuple[str, str, torch.Tensor]]:
        nodes = ordered(root)

        def value(argument: Argument) -> torch.Tensor:
            return _as_seen(carried(self.model, argument, nodes), argument, len(nodes))
        result = self.function(*build(self.arguments, value))
        found = _leaves(result)
        names = {id(n): name for name, n in self.results.items()}
        for tensor, node in zip(found, _leaves(self.trace.results)):
            if id(node) in names:
                yield "output", names[id(node)], _nodes_first(tensor, node)


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return [leaf for each in result.values() for leaf in _leaves(each)]
    if isinstance(result, (tuple, list)):
        return [leaf for each in result for leaf in _leaves(each)]
    return [result]


def _nodes_first(tensor: torch.Tensor, node: torch.fx.Node) -> torch.Tensor:
    axis = next((i for i, n in enumerate(node.meta["val"].shape) if not isinstance(n, int)), None)
    return tensor if axis is None else tensor.movedim(axis, 0)
