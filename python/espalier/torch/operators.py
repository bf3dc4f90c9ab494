# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The table of ATen operators: how each becomes calls of a builder.

A lowering takes the body that is written (its builder, `count`, and `out`, a Tensor of which shape and dtype are what
PyTorch foresees) and the operator's arguments under the names of its schema, tensors as Tensor.  Operators that are not
in the table are refused by name.
"""

import math

from . import elementwise, layers, shapes
from .contract import add_bias, contract, linear
from .errors import Refused
from .reduce import layer_norm, log_sum_exp, mean, reduce, softmax
from .tensor import Item, Tensor, filled, materialize, pad, whole

OPERATORS = dict(elementwise.OPERATORS)


def operator(*names):
    """Enters a lowering under names of ATen, without their overloads."""
    def enter(lowering):
        OPERATORS.update(dict.fromkeys(names, lowering))
        return lowering
    return enter


# --- tensors of one number ---

@operator("aten.zeros", "aten.zeros_like", "aten.new_zeros")
def zeros(body, *_, **__):
    return filled(0, body.out.shape, body.out.dtype)


@operator("aten.ones", "aten.ones_like", "aten.new_ones")
def ones(body, *_, **__):
    return filled(1, body.out.shape, body.out.dtype)


@operator("aten.full", "aten.full_like", "aten.new_full")
def full(body, *_, fill_value, **__):
    return filled(fill_value, body.out.shape, body.out.dtype)


@operator("aten.scalar_tensor")
def scalar(body, s, **_):
    return filled(s, (), body.out.dtype)


# --- products ---

operator("aten.linear")(linear)


@operator("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot")
def matmul(body, self, other=None, mat2=None, vec=None, tensor=None):
    b = next(x for x in (other, mat2, vec, tensor) if x is not None)
    batch = "abcdefgh"[:max(self.rank, b.rank, 2) - 2]
    left = "k" if self.rank == 1 else batch[len(batch) - self.rank + 2:] + "mk"
    right = "k" if b.rank == 1 else batch[len(batch) - b.rank + 2:] + "kn"
    out = batch + ("m" if self.rank > 1 else "") + ("n" if b.rank > 1 else "")
    return contract(body, [left, right], out, [self, b])


@operator("aten.addmm", "aten.addmv", "aten.baddbmm")
def add_matmul(body, self, mat1=None, mat2=None, beta=1, alpha=1, **other):
    if beta != 1 or alpha != 1:
        raise Refused("addmm with beta or alpha", "write beta * x + alpha * (a @ b)")
    a, b = (mat1, mat2) if mat1 is not None else list(other.values())[:2]
    return add_bias(body, matmul(body, a, b), self)


@operator("aten.einsum")
def einsum(body, equation, tensors, path=None):
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    if "." in equation or not arrow or any(len(set(x)) != len(x) for x in inputs.split(",")):
        raise Refused(f"einsum of '{equation}'", "name every axis once for each operand, and those of the result behind ->")
    return contract(body, inputs.split(","), out, tensors)


@operator("aten.outer", "aten.ger")
def outer(body, self, vec2):
    return contract(body, ["a", "b"], "ab", [self, vec2])


@operator("aten.bilinear")
def bilinear(body, input1, input2, weight, bias=None):
    axes = "abcdefgh"[:input1.rank - 1]
    part = contract(body, ["oxy", axes + "x"], axes + "oy", [weight, input1])
    product = contract(body, [axes + "oy", axes + "y"], axes + "o", [part, input2])
    return add_bias(body, product, bias)


# --- reductions ---

@operator("aten.sum")
def total(body, self, dim=None, keepdim=False, dtype=None):
    return reduce(body, "sum", elementwise.cast(body, self, body.out.dtype), dim, keepdim)


@operator("aten.mean")
def average(body, self, dim=None, keepdim=False, dtype=None):
    return mean(body, self, dim, keepdim)


def extreme(function):
    def lower(body, self, dim=None, keepdim=False, other=None):
        if other is not None:
            return elementwise.binary(function + "imum")(body, self, other)
        result = reduce(body, function, materialize(body.builder, self), dim, keepdim)
        return result if dim is None or isinstance(dim, list) else [result, None]
    return lower


OPERATORS |= {"aten.max": extreme("max"), "aten.min": extreme("min")}


def extremes(function):
    return lambda body, self, dim=(), keepdim=False: reduce(body, function, materialize(body.builder, self), list(dim), keepdim)


OPERATORS |= {"aten.amax": extremes("max"), "aten.amin": extremes("min")}


@operator("aten.var")
def variance(body, self, dim=None, unbiased=True, correction=None, keepdim=False):
    axes = list(range(self.rank)) if dim is None else [a % self.rank for a in dim]
    less = elementwise.subtract(body, self, mean(body, self, axes, True))
    total = reduce(body, "sum", elementwise.multiply(body, less, less), axes, keepdim)
    counts = [self.shape[a] for a in axes]
    if any(isinstance(n, str) for n in counts):
        raise Refused("the variance of children or nodes", "compute it by mean")
    left = math.prod(counts) - (int(unbiased) if correction is None else correction)
    return elementwise.divide(body, total, float(left))


@operator("aten.std")
def deviation(body, self, **rest):
    return elementwise.OPERATORS["aten.sqrt"](body, variance(body, self, **rest))


@operator("aten.batch_norm")
def batch_norm(body, input, weight=None, bias=None, running_mean=None, running_var=None, training=False, eps=1e-5, **_):
    if training or running_mean is None:
        raise Refused("batch_norm over the minibatch at hand", "call eval() on the module, and track running statistics")
    along = lambda x: shapes.reshape(body.builder, materialize(body.builder, x), _channels(input, x))
    scale = elementwise.reciprocal_root(body, elementwise.add(body, along(running_var), eps))
    scale = scale if weight is None else elementwise.multiply(body, scale, along(weight))
    result = elementwise.multiply(body, elementwise.subtract(body, input, along(running_mean)), scale)
    return result if bias is None else elementwise.add(body, result, along(bias))


@operator("aten._native_batch_norm_legit_no_training")
def batch_norm_of_running(body, **given):
    return [batch_norm(body, **given), None, None]


def _channels(input, x):
    """The shape in which a vector over channels, the second axis, is broadcast."""
    return (1, *x.shape, *(1,) * (input.rank - 2))


@operator("aten.softmax", "aten._softmax")
def soft_maximum(body, self, dim, **_):
    return softmax(body, self, dim)


@operator("aten.log_softmax", "aten._log_softmax")
def log_soft_maximum(body, self, dim, **_):
    return softmax(body, self, dim, log=True)


@operator("aten.logsumexp")
def log_total(body, self, dim, keepdim=False):
    return log_sum_exp(body, self, dim, keepdim)


@operator("aten.layer_norm")
def normalize(body, input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return layer_norm(body, input, len(normalized_shape), weight, bias, eps)


# --- shapes ---

@operator("aten.view", "aten.reshape", "aten._unsafe_view", "aten.flatten", "aten.unflatten", "aten.view_as",
          "aten.reshape_as")
def view(body, self, *_, **__):
    return shapes.reshape(body.builder, materialize(body.builder, self), body.out.shape)


@operator("aten.unsqueeze")
def unsqueeze(body, self, dim):
    return shapes.unsqueeze(self, dim)


@operator("aten.squeeze")
def squeeze(body, self, dim=None):
    return shapes.squeeze(self, [dim] if isinstance(dim, int) else dim)


@operator("aten.expand", "aten.expand_as", "aten.broadcast_to")
def expand(body, self, *_, **__):
    return shapes.expand(self, body.out.shape)


@operator("aten.repeat", "aten.tile")
def repeat(body, self, repeats=None, dims=None):
    self = pad(self, len(body.out.shape))
    for axis, n in enumerate(repeats if repeats is not None else dims):
        if self.shape[axis] != 1 and n != 1:
            if not isinstance(n, int):
                raise Refused("an axis of more than one element is repeated for each child", "unsqueeze an axis for it")
            extended = (*self.shape[:axis], self.shape[axis] * n, *self.shape[axis + 1:])
            self = shapes.cat(body.builder, [self] * n, axis, extended)
    return shapes.expand(self, body.out.shape)


@operator("aten.transpose")
def transpose(body, self, dim0, dim1):
    order = list(range(self.rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return shapes.permute(body.builder, self, order)


@operator("aten.permute")
def permute(body, self, dims):
    return shapes.permute(body.builder, self, dims)


@operator("aten.t", "aten.numpy_T", "aten.mT", "aten.matrix_H")
def transpose_last(body, self):
    return self if self.rank < 2 else transpose(body, self, -2, -1)


@operator("aten.select")
def select(body, self, dim, index):
    return shapes.select(body.builder, self, dim, index)


@operator("aten.slice")
def slices(body, self, dim=0, start=None, end=None, step=1):
    return shapes.slices(body.builder, self, dim, start, end, step)


@operator("aten.narrow")
def narrow(body, self, dim, start, length):
    return shapes.slices(body.builder, self, dim, start, start + length)


@operator("aten.split", "aten.split_with_sizes")
def split(body, self, split_size=None, dim=0, split_sizes=None):
    size = split_size if split_size is not None else split_sizes
    extent = self.shape[dim]
    if isinstance(size, int):
        size = [min(size, extent - at) for at in range(0, extent, size)]
    return shapes.split(body.builder, self, dim, size)


@operator("aten.chunk")
def chunk(body, self, chunks, dim=0):
    if isinstance(self.shape[dim], str):
        raise Refused("an axis of children or nodes is cut in parts", "reduce along it")
    return split(body, self, math.ceil(self.shape[dim] / chunks), dim)


@operator("aten.unbind")
def unbind(body, self, dim=0):
    return [shapes.select(body.builder, self, dim, n) for n in range(self.shape[dim])]


@operator("aten.cat", "aten.concat")
def cat(body, tensors, dim=0):
    return shapes.cat(body.builder, tensors, dim, body.out.shape)


@operator("aten.stack")
def stack(body, tensors, dim=0):
    return shapes.cat(body.builder, [shapes.unsqueeze(t, dim % (t.rank + 1)) for t in tensors], dim, body.out.shape)


@operator("aten.embedding")
def embedding(body, weight, indices, **_):
    if indices.kept:
        raise Refused("a vector of tokens is looked up", "give each token as an input of its own")
    items = tuple(Item(body.builder.lookup(weight.value, i.value), i.each) for i in indices.items)
    row = whole(None, weight.shape[1:])
    return Tensor((*indices.shape, *weight.shape[1:]), tuple(a + indices.rank for a in row.kept), indices.stack, items)


@operator("aten.index_select")
def index_select(body, self, dim, index):
    if dim:
        raise Refused("rows are selected along another axis than the first", "keep what is looked up in rows")
    return embedding(body, self, index)


@operator("aten.index")
def index(body, self, indices):
    if len(indices) != 1 or not isinstance(indices[0], Tensor) or indices[0].dtype == "bool":
        raise Refused("indexing by other than one tensor of tokens", "look rows up along the first axis: weight[word]")
    return embedding(body, self, indices[0])


@operator("aten.gru_cell")
def gru_cell(body, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return layers.step(body, "GRU", input, [hx], [w_ih, w_hh, b_ih, b_hh])[0]


@operator("aten.lstm_cell")
def lstm_cell(body, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return layers.step(body, "LSTM", input, hx, [w_ih, w_hh, b_ih, b_hh])


@operator("aten.rnn_tanh_cell")
def rnn_tanh_cell(body, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return layers.step(body, "RNN_TANH", input, [hx], [w_ih, w_hh, b_ih, b_hh])[0]


@operator("aten.rnn_relu_cell")
def rnn_relu_cell(body, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return layers.step(body, "RNN_RELU", input, [hx], [w_ih, w_hh, b_ih, b_hh])[0]
