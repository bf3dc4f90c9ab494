# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier check and espalier dump.
. "${srcdir:-.}/tests/cli/support.sh"

esp check "$here/tiny.ra"
tap_is "$status,$out" "0,OK: tiny, a model of a tree with 2 children
    inputs 1, states 1, params 2, outputs 2" "a model is summed up"
esp check "$here/tiny.ra" --weights "$tmp/tiny.safetensors"
tap_is "$status,$(echo "$out" | tail -n 2)" "0,    weights of 48 bytes: f32 48 (2 tensors)
    sizes V = 4, D = 2" "with weights there are sizes"
esp check "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words"
tap_is "$status,$(echo "$out" | tail -n 1)" "0,    trees 3, nodes 9" "with an input it is counted"

sed 's/E\[word\]/F[word]/' "$here/tiny.ra" >"$tmp/bad.ra"
esp check "$tmp/bad.ra"
refused 1 "bad.ra:9:9" "a wrong model is refused"
printf '(2 a)\n(2 (2 a))\n' >"$tmp/bad.ptb"
esp check "$here/tiny.ra" "$tmp/bad.ptb" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words"
refused 1 "bad.ptb:2: error: node 1 of structure 1 " "a tree that a run would refuse is refused"
printf 'x\nx1\nx2\nx3\na\nb\nc\nzz\n' >"$tmp/large"
esp check "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/large"
refused 1 "the vocabulary of 'word' has 8 words, but the model has rows for 4 of them" \
	"a vocabulary longer than the embedding is refused"
esp check "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --vocab "word=$tmp/large"
refused 1 token-out-of-range "also without a tree"
printf 'a\nb\n<unk>\n' >"$tmp/small"
esp check "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --vocab "$tmp/small"
tap_is "$status,$(tail -n 1 <<<"$out")" "0,    vocabulary of 'word': 3 words, 4 rows: the last rows have no word" \
	"a shorter one is said"
esp check "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words"
tap_is "$status,$(tail -n 1 <<<"$out")" "0,    vocabulary of 'word': 4 words, 4 rows" "and one of the same length"
esp check "$here/tiny.ra" --vocab "$tmp/none"
refused 1 cannot-read "a vocabulary that is not there is refused"
for weights in "" "--weights $tmp/tiny.safetensors"; do
	esp check "$here/tiny.ra" $weights --vocab "wrd=$tmp/words"
	refused 2 "'wrd' is none of them ('word')" "a vocabulary for an input that is none: ${weights:+with }${weights%% *}"
	esp check "$here/tiny.ra" $weights --vocab "word=$tmp/words" --column wrd=label
	refused 2 "'wrd' is none of them ('word')" "or a column: ${weights:+with }${weights%% *}"
	esp check "$here/tiny.ra" $weights --vocab "word=$tmp/words" --column word=label
	tap_is "$status,$err" "0," "one that it has is taken"
done
for command in run profile tune; do
	esp $command "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --backend interpreter \
		--vocab "wrd=$tmp/words"
	refused 2 "'wrd' is none of them ('word')" "by $command, too"
done

# --- dump ---

esp dump
stages=$out
tap_is "$status,$(echo "$stages" | head -n 1)" "0,ra" "stages are listed"
esp dump ra "$here/tiny.ra"
tap_is "$status,$(echo "$out" | head -n 1)" "0,model tiny" "the model needs no weights"
echo "$out" >"$tmp/again.ra"
text=$out
esp dump ra "$tmp/again.ra"
tap_is "$out" "$text" "and is a model again"
for stage in $stages; do
	case $stage in llvm | gccjit | asm) continue ;; esac # they need a plug-in
	esp dump $stage "$here/tiny.ra" --weights "$tmp/tiny.safetensors"
	[ "$status" -eq 0 ] && [ -n "$out" ]
	tap_ok $? "stage $stage is written"
done
esp dump ra "$here/tiny.ra" --output "$tmp/dump"
tap_is "$status,$out,$(cat "$tmp/dump")" "0,,$text" "a dump goes to a file"
tap_done
