#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The command takes ONNX files as it takes model texts: one of the standard's cases is checked, run, compiled and shown.
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
esp dump ra "$case"
tap_is "$status,$(tail -n 1 <<<"$out")" "0,output sum = x + y" "its text is shown"
esp check "$case" --sizes N=3
tap_is "$status" 1 "a size that no extent has is refused"
esp check "$case" --sizes N
tap_is "$status" 2 "so is one without a number"
head -c 100 "$case" >"$tmp/cut.onnx"
esp check "$tmp/cut.onnx"
tap_is "$status" 1 "and a file that is cut off"
tap_done
