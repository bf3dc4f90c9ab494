#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Code for each target, run call by call on that machine, this one or an emulated one, leaves what the interpreter
# leaves.
srcdir=${srcdir:-.}
. "$srcdir/tests/tap.sh"
builddir=${builddir:-build}
. "$srcdir/tests/backends.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# record TARGET: the code that $backend makes, and the calls of some runs, to $tmp/TARGET.
record()
{
	srcdir=$srcdir "$builddir/tests/jit/record" "$backend" "$1" >"$tmp/$1" 2>"$tmp/said"
	tap_ok $? "$backend: code for $1 is made" || sed 's/^/# /' "$tmp/said"
}

# on_machine TEXT PROGRAM [ARGUMENT...]: PROGRAM.c, made by $compiler, succeeds under $emulator.
on_machine()
{
	local text=$1 program=$2 out
	shift 2
	"${compiler[@]}" -std=c11 -O1 -static -D_GNU_SOURCE -I"$srcdir" -I"$srcdir/src" -o "$tmp/program" \
		"$srcdir/$program.c" -lm >"$tmp/said" 2>&1 || sed 's/^/# /' "$tmp/said"
	out=$("${emulator[@]}" "$tmp/program" "$@" 2>&1)
	tap_ok $? "$text"
	sed 's/^/# /' <<<"$out"
	rm -f "$tmp/program"
}

# replay TARGET: its code, on its machine.
replay()
{
	on_machine "code for $1 does what the interpreter does" tests/jit/replay "$tmp/$1"
}

# x86 TARGET FLAG: FLAG of /proc/cpuinfo says that this machine runs it.
x86()
{
	record "$1"
	if [ "$(uname -m)" = x86_64 ] && grep -qw "$2" /proc/cpuinfo; then
		replay "$1"
	else
		tap_skip "no processor with $2" "code for $1 does what the interpreter does"
	fi
}

# This machine: a compiler may be several words.
read -ra compiler <<<"${CC:-cc}"
emulator=()
for backend in "${backends[@]}"; do
	x86 generic sse2
	x86 avx2 avx2
	x86 avx512 avx512vl
done
skip_backends

if [ "$(uname -m)" != aarch64 ]; then
	compiler=(aarch64-linux-gnu-gcc)
	emulator=(qemu-aarch64)
fi
floats="floats of aarch64 are set for a run, and set back"
backend=llvm
! has_backend llvm || record aarch64
if ! command -v "${compiler[0]}" >/dev/null || { [ -n "${emulator[*]}" ] && ! command \
	-v "${emulator[0]}" >/dev/null; }; then
	tap_skip "no qemu-aarch64 or no aarch64-linux-gnu-gcc" "$floats"
	tap_skip "no qemu-aarch64 or no aarch64-linux-gnu-gcc" "code for aarch64 does what the interpreter does"
	tap_done
fi
on_machine "$floats" tests/base/floats_test
if has_backend llvm; then
	replay aarch64
else
	tap_skip "no LLVM back end" "code for aarch64 does what the interpreter does"
fi
tap_done
