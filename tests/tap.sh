# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Test Anything Protocol for shell tests; source it, call tap_done last. The counterpart of tap.h. What runs in a
# subshell,
# such as a part of a pipeline, does not count: the harness will say that numbers are out of order.
tap_count=0
tap_failed=0

# tap_ok STATUS TEXT: passes when STATUS is 0, and is then true.
tap_ok()
{
	tap_count=$((tap_count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_count - $2"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_count - $2"
		false
	fi
}

# tap_is FOUND WANTED TEXT: passes when both are the same text; shows them when they are not.
tap_is()
{
	if [ "$1" = "$2" ]; then
		tap_ok 0 "$3"
	else
		tap_ok 1 "$3"
		printf 'found: %s\nwanted: %s\n' "$1" "$2" | sed 's/^/# /'
	fi
}

# tap_skip REASON TEXT: REASON says what is absent.
tap_skip()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $2 # SKIP $1"
}

# tap_in_sample NUMBER: whether that one of many like things is in the sample, as sample.h says; with sanitizers as well, one in four is.
tap_in_sample()
{
	local first each
	IFS=x read -r first each <<<"${ESPALIER_SAMPLE:-0x4}"
	[ $(($1 % each)) = $((first % each)) ]
}

# Prints the plan and leaves, with status 1 when anything failed.
tap_done()
{
	echo "1..$tap_count"
	exit $((tap_failed != 0))
}
