# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Writes ONNX files, field by field of the standard's onnx.proto, so that tests need no package."""
import struct

FLOAT, INT32, INT64, BOOL = 1, 6, 7, 9


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, payload):
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def tensor(name, elem_type, shape, elements=None, external=None):
    """TensorProto: floats or integers as raw bytes, or a place in another file, {"location": ...}."""
    letter = {FLOAT: "f", INT32: "i", INT64: "q", BOOL: "?"}[elem_type]
    out = b"".join(number(1, n) for n in shape) + number(2, elem_type) + data(8, name)
    if external is None:
        return out + data(9, struct.pack("<%d%s" % (len(elements), letter), *elements))
    for key, value in external.items():
        out += data(13, data(1, key) + data(2, str(value)))
    return out + number(14, 1)


def value(name, elem_type, shape):
    """ValueInfoProto; an extent is a number or a name."""
    dims = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in shape)
    return data(1, name) + data(2, data(1, number(1, elem_type) + data(2, dims)))


def attribute(name, n):
    """AttributeProto of an integer or of a tensor."""
    if isinstance(n, int):
        return data(1, name) + number(3, n) + number(20, 2)
    return data(1, name) + data(5, n) + number(20, 4)


def node(op, inputs, outputs, **attributes):
    return (
        b"".join(data(1, x) for x in inputs)
        + b"".join(data(2, x) for x in outputs)
        + data(4, op)
        + b"".join(data(5, attribute(k, v)) for k, v in attributes.items())
    )


def model(nodes, inputs, outputs, tensors=(), opset=13, name="graph"):
    """ModelProto of nodes, values and tensors."""
    graph = b"".join(data(1, n) for n in nodes) + data(2, name)
    graph += b"".join(data(5, t) for t in tensors)
    graph += b"".join(data(11, v) for v in inputs) + b"".join(data(12, v) for v in outputs)
    return number(1, 8) + data(7, graph) + data(8, data(1, "") + number(2, opset))
