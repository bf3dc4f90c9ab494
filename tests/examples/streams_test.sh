#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The example of streams: small, and of one mind with the command, for words and for frames.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
example=$srcdir/examples/streams

need_backend "the example" || tap_done

lines=$(wc -l <"$example/streams.c")
[ "$lines" -lt 120 ]
tap_ok $? "the example is short ($lines lines)"

# keep NAME MODEL SIZES: random weights in $work/NAME.
keep()
{
	"$ESPALIER" bench "$2" --sizes "$3" --keep "$work/$1" --threads 1 --minibatches 1 --batches 1 --runs 1 --length 2 \
		--backend interpreter \
		>/dev/null 2>&1
}

keep words "$srcdir/examples/lstm/lstm.ra" D=8,E=6,V=5,C=3
printf 'w%d\n' 0 1 2 3 4 >"$work/vocab"
echo w0 w1 w2 w3 w4 w0 w1 >"$work/sequence"
streamed=$("$builddir/examples/streams/streams" "$srcdir/examples/lstm/lstm.ra" "$work/words/weights.safetensors" 40 7)
tap_ok $? "words come one by one"
"$ESPALIER" run "$srcdir/examples/lstm/lstm.ra" --weights "$work/words/weights.safetensors" --vocab "$work/vocab" \
	--from plain --rules all \
	--format json "$work/sequence" >"$work/run" 2>"$work/err"
tap_is "$(sed -n 's/.*"logits":\[\([^]]*\)\].*/\1/p' "$work/run" | tr , ' ')" "$(head -n 1 <<<"$streamed")" \
	"the first stream ends with the bits of one run over its words"

keep frames "$example/voice.ra" D=16,E=4
streamed=$("$builddir/examples/streams/streams" "$example/voice.ra" "$work/frames/weights.safetensors" 1000 5)
tap_ok $? "frames of a thousand voices come every 10 ms"
tap_is "$(head -n 1 <<<"$streamed" | awk '{ print NF, ($1 + $2 > 0.999 && $1 + $2 < 1.001) }')" "2 1" \
	"and tell what they should"
tap_is "$(tail -n 1 <<<"$streamed" | grep -c '^1000 streams: ')" 1 "all of them end"

"$builddir/examples/streams/streams" "$example/voice.ra" /nonexistent 1 1 >/dev/null 2>&1
tap_is $? 1 "weights that are not there end it with status 1"
tap_done
