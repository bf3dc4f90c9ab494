# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Writes FlatBuffers, and TensorFlow Lite models in them, with nothing but Python's own library.

A table is a dict from the number of a field to its value: a pair (format of struct, number), a `Vector`, a `str`, bytes,
another table, or a list of tables or strings.
"""
import struct
from dataclasses import dataclass

TYPES = {"f32": 0, "i32": 2, "u8": 3, "i64": 4, "bool": 6, "i16": 7, "i8": 9}
# BuiltinOperator, and the number and name of its options.
OPERATORS = {
    "ADD": (0, 11), "AVERAGE_POOL_2D": (1, 5), "CONCATENATION": (2, 10), "CONV_2D": (3, 1), "DEPTHWISE_CONV_2D": (4, 2),
    "FLOOR": (8, 0), "FULLY_CONNECTED": (9, 8), "LOGISTIC": (14, 0), "MAX_POOL_2D": (17, 5), "MUL": (18, 21), "RELU": (19, 0),
    "RELU6": (21, 0), "RESHAPE": (22, 17), "SOFTMAX": (25, 9), "TANH": (28, 0), "CUSTOM": (32, 0), "PAD": (34, 22),
    "MEAN": (40, 27), "UNIDIRECTIONAL_SEQUENCE_LSTM": (44, 71), "PADV2": (60, 43), "CUMSUM": (128, 0), "DEQUANTIZE": (6, 38), "QUANTIZE": (114, 89),
}


@dataclass
class Vector:
    """Numbers of a format of struct."""

    format: str
    numbers: object


class Writer:
    def __init__(self, identifier=b"TFL3"):
        self.bytes = bytearray(b"\0\0\0\0" + identifier)

    def align(self, n, ahead=0):
        self.bytes += b"\0" * (-(len(self.bytes) + ahead) % n)

    def finish(self, root):
        struct.pack_into("<I", self.bytes, 0, self.put(root))
        return bytes(self.bytes)

    def put(self, value):
        """Writes what offsets lead to, and returns where it is."""
        if isinstance(value, dict):
            return self.put_table(value)
        if isinstance(value, list):
            return self.put_offsets(value)
        if isinstance(value, str):
            value = Vector("B", value.encode() + b"\0")
            return self.put_numbers(value, len(value.numbers) - 1)
        if isinstance(value, bytes):
            self.align(16, 4)
            return self.put_numbers(Vector("B", value), len(value))
        return self.put_numbers(value, len(value.numbers))

    def put_numbers(self, vector, count):
        size = struct.calcsize("<" + vector.format)
        self.align(4)
        self.align(size, 4)
        at = len(self.bytes)
        self.bytes += struct.pack("<I", count)
        if isinstance(vector.numbers, bytes):
            self.bytes += vector.numbers
        else:
            self.bytes += struct.pack(f"<{len(vector.numbers)}{vector.format}", *vector.numbers)
        return at

    def put_offsets(self, values):
        self.align(4)
        at = len(self.bytes)
        self.bytes += struct.pack("<I", len(values)) + bytes(4 * len(values))
        for i, value in enumerate(values):
            self.link(at + 4 + 4 * i, value)
        return at

    def link(self, field, value):
        struct.pack_into("<I", self.bytes, field, self.put(value) - field)

    def put_table(self, fields):
        formats = {k: v[0] if isinstance(v, tuple) else "I" for k, v in fields.items()}
        offsets, size = {}, 4
        for k in sorted(fields, key=lambda k: -struct.calcsize("<" + formats[k])):
            width = struct.calcsize("<" + formats[k])
            size += -size % width
            offsets[k], size = size, size + width
        entries = [offsets.get(k, 0) for k in range(max(fields, default=-1) + 1)]
        self.align(2)
        vtable = len(self.bytes)
        self.bytes += struct.pack(f"<HH{len(entries)}H", 4 + 2 * len(entries), size, *entries)
        self.align(8)
        at = len(self.bytes)
        self.bytes += struct.pack("<i", at - vtable) + bytes(size - 4)
        for k, v in fields.items():
            if isinstance(v, tuple):
                struct.pack_into("<" + v[0], self.bytes, at + offsets[k], v[1])
        for k, v in fields.items():
            if not isinstance(v, tuple):
                self.link(at + offsets[k], v)
        return at


class Graph:
    """A model of one subgraph while it grows."""

    def __init__(self):
        self.tensors, self.operators, self.codes, self.buffers = [], [], [], [{}]
        self.inputs, self.outputs = [], []

    def tensor(self, kind, shape, data=None, scale=None, zero=None, axis=None, variable=False, name=None):
        """The number of a new tensor; `data` is bytes, and scale and zero points are numbers or lists."""
        fields = {0: Vector("i", list(shape)), 1: ("b", TYPES[kind]), 2: ("I", 0), 3: name or f"t{len(self.tensors)}"}
        if data is not None:
            fields[2] = ("I", len(self.buffers))
            self.buffers.append({0: bytes(data)})
        if scale is not None:
            scales = scale if isinstance(scale, list) else [scale]
            zeros = zero if isinstance(zero, list) else [zero or 0] * len(scales)
            fields[4] = {2: Vector("f", scales), 3: Vector("q", zeros)}
            if axis is not None:
                fields[4][6] = ("i", axis)
        if variable:
            fields[5] = ("?", True)
        self.tensors.append(fields)
        return len(self.tensors) - 1

    def operator(self, name, inputs, outputs, options=None, version=1, intermediates=None):
        number, union = OPERATORS[name]
        code = (number, version)
        if code not in self.codes:
            self.codes.append(code)
        fields = {0: ("I", self.codes.index(code)), 1: Vector("i", inputs), 2: Vector("i", outputs)}
        if options is not None and union:
            fields[3] = ("B", union)
            fields[4] = options
        if intermediates is not None:
            fields[8] = Vector("i", intermediates)
        self.operators.append(fields)

    def root(self):
        codes = [{0: ("b", min(number, 127)), 2: ("i", version), 3: ("i", number)} for number, version in self.codes]
        graph = {0: self.tensors, 1: Vector("i", self.inputs), 2: Vector("i", self.outputs), 3: self.operators, 4: "main"}
        return {0: ("I", 3), 1: codes, 2: [graph], 3: "espalier", 4: self.buffers}

    def save(self):
        return Writer().finish(self.root())
