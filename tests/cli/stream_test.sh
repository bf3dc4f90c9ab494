# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Structures from a pipe: the format by the first bytes, answers before the end, and those before what is wrong.
. "${srcdir:-.}/tests/cli/support.sh"

given=(--weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter)
run "$here/tiny.ra" "$tmp/trees"
answers=$out

# feed COMMAND ARGUMENT...: a command that reads stdin.
feed()
{
	out=$("$ESPALIER" "$@" 2>"$tmp/err")
	status=$?
	err=$(cat "$tmp/err")
}

# --- the format ---

cat >"$tmp/trees.jsonl" <<'JSON'
{"children": [[], [], [0, 1]], "data": {"word": [0, 1, null]}}
{"children": [[], [], [0, 1], [], [2, 3]], "data": {"word": [0, 1, null, 2, null]}}
{"children": [[]], "data": {"word": [3]}}
JSON
feed run "$here/tiny.ra" - --weights "$tmp/tiny.safetensors" --backend interpreter <"$tmp/trees.jsonl"
tap_is "$status,$out" "0,$answers" "numbers in JSON on standard input need no vocabulary"
cp "$tmp/trees.jsonl" "$tmp/structures"
run "$here/tiny.ra" "$tmp/structures"
tap_is "$status,$out" "0,$answers" "nor does a name tell that they are words"
esp run "$here/tiny.ra" "$tmp/structures" --weights "$tmp/tiny.safetensors" --backend interpreter
tap_is "$status,$out" "0,$answers" "in a file of any name"
feed check "$here/tiny.ra" - --weights "$tmp/tiny.safetensors" <"$tmp/trees.jsonl"
tap_is "$status,$(tail -n 1 <<<"$out")" "0,    trees 3, nodes 9" "check takes them"
feed profile "$here/tiny.ra" - --weights "$tmp/tiny.safetensors" --backend interpreter --runs 2 <"$tmp/trees.jsonl"
tap_is "$status" 0 "profile takes them"
run "$here/tiny.ra" "$tmp/trees" --export "$tmp/ref.safetensors"
feed compare "$here/tiny.ra" - --weights "$tmp/tiny.safetensors" --backend interpreter --ref "$tmp/ref.safetensors" \
	<"$tmp/trees.jsonl"
tap_is "$status" 0 "compare takes them"
esp tune "$here/tiny.ra" "$tmp/structures" --weights "$tmp/tiny.safetensors" --backend interpreter --seconds 1 --batch 1
tap_is "$status" 0 "tune takes them" || show
feed run "$here/tiny.ra" - --weights "$tmp/tiny.safetensors" --backend interpreter <"$tmp/trees"
refused 2 "give --vocab FILE" "words do need one"

# --- answers before the end ---

# The next line of an answer, or what stands for none within a minute.
answer()
{
	local line
	read -r -t 60 -u "$from" line || line="no answer"
	echo "$line"
}
mkfifo "$tmp/questions" "$tmp/answers"
"$ESPALIER" run "$here/labelled.ra" - "${given[@]}" --batch 1 <"$tmp/questions" >"$tmp/answers" 2>"$tmp/err" &
exec {to}>"$tmp/questions" {from}<"$tmp/answers"
echo '(2 (2 a) (2 b))' >&"$to"
tap_is "$(answer)" "first of all  5.000  a b" "a tree is answered while the pipe is open"
printf '\n(2 zz) (2 a' >&"$to"
tap_is "$(answer)" "second        8.000  zz" "so is the next, though a third has begun"
echo ')' >&"$to"
tap_is "$(answer)" "second        2.000  a" "which is answered when it is whole"
exec {to}>&-
wait $!
tap_is "$?,$(cat "$tmp/err"),$(answer)" "0,,no answer" "the end of the pipe is the end"
exec {from}<&-

# --- answers before what is wrong ---

for batch in 1 2 64; do
	{ cat "$tmp/trees" && echo '(2 a b)' && cat "$tmp/trees"; } >"$tmp/broken"
	run "$here/tiny.ra" "$tmp/broken" --batch $batch
	tap_is "$status,$out,$(head -n 1 <<<"$err")" \
		"1,$answers,$tmp/broken:4:6: error: 'b' is a second word in one leaf [bad-tree]" \
		"what stands before a tree that is none is answered, by $batch"
	feed run "$here/tiny.ra" - "${given[@]}" --batch $batch <"$tmp/broken"
	tap_is "$status,$out" "1,$answers" "also from a pipe"
	{ cat "$tmp/trees" && echo '(2 (2 a))' && cat "$tmp/trees"; } >"$tmp/odd"
	run "$here/tiny.ra" "$tmp/odd" --batch $batch
	tap_is "$status,$out,$(grep -c 'odd:4: error: node 1 of structure 3 has 1 child' <<<"$err")" "1,$answers,1" \
		"what stands before a tree that the model does not take, too"
done
run "$here/tiny.ra" "$tmp/broken" --output "$tmp/whole"
tap_is "$status,$([ -e "$tmp/whole" ] && echo there)" "1," "a file is whole or not there"

# --- memory ---

if [ -z "$shadowed" ]; then
	awk 'BEGIN { for (i = 0; i < 400000; i++) print "(2 (2 a) (2 b)) (2 (2 (2 a) (2 b)) (2 c))" }' >"$tmp/long"
	(
		ulimit -v 1000000
		"$ESPALIER" run "$here/labelled.ra" - "${given[@]}" --memory-cap 4000000 <"$tmp/long" | wc -l >"$tmp/lines"
	)
	tap_is "$(cat "$tmp/lines")" 800000 "a long pipe needs no more memory than a short one ($(wc -c <"$tmp/long") bytes)"
fi

# --- sequences ---

cat >"$tmp/chain.ra" <<'RA'
model chain
structure sequence
input word : token
param E[V, D]
state h[D]
node:
    h = E[word] + 2 * previous.h
output sum = h at root
RA
floats 1 2 3 4 5 6 7 8 | weights "{$E}" >"$tmp/chain.safetensors"

# chain ARGUMENT...: the sums of sequences, what is said when there are none; stdin is the file.
chain()
{
	cat >"$tmp/said"
	feed run "$tmp/chain.ra" "$@" --weights "$tmp/chain.safetensors" --vocab "$tmp/words" --backend interpreter \
		--format json <"$tmp/said"
	out=$(sed -e 's/.*sentence":"\([^"]*\)".*sum":\[/\1: /' -e 's/\].*//' <<<"$out")
}
sums='a b: 5,8
C a b: 25,32
zz: 7,8'
chain - < <(printf 'a b\n\nC  a\tb\r\n \nzz')
tap_is "$status,$out" "0,$sums" "a line is a sequence of words"
cp "$tmp/said" "$tmp/lines.txt"
chain "$tmp/lines.txt" </dev/null
tap_is "$status,$out" "0,$sums" "whatever the name of the file"
chain - --from plain < <(printf '(a b\nzz\n')
tap_is "$status,$out" "0,(a b: 17,20
zz: 7,8" "a bracket is a letter where the format is given"
chain - < <(printf '(a b\nzz\n')
refused 1 unbalanced-tree "and a tree where it is not"
chain - < <(printf \
	'{"data": {"word": [0, "b"]}, "text": "two"}\n{"children": [[1], []], "root": 0, "data": {"word": [1, 0]}}\n')
tap_is "$status,$out" "0,two: 5,8
: 5,8" "JSON without children is a sequence"
printf 'a b\nzz\n' >"$tmp/said"
feed run "$tmp/chain.ra" - --weights "$tmp/chain.safetensors" --vocab "$tmp/words" --backend interpreter --at all \
	<"$tmp/said"
tap_is "$status,$out" "0,sum[0]: 1 2
sum[1]: 5 8

sum[0]: 7 8" "all nodes can be asked for"
printf 'a b\n' >"$tmp/lines.txt"
run "$here/tiny.ra" "$tmp/lines.txt"
refused 1 bad-tree "a model of trees takes no line by itself"
printf '{"data": {"word": [0, 1]}}\n' >"$tmp/none.json"
run "$here/tiny.ra" "$tmp/none.json"
refused 1 "it has no member 'children', without which it is a sequence, and the model takes none" \
	"nor JSON without children"
tap_done
