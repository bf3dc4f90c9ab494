#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Writes the graphs of tests/onnx/qlinear and what ONNX Runtime computes of them: a folder for each operator of the domain
com.microsoft, and one of operators on floats between DequantizeLinear and QuantizeLinear, in the form of the standard's cases.

  write_qlinear.py FOLDER

Each graph has a node of its operator for each output.  Scales, zero points and second factors are initializers.  Nothing of
the graph is optimised, so that each node runs the kernel of its operator.  No result is half way between two numbers but for
rounding: what ONNX Runtime makes of such a one depends on how it broadcasts, and on the order of its sums.  Python packages onnx, onnxruntime, numpy.
"""
import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TYPES = {"u8": (np.uint8, TensorProto.UINT8, 121), "i8": (np.int8, TensorProto.INT8, -7)}


class Case:
    """A graph that grows by nodes, each with an output of its own."""

    def __init__(self, op, seed):
        self.op, self.random = op, np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs, self.tensors, self.arrays = [], [], [], [], {}

    def constant(self, array):
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def draw(self, kind, shape):
        dtype = TYPES[kind][0]
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def input(self, kind, shape, array=None):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[kind][1], shape))
        self.arrays[name] = self.draw(kind, shape) if array is None else array
        return name

    def scale(self, kind, scale, zero="some"):
        """The names of a scale and a zero point, "" without one."""
        dtype, _, some = TYPES[kind]
        zero = some if zero == "some" else zero
        return [self.constant(np.float32(scale)), "" if zero is None else self.constant(dtype(zero))]

    def node(self, kind, inputs, elem_type=None, **attributes):
        name = f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node(self.op, inputs, [name], f"{self.op} {len(self.nodes)}", domain="com.microsoft", **attributes))
        self.outputs.append(helper.make_tensor_value_info(name, elem_type or TYPES[kind][1], None))

    def surround(self, op, inputs, result, elem_type=TensorProto.UINT8, **attributes):
        """An operator on floats: inputs are names of values, or of a value, a scale and a zero point with the axis of these,
        and the result is quantised by the scale and the zero point, or has none."""
        name, names = f"y{len(self.outputs)}", []
        for i, given in enumerate(inputs):
            names.append(given if isinstance(given, str) else f"{name}.{i}")
            if not isinstance(given, str):
                *parts, axis = given
                self.nodes.append(helper.make_node("DequantizeLinear", parts, [names[-1]], axis=axis))
        self.nodes.append(helper.make_node(op, names, [f"{name}.float" if result else name], f"{op} {name}", **attributes))
        if result:
            self.nodes.append(helper.make_node("QuantizeLinear", [f"{name}.float", *result], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, elem_type, None))
        return name

    def write(self, folder):
        graph = helper.make_graph(self.nodes, self.op, self.inputs, self.outputs, self.tensors)
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        found = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, self.arrays)
        data = folder / self.op / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        (folder / self.op / "model.onnx").write_bytes(model.SerializeToString())
        for i, (name, array) in enumerate(self.arrays.items()):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
        for i, array in enumerate(found):
            (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(array, f"y{i}").SerializeToString())


def write_pair(op, seed, scale):
    """Of one shape, broadcast from either side, with a single number, with itself."""
    case = Case(op, seed)
    for kind in TYPES:
        x = case.input(kind, [2, 3, 17])
        x_scale, y_scale = case.scale(kind, 0.0371), case.scale(kind, scale, 3)
        for shape in [2, 3, 17], [3, 1], [17], []:
            other = case.constant(case.draw(kind, shape))
            case.node(kind, [x, *x_scale, other, *case.scale(kind, 0.0213, 11), *y_scale])
            case.node(kind, [other, *case.scale(kind, 0.0213, 11), x, *x_scale, *y_scale])
        case.node(kind, [x, *case.scale(kind, 0.0371, 0), x, *case.scale(kind, 0.1, 0), *case.scale(kind, scale, 0)])
    return case


def write_map(op, seed, scale, **attributes):
    case = Case(op, seed)
    for kind in TYPES:
        every = np.arange(256).astype(TYPES[kind][0]).reshape(2, 128)
        x = case.input(kind, [2, 128], every)
        for x_scale in 0.01, 0.043, 0.5:
            case.node(kind, [x, *case.scale(kind, x_scale), *case.scale(kind, scale, 5)], **attributes)
        case.node(kind, [x, *case.scale(kind, 0.043, None), *case.scale(kind, scale, None)], **attributes)
    return case


def write_concat(seed):
    case = Case("QLinearConcat", seed)
    for kind in TYPES:
        a, b, c = (case.input(kind, [2, n, 5]) for n in (3, 1, 4))
        y, other = case.scale(kind, 0.05), case.scale(kind, 0.031, 2)
        case.node(kind, [*y, a, *y, b, *other, c, *case.scale(kind, 0.17, 0)], axis=1)
        case.node(kind, [*other, a, *y], axis=0)
        case.node(kind, [*y, a, *other, a, *y], axis=-1)
    return case


def write_global_pool(seed):
    case = Case("QLinearGlobalAveragePool", seed)
    for kind in TYPES:
        x = case.input(kind, [2, 19, 7, 5])
        case.node(kind, [x, *case.scale(kind, 0.05), *case.scale(kind, 0.011, 1)], channels_last=0)
        case.node(kind, [x, *case.scale(kind, 0.05), *case.scale(kind, 0.05)], channels_last=0)
        case.node(kind, [x, *case.scale(kind, 0.05), *case.scale(kind, 0.011, 1)], channels_last=1)
        case.node(kind, [case.input(kind, [1, 3, 9]), *case.scale(kind, 0.05), *case.scale(kind, 0.02, 0)], channels_last=0)
    return case


def write_pool(seed):
    case = Case("QLinearAveragePool", seed)
    for kind in TYPES:
        x = case.input(kind, [2, 3, 9, 8])
        scales = [*case.scale(kind, 0.0533), *case.scale(kind, 0.0217, 4)]
        case.node(kind, [x, *scales], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        case.node(kind, [x, *scales], kernel_shape=[3, 2], pads=[1, 0, 1, 1], count_include_pad=1)
        case.node(kind, [x, *scales], kernel_shape=[3, 3], strides=[2, 3], ceil_mode=1)
        case.node(kind, [x, *scales], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
        case.node(kind, [x, *scales], kernel_shape=[9, 8])
        case.node(kind, [case.input(kind, [1, 9, 8, 3]), *scales], kernel_shape=[3, 3], channels_last=1)
        case.node(kind, [case.input(kind, [1, 2, 11]), *case.scale(kind, 0.0533, 0), *case.scale(kind, 0.0217, 0)], kernel_shape=[3])
    return case


def write_softmax(seed):
    """Signed probabilities stay below 1, which has no step there: ONNX Runtime wraps it around."""
    case = Case("QLinearSoftmax", seed)
    for kind in TYPES:
        x = case.input(kind, [3, 4, 6])
        y = case.scale(kind, 1 / 256, 0 if kind == "u8" else -128)
        for attributes in {"axis": -1, "opset": 13}, {"axis": 1, "opset": 13}, {"axis": 1, "opset": 11}, {"opset": 13}:
            case.node(kind, [x, *case.scale(kind, 0.01), *y], **attributes)
        case.node(kind, [x, *case.scale(kind, 0.02), *case.scale(kind, 0.0117, 1)], axis=-1, opset=13)
    return case


def write_gemm(seed):
    case = Case("QGemm", seed)
    for a, b in ("u8", "i8"), ("u8", "u8"), ("i8", "i8"):
        x, weights = case.input(a, [5, 12]), case.draw(b, [12, 9])
        x_scale, y_scale = case.scale(a, 0.02), case.scale(a, 0.9, 3)
        single, columns = case.scale(b, 0.03, 0), [case.constant(case.random.uniform(0.01, 0.05, 9).astype(np.float32))]
        columns.append(case.constant(case.random.integers(0, 9, 9).astype(TYPES[b][0])))
        bias = case.random.integers(-9000, 9000, [5, 9]).astype(np.int32)
        k, turned = case.constant(weights), case.constant(np.ascontiguousarray(weights.T))
        case.node(a, [x, *x_scale, k, *single, "", *y_scale])
        case.node(a, [x, *x_scale, k, *columns, case.constant(bias[0]), *y_scale])
        case.node(a, [x, *x_scale, turned, *columns, case.constant(bias), *y_scale], transB=1, alpha=0.7)
        case.node(a, [x, *x_scale, k, *columns, case.constant(bias[:, :1])], elem_type=TensorProto.FLOAT)
        case.node(a, [case.input(a, [12, 5]), *x_scale, k, *single, "", *y_scale], transA=1)
    return case


def write_qdq(seed):
    """Scales are powers of two: floats are exact, and so in integers as they are."""
    case = Case("QDQ", seed)
    image, other, matrix = case.input("u8", [2, 4, 6, 6]), case.input("u8", [2, 4, 6, 6]), case.input("u8", [5, 12])
    x, b = case.scale("u8", 2**-4, 115), case.scale("u8", 2**-3, 7)
    y, one = case.scale("u8", 2.0, 130), case.constant(np.int8(0))
    columns = lambda n: [case.constant((2.0 ** case.random.integers(-6, -3, n)).astype(np.float32)), case.constant(np.zeros(n, np.int8))]
    numbers = lambda shape: case.constant(case.random.integers(-3000, 3000, shape).astype(np.int32))
    images = lambda i, scale: (i, *scale, 1)

    kernel, scales = case.constant(case.draw("i8", [3, 4, 3, 3])), columns(3)
    sums = case.constant((2.0**-4 * np.frombuffer(case.tensors[-2].raw_data, np.float32)).astype(np.float32))
    bias = (numbers([3]), sums, case.constant(np.zeros(3, np.int32)), 0)
    case.surround("Conv", [images(image, x), (kernel, *scales, 0), bias], y, pads=[1, 1, 1, 1], strides=[2, 2])
    case.surround("Conv", [images(image, x), (kernel, *scales, -4)], y)
    case.surround("Conv", [images(image, x), (case.constant(case.draw("i8", [4, 1, 3, 3])), case.constant(np.float32(0.5)), one, 0)], y, group=4)
    weights = case.constant(case.draw("i8", [12, 9]))
    case.surround("MatMul", [images(matrix, x), (weights, *columns(9), -1)], y)
    case.surround("Gemm", [images(matrix, x), (case.constant(case.draw("u8", [9, 12])), *case.scale("u8", 2**-5, 128), 0),
                           (numbers([9]), case.constant(np.float32(2**-9)), case.constant(np.int32(0)), 0)], y, transB=1, beta=1.0)  # fmt: skip
    case.surround("Gemm", [images(matrix, x), (weights, *case.scale("i8", 2**-5, 0), 0),
                           (numbers([9]), case.constant(np.float32(2**-10)), case.constant(np.int32(0)), 0)], y, alpha=0.5)  # fmt: skip
    case.surround("Add", [images(image, x), images(other, b)], case.scale("u8", 2**-2, 90))
    case.surround("Mul", [images(image, x), images(case.constant(case.draw("u8", [4, 1, 1])), b)], y)
    case.surround("Concat", [images(image, x), images(other, b), images(image, b)], x, axis=1)
    case.surround("AveragePool", [images(image, x)], case.scale("u8", 2**-6, 7), kernel_shape=[2, 2], strides=[2, 2])
    case.surround("GlobalAveragePool", [images(case.input("u8", [1, 3, 4, 4]), x)], b)
    case.surround("Sigmoid", [images(image, x)], case.scale("u8", 2**-8, 0))
    case.surround("LeakyRelu", [images(image, x)], b, alpha=0.5)
    case.surround("MaxPool", [images(image, x)], x, kernel_shape=[2, 2])
    case.surround("Reshape", [images(image, x), case.constant(np.array([2, -1], np.int64))], x)
    case.surround("Transpose", [images(image, x)], x, perm=[0, 2, 3, 1])

    # What stays an operator on floats: scales that disagree, a summand of floats, half a summand, another scale behind what only
    # moves elements, a result that something else reads, and one that is not quantised.
    case.surround("Conv", [images(image, x), (kernel, *scales, 0), (bias[0], case.constant(np.full(3, 2.0**-3, np.float32)), *bias[2:])], y)
    case.surround("Conv", [images(image, x), (kernel, *scales, 0), case.constant(np.float32([1, 2, 3]))], y)
    case.surround("Gemm", [images(matrix, x), (weights, *case.scale("i8", 2**-5, 0), 0), case.constant(np.zeros(9, np.float32))], y, beta=0.5)
    same = case.constant(case.draw("i8", [1, 5, 5]))
    case.surround("MatMul", [images(case.input("u8", [2, 5]), x), (same, *columns(5), 1)], y)
    square, rows = case.constant(np.int32([[9, -7], [300, 41]])), np.float32([2**-8, 2**-7])
    case.surround("Gemm", [images(case.input("u8", [2, 3]), x), (case.constant(case.draw("i8", [3, 2])), case.constant(rows * 16), case.constant(np.zeros(2, np.int8)), 1),
                           (square, case.constant(rows), case.constant(np.zeros(2, np.int32)), 0)], y)  # fmt: skip
    case.surround("AveragePool", [images(image, x)], case.scale("u8", 2**-6, 7), kernel_shape=[4, 4], strides=[4, 4], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1)
    case.surround("MaxPool", [images(image, x)], b, kernel_shape=[2, 2])
    read = case.surround("Mul", [images(image, x), images(other, b)], y)
    case.surround("Relu", [f"{read}.float"], None, TensorProto.FLOAT)
    case.surround("MatMul", [images(matrix, x), (weights, *columns(9), 1)], None, TensorProto.FLOAT)
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for case in (
        write_pair("QLinearAdd", 1, 0.0507),
        write_pair("QLinearMul", 2, 0.0809),
        write_map("QLinearSigmoid", 3, 1 / 256),
        write_map("QLinearLeakyRelu", 4, 0.031, alpha=0.3),
        write_concat(5),
        write_global_pool(6),
        write_pool(7),
        write_softmax(8),
        write_gemm(9),
        write_qdq(10),
    ):
        case.write(folder)


if __name__ == "__main__":
    main()
