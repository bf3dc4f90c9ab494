# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Self-attention over sentences: what PyTorch's TransformerEncoder computes, and a sentence alone as among others.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
srcdir=${srcdir:-.}
ESPALIER=${ESPALIER:-./espalier}
example=$srcdir/examples/selfattention
model=$example/selfattention.ra
given=(--weights "$example/selfattention.safetensors" --vocab "$example/words.txt")

# PyTorch sums up in another order: 1e-5 of logits near 5 are some twenty units in the last place.
same_as_reference()
{
	local said
	said=$("$ESPALIER" compare "$model" "$example/sentences.txt" "${given[@]}" --backend "$1" \
		--ref "$example/reference.npz" --atol 1e-5 2>&1)
	tap_is "$?,$(grep -c '^equal' <<<"$said"),$(grep -c '51 nodes of 6 trees' <<<"$said")" "0,1,1" \
		"$1: logits are those of PyTorch, for every word of the sentences"
}

for each in interpreter "${backends[@]}"; do
	same_as_reference "$each"
done
skip_backends

run_sentences()
{
	"$ESPALIER" run "$model" "$1" "${given[@]}" --backend interpreter --at all | grep -v '^$'
}

run_sentences "$example/sentences.txt" >"$tmp/together"
while read -r sentence; do
	echo "$sentence" >"$tmp/sentence.txt"
	run_sentences "$tmp/sentence.txt"
done <"$example/sentences.txt" >"$tmp/alone"
tap_is "$(wc -l <"$tmp/together"),$(cmp "$tmp/together" "$tmp/alone" 2>&1)" "51," "sentences have the same logits alone as together"

echo "sat cat the on the mat" >"$tmp/sentence.txt"
run_sentences "$tmp/sentence.txt" >"$tmp/exchanged"
tap_is "$(head -n 6 "$tmp/together" | sort | comm -12 - <(sort "$tmp/exchanged") | wc -l)" 0 \
	"every word's logits change when two others are exchanged"
tap_done
