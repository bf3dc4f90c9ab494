#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# An option that is not told to be in the key of the cache, or why it is not, does not compile.
set -u
. "$srcdir/tests/tap.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
read -ra cc <<<"${CC:-cc}"
mkdir "$tmp/compile"

# ROW: the file that makes the key compiles with one row more in the table.
compiles()
{
	{ cat "$srcdir/src/compile/options.def"; echo "$1"; } >"$tmp/compile/options.def"
	"${cc[@]}" -std=c11 -fsyntax-only -D_GNU_SOURCE -I"$tmp" -I"$srcdir/src" -I"$builddir" "$srcdir/src/compile/key.c" \
		2>"$tmp/errors"
}

# ROW ERROR WHAT: it does not, and the compiler says so.
refuses()
{
	! compiles "$1" && grep -q "$2" "$tmp/errors"
	tap_ok $? "$3"
}

compiles 'COMPILE_OPTION(bool, foo, IN_KEY, put_number)'
tap_ok $? "an option that is printed in the key compiles"
compiles 'COMPILE_OPTION(bool, foo, NOT_IN_KEY, "it makes the same code")'
tap_ok $? "an option that says why it is no part of the key compiles"
refuses 'COMPILE_OPTION(bool, foo)' "COMPILE_OPTION" "an option without the column does not"
refuses 'COMPILE_OPTION(bool, foo, , put_number)' "foo" "an option with an empty column does not"
refuses 'COMPILE_OPTION(bool, foo, IN_KEY, )' "expected" "an option that nothing prints does not"
refuses 'COMPILE_OPTION(struct jit_watch, foo, IN_KEY, put_number)' "incompatible" \
	"an option that is printed as what it is not does not"
refuses 'COMPILE_OPTION(bool, foo, NOT_IN_KEY, "")' "say why foo is not in the key" \
	"an option without a reason does not"
tap_done
