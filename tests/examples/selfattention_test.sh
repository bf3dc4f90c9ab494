# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Self-attention over sentences: what PyTorch's TransformerEncoder computes, and a sentence alone as among others, also of other
# clients of a server.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
. "${srcdir:-.}/tests/cli/curl.sh"
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

# Asks for each sentence at once, eight times, and for all of them in one request.
ask_server()
{
	local n i asked=()
	for ((n = 0; n < 8; n++)); do
		i=0
		while read -r sentence; do
			curl -s --data-binary "$sentence" "$address/v1/run" >"$tmp/answer.$n.$i" &
			asked+=($!)
			((i++))
		done <"$example/sentences.txt"
	done
	curl -s --data-binary @"$example/sentences.txt" "$address/v1/run" >"$tmp/answer.all"
	wait "${asked[@]}"
}

# Lines without the number of the sentence, each once.
without_number()
{
	sed 's/"tree":[0-9]*,//' "$@" | sort -u
}

# Logits to four places: the server writes the shortest decimals of them, `run` nine digits.
logits_of()
{
	sed 's/.*\[//; s/\].*//; s/,/\n/g' "$1" | xargs printf '%.4f\n'
}

lacks=$(lacks_for_server)
if [[ $lacks ]]; then
	tap_skip "$lacks" "clients of a server get the same logits"
else
	start_server "$model" "${given[@]}"
	ask_server
	"$ESPALIER" run "$model" "$example/sentences.txt" "${given[@]}" --backend interpreter --format json >"$tmp/session"
	tap_is "$(logits_of "$tmp/answer.all" | wc -l),$(cmp <(logits_of "$tmp/answer.all") <(logits_of "$tmp/session") 2>&1)" "30," \
		"a client of a server gets the logits of a session" ||
		sed 's/^/# /' "$tmp/messages"
	tap_is "$(without_number "$tmp"/answer.*.* | wc -l),$(cmp <(without_number "$tmp"/answer.*.*) <(without_number "$tmp/answer.all") 2>&1)" "6," \
		"clients that ask for one sentence at the same time get the same bits"
	stop_server
	tap_is "$?,$(grep -c '"status":200' "$tmp/log")" "0,49" "the server ends with 0, and has answered all"
fi
tap_done
