#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Every source and script says under which licence it stands, in one line of the same words; the version that a release
# names is the one of espalier.h.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1

line='Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0'

# Prints the files among the arguments whose first three lines lack the licence line.
unlicensed()
{
	local file
	for file; do
		head -n 3 "$file" | grep -qF "$line" || echo "$file"
	done
}

mapfile -t sources < <(find src tools doc bench tests examples m4 debian python cmake \( -name '*.[ch]' -o -name '*.def' -o -name '*.map' \
	-o -name '*.py' -o -name '*.sh' -o -name '*.mk' -o -name 'espalier-*.m4' -o -name '*.in' \) ! \
	-path '*/corpus/*' 2>/dev/null | sort)
tap_is "$([ "${#sources[@]}" -gt 500 ] && echo many)" many "sources are found"
tap_is "$(unlicensed "${sources[@]}" quickstart run-tests Makefile.am configure.ac espalier.pc.in .ci/run .ci/debian.sh build-aux/link-library.sh build-aux/setup.sh debian/rules \
	debian/tests/smoke REUSE.toml)" "" \
	"every source says its licence"
tap_is "$(unlicensed LICENSE)" LICENSE "a file without the line would be found"

version=$(sed -n 's/^#define ESP_VERSION "\(.*\)"$/\1/p' src/api/espalier.h)
tap_is "$(sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -n 1)" "$version" \
	"the newest release of CHANGELOG.md is the version of espalier.h"
tap_is "$(sed -n 's/^version: *//p' CITATION.cff)" "$version" "CITATION.cff names that version"
tap_is "$(sed -n '1s/^espalier (\([0-9.]*\)-[0-9]*).*/\1/p' debian/changelog)" "$version" \
	"debian/changelog names that version"
cmp LICENSE LICENSES/Apache-2.0.txt
tap_ok $? "LICENSES/ has the text of LICENSE"
tap_done
