# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier run --export: states and outputs as tensors, whole or not at all.
. "${srcdir:-.}/tests/cli/support.sh"

# values FILE HEADER-BYTES: the f32 values behind a header.
values()
{
	od -An -v -tf4 -w4 -j "$2" "$1" | tr -s ' \n' ' '
}

run "$here/tiny.ra" "$tmp/trees"
plain=$out
run "$here/tiny.ra" "$tmp/trees" --batch 2 --export "$tmp/h.npy" --tensor h
tap_is "$status,$err" "0," "a state is exported"
tap_is "$out" "$plain" "the results are written as well"
tap_is "$(head -c 128 "$tmp/h.npy" | tail -c +11 | tr -d '\n' | sed 's/ *$//')" \
	"{'descr': '<f4', 'fortran_order': False, 'shape': (9, 2), }" "all nodes of all minibatches are rows"
tap_is "$(values "$tmp/h.npy" 128)" " 1 2 3 4 5 5 1 2 3 4 5 5 5 6 10 11 7 8 " \
	"in the order of the trees and their nodes"

run "$here/tiny.ra" "$tmp/trees" --export "$tmp/total.npy" --tensor total
tap_is "$(values "$tmp/total.npy" 128)" " 10 21 15 " "an output at the root has a row a tree"
run "$here/tiny.ra" "$tmp/trees" --at all --export "$tmp/total.npy" --tensor total
tap_is "$(values "$tmp/total.npy" 128)" " 3 7 10 3 7 10 11 21 15 " "at all nodes it has a row a node"
run "$here/tiny.ra" "$tmp/trees" --export "$tmp/begin.npy" --tensor structure_begin
tap_is "$(od -An -v -td8 -w8 -j 128 "$tmp/begin.npy" | tr -s ' \n' ' ')" " 0 3 8 9 " "trees know where they begin"

run "$here/tiny.ra" "$tmp/trees" --export "$tmp/all.safetensors"
tap_is "$status,$out,$err" "0,$plain," "all tensors are exported"
length=$(od -An -tu8 -N 8 "$tmp/all.safetensors" | tr -d ' ')
tap_is "$((length % 8))" 0 "their values are aligned"
tap_is "$(tail -c +9 "$tmp/all.safetensors" | head -c "$length" | sed 's/ *$//')" \
	'{"structure_begin":{"dtype":"I64","shape":[4],"data_offsets":[0,32]},"h":{"dtype":"F32","shape":[9,2],"data_offsets":[32,104]},"twice":{"dtype":"F32","shape":[3,2],"data_offsets":[104,128]},"total":{"dtype":"F32","shape":[3],"data_offsets":[128,140]}}' \
	"under their names"
tap_is "$(values "$tmp/all.safetensors" $((8 + length + 128)))" " 10 21 15 " "with their values"

# --- refusals ---

run "$here/tiny.ra" "$tmp/trees" --export "$tmp/x.npy" --tensor g
refused 2 "neither a state nor an output 'g'" "a tensor that is not there"
run "$here/tiny.ra" "$tmp/trees" --export "$tmp/absent/x.npy" --tensor h
case $status,$err in
1,*"[cannot-write]"*) tap_ok 0 "a folder that is not there" ;;
*) tap_ok 1 "a folder that is not there" ;;
esac
echo kept >"$tmp/out"
run "$here/tiny.ra" "$tmp/trees" --export "$tmp/absent/x.npy" --tensor h --output "$tmp/out"
tap_is "$(cat "$tmp/out")" kept "results are not written when the export is not"
echo '(2 (2 a)' >"$tmp/bad"
echo kept >"$tmp/kept.npy"
run "$here/tiny.ra" "$tmp/bad" --export "$tmp/kept.npy" --tensor h
tap_is "$status,$(cat "$tmp/kept.npy")" "1,kept" "a run that fails exports nothing"
for i in $(seq 400); do cat "$tmp/trees"; done >"$tmp/many"
(
	ulimit -f 8
	"$ESPALIER" run "$here/tiny.ra" "$tmp/many" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" \
		--backend interpreter --export "$tmp/kept.npy" --tensor h >/dev/null 2>"$tmp/limited"
)
tap_is "$?,$(grep -c '\[cannot-write\]' "$tmp/limited"),$(cat "$tmp/kept.npy")" "1,1,kept" \
	"a file that may not be so large is refused, and the old one kept"
tap_is "$(ls "$tmp" | grep -c '\.npy\.')" 0 "no part of a file is left"
tap_done
