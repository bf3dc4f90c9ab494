#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The example for C programs: small, and of one mind with the command.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
example=$srcdir/examples/treelstm
files=("$example/sst-treelstm-small.safetensors" "$example/sst-vocab.txt" "$example/sentences.ptb")

need_backend "the example" || tap_done

lines=$(wc -l <"$example/embed.c")
[ "$lines" -lt 80 ]
tap_ok $? "the example is short ($lines lines)"

embedded=$("$builddir/examples/treelstm/embed" "$example/treelstm.ra" "${files[@]}")
tap_ok $? "the example runs"
run=$("$ESPALIER" run "$example/treelstm.ra" --weights "${files[0]}" --vocab "${files[1]}" "${files[2]}")
tap_ok $? "the command runs"
tap_is "$(awk '{ print $1, $2 }' <<<"$embedded" | head -n 12)" "$(awk '{ print $1, $2 }' <<<"$run" | head -n 12)" \
	"both find the same sentiments"

"$builddir/examples/treelstm/embed" "$example/treelstm.ra" "${files[@]:0:2}" /nonexistent >/dev/null 2>&1
tap_is $? 1 "a file that is not there ends it with status 1"
tap_done
