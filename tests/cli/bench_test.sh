# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier bench: weights and structures are the same whenever they are made, and what is told of them is complete. How long
# anything takes, no test says.
. "${srcdir:-.}/tests/cli/support.sh"

model=$srcdir/bench/models/treernn.ra

# bench ARGUMENT...: small, with the interpreter, which needs no plug-in.
bench()
{
	esp bench "$@" --backend interpreter --no-cache
}

# asked REQUESTS ARGUMENT...: what --serve answers to lines of requests.
asked()
{
	local requests=$1
	shift
	printf "$requests" | "$ESPALIER" bench "$@" --serve --backend interpreter --no-cache 2>"$tmp/err"
}

bench "$model" --sizes D=3,V=5 --batches 1,3 --threads 1,2 --minibatches 2 --runs 3
tap_is "$status,$err" "0," "a model is timed"
tap_is "$(grep -c '^{"machine": {"vector": ' <<<"$out")" 2 "the machine comes first, for each number of threads"
tap_is "$(grep -c '^{"model": "treernn_lookup", "sizes": {"V": 5, "D": 3}, ' <<<"$out")" 4 "then a line for each batch and number of threads"
missing=
for name in batch threads minibatches runs nodes min_ms median_ms linearize_ms operations floor_ms floor_over_time memory_bytes; do
	[ "$(grep -c "\"$name\": [0-9]" <<<"$out")" -ge 4 ] || missing="$missing $name"
done
tap_is "$missing" "" "with all that is told of it"

first=$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --threads 1)
tap_is "$(wc -w <<<"$first")" 6 "outputs of two roots have as many numbers"
tap_is "$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --threads 2)" "$first" "the same seed makes the same model and structures"
[ "$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --seed 2)" != "$first" ]
tap_ok $? "another seed makes others"
tap_is "$(asked 'run 0 1 4\nrun 5 2 1\n' "$model" --sizes D=3,V=5 | wc -w)" 5 "a run is answered by as many times as were asked for"
answer=$(asked 'machine\nfloor 0 2\n' "$model" --sizes D=3,V=5 --threads 1)
tap_is "$(sed -n 2p <<<"$answer" | wc -w)" 4 "after the machine the floor is told"
asked 'floor 0 2\n' "$model" --sizes D=3,V=5 >"$tmp/out"
tap_is "$?,$(cat "$tmp/out")" "1," "but not before"
asked 'walk\n' "$model" --sizes D=3,V=5 >"$tmp/out"
tap_is "$?,$(grep -c "a request is 'run" "$tmp/err")" "1,1" "another request ends it"

bench "$model" --sizes D=3,V=5 --keep "$tmp/kept" --batches 2 --minibatches 2 --runs 1 --threads 1
tap_is "$status,$(ls "$tmp/kept" | tr '\n' ' ')" "0,structures.txt weights.safetensors " "weights and structures are kept"
tap_is "$(wc -l <"$tmp/kept/structures.txt")" 4 "a structure a line"
tap_is "$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --weights "$tmp/kept/weights.safetensors")" "$first" "and are weights as any"
bench "$model" --sizes D=3,V=5 --batches 1 --minibatches 1 --runs 1 --threads 1 --structures perfect --length 3
tap_is "$status,$(grep -c '"nodes": 15,' <<<"$out")" "0,1" "a perfect tree has the height that is asked for"
bench "$srcdir/bench/models/ternary.ra" --sizes D=3,V=5 --batches 1 --minibatches 1 --runs 1 --threads 1 --structures perfect --length 2
tap_is "$status,$(grep -c '"nodes": 13,' <<<"$out")" "0,1" "of as many children as the model has"
bench "$srcdir/bench/models/ternary.ra" --sizes D=3,V=5 --batches 1 --minibatches 2 --runs 1 --threads 1
tap_is "$status,$(grep -c '"nodes": [0-9]' <<<"$out")" "0,1" "and so has any other tree that is made" || show
bench "$srcdir/examples/gru/gru.ra" --sizes D=3,E=2 --batches 2 --minibatches 1 --runs 1 --threads 1 --length 7
tap_is "$status,$(grep -c '"nodes": 14,' <<<"$out")" "0,1" "a model of sequences gets sequences"
bench "$srcdir/examples/narylstm/narylstm.ra" --sizes D=3,E=2,V=5 --batches 1 --minibatches 1 --runs 1 --threads 1 --structures perfect --length 2
tap_is "$status,$(grep -c '"nodes": 13,' <<<"$out")" "0,1" "nodes of a tree have as many children as the model wants"
bench "$srcdir/examples/narylstm/narylstm.ra" --sizes D=3,E=2,V=5 --batches 3 --minibatches 1 --runs 1 --threads 1
tap_is "$status" 0 "also in trees as of a parser"
bench "$srcdir/examples/typed/typed.ra" --sizes D=3,E=2,V=5,C=2 --batches 3 --minibatches 2 --runs 1 --threads 1
tap_is "$status" 0 "nodes have tokens that tell cases apart, and are no row of anything"
bench "$srcdir/examples/dagrnn/dagrnn.ra" --sizes D=3,E=2,C=2 --batches 2 --minibatches 1 --runs 1 --threads 1 --structures grid --length 5
tap_is "$status,$(grep -c '"nodes": 50,' <<<"$out")" "0,1" "a grid has the side that is asked for"
bench "$model" "$tmp/trees" --sizes D=3,V=5 --batches 2 --minibatches 1 --runs 1 --threads 1
tap_is "$status,$(grep -c '"nodes": 8,' <<<"$out")" "0,1" "trees of a file are taken as they are"

bench "$model" --sizes X=3
refused 1 "no dimension 'X'" "a dimension that the model does not have is refused"
bench "$model" --sizes D=none
refused 1 "DIMENSION=NUMBER" "as is a size that is no number"
bench "$model" --batches 1,,2
refused 2 "--batches is numbers" "and a list that is none"
bench "$model" --threads 0
refused 2 "--threads is numbers" "and threads of nothing"
bench "$model" "$tmp/nowhere"
refused 1 "cannot read" "and trees that are not there"
printf '(2 (2 a) (2 b)\n' >"$tmp/broken"
bench "$model" "$tmp/broken" --sizes D=3,V=5
refused 1 "line 1 of" "and a tree that has no end"
: >"$tmp/empty"
bench "$model" "$tmp/empty" --sizes D=3,V=5
refused 1 "has no trees" "and a file without one"
bench "$srcdir/examples/gru/gru.ra" --length 100000001
refused 2 "--length" "and a length beyond all memory"
tap_done
