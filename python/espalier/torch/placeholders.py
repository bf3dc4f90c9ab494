# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What a trace begins with, in a body: parameters, constants, inputs, the states of children and of all nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

from .errors import Refused
from .extents import Axes, Extent, Shape
from .tensor import Item, Tensor, filled, take, whole

if TYPE_CHECKING:
    from torch.fx import Node

    from .lower import Body
    from .signature import Argument

DTYPES = {torch.float32: "f32", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}


def shape_text(shape: Iterable[Extent], dtype: str = "f32") -> str:
    """A shape as a declaration has it: "4, 3", "4 : i32", "" of a number."""
    text = ", ".join(map(str, shape))
    return text if dtype == "f32" else f"{text} : {dtype}".strip()


def read(body: Body, node: Node) -> Any:
    """The Tensor of a placeholder."""
    trace = body.trace
    if node in trace.parameters:
        name = trace.parameters[node]
        assert name is not None  # only what nothing uses has no name
        return _parameter(body, name)
    if node in trace.constants:
        return _constant(body, trace.constants[node])
    if node not in trace.inputs:
        return node.meta.get("val")
    return _READERS[trace.inputs[node].kind](body, trace.inputs[node], body.shape_of(node.meta["val"]))


def _parameter(body: Body, name: str) -> Tensor:
    """A parameter without its axes of 1."""
    value, shape = body.model.parameter(name), tuple(body.model.tensors[name].shape)
    left = list(shape)
    while 1 in left:
        position = left.index(1)
        value = take(body.builder, value, position, 0, len(left))
        del left[position]
    return whole(value, shape)


def _constant(body: Body, tensor: torch.Tensor) -> Tensor:
    if tensor.numel() and (tensor == tensor.flatten()[0]).all():
        return filled(float(tensor.flatten()[0]), tuple(tensor.shape), DTYPES.get(tensor.dtype, "f32"))
    if tensor.dtype != torch.float32:
        raise Refused("a constant tensor of other than floats", "make it a tensor of floats")
    return _parameter(body, body.model.constant(tensor))


# --- arguments of the function, by their kind; `shape` has symbols of the trace ---

def _along(argument: Argument) -> Axes:
    """The axes of a value for one node or child."""
    return tuple(i for i, n in enumerate(argument.shape) if n != 1 and i != argument.stack)


def _input(body: Body, argument: Argument, shape: Shape) -> Tensor:
    is_token = argument.dtype == "token"
    value = body.model.token(argument.name) if is_token else body.model.input(argument.name, argument.element, argument.dtype)
    each = None if argument.stack is None else "here"
    return Tensor(shape, _along(argument), argument.stack, (Item(value, each),), "i64" if is_token else argument.dtype)


def _row(body: Body, argument: Argument, shape: Shape) -> Tensor:
    return whole(body.builder.lookup(body.model.parameter(argument.name), body.model.token(argument.token)), shape)


def _child(body: Body, argument: Argument, shape: Shape) -> Tensor:
    if body.kind == "leaf":
        return filled(0.0, shape)
    return whole(body.builder.child(argument.slot, argument.name), shape)


def _children(body: Body, argument: Argument, shape: Shape) -> Tensor:
    slots = body.model.structure.slots
    if body.kind == "leaf":
        return filled(0.0, shape)
    if slots is None:
        return Tensor(shape, _along(argument), argument.stack, (Item(body.builder.child(-1, argument.name), "children"),))
    axes = tuple(i for i, n in enumerate(shape) if n != 1)
    items = tuple(Item(body.builder.child(slot, argument.name)) for slot in range(slots))
    return Tensor(shape, axes, None, items) if slots == 1 else Tensor(shape, axes[1:], axes[0], items)


def _nodes(body: Body, argument: Argument, shape: Shape) -> Tensor:
    return Tensor(shape, _along(argument), argument.stack, (Item(body.builder.member(argument.name), "nodes"),))


def _state(body: Body, argument: Argument, shape: Shape) -> Tensor:
    return whole(body.builder.get(argument.name), shape)


_READERS: dict[str, Callable[[Body, Argument, Shape], Tensor]] = {
    "input": _input, "row": _row, "child": _child, "children": _children, "nodes": _nodes, "state": _state,
}
