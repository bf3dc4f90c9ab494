# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier quantise: the report, the weights that it writes and who uses them, and what is refused.
. "${srcdir:-.}/tests/cli/support.sh"

# A model of 16 columns, whose leaves have no bound, and weights of an eighth, in a pattern.
cat >"$tmp/sums.ra" <<'RA'
model sums
structure tree(left, right)
input word : token
param E[V, D]
param L[D, D], R[D, D], O[2, D]
state h[D]
leaf:
    h = E[word]
inner:
    h = tanh(L @ left.h + R @ right.h)
output best = O @ h at root labels "bad", "good"
RA
# values COUNT PATTERN: numbers 0 (.), 0.125 (+), -0.125 (-), again and again.
values()
{
	awk -v n="$1" -v p="$2" 'BEGIN { for (i = 0; i < n; i++) {
		c = substr(p, i % length(p) + 1, 1)
		printf "%s", c == "+" ? "\\0\\0\\0\\76" : c == "-" ? "\\0\\0\\0\\276" : "\\0\\0\\0\\0" } }'
}
printf "$(values 64 '+-.++--')$(values 256 '+--+.')$(values 256 '-+.')$(values 32 '+-+')" |
	weights '{"E":{"dtype":"F32","shape":[4,16],"data_offsets":[0,256]},"L":{"dtype":"F32","shape":[16,16],"data_offsets":[256,1280]},"R":{"dtype":"F32","shape":[16,16],"data_offsets":[1280,2304]},"O":{"dtype":"F32","shape":[2,16],"data_offsets":[2304,2432]}}' \
		>"$tmp/w.safetensors"
printf 'a\nb\nc\nd\n' >"$tmp/vocab"
printf '(good (1 a) (0 b))\n(0 (0 (1 c) (0 d)) (1 a))\n(bad (1 b) (1 c))\n' >"$tmp/banks"

# quantise ARGUMENT...
quantise()
{
	esp quantise "$tmp/sums.ra" --weights "$tmp/w.safetensors" --vocab "$tmp/vocab" --backend interpreter "$@"
}
# best FILE ARGUMENT...: the lines of a run with these weights.
best()
{
	esp run "$tmp/sums.ra" "$tmp/banks" --weights "$1" --vocab "$tmp/vocab" --backend interpreter "${@:2}"
}

quantise --calibrate "$tmp/banks" -o "$tmp/q.safetensors"
tap_is "$status,$err" "0," "weights are quantised"
tap_is "$(echo "$out" | head -n 1)" "calibrated with 3 structures; errors over 11 nodes, in proportion to f32" "the report says by what"
tap_is "$(echo "$out" | grep -c '^[LR]\*h .* i8 .* calibrated')" 2 "both products of states have calibrated bounds"
tap_is "$(echo "$out" | grep -c '^O\*h .* f32 .*fewer than 16')" 1 "a small one stays in f32"
tap_is "$(echo "$out" | grep '^weights: ')" \
	"weights: a file of $(wc -c <"$tmp/q.safetensors") bytes, of 2432 bytes of elements before ($(($(wc -c <"$tmp/q.safetensors") * 100 / 2432)) %)" \
	"and how many bytes the weights take"
tap_is "$(echo "$out" | grep -Ec '^best: of 3 labels [0-3] are right in f32, [0-3] in i8; [0-3] differ')" 1 \
	"labels by name and by number are counted"
best "$tmp/q.safetensors"
tap_is "$status,$(echo "$out" | wc -l),$err" "0,3," "the weights run without further options"
small=$(wc -c <"$tmp/q.safetensors")
tap_is "$((small < 2432))" 1 "the file of $small bytes is smaller than that of f32"
esp check "$tmp/sums.ra" --weights "$tmp/q.safetensors"
tap_is "$status,$(echo "$out" | grep weights)" "0,    weights of 912 bytes: f32 400 (6 tensors), i8 512 (2 tensors)" "check says how much is in 8 bits"
esp explain "$tmp/sums.ra" --weights "$tmp/q.safetensors"
tap_is "$(echo "$out" | grep -c 'in i8 of factors within a bound that comes with the weights')" 2 "explain says what they are computed in"
tap_is "$(echo "$out" | grep -c '^sums with [LR, ]* change by what has no bound$')" 1 "nothing bounds what is cut off, though weights are zero"

quantise --calibrate "$tmp/banks" --evaluate "$tmp/banks" --at all --format json --keep L -o "$tmp/k.safetensors"
tap_is "$status,$(echo "$out" | grep -c '{"name":"L\*h","sums":16,"terms":16,"in":"f32"')" "0,1" "JSON, and a part that is kept"
tap_is "$(echo "$out" | grep -c '"outputs":\[{"name":"best",.*"labels":11,')" 1 "labels of all nodes that the model knows"
for precision in i16 i8x3; do
	quantise --calibrate "$tmp/banks" --precision $precision -o "$tmp/k.safetensors"
	tap_is "$status,$(echo "$out" | grep -c "^[LR]\*h .* $precision ")" "0,2" "products in $precision"
done

esp explain "$tmp/sums.ra" --weights "$tmp/q.safetensors" --math fast
tap_is "$(echo "$out" | grep -c 'in f32: bounds that come with the weights hold for other options')" 2 "and why not, under other options"

# --- weights only ---

# A vocabulary of weights with an outlier: L[0,2] is 2, and column 2 of all embeddings is 2^-20.
tiny='\0\0\200\65'
one='\0\0\200\76' half='\0\0\0\76'
row="$one$half$tiny$(printf '%s' "$one$half$half$one$one$half$one$one$half$half$one$half$half")"
printf "$row$row$row$row$half$half\\0\\0\\0\\100$(values 253 '+--+.')$(values 256 '-+.')$(values 32 '+-+')" |
	weights '{"E":{"dtype":"F32","shape":[4,16],"data_offsets":[0,256]},"L":{"dtype":"F32","shape":[16,16],"data_offsets":[256,1280]},"R":{"dtype":"F32","shape":[16,16],"data_offsets":[1280,2304]},"O":{"dtype":"F32","shape":[2,16],"data_offsets":[2304,2432]}}' \
		>"$tmp/outlier.safetensors"
printf '(good (1 a) (0 b))\n' >"$tmp/one"
outlier()
{
	esp quantise "$tmp/sums.ra" --weights "$tmp/outlier.safetensors" --vocab "$tmp/vocab" --backend interpreter --calibrate "$tmp/one" --weights-only "$@"
}
outlier -o "$tmp/o.safetensors"
tap_is "$status,$err,$(echo "$out" | grep -c '^[LR]\*h .* f32 ')" "0,,2" "products are computed in f32 with weights of 8 bits"
tap_is "$(echo "$out" | sed -n '/^weights  /,/^$/p' | awk '/^L/ { print $3 < $2 } /^R/ { print $3 <= $2 }' | tr '\n' ' ')" "1 1 " \
	"the error of the product with an outlier is smaller than with plain scales, that of the other no larger"
tap_is "$(grep -ac 'bound(' "$tmp/o.safetensors"),$(grep -ac '"precision":"f32"' "$tmp/o.safetensors")" "0,1" "the file has no bounds"
outlier --format json -o "$tmp/o.safetensors"
tap_is "$status,$(echo "$out" | grep -c '"plain_rms":.*,"chosen_rms":')" "0,1" "JSON has the errors, too"
best "$tmp/o.safetensors"
tap_is "$status,$(echo "$out" | wc -l),$err" "0,3," "and the weights run without further options"
esp explain "$tmp/sums.ra" --weights "$tmp/o.safetensors"
tap_is "$(echo "$out" | grep -c ', weights as i8')" 1 "in 8 bits, as explain says"
sed 's/"precision":"f32"/"precision":"f16"/' "$tmp/o.safetensors" >"$tmp/bad.safetensors"
best "$tmp/bad.safetensors"
refused 1 "[bad-quantised]" "a precision that is not known"
outlier --keep L -o "$tmp/x.safetensors"
refused 2 "--weights-only computes products in f32: leave out --keep" "a product that is kept in f32 as all are"
outlier --precision i16 -o "$tmp/x.safetensors"
refused 2 "leave out --precision" "and integers of products"

# --- refusals ---

sed 's/L\[D, D\]/& products i8/' "$tmp/sums.ra" >"$tmp/declared.ra"
esp quantise "$tmp/declared.ra" --weights "$tmp/w.safetensors" --vocab "$tmp/vocab" --backend interpreter --calibrate "$tmp/banks" -o "$tmp/d.safetensors"
tap_is "$status,$err,$(echo "$out" | grep -c '^L\*h .* i8 .* calibrated')" "0,,1" "a declared product gets its bound from the calibration"
esp run "$tmp/declared.ra" "$tmp/banks" --weights "$tmp/d.safetensors" --vocab "$tmp/vocab" --backend interpreter
tap_is "$status,$(echo "$out" | wc -l),$err" "0,3," "with which the model runs"
sed 's/L\[D, D\]/& products i16/; s/h = E\[word\]/h = tanh(E[word])/' "$tmp/sums.ra" >"$tmp/declared.ra"
esp quantise "$tmp/declared.ra" --weights "$tmp/w.safetensors" --vocab "$tmp/vocab" --backend interpreter --calibrate "$tmp/banks" --keep L \
	-o "$tmp/x.safetensors"
refused 1 "[products-refused]" "a part that is kept and declared"
tap_is "$(echo "$err" | grep -c "or do not keep them in f32")" 1 "which says that one of the two must go"
tap_is "$(ls "$tmp/x.safetensors" 2>&1 | grep -c 'No such file')" 1 "before anything is written"

quantise --calibrate "$tmp/banks"
refused 2 "quantise needs -o FILE" "nowhere to write"
quantise -o "$tmp/x.safetensors"
refused 2 "quantise needs --calibrate FILE" "nothing to observe"
quantise --calibrate - -o "$tmp/x.safetensors"
refused 2 "reads its structures twice" "standard input"
quantise --calibrate "$tmp/banks" --keep Q -o "$tmp/x.safetensors"
refused 1 "[unknown-product]" "a part that the model does not have"
: >"$tmp/none"
quantise --calibrate "$tmp/none" -o "$tmp/x.safetensors"
refused 1 "[empty-input]" "a file without structures"
tap_is "$(ls "$tmp/x.safetensors" 2>&1 | grep -c 'No such file')" 1 "nothing was written"
sed 's/tanh(L/sigmoid(L/' "$tmp/sums.ra" >"$tmp/other.ra"
esp run "$tmp/other.ra" "$tmp/banks" --weights "$tmp/q.safetensors" --vocab "$tmp/vocab" --backend interpreter
refused 1 "[quantised-model]" "weights that were quantised for another model"
head -c $((small - 1)) "$tmp/q.safetensors" >"$tmp/cut.safetensors"
best "$tmp/cut.safetensors"
refused 1 "cut.safetensors" "a file that was cut off"

tap_done
