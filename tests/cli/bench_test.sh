# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier bench: weights and structures are the same whenever they are made, and what is told of them is complete. How
# long
# anything takes, no test says.
. "${srcdir:-.}/tests/cli/support.sh"

model=$srcdir/bench/models/treernn.ra

# bench ARGUMENT...: small, with the interpreter, which needs no plug-in; as JSON.
bench()
{
	esp bench "$@" --backend interpreter --no-cache --format json
}

# nodes: of the minibatches that were timed, a line each.
nodes()
{
	sed -n 's/.*"nodes": \([0-9.]*\),.*/\1/p' <<<"$out"
}

# asked REQUESTS ARGUMENT...: what bench/serve answers to lines of requests.
asked()
{
	local requests=$1
	shift
	printf "$requests" | "${builddir:-.}/bench/serve" "$@" --backend interpreter --no-cache 2>"$tmp/err"
}

bench "$model" --sizes D=3,V=5 --batches 1,3 --threads 1,2 --minibatches 2 --runs 3
tap_is "$status,$err" "0," "a model is timed"
tap_is "$(grep -c '^{"machine": {"vector": ' <<<"$out")" 2 "the machine comes first, for each number of threads"
tap_is "$(grep -c '^{"model": "treernn_lookup", "sizes": {"V": 5, "D": 3}, ' <<<"$out")" 4 \
	"then a line for each batch and number of threads"
missing=
for name in batch threads minibatches runs nodes min_ms median_ms p95_ms linearize_ms operations weight_bytes floor_ms \
	floor_over_time structures_per_second memory_bytes; do
	[ "$(grep -c "\"$name\": [0-9]" <<<"$out")" -ge 4 ] || missing="$missing $name"
done
tap_is "$missing" "" "with all that is told of it"
tap_is "$(awk -F'"(min|median|p95)_ms": ' '/min_ms/ { if (!($2 + 0 <= $3 + 0 && $3 + 0 <= $4 + 0)) print }' \
	<<<"$out")" "" \
	"of the runs the least, the median and the 95th of a hundred"

esp bench "$model" --sizes D=3,V=5 --batches 1,3 --threads 1,2 --minibatches 2 --runs 3 --backend interpreter --no-cache
tap_is "$status,$err,$(grep -c '^[12] threads\?, .* GFLOP/s a core' <<<"$out")" "0,,2" \
	"for people the machine comes first as well"
tap_is "$(grep -c '^treernn_lookup, V = 5, D = 3: 2 minibatches of each size, 3 runs of each$' <<<"$out")" 1 \
	"then the model with its sizes"
tap_is "$(awk '/^minibatch/ { head = NF } head && /^ +[0-9]/ && NF == 9 { print $1 "x" $2 }' <<<"$out" | tr '\n' ' ')" \
	"1x1 1x2 3x1 3x2 " \
	"and a row for each batch and number of threads"

first=$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --threads 1)
tap_is "$(wc -w <<<"$first")" 6 "outputs of two roots have as many numbers"
tap_is "$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --threads 2)" "$first" \
	"the same seed makes the same model and structures"
[ "$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --seed 2)" != "$first" ]
tap_ok $? "another seed makes others"
tap_is "$(asked 'run 0 1 4\nrun 5 2 1\n' "$model" --sizes D=3,V=5 | wc -w)" 5 \
	"a run is answered by as many times as were asked for"
answer=$(asked 'machine\nfloor 0 2\n' "$model" --sizes D=3,V=5 --threads 1)
tap_is "$(sed -n 2p <<<"$answer" | wc -w)" 4 "after the machine the floor is told"
asked 'floor 0 2\n' "$model" --sizes D=3,V=5 >"$tmp/out"
tap_is "$?,$(cat "$tmp/out")" "1," "but not before"
asked 'walk\n' "$model" --sizes D=3,V=5 >"$tmp/out"
tap_is "$?,$(grep -c "a request is 'run" "$tmp/err")" "1,1" "another request ends it"

bench "$model" --sizes D=3,V=5 --keep "$tmp/kept" --batches 2 --minibatches 2 --runs 1 --threads 1
tap_is "$status,$(ls "$tmp/kept" | tr '\n' ' ')" "0,structures.txt weights.safetensors " \
	"weights and structures are kept"
tap_is "$(wc -l <"$tmp/kept/structures.txt")" 4 "a structure a line"
tap_is "$(asked 'root 0 2\n' "$model" --sizes D=3,V=5 --weights "$tmp/kept/weights.safetensors")" "$first" \
	"and are weights as any"
cat >"$tmp/typed.ra" <<'END'
model typed
structure none
input x[D]
param W[D, D] : i8, B[D] : i32, U[D, D] : u8, S[D] : i16, N[D] : i64, T[D] : bool, H[D, D] : f16, G[D, D] : bf16
output y = W @ cast(x, i32) + U @ B + S + cast(N, i32)
output z = H @ x + G @ where(T, x, -x)
END
bench "$tmp/typed.ra" --sizes D=3 --keep "$tmp/types" --batches 1 --minibatches 1 --runs 1 --threads 1
tap_is "$status,$(head -c 900 "$tmp/types/weights.safetensors" | tr -d '\0' | grep -ao '"dtype":"[A-Z0-9]*"' | cut -d'"' -f4 | sort -u | tr '\n' ' ')" \
	"0,BF16 BOOL F16 I16 I32 I64 I8 U8 " "weights have the types that the model says" || show
bench "$model" --sizes D=3,V=5 --batches 1 --minibatches 1 --runs 1 --threads 1 --structures perfect --length 3
tap_is "$status,$(grep -c '"nodes": 15,' <<<"$out")" "0,1" "a perfect tree has the height that is asked for"
bench "$srcdir/bench/models/ternarytree.ra" --sizes D=3,V=5 --batches 1 --minibatches 1 --runs 1 --threads 1 \
	--structures perfect --length 2
tap_is "$status,$(grep -c '"nodes": 13,' <<<"$out")" "0,1" "of as many children as the model has"
bench "$srcdir/bench/models/ternarytree.ra" --sizes D=3,V=5 --batches 1 --minibatches 2 --runs 1 --threads 1
tap_is "$status,$(grep -c '"nodes": [0-9]' <<<"$out")" "0,1" "and so has any other tree that is made" || show
bench "$srcdir/examples/gru/gru.ra" --sizes D=3,E=2 --batches 2 --minibatches 1 --runs 1 --threads 1 --length 7
tap_is "$status,$(grep -c '"nodes": 14,' <<<"$out")" "0,1" "a model of sequences gets sequences"
bench "$srcdir/examples/narylstm/narylstm.ra" --sizes D=3,E=2,V=5 --batches 1 --minibatches 1 --runs 1 --threads 1 \
	--structures perfect --length 2
tap_is "$status,$(grep -c '"nodes": 13,' <<<"$out")" "0,1" "nodes of a tree have as many children as the model wants"
bench "$srcdir/examples/narylstm/narylstm.ra" --sizes D=3,E=2,V=5 --batches 3 --minibatches 1 --runs 1 --threads 1
tap_is "$status" 0 "also in trees as of a parser"
bench "$srcdir/examples/typed/typed.ra" --sizes D=3,E=2,V=5,C=2 --batches 3 --minibatches 2 --runs 1 --threads 1
tap_is "$status" 0 "nodes have tokens that tell cases apart, and are no row of anything"
bench "$srcdir/examples/dagrnn/dagrnn.ra" --sizes D=3,E=2,C=2 --batches 2 --minibatches 1 --runs 1 --threads 1 \
	--structures grid --length 5
tap_is "$status,$(grep -c '"nodes": 50,' <<<"$out")" "0,1" "a grid has the side that is asked for"
# bytes_read LABELS: of a tree with edges at two levels.
bytes_read()
{
	bench "$srcdir/examples/labelled/matrix.ra" --sizes D=16,E=2,V=5,C=2,R=$1 --batches 1 --minibatches 1 --runs 1 \
		--threads 1 \
		--structures perfect --length 2
	grep -o '"weight_bytes": [0-9]*' <<<"$out" | grep -o '[0-9]*'
}
one=$(bytes_read 1)
more=$(($(bytes_read 50) - one))
[ $one -ge $((2 * 4096)) ] && [ $more -ge 4096 ] && [ $more -le $((4 * 4096)) ] && [ $((more % 4096)) = 0 ]
tap_ok $? "floors count the four matrices of each label that the edges of a level have"
bench "$model" "$tmp/trees" --sizes D=3,V=5 --batches 2 --minibatches 1 --runs 1 --threads 1
tap_is "$status,$(grep -c '"nodes": 8,' <<<"$out")" "0,1" "trees of a file are taken as they are"

# Structures of a file, in any format; what nodes carry is drawn unless the file says it or there is a vocabulary.
small="--batches 3 --minibatches 1 --runs 1 --threads 1"
childsum="$srcdir/examples/childsum/childsum.ra --sizes D=3,E=2,V=4,C=2 $small"
printf '1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t0\tx\t_\t_\n3\tC\t_\t_\t_\t_\t2\tx\t_\t_\n\n' >"$tmp/one.conllu"
printf '{"children": [[2], [], [1]], "root": 0, "data": {"word": [3, 0, 1]}}' >"$tmp/one.json"
for file in one.conllu one.json; do
	bench ${childsum/ / "$tmp/$file" }
	tap_is "$status,$err,$(nodes)" "0,,9" "$file is read, and again after its end"
done
cp "$tmp/one.conllu" "$tmp/unnamed"
bench ${childsum/ / "$tmp/unnamed" } --vocab "$tmp/words" --column word=form
tap_is "$status,$err,$(nodes)" "0,,9" "a file without an ending, with a vocabulary"
esp bench ${childsum/ / "$tmp/unnamed" } --vocab "$tmp/words" --backend interpreter --no-cache
tap_is "$(grep '^weights' <<<"$out")" "weights: random; input: $tmp/unnamed" "whose words are then those of the file"
esp bench ${childsum/ / "$tmp/unnamed" } --backend interpreter --no-cache
tap_is "$(grep '^weights' <<<"$out")" "weights: random; input: $tmp/unnamed, random words and vectors" \
	"but are drawn without one"
out=$("$ESPALIER" bench ${childsum/ / - } --format json --backend interpreter \
	--no-cache <"$tmp/one.conllu" 2>"$tmp/err")
tap_is "$?,$(nodes)" "0,9" "standard input is read, too"
out=$("$ESPALIER" bench ${childsum/ / - } --vocab "$tmp/words" --format json --backend interpreter \
	--no-cache <"$tmp/one.conllu")
tap_is "$?,$(nodes)" "0,9" "also with a vocabulary"
printf 'a b c\nb a\n' >"$tmp/lines"
printf '{"data": {"word": [0, 1, 2]}}\n{"data": {"word": [1, 0]}}\n' >"$tmp/lines.json"
sequence="$srcdir/examples/lstm/lstm.ra --sizes D=3,E=2,V=4,C=2 $small"
for file in lines lines.json; do
	bench ${sequence/ / "$tmp/$file" }
	tap_is "$status,$err,$(nodes)" "0,,8" "a model of sequences reads those of $file" || show
done
bench ${sequence/ / "$tmp/lines" } --vocab "$tmp/words"
tap_is "$status,$err,$(nodes)" "0,,8" "lines of words, with a vocabulary" || show
out=$("$ESPALIER" bench ${sequence/ / - } --vocab "$tmp/words" --format json --backend interpreter \
	--no-cache <"$tmp/lines")
tap_is "$?,$(nodes)" "0,8" "and from standard input"
esp help bench
[[ $(tr -s ' \n' ' ' <<<"$out") == *"lines of words"* ]]
tap_ok $? "as its help says"
printf '(X (X a) (X b) (X c))\n' >"$tmp/wide"
bench "$srcdir/examples/treelstm/treelstm.ra" "$tmp/wide" --sizes D=3,E=2,V=5 $small
tap_is "$status,$(grep -c wrong-arity <<<"$err")" "1,1" "a structure that the model does not take is refused"
bench "$srcdir/examples/treelstm/treelstm.ra" "$tmp/wide" --sizes D=3,E=2,V=5 $small --binarize left
tap_is "$status,$(nodes)" "0,15" "and binarized when that is asked for"
given=$(asked 'root 0 3\n' $model "$tmp/trees" --vocab "$tmp/words" --sizes D=3,V=4 --threads 1 --batches 3 \
	--minibatches 1)
tap_is "$(asked 'root 3 3\n' $model "$tmp/trees" --vocab "$tmp/words" --sizes D=3,V=4 --threads 1 --batches 3 \
	--minibatches 1)" "$given" \
	"after the last structure comes the first again"
printf 'a\n' >"$tmp/few"
bench "$model" "$tmp/trees" --sizes D=3,V=4 $small --vocab "$tmp/few"
refused 1 "unknown-word" "a word that the vocabulary lacks is refused"
bench ${childsum/ / "$tmp/one.conllu" } --column word=nothing
refused 1 "input-not-supplied" "as is a column that there is none of"
bench "$model" "$tmp/trees" --sizes D=3,V=4 $small --vocab "$tmp/words" --keep "$tmp/own"
refused 1 "--keep is for words that are drawn" "and keeping words that are the file's own"
[ ! -e "$tmp/own" ]
tap_ok $? "which leaves nothing behind"
printf '{"children": [[1], [0]]}' >"$tmp/cycle.json"
bench ${childsum/ / "$tmp/cycle.json" }
refused 1 "cycle" "and a structure with a cycle"

bench "$model" --sizes X=3
refused 2 "the model has no dimension 'X'; its dimensions are V, D" "a dimension that the model does not have is refused, with those that it has"
bench "$model" --sizes D=none
refused 2 "DIMENSION=NUMBER" "as is a size that is no number"
bench "$model" --batches 1,,2
refused 2 "--batches is numbers" "and a list that is none"
bench "$model" --threads 0
refused 2 "--threads is numbers" "and threads of nothing"
bench "$model" "$tmp/nowhere"
refused 1 "cannot read" "and trees that are not there"
"$ESPALIER" bench "$model" - --sizes D=3,V=5 <<<'a b' >"$tmp/out" 2>"$tmp/err"
tap_is "$?,$(head -n 1 "$tmp/err" | grep -c '^standard input:1:1: ')" "1,1" "standard input is called so"
printf '(2 a)\n(2 zz)\n' >"$tmp/second"
"$ESPALIER" bench "$model" - --sizes D=3,V=1 $small --vocab "$tmp/few" --backend interpreter \
	--no-cache <"$tmp/second" >"$tmp/out" 2>"$tmp/err"
tap_is "$?,$(grep -c '^standard input:2:' "$tmp/err")" "1,1" "also where it is read again"
printf '(2 (2 a) (2 b)\n' >"$tmp/broken"
bench "$model" "$tmp/broken" --sizes D=3,V=5
refused 1 "unbalanced-tree" "and a tree that has no end"
: >"$tmp/empty"
bench "$model" "$tmp/empty" --sizes D=3,V=5
refused 1 "empty-input" "and a file without one"
echo '[]' >"$tmp/empty.json"
bench "$model" "$tmp/empty.json" --sizes D=3,V=5
refused 1 "holds no" "also of JSON"
bench "$srcdir/examples/gru/gru.ra" --length 100000001
refused 2 "--length" "and a length beyond all memory"
tap_done
