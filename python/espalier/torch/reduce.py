# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Reductions: along an axis of values, along fixed items as chains, along children and nodes as the language's sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .errors import Refused
from .extents import Extent, GivenAxes, Shape
from .signature import CHILDREN
from .tensor import Item, Tensor, elementwise, filled, materialize, real

if TYPE_CHECKING:
    from .emit import Value
    from .lower import Body

_PAIR = {"sum": "+", "max": "maximum", "min": "minimum"}


def over(body: Body, function: str, item: Item) -> Value:
    """A sum or maximum over what an item stands for: itself, each child, each node."""
    if item.each is None:
        return item.value
    if item.each == "here":
        raise Refused("all nodes are needed in the middle of the network",
                      "reduce along the nodes in what is returned: such results are outputs at the root")
    call = body.builder.children if item.each == CHILDREN else body.builder.members
    if function != "min":
        return call(function, item.value)
    return body.builder.call("-", call("max", body.builder.call("-", item.value)))


def _of_nothing(function: str, shape: Shape) -> Tensor:
    if function != "sum":
        raise Refused(f"'{function}' of no children", 'describe leaves by leaf=, "zeros" or a function')
    return filled(0, shape)


def _of_items(body: Body, function: str, tensor: Tensor) -> Value:
    values = [over(body, function, item) for item in tensor.items]
    result = values[0]
    for value in values[1:]:
        result = body.builder.call(_PAIR[function], result, value)
    return result


def reduce_axis(body: Body, function: str, tensor: Tensor, axis: int) -> Tensor:
    """The tensor reduced along one axis, which stays as one of 1."""
    shape = (*tensor.shape[:axis], 1, *tensor.shape[axis + 1:])
    if tensor.shape[axis] == 0:
        return _of_nothing(function, shape)
    if axis == tensor.stack:
        return Tensor(shape, tensor.kept, None, (Item(_of_items(body, function, tensor)),), tensor.dtype)
    if axis in tensor.kept:
        position = tensor.kept.index(axis)
        items = (Item(body.builder.call_along(function, position, i.value), i.each) for i in tensor.items)
        return replace(tensor, shape=shape, kept=tuple(a for a in tensor.kept if a != axis), items=tuple(items))
    if function != "sum" or tensor.shape[axis] == 1 or tensor.number == 0:
        return replace(tensor, shape=shape)
    return elementwise(body.builder, "*", body.count(tensor.shape[axis]), replace(tensor, shape=shape), dtype=tensor.dtype)


def drop_axes(tensor: Tensor, axes: Iterable[int]) -> Tensor:
    """The tensor without axes of 1."""
    left = [a for a in range(tensor.rank) if a not in axes]
    return replace(tensor, shape=tuple(tensor.shape[a] for a in left), kept=tuple(left.index(a) for a in tensor.kept),
                   stack=None if tensor.stack is None else left.index(tensor.stack))


def _chosen(tensor: Tensor, axes: GivenAxes) -> list[int]:
    """Axes, which may be negative, or one; all of None and of an empty list."""
    if axes is None or axes == []:
        return list(range(tensor.rank))
    return [a % tensor.rank for a in ([axes] if isinstance(axes, int) else axes)]


def reduce(body: Body, function: str, tensor: Tensor, axes: GivenAxes, keepdim: bool = False) -> Tensor:
    """Reduced along axes."""
    chosen = _chosen(tensor, axes)
    for axis in chosen:
        tensor = reduce_axis(body, function, tensor, axis)
    return tensor if keepdim else drop_axes(tensor, chosen)


def mean(body: Body, tensor: Tensor, axes: GivenAxes, keepdim: bool = False) -> Tensor:
    """The sum divided by how many there are."""
    chosen = _chosen(tensor, axes)
    result = reduce(body, "sum", tensor, chosen, keepdim)
    for axis in chosen:
        if tensor.shape[axis] == 0:
            raise Refused("the mean of no children", 'describe leaves by leaf=, "zeros" or a function')
        if tensor.shape[axis] != 1:
            result = elementwise(body.builder, "/", result, body.count(tensor.shape[axis]))
    return result


def softmax(body: Body, tensor: Tensor, axis: int, log: bool = False) -> Tensor:
    """softmax, or its logarithm, along an axis; along a stacked one written out, the largest subtracted first."""
    axis %= tensor.rank
    if axis in tensor.kept:
        name, position = ("log_softmax" if log else "softmax"), tensor.kept.index(axis)
        items = (Item(body.builder.call_along(name, position, i.value), i.each) for i in tensor.items)
        return replace(tensor, items=tuple(items))
    if tensor.shape[axis] == 0:
        return tensor
    builder, tensor = body.builder, materialize(body.builder, tensor)
    less = elementwise(builder, "-", tensor, reduce_axis(body, "max", tensor, axis))
    powers = elementwise(builder, "exp", less)
    total = reduce_axis(body, "sum", powers, axis)
    if log:
        return elementwise(builder, "-", less, elementwise(builder, "log", total))
    return elementwise(builder, "/", powers, total)


def log_sum_exp(body: Body, tensor: Tensor, axes: Sequence[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))), the largest subtracted first."""
    axes, builder = [a % tensor.rank for a in axes], body.builder
    tensor = materialize(builder, tensor)
    largest = reduce(body, "max", tensor, axes, True)
    powers = elementwise(builder, "exp", elementwise(builder, "-", tensor, largest))
    result = elementwise(builder, "+", largest, elementwise(builder, "log", reduce(body, "sum", powers, axes, True)))
    return result if keepdim else drop_axes(result, axes)


def layer_norm(body: Body, tensor: Tensor, rank: int, weight: Tensor | None, bias: Tensor | None,
               epsilon: float) -> Tensor:
    """layer_norm along the last `rank` axes; the language has it along one."""
    if rank != 1:
        raise Refused("layer_norm along more than one axis", "flatten the axes first")
    last = tensor.rank - 1
    builder = body.builder
    gain = filled(1.0, tensor.shape[-1:]) if weight is None else weight
    shift = filled(0.0, tensor.shape[-1:]) if bias is None else bias
    factor, summand = (real(builder, t, (0,)).value for t in (gain, shift))
    tensor = real(builder, tensor, (last,))
    if last not in tensor.kept:
        raise Refused("layer_norm along a stacked axis", "normalise a vector: torch.cat its parts first")
    number = builder.number(epsilon)
    items = (Item(builder.call("layer_norm", i.value, factor, summand, number), i.each) for i in tensor.items)
    return replace(tensor, items=tuple(items))
