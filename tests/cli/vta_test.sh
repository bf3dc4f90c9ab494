# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier vta: streams are verified, shown, converted and executed, and what is refused says why.
. "${srcdir:-.}/tests/cli/support.sh"
stream=$srcdir/tests/vta/product.golden

esp vta "$stream"
tap_is "$status,$(echo "$out" | sed -n '/^cycles [1-9]/p' | wc -l),$(echo "$out" | grep '^gemm')" "0,1,gemm steps 30" \
	"a stream is verified, and its cost is told"
esp vta "$stream" --as binary -o "$tmp/binary"
tap_is "$status,$out" "0," "it is written in the binary form"
esp vta "$tmp/binary" --as text -o "$tmp/text"
cmp "$tmp/text" "$stream"
tap_ok $? "which reads back as the same text"

# Inputs of zeros: what is left is the bias.
head -c 80 /dev/zero >"$tmp/x"
head -c 160 /dev/zero >"$tmp/r"
esp vta "$tmp/binary" --as outputs --input x="$tmp/x" --input r="$tmp/r" -o "$tmp/y"
tap_is "$status,$(wc -c <"$tmp/y")" "0,160" "it is executed, and its outputs are written"
biases()
{
	sed -n '/^constant op.b/,/^input/p' "$stream" | grep '^  ' | tr -d ' \n' | fold -w 8 |
		while read -r word; do
			value=$((0x${word:6:2}${word:4:2}${word:2:2}${word:0:2}))
			[ $value -lt $((1 << 31)) ] || value=$((value - (1 << 32)))
			value=$((value >> 17))
			[ $value -ge 0 ] || value=0
			[ $value -le 100 ] || value=100
			echo $value
		done
}
tap_is "$(head -c 16 "$tmp/y" | od -An -v -td1 -w1 | tr -d ' ' | paste -sd ' ')" "$(biases | head -n 16 | paste -sd ' ')" \
	"to the bias, shifted and bounded"

esp vta "$tmp/binary" --as outputs --input x="$tmp/x"
tap_is "$status,$(echo "$err" | grep -c "an input 'r'")" "1,1" "an input that is not given is named"
esp vta "$tmp/binary" --as outputs --input x="$tmp/r" --input r="$tmp/r"
tap_is "$status,$(echo "$err" | grep -c "'x' has 80 bytes")" "1,1" "a file of another length is refused"
esp vta "$tmp/binary" --as outputs --input y="$tmp/x"
tap_is "$status,$(echo "$err" | grep -c 'for an input')" "1,1" "and a name that is no input"
esp vta "$tmp/binary" --as binary
tap_is "$status" 2 "the binary form needs a file"
esp vta "$tmp/binary" --input x="$tmp/x"
tap_is "$status" 2 "inputs are for running"
sed 's/^gemm pop_prev/gemm/' "$stream" >"$tmp/broken"
esp vta "$tmp/broken"
tap_is "$status,$(echo "$err" | grep -o '\[vta-race\]')" "1,[vta-race]" "a broken stream is refused"
sed 's/^finish/halt/' "$stream" >"$tmp/broken"
esp vta "$tmp/broken"
tap_is "$status,$(echo "$err" | grep -c ":$(grep -n '^halt' "$tmp/broken" | cut -d: -f1):1: error: 'halt'")" "1,1" "with its place"
tap_done
