#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Writes files that are refused, tests/tflite/refused/NAME.tflite, and refused.tsv: the name, the id of the diagnostic, and a part of
its message, in which faults of a node have the name of its operator.

  write_refused.py FOLDER
"""
import argparse
import math
import struct
from pathlib import Path

import write_cases as cases
from flatbuffer import Vector, Writer

REFUSED = {}


def refused(name, diagnostic, part):
    """The function that it decorates makes a graph or the bytes of a file."""

    def add(make):
        REFUSED[name] = diagnostic, part, make
        return make

    return add


def small_conv():
    return cases.conv(1, [1, 3, 3, 2], [3, 1, 1, 2], [1, 3, 3, 3])


def small_add():
    return cases.pair(1, "ADD", [1, 4], [1, 4], [1, 4])


def scale_of(graph, tensor, scales, zeros=None, axis=None):
    graph.tensors[tensor][4] = {2: Vector("f", scales), 3: Vector("q", [0] * len(scales) if zeros is None else zeros)}
    if axis is not None:
        graph.tensors[tensor][4][6] = ("i", axis)
    return graph


# --- scales: tensors of small_conv are x 0, weights 1, bias 2, y 3 ---

for _name, _scale in {"zero": 0.0, "negative": -0.5, "infinite": math.inf, "nan": math.nan}.items():
    for _tensor, _what in {0: "x0", 1: "t1", 3: "y0"}.items():
        refused(f"scale_{_name}_{_what}", "onnx-scale", "(tflite.CONV_2D, version 3): a scale of")(
            lambda scale=_scale, tensor=_tensor: scale_of(small_conv(), tensor, [scale]))
    refused(f"scale_{_name}_add", "onnx-scale", "(tflite.ADD, version 2): a scale of")(lambda scale=_scale: scale_of(small_add(), 1, [scale]))
for _name, _zero in {"low": -129, "high": 128, "far": 1 << 40}.items():
    refused(f"zero_{_name}", "onnx-scale", "(tflite.CONV_2D, version 3): a zero point of 'x0'")(lambda zero=_zero: scale_of(small_conv(), 0, [0.5], [zero]))
refused("zero_of_weights", "onnx-scale", "CONV_2D, version 3): its weights have the zero point 4")(lambda: scale_of(small_conv(), 1, [0.5], [4]))
refused("zero_of_bias", "onnx-scale", "CONV_2D, version 3): a zero point of 't2'")(lambda: scale_of(small_conv(), 2, [0.5], [4]))
refused("axis_count", "onnx-scale", "CONV_2D, version 3): 't1' has 2 scales, and its axis 0 has 3 elements")(lambda: scale_of(small_conv(), 1, [0.5] * 2, axis=0))
refused("axis_wrong", "onnx-scale", "CONV_2D, version 3): its weights have scales for axis 3")(lambda: scale_of(small_conv(), 1, [0.5] * 2, axis=3))
refused("axis_outside", "onnx-scale", "CONV_2D, version 3): 't1' has scales for its axis 4, and 4 axes")(lambda: scale_of(small_conv(), 1, [0.5] * 3, axis=4))
refused("zeros_count", "bad-tflite", "3 scales and 2 zero points")(lambda: scale_of(small_conv(), 1, [0.5] * 3, [0] * 2, axis=0))
refused("many_scales_of_value", "onnx-scale", "CONV_2D, version 3): 'x0' is of type int8 and has 2 scales")(lambda: scale_of(small_conv(), 0, [0.5] * 2, axis=3))
refused("bias_scale", "onnx-scale", "CONV_2D, version 3): its scales disagree: that of its bias")(lambda: scale_of(small_conv(), 2, [0.5] * 3, axis=0))
refused("factor_large", "onnx-scale", "CONV_2D, version 3): its scales disagree: its sums would be multiplied")(
    lambda: linked([0, 1, -1], [3], scale_of(scale_of(small_conv(), 3, [1e-30]), 1, [1e30] * 3, axis=0)))


def without_scale():
    graph = small_conv()
    del graph.tensors[0][4]
    return graph


refused("scale_absent", "onnx-scale", "CONV_2D, version 3): 'x0' is of type int8 and has 0 scales")(without_scale)


def retyped(graph, tensor, kind):
    graph.tensors[tensor][1] = ("b", {"f32": 0, "i32": 2, "u8": 3, "i64": 4, "i16": 7, "i8": 9, "new": 99}[kind])
    return graph


refused("bias_type", "onnx-type", "CONV_2D, version 3): its bias is of type float")(lambda: retyped(small_conv(), 2, "f32"))
refused("weights_type", "onnx-type", "CONV_2D, version 3): its input is of type int8 and its weights of type uint8")(lambda: retyped(small_conv(), 1, "u8"))
refused("legacy", "onnx-type", "ADD, version 2): it takes float and int8 here, not uint8, which is of the legacy scheme")(
    lambda: retyped(retyped(retyped(scale_of(scale_of(scale_of(small_add(), 0, [0.5]), 1, [0.5]), 2, [0.5]), 0, "u8"), 1, "u8"), 2, "u8"))
refused("sixteen_bits", "onnx-type", "ADD, version 2): it takes float and int8 here, not int16")(
    lambda: retyped(retyped(retyped(small_add(), 0, "i16"), 1, "i16"), 2, "i16"))
refused("mixed_types", "onnx-type", "ADD, version 2): 'y0' is of type float, and it computes in int8 here")(lambda: retyped(small_add(), 2, "f32"))
for _name, _op, _options in (("concat", "CONCATENATION", {0: ("i", 1)}), ("max_pool", "MAX_POOL_2D", {1: ("i", 1), 2: ("i", 1), 3: ("i", 1), 4: ("i", 1)})):
    refused(f"disagreeing_{_name}", "onnx-scale", f"({'tflite.' + _op}, version 2): input 0 has the scale")(
        lambda op=_op, options=_options: cases.single(1, op, [1, 2, 2, 2], scale=0.05, out=(0.06, -3), options=options))
refused("disagreeing_reshape", "onnx-scale", "RESHAPE, version 1): input 0 has the scale")(
    lambda: cases.single(1, "RESHAPE", [2, 2], [4], out=(0.05, -4), version=1, options={0: Vector("i", [4])}, more=[[4]]))
refused("disagreeing_pad", "onnx-scale", "PAD, version 2): input 0 has the scale")(
    lambda: cases.single(1, "PAD", [2, 2], [4, 4], out=(0.05, -4), options={}, more=[[[1, 1], [1, 1]]]))
refused("disagreeing_logistic", "onnx-scale", "LOGISTIC, version 2): its result has the scale 0.05")(lambda: cases.single(1, "LOGISTIC", [2, 2]))
refused("disagreeing_add", "onnx-scale", "ADD, version 2): its scales disagree")(lambda: scale_of(small_add(), 2, [1e-9]))


# --- operators ---

def with_operator(name, version=1, custom=None):
    graph = cases.Case(1)
    graph.operator(name, [graph.input([2, 2])], [graph.output([2, 2])], None, version)
    root = graph.root()
    if custom:
        root[1][0][1] = custom
    return Writer().finish(root)


refused("operator_unknown", "onnx-operator", "node 0 (tflite.FLOOR, version 1): there is no such operator here")(lambda: with_operator("FLOOR"))
refused("operator_late", "onnx-operator", "node 0 (tflite.CUMSUM, version 1): there is no such operator here")(lambda: with_operator("CUMSUM"))
refused("operator_custom", "onnx-operator", "node 0 'Detect' (tflite.CUSTOM, version 1): there is no such operator here")(
    lambda: with_operator("CUSTOM", custom="Detect"))
refused("operator_version", "onnx-operator", "node 0 (tflite.RELU, version 9): the operator is not imported from this version")(lambda: with_operator("RELU", 9))


def with_options(graph, **options):
    graph.operators[0][4].update({int(k[1:]): v for k, v in options.items()})
    return graph


refused("activation", "onnx-attribute", "CONV_2D, version 3): the activation 4")(lambda: with_options(small_conv(), _3=("b", 4)))
refused("stride", "onnx-attribute", "CONV_2D, version 3): a stride, a dilation")(lambda: with_options(small_conv(), _1=("i", 0)))
refused("stride_negative", "onnx-attribute", "CONV_2D, version 3): a stride, a dilation")(lambda: with_options(small_conv(), _2=("i", -2)))
refused("stride_large", "onnx-attribute", "CONV_2D, version 3): a stride, a dilation")(lambda: with_options(small_conv(), _1=("i", 1 << 30)))
refused("padding", "onnx-attribute", "CONV_2D, version 3): its padding is neither")(lambda: with_options(small_conv(), _0=("b", 7)))
refused("pool_large", "onnx-attribute", "MAX_POOL_2D, version 2): a stride, a dilation or an extent")(
    lambda: cases.pool(1, "MAX_POOL_2D", [1, 3, 3, 1], [1, 3, 3, 1], (2000000000, 2000000000)))
refused("disagreeing_border", "onnx-scale", "PADV2, version 2): input 2 has the scale")(
    lambda: scale_of((graph := cases.pad_with(1)), graph.operators[0][1].numbers[2], [7.0], [100]))
refused("shuffled", "onnx-attribute", "FULLY_CONNECTED, version 5): its weights are shuffled")(
    lambda: with_options(cases.fully(1, [2, 3], 2, [2, 2]), _1=("b", 1)))
refused("options_other", "bad-tflite", "operator 0, CONV_2D, has options 2")(lambda: other_options())


def other_options():
    graph = small_conv()
    graph.operators[0][3] = ("B", 2)
    return graph


def reshaped(graph, tensor, shape):
    graph.tensors[tensor][0] = Vector("i", shape)
    return graph


refused("channels", "onnx-shape", "CONV_2D, version 3): its weights are for 2 channels, and its input has 3")(lambda: reshaped(small_conv(), 0, [1, 3, 3, 3]))
refused("rank", "onnx-shape", "CONV_2D, version 3): its input has 3 axes")(lambda: reshaped(small_conv(), 0, [3, 3, 2]))
refused("bias_shape", "onnx-shape", "CONV_2D, version 3): its bias has not one number")(lambda: reshaped(scale_of(small_conv(), 2, [0.5]), 2, [1, 3]))
refused("lstm_float", "onnx-type", "UNIDIRECTIONAL_SEQUENCE_LSTM, version 1): it computes in f32")(
    lambda: float_lstm())
refused("lstm_cell_scale", "onnx-scale", "UNIDIRECTIONAL_SEQUENCE_LSTM, version 1): its cells have the scale 0.3")(lambda: lstm_with_cells([0.3]))
refused("lstm_state", "onnx-scale", "UNIDIRECTIONAL_SEQUENCE_LSTM, version 1): its scales disagree")(lambda: lstm_with_result([0.3]))


def lstm_with_constant(state):
    graph = small_lstm()
    tensor = graph.tensors[graph.operators[0][1].numbers[state]]
    del tensor[5]
    tensor[2] = ("I", len(graph.buffers))
    graph.buffers.append({0: bytes(2 if state == 18 else 4)})
    return graph


def small_lstm():
    return cases.lstm(1, batch=1, steps=2, inputs=2, cells=2)


for _name, _state in {"hidden": 18, "cells": 19}.items():
    refused(f"lstm_constant_{_name}", "onnx-graph", "UNIDIRECTIONAL_SEQUENCE_LSTM, version 1): its input")(lambda state=_state: lstm_with_constant(state))


def float_lstm():
    graph = small_lstm()
    return retyped(retyped(graph, graph.inputs[0], "f32"), graph.outputs[0], "f32")


def lstm_with_cells(scales):
    graph = small_lstm()
    return scale_of(graph, graph.operators[0][1].numbers[19], scales)


def lstm_with_result(scales):
    graph = small_lstm()
    return scale_of(graph, graph.outputs[0], scales)


# --- the graph ---

def linked(inputs=None, outputs=None, graph=None):
    graph = graph or small_add()
    graph.operators[0][1] = Vector("i", inputs or [0, 1])
    graph.operators[0][2] = Vector("i", outputs or [2])
    return graph


refused("tensor_outside", "bad-tflite", "the inputs of an operator name the tensor 7 of 3")(lambda: linked([0, 7]))
refused("tensor_negative", "bad-tflite", "the inputs of an operator name the tensor -2 of 3")(lambda: linked([0, -2]))
refused("tensor_of_itself", "onnx-graph", "ADD, version 2): tensor 2 'y0' is its input, and no operator before it computes it")(lambda: linked([0, 2]))
refused("tensor_twice", "onnx-graph", "ADD, version 2): tensor 0 'x0' is its output, and something else defines it")(lambda: linked(None, [0]))
refused("input_left_out", "onnx-operator", "ADD, version 2): input 1, which it needs, is left out")(lambda: linked([0, -1]))


def with_graph(**fields):
    graph = small_add()
    root = graph.root()
    root[2][0].update({int(k[1:]): v for k, v in fields.items()})
    return Writer().finish(root)


refused("input_twice", "bad-tflite", "input 1 of the graph is none, a constant, or another input")(lambda: with_graph(_1=Vector("i", [0, 0])))
refused("output_uncomputed", "bad-tflite", "no operator computes output 0 of the graph")(
    lambda: with_graph(_2=Vector("i", [-1])))
refused("field_unknown", "bad-tflite", "has a field 30 that is not known")(lambda: with_graph(_30=("i", 1)))
refused("code_outside", "bad-tflite", "operator 0 has the code 9 of 1")(lambda: coded(9))
refused("type_new", "onnx-type", "'x0' has elements of type unknown")(lambda: unscaled_types())


def coded(number):
    graph = small_add()
    graph.operators[0][0] = ("I", number)
    return graph


def unscaled_types():
    graph = small_add()
    for tensor in graph.tensors:
        tensor.pop(4)
        tensor[1] = ("b", 99)
    return graph


def with_buffer(size):
    graph = small_conv()
    graph.buffers[1] = {0: bytes(size)}
    return graph


refused("buffer_short", "bad-tflite", "'t1' has 5 bytes of elements")(lambda: with_buffer(5))
refused("buffer_outside", "bad-tflite", "'t1' has the buffer 9 of 3")(lambda: with_tensor_field(1, 2, ("I", 9)))
refused("extent_negative", "bad-tflite", "axis 0 of 't1' has the negative extent -1")(lambda: reshaped(small_conv(), 1, [-1, 1, 1, 2]))
refused("axes_many", "bad-tflite", "'t1' has 17 axes")(lambda: reshaped(small_conv(), 1, [1] * 17))
refused("elements_many", "bad-tflite", "'t1' has 6 bytes of elements")(lambda: reshaped(small_conv(), 1, [2 ** 31 - 1] * 4))
refused("name_bytes", "bad-tflite", "the text 'name'")(lambda: with_tensor_field(0, 3, Vector("B", b"\xff\xfe\0"[:2])))
refused("sparse", "bad-tflite", "has a field 6 that is not known")(lambda: with_tensor_field(1, 6, {}))
refused("details", "bad-tflite", "has details")(lambda: with_details())


def with_tensor_field(tensor, field, value):
    graph = small_conv()
    graph.tensors[tensor][field] = value
    return graph


def with_details():
    graph = small_conv()
    graph.tensors[0][4][4] = ("B", 1)
    return graph


# --- bytes ---

def changed(change, graph=None):
    data = bytearray((graph or small_add()).save())
    change(data)
    return bytes(data)


def put(data, at, form, number):
    struct.pack_into("<" + form, data, at, number)


def root_of(data):
    return struct.unpack_from("<I", data)[0]


def field_of(data, table, number):
    """Where a field of a table is."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    return table + struct.unpack_from("<H", data, fields + 4 + 2 * number)[0]


def follow(data, at):
    return at + struct.unpack_from("<I", data, at)[0]


refused("magic", "bad-tflite", "does not begin as a file of TensorFlow Lite")(lambda: changed(lambda d: put(d, 4, "B", 0)))
refused("empty", "bad-tflite", "does not begin as a file of TensorFlow Lite")(lambda: b"")
refused("root_outside", "bad-tflite", "the offset at byte 0, of the root, leads out of the file")(lambda: changed(lambda d: put(d, 0, "I", 1 << 30)))
refused("root_unaligned", "bad-tflite", "leads out of the file or to no multiple of 4")(lambda: changed(lambda d: put(d, 0, "I", root_of(d) + 2)))
refused("fields_outside", "bad-tflite", "are outside of the file")(lambda: changed(lambda d: put(d, root_of(d), "i", 1 << 30)))
refused("fields_behind", "bad-tflite", "are outside of the file")(lambda: changed(lambda d: put(d, root_of(d), "i", -(1 << 30))))
refused("fields_size", "bad-tflite", "have no proper size")(
    lambda: changed(lambda d: put(d, root_of(d) - struct.unpack_from("<i", d, root_of(d))[0], "H", 0xffff)))
refused("table_long", "bad-tflite", "leaves the file")(
    lambda: changed(lambda d: put(d, root_of(d) - struct.unpack_from("<i", d, root_of(d))[0] + 2, "H", 0xfffc)))
refused("field_outside", "bad-tflite", "leaves the table")(
    lambda: changed(lambda d: put(d, root_of(d) - struct.unpack_from("<i", d, root_of(d))[0] + 4, "H", 0x400)))
refused("list_long", "bad-tflite", "leaves the file")(lambda: changed(lambda d: put(d, follow(d, field_of(d, root_of(d), 1)), "I", 1 << 29)))
refused("list_huge", "bad-tflite", "leaves the file")(lambda: changed(lambda d: put(d, follow(d, field_of(d, root_of(d), 1)), "I", 0xffffffff)))
refused("version", "bad-tflite", "it is of version 2 of the format")(lambda: changed(lambda d: put(d, field_of(d, root_of(d), 0), "I", 2)))
refused("cut", "bad-tflite", "")(lambda: small_add().save()[:-20])


def overlap(data):
    """The first two tensors become one table, which is reached twice."""
    graph = follow(data, follow(data, field_of(data, root_of(data), 2)) + 4)
    tensors = follow(data, field_of(data, graph, 0))
    put(data, tensors + 4, "I", follow(data, tensors + 8) - (tensors + 4))


def recurse(data):
    """The list of operators leads to the list of tensors, whose tables are read as operators."""
    graph = follow(data, follow(data, field_of(data, root_of(data), 2)) + 4)
    put(data, field_of(data, graph, 3), "I", follow(data, field_of(data, graph, 0)) - field_of(data, graph, 3))


def backwards(data):
    """An offset that a signed one would take back to the root."""
    graph = follow(data, follow(data, field_of(data, root_of(data), 2)) + 4)
    place = field_of(data, graph, 0)
    put(data, place, "I", (root_of(data) - place) & 0xffffffff)


refused("overlap", "bad-tflite", "overlaps something else, or is reached twice")(lambda: changed(overlap))
refused("recursion", "bad-tflite", "overlaps something else, or is reached twice")(lambda: changed(recurse))
refused("backwards", "bad-tflite", "leads out of the file")(lambda: changed(backwards))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, (diagnostic, part, make) in REFUSED.items():
        model = make()
        (folder / f"{name}.tflite").write_bytes(model if isinstance(model, bytes) else model.save())
        lines.append(f"{name}\t{diagnostic}\t{part}\n")
    (folder / "refused.tsv").write_text("".join(lines))


if __name__ == "__main__":
    main()
