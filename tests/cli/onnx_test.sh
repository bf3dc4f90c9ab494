#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The command takes ONNX files as it takes model texts: one of the standard's cases is checked, run and shown; arrays are of
# NumPy, or tensors of the protocol.
. "${srcdir:-.}/tests/cli/support.sh"

case=/usr/share/libonnx-testdata/data/node/test_add/model.onnx
if [ ! -r "$case" ]; then
	tap_skip libonnx-testdata "ONNX files"
	tap_done
	exit
fi
# zeros NAME: 60 numbers, [3, 4, 5].
header=$(printf '%-117s' "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5)}")
{ printf '\223NUMPY\1\0\166\0%s\n' "$header"; head -c 240 /dev/zero; } >"$tmp/x.npy"

esp check "$case"
tap_is "$status,$(head -n 1 <<<"$out")" "0,OK: test_add, a model without a structure" "a file is checked"
esp run "$case" --input "x=$tmp/x.npy" --input "y=$tmp/x.npy" --backend interpreter
tap_is "$status,$(tr -s ' ' '\n' <<<"$out" | grep -c '^0$')" "0,60" "it is run over arrays, without other weights"
# says TEXT WHAT: the last command says TEXT.
says()
{
	[[ $err == *"$1"* ]]
	tap_ok $? "$2" || show
}
# Tensors of the protocol; the elements of these stand at the end.
given=${case%/*}/test_data_set_0/input_0.pb
esp run "$case" --input "x=$given" --input "y=$tmp/x.npy" --backend interpreter
# same_numbers: whether the output has those elements.
same_numbers()
{
	paste <(tail -c 240 "$given" | od -An -v -w4 -tf4) <(tr -s ' \n' '\n\n' <<<"$out" | sed '/^[-0-9.]/!d') |
		awk '{ d = $1 - $2; n += NF == 2 && d < 1e-4 && d > -1e-4 } END { exit n != 60 }'
}
tap_ok "$status" "a tensor of the protocol is an input"
same_numbers
tap_ok $? "and has its elements"
esp run "$case" --input "x=$case" --input "y=$tmp/x.npy"
tap_is "$status" 1 "a model in its place is refused"
says "$case" "by a message with its name"
reshape=/usr/share/libonnx-testdata/data/node/test_reshape_zero_dim
esp check "$reshape/model.onnx"
tap_is "$status" 1 "an input that decides a shape must be known"
esp check "$reshape/model.onnx" --constant "shape=$reshape/test_data_set_0/input_1.pb"
tap_is "$status" 0 "it is given by a tensor of the protocol"
header=$(printf '%-117s' "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }")
{ printf '\223NUMPY\1\0\166\0%s\n' "$header"; printf '\2%b\0%b\4%b\1%b' '\0\0\0\0\0\0\0'{,,,}; } >"$tmp/shape.npy"
esp check "$reshape/model.onnx" --constant "shape=$tmp/shape.npy"
tap_is "$status" 0 "or by an array of NumPy"
printf '\2\0\0\0\0\0\0\0{}' >"$tmp/shape.safetensors"
esp check "$reshape/model.onnx" --constant "shape=$tmp/shape.safetensors"
tap_is "$status" 1 "weights are none"
says "$tmp/shape.safetensors: is neither a .npy file, which numpy.save writes, nor a .pb file" "and the message names the file"
esp check "$reshape/model.onnx" --constant "shape=$tmp/none.pb"
says "$tmp/none.pb" "so does that of a file that is not there"

# Compared with what another program computed: with rows of the batch, and as the graph has it.
zeros=(--input "x=$tmp/x.npy" --input "y=$tmp/x.npy" --backend interpreter)
esp run "$case" "${zeros[@]}" --export "$tmp/out.safetensors"
esp compare "$case" "${zeros[@]}" --ref "$tmp/out.safetensors"
tap_is "$status" 0 "what was exported is what is computed" || show
esp compare "$case" "${zeros[@]}" --ref "$tmp/x.npy"
tap_is "$status,$(grep -c equal <<<"$out")" "0,1" "an array of the shape of the output is compared" || show
esp compare "$case" --input "x=$given" --input "y=$tmp/x.npy" --backend interpreter --ref "$tmp/x.npy"
tap_is "$status" 1 "one that differs is told"
[[ $out == *"sum[1,0,0] is -2.55298972, in the reference 0"* ]]
tap_ok $? "with the element that is farthest" || printf '%s\n' "$out"
esp compare "$case" "$tmp/x.npy" "${zeros[@]}" --ref "$tmp/x.npy"
tap_is "$status" 2 "a file of structures and arrays exclude each other"
esp compare "$case" --ref "$tmp/x.npy"
tap_is "$status" 1 "and one of them is needed"
says "no --input NAME=FILE gives the input 'x' of the model" "which the message names"

# A schedule is looked for over arrays.
esp tune "$case" "${zeros[@]}" --threads 1 --seconds 1 --output "$tmp/tuned"
tap_is "$status,$(head -n 1 "$tmp/tuned")" \
	"0,# tuned by espalier tune for x.npy, 1 minibatch of 1 tree, 1 thread, outputs at the root" \
	"a schedule is looked for" || show
esp run "$case" "${zeros[@]}" --schedule "$tmp/tuned"
tap_is "$status" 0 "and the model runs by it" || show
esp tune "$case" --threads 1
tap_is "$status" 2 "it needs arrays"

esp dump ra "$case"
tap_is "$status,$(tail -n 1 <<<"$out")" "0,output sum = x + y" "its text is shown"
esp check "$case" --constant x
tap_is "$status,$err" "2,espalier: --constant is NAME=FILE.npy or NAME=FILE.pb, not 'x'" "a constant without a file is refused"
esp check "$case" --sizes N=3
tap_is "$status" 1 "a size that no extent has is refused"
says "no extent is named 'N'" "with the name"
says "all extents of its inputs are known: x[3, 4, 5], y[3, 4, 5]" "and the extents that there are"
esp check "$case" --sizes N
tap_is "$status" 2 "so is one without a number"
esp check "$case" --sizes x[0]=3
tap_is "$status,$err" "0," "the size that an extent has is taken"
esp check "$case" --sizes x[0]=2
says "the size of 'x[0]' is 3 in the graph, not 2" "another one is refused"
PYTHONPATH=$here python3 - "$tmp/open.onnx" <<-'PY'
	import sys
	from onnx_file import FLOAT, model, node, tensor, value
	x, y = value("x", FLOAT, ["batch", 4]), value("y", FLOAT, ["batch", 2])
	nodes = [node("MatMul", ["x", "w"], ["y"])]
	open(sys.argv[1], "wb").write(model(nodes, [x], [y], [tensor("w", FLOAT, [4, 2], [0.5] * 8)]))
PY
timed=(--batches 1 --minibatches 1 --runs 1 --threads 1 --backend interpreter --no-cache)
esp bench "$tmp/open.onnx" --sizes batch=3 "${timed[@]}"
tap_is "$status,$err" "0," "a graph is timed with the sizes that it leaves open" || show
esp bench "$tmp/open.onnx" --sizes length=3 "${timed[@]}"
says "hint: extents that can be given: batch" "and names those" || show
head -c 100 "$case" >"$tmp/cut.onnx"
esp check "$tmp/cut.onnx"
tap_is "$status" 1 "and a file that is cut off"
tap_done
