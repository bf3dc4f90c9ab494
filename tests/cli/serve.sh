# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Tests of `espalier serve` are written in Python; a script sources this and calls serve_tests FILE.
. "${srcdir:-.}/tests/tap.sh"
export srcdir=${srcdir:-.} ESPALIER=${ESPALIER:-./espalier}

serve_tests()
{
	if ! command -v python3 >/dev/null; then
		tap_skip "no python3" "the server answers"
		tap_done
	fi
	if [[ $("$ESPALIER" serve 2>&1) == *"not part of this build"* ]]; then
		tap_skip "no libmicrohttpd" "the server answers"
		tap_done
	fi
	PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/cli/$1"
}
