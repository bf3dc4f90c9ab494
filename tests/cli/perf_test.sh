# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Names of kernels for perf: the file lists each kernel, and is never one that somebody else prepared.
. "${srcdir:-.}/tests/cli/support.sh"

E='"E":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}'
W='"W":{"dtype":"F32","shape":[2,2],"data_offsets":[32,48]}'
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights "{$E,$W}" >"$tmp/tiny.safetensors"
printf 'a\nb\nc\n<unk>\n' >"$tmp/words"
printf '(2 (2 a) (2 b))\n' >"$tmp/trees"
model=(run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --no-cache --time-passes)

# named COMMAND: runs the command in a process whose number is known before, after COMMAND with the file's name; leaves
# $map, $text and $err.  The script that libtool puts before an uninstalled program keeps the number.
named()
{
	text=$(
		map=/tmp/perf-$BASHPID.map
		eval "$1"
		echo "$map"
		exec "$ESPALIER" "${model[@]}" 2>"$tmp/err" >"$tmp/out"
	)
	status=$?
	map=$text
	err=$(cat "$tmp/err")
	text=$(cat "$map" 2>/dev/null)
}

need_backend "names of kernels" || tap_done
esp "${model[@]}"
tap_is "$status" 0 "the model runs"
tap_like()
{
	[[ $1 =~ $2 ]]
	tap_ok $? "$3"
}
tap_like "$err" 'ms  jit +compile' "--time-passes says what compiling took"
tap_like "$err" "ms  $backend +generate" "and what the back end did meanwhile"
if has_backend llvm; then
	tap_like "$err" 'ms  llvm +kernel inner' "and what each kernel took"
else
	tap_skip "all are compiled at once" "and what each kernel took"
fi
kernels=$("$ESPALIER" dump ilir "$here/tiny.ra" --weights "$tmp/tiny.safetensors" | grep -c '^kernel ')

named :
tap_is "$status,$([[ -e $map ]] && echo there)" "0," "without being asked, no file is made"

export ESPALIER_PERF_MAP=1
named :
if has_backend llvm; then
	kernels=$(grep -c ' kernel ' <<<"$err") # what the trees needed, with variants
fi
tap_is "$(wc -l <<<"$text")" "$kernels" "when asked, each kernel has a line"
tap_is "$(grep -cE '^[0-9a-f]+ [1-9a-f][0-9a-f]* tiny:[a-z0-9_.]+$' <<<"$text")" "$kernels" "of address, bytes and name"
tap_is "$(stat -c %a "$map")" 600 "in a file that is private"
overlaps=$(sort <<<"$text" | { end=0 n=0; while read -r at bytes _; do ((16#$at < end)) && ((n++)); \
	end=$((16#$at + 16#$bytes)); done; echo "$n"; })
tap_is "$overlaps" 0 "and ranges do not overlap"
rm -f "$map"

echo keep >"$tmp/target"
named "ln -s '$tmp/target' \$map"
tap_is "$status,$(cat "$tmp/target")" 0,keep "a link is not followed"
tap_like "$err" perf-map-unusable "which is told"
rm -f "$map"

named 'touch $map; chmod 666 $map'
tap_is "$status,$text" 0, "a file that others can write is not used"
rm -f "$map"

named 'echo before >$map; chmod 600 $map; touch -d "2 days ago" $map'
tap_is "$status,$(wc -l <<<"$text"),$(grep -c before <<<"$text")" "0,$kernels,0" \
	"what another process of that number left is not kept"
rm -f "$map"

named 'echo before >$map; chmod 600 $map'
tap_is "$status,$(head -n 1 <<<"$text"),$(wc -l <<<"$text")" "0,before,$((kernels + 1))" \
	"one of the user's own is added to"
rm -f "$map"

unset ESPALIER_PERF_MAP
export ESPALIER_JITDUMP=1 JITDUMPDIR=$tmp/dumps
esp "${model[@]}"
tap_like "$err" perf-map-unusable "a dump in no folder is told"
mkdir "$JITDUMPDIR"
esp "${model[@]}"
dump=$(echo "$tmp"/dumps/.debug/jit/espalier-*/jit-*.dump)
tap_is "$status,$([[ -f $dump ]] && stat -c %a "$dump")" 0,600 "when asked, code is dumped to a private file"
tap_is "$(head -c 4 "$dump")" DTiJ "of perf's format"
tap_is "$(grep -c '^kernel inner' "$tmp"/dumps/.debug/jit/espalier-*/tiny-*.loops)" 1 "the loops stand beside it"
# lines_of PROGRAM ARGUMENT...: how many files of loops stand beside the dump of a run.
lines_of()
{
	rm -rf "$JITDUMPDIR/.debug"
	esp run "$@" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words"
	found=$(ls "$tmp"/dumps/.debug/jit/espalier-*/ 2>/dev/null | grep -c loops)
}

lines_of "$here/tiny.ra" --no-cache --compile-in helper
tap_is "$status,$found" 0,1 "a helper makes lines, too"
ESPALIER_JITDUMP=0 ESPALIER_LINES=1 esp compile "$here/tiny.ra" --weights "$tmp/tiny.safetensors" \
	--output "$tmp/tiny.program"
tap_is "$status" 0 "a program is saved with lines"
lines_of "$tmp/tiny.program"
tap_is "$status,$found" 0,1 "they are in its dump"
ESPALIER_JITDUMP=0 esp compile "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --output "$tmp/tiny.program"
lines_of "$tmp/tiny.program"
tap_is "$status,$found" 0,0 "and not in that of one that was saved without"
unset ESPALIER_JITDUMP JITDUMPDIR
export ESPALIER_PERF_MAP=1

perf=$(command -v perf)
if [[ -n $perf ]] && "$perf" record -o "$tmp/perf.data" -e cpu-clock true >/dev/null 2>&1; then
	yes "$(cat "$tmp/trees")" | head -n 200000 >"$tmp/many"
	model[2]=$tmp/many
	"$perf" record -F 10000 -e cpu-clock -o "$tmp/perf.data" "$ESPALIER" "${model[@]}" >/dev/null 2>&1
	"$perf" report -i "$tmp/perf.data" --sort symbol 2>/dev/null | grep -q 'tiny:'
	tap_ok $? "perf shows a kernel by its name"
	for pid in $("$perf" script -i "$tmp/perf.data" -F pid 2>/dev/null | sort -u); do rm -f "/tmp/perf-$pid.map"; done
	unset ESPALIER_PERF_MAP
	rm -rf "$tmp/dumps"
	mkdir "$tmp/dumps"
	ESPALIER_JITDUMP=1 JITDUMPDIR=$tmp/dumps "$perf" record -k 1 -F 10000 -e cpu-clock -o "$tmp/perf.data" "$ESPALIER" \
		"${model[@]}" >/dev/null 2>&1
	"$perf" inject --jit -i "$tmp/perf.data" -o "$tmp/perf.jit" >/dev/null 2>&1
	"$perf" report -i "$tmp/perf.jit" --sort symbol 2>/dev/null | grep -q 'tiny:'
	tap_ok $? "perf inject takes the dump"
	objdump -d -l "$tmp"/dumps/.debug/jit/espalier-*/jitted-*.so 2>/dev/null | grep -qE 'tiny-[0-9a-f]+\.loops:[0-9]+'
	tap_ok $? "and its lines"
else
	tap_skip "no perf" "perf shows a kernel by its name"
	tap_skip "no perf" "perf inject takes the dump, and its lines"
fi
tap_done
