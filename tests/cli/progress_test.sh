# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Progress is for terminals only. script(1) of bsdutils lends one.
. "${srcdir:-.}/tests/cli/support.sh"

if ! script --version 2>/dev/null | grep -q util-linux || ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	tap_skip "no script of util-linux, or no terminal to lend" "progress"
	tap_done
fi

command="'$ESPALIER' run '$example/treelstm.ra' --weights '$example/sst-treelstm-small.safetensors' \
--vocab '$example/sst-vocab.txt' '$tmp/many' --backend interpreter --batch 4 --output '$tmp/result'"

# Slow enough to be watched: progress is shown after a second.
cp "$example/sentences.ptb" "$tmp/many"
for i in 1 2 3 4 5 6 7 8 9 10; do
	begin=$(date +%s%N)
	shown=$(script -qec "$command" /dev/null </dev/null)
	status=$?
	took=$(($(date +%s%N) - begin))
	[ "$took" -lt 1400000000 ] || break
	cat "$tmp/many" "$tmp/many" >"$tmp/twice"
	mv "$tmp/twice" "$tmp/many"
done
trees=$(wc -l <"$tmp/many")
tap_is "$status,$(wc -l <"$tmp/result")" "0,$trees" "$trees trees run"
case $shown in *" trees, "*" %, "*" trees/s"*) tap_ok 0 "a terminal is told how far it is" ;;
*) tap_ok 1 "a terminal is told how far it is" ;; esac
case $shown in *$'\r\033[K') tap_ok 0 "and is clean in the end" ;; *) tap_ok 1 "and is clean in the end" ;; esac

shown=$(script -qec "$command 2>'$tmp/err'" /dev/null </dev/null)
tap_is "$shown,$(cat "$tmp/err")" "," "a file or a pipe is not"
shown=$(script -qec "${command% --output*}" /dev/null </dev/null | tr -d '\r')
case $shown in *trees/s*) tap_ok 1 "nor a terminal that shows the results" ;;
*) tap_is "$shown" "$(cat "$tmp/result")" "nor a terminal that shows the results" ;; esac
tap_done
