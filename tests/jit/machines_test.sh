#!/usr/bin/env bash
# Code for each target, run call by call on that machine, this one or an emulated one, leaves what the interpreter leaves.
srcdir=${srcdir:-.}
. "$srcdir/tests/tap.sh"
builddir=${builddir:-build}
CC=${CC:-cc}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# record TARGET: the code that $backend makes, and the calls of some runs, to $tmp/TARGET.
record()
{
	srcdir=$srcdir "$builddir/tests/jit/record" "$backend" "$1" >"$tmp/$1" 2>"$tmp/said"
	tap_ok $? "$backend: code for $1 is made" || sed 's/^/# /' "$tmp/said"
}

# replay TARGET COMPILER EMULATOR: with what the compiler makes, under the emulator if it is not this machine.
replay()
{
	local out
	"$2" -std=c11 -O1 -static -D_GNU_SOURCE -I"$srcdir" -I"$srcdir/src" -o "$tmp/replay" \
		"$srcdir/tests/jit/replay.c" 2>&1 | sed 's/^/# /'
	out=$($3 "$tmp/replay" "$tmp/$1" 2>&1)
	tap_ok $? "code for $1 does what the interpreter does"
	echo "$out" | sed 's/^/# /'
}

# x86 TARGET FLAG: FLAG of /proc/cpuinfo says that this machine runs it.
x86()
{
	record "$1"
	if [ "$(uname -m)" = x86_64 ] && grep -qw "$2" /proc/cpuinfo; then
		replay "$1" "${CC%% *}" ""
	else
		tap_skip "no processor with $2" "code for $1 does what the interpreter does"
	fi
}

# there BACKEND: it is built.
there()
{
	[ -e "${ESPALIER_BACKEND_PATH:-$builddir/.libs}/espalier-$1.so" ] && return
	tap_skip "it is not here" "code for each target by $1"
	return 1
}

for backend in llvm gccjit; do
	there "$backend" || continue
	x86 generic sse2
	x86 avx2 avx2
	x86 avx512 avx512vl
done

backend=llvm
there llvm || tap_done
record aarch64
if [ "$(uname -m)" = aarch64 ]; then
	replay aarch64 "${CC%% *}" ""
elif command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null; then
	replay aarch64 aarch64-linux-gnu-gcc qemu-aarch64
else
	tap_skip "no qemu-aarch64 or no aarch64-linux-gnu-gcc" "code for aarch64 does what the interpreter does"
fi
tap_done
