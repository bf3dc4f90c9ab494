#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Writes the models of tests/tflite/cases, their inputs, and what TensorFlow Lite's interpreter computes of them with its
reference kernels: NAME.tflite, NAME.input (the inputs, one after the other) and NAME.wanted (the outputs, likewise).

  write_cases.py FOLDER

All numbers are drawn by seeds, so that the files are the same each time.  Python packages numpy and ai-edge-litert.
"""
import argparse
from pathlib import Path

import numpy as np
from flatbuffer import Graph, Vector

RELU, RELU1, RELU6 = 1, 2, 3
SAME, VALID = 0, 1


class Case(Graph):
    """A graph, and the numbers that it is made of."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def input(self, shape, scale=0.05, zero=-3, kind="i8"):
        self.inputs.append(self.tensor(kind, shape, scale=None if kind == "f32" else scale, zero=zero, name=f"x{len(self.inputs)}"))
        return self.inputs[-1]

    def output(self, shape, scale=0.07, zero=5, kind="i8"):
        self.outputs.append(self.tensor(kind, shape, scale=None if kind == "f32" else scale, zero=zero, name=f"y{len(self.outputs)}"))
        return self.outputs[-1]

    def weights(self, shape, axis=None, kind="i8"):
        """Weights with a scale for each index of an axis, or one."""
        if kind == "f32":
            return self.tensor("f32", shape, self.random.normal(0, 0.3, shape).astype("<f4").tobytes()), [1.0]
        scales = self.random.uniform(0.001, 0.02, 1 if axis is None else shape[axis]).astype(np.float32)
        data = self.random.integers(-127, 128, shape).astype(np.int8)
        return self.tensor("i8", shape, data.tobytes(), scale=[float(s) for s in scales], axis=axis), scales

    def bias(self, n, scale, weights, kind="i32"):
        if kind == "f32":
            return self.tensor("f32", [n], self.random.normal(0, 1, n).astype("<f4").tobytes())
        scales = [float(np.float32(scale) * np.float32(w)) for w in weights]
        data = self.random.integers(-3000, 3000, n).astype("<i4")
        return self.tensor("i32", [n], data.tobytes(), scale=scales, axis=0)

    def integers(self, numbers):
        return self.tensor("i32", [len(numbers)] if np.ndim(numbers) == 1 else np.shape(numbers), np.asarray(numbers, "<i4").tobytes())


def conv(seed, x, k, y, stride=(1, 1), dilation=(1, 1), padding=SAME, activation=0, axis=0, scale=0.07, kind="i8"):
    c = Case(seed)
    a = c.input(x, kind=kind)
    w, scales = c.weights(k, axis, kind)
    inputs = [a, w, c.bias(k[0], 0.05, scales, "f32" if kind == "f32" else "i32")]
    c.operator("CONV_2D", inputs, [c.output(y, scale=scale, kind=kind)],
               {0: ("b", padding), 1: ("i", stride[1]), 2: ("i", stride[0]), 3: ("b", activation), 4: ("i", dilation[1]), 5: ("i", dilation[0])},
               version=3)
    return c


def depthwise(seed, x, k, y, stride=(1, 1), dilation=(1, 1), padding=SAME, activation=0, kind="i8"):
    c = Case(seed)
    a = c.input(x, kind=kind)
    w, scales = c.weights(k, 3, kind)
    b = c.bias(k[3], 0.05, scales, "f32" if kind == "f32" else "i32")
    c.operator("DEPTHWISE_CONV_2D", [a, w, b], [c.output(y, kind=kind)],
               {0: ("b", padding), 1: ("i", stride[1]), 2: ("i", stride[0]), 3: ("i", k[3] // x[3]), 4: ("b", activation),
                5: ("i", dilation[1]), 6: ("i", dilation[0])}, version=3)
    return c


def fully(seed, x, n, y, axis=None, activation=0, keep=False, scale=0.3, bias=True, kind="i8"):
    c = Case(seed)
    a = c.input(x, kind=kind)
    depth = x[-1] if keep else int(np.prod(x)) // y[0]
    w, scales = c.weights([n, depth], axis, kind)
    inputs = [a, w] + [c.bias(n, 0.05, scales, "f32" if kind == "f32" else "i32") if bias else -1]
    c.operator("FULLY_CONNECTED", inputs, [c.output(y, scale=scale, kind=kind)], {0: ("b", activation), 2: ("?", keep)}, version=5)
    return c


def pool(seed, op, x, y, size, stride=(1, 1), padding=SAME, activation=0, kind="i8"):
    c = Case(seed)
    c.operator(op, [c.input(x, kind=kind)], [c.output(y, scale=0.05, zero=-3, kind=kind)],
               {0: ("b", padding), 1: ("i", stride[1]), 2: ("i", stride[0]), 3: ("i", size[1]), 4: ("i", size[0]), 5: ("b", activation)}, version=2)
    return c


def pair(seed, op, a, b, y, scales=(0.05, 0.02, 0.07), zeros=(-3, 17, 5), activation=0, kind="i8"):
    c = Case(seed)
    inputs = [c.input(s, scale, zero, kind) for s, scale, zero in zip((a, b), scales, zeros)]
    c.operator(op, inputs, [c.output(y, scales[2], zeros[2], kind)], {0: ("b", activation)}, version=2)
    return c


def single(seed, op, x, y=None, scale=0.05, zero=-3, out=(0.05, -3), options=None, version=2, more=(), kind="i8"):
    c = Case(seed)
    a = c.input(x, scale, zero, kind)
    c.operator(op, [a] + [c.integers(m) for m in more], [c.output(y or x, *out, kind=kind)], options, version)
    return c


def converted(seed, op, kind, result):
    c = Case(seed)
    c.operator(op, [c.input([1, 16, 16], 0.0123, 20, kind)], [c.output([1, 16, 16], 0.0123, 20, result)], {}, version=1)
    return c


def concat(seed, shapes, y, axis, kind="i8"):
    c = Case(seed)
    inputs = [c.input(s, kind=kind) for s in shapes]
    c.operator("CONCATENATION", inputs, [c.output(y, 0.05, -3, kind)], {0: ("i", axis), 1: ("b", 0)}, version=2)
    return c


def pad_with(seed):
    c = Case(seed)
    a = c.input([1, 3, 4, 2])
    value = c.tensor("i8", [1], np.int8(9).tobytes(), scale=0.05, zero=-3)
    c.operator("PADV2", [a, c.integers([[0, 0], [2, 1], [0, 3], [1, 0]]), value], [c.output([1, 6, 7, 3], 0.05, -3)], {}, version=2)
    return c


def mean(seed, x, axes, y, keep, out=(0.03, 4), kind="i8"):
    return single(seed, "MEAN", x, y, out=out, options={0: ("?", keep)}, more=[axes], kind=kind)


def lstm(seed, batch=2, steps=5, inputs=6, cells=8, outputs=None, cifg=False, clip=0.0, projection_clip=0.0, time_major=False, zero=-4):
    """An LSTM in integers: bytes, products of them in i32, gates and the state of cells in i16."""
    c = Case(seed)
    hidden = outputs or cells
    output = (0.0078, zero) if outputs else (1 / 128, zero)
    x = c.input([steps, batch, inputs] if time_major else [batch, steps, inputs], 0.04, 7)

    def matrix(rows, columns):
        data = c.random.integers(-127, 128, [rows, columns]).astype(np.int8)
        return c.tensor("i8", [rows, columns], data.tobytes(), scale=float(np.float32(c.random.uniform(0.004, 0.01))))

    first = [-1 if cifg and g == 0 else matrix(cells, inputs) for g in range(4)]
    second = [-1 if cifg and g == 0 else matrix(cells, hidden) for g in range(4)]
    bias = [-1 if cifg and g == 0 else c.tensor("i32", [cells], c.random.integers(-4000, 4000, cells).astype("<i4").tobytes(), scale=0.0003)
            for g in range(4)]
    projection = [matrix(outputs, cells), c.tensor("i32", [outputs], c.random.integers(-900, 900, outputs).astype("<i4").tobytes(), scale=0.0001)] \
        if outputs else [-1, -1]
    state = [c.tensor("i8", [batch, hidden], scale=output[0], zero=output[1], variable=True),
             c.tensor("i16", [batch, cells], scale=2.0 ** -11, variable=True)]
    between = [c.tensor("f32", [0]) for _ in range(4)] + [c.tensor("i8", [0], scale=0.0077, zero=3 if outputs else zero)]
    y = c.output([steps, batch, hidden] if time_major else [batch, steps, hidden], *output)
    c.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [x] + first + second + [-1] * 3 + bias + projection + state + [-1] * 4, [y],
               {0: ("b", 4), 1: ("f", clip), 2: ("f", projection_clip), 3: ("?", time_major)}, version=1, intermediates=between)
    return c


def chain(seed):
    """Two convolutions, a residual sum, an average and a product: as networks for images are."""
    c = Case(seed)
    x = c.input([1, 9, 9, 3])
    a = c.tensor("i8", [1, 5, 5, 8], scale=0.06, zero=-20)
    b = c.tensor("i8", [1, 5, 5, 8], scale=0.05, zero=2)
    s = c.tensor("i8", [1, 5, 5, 8], scale=0.07, zero=-1)
    m = c.tensor("i8", [1, 8], scale=0.04, zero=3)
    f = c.tensor("i8", [1, 6], scale=0.1, zero=0)
    w, scales = c.weights([8, 3, 3, 3], 0)
    c.operator("CONV_2D", [x, w, c.bias(8, 0.05, scales)], [a], {0: ("b", SAME), 1: ("i", 2), 2: ("i", 2), 3: ("b", RELU6), 4: ("i", 1), 5: ("i", 1)}, 3)
    w, scales = c.weights([1, 3, 3, 8], 3)
    c.operator("DEPTHWISE_CONV_2D", [a, w, c.bias(8, 0.06, scales)], [b],
               {0: ("b", SAME), 1: ("i", 1), 2: ("i", 1), 3: ("i", 1), 4: ("b", 0), 5: ("i", 1), 6: ("i", 1)}, 3)
    c.operator("ADD", [a, b], [s], {0: ("b", RELU)}, 2)
    c.operator("MEAN", [s, c.integers([1, 2])], [m], {0: ("?", False)}, 2)
    w, scales = c.weights([6, 8])
    c.operator("FULLY_CONNECTED", [m, w, c.bias(6, 0.04, scales)], [f], {0: ("b", 0)}, 4)
    c.operator("SOFTMAX", [f], [c.output([1, 6], 1 / 256, -128)], {0: ("f", 1.0)}, 2)
    return c


CASES = {
    "conv": lambda: conv(1, [1, 6, 7, 3], [5, 3, 3, 3], [1, 6, 7, 5], activation=RELU6),
    "conv_strided": lambda: conv(2, [2, 8, 7, 4], [6, 3, 2, 4], [2, 3, 3, 6], stride=(2, 2), padding=VALID),
    "conv_dilated": lambda: conv(3, [1, 9, 9, 2], [3, 3, 3, 2], [1, 9, 9, 3], dilation=(2, 3), axis=None, activation=RELU1),
    "conv_pointwise": lambda: conv(4, [1, 4, 5, 16], [24, 1, 1, 16], [1, 4, 5, 24]),
    "conv_large_scale": lambda: conv(5, [1, 3, 3, 2], [4, 1, 1, 2], [1, 3, 3, 4], scale=0.0001),
    "depthwise": lambda: depthwise(11, [1, 6, 7, 4], [1, 3, 3, 4], [1, 6, 7, 4], activation=RELU6),
    "depthwise_multiplied": lambda: depthwise(12, [1, 7, 6, 3], [1, 3, 2, 6], [1, 4, 3, 6], stride=(2, 2)),
    "depthwise_dilated": lambda: depthwise(13, [1, 8, 8, 5], [1, 3, 3, 5], [1, 4, 4, 5], dilation=(2, 2), padding=VALID, activation=RELU),
    "fully": lambda: fully(21, [3, 20], 7, [3, 7], activation=RELU),
    "fully_per_axis": lambda: fully(22, [2, 4, 5], 6, [2, 6], axis=0),
    "fully_kept": lambda: fully(23, [2, 3, 8], 5, [2, 3, 5], keep=True, bias=False),
    "average_pool": lambda: pool(31, "AVERAGE_POOL_2D", [1, 7, 6, 3], [1, 4, 3, 3], (3, 3), (2, 2)),
    "average_pool_valid": lambda: pool(32, "AVERAGE_POOL_2D", [2, 6, 6, 2], [2, 5, 4, 2], (2, 3), padding=VALID, activation=RELU6),
    "max_pool": lambda: pool(33, "MAX_POOL_2D", [1, 7, 6, 3], [1, 4, 3, 3], (3, 3), (2, 2), activation=RELU),
    "add": lambda: pair(41, "ADD", [1, 5, 6, 4], [1, 5, 6, 4], [1, 5, 6, 4]),
    "add_broadcast": lambda: pair(42, "ADD", [2, 3, 4, 5], [1, 5], [2, 3, 4, 5], scales=(0.2, 0.001, 0.15), activation=RELU6),
    "mul": lambda: pair(43, "MUL", [1, 5, 6, 4], [1, 5, 6, 4], [1, 5, 6, 4], activation=RELU),
    "mul_broadcast": lambda: pair(44, "MUL", [2, 3, 4, 5], [2, 1, 1, 5], [2, 3, 4, 5], scales=(0.5, 0.5, 0.01)),
    "concat": lambda: concat(51, [[1, 3, 2, 4], [1, 3, 5, 4], [1, 3, 1, 4]], [1, 3, 8, 4], 2),
    "concat_last": lambda: concat(52, [[2, 3], [2, 5]], [2, 8], -1),
    "softmax": lambda: single(61, "SOFTMAX", [4, 17], out=(1 / 256, -128), options={0: ("f", 1.0)}),
    "softmax_wide": lambda: single(62, "SOFTMAX", [1, 3, 1000], scale=0.02, out=(1 / 256, -128), options={0: ("f", 0.7)}),
    "logistic": lambda: single(63, "LOGISTIC", [1, 256], scale=0.04, zero=11, out=(1 / 256, -128)),
    "tanh": lambda: single(64, "TANH", [1, 256], scale=0.02, zero=-9, out=(1 / 128, 0)),
    "relu": lambda: single(65, "RELU", [1, 256], scale=0.05, zero=-9, out=(0.03, -100)),
    "relu6": lambda: single(66, "RELU6", [1, 256], scale=0.05, zero=-9, out=(0.05, -9)),
    "quantize": lambda: single(67, "QUANTIZE", [1, 256], scale=0.05, zero=-9, out=(0.031, 7), options={}),
    "quantize_float": lambda: converted(68, "QUANTIZE", "f32", "i8"),
    "dequantize": lambda: converted(69, "DEQUANTIZE", "i8", "f32"),
    "reshape": lambda: single(71, "RESHAPE", [2, 3, 4], [6, 4], options={0: Vector("i", [6, 4])}, version=1, more=[[6, -1]]),
    "pad": lambda: single(72, "PAD", [1, 3, 4, 2], [1, 5, 7, 2], options={}, more=[[[0, 0], [1, 1], [3, 0], [0, 0]]]),
    "pad_with": lambda: pad_with(73),
    "mean": lambda: mean(74, [2, 5, 6, 3], [1, 2], [2, 3], False),
    "mean_kept": lambda: mean(75, [2, 5, 6, 3], [1, 2], [2, 1, 1, 3], True),
    "mean_same_scale": lambda: mean(76, [2, 5, 6, 3], [1, 2], [2, 1, 1, 3], True, (0.05, -3)),
    "mean_last": lambda: mean(77, [4, 7], [-1], [4, 1], True),
    "chain": lambda: chain(81),
    "lstm": lambda: lstm(91),
    "lstm_coupled": lambda: lstm(92, cifg=True, clip=3.0, time_major=True),
    "lstm_projected": lambda: lstm(93, outputs=5, projection_clip=0.7, zero=0),
    "float_conv": lambda: conv(101, [1, 6, 7, 3], [5, 3, 3, 3], [1, 3, 4, 5], stride=(2, 2), activation=RELU6, kind="f32"),
    "float_depthwise": lambda: depthwise(102, [1, 6, 7, 4], [1, 3, 3, 4], [1, 6, 7, 4], activation=RELU, kind="f32"),
    "float_fully": lambda: fully(103, [3, 20], 7, [3, 7], kind="f32"),
    "float_average_pool": lambda: pool(104, "AVERAGE_POOL_2D", [1, 7, 6, 3], [1, 4, 3, 3], (3, 3), (2, 2), kind="f32"),
    "float_add": lambda: pair(105, "ADD", [2, 3, 4, 5], [1, 5], [2, 3, 4, 5], activation=RELU, kind="f32"),
    "float_mean": lambda: mean(106, [2, 5, 6, 3], [1, 2], [2, 3], False, kind="f32"),
    "float_softmax": lambda: single(107, "SOFTMAX", [4, 17], options={0: ("f", 1.0)}, version=1, kind="f32"),
}


def run(model, random):
    """The inputs that are drawn for a model, and what the interpreter computes of them."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    inputs = []
    for detail in interpreter.get_input_details():
        if detail["dtype"] == np.float32:
            x = random.normal(0, 1, detail["shape"]).astype(np.float32)
        elif np.prod(detail["shape"]) == 256:
            x = np.arange(-128, 128).reshape(detail["shape"]).astype(np.int8)
        else:
            x = random.integers(-128, 128, detail["shape"]).astype(np.int8)
        interpreter.set_tensor(detail["index"], x)
        inputs.append(x)
    interpreter.invoke()
    return inputs, [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="of cases; all without any")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or CASES:
        model = CASES[name]().save()
        inputs, outputs = run(model, np.random.default_rng(7))
        (arguments.folder / f"{name}.tflite").write_bytes(model)
        (arguments.folder / f"{name}.input").write_bytes(b"".join(x.tobytes() for x in inputs))
        (arguments.folder / f"{name}.wanted").write_bytes(b"".join(y.tobytes() for y in outputs))


if __name__ == "__main__":
    main()
