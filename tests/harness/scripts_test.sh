#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Every script of the tree can be read by the shell that runs it.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1

unreadable()
{
	local script
	for script in "$@"; do
		bash -n "$script" 2>/dev/null || echo "$script"
	done
}

mapfile -t scripts < <(grep -rlI --exclude-dir={.git,'build*',autom4te.cache} '^#!/usr/bin/env bash' . | sort)
[ "${#scripts[@]}" -ge 10 ]
tap_ok $? "the scripts are found"
tap_is "$(unreadable "${scripts[@]}")" "" "each can be read"
broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
echo 'f() {' >"$broken"
tap_is "$(unreadable "$broken")" "$broken" "one that cannot would be found"
tap_done
