#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Every diagnostic of the registry has a test that provokes it: its name as C has it or its spelling stands in a test,
# outside of comments. A model that is refused names what it expects in its first line, and its own test provokes that.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1

# The registry as "NAME spelling" lines.
registry()
{
	sed -n 's/^DIAG(\([A-Z_]*\), [A-Z]*, "\([a-z-]*\)".*/\1 \2/p' src/base/diag.def
}

# What tests say, without their comments.
said()
{
	find tests -name '*_test.c' -exec sed -e 's,/\*.*\*/,,' -e '/^ *\/\*/,/\*\//d' {} +
	find tests -name '*_test.sh' ! -path "*/${0##*/}" -exec sed -e 's/^[[:space:]]*#.*//' {} +
	find tests/ra/illegal -name '*.ra' -exec head -qn 1 {} + | sed -n 's/^# expect: //p'
}

# Reads a registry; prints the spellings that no test says. A word ends where neither letters nor dashes go on.
silent()
{
	local name spelling
	while read -r name spelling; do
		grep -qE "(^|[^[:alnum:]_])DIAG_$name([^[:alnum:]_]|\$)|(^|[^[:alnum:]_-])$spelling([^[:alnum:]_-]|\$)" \
			<<<"$all" || echo "$spelling"
	done
}

all=$(said)
tap_is "$(registry | wc -l)" "$(grep -c '^DIAG(' src/base/diag.def)" "the registry is read"
tap_is "$(registry | silent)" "" "every diagnostic is provoked by a test"
tap_is "$(echo "NOBODY_SAYS nobody-$(echo says)" | silent)" "nobody-says" "one that is not would be found"
tap_is "$(registry | cut -d ' ' -f 2 | sort | uniq -d)" "" "no two are spelt alike"

# Those that the library never adds.
idle()
{
	comm -13 <(grep -rhoE 'DIAG_[A-Z_]+' src --include='*.c' | sort -u) <(registry | sed 's/ .*//; s/^/DIAG_/' | sort)
}
tap_is "$(idle)" "" "every diagnostic is used"
tap_done
