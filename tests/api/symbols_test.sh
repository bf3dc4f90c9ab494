#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The public symbols: what the headers declare, what the map lists and what the library exports are the same names.
. "${srcdir:-.}/tests/tap.sh"

declared()
{
	sed -e 's,/\*[^*]*\*/,,g' "$srcdir"/src/api/espalier*.h | grep -E '^[a-z].*\<esp_[a-z_]+\(' |
		grep -oE '\<esp_[a-z_]+\(' | tr -d '(' | sort -u
}

listed()
{
	sed -n 's/^[[:space:]]*\(esp_[a-z_]*\);/\1/p' "$srcdir/src/api/espalier.map" | sort -u
}

# Data symbols, and a name that carries the version, would show here too.  Debuggers look for two by their names.
exported()
{
	nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | grep -v '^__jit_debug_' | sort -u
}

tap_is "$(comm -3 <(listed) <(declared))" "" "the map lists what the headers declare"
# Every word of the review that begins as a name of its row does, or is the end of one.
reviewed()
{
	awk -F'|' '/^\| `esp_/ { n = split($2, name, /[`, ]+/); for (i = 1; i <= n; i++) if (name[i] ~ /^esp_/) { print name[i]; first = name[i] }
		else if (name[i] ~ /^_/) for (stem = first; sub(/_[a-z]*$/, "", stem);) print stem name[i] }' "$srcdir/doc/api-review.md" | sort -u
}

tap_is "$(comm -13 <(reviewed) <(listed))" "" "the review of the header speaks of each of them"
tap_is "$(sed -n '/^global:/,/^local:/p' "$srcdir/src/api/espalier.map" | grep '[*?[]')" "" \
	"name by name, without patterns"
tap_is "$(grep -c '^[[:space:]]*\*;' "$srcdir/src/api/espalier.map")" 1 "all else is local"
library=$builddir/.libs/libespalier.so
if [ ! -e "$library" ]; then
	tap_skip "no shared library" "the library exports what the map lists"
else
	tap_is "$(comm -3 <(exported "$library") <(listed))" "" "the library exports what the map lists"
	soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
	IFS=: read -r current _ age < <(sed -n 's/^libespalier_version = //p' "$srcdir/src/api/local.mk")
	tap_is "$soname" "libespalier.so.$((current - age))" "the soname follows the rule"
	needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
	grep -qE 'LLVM|gccjit' <<<"$needed" && found=1 || found=0
	tap_ok $found "the library is not linked to a compiler"
fi
tap_done
