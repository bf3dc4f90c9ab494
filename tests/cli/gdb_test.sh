# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# gdb knows kernels by name, their frames and, if it was asked for, lines of their loops, of code that was compiled in
# its process and
# of code from the cache.
. "${srcdir:-.}/tests/cli/support.sh"

need_backend "names of kernels" || tap_done
if ! command -v gdb >/dev/null; then
	tap_skip "no gdb" "gdb knows kernels by name"
	tap_done
fi
E='"E":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}'
W='"W":{"dtype":"F32","shape":[2,2],"data_offsets":[32,48]}'
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights "{$E,$W}" >"$tmp/tiny.safetensors"
printf 'a\nb\nc\n<unk>\n' >"$tmp/words"
printf '(2 (2 a) (2 b))\n' >"$tmp/trees"
model=(run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --cache-dir "$tmp/cache")
program=$builddir/.libs/espalier
[[ -x $program ]] || program=$builddir/espalier
export LD_LIBRARY_PATH=$builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# Stops where results are read, and lists functions without debugging information whose names begin as the model's.
list_kernels()
{
	gdb -q -nx -batch -ex 'set breakpoint pending on' -ex 'set debuginfod enabled off' -ex 'break esp_session_free' \
		-ex run \
		-ex 'info functions ^tiny:' --args "$program" "${model[@]}" 2>"$tmp/err"
}

text=$(list_kernels)
if ! grep -q 'Breakpoint 1, ' <<<"$text"; then
	tap_skip "gdb cannot stop a process here" "gdb knows kernels by name"
	tap_done
fi
tap_ok "$(grep -qE '^0x[0-9a-f]+ +tiny:inner' <<<"$text"; echo $?)" \
	"gdb knows kernels that were compiled in its process"
text=$(list_kernels)
tap_ok "$(grep -qE '^0x[0-9a-f]+ +tiny:inner' <<<"$text"; echo $?)" "and those of the cache"

# stop KERNEL: stops in a kernel before the first run of a program from the cache, and prints frames, the line and
# instructions.
stop()
{
	gdb -q -nx -batch -ex 'set breakpoint pending on' -ex 'set debuginfod enabled off' -ex 'break esp_binding_free' \
		-ex 'break esp_session_create' -ex run -ex "break -function $1" -ex continue -ex bt -ex 'info line *$pc' -ex list \
		-ex 'disassemble /s $pc,$pc+20' --args "$program" "${model[@]}" 2>"$tmp/err"
}

kernel=$(grep -oE 'tiny:inner[a-z0-9.]*' <<<"$text" | head -n 1)
text=$(stop "$kernel")
tap_ok "$(grep -qE "^#0 .*$kernel" <<<"$text" && grep -qE '^#[1-9][0-9]* .*main ' <<<"$text"; echo $?)" \
	"frames below a kernel are found without lines"
export ESPALIER_LINES=1
esp "${model[@]}"
text=$(stop "$kernel")
listing=$(ls "$tmp/cache/listings")
tap_ok "$(grep -qE "^#0 .*$kernel.* at .*/cache/listings/$listing:[0-9]+" <<<"$text"; echo $?)" \
	"when lines are asked for, a kernel of the cache has them"
tap_ok "$(grep -qE '^#[1-9][0-9]* .*main ' <<<"$text"; echo $?)" "and frames below it"
tap_ok "$(grep -qE '^[0-9]+[[:space:]]+kernel inner' <<<"$text"; echo $?)" "its loops are shown"
tap_ok "$(grep -qE '^=> 0x[0-9a-f]+ <' <<<"$text"; echo $?)" "and its instructions between them"
"$ESPALIER" dump ilir "$here/tiny.ra" --weights "$tmp/tiny.safetensors" | cmp -s - "$tmp/cache/listings/$listing"
tap_ok $? "the lines are those of 'espalier dump ilir'"
tap_done
