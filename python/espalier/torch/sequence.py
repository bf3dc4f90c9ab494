# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""A module over a whole sequence: its recurrent layers as traversals, its results as outputs.

Results with an axis of nodes are outputs at every node, others at the root.  Outputs read states alone, so what they need
of inputs, and of the first node, is kept in states of further traversals.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from .errors import Refused, TraceError
from .layers import Recurrent, Used
from .lower import Body, Carried, Model, axis_of, first_name, picked
from .tensor import Item, Tensor
from .trace import Trace, operator_name, place, place_of

if TYPE_CHECKING:
    from torch.fx import Node

_RECURRENT = "espalier.recurrent"


def name_results(results: Any, names: str | Iterable[str | None] | None,
                 function: Callable[..., Any]) -> dict[str, Node]:
    """{name: node} of what the function returns."""
    found: dict[Any, Any] = results if isinstance(results, dict) else dict(enumerate(_flat(results)))
    if names is None:
        names = list(found) if isinstance(results, dict) else ["result"] if len(found) == 1 else [
            f"result{i}" for i in found]
    names = [names] if isinstance(names, str) else list(names)
    nodes: list[Any] = [found.get(n) for n in names] if isinstance(results, dict) else list(found.values())
    if len(names) != len(nodes) or any(n is not None and not isinstance(node, torch.fx.Node) for n, node in zip(names, nodes)):
        raise TraceError(f"the outputs {', '.join(map(str, names))} do not fit what is returned",
                         "name each tensor that is returned, or None for those that are not wanted", place_of(function))
    return {n: node for n, node in zip(names, nodes) if n is not None}


def _flat(results: Any) -> list[Any]:
    if isinstance(results, (tuple, list)):
        return [r for each in results for r in _flat(each)]
    return [results]


def lower_sequence(model: Model, trace: Trace, results: dict[str, Node], function: Callable[..., Any]) -> None:
    needed = _needed(results.values())
    for node in trace.graph.nodes:
        if node in needed and operator_name(node) == _RECURRENT:
            _lower_recurrent(model, node)
    _carry(model, trace, list(results.values()))
    model.builder.body("output")
    bodies = {at: Body(model, trace, at) for at in ("node output", "root output")}
    for name, node in results.items():
        at = "node" if axis_of(node) is not None else "root"
        _output(model, bodies[f"{at} output"], name, node, "every node" if at == "node" else "root")


def _needed(results: Iterable[Node]) -> set[Node]:
    needed, todo = set(), list(results)
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            todo.extend(node.all_input_nodes)
    return needed


def _before_recurrent(results: Iterable[Node], recurrent: Container[Node]) -> list[Node]:
    """The nodes that outputs compute: those that lie behind no recurrent layer and no pick of the first node."""
    found: dict[Node, None] = {}
    todo = list(results)
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = None
            if node not in recurrent and not _picks_first(node):
                todo.extend(node.all_input_nodes)
    return list(found)


def _picks_first(node: Node) -> bool:
    return picked(node) == 0


# --- recurrent layers ---

def _lower_recurrent(model: Model, node: Node) -> None:
    arguments: tuple[Any, ...] = node.args
    mode, input, hx, weights, layers, bidirectional, batch_first, biases, projected = arguments
    assert model.trace is not None
    first = model.trace.parameters.get(weights[0]) or node.name + "."
    prefix = first.removesuffix("weight_ih_l0")
    if any(other.prefix == prefix for other in model.recurrent.values()):
        prefix = f"{prefix}{node.name}."
    layer = Recurrent(node, prefix, mode, input, list(hx), list(weights), layers, bidirectional, batch_first, biases)
    try:
        if projected:
            raise Refused("an LSTM with proj_size has no lowering", "multiply by a Linear of your own after it")
        layer.emit(model)
        layer.carry(model, _used_last(node, layers * (1 + bidirectional)))
    except Refused as error:
        raise TraceError(error.message, error.hint, place(node), f"nn.{mode}") from None
    model.recurrent[node] = layer


def _used_last(node: Node, rows: int) -> Used:
    """Which of the last states are used: pairs of 0 (h) or 1 (c) and a row."""
    used: set[tuple[int, int]] = set()
    for last in node.users:
        _, result = last.args
        assert isinstance(result, int)
        if result > 0 and last.users:
            used.update((result - 1, row) for row in _rows(last, rows))
    return tuple(sorted(used))


def _rows(last: Node, rows: int) -> Sequence[int]:
    """The rows of the last states that are read."""
    found: set[int] = set()
    for user in last.users:
        arguments: tuple[Any, ...] = user.args[1:] if operator_name(user) in ("aten.select", "aten.slice") else ()
        axis, *ends = (*arguments, None, None, None)[:3]
        if axis != 0:
            return range(rows)
        found.update([ends[0] % rows] if operator_name(user) == "aten.select" else range(rows)[slice(*ends)])
    return sorted(found)


# --- what outputs read ---

def _carry(model: Model, trace: Trace, results: list[Node]) -> None:
    """One traversal with states for what outputs need of the first node, and for what they read of inputs."""
    nodes = _before_recurrent(results, model.recurrent)
    states = {first_name(n): _along(n.all_input_nodes[0]) for n in nodes if _picks_first(n)}
    read = {f"{n.name}_kept": n for n in _read_by_outputs(nodes, results, trace, model.recurrent)}
    states.update({name: _along(node) for name, node in read.items()})
    if states:
        model.carry(states, read)
    model.kept.update({node: (name, axis_of(node)) for name, node in read.items()})


def _along(node: Node) -> Carried:
    """The shape of what a tensor along the nodes is at one of them, and a function of a body that gives it."""
    axis, value = axis_of(node), node.meta["val"]
    if axis is None or value.dtype != torch.float32:
        raise TraceError("an output needs an input that is no vector of every node", "return what is computed of it instead",
                         place(node))
    return tuple(int(n) for i, n in enumerate(value.shape) if i != axis and n != 1), partial(_at_node, node=node)


def _at_node(body: Body, node: Node) -> Tensor:
    tensor: Tensor = body.value(node)
    axis = tensor.stack
    assert axis is not None
    shape = tuple(n for i, n in enumerate(tensor.shape) if i != axis)
    return Tensor(shape, tuple(a - (a > axis) for a in tensor.kept), None, (Item(tensor.value),), tensor.dtype)


def _read_by_outputs(nodes: Iterable[Node], results: list[Node], trace: Trace,
                     recurrent: Container[Node]) -> list[Node]:
    """What outputs compute first of inputs: the results of operators on them, or inputs themselves."""
    found: dict[Node, None] = {}
    for node in nodes:
        if node in recurrent or _picks_first(node) or not hasattr(node.meta.get("val"), "shape"):
            continue
        read = [n for n in node.all_input_nodes if n in trace.inputs]
        if node in trace.inputs and node in results:
            found[node] = None
        elif read and axis_of(node) is not None and node.meta["val"].dtype == torch.float32:
            found[node] = None
        else:
            found.update(dict.fromkeys(read))
    return list(found)


def _output(model: Model, body: Body, name: str, node: Node, at: str) -> None:
    try:
        tensor = body.value(node)
        if at == "every node":
            tensor = _at_node(body, node)
        model.builder.output(name, body.plain(tensor, None, f"the output '{name}'"), at)
    except Refused as error:
        raise TraceError(error.message, error.hint, place(node)) from None
