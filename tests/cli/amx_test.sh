# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# --target-cpu amx: products of bytes with two rows or more are computed by tiles, one row is not, and results are the same bytes.
. "${srcdir:-.}/tests/cli/support.sh"

model="$example/treelstm.ra --weights $example/sst-treelstm-small.safetensors"

# computed OPTION...: the example by the interpreter.
computed()
{
	# shellcheck disable=SC2086 # the model and its weights are words
	esp run $model "$example/sentences.ptb" --vocab "$example/sst-vocab.txt" --backend interpreter --no-cache "$@"
}

# dumped STAGE OPTION...
dumped()
{
	local stage=$1
	shift
	# shellcheck disable=SC2086
	esp dump "$stage" $model --precision i8 "$@"
}

computed --precision i8 --target-cpu avx512
wanted=$out
computed --precision i8 --target-cpu amx
[ "$status" -eq 0 ] && [ -n "$wanted" ] && [ "$out" = "$wanted" ]
tap_ok $? "the interpreter computes with matrix registers what it does without" || show

dumped use_matrices --target-cpu avx512
tap_is "$status,$(grep -c matrix <<<"$out")" "0,0" "a machine without AMX has no matrix registers"
dumped use_matrices --target-cpu amx
configured=$(grep -c ' matrix {$' <<<"$out")
tap_ok "$((status || configured < 1))" "a machine with AMX has: $configured matrix loops" || show
[ "$(grep -c 'sums : i32 \[16:tile_row' <<<"$out")" -gt 0 ]
tap_ok $? "for as many rows as a matrix register has"
tap_is "$(grep -c 'step 1 matrix\|\[1:tile_row' <<<"$out")" "0" "for two rows or more"
[ "$(grep -c '= dot4(' <<<"$out")" -gt 0 ]
tap_ok $? "one row is computed without"

for backend in llvm gccjit; do
	if ! has_backend "$backend"; then
		tap_skip "no back end $backend" "its instructions"
		continue
	fi
	dumped asm --target-cpu amx --backend "$backend"
	code=$out
	counts=$(for word in ldtilecfg tilerelease; do grep -c "$word" <<<"$code"; done | uniq)
	tap_is "$status,$counts" "0,$configured" "$backend configures tiles for each of these loops, and releases them" || show
	some=0
	for word in tileloadd tdpbusd tilestored vpdpbusd; do
		grep -q "$word" <<<"$code" || some=1
	done
	tap_ok "$some" "$backend loads, multiplies and stores them, and has VNNI for one row"
done
tap_done
