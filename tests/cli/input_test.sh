# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Files as they come: from a pipe, with other line ends, deep, wide, long, or of another kind altogether.
. "${srcdir:-.}/tests/cli/support.sh"

# feed: runs what stands on stdin.
feed()
{
	out=$("$ESPALIER" run "$here/tiny.ra" - --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" \
		--backend interpreter 2>"$tmp/err")
	status=$?
	err=$(cat "$tmp/err")
}

run "$here/tiny.ra" "$tmp/trees"
plain=$out

# --- the same trees in other forms ---

feed <"$tmp/trees"
tap_is "$status,$out" "0,$plain" "'-' is standard input"
sed 's/$/\r/' "$tmp/trees" >"$tmp/dos"
run "$here/tiny.ra" "$tmp/dos"
tap_is "$status,$out" "0,$plain" "lines may end with carriage returns"
tr '\n' ' ' <"$tmp/trees" >"$tmp/line"
run "$here/tiny.ra" "$tmp/line"
tap_is "$status,$out" "0,$plain" "trees may share a line, the last without an end"
tr ' ' '\n' <"$tmp/trees" >"$tmp/lines"
run "$here/tiny.ra" "$tmp/lines"
tap_is "$status,$out" "0,$plain" "a tree may have many lines"
sed 's/$/\r/' "$here/tiny.ra" >"$tmp/dos.ra"
sed 's/$/\r/' "$tmp/words" >"$tmp/dos.words"
esp run "$tmp/dos.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/dos.words" --backend interpreter
tap_is "$status,$out" "0,$plain" "so may the lines of models and vocabularies"
out=$("$ESPALIER" check - <"$here/tiny.ra")
tap_is "$?,${out%%,*}" "0,OK: tiny" "a model may come from a pipe"

# --- words ---

printf '(2 (2 unheard) (2 OF))\n' >"$tmp/unknown"
printf '(2 (2 <unk>) (2 <unk>))\n' >"$tmp/unk"
run "$here/tiny.ra" "$tmp/unk"
expected=$out
run "$here/tiny.ra" "$tmp/unknown"
tap_is "$status,$out" "0,$expected" "words that are not in the vocabulary are <unk>"
awk 'BEGIN { printf "(2 (2 "; for (i = 0; i < 1000000; i++) printf "x"; print ") (2 of))" }' >"$tmp/long"
run "$here/tiny.ra" "$tmp/long"
tap_is "$status,$out" "0,$expected" "even one of a million letters"

# --- integers ---

printf '\0\0\0\0' | weights '{"zero":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' >"$tmp/zero.safetensors"

# kinds DECLARATION VALUE OPTION...: runs a model that reads one input everywhere.
kinds()
{
	printf 'model kinds\nstructure tree(*)\n%s\nparam zero[D]\nstate s : i32\nleaf:\n    s = %s + cast(sum(zero), i32)\ninner:\n    s = sum(c.s for c in children) + %s\noutput all = s\n' \
		"$1" "$2" "$2" >"$tmp/kinds.ra"
	esp run "$tmp/kinds.ra" "$tmp/kinds" --weights "$tmp/zero.safetensors" --backend interpreter "${@:3}"
}

echo '{"children": [[], [], [0, 1]], "data": {"k": [-1, -2000000000, 7]}}' >"$tmp/kinds"
kinds 'input k : i32' k
tap_is "$status $err $(tr -s ' \n' ' ' <<<"$out")" "0  all: -1999999994 " "an integer may be any of 32 bits"
echo '{"children": [[], [], [0, 1]], "data": {"k": [3, null, 7]}}' >"$tmp/kinds"
kinds 'input k : i32' k
refused 1 "null is no value" "null is no integer"
echo '{"children": [[], [], [0, 1]], "data": {"k": [3, "of", 7]}}' >"$tmp/kinds"
kinds 'input k : i32' k
refused 1 "a text where a number is needed" "nor is a text"
kinds 'input k[2] : i32' 'sum(k)'
refused 2 "'k' is an array of i32, which is not read from files" "arrays of integers are not read from files"
[[ $err == *"declare it f32"* && $err != *"f32 or i32"* ]]
tap_ok $? "nor is their type what is advised"
kinds 'input k : i64' 'cast(k, i32)'
refused 2 "'k' is a number of i64, which is not read from files" "nor are wide integers"
[[ $err == *"declare it f32 or i32"* ]]
tap_ok $? "whose type can be another"
printf '(2 (2 of) (2 of))\n' >"$tmp/kinds"
kinds 'input word : i32' word
refused 2 "and there is no 'vocab'" "words need a vocabulary to be integers"
[[ $err == *"the model reads integers of 'word'"* ]]
tap_ok $? "not tokens"
kinds 'input word : i32' word --vocab "$tmp/words"
refused 1 "missing-data" "a node without a word carries no integer"

# --- bounds ---

printf '{"children": [[], [], [0, 1]], "data": {"x": [1, -4, 0]}}\n{"children": [[]], "data": {"x": [-5]}}\n' >"$tmp/kinds"
kinds 'input x within 5' 'cast(x, i32)'
tap_is "$status $err $(tr -s ' \n' ' ' <<<"$out")" "0  all: -3 all: -5 " "what a model reads within a bound may be at the bound"
kinds 'input x within 4.5' 'cast(x, i32)'
tap_is "$status $out" "1 all: -3" "an element beyond it is refused, behind a structure that is not"
[[ $err == *"kinds:2: error: 'x' of node 0 of structure 1 is -5, but the model declares it within 4.5 [input-beyond-bound]"* ]]
tap_ok $? "by its line, structure and node"
esp check "$tmp/kinds.ra" "$tmp/kinds" --weights "$tmp/zero.safetensors"
tap_is "$status" 1 "also where inputs are only checked"

# --- large structures ---

awk 'BEGIN {
	for (i = 0; i < 100000; i++) printf "(2 (2 a) "
	printf "(2 b)"
	for (i = 0; i < 100000; i++) printf ")"
	print ""
}' >"$tmp/deep"
run "$here/tiny.ra" "$tmp/deep"
tap_is "$status,$err,$(echo "$out" | head -c 7)" "0,,twice: " "a tree of depth 100000 runs"
esp check "$here/tiny.ra" "$tmp/deep" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words"
tap_is "$status,$(echo "$out" | tail -n 1)" "0,    trees 1, nodes 200001" "and all its nodes are counted"
awk 'BEGIN { for (i = 0; i < 10000; i++) printf "(2 (2 a) (2 b)) " }' >"$tmp/wide"
run "$here/tiny.ra" "$tmp/wide"
tap_is "$status,$(echo "$out" | uniq | wc -l),$(echo "$out" | wc -l)" "0,20000,20000" "ten thousand trees share a line"

# --- what is no such file ---

# refuse WHAT FILE ID: as the treebank.
refuse()
{
	run "$here/tiny.ra" "$2"
	refused 1 "$3" "$1"
	[ "$(wc -c <"$tmp/err")" -lt 6000 ]
	tap_ok $? "$1: the message has a length that can be read"
}

: >"$tmp/empty"
printf ' \n\r\n\t\n' >"$tmp/blank"
printf '(2 (2 a\0) (2 b))\n' >"$tmp/nul"
awk 'BEGIN { for (i = 0; i < 300000; i++) printf "(" }' >"$tmp/open"
awk 'BEGIN { for (i = 0; i < 300000; i++) printf ")" }' >"$tmp/close"
refuse "an empty file" "$tmp/empty" empty-input
refuse "a file of blanks" "$tmp/blank" empty-input
refuse "a NUL byte" "$tmp/nul" bad-tree
refuse "brackets that only open" "$tmp/open" unbalanced-tree
refuse "brackets that only close" "$tmp/close" unbalanced-tree
refuse "weights for trees" "$tmp/tiny.safetensors" bad-tree
refuse "a folder" "$tmp" cannot-read
feed </dev/null
refused 1 empty-input "nothing on standard input"

esp check "$tmp/tiny.safetensors"
refused 1 syntax "weights for a model"
esp check "$tmp/empty"
refused 1 missing-declaration "an empty model"
awk 'BEGIN { printf "model x\nleaf:\n    h = "; for (i = 0; i < 300000; i++) printf "(" }' >"$tmp/deep.ra"
esp check "$tmp/deep.ra"
refused 1 too-deep "brackets in a model that only open"
[ "$(wc -c <"$tmp/err")" -lt 6000 ]
tap_ok $? "and their line is not repeated"
esp run "$here/tiny.ra" "$tmp/trees" --weights "$here/tiny.ra" --vocab "$tmp/words"
refused 1 bad-weights "a model for weights"
esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp" --vocab "$tmp/words"
refused 1 cannot-read "a folder for weights"
esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/empty"
refused 1 empty-input "an empty vocabulary"
esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/tiny.safetensors"
refused 1 bad-vocabulary "weights for a vocabulary"

# --- outputs that cannot be ---

mkdir "$tmp/out"
for path in "$tmp/none/result" "$tmp/words/result" "$tmp/out" ''; do
	run "$here/tiny.ra" "$tmp/trees" --output "$path"
	refused 1 "cannot write" "no output to '${path#"$tmp"}'"
done
printf '(2 a)\n(2 (2 a))\n' >"$tmp/bad"
run "$here/tiny.ra" "$tmp/bad" --batch 1 --output "$tmp/out/result"
tap_is "$status,$(ls -A "$tmp/out")" "1," "a failure in the middle leaves nothing behind"
tap_done
