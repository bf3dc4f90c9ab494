#!/usr/bin/env bash
# The PyTorch peer computes the same model: a comparison with it is one of equals. And the driver that compares.
. "${srcdir:-.}/tests/tap.sh"
peer=$srcdir/bench/peers/treelstm_torch.py
data=$ESPALIER_DATA

small=("$data/models/sst-treelstm-small.safetensors" "$data/models/sst-vocab.txt" "$data/sst/dev.txt")

if ! /usr/bin/python3 -c 'import torch, numpy' 2>/dev/null; then
	tap_skip "no PyTorch" "the peer"
	tap_done
elif [ ! -e "${small[0]}" ]; then
	tap_skip "no data" "the peer"
	tap_done
fi

for variant in level script node; do
	"$peer" "${small[@]}" --variant $variant --golden "$data/golden/sst-treelstm-small-dev100.txt" >/dev/null 2>&1
	tap_ok $? "variant $variant gives the reference logits, one tree at a time and all together"
done

answers=$(printf '%s\n' "run 3 2 4" "run 0 0 1" "run 1100 2 1" "rum 0 1 1" | "$peer" "${small[@]}" --serve 2>/dev/null)
tap_is "$(sed -n 1p <<<"$answers" | wc -w)" 4 "a run is answered by as many times as were asked for"
tap_is "$(grep -c '^error: ' <<<"$answers")" 3 "an empty, an overlong and an unknown request are answered by errors"

if ! command -v python3 >/dev/null; then
	tap_skip "no python3" "the comparison"
	tap_done
fi

# Stands for our side: every run takes a microsecond.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/fake" <<'FAKE'
#!/usr/bin/env bash
while read -r _ _ _ repeats; do
	yes 1 | head -n "$repeats" | tr '\n' ' '
	echo
done
FAKE
chmod +x "$work/fake"
compare()
{
	python3 "$srcdir/bench/compare.py" --minibatches 2 --turns 2 --repeats 2 --peers level "$@" model.ra "${small[@]}" 2>/dev/null
}
table=$(compare --batches 1,10 --ours "$work/fake")
tap_is "$(grep -c '^  espalier .* 1\.00 ' <<<"$table")" 2 "a table for each size, ratios to our side"
tap_is "$(grep -c '^geometric mean torch level / espalier: [0-9]' <<<"$table")" 1 "the geometric mean ends it"
compare --batches 1 --ours /bin/false >/dev/null
tap_is $? 1 "a contestant that dies ends the comparison with status 1"
tap_done
