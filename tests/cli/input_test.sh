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
