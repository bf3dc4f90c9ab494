# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier init: models to start from.
. "${srcdir:-.}/tests/cli/support.sh"

for kind in tree sequence dag; do
	esp init "$tmp/$kind.ra" --kind $kind
	cmp "$tmp/$kind.ra" "$srcdir/tools/init/$kind.ra"
	tap_is "$?,$status,$err" "0,0," "$kind: a new file has the model"
	esp init --kind $kind
	tap_is "$status,$out" "0,$(cat "$tmp/$kind.ra")" "$kind: so has standard output"
	esp check "$tmp/$kind.ra"
	case $status,$out in 0,*"a model of a $kind "*) tap_ok 0 "$kind: it is a model" ;; *) tap_ok 1 "$kind: it is a model" ;; esac
	awk 'length > 122' "$tmp/$kind.ra" | grep -q . && found=1 || found=0
	tap_ok $found "$kind: its lines are short"
done
# The command reads trees and nothing else.
for kind in tree sequence dag; do
	grep -q "espalier run" "$tmp/$kind.ra"
	runs=$?
	[ $kind = tree ] && expected=0 || expected=1
	tap_is "$runs" "$expected" "$kind: it says how the command runs it only if the command can"
done
esp init
tap_is "$out" "$(cat "$tmp/tree.ra")" "a tree is what one gets when nothing is said"

# The words of the language, as its page lists them: who starts from these models meets most of them, and the rest in
# the examples.
reserved=$(sed -n 's/^Reserved: //p' "$srcdir/doc/model-text.md" | tr -d '`,.')
missing=
for word in $reserved; do
	sed 's/#.*//' "$tmp/tree.ra" "$tmp/sequence.ra" "$tmp/dag.ra" "$srcdir"/examples/*/*.ra | grep -qw "$word" || missing="$missing $word"
done
tap_is "$missing" "" "they and the examples use every word of the language"
[ "$(echo $reserved | wc -w)" -gt 10 ]
tap_ok $? "which were looked for"

echo mine >"$tmp/mine.ra"
esp init "$tmp/mine.ra"
refused 1 "File exists" "a file that is there is refused"
tap_is "$(cat "$tmp/mine.ra")" "mine" "and stays as it was"
ln -s nowhere "$tmp/link.ra"
esp init "$tmp/link.ra"
refused 1 "File exists" "a link to nowhere is not followed"
esp init "$tmp/none/new.ra"
refused 1 "No such file" "a folder that is not there is told"
esp init "$tmp/new.ra" --kind graph
refused 2 "tree|sequence|dag" "a kind that does not exist is refused"
[ ! -e "$tmp/new.ra" ]
tap_ok $? "before a file is made"
tap_done
