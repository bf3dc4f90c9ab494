#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The public headers alone: in every C and C++ that programs are written in, without a warning, and with no name that is
# another library's.
. "${srcdir:-.}/tests/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=("$srcdir"/src/api/espalier*.h)

# Twice, and with a use of what it declares, so that declarations are looked at and not only read.
cat >"$work/alone.c" <<C
#include <espalier_profile.h>
#include <espalier_quantise.h>
#include <espalier_service.h>
#include <espalier_vta.h>
#include <espalier_treebank.h>
#include <espalier_arrays.h>
#include <espalier.h>
#include <espalier_builder.h>
#include <espalier_service.h>
int use(const esp_error *e)
{
	esp_context_options options = {0};
	options.size = sizeof options;
	esp_service_counts counts;
	counts.size = sizeof counts;
	esp_service_count(0, &counts);
	esp_builder_free(0);
	return (int)esp_error_count(e) + (int)options.size + (ESP_ERROR_INPUT == 1) + (esp_profile_step(0, 0) == 0);
}
C
sed 's/{0}/esp_context_options()/' "$work/alone.c" >"$work/alone.cc"

# compiles COMPILER STANDARD FILE LANGUAGE
compiles()
{
	local said
	if ! command -v "${1%% *}" >/dev/null || ! $1 -std="$2" -fsyntax-only -x "$4" /dev/null 2>/dev/null; then
		tap_skip "no compiler for it" "${1##*/} takes the headers as $2"
		return
	fi
	said=$($1 -std="$2" -pedantic -Wall -Wextra -Werror -I"$srcdir/src/api" -fsyntax-only "$3" 2>&1)
	tap_is "$?,$said" "0," "${1##*/} takes the headers as $2"
}

for compiler in "${CC:-cc}" clang-19; do
	for standard in c99 c11 c17 c2x; do
		compiles "$compiler" $standard "$work/alone.c" c
	done
done
for compiler in g++ clang++-19; do
	for standard in c++11 c++14 c++17 c++20; do
		compiles $compiler $standard "$work/alone.cc" c++
	done
done

# Without its comments, in which a compiler may be named.
code=$(sed -e 's,/\*.*\*/,,' -e '/\/\*/,/\*\// { s,/\*.*,,; t; s,.*\*/,,; t; d }' "${headers[@]}")
[ "$(grep -c 'esp_' <<<"$code")" -gt 50 ]
tap_ok $? "the headers are read"
tap_is "$(grep -inE 'llvm|openmp|omp_|gccjit|json_|pthread|_Atomic|stdbool' <<<"$code")" "" \
	"they name no other library and no type of C alone"
tap_is "$(sed -n 's/^#include //p' "${headers[@]}" | grep -v '"espalier.*\.h"$' | paste -sd ' ')" \
	"<stddef.h> <stdint.h>" \
	"beside each other they include the C library's numbers only"

# What it defines is its own: all macros that it adds begin with ESP.
macros()
{
	${CC:-cc} -dM -E -x c "$1" -I"$srcdir/src/api" | sed 's/#define \([A-Za-z0-9_]*\).*/\1/' | sort
}
printf '#include <stddef.h>\n#include <stdint.h>\n' >"$work/before.c"
echo '#include <espalier_service.h>' >"$work/after.c"
tap_is "$(comm -13 <(macros "$work/before.c") <(macros "$work/after.c") | grep -v '^ESP')" "" \
	"their macros begin with ESP"
tap_done
