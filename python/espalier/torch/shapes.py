# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Operators that move elements: view, permute, slices, cat.  A stacked axis is moved as a number; nothing is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from .emit import Emitter
from .errors import Refused
from .extents import Axes, Extent, Shape, fixed
from .reduce import drop_axes
from .tensor import LETTERS, Item, Tensor, concat, each_alone, join, real, stacked, take, unstack

_END = 1 << 62


def squeeze(tensor: Tensor, axes: Iterable[int] | None = None) -> Tensor:
    """Without axes of 1: all, or those of `axes`."""
    axes = range(tensor.rank) if axes is None else [a % tensor.rank for a in axes]
    return drop_axes(tensor, [a for a in axes if tensor.shape[a] == 1])


def unsqueeze(tensor: Tensor, axis: int) -> Tensor:
    axis %= tensor.rank + 1


    def moved(a: int) -> int:
        return a + (a >= axis)

    return replace(tensor, shape=(*tensor.shape[:axis], 1, *tensor.shape[axis:]), kept=tuple(map(moved, tensor.kept)),
                   stack=None if tensor.stack is None else moved(tensor.stack))


def expand(tensor: Tensor, shape: Shape) -> Tensor:
    """The tensor repeated along axes of 1, which its values do not show."""
    more = len(shape) - tensor.rank
    return replace(tensor, shape=tuple(shape), kept=tuple(a + more for a in tensor.kept),
                   stack=None if tensor.stack is None else tensor.stack + more)


def permute(builder: Emitter, tensor: Tensor, order: Iterable[int]) -> Tensor:
    order = [a % tensor.rank for a in order]
    place = {old: new for new, old in enumerate(order)}
    moved = [place[a] for a in tensor.kept]
    kept = tuple(sorted(moved))
    items = tensor.items
    if tuple(moved) != kept:
        letters = dict(zip(moved, LETTERS))
        text = f"(x)[{', '.join(letters[a] for a in kept)}] = x[{', '.join(letters[a] for a in moved)}]"
        items = tuple(Item(builder.call("transpose", i.value) if len(kept) == 2 else builder.indexed(text, i.value), i.each)
                      for i in items)
    return replace(tensor, shape=tuple(tensor.shape[a] for a in order), kept=kept,
                   stack=None if tensor.stack is None else place[tensor.stack], items=items)


def select(builder: Emitter, tensor: Tensor, axis: int, n: int) -> Tensor:
    """One element along an axis, which goes."""
    axis %= tensor.rank
    extent = tensor.shape[axis]
    shape = (*tensor.shape[:axis], 1, *tensor.shape[axis + 1:])
    if axis == tensor.stack:
        item = _item(tensor, n if n >= 0 or isinstance(extent, str) else n + extent)
        return drop_axes(replace(tensor, shape=shape, stack=None, items=(item,)), [axis])
    if axis in tensor.kept:
        position, rank, n = tensor.kept.index(axis), len(tensor.kept), n % fixed(extent)
        items = tuple(Item(take(builder, i.value, position, n, rank), i.each) for i in tensor.items)
        tensor = replace(tensor, items=items, kept=tuple(a for a in tensor.kept if a != axis))
    return drop_axes(replace(tensor, shape=shape), [axis])


def _item(tensor: Tensor, n: int) -> Item:
    """Item n of a stacked axis: of an open one, only those that stand before (or, from the end, behind) its open part."""
    fixed = tensor.items[:n + 1] if n >= 0 else tensor.items[n:]
    if len(fixed) < (n + 1 if n >= 0 else -n) or any(i.each for i in fixed):
        raise Refused("one child or node is picked of any number of them",
                      "reduce along the children; a tree(left, right) has children that can be told apart")
    return fixed[-1] if n >= 0 else fixed[0]


def slices(builder: Emitter, tensor: Tensor, axis: int, begin: int | None = None, end: Extent | None = None,
           step: int = 1) -> Tensor:
    """x[begin:end] along an axis."""
    axis %= tensor.rank
    extent = tensor.shape[axis]
    begin, end = begin or 0, _END if end is None else end
    if begin == 0 and step == 1 and (end == extent or isinstance(end, int) and end >= _END):
        return tensor
    if isinstance(extent, str):
        raise Refused("some children or nodes are picked of any number of them", "reduce along all of them")
    begin, end, step = slice(begin, end, step).indices(extent)
    shape = (*tensor.shape[:axis], len(range(begin, end, step)), *tensor.shape[axis + 1:])
    if axis == tensor.stack:
        return stacked(tensor.items[begin:end:step], shape, axis, tensor.kept, tensor.dtype)
    if axis not in tensor.kept:
        return replace(tensor, shape=shape)
    if step != 1:
        return slices(builder, unstack(builder, tensor, axis), axis, begin, end, step)
    if shape[axis] == 1:
        return unsqueeze(select(builder, tensor, axis, begin), axis)
    position = tensor.kept.index(axis)
    ends = str(begin) if begin else None, str(end) if end < extent else None
    return replace(tensor, shape=shape, items=tuple(Item(builder.slice(i.value, position, *ends), i.each) for i in tensor.items))


def split(builder: Emitter, tensor: Tensor, axis: int, sizes: Iterable[int]) -> list[Tensor]:
    """Slices one after the other."""
    parts, begin = [], 0
    for size in sizes:
        parts.append(slices(builder, tensor, axis, begin, begin + size))
        begin += size
    return parts


# --- joining ---

def cat(builder: Emitter, tensors: Sequence[Tensor], axis: int, shape: Shape) -> Tensor:
    """Along an axis: stacked where items are, or are single; else as values that have the axis."""
    axis %= len(shape)
    tensors = [t for t in tensors if len(t.shape) == len(shape) and t.shape[axis] != 0]
    kept = tuple(sorted({a for t in tensors for a in t.kept} - {axis}))
    if any(t.stack == axis for t in tensors) or all(t.shape[axis] == 1 for t in tensors):
        if all(t.stack in (None, axis) for t in tensors):
            parts = [real(builder, unstack(builder, t, axis) if t.shape[axis] != 1 else t, kept) for t in tensors]
            return stacked((i for t in parts for i in t.items), shape, axis, kept, tensors[0].dtype)
    return _cat_values(builder, [join(builder, t) if t.stack == axis else t for t in tensors], axis, kept, shape)


def _cat_values(builder: Emitter, tensors: Sequence[Tensor], axis: int, kept: Axes, shape: Shape) -> Tensor:
    target = tuple(sorted({*kept, axis}))
    stack = next((t.stack for t in tensors if t.stack is not None), None)
    if any(t.stack not in (None, stack) for t in tensors) or stack in kept:
        raise Refused("tensors are joined that are stacked along different axes", "stack all of them in one way")
    tensors = [real(builder, t, target) for t in tensors]
    position, eaches = target.index(axis), next(([i.each for i in t.items] for t in tensors if t.stack is not None), [None])
    items = []
    for n, each in enumerate(eaches):
        values = [t.items[n if t.stack is not None else 0].value for t in tensors]
        items.append(Item(concat(builder, position, values), each))
    return Tensor(tuple(shape), target, stack, tuple(items), tensors[0].dtype)


# --- view ---

def reshape(builder: Emitter, tensor: Tensor, shape: Iterable[Extent]) -> Tensor:
    """The elements in their order under another shape: axes are merged (values joined) or divided (a stack of slices)."""
    shape = tuple(shape)
    tensor = squeeze(tensor)
    target = [n for n in shape if n != 1]
    at = 0
    while at < len(target) or at < tensor.rank:
        if at < tensor.rank and at < len(target) and tensor.shape[at] == target[at]:
            at += 1
        elif _divides(tensor, target, at):
            tensor = _divide(builder, tensor, at, fixed(target[at]))
        elif at + 1 < tensor.rank:
            tensor = _merge(builder, tensor, at)
        else:
            raise Refused("an axis of children or nodes is merged with another, or divided", "keep it as an axis of its own")
    for axis, n in enumerate(shape):
        if n == 1:
            tensor = unsqueeze(tensor, axis)
    return tensor


def _divides(tensor: Tensor, target: list[Extent], at: int) -> bool:
    if at >= tensor.rank or at >= len(target):
        return False
    own, wanted = tensor.shape[at], target[at]
    return isinstance(own, int) and isinstance(wanted, int) and own > wanted and own % wanted == 0


def _divide(builder: Emitter, tensor: Tensor, axis: int, parts: int) -> Tensor:
    """The axis as two, of which the first has `parts` elements."""
    size = fixed(tensor.shape[axis]) // parts
    shape = (*tensor.shape[:axis], parts, size, *tensor.shape[axis + 1:])
    if tensor.stack == axis:
        tensor = join(builder, tensor)
    kept = tuple(a + (a > axis) for a in tensor.kept if a != axis)
    stack = None if tensor.stack is None else tensor.stack + (tensor.stack > axis)
    if axis not in tensor.kept:
        return replace(tensor, shape=shape, kept=kept, stack=stack)
    position = tensor.kept.index(axis)
    if stack is None:
        cuts = (builder.slice(tensor.value, position, str(n * size), str((n + 1) * size)) for n in range(parts))
        return stacked(map(Item, cuts), shape, axis, tuple(sorted((*kept, axis + 1))), tensor.dtype)
    kept = tuple(sorted((*kept, axis, axis + 1)))
    left = [f"{LETTERS[i]} in {n}" if a in (axis, axis + 1) else LETTERS[i]
            for i, (a, n) in enumerate((a, shape[a]) for a in kept)]
    letters = LETTERS[:len(kept)]
    right = [*letters[:position], f"{size}*{letters[position]} + {letters[position + 1]}", *letters[position + 2:]]
    text = f"(x)[{', '.join(left)}] = x[{', '.join(right)}]"
    items = tuple(Item(builder.indexed(text, i.value), i.each) for i in tensor.items)
    return replace(tensor, shape=shape, kept=kept, stack=stack, items=items)


def _merge(builder: Emitter, tensor: Tensor, axis: int) -> Tensor:
    """Two neighbouring axes as one."""
    pair = tensor.shape[axis:axis + 2]
    if any(isinstance(n, str) for n in pair):
        raise Refused("an axis of children or nodes is merged with another", "keep it as an axis of its own")
    extent = prod(map(fixed, pair))
    shape = (*tensor.shape[:axis], extent, *tensor.shape[axis + 2:])
    if tensor.stack is not None and tensor.stack not in (axis, axis + 1):
        parts = [_merge(builder, t, axis) for t in each_alone(tensor)]
        return replace(parts[0], shape=shape, stack=tensor.stack - (tensor.stack > axis),
                       items=tuple(Item(p.value, i.each) for p, i in zip(parts, tensor.items)))
    if tensor.stack == axis + 1:
        tensor = join(builder, tensor)
    if axis not in tensor.kept and axis + 1 not in tensor.kept and tensor.stack is None:
        return drop_axes(replace(tensor, shape=(*tensor.shape[:axis], 1, extent, *tensor.shape[axis + 2:])), [axis])
    tensor = real(builder, unstack(builder, tensor, axis), (axis + 1,))
    position = tensor.kept.index(axis + 1)
    value = concat(builder, position, (i.value for i in tensor.items))
    kept = tuple(a - (a > axis) for a in tensor.kept)
    return Tensor(shape, kept, None, (Item(value),), tensor.dtype)
