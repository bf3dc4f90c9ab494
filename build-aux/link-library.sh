#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Links libespalier by libtool and, where a static archive came of it, hides in that every name but those of the map, as
# the shared library does: all members become one object, whose other symbols are made local. Without this a name of the
# library's own may meet one of the program's, or of another library's.
#   link-library.sh MAP "CC CFLAGS" OBJCOPY AR LIBRARY.la LIBTOOL-COMMAND...
set -euo pipefail
map=$1 objcopy=$3 ar=$4 library=$5
read -ra cc <<<"$2"
shift 5
"$@"

archive=$(sed -n "s/^old_library='\(.*\)'$/\1/p" "$library")
[ -n "$archive" ] || exit 0
work=$(mktemp -d "$library.XXXXXX")
trap 'rm -rf "$work"' EXIT
sed -n 's/^[[:space:]]*\(esp_[a-z0-9_]*\);$/\1/p' "$map" >"$work/names"
# What CFLAGS ask of programs, a run-time library of a sanitizer among it, is not for the one object.  Objects of GCC that wait for link-time optimization are compiled first; other compilers do not know the option.
partial=(-nostdlib -r -no-pie -fno-sanitize=all -o "$work/espalier.o" -Wl,--whole-archive ".libs/$archive" -Wl,--no-whole-archive)
"${cc[@]}" -flinker-output=nolto-rel "${partial[@]}" 2>"$work/log" || "${cc[@]}" "${partial[@]}" ||
	{ cat "$work/log" >&2; exit 1; }
"$objcopy" --keep-global-symbols="$work/names" "$work/espalier.o"
"$ar" cr "$work/$archive" "$work/espalier.o"
mv "$work/$archive" ".libs/$archive"
