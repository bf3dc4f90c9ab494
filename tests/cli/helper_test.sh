# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Compiling in a helper program: limits that hold, and a command that goes on.
. "${srcdir:-.}/tests/cli/support.sh"

if ! has_backend llvm; then
	tap_skip "no back end llvm" "compiling in a helper"
	tap_done
	exit
fi

treelstm=("$example/treelstm.ra" "$example/sentences.ptb" --weights "$example/sst-treelstm-small.safetensors"
	--vocab "$example/sst-vocab.txt" --backend llvm --no-cache --threads 1)
esp run "${treelstm[@]}"
wanted=$out
esp run "${treelstm[@]}" --compile-in helper
tap_is "$status,$out" "0,$wanted" "compiled in a helper, the results are the same" || show
esp run "${treelstm[@]}" --compile-in helper --compile-seconds 0.001
refused 1 compile-deadline "within a millisecond it is not"
esp run "${treelstm[@]}" --compile-seconds 0.001
refused 1 compile-deadline "nor in the process"
esp run "${treelstm[@]}" --compile-in elsewhere
refused 2 compile-in "nor anywhere else"

# What a sanitizer takes for itself leaves nothing of such limits.
if [ -n "$shadowed" ]; then
	tap_skip "a sanitizer needs more room" "little memory"
else
	esp run "${treelstm[@]}" --compile-memory 4000000
	refused 1 compile-memory "LLVM does not make do with 4 MB"
	esp run "${treelstm[@]}" --compile-memory 1000000000
	tap_is "$status,$out" "0,$wanted" "but with 1 GB" || show
	for kilobytes in 100000 150000 180000 200000 220000 250000; do
		out=$(ulimit -v $kilobytes; "$ESPALIER" run "${treelstm[@]}" --compile-in helper 2>"$tmp/err")
		status=$?
		err=$(cat "$tmp/err")
		case $status,$out,$err in
		0,"$wanted",*) tap_ok 0 "in $kilobytes KiB of addresses: it runs" ;;
		1,,*[a-z]"]"*) tap_ok 0 "in $kilobytes KiB of addresses: it says why not" ;;
		*) tap_ok 1 "in $kilobytes KiB of addresses: it runs or says why not" || show ;;
		esac
	done
fi

# A helper that tells who it is, and works: it goes when the command does.
mkdir "$tmp/bin"
real=$(IFS=:; for folder in $ESPALIER_BACKEND_PATH; do ls "$folder/espalier-compile" 2>/dev/null; done | head -n 1)
printf '#!/bin/sh\necho $$ >"%s"\nexec "%s"\n' "$tmp/pid" "${real:-espalier-compile}" >"$tmp/bin/espalier-compile"
chmod +x "$tmp/bin/espalier-compile"
{ sed '/^leaf:/,$d' "$here/tiny.ra"; printf 'leaf:\n    h = E[word]\ninner:\n    x0 = left.h\n'
	for i in $(seq 100); do echo "    x$i = tanh(W @ x$((i - 1)))"; done
	printf '    h = x100 + right.h\noutput y = h at root\n'; } >"$tmp/deep.ra"
# A process that has ended and that nobody waits for is gone, too.
lives()
{
	[ -e "/proc/$1/stat" ] && ! grep -qs ') Z' "/proc/$1/stat"
}
ends()
{
	for _ in $(seq 200); do
		lives "$1" || return 0
		sleep 0.05
	done
	return 1
}
for backend in llvm gccjit; do
	if ! has_backend $backend; then
		tap_skip "no back end $backend" "TERM"
		continue
	fi
	rm -f "$tmp/pid"
	mkdir "$tmp/$backend"
	ESPALIER_BACKEND_PATH=$tmp/bin:$ESPALIER_BACKEND_PATH TMPDIR=$tmp/$backend "$ESPALIER" compile "$tmp/deep.ra" \
		--sizes D=16,V=4 --backend $backend --no-cache --compile-in helper -o "$tmp/deep" 2>"$tmp/err" &
	command=$!
	for _ in $(seq 400); do
		[ -s "$tmp/pid" ] || ! lives $command && break
		sleep 0.05
	done
	sleep 0.3
	helper=$(cat "$tmp/pid")
	kill -s TERM $command
	begin=$SECONDS
	wait $command 2>/dev/null
	tap_is $? 143 "$backend: the command is interrupted while a helper compiles"
	tap_ok $((SECONDS - begin > 5)) "$backend: at once"
	[ -n "$helper" ] && ends "$helper"
	tap_ok $? "$backend: and the helper is gone"
	tap_is "$(ls "$tmp/$backend")" "" "$backend: and no temporary file is left"
done
tap_done
