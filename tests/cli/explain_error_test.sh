# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier explain-error: every diagnostic by its id.
. "${srcdir:-.}/tests/cli/support.sh"

esp explain-error
tap_is "$status,$err" "0," "without an id all are listed"
all=$out
tap_is "$(echo "$all" | wc -l)" "$(grep -c '^DIAG(' "$srcdir/src/base/diag.def")" "as many as the registry has"
tap_is "$(echo "$all" | grep -vE '^[a-z-]+ {2,}[^ ]')" "" "each is a line of id and title"

broken=
for id in $(echo "$all" | sed 's/ .*//'); do
	esp explain-error "$id"
	case $status,$out in
	0,"$id: "*"What to do:"*"Status of a call that fails with it: "*) ;;
	0,"$id: "*"What to do:"*"A notice: "*) ;;
	*) broken="$broken $id" ;;
	esac
	[ "$(echo "$out" | awk 'length > 80' | wc -l)" -eq 0 ] || broken="$broken $id"
done
tap_is "$broken" "" "each is explained in lines of at most 80 letters"

esp explain-error shape-mismatch
told=$out
esp explain-error '[shape-mismatch]'
tap_is "$status,$out" "0,$told" "brackets around an id are no part of it"
esp explain-error out-of-memory
case $status,$out in 0,*"memory (3), the same call may be made again") tap_ok 0 "it is said what may be retried" ;;
*) tap_ok 1 "it is said what may be retried" ;; esac

esp explain-error shape-mismtach
refused 2 "did you mean 'shape-mismatch'" "the nearest id is suggested"
esp explain-error zzzzzzzzzzzz
refused 2 "'espalier explain-error' lists them" "where nothing is near, the list is"
esp explain-error "$(printf '%0300d' 0)"
refused 2 "there is no diagnostic" "an id of any length is refused"
esp explain-error ''
refused 2 "there is no diagnostic" "an empty id is refused"
esp explain-error '['
refused 2 "there is no diagnostic" "a bracket is no id"
esp explain-error cycle bad-root
refused 2 usage "one id at a time"
esp dmup
refused 2 "did you mean 'dump'" "the nearest command is suggested, too"

# --- the way there ---

sed 's/E\[word\]/F[word]/' "$here/tiny.ra" >"$tmp/bad.ra"
esp check "$tmp/bad.ra"
case $err in *explain-error*) tap_ok 1 "a file is not told of it" ;; *) tap_ok 0 "a file is not told of it" ;; esac
if script --version 2>/dev/null | grep -q util-linux && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	shown=$(script -qec "'$ESPALIER' check '$tmp/bad.ra'" /dev/null </dev/null | tr -d '\r' | tail -n 1)
	tap_is "$shown" "    more: espalier explain-error unknown-name" "a terminal is told where there is more"
else
	tap_skip "no script of util-linux, or no terminal to lend" "a terminal is told where there is more"
fi
tap_done
