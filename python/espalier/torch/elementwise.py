# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Operators that work element by element, as lowerings of the table (operators.py) and for other lowerings.

A tensor that is zero everywhere, as the states of missing children are, leaves no operator behind in sums and products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Union

from .errors import Refused
from .tensor import Item, Tensor, broadcast_shape, elementwise, filled, materialize

if TYPE_CHECKING:
    from .lower import Body

Operand = Union[Tensor, float, str]  # a text is computed of the number of children or nodes
Lowering = Callable[..., Any]  # of an operator: takes a Body and the operator's arguments, returns a Tensor or a list of them

_TYPES = ("bool", "i32", "i64", "f32")  # Of two, the later one is the result's.


def tensor(body: Body, x: Operand) -> Tensor:
    """An argument as a Tensor: numbers, and what is computed of the number of children, are arguments, too."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (bool, int, float)):
        return filled(float(x), (), "bool" if isinstance(x, bool) else "i32" if isinstance(x, int) else "f32")
    return body.count(x)


def cast(body: Body, x: Tensor, dtype: str) -> Tensor:
    if x.dtype == dtype:
        return x
    if x.number is not None:
        return replace(x, dtype=dtype)
    return elementwise(body.builder, dtype, x, dtype=dtype)


def _together(body: Body, *operands: Operand) -> list[Tensor]:
    """Operands as tensors of one type."""
    tensors = [tensor(body, x) for x in operands]
    dtype = max((t.dtype for t in tensors), key=_TYPES.index)
    return [cast(body, t, dtype) for t in tensors]


def unary(function: str) -> Lowering:
    return lambda body, self, **_: elementwise(body.builder, function, self, dtype=self.dtype)


def binary(function: str) -> Callable[[Body, Operand, Operand], Tensor]:
    def lower(body: Body, self: Operand, other: Operand) -> Tensor:
        a, b = _together(body, self, other)
        return elementwise(body.builder, function, a, b, dtype=a.dtype)
    return lower


def comparison(function: str) -> Callable[[Body, Operand, Operand], Tensor]:
    def lower(body: Body, self: Operand, other: Operand) -> Tensor:
        return elementwise(body.builder, function, *_together(body, self, other), dtype="bool")
    return lower


def _is_zero(x: Any) -> bool:
    return isinstance(x, Tensor) and x.number == 0


def _keep(body: Body, x: Operand, other: Operand) -> Tensor:
    """`x` in the shape of a sum of which the other side is zero."""
    x, other = _together(body, x, other)
    shape = broadcast_shape([x.shape, other.shape])
    more = len(shape) - x.rank
    return replace(x, shape=shape, kept=tuple(a + more for a in x.kept), stack=None if x.stack is None else x.stack + more)


def multiply(body: Body, self: Operand, other: Operand) -> Tensor:
    if _is_zero(self) or _is_zero(other):
        a, b = _together(body, self, other)
        return filled(0, broadcast_shape([a.shape, b.shape]), a.dtype)
    return binary("*")(body, self, other)


def add(body: Body, self: Operand, other: Operand, alpha: float = 1) -> Tensor:
    other = other if alpha == 1 else multiply(body, other, alpha)
    if _is_zero(other) or _is_zero(self):
        return _keep(body, *((self, other) if _is_zero(other) else (other, self)))
    return binary("+")(body, self, other)


def subtract(body: Body, self: Operand, other: Operand, alpha: float = 1) -> Tensor:
    other = other if alpha == 1 else multiply(body, other, alpha)
    return _keep(body, self, other) if _is_zero(other) else binary("-")(body, self, other)


def divide(body: Body, self: Operand, other: Operand, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode:
        raise Refused(f"division rounded by '{rounding_mode}'", "divide, then torch.floor")
    a, b = (cast(body, tensor(body, x), "f32") for x in (self, other))
    return elementwise(body.builder, "/", a, b)


def reciprocal(body: Body, self: Tensor) -> Tensor:
    return divide(body, 1.0, self)


def reciprocal_root(body: Body, self: Tensor) -> Tensor:
    return divide(body, 1.0, elementwise(body.builder, "sqrt", self))


def power(body: Body, self: Tensor, exponent: Any) -> Tensor:
    """Of whole numbers by products, and the square root."""
    if exponent == 0.5:
        return elementwise(body.builder, "sqrt", self)
    if not isinstance(exponent, (int, float)) or exponent != int(exponent) or not 0 < abs(exponent) <= 8:
        raise Refused("a power other than of whole numbers up to 8 and 0.5", "multiply, or write exp(y * log(x))")
    result = elementwise(body.builder, "square", self) if abs(exponent) > 1 else self
    for _ in range(abs(int(exponent)) - 2):
        result = multiply(body, result, self)
    return reciprocal(body, result) if exponent < 0 else result


def gelu(body: Body, self: Tensor, approximate: str = "none") -> Tensor:
    return elementwise(body.builder, "gelu" if approximate == "none" else "gelu_tanh", self)


def leaky_relu(body: Body, self: Tensor, negative_slope: float = 0.01) -> Tensor:
    self, slope = materialize(body.builder, self), body.builder.number(negative_slope)
    return replace(self, items=tuple(Item(body.builder.call("leaky_relu", i.value, slope), i.each) for i in self.items))


def elu(body: Body, self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    if input_scale != 1:
        raise Refused("elu with a scale of its input", "multiply the input")
    negative = multiply(body, alpha, subtract(body, elementwise(body.builder, "exp", self), 1.0))
    result = where(body, comparison(">")(body, self, 0.0), self, negative)
    return result if scale == 1 else multiply(body, scale, result)


def softplus(body: Body, self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    if beta != 1:
        raise Refused("softplus with a beta", "write softplus(beta * x) / beta")
    return elementwise(body.builder, "softplus", self)


def clamp(body: Body, self: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    for function, bound in (("maximum", min), ("minimum", max)):
        self = self if bound is None else binary(function)(body, self, bound)
    return self


def where(body: Body, condition: Tensor, self: Operand, other: Operand) -> Tensor:
    a, b = _together(body, self, other)
    return elementwise(body.builder, "where", condition, a, b, dtype=a.dtype)


def interpolate(body: Body, self: Operand, end: Operand, weight: Operand) -> Tensor:
    return add(body, self, multiply(body, weight, subtract(body, end, self)))


def dropout(body: Body, input: Tensor, p: float, train: bool) -> Tensor:
    if train:
        raise Refused("dropout is on", "call eval() on the module")
    return input


def same(body: Body, self: Tensor, **_: Any) -> Tensor:
    return self


def subtract_from(body: Body, self: Operand, other: Operand, alpha: float = 1) -> Tensor:
    return subtract(body, other, self, alpha)


def add_product(body: Body, self: Operand, tensor1: Operand, tensor2: Operand, value: float = 1) -> Tensor:
    return add(body, self, multiply(body, tensor1, tensor2), value)


def fill_where(body: Body, self: Operand, mask: Tensor, value: Operand) -> Tensor:
    return where(body, mask, value, self)


def convert(body: Body, self: Tensor, **_: Any) -> Tensor:
    return cast(body, self, body.out.dtype)


_SAME = ("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "detach_", "positive")
_UNARY = {"neg": "-", "logical_not": "not", "bitwise_not": "not", **{name: name for name in (
    "abs", "exp", "log", "log1p", "sqrt", "sigmoid", "tanh", "erf", "sin", "cos", "round", "floor", "relu", "silu", "square")}}
_BINARY = {"maximum": "maximum", "minimum": "minimum", "logical_and": "and", "logical_or": "or", "bitwise_and": "and",
           "bitwise_or": "or", "__and__": "and", "__or__": "or"}
_COMPARISON = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}

_LOWERINGS: dict[str, Lowering] = {
    **{name: unary(function) for name, function in _UNARY.items()},
    **{name: binary(function) for name, function in _BINARY.items()},
    **{name: comparison(function) for name, function in _COMPARISON.items()},
    **dict.fromkeys(_SAME, same),
    "add": add, "sub": subtract, "mul": multiply, "div": divide, "true_divide": divide,
    "rsub": subtract_from, "reciprocal": reciprocal, "rsqrt": reciprocal_root, "pow": power, "lerp": interpolate,
    "addcmul": add_product, "gelu": gelu, "leaky_relu": leaky_relu, "elu": elu, "softplus": softplus, "clamp": clamp,
    "clamp_min": clamp, "clamp_max": clamp, "where": where,
    "masked_fill": fill_where, "_to_copy": convert, "to": convert,
    "dropout": dropout, "feature_dropout": dropout, "alpha_dropout": dropout}
OPERATORS = {"aten." + name: lowering for name, lowering in _LOWERINGS.items()}
