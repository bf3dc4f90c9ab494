#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What the set-up installs, with stand-ins for the system's package commands.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1
. build-aux/setup.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
setup_log=$work/log
mkdir "$work/bin"

# stand_in NAME: a command in front of the system's; its body is standard input.
stand_in()
{
	{ echo '#!/bin/sh'; cat; } >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}

# Everything is installed but what $work/absent names.
stand_in dpkg-query <<SH
for package; do :; done
grep -qx "\$package" $work/absent || echo installed
SH
stand_in apt-get <<SH
for word; do case \$word in -*|*=*) ;; *) printf '%s ' "\$word" ;; esac; done >>$work/asked
echo >>$work/asked
SH
stand_in id <<SH
echo \${user:-0}
SH
PATH=$work/bin:$PATH

# A PATH where sudo is not.
mkdir "$work/tools"
for tool in cat grep sed sh; do
	ln -s "$(command -v $tool)" "$work/tools/"
done

# asked PACKAGE... -- USE...: what apt-get is asked when these packages are absent.
asked()
{
	: >"$work/asked"
	: >"$work/absent"
	while [ "$1" != -- ]; do
		echo "$1" >>"$work/absent"
		shift
	done
	shift
	setup_packages "$@" 2>/dev/null || echo "status $?"
	cat "$work/asked"
}

tap_is "$(asked -- build ci bench)" "" "nothing is run when all is there"
tap_is "$(asked clang-19 python3-torch -- build)" "" "packages of other uses are not installed"
tap_is "$(asked libtool llvm-19-dev clang-19 -- build)" "update 
install libtool llvm-19-dev " "what is missing is installed, after an update of the lists"
tap_is "$(user=1000 PATH=$work/bin:$work/tools asked libtool -- build)" "status 1" \
	"neither root nor sudo: advice and a failure"

stand_in apt-get <<SH
exit 100
SH
tap_is "$(asked libtool -- build)" "status 1" "an installation that fails is a failure"
tap_done
