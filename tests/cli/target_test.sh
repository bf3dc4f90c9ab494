# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier run --target vta gives what the host gives, and the same graph is written as C with its streams.
. "${srcdir:-.}/tests/cli/support.sh"

folder=$srcdir/tests/onnx/qlinear/QDQ
inputs=
for i in 0 1 2 3 4 5; do
	inputs="$inputs --input x$i=$folder/test_data_set_0/input_$i.pb"
done

# shellcheck disable=SC2086 # the inputs are words
esp run "$folder/model.onnx" $inputs
host=$out
tap_ok "$status" "a graph of quantised operators runs on the host" || show
# shellcheck disable=SC2086
esp run "$folder/model.onnx" $inputs --target vta
[ "$status" -eq 0 ] && [ -n "$host" ] && [ "$out" = "$host" ]
tap_ok $? "and gives the same with an accelerator" || show
# shellcheck disable=SC2086
esp run "$folder/model.onnx" $inputs --target vta --timing
timed=$(echo "$err" | sed -n 's/^accelerator *\([0-9]*\) cycles.*/\1/p')
esp explain "$folder/model.onnx" --target vta
tap_is "$(echo "$out" | awk '/^accelerator, of a row/ {on = 1; next} /^all / && on {print $2}')" "$timed" "explain has the cycles that a run of one row is timed with"
tap_is "$(echo "$out" | awk '/^vta[0-9]/ {sum += $2} END {print sum}')" "$timed" "which are those of all functions"
esp dump split "$folder/model.onnx"
[ "$status" -eq 0 ] && echo "$out" | grep -q '^function 0 on vta$' && echo "$out" | grep -q 'the host requantises'
tap_ok $? "of which the split says what it computes" || show
esp dump lower "$folder/model.onnx" --target vta
[ "$(echo "$out" | grep -c ' call [0-9]* in 0..nodes')" -ge 4 ]
tap_ok $? "in steps that are calls" || show
esp compile "$folder/model.onnx" --target vta --as c -o "$tmp/net"
tap_is "$status,$(cd "$tmp/net" && echo *),$err" "0,net.c net.h net_arithmetic.h net_device.h net_executor.c net_streams.c net_weights.c net_weights.h," \
	"and is written as C with streams and an executor"
tap_is "$(grep -c '^int net_device_run' "$tmp/net/net_device.h"),$(grep -c 'if (net_device_run(' "$tmp/net/net.c")" \
	"1,$(grep -c 'net_vta[0-9]*_instructions\[' "$tmp/net/net_device.h")" "whose drivers call the one function of the device"
esp compile "$folder/model.onnx" --as c -o "$tmp/host"
tap_is "$status,$(cd "$tmp/host" && echo *)" "0,host.c host.h host_arithmetic.h host_weights.c host_weights.h" "without an accelerator there are none"

# dump_split IMAGES CHANNELS OUTPUTS COLUMNS KERNEL [TAIL]: a convolution of two rows with columns of zeros before and behind.
dump_split()
{
	cat >"$tmp/limits.ra" <<-END
		model limits
		structure none
		input x[$1, $2, 2, $4] : i8
		param w[$3, $2, 1, $5] : i8
		node:
		    s[i0, i1, i2 in 2, i3 in $(($4 + $5 - 1))] = sum(w[i1, r1, r2, r3] * x[i0, r1, i2 + r2, i3 + r3 - $(($5 - 1))] for r1, r2, r3)
		    q = ${6:-s}
		output y = q
	END
	head -c $(($2 * $3 * $5)) /dev/zero |
		weights "{\"w\":{\"dtype\":\"I8\",\"shape\":[$3,$2,1,$5],\"data_offsets\":[0,$(($2 * $3 * $5))]}}" >"$tmp/limits.safetensors"
	esp dump split "$tmp/limits.ra" --weights "$tmp/limits.safetensors"
}

# TEXT WHAT: the split says so.
says()
{
	[ "$status" -eq 0 ] && echo "$out" | grep -qF "$1"
	tap_ok $? "$2" || show
}

dump_split 1 1 1 65534 2
says "function 0 on vta" "rows of 65535 sums are not too long"
dump_split 1 1 1 65535 2
says "on host: its rows are too long for the accelerator" "rows of 65536 sums are"
dump_split 1 1024 1024 9000 16
says "on host: it would take the accelerator too long" "more products than a function may have stay on the host"
for zero in 0.5 600; do
	dump_split 1 1 1 8 2 "cast(minimum(maximum(round(cast(s, f32) * 0.25) + $zero, -128), 127), i32)"
	says "the host requantises to what is no byte" "the host adds a zero point of $zero"
done

# dump_wide OUTPUTS: two convolutions, of 64 channels and of OUTPUTS, with kernels of 16 x 16, whose tiles are small.
dump_wide()
{
	cat >"$tmp/wide.ra" <<-END
		model wide
		structure none
		input x[1, 64, 271, 271] : i8
		param w[$1, 64, 16, 16] : i8, v[16, $1, 16, 16] : i8
		node:
		    s[i0, i1, i2 in 256, i3 in 256] = sum(w[i1, r1, r2, r3] * x[i0, r1, i2 + r2, i3 + r3] for r1, r2, r3)
		    q = cast(minimum(maximum(round(cast(s, f32) * 0.0078125), -128), 127), i32)
		    t[i0, i1, i2 in 241, i3 in 241] = sum(v[i1, r1, r2, r3] * q[i0, r1, i2 + r2, i3 + r3] for r1, r2, r3)
		output y = cast(minimum(maximum(round(cast(t, f32) * 0.0078125), -128), 127), i32)
	END
	w=$(($1 * 64 * 256))
	v=$((16 * $1 * 256))
	head -c $((w + v)) /dev/zero |
		weights "{\"w\":{\"dtype\":\"I8\",\"shape\":[$1,64,16,16],\"data_offsets\":[0,$w]},\"v\":{\"dtype\":\"I8\",\"shape\":[16,$1,16,16],\"data_offsets\":[$w,$((w + v))]}}" \
			>"$tmp/wide.safetensors"
	esp dump split "$tmp/wide.ra" --weights "$tmp/wide.safetensors"
}

dump_wide 256
says "on host: its stream would have more than 2^21 instructions" "a product whose stream would be too long stays on the host"
dump_wide 48
[ "$(echo "$out" | grep -c '^function [01] on vta$')" -eq 2 ] && ! echo "$out" | grep -q 'on host'
tap_ok $? "two whose streams together would be too long are two functions" || show
esp dump split "$tmp/wide.ra" --weights "$tmp/wide.safetensors" --target vta,-1
[ "$status" -eq 0 ] && echo "$out" | grep -q 'product 1 on host: as it was asked for' && echo "$out" | grep -q 'product 0: Q.conv2d'
tap_ok $? "and one stays on the host that was named" || show
for command in "dump split" explain; do
	esp $command "$tmp/wide.ra" --weights "$tmp/wide.safetensors" --target vta,-1,-2
	[ "$status" -eq 1 ] && grep -qF "the host is to keep product 2, but 'wide' has none of this number [no-product]" <<<"$err" &&
		grep -qF "hint: its products have the numbers 0 to 1; 'espalier dump split'" <<<"$err"
	tap_ok $? "$command refuses a number of no product, and says which there are" || show
done
tap_done
