#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# A program with a model in it: what the command makes is linked with the library alone, runs without a back end and
# gives what the command gives.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
example=$srcdir/examples/treelstm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$builddir/.libs/libespalier.so
read -ra cc <<<"${CC:-cc}"

need_backend "the example" || tap_done
if [ ! -e "$library" ] || ! command -v "${cc[0]}" >/dev/null; then
	tap_skip "no shared library, or no compiler" "the example"
	tap_done
elif nm -D "$library" | grep -qE ' U __(asan|tsan|ubsan)_'; then
	tap_skip "the library wants a sanitizer in all that it is linked with" "the example"
	tap_done
fi

compile()
{
	"$ESPALIER" compile "$example/treelstm.ra" --weights "$example/sst-treelstm-small.safetensors" --no-cache --pack "$@"
}

compile -o "$work/tree.o"
tap_ok $? "an object and its header are made"
"${cc[@]}" -Wall -Wextra -Werror -I"$srcdir/src/api" -I"$work" "$srcdir/examples/ahead/sentiment.c" "$work/tree.o" \
	"$library" -Wl,-rpath,"$(cd "$builddir/.libs" && pwd)" -o "$work/sentiment"
tap_ok $? "a C program is linked with them and the library"
tap_is "$(readelf -d "$work/sentiment" | grep -cE 'LLVM|gccjit')" 0 "and with no compiler"
found=$(ESPALIER_BACKEND_PATH=/nonexistent "$work/sentiment")
tap_ok $? "it runs without a back end"

# The same tree by the command, as JSON.
mapfile -t words < <(head -n 3 "$example/sst-vocab.txt")
echo "(0 (0 (0 ${words[1]}) (0 ${words[2]})) (0 ${words[0]}))" >"$work/tree.ptb"
wanted=$("$ESPALIER" run "$example/treelstm.ra" "$work/tree.ptb" --weights "$example/sst-treelstm-small.safetensors" \
	--vocab "$example/sst-vocab.txt" --rules all --no-cache)
tap_is "$(sort -k 2 -gr <<<"$found" | sed -n 's/^\([a-z ]*[a-z]\)  *\([0-9.]*\)$/\1 \2/p' | head -n 1)" \
	"$(sed 's/^\([a-z ]*[a-z]\)  *\([0-9.]*\)  .*/\1 \2/' <<<"$wanted")" "and finds what the command finds"

# For another machine, with the run leg alone: what compiles is not even there. Nobody reads a file, so nobody needs
# jansson.
cross=aarch64-linux-gnu-gcc
if ! command -v $cross >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
	tap_skip "no $cross or no qemu-aarch64" "an object for another machine"
	tap_done
elif ! has_backend llvm; then
	tap_skip "no LLVM back end" "an object for another machine"
	tap_done
fi
compile --target-cpu aarch64 -o "$work/tree.o"
tap_ok $? "an object for another machine is made"
$cross -std=gnu11 -w -fopenmp -static -D_GNU_SOURCE -DPKGLIBDIR='""' -DPKGLIBEXECDIR='""' -idirafter /usr/include \
	-I"$srcdir/src" \
	-I"$srcdir/src/api" -I"$work" -o "$work/other" "$srcdir/examples/ahead/sentiment.c" "$work/tree.o" \
	"$srcdir"/src/{base,io,image,linearize,runtime,jit,compile,api}/*.c -lm \
	-Wl,--unresolved-symbols=ignore-all 2>"$work/said"
tap_ok $? "it is linked there" || sed 's/^/# /' "$work/said"
tap_is "$(qemu-aarch64 "$work/other")" "$found" "and finds the same"
tap_done
