# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""A tensor of a trace: its shape as PyTorch sees it, and values of a builder.

The language has no axis along children or nodes, so a tensor that has one is kept as items: values for parts of that
axis, one after the other.  Such a *stacked* axis may also be fixed, as the results of `chunk` or the children of tree(2)
are: then operators work on each item, as one would write by hand, and no value is joined that is taken apart again.

Axes of extent 1, and those along which a tensor is the same everywhere (after `expand`), are no axes of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from .emit import Emitter, Value
from .errors import Refused
from .extents import Axes, Extent, Shape, fixed

LETTERS = "ijklmnpq"


class Item(NamedTuple):
    """A part of a stacked axis.  `each`: None = one element; "children", "nodes" = as many as there are, whose value is that of
    each child (node) in turn; "here" = as many as there are nodes, the value being that of the node at hand."""

    value: Value
    each: str | None = None


@dataclass(frozen=True)
class Tensor:
    """`shape`: extents, of which symbols are text ("s27"); `kept`: the axes of each item's value, in ascending order;
    `stack`: the stacked axis or None; `items`: along it, or the only one; `dtype`: of the language; `number`: what all
    elements are, if that is known: there is no value then."""

    shape: Shape
    kept: Axes = ()
    stack: int | None = None
    items: tuple[Item, ...] = ()
    dtype: str = "f32"
    number: float | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def value(self) -> Value:
        """The only item's value."""
        return self.items[0].value


def filled(number: float, shape: Iterable[Extent] = (), dtype: str = "f32") -> Tensor:
    """A tensor of one number."""
    return Tensor(tuple(shape), number=number, dtype=dtype)


def whole(value: Value, shape: Iterable[Extent], dtype: str = "f32") -> Tensor:
    """A tensor of one value, which has the axes of `shape` that are not 1."""
    return Tensor(tuple(shape), tuple(i for i, n in enumerate(shape) if n != 1), None, (Item(value),), dtype)


def stacked(items: Iterable[Item], shape: Shape, stack: int, kept: Iterable[int], dtype: str) -> Tensor:
    """A tensor of items; of one that fills its axis, without a stacked axis."""
    items = tuple(items)
    filled_by_one = len(items) == 1 and items[0].each is None and shape[stack] == 1
    return Tensor(tuple(shape), tuple(kept), None if filled_by_one else stack, items, dtype)


def each_alone(tensor: Tensor) -> list[Tensor]:
    """The items of a stacked axis as tensors in which that axis is one of 1."""
    assert tensor.stack is not None
    shape = (*tensor.shape[:tensor.stack], 1, *tensor.shape[tensor.stack + 1:])
    return [replace(tensor, shape=shape, stack=None, items=(item,)) for item in tensor.items]


# --- values with the axes that are needed ---

def _indices(axes: Iterable[int], all_axes: Axes) -> list[str]:
    return [LETTERS[all_axes.index(a)] for a in axes]


def align(builder: Emitter, value: Value, kept: Axes, target: Axes) -> Value:
    """`value`, which has the axes `kept`, with axes of 1 between them so that NumPy's rule aligns it with `target`."""
    if not kept or kept == target[len(target) - len(kept):]:
        return value
    spread = target[target.index(kept[0]):]
    left = [LETTERS[i] if a in kept else f"{LETTERS[i]} in 1" for i, a in enumerate(spread)]
    right = [LETTERS[i] for i, a in enumerate(spread) if a in kept]
    return builder.indexed(f"(x)[{', '.join(left)}] = x[{', '.join(right)}]", value)


def real(builder: Emitter, tensor: Tensor, axes: Iterable[int]) -> Tensor:
    """The tensor with values that have all of `axes`, repeated along those that they lack."""
    axes = tuple(a for a in axes if a != tensor.stack)
    if tensor.number is not None:
        shape = [tensor.shape[a] for a in axes]
        value = (builder.zeros(_shape_text(shape, tensor.dtype)) if shape and tensor.number == 0
                 else _repeated(builder, builder.number(tensor.number), (), axes, tensor.shape))
        return replace(tensor, kept=axes, items=(Item(value),), number=None)
    target = tuple(sorted({*tensor.kept, *axes}))
    if target == tensor.kept:
        return tensor
    items = (Item(_repeated(builder, i.value, tensor.kept, target, tensor.shape), i.each) for i in tensor.items)
    return replace(tensor, kept=target, items=tuple(items))


def _shape_text(shape: Iterable[Extent], dtype: str) -> str:
    text = ", ".join(map(str, shape))
    return text if dtype == "f32" else f"{text} : {dtype}"


def _repeated(builder: Emitter, value: Value, kept: Axes, target: Axes, shape: Shape) -> Value:
    if not target:
        return value
    if any(isinstance(shape[a], str) for a in target):
        raise Refused("a tensor is repeated along children or nodes", "leave the repeating to broadcasting")
    left = [LETTERS[i] if a in kept else f"{LETTERS[i]} in {shape[a]}" for i, a in enumerate(target)]
    right = _indices(kept, target)
    element = f"x[{', '.join(right)}]" if right else "x"
    return builder.indexed(f"(x)[{', '.join(left)}] = {element}", value)


def materialize(builder: Emitter, tensor: Tensor) -> Tensor:
    """The tensor with a value, if all that is known of it is a number."""
    if tensor.number is None:
        return tensor
    return replace(tensor, kept=(), items=(Item(builder.number(tensor.number)),), number=None)


def take(builder: Emitter, value: Value, position: int, n: int, rank: int) -> Value:
    """Element `n` along an axis of a value with `rank` axes."""
    if position == 0 and rank > 1:
        return builder.lookup(value, builder.number(n))
    right = [LETTERS[i] for i in range(rank)]
    left = right[:position] + right[position + 1:]
    right[position] = str(n)
    heading = f"[{', '.join(left)}]" if left else ""
    return builder.indexed(f"(x){heading} = x[{', '.join(right)}]", value)


def concat(builder: Emitter, position: int, values: Iterable[Value]) -> Value:
    """Values joined along an axis; a call takes 64 at most."""
    values = list(values)
    while len(values) > 1:
        values = [builder.call_along("concat", position, *values[i:i + 64]) for i in range(0, len(values), 64)]
    return values[0]


def unstack(builder: Emitter, tensor: Tensor, axis: int) -> Tensor:
    """The tensor with `axis`, a fixed one, as the stacked one."""
    if tensor.stack == axis:
        return tensor
    if tensor.stack is not None:
        raise Refused("two axes are stacked at a time", "compute with each part by itself")
    extent = fixed(tensor.shape[axis])
    tensor = real(builder, tensor, (axis,))
    position = tensor.kept.index(axis)
    items = (Item(take(builder, tensor.value, position, n, len(tensor.kept))) for n in range(extent))
    return stacked(items, tensor.shape, axis, tuple(a for a in tensor.kept if a != axis), tensor.dtype)


def join(builder: Emitter, tensor: Tensor) -> Tensor:
    """The tensor with its stacked axis, a fixed one, as an axis of one value."""
    axis = tensor.stack
    if axis is None:
        return tensor
    if any(i.each for i in tensor.items):
        raise Refused("an axis along children or nodes is needed as one of a matrix",
                      "reduce along it: sum, max, softmax and matmul")
    kept = tuple(sorted({*tensor.kept, axis}))
    position = kept.index(axis)
    left = [f"{LETTERS[i]} in 1" if a == axis else LETTERS[i] for i, a in enumerate(kept)]
    right = [LETTERS[i] for i, a in enumerate(kept) if a != axis]
    element = f"x[{', '.join(right)}]" if right else "x"
    parts = [builder.indexed(f"(x)[{', '.join(left)}] = {element}", i.value) for i in tensor.items]
    return Tensor(tensor.shape, kept, None, (Item(concat(builder, position, parts)),), tensor.dtype)


# --- broadcasting ---

def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape of what is computed element by element."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(next((n for n in extents if n != 1), 1) for extents in zip(*padded))


def pad(tensor: Tensor, rank: int) -> Tensor:
    """The tensor with axes of 1 before its own."""
    more = rank - tensor.rank
    return replace(tensor, shape=(1,) * more + tensor.shape, kept=tuple(a + more for a in tensor.kept),
                   stack=None if tensor.stack is None else tensor.stack + more)


def _is_open(tensor: Tensor) -> bool:
    return any(i.each for i in tensor.items)


def _common_stack(builder: Emitter, tensors: Sequence[Tensor]) -> tuple[list[Tensor], int | None]:
    """The tensors with one axis stacked at most, and that axis: the open one, or the first."""
    axes = {t.stack: t for t in tensors if t.stack is not None}
    opened = [a for a, t in axes.items() if _is_open(t) or isinstance(t.shape[a], str)]
    if len(opened) > 1:
        raise Refused("pairs of children or nodes are computed with", "reduce along one of the axes first")
    chosen = opened[0] if opened else next(iter(axes), None)
    return [join(builder, t) if t.stack not in (None, chosen) else t for t in tensors], chosen


def zipped(builder: Emitter,
           tensors: Sequence[Tensor]) -> tuple[list[Tensor], int | None, list[tuple[str | None, list[Value]]]]:
    """For tensors of one rank, the stacked axis and for each of its items the tensors' own items: [(each, [value])]."""
    aligned, axis = _common_stack(builder, tensors)
    if axis is None:
        return aligned, None, [(None, [t.value for t in aligned])]
    opened = [unstack(builder, t, axis) if axis in t.kept else t for t in aligned]
    eaches = next([i.each for i in t.items] for t in opened if t.stack == axis)
    rows = []
    for t in opened:
        own = t.items if t.stack == axis else [Item(t.value, e) for e in eaches]
        if [i.each for i in own] != eaches:
            raise Refused("parts are paired that are not of the same children", "pair tensors made in the same way")
        rows.append([i.value for i in own])
    return opened, axis, [(each, list(values)) for each, values in zip(eaches, zip(*rows) if rows else [])]


def elementwise(builder: Emitter, function: str, *operands: Tensor, dtype: str = "f32") -> Tensor:
    """A function of the language, or an operator, element by element."""
    shape = broadcast_shape([o.shape for o in operands])
    tensors = [pad(materialize(builder, o), len(shape)) for o in operands]
    tensors, axis, rows = zipped(builder, tensors)
    kept = tuple(sorted({a for t in tensors for a in t.kept}))
    items = []
    for each, values in rows:
        aligned = (align(builder, v, t.kept, kept) for v, t in zip(values, tensors))
        items.append(Item(builder.call(function, *aligned), each))
    return Tensor(shape, kept, axis, tuple(items), dtype)
