#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What a user of the installed library meets: the header stands alone in C and C++, pkg-config says all that a program
# needs, the example builds with nothing else and runs.
#   installcheck.sh DESTDIR PKGCONFIGDIR LIBDIR LIBEXECDIR BINDIR MANDIR DATADIR CC EXAMPLE
set -euo pipefail
destdir=$1 pkgconfig=$2 libdir=$3 libexecdir=$4 bindir=$5 mandir=$6 datadir=$7 cc=$8 example=$9
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export PKG_CONFIG_PATH=$destdir$pkgconfig
export LD_LIBRARY_PATH=$destdir$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ -z "$destdir" ] || export PKG_CONFIG_SYSROOT_DIR=$destdir
# What the library itself needs is no concern of a program that links it: its .pc files need not be there.
env -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR="$destdir$pkgconfig" pkg-config --cflags --libs espalier >"$work/said"
env -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR="$destdir$pkgconfig" pkg-config --static --libs espalier >"$work/static"
for flag in -ljansson -fopenmp; do
	grep -q -e "$flag" "$work/static" || { echo "pkg-config --static lacks $flag" >&2; exit 1; }
done
read -ra flags < <(pkg-config --cflags espalier)
read -ra libs < <(pkg-config --libs espalier)

echo '#include <espalier.h>' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cc"
$cc -std=c11 -pedantic -Wall -Wextra -Werror "${flags[@]}" -fsyntax-only "$work/alone.c"
for standard in c++11 c++20; do
	c++ -std=$standard -pedantic -Wall -Wextra -Werror "${flags[@]}" -fsyntax-only "$work/alone.cc"
done

$cc -std=c11 -Wall -Wextra "$example/embed.c" "${flags[@]}" -o "$work/embed" "${libs[@]}"
files=("$example/sst-treelstm-small.safetensors" "$example/sst-vocab.txt" "$example/sentences.ptb")
# Installed in its place the library finds its plug-ins and the helper by itself; below a DESTDIR it must be told.
unset ESPALIER_BACKEND_PATH
[ -z "$destdir" ] || export ESPALIER_BACKEND_PATH=$destdir$libdir/espalier:$destdir$libexecdir/espalier
"$work/embed" "$example/treelstm.ra" "${files[@]}" >"$work/embedded"
"$destdir$bindir/espalier" run "$example/treelstm.ra" --weights "${files[0]}" --vocab "${files[1]}" "${files[2]}" >"$work/run"
"$destdir$bindir/espalier" run "$example/treelstm.ra" --weights "${files[0]}" --vocab "${files[1]}" "${files[2]}" --no-cache \
	--compile-in helper >"$work/apart"
trees=$(wc -l <"${files[2]}")
for output in embedded run apart; do
	[ "$(wc -l <"$work/$output")" -ge "$trees" ]
done
# The command, its manual and its completions.
"$destdir$bindir/espalier" init "$work/new.ra" >"$work/said"
"$destdir$bindir/espalier" check "$work/new.ra" >"$work/said"
for file in "$mandir"/man1/espalier.1 "$mandir"/man7/espalier-{algebra,diagnostics,model}.7 \
	"$datadir"/bash-completion/completions/espalier "$datadir"/fish/vendor_completions.d/espalier.fish \
	"$datadir"/zsh/site-functions/_espalier; do
	[ -s "$destdir$file" ] || { echo "not installed: $destdir$file" >&2; exit 1; }
done

# A program finds the library by its soname.
[ -e "$destdir$libdir/$(objdump -p "$work/embed" | sed -n 's/^ *NEEDED *\(libespalier.*\)/\1/p')" ]
echo "installed: espalier $(pkg-config --modversion espalier); the example runs"
