# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Products with sums: linear, matmul, bmm and einsum are one function over letters for axes.

Along a stacked axis a contraction is one for each item, summed up if the axis is.  What is left is a product of
matrices and vectors, written `@`, or of another form, written in index notation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .elementwise import add
from .emit import Emitter, Value
from .errors import Refused
from .extents import Axes, Extent
from .reduce import over
from .tensor import LETTERS, Item, Tensor, align, filled, join, materialize, real, unstack

if TYPE_CHECKING:
    from .lower import Body

Part = tuple[str, Tensor]  # an operand and a letter for each of its axes
Term = tuple[str, Value]  # a value, likewise


def contract(body: Body, inputs: Sequence[str], out: str, operands: Sequence[Tensor]) -> Tensor:
    """einsum: `inputs` has a text of letters for each operand, `out` those of the result."""
    extent: dict[str, Extent] = {}
    for letters, operand in zip(inputs, operands):
        for letter, n in zip(letters, operand.shape):
            extent[letter] = n if extent.get(letter, 1) == 1 else extent[letter]
    shape = tuple(extent[x] for x in out)
    if any(o.number == 0 for o in operands):
        return filled(0, shape)
    parts = [_part(body.builder, letters, o, out) for letters, o in zip(inputs, operands)]
    parts, stack = _one_stack(body.builder, parts)
    if stack is None:
        letters, value = _product(body.builder, [(_kept(own, t), t.value) for own, t in parts], out)
        return Tensor(shape, _axes(letters, out), None, (Item(value),))
    letters, items = _products(body.builder, parts, out)
    if stack in out:
        return Tensor(shape, _axes(letters, out), out.index(stack), tuple(items))
    total = over(body, "sum", items[0])
    for item in items[1:]:
        total = body.builder.call("+", total, over(body, "sum", item))
    return Tensor(shape, _axes(letters, out), None, (Item(total),))


def _kept(own: str, tensor: Tensor) -> str:
    """The letters of the axes of a tensor's values."""
    return "".join(own[a] for a in tensor.kept)


def _axes(letters: str, out: str) -> Axes:
    return tuple(out.index(x) for x in letters)


def _part(builder: Emitter, letters: str, operand: Tensor, out: str) -> Part:
    """An operand whose values have all axes of more than one element that are summed."""
    operand = materialize(builder, operand)
    summed = [a for a, x in enumerate(letters) if operand.shape[a] != 1 and x not in out]
    return letters, real(builder, operand, (*operand.kept, *summed))


def _one_stack(builder: Emitter, parts: list[Part]) -> tuple[list[Part], str | None]:
    """The operands with at most one letter stacked, and that letter."""
    stacks = {own[t.stack]: t.shape[t.stack] for own, t in parts if t.stack is not None}
    opened = [x for x, extent in stacks.items() if isinstance(extent, str)]
    if len(opened) > 1:
        raise Refused("pairs of children or nodes are computed with", "reduce along one of the axes first")
    chosen = opened[0] if opened else next(iter(stacks), None)
    return [(own, _stack_on(builder, own, t, chosen)) for own, t in parts], chosen


def _stack_on(builder: Emitter, own: str, tensor: Tensor, chosen: str | None) -> Tensor:
    if tensor.stack is not None and own[tensor.stack] != chosen:
        tensor = join(builder, tensor)
    if chosen is not None and chosen in own and own.index(chosen) in tensor.kept:
        tensor = unstack(builder, tensor, own.index(chosen))
    return tensor


def _products(builder: Emitter, parts: list[Part], out: str) -> tuple[str, list[Item]]:
    """The product for each item of the stacked axis, and its letters."""
    eaches = next([i.each for i in t.items] for _, t in parts if t.stack is not None)
    letters, items = "", []
    for n, each in enumerate(eaches):
        row = [t.items[n] if t.stack is not None else Item(t.value, each) for _, t in parts]
        if any(item.each != each for item in row):
            raise Refused("parts are paired that are not of the same children", "pair tensors made in the same way")
        values = [(_kept(own, t), item.value) for (own, t), item in zip(parts, row)]
        letters, value = _product(builder, values, out)
        items.append(Item(value, each))
    return letters, items


# --- without a stacked axis: values and the letters of their axes ---

def _product(builder: Emitter, values: list[Term], out: str) -> tuple[str, Value]:
    """The contraction of values, with the letters of its axes in the order of `out`."""
    letters = "".join(x for x in out if any(x in own for own, _ in values))
    summed = {x for own, _ in values for x in own if x not in out}
    if len(values) == 2 and len(summed) == 1:
        value = _matrix_product(builder, values[0], values[1], next(iter(summed)), letters)
        if value is not None:
            return letters, value
    if not summed and len(values) == 2:
        a, b = values
        if all(own == "".join(x for x in letters if x in own) for own, _ in values):
            target = _axes(letters, letters)
            return letters, builder.call("*", *(align(builder, v, _axes(own, letters), target) for own, v in (a, b)))
    return letters, _indexed(builder, values, letters, summed)


def _matrix_product(builder: Emitter, a: Term, b: Term, k: str, letters: str) -> Value | None:
    """Of vectors and matrices by `@`, transposed if need be; None = it is none."""
    for (left, x), (right, y) in ((a, b), (b, a)):
        if max(len(left), len(right)) > 2 or k not in left or k not in right:
            continue
        if left.replace(k, "") + right.replace(k, "") != letters or set(left) & set(right) != {k}:
            continue
        if len(left) == 1 and right[-1] == k:  # A vector times a transposed matrix is the matrix times the vector.
            return builder.call("@", y, x)
        x = x if left[-1] == k else builder.call("transpose", x)
        y = y if right[0] == k else builder.call("transpose", y)
        return builder.call("@", x, y)
    return None


def _indexed(builder: Emitter, values: list[Term], letters: str, summed: set[str]) -> Value:
    names = {x: LETTERS[i] for i, x in enumerate(dict.fromkeys(letters + "".join(own for own, _ in values)))}

    def spell(own: str) -> str:
        return f"[{', '.join(names[x] for x in own)}]" if own else ""

    arguments = [f"a{n}" for n in range(len(values))]
    product = " * ".join(f"{name}{spell(own)}" for name, (own, _) in zip(arguments, values))
    if summed:
        product = f"sum({product} for {', '.join(sorted(names[x] for x in summed))})"
    return builder.indexed(f"({', '.join(arguments)}){spell(letters)} = {product}", *(v for _, v in values))


# --- what modules say ---

def add_bias(body: Body, product: Tensor, bias: Tensor | None) -> Tensor:
    """product + bias."""
    return product if bias is None else add(body, product, bias)


def linear(body: Body, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight^T + bias, as nn.Linear has it."""
    axes = "abcdefgh"[:input.rank - 1]
    return add_bias(body, contract(body, [axes + "k", "ok"], axes + "o", [input, weight]), bias)
