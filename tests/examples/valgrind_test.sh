#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The example for C programs under memcheck: once with the program compiled by LLVM, once as it was kept.  That takes
# half a minute, so ESPALIER_VALGRIND=1 asks for it.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/backends.sh"
example=$srcdir/examples/treelstm
files=("$example/treelstm.ra" "$example/sst-treelstm-small.safetensors" "$example/sst-vocab.txt" \
	"$example/sentences.ptb")

skip()
{
	tap_skip "$1" "the example under memcheck"
	tap_done
}

[ -n "${ESPALIER_VALGRIND-}" ] || skip "ESPALIER_VALGRIND is not set"
command -v valgrind >/dev/null || skip "no valgrind"
has_backend llvm || skip "no LLVM back end"
! grep -q __asan_init "$builddir/examples/treelstm/.libs/embed" || skip "it has another memory checker inside"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp

# memcheck TEXT COMMAND...: no error, and nothing lost; what libraries hold until the end of the process is none.
memcheck()
{
	local text=$1 status
	shift
	"$builddir/libtool" --mode=execute valgrind --quiet --error-exitcode=9 --leak-check=full \
		--show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible \
		--suppressions="$srcdir/tests/examples/valgrind.supp" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	[ $status = 0 ] || sed 's/^/# /' "$tmp/err" | head -n 60
	tap_is $status 0 "$text"
}

"$builddir/examples/treelstm/embed" "${files[@]}" >"$tmp/alone"
for how in "compiled there" "from the cache"; do
	memcheck "$how: neither errors nor leaks" "$builddir/examples/treelstm/embed" "${files[@]}"
	tap_is "$(awk '{ print $1, $2 }' "$tmp/out" | head -n 12)" "$(awk '{ print $1, $2 }' "$tmp/alone" | head -n 12)" \
		"$how: the results are those without it"
done
tap_done
