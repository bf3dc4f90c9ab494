# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier tune: what it writes is a schedule that changes no result. How much is gained, no test says.
. "${srcdir:-.}/tests/cli/support.sh"

tune="tune $here/tiny.ra $tmp/trees --weights $tmp/tiny.safetensors --vocab $tmp/words --backend interpreter --threads 1"

esp $tune --seconds 1 --output "$tmp/tuned"
tap_is "$status,$out" "0," "a schedule is looked for"
echo "$err" | tail -n 1 | grep -Eq '^[0-9]+ schedules measured: [0-9.]+ times as fast$'
tap_ok $? "and how many were measured is told" || show
head -n 1 "$tmp/tuned" | grep \
	-q '^# tuned by espalier tune for trees, 1 minibatch of 3 trees, 1 thread, outputs at the root$'
tap_ok $? "what it was tuned for stands in the file" || head "$tmp/tuned"
grep -q '^# [1-9][0-9]* schedules were measured; this one is [1-9][0-9.]* times as fast' "$tmp/tuned"
tap_ok $? "and what that gains"
tap_is "$(grep -Ec '^tile .* nodes [1-9].* columns [1-9] unroll [1-9]' "$tmp/tuned"),$(grep -c '^fuse ' "$tmp/tuned")" \
	"$(grep -c '^tile ' "$tmp/tuned"),1" "it is a whole schedule"
run "$here/tiny.ra" "$tmp/trees" --rules all
plain=$out
run "$here/tiny.ra" "$tmp/trees" --rules all --schedule "$tmp/tuned"
tap_is "$status,$out" "0,$plain" "with it the model computes the same"
esp $tune --seconds 1 --batch 1 --at all
tap_is "$status,$(head -n 1 <<<"$out")" \
	"0,# tuned by espalier tune for trees, 3 minibatches of 1 tree, 1 thread, outputs at all nodes" \
	"without a file it goes to standard output"
for lanes in "generic 4" "avx512 16"; do
	esp $tune --seconds 1 --target-cpu ${lanes% *}
	tap_is "$status,$(grep -E '^vectorize [0-9]+$' <<<"$out")" "0,vectorize ${lanes#* }" "of the processor of --target-cpu ${lanes% *}"
done

# --- precisions: a table of times and differences ---

# 16 terms, of which integers are made.
cat >"$tmp/wide.ra" <<'END'
model wide
structure tree(left, right)
input word : token
param E[V, D], W[D, D]
state h[D]
leaf:
    h = tanh(E[word])
inner:
    h = tanh(W @ (left.h - right.h))
output y = h
output class = argmax(h) at root
END
floats $(for i in $(seq $((20 * 16))); do echo ".$((i * i % 5 / 2 * 2 + 1))"; done | sed 's/\.[2-9]/.3/') |
	weights '{"E":{"dtype":"F32","shape":[4,16],"data_offsets":[0,256]},"W":{"dtype":"F32","shape":[16,16],"data_offsets":[256,1280]}}' \
		>"$tmp/wide.safetensors"
wide="$tmp/wide.ra $tmp/trees --weights $tmp/wide.safetensors --vocab $tmp/words --backend interpreter --threads 1"
esp tune $wide --seconds 1 --at all --precisions --output "$tmp/table"
tap_is "$status,$out,$err" "0,," "precisions are measured"
tap_is "$(sed 1q "$tmp/table" | sed 's/, .*//'),$(awk '/^[a-z]/ && $NF == "y" { printf "%s ", $1 == "weights" ? $2 : $1 }' "$tmp/table")" \
	"1 minibatch of 3,f32 f16 bf16 bf16x1 bf16x3 i16 i8x3 i8 f16 bf16 i8 " "each kind has a line"
tap_is "$(awk '$NF == "y" { print $1 == "weights" ? $6 : $5 }' "$tmp/table" | awk '{ print ($1 == 0) }' | tr '\n' ' ')" \
	"1 0 0 0 0 0 0 0 0 0 0 " "with a difference that f32 alone lacks"
tap_is "$(awk '$NF == "y" { d[NR] = $1 == "weights" ? $6 : $5 } END { for (i in d) if (d[i] > most) most = d[i]; print (most < 0.05), (most > 0.0001) }' "$tmp/table")" \
	"1 1" "that is small"
tap_is "$(grep -c ' of 9 *class$' "$tmp/table")" 11 "classes are counted that are others"
tail -n 1 "$tmp/table" | grep -Eq '^(f32: nothing is faster|fastest: (f16|bf16(x[13])?|i16|i8(x3)?|weights [a-z0-9]*) \(--(precision|weights-as) [a-z0-9]*\), [0-9.]+ times as fast as f32$)'
tap_ok $? "and which is fastest is told" || cat "$tmp/table"
esp tune $wide --seconds 1 --precisions --target-cpu avx2
tap_is "$status,$(tail -n 1 <<<"$out" | grep -Ec '^(f32: nothing is faster|fastest: )')" "0,1" "also by code for another processor"
esp tune $wide --precisions --precision i8
refused 2 "leave out --precision" "one precision and all of them contradict"

# --- an interrupt ends the search, not the command ---

if env --default-signal=INT true 2>/dev/null; then
	mkdir "$tmp/out"
	env --default-signal=INT "$ESPALIER" $tune --seconds 1000 --output "$tmp/out/tuned" 2>"$tmp/err" &
	pid=$!
	for i in $(seq 400); do
		ls "$tmp/out"/tuned.* >/dev/null 2>&1 && break
		sleep 0.05
	done
	kill -s INT $pid
	wait $pid
	tap_is "$?,$(ls "$tmp/out"),$(grep -c '^fuse ' "$tmp/out/tuned")" "0,tuned,1" "an interrupt leaves the best so far"
else
	tap_skip "no env --default-signal" "an interrupt"
fi

# --- what is refused ---

esp $tune --seconds 1000 --output "$tmp/none/tuned"
refused 1 "No such file" "a file that cannot be made is told of before the work"
esp tune "$here/tiny.ra" "$tmp/trees"
refused 2 "tune needs --weights" "weights are needed"
esp tune "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --backend interpreter
refused 2 "give --vocab FILE" "and a vocabulary"
esp tune "$here/tiny.ra" /dev/null --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter
refused 1 "must be a file" "and trees that can be read more than once"
: >"$tmp/empty"
esp tune "$here/tiny.ra" "$tmp/empty" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter
refused 1 "empty-input" "and trees"

# --- its parts in the bench ---

bench()
{
	esp bench "$@" --backend interpreter --no-cache --threads 1 --minibatches 1 --runs 1 --batches 1
}
bench --ablation --sizes D=2 --length 2
tap_is "$status,$(grep -Ec '^[a-z_]+ +1 +[0-9.]+( +[0-9.]+)+$' <<<"$out"),$(tail -n 1 <<<"$out" | grep \
	-c '^geometric mean')" "0,9,1" \
	"an ablation is a table of the models of the field" || show
bench --ablation --sizes D=2,V=5,nothing=3 --length 2
tap_is "$status,$(grep -c "no model has a dimension 'nothing'" <<<"$err"),$out" "2,1," \
	"a size that no model of it has is refused"
bench --ablation --sizes D=2,V=5,C=3 --length 2
tap_is "$status,$(wc -l <<<"$out")" "0,11" "one that only some have is theirs" || show
bench "$here/tiny.ra" --ablation --sizes D=2,V=5
tap_is "$status,$(wc -l <<<"$out")" "0,3" "or of a model" || show
exhaustive=("$srcdir/bench/models/multiplicative.ra" --sizes D=2,M=2,V=5)
[ -z "$shadowed" ] || exhaustive=("$here/tiny.ra" --sizes D=2,V=5)
bench "${exhaustive[@]}" --exhaustive --length 2
tap_is "$status,$(tail -n 1 <<<"$out" | grep -c '"loss_percent": [0-9]')" "0,1" "tiles are searched exhaustively" || \
	show
# count NAME: of the first group
count()
{
	head -n 1 <<<"$out" | grep -o '{"timed".*}, "chosen"' | grep -o "\"$1\": [0-9]*" | grep -o '[0-9]*$'
}
# all_counted: every tile of every group but the chosen one has one fate
all_counted()
{
	grep '"group"' <<<"$out" | sed 's/, "chosen.*//' | tr -d '"{},' | awk '{ for (i = 2; i < NF; i++) v[$i] = $(i + 1)
		n += v["tiles:"] != 1 + v["timed:"] + v["predicted:"] + v["same:"] + v["greatest:"] + v["slower:"] + v["refused:"] }
		END { exit !NR || n }'
}
all_counted
tap_is "$?,$(count predicted),$(count refused)" "0,0,0" "and each is timed or dropped by a rule" || show
tap_ok "$(($(count same) == 0))" "those that differ in sizes larger than any level are the same" || show
all=$(count timed)
bench "${exhaustive[@]}" --exhaustive --length 2 --within 0.01 --margin 1000000
all_counted
tap_is "$?,$(($(count predicted) > 0)),$(($(count timed) < all)),$(count greatest),$(count slower)" "0,1,1,0,0" \
	"some are left out by their predictions, and none by its time where the margin is wide" || show
bench "${exhaustive[@]}" --exhaustive --length 2 --within 0.01 --above 1000000
tap_is "$status,$(grep -c '"group"' <<<"$out"),$(grep -c '"model"' <<<"$out")" "0,0,1" \
	"only losses above a percentage are written" || show
bench "${exhaustive[@]}" --exhaustive --within much
refused 2 "--within" "a percentage is a number"
bench
refused 2 "needs a MODEL.ra" "a bench without a model is none"
tap_done
