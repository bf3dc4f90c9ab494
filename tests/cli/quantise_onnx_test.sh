#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# ONNX files whose weights are quantised by rows of arrays, and such whose inputs nothing depends on.
. "${srcdir:-.}/tests/cli/support.sh"

if ! python3 -c 1 2>/dev/null; then
	tap_skip python3 "ONNX files"
	tap_done
	exit
fi
PYTHONPATH=$here python3 - "$tmp" <<'PY'
import struct
import sys

from onnx_file import FLOAT, model, node, tensor, value

folder = sys.argv[1]


def write(name, graph):
    with open(f"{folder}/{name}", "wb") as f:
        f.write(graph)


def numbers(n, seed):
    """From -0.5 to 0.5, by a linear congruence."""
    out = []
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % 2**31
        out.append(seed / 2**31 - 0.5)
    return out


def array(name, shape, elements):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join("%d, " % n for n in shape)
    head = text.encode().ljust(117) + b"\n"
    write(name, b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % len(elements), *elements))


weights = [("C", (16, 4, 3, 3)), ("G", (64, 32)), ("b", (32,)), ("M", (32, 16))]
tensors = []
for seed, (name, shape) in enumerate(weights):
    count = 1
    for n in shape:
        count *= n
    tensors.append(tensor(name, FLOAT, shape, numbers(count, seed)))
nodes = [
    node("Conv", ["x", "C"], ["c"]),
    node("Relu", ["c"], ["r"]),
    node("Flatten", ["r"], ["f"]),
    node("Gemm", ["f", "G", "b"], ["g"]),
    node("MatMul", ["g", "M"], ["y"]),
]
write("net.onnx", model(nodes, [value("x", FLOAT, (1, 4, 4, 4))], [value("y", FLOAT, (1, 16))], tensors))
array("x.npy", (20, 1, 4, 4, 4), numbers(20 * 64, 9))
array("wide.npy", (20, 1, 4, 4, 5), numbers(20 * 80, 9))
add = node("Add", ["k", "k"], ["y"])
write("none.onnx", model([add], [value("x", FLOAT, (2, "N"))], [value("y", FLOAT, (2,))], [tensor("k", FLOAT, (2,), [1, 2])]))
array("one.npy", (2, 3), numbers(6, 1))
array("three.npy", (3, 2, 3), numbers(18, 1))
array("other.npy", (3, 3), numbers(9, 1))
array("hollow.npy", (10**12, 2, 0), [])
array("no_rows.npy", (0, 2, 3), [])
write("some.onnx", model([node("Add", ["k", "z"], ["y"])], [value("x", FLOAT, (2, 3)), value("z", FLOAT, (2,))],
                         [value("y", FLOAT, (2,))], [tensor("k", FLOAT, (2,), [1, 2])]))
array("z.npy", (3, 2), [0, 0, 1, 1, 2, 2])
PY

# says TEXT WHAT: the last command says TEXT.
says()
{
	[[ $err == *"$1"* ]]
	tap_ok $? "$2" || show
}
net() { esp quantise "$tmp/net.onnx" --backend interpreter -o "$tmp/q.safetensors" "$@"; }

net --calibrate "x=$tmp/x.npy"
tap_is "$status,$err" "0," "the weights of a graph are quantised"
tap_is "$(grep -c '^[CGM]\*x .* i8 .* calibrated' <<<"$out")" 3 "a convolution and two products are computed in integers" || show
tap_is "$(head -n 1 <<<"$out")" "calibrated with 20 structures; errors over 20 nodes, in proportion to f32" "over all rows"
tap_is "$(awk '$1 == "y" && NF == 3 && $3 > 0 && $3 < 0.05' <<<"$out" | wc -l)" 1 "the output differs by little" || show
esp run "$tmp/net.onnx" --weights "$tmp/q.safetensors" --input "x=$tmp/x.npy" --backend interpreter
tap_is "$status,$(wc -l <<<"$out")" "0,20" "they run in place of those of the file"
esp explain "$tmp/net.onnx" --weights "$tmp/q.safetensors"
tap_is "$(grep -c 'in i8 of factors within a bound that comes with the weights' <<<"$out")" 3 "and their products are in integers" || show
net --calibrate "x=$tmp/x.npy" --evaluate "x=$tmp/x.npy" --keep G
tap_is "$status,$(grep -c '^G\*x .* f32 .*the weights say so' <<<"$out")" "0,1" "a product is kept in f32" || show
net --calibrate "$tmp/x.npy"
says "the model has no structure, so that --calibrate and --evaluate are NAME=FILE.npy" "a file that names no input is refused"
net --calibrate "x=$tmp/wide.npy"
says "rows of the input 'x' are [1, 4, 4, 4]" "so is one of another shape"
net --calibrate "w=$tmp/x.npy"
says "there is no input 'w'" "and one for an input that there is not"
net --calibrate "x=$tmp/x.npy" --calibrate "x=$tmp/x.npy"
says "--calibrate gives 'x' twice" "and one that is given twice, by the name of the option"
net --calibrate "x=$tmp/x.npy" --evaluate "=$tmp/x.npy"
says "--evaluate is NAME=FILE.npy or NAME=FILE.pb" "whichever it is"
net --calibrate "x=$tmp/x.npy" --calibrate "$tmp/x.npy"
tap_is "$status" 2 "several files need names"
esp quantise "$tmp/some.onnx" --calibrate "z=$tmp/z.npy" -o "$tmp/q2.safetensors"
says "has no product with weights that could be computed in integers [not-calibrated]" "a graph without such products is refused"

esp run "$tmp/none.onnx" --backend interpreter
tap_is "$status,$out" "0,y: 2 4" "a graph whose outputs depend on no input computes them once" || show
esp run "$tmp/none.onnx" --input "x=$tmp/three.npy" --backend interpreter
tap_is "$status,$(sort -u <<<"$out"),$(wc -l <<<"$out")" "0,y: 2 4,3" "and for each row of an input that it does not read" || show
says "three.npy is not read: no output depends on the input 'x'" "of which it tells"
esp run "$tmp/none.onnx" --input "x=$tmp/other.npy" --backend interpreter
tap_is "$status" 1 "an array of another shape is refused"
says "rows of the input 'x' are [2, 0]" "by what it is, 0 for any extent"
esp run "$tmp/none.onnx" --input "x=$tmp/three.npy" --input "x=$tmp/three.npy" --backend interpreter
says "--input gives 'x' twice" "so is one that is given twice, read or not"
esp run "$tmp/none.onnx" --input "x=$tmp/hollow.npy" --backend interpreter
tap_is "$status,$out" "1," "and rows without elements: a file of any size could have any number"
says "hollow.npy: its rows have no elements, so that the input 'x' does not say how many there are" "of which it tells"
esp run "$tmp/none.onnx" --input "x=$tmp/no_rows.npy" --backend interpreter
tap_is "$status,$out" "0," "an array without rows is none"
esp run "$tmp/some.onnx" --input "z=$tmp/z.npy" --input "x=$tmp/three.npy" --backend interpreter
tap_is "$status,$(tail -n 1 <<<"$out")" "0,y: 3 4" "an input that is not read may be given beside others" || show
esp run "$tmp/some.onnx" --input "z=$tmp/z.npy" --backend interpreter
tap_is "$status,$err" "0," "or not"
esp run "$tmp/some.onnx" --input "x=$tmp/three.npy" --backend interpreter
says "no --input NAME=FILE gives the input 'z' of the model" "one that is read must be"

# --- weights only ---

# numbers ARGUMENT...: those of a run with the weights of 8 bits, a line each.
numbers()
{
	esp run "$tmp/net.onnx" --backend interpreter --weights "$tmp/q.safetensors" --input "x=$tmp/x.npy" "$@"
	echo "$out" | tr ' ' '\n' | grep -v y
}
net --calibrate "x=$tmp/x.npy" --weights-only
tap_is "$status,$err,$(echo "$out" | grep -c '^[CGM]\*x .* f32 ')" "0,,3" "a convolution and products are computed in f32"
tap_is "$(echo "$out" | awk '/^C\*x .* f32/ { measured = $NF } /^C\*x/ { print ($NF > measured * 0.9 && $NF < measured * 1.1) }' | tail -n 1)" 1 \
	"of inputs that are not correlated the predicted error of a convolution is the measured one"
numbers >"$tmp/narrow"
numbers --weights-as f32 >"$tmp/wide"
tap_is "$(paste "$tmp/narrow" "$tmp/wide" | awk '{ d = $1 - $2; bad += d > 1e-5 || d < -1e-5 } END { print NR, bad + 0 }')" "320 0" \
	"programs keep the integers of the file, along the rows that it has scales for"
tap_done
