# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# gdb knows kernels by name, of code that was compiled in its process and of code from the cache.
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
	gdb -q -nx -batch -ex 'set breakpoint pending on' -ex 'set debuginfod enabled off' -ex 'break esp_session_free' -ex run \
		-ex 'info functions ^tiny:' --args "$program" "${model[@]}" 2>"$tmp/err"
}

text=$(list_kernels)
if ! grep -q 'Breakpoint 1, ' <<<"$text"; then
	tap_skip "gdb cannot stop a process here" "gdb knows kernels by name"
	tap_done
fi
tap_ok "$(grep -qE '^0x[0-9a-f]+ +tiny:inner' <<<"$text"; echo $?)" "gdb knows kernels that were compiled in its process"
text=$(list_kernels)
tap_ok "$(grep -qE '^0x[0-9a-f]+ +tiny:inner' <<<"$text"; echo $?)" "and those of the cache"
tap_done
