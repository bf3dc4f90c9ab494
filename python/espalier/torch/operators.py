# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The table of ATen operators: how each becomes calls of a builder.

A lowering takes the body that is written (its builder, `count`, and `out`, a Tensor of which shape and dtype are what
PyTorch foresees) and the operator's arguments under the names of its schema, tensors as Tensor.  Operators that are not
in the table are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import elementwise, layers, shapes
from .contract import add_bias, contract, linear
from .elementwise import Lowering, Operand
from .errors import Refused
from .extents import Extent, Shape, fixed
from .reduce import layer_norm, log_sum_exp, mean, reduce, softmax
from .tensor import Item, Tensor, filled, materialize, pad
from .tensor import elementwise as by_element

if TYPE_CHECKING:
    from .lower import Body

Lowered = TypeVar("Lowered", bound=Lowering)
OPERATORS: dict[str, Lowering] = dict(elementwise.OPERATORS)


def operator(*names: str) -> Callable[[Lowered], Lowered]:
    """Enters a lowering under names of ATen, without their overloads."""
    def enter(lowering: Lowered) -> Lowered:
        OPERATORS.update(dict.fromkeys(names, lowering))
        return lowering
    return enter


# --- tensors of one number ---

@operator("aten.zeros", "aten.zeros_like", "aten.new_zeros")
def zeros(body: Body, *_: Any, **__: Any) -> Tensor:
    return filled(0, body.out.shape, body.out.dtype)


@operator("aten.ones", "aten.ones_like", "aten.new_ones")
def ones(body: Body, *_: Any, **__: Any) -> Tensor:
    return filled(1, body.out.shape, body.out.dtype)


@operator("aten.full", "aten.full_like", "aten.new_full")
def full(body: Body, *_: Any, fill_value: float, **__: Any) -> Tensor:
    return filled(fill_value, body.out.shape, body.out.dtype)


@operator("aten.scalar_tensor")
def scalar(body: Body, s: float, **_: Any) -> Tensor:
    return filled(s, (), body.out.dtype)


# --- products ---

operator("aten.linear")(linear)


@operator("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot")
def matmul(body: Body, self: Tensor, other: Tensor | None = None, mat2: Tensor | None = None, vec: Tensor | None = None,
           tensor: Tensor | None = None) -> Tensor:
    b = next(x for x in (other, mat2, vec, tensor) if x is not None)
    batch = "abcdefgh"[:max(self.rank, b.rank, 2) - 2]
    left = "k" if self.rank == 1 else batch[len(batch) - self.rank + 2:] + "mk"
    right = "k" if b.rank == 1 else batch[len(batch) - b.rank + 2:] + "kn"
    out = batch + ("m" if self.rank > 1 else "") + ("n" if b.rank > 1 else "")
    return contract(body, [left, right], out, [self, b])


@operator("aten.addmm", "aten.addmv", "aten.baddbmm")
def add_matmul(body: Body, self: Tensor, mat1: Tensor | None = None, mat2: Tensor | None = None, beta: float = 1,
               alpha: float = 1, **other: Any) -> Tensor:
    if beta != 1 or alpha != 1:
        raise Refused("addmm with beta or alpha", "write beta * x + alpha * (a @ b)")
    a, b = (mat1, mat2) if mat1 is not None else list(other.values())[:2]
    return add_bias(body, matmul(body, a, b), self)


@operator("aten.einsum")
def einsum(body: Body, equation: str, tensors: Sequence[Tensor], path: Any = None) -> Tensor:
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    if "." in equation or not arrow or any(len(set(x)) != len(x) for x in inputs.split(",")):
        raise Refused(f"einsum of '{equation}'", "name every axis once for each operand, and those of the result behind ->")
    return contract(body, inputs.split(","), out, tensors)


@operator("aten.outer", "aten.ger")
def outer(body: Body, self: Tensor, vec2: Tensor) -> Tensor:
    return contract(body, ["a", "b"], "ab", [self, vec2])


@operator("aten.bilinear")
def bilinear(body: Body, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    axes = "abcdefgh"[:input1.rank - 1]
    part = contract(body, ["oxy", axes + "x"], axes + "oy", [weight, input1])
    product = contract(body, [axes + "oy", axes + "y"], axes + "o", [part, input2])
    return add_bias(body, product, bias)


# --- reductions ---

@operator("aten.sum")
def total(body: Body, self: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return reduce(body, "sum", elementwise.cast(body, self, body.out.dtype), dim, keepdim)


@operator("aten.mean")
def average(body: Body, self: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return mean(body, self, dim, keepdim)


def extreme(function: str) -> Lowering:
    def lower(body: Body, self: Tensor, dim: Any = None, keepdim: bool = False,
              other: Tensor | None = None) -> Tensor | list[Tensor | None]:
        if other is not None:
            return elementwise.binary(function + "imum")(body, self, other)
        result = reduce(body, function, materialize(body.builder, self), dim, keepdim)
        return result if dim is None or isinstance(dim, list) else [result, None]
    return lower


OPERATORS |= {"aten.max": extreme("max"), "aten.min": extreme("min")}


def extremes(function: str) -> Lowering:
    return lambda body, self, dim=(), keepdim=False: reduce(body, function, materialize(body.builder, self), list(dim), keepdim)


OPERATORS |= {"aten.amax": extremes("max"), "aten.amin": extremes("min")}


@operator("aten.var")
def variance(body: Body, self: Tensor, dim: Any = None, unbiased: bool = True, correction: float | None = None,
             keepdim: bool = False) -> Tensor:
    axes = list(range(self.rank)) if dim is None else [a % self.rank for a in dim]
    less = elementwise.subtract(body, self, mean(body, self, axes, True))
    total = reduce(body, "sum", elementwise.multiply(body, less, less), axes, keepdim)
    counts = [self.shape[a] for a in axes]
    if any(isinstance(n, str) for n in counts):
        raise Refused("the variance of children or nodes", "compute it by mean")
    left = math.prod(map(fixed, counts)) - (int(unbiased) if correction is None else correction)
    return elementwise.divide(body, total, float(left))


@operator("aten.std")
def deviation(body: Body, self: Tensor, **rest: Any) -> Tensor:
    return by_element(body.builder, "sqrt", variance(body, self, **rest))


@operator("aten.batch_norm")
def batch_norm(body: Body, input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
               running_mean: Tensor | None = None, running_var: Tensor | None = None, training: bool = False,
               eps: float = 1e-5, **_: Any) -> Tensor:
    if training or running_mean is None or running_var is None:
        raise Refused("batch_norm over the minibatch at hand", "call eval() on the module, and track running statistics")

    def along(x: Tensor) -> Tensor:
        return shapes.reshape(body.builder, materialize(body.builder, x), _channels(input, x))

    scale = elementwise.reciprocal_root(body, elementwise.add(body, along(running_var), eps))
    scale = scale if weight is None else elementwise.multiply(body, scale, along(weight))
    result = elementwise.multiply(body, elementwise.subtract(body, input, along(running_mean)), scale)
    return result if bias is None else elementwise.add(body, result, along(bias))


@operator("aten._native_batch_norm_legit_no_training")
def batch_norm_of_running(body: Body, **given: Any) -> list[Tensor | None]:
    return [batch_norm(body, **given), None, None]


def _channels(input: Tensor, x: Tensor) -> Shape:
    """The shape in which a vector over channels, the second axis, is broadcast."""
    return (1, *x.shape, *(1,) * (input.rank - 2))


@operator("aten.softmax", "aten._softmax")
def soft_maximum(body: Body, self: Tensor, dim: Any, **_: Any) -> Tensor:
    return softmax(body, self, dim)


@operator("aten.log_softmax", "aten._log_softmax")
def log_soft_maximum(body: Body, self: Tensor, dim: Any, **_: Any) -> Tensor:
    return softmax(body, self, dim, log=True)


@operator("aten.logsumexp")
def log_total(body: Body, self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    return log_sum_exp(body, self, dim, keepdim)


@operator("aten.layer_norm")
def normalize(body: Body, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
              bias: Tensor | None = None, eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    return layer_norm(body, input, len(normalized_shape), weight, bias, eps)


# --- shapes ---

@operator("aten.view", "aten.reshape", "aten._unsafe_view", "aten.flatten", "aten.unflatten", "aten.view_as",
          "aten.reshape_as")
def view(body: Body, self: Tensor, *_: Any, **__: Any) -> Tensor:
    return shapes.reshape(body.builder, materialize(body.builder, self), body.out.shape)


@operator("aten.unsqueeze")
def unsqueeze(body: Body, self: Tensor, dim: int) -> Tensor:
    return shapes.unsqueeze(self, dim)


@operator("aten.squeeze")
def squeeze(body: Body, self: Tensor, dim: Any = None) -> Tensor:
    return shapes.squeeze(self, [dim] if isinstance(dim, int) else dim)


@operator("aten.expand", "aten.expand_as", "aten.broadcast_to")
def expand(body: Body, self: Tensor, *_: Any, **__: Any) -> Tensor:
    return shapes.expand(self, body.out.shape)


@operator("aten.repeat", "aten.tile")
def repeat(body: Body, self: Tensor, repeats: Sequence[Extent] | None = None,
           dims: Sequence[Extent] | None = None) -> Tensor:
    self = pad(self, len(body.out.shape))
    for axis, n in enumerate(repeats or dims or ()):
        if self.shape[axis] != 1 and n != 1:
            if not isinstance(n, int):
                raise Refused("an axis of more than one element is repeated for each child", "unsqueeze an axis for it")
            extended = (*self.shape[:axis], fixed(self.shape[axis]) * n, *self.shape[axis + 1:])
            self = shapes.cat(body.builder, [self] * n, axis, extended)
    return shapes.expand(self, body.out.shape)


@operator("aten.transpose")
def transpose(body: Body, self: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(self.rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return shapes.permute(body.builder, self, order)


@operator("aten.permute")
def permute(body: Body, self: Tensor, dims: Sequence[int]) -> Tensor:
    return shapes.permute(body.builder, self, dims)


@operator("aten.t", "aten.numpy_T", "aten.mT", "aten.matrix_H")
def transpose_last(body: Body, self: Tensor) -> Tensor:
    return self if self.rank < 2 else transpose(body, self, -2, -1)


@operator("aten.select")
def select(body: Body, self: Tensor, dim: int, index: int) -> Tensor:
    return shapes.select(body.builder, self, dim, index)


@operator("aten.slice")
def slices(body: Body, self: Tensor, dim: int = 0, start: int | None = None, end: Extent | None = None,
           step: int = 1) -> Tensor:
    return shapes.slices(body.builder, self, dim, start, end, step)


@operator("aten.narrow")
def narrow(body: Body, self: Tensor, dim: int, start: int, length: int) -> Tensor:
    return shapes.slices(body.builder, self, dim, start, start + length)


@operator("aten.split", "aten.split_with_sizes")
def split(body: Body, self: Tensor, split_size: Any = None, dim: int = 0,
          split_sizes: Sequence[int] | None = None) -> list[Tensor]:
    sizes = split_sizes or split_size
    if isinstance(sizes, int):
        extent = fixed(self.shape[dim])
        sizes = [min(sizes, extent - at) for at in range(0, extent, sizes)]
    return shapes.split(body.builder, self, dim, sizes)


@operator("aten.chunk")
def chunk(body: Body, self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    extent = self.shape[dim]
    if isinstance(extent, str):
        raise Refused("an axis of children or nodes is cut in parts", "reduce along it")
    size = math.ceil(extent / chunks)
    return shapes.split(body.builder, self, dim, [min(size, extent - at) for at in range(0, extent, size)])


@operator("aten.unbind")
def unbind(body: Body, self: Tensor, dim: int = 0) -> list[Tensor]:
    return [shapes.select(body.builder, self, dim, n) for n in range(fixed(self.shape[dim]))]


@operator("aten.cat", "aten.concat")
def cat(body: Body, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return shapes.cat(body.builder, tensors, dim, body.out.shape)


@operator("aten.stack")
def stack(body: Body, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return shapes.cat(body.builder, [shapes.unsqueeze(t, dim % (t.rank + 1)) for t in tensors], dim, body.out.shape)


@operator("aten.embedding")
def embedding(body: Body, weight: Tensor, indices: Tensor, **_: Any) -> Tensor:
    if indices.kept:
        raise Refused("a vector of tokens is looked up", "give each token as an input of its own")
    items = tuple(Item(body.builder.lookup(weight.value, i.value), i.each) for i in indices.items)
    kept = tuple(indices.rank + i for i, n in enumerate(weight.shape[1:]) if n != 1)
    return Tensor((*indices.shape, *weight.shape[1:]), kept, indices.stack, items)


@operator("aten.index_select")
def index_select(body: Body, self: Tensor, dim: Any, index: Tensor) -> Tensor:
    if dim:
        raise Refused("rows are selected along another axis than the first", "keep what is looked up in rows")
    return embedding(body, self, index)


@operator("aten.index")
def index(body: Body, self: Tensor, indices: Sequence[Any]) -> Tensor:
    if len(indices) != 1 or not isinstance(indices[0], Tensor) or indices[0].dtype == "bool":
        raise Refused("indexing by other than one tensor of tokens", "look rows up along the first axis: weight[word]")
    return embedding(body, self, indices[0])


@operator("aten.gru_cell")
def gru_cell(body: Body, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
             b_hh: Tensor | None = None) -> Tensor:
    return layers.step(body, "GRU", input, [hx], [w_ih, w_hh, b_ih, b_hh])[0]


@operator("aten.lstm_cell")
def lstm_cell(body: Body, input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
              b_hh: Tensor | None = None) -> list[Tensor]:
    return layers.step(body, "LSTM", input, hx, [w_ih, w_hh, b_ih, b_hh])


@operator("aten.rnn_tanh_cell")
def rnn_tanh_cell(body: Body, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Tensor:
    return layers.step(body, "RNN_TANH", input, [hx], [w_ih, w_hh, b_ih, b_hh])[0]


@operator("aten.rnn_relu_cell")
def rnn_relu_cell(body: Body, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Tensor:
    return layers.step(body, "RNN_RELU", input, [hx], [w_ih, w_hh, b_ih, b_hh])[0]
