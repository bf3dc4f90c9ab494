# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# A run that is interrupted leaves the old file and nothing beside it.
. "${srcdir:-.}/tests/cli/support.sh"

# The interpreter is slow enough to be interrupted; nobody waits for its end, nor for tables that it would make first.
mkdir "$tmp/out"
for i in $(seq 400); do cat "$example/sentences.ptb"; done >"$tmp/many"
begin()
{
	echo before >"$tmp/out/result"
	"$@" "$ESPALIER" run "$example/treelstm.ra" "$tmp/many" --weights "$example/sst-treelstm-small.safetensors" \
		--vocab "$example/sst-vocab.txt" --backend interpreter --rules -tables --batch 1 --output "$tmp/out/result" \
		2>"$tmp/err" &
	pid=$!
	for i in $(seq 1200); do
		ls "$tmp/out"/result.* >/dev/null 2>&1 || ! kill -0 $pid 2>/dev/null && return
		sleep 0.05
	done
}

# interrupted SIGNAL STATUS COMMAND...: the command may put back what the shell ignores in the background.
interrupted()
{
	signal=$1 wanted=$2
	shift 2
	begin "$@"
	ls "$tmp/out"/result.* >/dev/null 2>&1
	tap_ok $? "$signal: the output grows beside the old one"
	kill -s "$signal" $pid
	wait $pid 2>/dev/null
	tap_is "$?,$(ls "$tmp/out"),$(cat "$tmp/out/result")" "$wanted,result,before" "$signal: only the old one is left"
}

# Whatever the test itself was told to ignore.
if env --default-signal=INT true 2>/dev/null; then
	interrupted TERM 143 env --default-signal=TERM
	interrupted HUP 129 env --default-signal=HUP
	interrupted INT 130 env --default-signal=INT
else
	tap_skip "no env --default-signal" "TERM, HUP and INT"
fi

# What is ignored, as nohup does, stays ignored.
trap '' HUP
begin env
trap - HUP
kill -s HUP $pid
sleep 0.2
kill -0 $pid 2>/dev/null
tap_ok $? "a signal that is ignored ends nothing"
kill -s TERM $pid
wait $pid 2>/dev/null
tap_is "$(ls "$tmp/out")" "result" "until another one comes"
tap_done
