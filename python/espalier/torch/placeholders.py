# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What a trace begins with, in a body: parameters, constants, inputs, the states of children and of all nodes."""

import torch

from .errors import Refused
from .tensor import Item, Tensor, filled, take, whole

DTYPES = {torch.float32: "f32", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}


def shape_text(shape, dtype="f32"):
    """A shape as a declaration has it: "4, 3", "4 : i32", "" of a number."""
    text = ", ".join(map(str, shape))
    return text if dtype == "f32" else f"{text} : {dtype}".strip()


def read(body, node):
    """The Tensor of a placeholder."""
    trace = body.trace
    if node in trace.parameters:
        return _parameter(body, trace.parameters[node])
    if node in trace.constants:
        return _constant(body, trace.constants[node])
    if node not in trace.inputs:
        return node.meta.get("val")
    return _READERS[trace.inputs[node].kind](body, trace.inputs[node], body.shape_of(node.meta["val"]))


def _parameter(body, name):
    """A parameter without its axes of 1."""
    value, shape = body.model.parameter(name), tuple(body.model.tensors[name].shape)
    left = list(shape)
    while 1 in left:
        position = left.index(1)
        value = take(body.builder, value, position, 0, len(left))
        del left[position]
    return whole(value, shape)


def _constant(body, tensor):
    values, dtype = tensor.unique(), DTYPES.get(tensor.dtype)
    if len(values) == 1:
        return filled(float(values[0]), tuple(tensor.shape), dtype)
    if dtype != "f32":
        raise Refused("a constant tensor of other than floats", "make it a tensor of floats")
    return _parameter(body, body.model.constant(tensor))


# --- arguments of the function, by their kind; `shape` has symbols of the trace ---

def _along(argument):
    """The axes of a value for one node or child."""
    return tuple(i for i, n in enumerate(argument.shape) if n != 1 and i != argument.stack)


def _input(body, argument, shape):
    is_token = argument.dtype == "token"
    value = body.model.token(argument.name) if is_token else body.model.input(argument.name, argument.element, argument.dtype)
    each = None if argument.stack is None else "here"
    return Tensor(shape, _along(argument), argument.stack, (Item(value, each),), "i64" if is_token else argument.dtype)


def _row(body, argument, shape):
    return whole(body.builder.lookup(body.model.parameter(argument.name), body.model.token(argument.token)), shape)


def _child(body, argument, shape):
    if body.kind == "leaf":
        return filled(0.0, shape)
    return whole(body.builder.child(argument.slot, argument.name), shape)


def _children(body, argument, shape):
    slots = body.model.structure.slots
    if body.kind == "leaf":
        return filled(0.0, shape)
    if slots is None:
        return Tensor(shape, _along(argument), argument.stack, (Item(body.builder.child(-1, argument.name), "children"),))
    axes = tuple(i for i, n in enumerate(shape) if n != 1)
    items = tuple(Item(body.builder.child(slot, argument.name)) for slot in range(slots))
    return Tensor(shape, axes, None, items) if slots == 1 else Tensor(shape, axes[1:], axes[0], items)


def _nodes(body, argument, shape):
    return Tensor(shape, _along(argument), argument.stack, (Item(body.builder.member(argument.name), "nodes"),))


_READERS = {
    "input": _input, "row": _row, "child": _child, "children": _children, "nodes": _nodes,
    "state": lambda body, argument, shape: whole(body.builder.get(argument.name), shape),
}
