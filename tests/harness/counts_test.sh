#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The sums that run-tests prints: a failure must not be lost on the way from a test to the last line.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1
. build-aux/setup.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

summary()
{
	printf '# %s %s\n' TOTAL: 9 PASS: "$1" SKIP: "$2" XFAIL: "$3" FAIL: "$4" XPASS: "$5" ERROR: "$6" >"$work/log"
}

summary 7 2 0 0 0 0
tap_is "$(setup_counts "$work/log")" "7 0 2" "passes and skips are counted"
summary 1 0 2 1 2 4
tap_is "$(setup_counts "$work/log")" "3 7 0" "unexpected passes and errors are failures, expected failures pass"
printf '# PASS: 100\n' >>"$work/log"
tap_is "$(setup_counts "$work/log")" "3 7 0" "what a test prints below the summary is not counted"
tap_is "$(setup_counts "$work/none")" "" "no log, no counts"

# check STATUS COUNTS...: setup_make stands for a make whose suite ends with this status and summary.
setup_log=$work/setup.log
check()
{
	local ending=$1
	shift
	[ $# = 0 ] && rm -f "$work/log" || summary "$@"
	setup_make()
	{
		[[ $* != *test-programs ]] || return "${compiles:-0}"
		[ ! -e "$work/log" ] || mv "$work/log" "$work/test-suite.log"
		return "$ending"
	}
	setup_check "$work" 2>/dev/null
	echo "$? $passed $failed $skipped"
}

tap_is "$(check 0 5 1 0 0 0 0)" "0 5 0 1" "a suite that passes"
tap_is "$(check 1 5 0 0 2 0 0)" "1 5 2 0" "a suite with failures"
tap_is "$(check 1 5 0 0 0 0 0)" "1 5 1 0" "a make that fails though every test passed is a failure"
tap_is "$(check 0 0 3 0 0 0 0)" "1 0 1 3" "a suite that only skips is a failure"
tap_is "$(check 2)" "1 0 1 0" "a suite that does not run is a failure"
tap_is "$(compiles=2 check 0 5 1 0 0 0 0)" "1 0 1 0" "tests that do not compile are a failure"

cat >"$work/log" <<'END'
# TOTAL: 3
# FAIL:  2
SKIP: a_test
# a comment of a test that is skipped
ok 1 # SKIP no processor
FAIL: b_test
# a comment of what passes
ok 1 - passes
not ok 2 - fails
# found  1
# wanted 2
ok 3 - passes
==1==ERROR: AddressSanitizer: heap-use-after-free
    #0 0x1 in free
ERROR: c_test - exited with status 1
END
tap_is "$(setup_failures "$work/log" | tr '\n' '|')" \
	"FAIL: b_test|not ok 2 - fails|# found  1|# wanted 2|==1==ERROR: AddressSanitizer: heap-use-after-free|    #0 0x1 in free|ERROR: c_test - exited with status 1|" \
	"of a suite's log only failures are shown"
tap_done
