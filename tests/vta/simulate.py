#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Another simulator, written from doc/vta.md alone: simulate.py STREAM MEMORY OUT runs a binary stream in its own order."""
import struct
import sys


def bits(word, offset, width):
    return word >> offset & (1 << width) - 1


def signed(value, width):
    return value - (1 << width) if value >> width - 1 else value


def wrap(value):
    return signed(value & 0xFFFFFFFF, 32)


class Device:
    def __init__(self, memory):
        self.memory = memory
        self.uop = [0] * 8192
        self.weight = [None] * 1024
        self.input = [None] * 2048
        self.accumulator = [[0] * 16 for _ in range(2048)]
        self.output = [[0] * 16 for _ in range(2048)]

    # Micro-ops, weights, inputs, accumulators: bytes of an entry, and how it is read.
    KINDS = ((4, "<I"), (256, "256b"), (16, "16b"), (64, "<16i"))

    def load(self, word):
        kind, at = bits(word, 7, 3), bits(word, 10, 16)
        rows, columns, stride = bits(word, 64, 16), bits(word, 80, 16), bits(word, 96, 16)
        above, below, left, right = (bits(word, offset, 4) for offset in (112, 116, 120, 124))
        size, form = self.KINDS[kind]
        bank = (self.uop, self.weight, self.input, self.accumulator)[kind]
        width = left + columns + right
        entries = [[0] * 16 for _ in range(above * width)]
        for y in range(rows):
            entries += [[0] * 16 for _ in range(left)]
            for x in range(columns):
                entry = struct.unpack_from(form, self.memory, (bits(word, 26, 32) + y * stride + x) * size)
                entries.append(entry[0] if kind == 0 else list(entry))
            entries += [[0] * 16 for _ in range(right)]
        entries += [[0] * 16 for _ in range(below * width)]
        bank[at : at + len(entries)] = entries

    def store(self, word):
        at = bits(word, 10, 16)
        for y in range(bits(word, 64, 16)):
            for x in range(bits(word, 80, 16)):
                struct.pack_into("16b", self.memory, (bits(word, 26, 32) + y * bits(word, 96, 16) + x) * 16, *self.output[at])
                at += 1

    def loop(self, word, step):
        for i in range(bits(word, 35, 14)):
            for j in range(bits(word, 49, 14)):
                for uop in self.uop[bits(word, 8, 13) : bits(word, 21, 14)]:
                    dst = bits(uop, 0, 11) + i * bits(word, 64, 11) + j * bits(word, 75, 11)
                    src = bits(uop, 11, 11) + i * bits(word, 86, 11) + j * bits(word, 97, 11)
                    self.accumulator[dst] = step(self.accumulator[dst], src, bits(uop, 22, 10), i, j)
                    self.output[dst] = [signed(v & 255, 8) for v in self.accumulator[dst]]

    def gemm(self, word):
        def step(sums, src, weight, i, j):
            if bits(word, 7, 1):
                return [0] * 16
            block = self.weight[weight + i * bits(word, 108, 10) + j * bits(word, 118, 10)]
            vector = self.input[src]
            return [wrap(sums[o] + sum(a * b for a, b in zip(block[16 * o : 16 * o + 16], vector))) for o in range(16)]

        self.loop(word, step)

    def alu(self, word):
        operation, immediate = bits(word, 108, 3), signed(bits(word, 112, 16), 16)

        def operate(a, b):
            if operation < 2:
                return max(a, b) if operation else min(a, b)
            if operation == 2:
                return wrap(a + b)
            places = signed(b & 31, 5)
            return a >> places if places >= 0 else wrap(a << -places)

        def step(values, src, _weight, _i, _j):
            other = [immediate] * 16 if bits(word, 111, 1) else self.accumulator[src]
            return [operate(a, b) for a, b in zip(values, other)]

        self.loop(word, step)

    def run(self, word):
        {0: self.load, 1: self.store, 2: self.gemm, 3: lambda _: None, 4: self.alu}[bits(word, 0, 3)](word)


def main(stream, memory, out):
    with open(stream, "rb") as file:
        data = file.read()
    with open(memory, "rb") as file:
        device = Device(bytearray(file.read()))
    if data[:8] != b"VTASTRM\x01":
        sys.exit("no stream")
    insns, segments, size = struct.unpack_from("<IIQ", data, 8)
    assert size == len(device.memory)
    table = 64 + 16 * insns
    at = table + 56 * segments
    for i in range(segments):
        role, _, begin, length = struct.unpack_from("<IIQQ", data, table + 56 * i + 32)
        if role < 2:
            device.memory[begin : begin + length] = data[at : at + length]
            at += length
    for i in range(insns):
        device.run(int.from_bytes(data[64 + 16 * i : 80 + 16 * i], "little"))
    with open(out, "wb") as file:
        file.write(device.memory)


if __name__ == "__main__":
    main(*sys.argv[1:])
