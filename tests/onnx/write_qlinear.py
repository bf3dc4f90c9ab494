#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Writes the graphs of tests/onnx/qlinear and what ONNX Runtime computes of them: a folder for each operator of the domain
com.microsoft, in the form of the standard's cases.

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
    ):
        case.write(folder)


if __name__ == "__main__":
    main()
