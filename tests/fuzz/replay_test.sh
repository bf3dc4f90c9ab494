#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Every input that ever was a finding, and good and bad examples, through the fuzz targets.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1

while read -r name _ folders; do
	mapfile -t files < <(find "tests/fuzz/corpus/$name" $folders -maxdepth 1 -type f | sort)
	output=$("$builddir/tests/fuzz/${name}_fuzz" "${files[@]}" 2>&1)
	status=$?
	[ $status = 0 ] || tail -n 20 <<<"$output" | sed 's/^/# /'
	tap_is "$status: $(grep -c '^Running: ' <<<"$output")" "0: ${#files[@]}" "$name: every input is read"
done < <(sed 's/#.*//; /^ *$/d' tests/fuzz/targets)
tap_done
