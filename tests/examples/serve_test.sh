#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The example that serves: small, and of one mind with the command, in whatever order its requests end.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
example=$srcdir/examples/treelstm
files=("$example/sst-treelstm-small.safetensors" "$example/sst-vocab.txt" "$example/sentences.ptb")

need_backend "the example" || tap_done

lines=$(wc -l <"$srcdir/examples/serve/serve.c")
[ "$lines" -lt 80 ]
tap_ok $? "the example is short ($lines lines)"

served=$("$builddir/examples/serve/serve" "$example/treelstm.ra" "${files[@]}")
tap_ok $? "the example runs"
run=$("$ESPALIER" run "$example/treelstm.ra" --weights "${files[0]}" --vocab "${files[1]}" "${files[2]}")
tap_ok $? "the command runs"
tap_is "$(awk '{ print $1, $2 }' <<<"$served" | sort)" "$(awk '{ print $1, $2 }' <<<"$run" | head -n 12 | sort)" \
	"both find the same sentiments"

"$builddir/examples/serve/serve" "$example/treelstm.ra" "${files[@]:0:2}" /nonexistent >/dev/null 2>&1
tap_is $? 1 "a file that is not there ends it with status 1"
tap_done
