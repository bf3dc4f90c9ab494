#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Streams as files: text and binary form are the same, a stream of the generator is as it was, and another simulator, written from
# doc/vta.md alone, gives the bytes that the executor gives.
. "${srcdir:-.}/tests/tap.sh"
here=$srcdir/tests/vta
tool=$builddir/tests/vta/run_stream
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$tool" make "$work/product" && "$tool" print "$work/product" >"$work/text"
[ -z "${UPDATE_GOLDEN:-}" ] || cp "$work/text" "$here/product.golden"
diff "$here/product.golden" "$work/text" >"$work/differs"
tap_is "$(head -n 20 "$work/differs")" "" "the stream of a product is as it was (UPDATE_GOLDEN=1 writes it anew)"
"$tool" write "$work/text" "$work/again"
cmp "$work/product" "$work/again"
tap_ok $? "its text is read back to the same bytes"
tap_is "$("$tool" check "$work/again" | head -n 1)" "$("$tool" check "$here/product.golden" | head -n 1)" "and has the same cost"
sed 's/^gemm pop_prev/gemm/' "$work/text" >"$work/broken"
"$tool" check "$work/broken" >"$work/out" 2>&1
tap_ok $((!$?)) "a broken one is refused"
tap_is "$(grep -o 'vta-[a-z]*' "$work/out" | head -n 1)" vta-race "by its rule"

if ! command -v python3 >/dev/null; then
	tap_skip "no python3" "another simulator"
	tap_done
	exit
fi
same=0
for seed in 1 2 3 4 5 6 7 8 9 10; do
	"$tool" draw $seed "$work/stream" "$work/memory" &&
		"$tool" run "$work/stream" "$work/memory" "$work/ours" &&
		python3 "$here/simulate.py" "$work/stream" "$work/memory" "$work/theirs" &&
		cmp "$work/ours" "$work/theirs" && ! cmp -s "$work/ours" "$work/memory" && same=$((same + 1))
done
tap_is $same 10 "another simulator gives the same bytes"
tap_done
