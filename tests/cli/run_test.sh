# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier run: forms of output, minibatches, files.
. "${srcdir:-.}/tests/cli/support.sh"

run "$here/tiny.ra" "$tmp/trees"
tap_is "$status" 0 "a treebank runs"
tap_is "$out" "twice: 10 10
total: 10
twice: 20 22
total: 21
twice: 14 16
total: 15" "outputs without labels are named"
tap_is "$err" "" "nothing else is said"

run "$here/labelled.ra" "$tmp/trees"
tap_is "$out" "first of all  5.000  a b
second        11.000  a b C
second        8.000  zz" "an output with labels is a line a tree"

run "$here/tiny.ra" "$tmp/trees" --at all
tap_is "$out" "twice[0]: 2 4
total[0]: 3
twice[1]: 6 8
total[1]: 7
twice[2]: 10 10
total[2]: 10

twice[0]: 2 4
total[0]: 3
twice[1]: 6 8
total[1]: 7
twice[2]: 10 10
total[2]: 10
twice[3]: 10 12
total[3]: 11
twice[4]: 20 22
total[4]: 21

twice[0]: 14 16
total[0]: 15" "outputs of all nodes are named, with the number of the node"

# --- labels of all nodes ---

run "$here/labelled.ra" "$tmp/trees" --at all
tap_is "$out" "a	second	2.000
b	second	4.000
(0 1)	first of all	5.000

a	second	2.000
b	second	4.000
(0 1)	first of all	5.000
C	second	6.000
(2 3)	second	11.000

zz	second	8.000" "words stand with their best labels, other nodes with the numbers of their children"
sed '$a output best = 2 * h labels "left", "right"' "$here/labelled.ra" >"$tmp/two.ra"
printf '(2 (2 \033[2J) (2 b))\n' >"$tmp/escape"
run "$tmp/two.ra" "$tmp/escape" --at all
case $status,$out in 0,"?[2J	"*=second*) tap_ok 0 "several outputs are named, and words obey no terminal" ;;
*) tap_ok 1 "several outputs are named, and words obey no terminal" && show ;; esac

sed '$a output sum = sum(h) at every node' "$here/labelled.ra" >"$tmp/mixed.ra"
printf '(2 (2 a) (2 b))\n' >"$tmp/pair"
run "$tmp/mixed.ra" "$tmp/pair" --at all
tap_is "$out" "a	second	2.000
sum[0]: 3
b	second	4.000
sum[1]: 7
(0 1)	first of all	5.000
sum[2]: 10" "outputs without labels stand behind those that have some"

run "$here/tiny.ra" "$tmp/trees" --format json
tap_is "$out" '{"tree":0,"nodes":3,"sentence":"a b","outputs":{"twice":[10,10],"total":[10]}}
{"tree":1,"nodes":5,"sentence":"a b C","outputs":{"twice":[20,22],"total":[21]}}
{"tree":2,"nodes":1,"sentence":"zz","outputs":{"twice":[14,16],"total":[15]}}' "JSON has an object a tree"

run "$here/tiny.ra" "$tmp/trees" --format json --at all
tap_is "$(echo "$out" | head -n 1)" \
	'{"tree":0,"nodes":3,"sentence":"a b","outputs":{"twice":[[2,4],[6,8],[10,10]],"total":[[3],[7],[10]]}}' \
	"JSON of all nodes has an array a node"

run "$here/nan.ra" "$tmp/trees" --format json
tap_is "$(echo "$out" | head -n 1)" \
	'{"tree":0,"nodes":3,"sentence":"a b","outputs":{"root":[null,null],"quotient":[null,null]}}' \
	"JSON says null for what is no number"

printf '(2 (2 "\\\001) (2 caf\303\251\377\355\240\200))\n' >"$tmp/bytes"
run "$here/tiny.ra" "$tmp/bytes" --format json
tap_is "$out" \
	'{"tree":0,"nodes":3,"sentence":"\"\\\u0001 café\ufffd\ufffd\ufffd\ufffd","outputs":{"twice":[30,30],"total":[30]}}' \
	"JSON is UTF-8 whatever the words are"
printf '(2 (2 \033[2J) (2 b))\n' >"$tmp/bytes"
run "$here/labelled.ra" "$tmp/bytes"
case $out in *'?[2J b'*) tap_ok 0 "text holds no control characters" ;; *) tap_ok 1 "text holds no control characters" ;; esac

# --- minibatches ---

for i in $(seq 50); do cat "$tmp/trees"; done >"$tmp/many"
run "$here/tiny.ra" "$tmp/many" --format json --at all
one=$out
for batch in 1 7 150 1000; do
	run "$here/tiny.ra" "$tmp/many" --format json --at all --batch $batch
	[ "$out" = "$one" ]
	tap_ok $? "minibatches of $batch give the same"
done
tap_is "$(echo "$one" | tail -n 1 | cut -c 1-11)" '{"tree":149' "trees are counted over minibatches"

run "$here/tiny.ra" "$tmp/many" --timing
case $status,$err in 0,*"150 trees, 450 nodes, 3 minibatches"*compile*bind*linearize*run*) tap_ok 0 "costs are told" ;;
*) tap_ok 1 "costs are told" ;; esac

echo '(2 a)' >"$tmp/one"
run "$here/tiny.ra" "$tmp/one" --timing
tap_is "$(echo "$err" | head -n 1)" "1 tree, 1 node, 1 minibatch, 1 batch" "one of each is told in the singular"
run "$here/tiny.ra" "$tmp/one" --threads 1 --no-cache --cache-dir "$tmp"
tap_is "$status,$err" "0," "threads and the cache can be chosen"

# --- tables ---

# labelled INPUT [ARGUMENT...]: the first tree's outputs, by a model whose last bits tell whether there are tables.
labelled()
{
	esp run "$tmp/labelled.ra" "$@" --weights "$tmp/tenths.safetensors" --vocab "label=$tmp/labels" --backend interpreter \
		--format json --timing
	out=$(head -n 1 <<<"$out")
}

cat >"$tmp/labelled.ra" <<'END'
model labelled
structure tree(left, right)
input label : token
param E[V, D]
param W[D, D]
state h[D]
leaf:
    h = W @ E[label]
inner:
    h = left.h + right.h + W @ E[label]
output total = h at root
END
floats 7 8 8 7 6 2 1 1 .3 .1 .1 .3 | weights "{$E,$W}" >"$tmp/tenths.safetensors"
printf '0\n1\n2\n<unk>\n' >"$tmp/labels"
echo '(2 (1 a) (0 b))' >"$tmp/labelled"
for _ in {1..100}; do cat "$tmp/labelled"; done >"$tmp/hundred"
labelled "$tmp/labelled"
one=$out
labelled "$tmp/hundred"
tap_is "$status,$out,$(grep -c 'for constants' <<<"$err")" "0,$one,0" \
	"a tree has the same bits in a long file, without a table"
labelled "$tmp/hundred" --rules all
tabled=$out
tap_is "$status,$(grep -c 'for constants' <<<"$err")" "0,1" "tables are made when all rules are asked for"
[ "$one" != "$tabled" ]
tap_ok $? "which is seen in the last bits" || echo "# $one"
labelled "$tmp/labelled" --rules all
tap_is "$out,$(grep -c 'for constants' <<<"$err")" "$tabled,1" "also for one tree"
labelled "$tmp/labelled" --table-bytes 1000
tap_is "$out,$(grep -c 'for constants' <<<"$err")" "$tabled,1" "or when it is said how large they may be"
out=$("$ESPALIER" run "$tmp/labelled.ra" - --weights "$tmp/tenths.safetensors" --vocab "label=$tmp/labels" \
	--backend interpreter --format json <"$tmp/labelled")
tap_is "$out" "$one" "standard input gives the bits of a file"
echo '{"children": [[], [], [0, 1]], "data": {"label": [0, 1, 2]}}' >"$tmp/numbers.json"
esp run "$tmp/labelled.ra" "$tmp/numbers.json" --weights "$tmp/tenths.safetensors" --backend interpreter --timing
tap_is "$status,$(grep -c 'for constants' <<<"$err")" 0,0 "nor are tables made where there is no vocabulary"

# --- a schedule ---

# It is for the tables that dump has seen, which a run would do without.
cat >"$tmp/tables.ra" <<'END'
model tables
structure tree(left, right)
input word : token
param E[V, D]
param W[D, D]
state h[D]
leaf:
    h = W @ E[word]
inner:
    h = left.h + right.h
output total = sum(h) at root
END
esp dump sched "$tmp/tables.ra" --weights "$tmp/tiny.safetensors" --output "$tmp/schedule"
run "$tmp/tables.ra" "$tmp/one" --schedule "$tmp/schedule"
tap_is "$status,$out,$err,$(grep -c '^tile fold0' "$tmp/schedule")" "0,total: 3,,1" \
	"a dumped schedule of tables fits a short run"

# What dump writes is for the outputs that run computes, as long as both are told the same of them.
for at in "" "--at root" "--at all"; do
	esp dump sched "$here/tiny.ra" --weights "$tmp/tiny.safetensors" $at --output "$tmp/schedule"
	run "$here/tiny.ra" "$tmp/trees" $at
	wanted=$out
	run "$here/tiny.ra" "$tmp/trees" $at --schedule "$tmp/schedule"
	tap_is "$status,$err,$out,$(grep -qc '^tile output' "$tmp/schedule" && echo tiles)" "0,,$wanted,tiles" \
		"a schedule that was dumped runs: ${at:-no --at}"
done
esp dump sched "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --at model --output "$tmp/schedule"
esp explain "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --at model --schedule "$tmp/schedule"
tap_is "$status,$err" "0," "so does one of outputs where the model says, for what computes them there"
run "$here/tiny.ra" "$tmp/trees" --schedule "$tmp/schedule"
refused 1 illegal-schedule "and no other"

# --- files ---

run "$here/tiny.ra" "$tmp/trees" --output "$tmp/result"
tap_is "$status,$out,$err,$(wc -l <"$tmp/result")" "0,,,6" "the output goes to a file"
echo before >"$tmp/result"
chmod 640 "$tmp/result"
ln -s result "$tmp/link"
run "$here/tiny.ra" "$tmp/trees" --output "$tmp/link"
tap_is "$(wc -l <"$tmp/result"),$(stat -c %a "$tmp/result"),$(readlink "$tmp/link")" "6,640,result" \
	"a file that is replaced keeps its mode, a link stays one"
echo before >"$tmp/result"
{ cat "$tmp/many"; echo '(2 (2 a)'; } >"$tmp/broken"
run "$here/tiny.ra" "$tmp/broken" --output "$tmp/result" --batch 2
tap_is "$status,$(cat "$tmp/result"),$(ls "$tmp" | grep -c '^result')" "1,before,1" \
	"a failure in the middle leaves the old file"
run "$here/tiny.ra" "$tmp/trees" --output "$tmp/none/result"
refused 1 "No such file" "an output that cannot be made is refused"
run "$here/tiny.ra" "$tmp/broken" --batch 2
case $status,$out,$err in 1,twice*,*unbalanced*) tap_ok 0 "on stdout a failure in the middle is told at the end" ;;
*) tap_ok 1 "on stdout a failure in the middle is told at the end" ;; esac
if [ -c /dev/full ]; then
	"$ESPALIER" run "$here/tiny.ra" "$tmp/many" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" \
		--backend interpreter 2>"$tmp/err" >/dev/full
	tap_is "$?,$(grep -c 'No space left' "$tmp/err")" "1,1" "a full disk is told, once"
	run "$here/tiny.ra" "$tmp/trees" --output /dev/full
	tap_is "$status,$(grep -c 'No space left' "$tmp/err")" "1,1" "behind --output as well"
	"$ESPALIER" help >/dev/full 2>"$tmp/err"
	tap_is "$?" 1 "even the help notices"
else
	tap_skip "no /dev/full" "a full disk is told"
fi
mkfifo "$tmp/pipe"
cat "$tmp/pipe" >"$tmp/result" &
run "$here/tiny.ra" "$tmp/trees" --output "$tmp/pipe"
wait
tap_is "$status,$(wc -l <"$tmp/result")" "0,6" "a pipe is written in place"

esp run "$example/treelstm.ra" "$example/sentences.ptb" --weights "$example/sst-treelstm-small.safetensors" \
	--vocab "$example/sst-vocab.txt" --backend interpreter
tap_is "$status,$(echo "$out" | wc -l)" "0,12" "the example runs"
tap_is "$(echo "$out" | head -n 1)" "positive      0.584  A lovely film ." "and finds the film lovely"
tap_done
