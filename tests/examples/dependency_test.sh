# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The tagger of dependency trees, trained by PyTorch: what it computes, and what it gets right of sentences it was not
# trained on.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
srcdir=${srcdir:-.}
ESPALIER=${ESPALIER:-./espalier}
example=$srcdir/examples/dependency
data=${ESPALIER_DATA-$srcdir/../shared/data}/ud/en_ewt-ud-dev.conllu
given=(--weights "$example/dependency.safetensors" --vocab "word=$example/words.txt" \
	--vocab "rel=$example/relations.txt")

# PyTorch sums up in another order: 2e-5 of logits near 10 are some twenty units in the last place.
said=$("$ESPALIER" compare "$example/dependency.ra" "$example/sentences.conllu" "${given[@]}" --backend interpreter --ref "$example/reference.npz" \
	--atol 2e-5 2>&1)
tap_is "$?,$(grep -c '^equal' <<<"$said")" "0,1" "logits are those of PyTorch"
tap_is "$(grep -c '54 nodes of 6 trees' <<<"$said")" 1 "for every word of the sentences"

tap_is "$("$ESPALIER" run "$example/dependency.ra" "$example/sentences.conllu" "${given[@]}" --backend interpreter \
	--at all | head -n 8)" \
	"$(sed -n 's/^        \([^ ]*\) *\([A-Z]*\) *\([0-9.]*\)$/\1\t\2\t\3/p' "$example/README.md")" \
	"words stand with their tags, as the page of the example shows"

# Every fifth sentence, as train.py leaves them out.
held_out()
{
	awk 'BEGIN { RS = ""; ORS = "\n\n" } NR % 5 == 0' "$data"
}

# count GOLD.conllu: reads lines of word, tag and logit, and counts as heldout.tsv does.
count()
{
	awk -F '\t' -v names="ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X" '
		BEGIN { split(names, name, " ") }
		NR == FNR { if ($1 ~ /^[0-9]+$/ && NF > 9) gold[++words] = $4; next }
		NF == 3 {
			is[gold[++n]]++
			said[$2]++
			right[$2] += $2 == gold[n]
		}
		END { for (i = 1; i <= 17; i++) printf "%s\t%d\t%d\t%d\n", name[i], is[name[i]], said[name[i]], right[name[i]] }' "$1" -
}

if ! [ -r "$data" ]; then
	tap_skip "no folder with data" "held-out words are tagged as PyTorch does"
elif need_backend "held-out words are tagged as PyTorch does"; then
	held_out >"$tmp/heldout.conllu"
	"$ESPALIER" run "$example/dependency.ra" "$tmp/heldout.conllu" "${given[@]}" --at all >"$tmp/tags"
	tap_is "$?,$(count "$tmp/heldout.conllu" <"$tmp/tags")" "0,$(cat "$example/heldout.tsv")" \
		"held-out words are tagged as PyTorch does"
	tap_is "$(awk '{ right += $4 } END { print right }' "$example/heldout.tsv")" 4555 \
		"which is right for 4555 of 4894 words"
fi
tap_done
