# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Mutants: explain lists them, a schedule chooses one, tune measures them.
. "${srcdir:-.}/tests/cli/support.sh"

cat >"$tmp/joined.ra" <<'END'
model joined
structure none
input x[2, 2, 4, 6]
param W[2, 2, 3, 3]
output y = relu(conv(x, W, pad=1))
END
floats $(for i in $(seq 36); do echo $((i % 7 + 1)); done) | weights '{"W":{"dtype":"F32","shape":[2,2,3,3],"data_offsets":[0,144]}}' >"$tmp/w.safetensors"
joined="$tmp/joined.ra --weights $tmp/w.safetensors"

esp explain $joined --mutants
tap_is "$status,$err" "0," "mutants are listed"
seam='mutate output.v6 part 0 2 before 3'
grep -A 4 -F "$seam  #" <<<"$out" >"$tmp/seam"
tap_ok $? "images that lie side by side are one" || show
grep -q '16 of 96 elements differ, 32 are computed by the original; .*; the same bits$' "$tmp/seam"
tap_ok $? "what differs is counted" || cat "$tmp/seam"
tap_is "$(grep -c 'differs at \[\*, 0\.\.2, [01], 0\.\.4, [05]\]' "$tmp/seam")" 2 "at the seam"
grep -A 1 -F "$seam border 3  #" <<<"$out" | grep -q 'modulo 2^31-1, equal; wrong with'
tap_ok $? "with a border between them nothing differs" || show
esp explain $joined --check-mutants
tap_is "$(grep -c '^mutate' <<<"$out")" "$(grep -c 'all 96 elements computed: with the correction 0 differ' <<<"$out")" \
	"each element of each mutant is computed"

echo "$seam" >"$tmp/seam.sched"
esp dump mutate $joined --schedule "$tmp/seam.sched"
tap_is "$status,$(grep -c accumulate_ <<<"$out"),$(grep -c cond_ <<<"$out")" "0,3,2" "a schedule chooses one, which is corrected at two columns"
esp dump sched $joined --schedule "$tmp/seam.sched"
echo "$out" >"$tmp/whole.sched"
tap_is "$(grep -c "^$seam\$" "$tmp/whole.sched")" 1 "it stands in the schedule that is printed"
esp dump sched $joined --schedule "$tmp/whole.sched"
tap_is "$out" "$(<"$tmp/whole.sched")" "which is read again"

# Takes a line of a schedule, and what is said of it.
refuse_line()
{
	echo "$1" >"$tmp/bad.sched"
	esp dump sched $joined --schedule "$tmp/bad.sched"
	tap_ok $((status == 0)) "'$1' is refused"
	grep -qF "$2" <<<"$err"
	tap_ok $? "as $2" || show
}
refuse_line 'mutate output.v99 part 0 2 before 3' 'the program computes no value of this name'
refuse_line 'mutate output.v3 part 0 2 before 3' 'it is no sum of products with windows of an image'
refuse_line 'mutate output.v6 part 0 5 before 3' 'it does not fit the sizes'
refuse_line 'mutate output.v6 part 0 2 before 1' 'it does not fit the sizes'
refuse_line 'mutate output.v6 phase 3 2 batch' 'it does not fit the sizes'
refuse_line 'mutate output.v6 part 0 1 before 3' "wrong argument: '1'"
refuse_line 'mutate output.v6 part 0 2 behind 3' "wrong argument: 'behind'"
refuse_line 'mutate output.v6 part 0 2 before' 'wrong argument'
refuse_line 'mutate output.v6 turn 0' "wrong argument: 'turn'"
refuse_line 'mutate output.v6 border 9' "wrong argument: '9'"
refuse_line 'mutate output.v6 border' "wrong argument: 'border'"
refuse_line "$seam border" "wrong argument: 'border'"
refuse_line 'mutate output.v6 border 7' 'it does not fit the sizes'
refuse_line 'mutate output.v6 part 5 2 batch' 'it does not fit the sizes'
refuse_line "$seam border 4" 'it does not fit the sizes'
refuse_line 'mutate output.v6' 'expects a value and what is done with it'
refuse_line "$seam"$'\n'"$seam" 'says the same twice'
refuse_line "$seam"$'\n'"$seam border 3" 'it is no sum of products with windows of an image'
refuse_line 'mutate output.v6 part 2 4 batch' 'it differs nearly everywhere'

printf '%s\nmutate off\n' "$seam" >"$tmp/off.sched"
esp dump sched $joined --schedule "$tmp/off.sched"
tap_is "$status,$(grep -c '^mutate' <<<"$out")" "0,0" "off takes back the lines before it"
printf '%s\nmutate off\n%s border 3\n' "$seam" "$seam" >"$tmp/off.sched"
esp dump sched $joined --schedule "$tmp/off.sched"
tap_is "$status,$(grep '^mutate' <<<"$out")" "0,mutate output.v6 part 0 2 before 3 border 3" "and none behind it"

{
	printf "\x93NUMPY\x01\x00v\x00"
	printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2, 4, 6), }"
	floats $(for i in $(seq 96); do echo $((i * i % 7 + 1)); done)
} >"$tmp/x.npy"
esp tune $joined --input "x=$tmp/x.npy" --mutants --seconds 5 --threads 1 --backend interpreter --output "$tmp/best.sched"
tap_is "$status,$out" "0," "mutants are measured"
grep -q "^$seam: [0-9.]* times as fast" <<<"$err"
tap_ok $? "each is told" || show
tap_is "$(grep -c 'changes results' <<<"$err")" 0 "and none changes a bit"
esp dump sched $joined --schedule "$tmp/best.sched"
tap_is "$status" 0 "what is written is a schedule"

printf 'model pair\nstructure none\ninput x[2, 2, 4, 6]\nparam A[2, 2, 3, 3], B[2, 2, 3, 3]\noutput y = conv(relu(conv(x, A, pad=1)), B, pad=1)\n' \
	>"$tmp/pair.ra"
esp bench "$tmp/pair.ra" --batches 1 --threads 1 --backend interpreter --keep "$tmp/pair"
esp tune "$tmp/pair.ra" --weights "$tmp/pair/weights.safetensors" --input "x=$tmp/x.npy" --mutants --seconds 10 --threads 1 --backend interpreter
grep -qE "^mutate output.v[0-9]+ .*; mutate output.v[0-9]+ .*: [0-9.]* times as fast" <<<"$err"
tap_ok $? "mutants of those that are no faster are measured, too" || show

# --- products of recursive bodies ---

cat >"$tmp/gates.ra" <<'END'
model gates
structure tree(left, right)
input word : token
param E[7, 12], Ul[12, 12], Ur[12, 12], Vl[4, 12], Vr[4, 12], O[12, 4]
state h[12]
leaf:
    h = E[word]
inner:
    h = sigmoid(Ul @ left.h + Ur @ right.h) * (O @ tanh(Vl @ left.h + Vr @ right.h))
output y = h at root
END
esp bench "$tmp/gates.ra" --batches 1 --threads 1 --backend interpreter --keep "$tmp/kept"
gates="$tmp/gates.ra --weights $tmp/kept/weights.safetensors"
esp explain $gates --check-mutants
tap_is "$status,$err" "0," "mutants of products are listed"
append=$(grep -oE '^mutate inner\.v[0-9]+ append inner\.v[0-9]+' <<<"$out")
tap_is "$(wc -l <<<"$append")" 2 "sums that begin with others are appended to them" || show
for what in 'join 0 inner' 'stack inner' 'pad 0 16' 'split 0 2'; do
	grep -qE "^mutate inner\.v[0-9]+ $what" <<<"$out"
	tap_ok $? "there is $what" || show
done
tap_is "$(grep -c 'computed: with the correction 0 differ' <<<"$out")" "$(grep -c '^mutate' <<<"$out")" "each element of each is computed"

echo "$append" >"$tmp/append.sched"
esp explain $gates --mutants --schedule "$tmp/append.sched"
read -ra first <<<"$(cut -d' ' -f2 <<<"$append" | tr '\n' ' ')"
again="mutate ${first[0]} join 0 ${first[1]}"
grep -qF "$again  #" <<<"$out"
tap_ok $? "what was appended can be joined" || show
tap_is "$(grep -c append <<<"$out")" 0 "and not be appended again"
{ echo "$append"; echo "$again"; } >"$tmp/again.sched"
esp dump mutate $gates --schedule "$tmp/again.sched"
tap_is "$status,$(sed -n '/^inner/,/^$/p' <<<"$out" | grep -c accumulate_)" "0,2" "a schedule chooses a mutant of a mutant" || show
esp dump sched $gates --schedule "$tmp/again.sched"
echo "$out" >"$tmp/whole.sched"
esp dump sched $gates --schedule "$tmp/whole.sched"
tap_is "$out" "$(<"$tmp/whole.sched")" "which is printed and read again"

convolution=$joined joined=$gates sum=${first[0]}
refuse_line "mutate $sum join 0 inner.v999" 'the program computes no value of this name'
refuse_line "mutate $sum join 0 $sum" 'a value is named twice'
refuse_line "mutate $sum join 3 ${first[1]}" 'it does not fit the sizes'
refuse_line "mutate $sum join" "wrong argument: 'join'"
refuse_line "mutate $sum join 0" "wrong argument: '0'"
refuse_line "mutate $sum append ${first[1]}" 'it does not begin with the others'
refuse_line "mutate $sum pad 0 1" "wrong argument: '1'"
refuse_line "mutate $sum pad 0 4" 'it does not fit the sizes'
refuse_line "mutate $sum split 0 9" 'it does not fit the sizes'
refuse_line "mutate $sum split 0 2 $sum" "wrong argument: '$sum'"
refuse_line "mutate $sum join 0 $(sed 's/.* append //;q' <<<"$append")" 'one of its values needs another'
joined=$convolution

printf 'model unequal\nstructure none\ninput x[2, 3], z[2, 5]\nparam A[3, 4], B[5, 4]\noutput y = x @ A\noutput u = z @ B\n' >"$tmp/unequal.ra"
esp bench "$tmp/unequal.ra" --batches 1 --threads 1 --backend interpreter --keep "$tmp/kept"
unequal="$tmp/unequal.ra --weights $tmp/kept/weights.safetensors"
esp explain $unequal --mutants
grep -A 1 ' stack ' <<<"$out" | grep -q ', equal; .*; sums have other terms, or another order$'
tap_ok $? "sums of unequal lengths that are stacked have further terms" || show
esp explain $unequal --mutants --math exact
tap_is "$status,$(grep -c ' stack ' <<<"$out")" "0,0" "which --math exact does not allow"

# --- listing takes long ---

# ROWS CHANNELS: a convolution of an image of so many rows, with so many channels, to one, its weights and its input of zeros.
make_large()
{
	printf 'model large\nstructure none\ninput x[4, %d, %d, %d]\nparam W[1, %d, 3, 3]\noutput y = conv(x, W, pad=1)\n' \
		"$2" "$1" "$1" "$2" >"$tmp/large.ra"
	head -c $((36 * $2)) /dev/zero | weights "{\"W\":{\"dtype\":\"F32\",\"shape\":[1,$2,3,3],\"data_offsets\":[0,$((36 * $2))]}}" \
		>"$tmp/large.safetensors"
	printf "\x93NUMPY\x01\x00v\x00" >"$tmp/large.npy"
	printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, $2, $1, $1), }" >>"$tmp/large.npy"
	head -c $((16 * $1 * $1 * $2)) /dev/zero >>"$tmp/large.npy"
	large="$tmp/large.ra --weights $tmp/large.safetensors --input x=$tmp/large.npy --mutants --threads 1 --backend interpreter"
}
make_large 16 24
esp tune $large --seconds 5 --output "$tmp/large.sched"
tap_ok $((status != 0)) "a convolution whose mutants take long to list" || show
grep -q '^[1-9][0-9]* schedules measured' <<<"$err"
tap_ok $? "has some measured" || show

if env --default-signal=INT true 2>/dev/null; then
	mkdir "$tmp/out"
	make_large 16 256
	env --default-signal=INT "$ESPALIER" tune $large --seconds 1000 --output "$tmp/out/tuned" 2>"$tmp/err" &
	pid=$!
	for i in $(seq 400); do
		ls "$tmp/out"/tuned.* >/dev/null 2>&1 && break
		sleep 0.05
	done
	sleep 1
	kill -s INT $pid
	wait $pid
	tap_is "$?,$(ls "$tmp/out"),$(grep -c '^0 schedules measured' "$tmp/err")" "0,tuned,1" "an interrupt ends the listing, and leaves the first schedule"
else
	tap_skip "no env --default-signal" "an interrupt"
fi

esp tune $joined --input "x=$tmp/x.npy" --mutants --precisions
refused 2 "leave out one" "two searches at once are refused"
esp explain $joined --mutants --format json
refused 2 "leave out --format json" "mutants have no JSON"
esp explain $joined --check-mutants --layers
refused 2 "leave out --layers" "and no layers"
tap_done
