#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The command takes models of TensorFlow Lite as it takes ONNX files.
. "${srcdir:-.}/tests/cli/support.sh"

cases=${srcdir:-.}/tests/tflite/cases
# array SHAPE FILE TO: the bytes of a file as an array of NumPy, int8.
array()
{
	local header
	header=$(printf '%-117s' "{'descr': '|i1', 'fortran_order': False, 'shape': ($1)}")
	{ printf '\223NUMPY\1\0\166\0%s\n' "$header"; cat "$2"; } >"$3"
}
array "1, 9, 9, 3" "$cases/chain.input" "$tmp/x.npy"
wanted=$(od -An -v -w1 -td1 "$cases/chain.wanted" | tr -d ' ' | tr '\n' ' ')

esp check "$cases/chain.tflite"
tap_is "$status,$(head -n 1 <<<"$out")" "0,OK: main, a model without a structure" "a file is checked"
esp run "$cases/chain.tflite" --input "x0=$tmp/x.npy" --backend interpreter
tap_is "$status,$(sed 's/.*: //' <<<"$out" | tr -s ' \n' '  ' | sed 's/ $//') " "0,$wanted" "it is run over arrays, with its own weights"
esp dump ra "$cases/add.tflite"
tap_is "$status,$(grep -c '^input x[01]\[1, 5, 6, 4\] : i8' <<<"$out")" "0,2" "its text is shown"
esp explain "$cases/add.tflite" --backend interpreter
tap_is "$status" 0 "and how it runs"
cp "$cases/add.tflite" "$tmp/unnamed"
esp check "$tmp/unnamed"
tap_is "$status" 0 "a file of another name is known by its bytes"
esp check "$cases/add.tflite" --sizes batch=2
tap_is "$status,$(grep -c 'onnx-choice' <<<"$err")" "1,1" "its sizes are not chosen"
esp check "${srcdir:-.}/tests/tflite/refused/operator_unknown.tflite"
tap_is "$status,$(grep -c 'node 0 (tflite.FLOOR, version 1)' <<<"$err")" "1,1" "an operator that is not here is refused by its name"
tap_done
