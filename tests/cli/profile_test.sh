#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier profile: what it shows, in all forms; what it refuses. What is in them is tests/tools/profile_test.c's
# affair.
. "${srcdir:-.}/tests/cli/support.sh"

# profile ARGUMENT...: with the tiny weights and the interpreter.
profile()
{
	esp profile "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter \
		--runs 3 "$@"
}

# has TEXT...: whether all lie in what was written.
has()
{
	local text
	for text; do
		grep -qF -- "$text" <<<"$out" || return 1
	done
}

for threads in 1 2; do
	profile --threads $threads
	has "3 structures" "linearize" "floor of run" "inner" "memory" "schedule" "# schedule of"
	tap_is "$status,$?,$err" "0,0," "a page, with --threads $threads"
done
tap_is "$(awk '/^level  /,/^$/' <<<"$out" | grep -cE '^(leaves|level [0-9]+) ')" 2 \
	"a line for each level that computes anything: leaves are rows of a table"
tap_is "$(awk '/^nodes of a level/,/^$/' <<<"$out" | awk \
	'$1 ~ /^[0-9]/ { n += $2 == "to" ? $4 : $2 } END { print n }')" 3 \
	"whose widths are counted"
profile --batch 1
tap_is "$status,$(grep -c '^1 structure, 3 nodes' <<<"$out")" "0,1" "--batch says how many trees run together"
profile --format json
tap_is "$status,${out:0:9},${out: -1}" '0,{"model":,}' "JSON"
profile --format trace
has '"traceEvents":[' '"name":"linearize"' '"name":"thread_name"'
tap_is "$status,$?" "0,0" "a trace"
profile --format svg --output "$tmp/run.svg"
tap_is "$status,$out,$(tail -n 1 "$tmp/run.svg")" "0,,</svg>" "a picture goes to a file"
if command -v xmllint >/dev/null; then
	xmllint --noout "$tmp/run.svg" 2>/dev/null
	tap_ok $? "which another program reads"
else
	tap_skip "no xmllint" "which another program reads"
fi

# Blocks of columns that share a matrix of 64 by 64: it is read once, and the floor says no more.
"$ESPALIER" bench "$srcdir/tests/models/matrices.ra" --sizes D=64,V=4 --keep "$tmp/kept" --batches 1 --minibatches 1 \
	--runs 1 \
	--threads 1 --backend interpreter --no-cache >"$tmp/out"
esp profile "$srcdir/tests/models/matrices.ra" "$tmp/trees" --weights "$tmp/kept/weights.safetensors" \
	--vocab "$tmp/words" \
	--backend interpreter --no-cache --batch 1 --runs 1 --threads 1 --format json
level=$(grep '^{"name":"level 1"' <<<"$out" | sed 's/"kernels".*//')
[[ $level =~ \"weight_bytes\":([0-9]+) ]] && ((BASH_REMATCH[1] == 4 * 64 * 64))
tap_ok $? "weights that blocks of columns share are counted once" || show

esp profile "$here/tiny.ra" "$tmp/trees" --vocab "$tmp/words"
refused 2 "profile needs --weights" "without weights it is refused"
esp profile "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --backend interpreter
refused 2 "give --vocab" "and without a vocabulary"
: >"$tmp/empty"
esp profile "$here/tiny.ra" "$tmp/empty" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter
refused 1 "holds no tree" "a file without trees is refused"
printf '(2 (2 a) (2 b)\n' >"$tmp/bad"
esp profile "$here/tiny.ra" "$tmp/bad" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter
refused 1 "bad:" "and one that is misspelt"
profile --format png
refused 2 "--format is text|json|trace|svg" "as is a form that there is none of"
tap_done
