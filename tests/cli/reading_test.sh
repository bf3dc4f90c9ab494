# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Structures from brackets, CoNLL-U and JSON through the command: which format, which columns, which vocabularies, what
# is left out.
. "${srcdir:-.}/tests/cli/support.sh"

# A model that adds up what its nodes carry: a row of E for the word, one of F for the relation.
cat >"$tmp/sums.ra" <<'END'
model sums
structure dag(*)
input word : token, rel : token
param E[V, 2], F[R, 2]
state h[2]
node:
    h = E[word] + F[rel] + sum(k.h for k in children)
output h_root = h at root
END
cat >"$tmp/words.ra" <<'END'
model words
structure dag(*)
input w : token
param E[V, 2]
state h[2]
node:
    h = E[w] + sum(k.h for k in children)
output h_root = h at root
END
E='"E":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}'
F='"F":{"dtype":"F32","shape":[3,2],"data_offsets":[32,56]}'
floats 1 0 0 1 2 0 0 2 0 0 1 0 0 1 | weights "{$E,$F}" >"$tmp/sums.safetensors"
floats 1 0 0 1 2 0 0 2 | weights "{$E}" >"$tmp/words.safetensors"
printf 'he\nplays\nher\n<unk>\n' >"$tmp/forms"
printf 'root\nnsubj\n<unk>\n' >"$tmp/rels"

# conllu: a sentence of three words for each line of stdin, HEAD:DEPS of the second one; the others hang on the first.
conllu()
{
	local head deps
	while read -r head deps; do
		printf '1\tHe\the\tPRON\t_\t_\t0\troot\t0:root\t_\n'
		printf '2\tplays\tplay\tVERB\t_\t_\t%s\tnsubj:pass\t%s\t_\n' "$head" "$deps"
		printf '3\ther\ther\tPRON\t_\t_\t1\tdep\t1:dep|2:x\t_\n\n'
	done
}

# sums ARGUMENT...: the sums of each structure, on lines.
sums()
{
	esp run "$@" --weights "$tmp/sums.safetensors" --backend interpreter --format json
	out=$(sed -e 's/.*h_root":\[//' -e 's/\].*//' <<<"$out")
}
both=(--vocab "word=$tmp/forms" --vocab "rel=$tmp/rels")

echo '1 1:nsubj:pass' | conllu >"$tmp/one.conllu"
sums "$tmp/sums.ra" "$tmp/one.conllu" "${both[@]}"
tap_is "$status,$out" "0,3,3" "inputs have columns and vocabularies of their own"
sums "$tmp/sums.ra" "$tmp/one.conllu" "${both[@]}" --cut-labels
tap_is "$status,$out" "0,4,2" "a subtype can be cut"
sums "$tmp/sums.ra" "$tmp/one.conllu" "${both[@]}" --graph enhanced
tap_is "$status,$out" "0,5,4" "a word with two heads counts twice in the enhanced graph"
sums "$tmp/sums.ra" "$tmp/one.conllu" "${both[@]}" --column word=lemma
tap_is "$status,$out" "0,3,4" "an input can be read from another column"
sums "$tmp/sums.ra" "$tmp/one.conllu" --vocab "$tmp/forms" --vocab "rel=$tmp/rels"
tap_is "$status,$out" "0,3,3" "a vocabulary without a name is that of the other inputs"
cp "$tmp/one.conllu" "$tmp/plain"
sums "$tmp/sums.ra" "$tmp/plain" "${both[@]}"
tap_is "$status,$out" "0,3,3" "the first bytes tell the format where the name does not"
sums "$tmp/sums.ra" "$tmp/plain" "${both[@]}" --from brackets
refused 1 bad-tree "unless it is given"
sums "$tmp/sums.ra" "$tmp/one.conllu" "${both[@]}" --column rel=label
tap_is "$status,$out" "0,3,3" "a column goes by several names"
sums "$tmp/sums.ra" "$tmp/one.conllu" "${both[@]}" --column rel=mood
refused 1 input-not-supplied "a column that is not there is refused"
tap_is "$(grep -c 'the file has form, lemma, upos, xpos, feats, deprel' <"$tmp/err")" 1 \
	"and those that are there are named"
printf '(S (A he) (B plays) (C her))\n' >"$tmp/one.ptb"
sums "$tmp/sums.ra" "$tmp/one.ptb" "${both[@]}"
refused 1 input-not-supplied "brackets have no relations"

# --- what is left out ---

printf '1 1:x\n7 1:x\n2 1:x\n1 1:x\n' | conllu >"$tmp/bad.conllu"
sums "$tmp/sums.ra" "$tmp/bad.conllu" "${both[@]}"
tap_is "$status,$out,$(head -n 1 <<<"$err")" \
	"1,3,3,$tmp/bad.conllu:6:23: error: sentence 1, counted from 0: word 2 has the head '7', of 3 words [bad-head]" \
	"a sentence that is none is refused, those before it are run"
sums "$tmp/sums.ra" "$tmp/bad.conllu" "${both[@]}" --skip
tap_is "$status,$(wc -l <<<"$out"),$(grep -c 'error: sentence' "$tmp/err")" "0,2,2" "or left out"
esp run "$tmp/sums.ra" "$tmp/bad.conllu" --weights "$tmp/sums.safetensors" --backend interpreter --format json \
	"${both[@]}" --skip
tap_is "$(sed 's/,.*//' <<<"$out" | tr -d '\n')" '{"tree":0{"tree":3' "sentences keep their numbers"
esp check "$tmp/sums.ra" "$tmp/bad.conllu" --weights "$tmp/sums.safetensors" "${both[@]}" --skip
tap_is "$status,$(tail -n 2 <<<"$out")" "0,    trees 2, nodes 6
    left out 2" "and a check counts them"

for batch in 1 2 64; do
	printf '%s\n' '{"children": [[]], "data": {"word": [9], "rel": [0]}}' \
		'{"children": [[]], "data": {"word": [1], "rel": [0]}}' \
		'{"children": [[]], "data": {"word": [9], "rel": [0]}}' '{"children": [[]], "data": {"word": [9], "rel": [0]}}' \
		'{"children": [[]], "data": {"word": [2], "rel": [0]}}' >"$tmp/refused.jsonl"
	sums "$tmp/sums.ra" "$tmp/refused.jsonl" "${both[@]}" --batch "$batch" --skip
	tap_is "$status,$(wc -l <<<"$out"),$(grep -c ':[0-9]: error: .* of node 0 of structure [023] is 9' "$tmp/err"),$(grep \
		-c '3 structures were left out' "$tmp/err")" "1,2,3,1" \
		"what the model does not take is left out too, each named, and the status says so, by $batch"
done
sums "$tmp/sums.ra" "$tmp/refused.jsonl" "${both[@]}"
tap_is "$status,$(grep -c ':1: error: .* of node 0 of structure 0 is 9' "$tmp/err")" "1,1" "or is the end"

# --- JSON ---

cat >"$tmp/one.jsonl" <<'END'
{"children": [[], [], [0, 1]], "data": {"word": [0, 1, 2], "rel": [1, "nsubj", 0]}, "text": "three"}
{"children": [[1, 1], []], "root": 0, "data": {"word": ["he", "her"], "rel": [0, 1]}}
END
sums "$tmp/sums.ra" "$tmp/one.jsonl" "${both[@]}"
tap_is "$status,$out" "0,5,1
7,0" "JSON has numbers and words"
printf '{"children": [[]], "data": {"w": [1]}}' >"$tmp/numbers.json"
esp run "$tmp/words.ra" "$tmp/numbers.json" --weights "$tmp/words.safetensors" --backend interpreter
tap_is "$status,$(head -n 1 <<<"$out")" "0,h_root: 0 1" "numbers need no vocabulary"
printf '{"children": [[]], "data": {"w": ["he"]}}' >"$tmp/texts.json"
esp run "$tmp/words.ra" "$tmp/texts.json" --weights "$tmp/words.safetensors" --backend interpreter
refused 1 "there is no vocabulary" "texts do"

# --- brackets ---

# words FILE ARGUMENT...: nodes of the structures, and the sum.
words()
{
	esp run "$tmp/words.ra" "$@" --weights "$tmp/words.safetensors" --vocab "$tmp/forms" --backend interpreter \
		--column w=label --format json
	out=$(sed -e 's/.*"nodes":\([0-9]*\),.*h_root":\[/\1: /' -e 's/\].*//' <<<"$out")
}
printf '(he (plays (he x)) (her y) (her z))\n' >"$tmp/many.ptb"
words "$tmp/many.ptb"
tap_is "$status,$out" "0,5: 6,1" "labels can be read"
words "$tmp/many.ptb" --collapse
tap_is "$status,$out" "0,4: 5,1" "a chain of nodes can be one"
words "$tmp/many.ptb" --binarize left
tap_is "$status,$out" "0,6: 7,1" "a node of three children can be two"
words "$tmp/many.ptb" --binarize right --collapse
tap_is "$status,$out" "0,5: 6,1" "and both"

# --- wrong usage ---

esp run "$tmp/words.ra" "$tmp/many.ptb" --weights "$tmp/words.safetensors" --column lemma
refused 2 "--column is INPUT=COLUMN, not 'lemma'" "a column is for an input"
esp run "$tmp/words.ra" "$tmp/many.ptb" --weights "$tmp/words.safetensors" --vocab "word=$tmp/none"
refused 1 cannot-read "a vocabulary that is not there is refused"
esp run "$tmp/words.ra" "$tmp/many.ptb" --weights "$tmp/words.safetensors" --from xml
refused 2 "auto|brackets|conllu|json" "a format that there is not is refused"
esp run "$tmp/words.ra" "$tmp/many.ptb" --weights "$tmp/words.safetensors" \
	$(for i in $(seq 17); do echo --vocab "$tmp/forms"; done)
refused 2 "16 times at most" "so are too many vocabularies"
tap_done
