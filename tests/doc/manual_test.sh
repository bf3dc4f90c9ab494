# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The pages of the manual: proper roff, and all that the command and the registry know is there.
. "${srcdir:-.}/tests/cli/support.sh"
pages="espalier.1 espalier-algebra.7 espalier-diagnostics.7 espalier-model.7"
manual=${builddir:-.}/doc

if command -v groff >/dev/null; then
	for page in $pages; do
		tap_is "$(groff -man -ww -z "$manual/$page" 2>&1)" "" "groff has nothing to say about $page"
	done
else
	tap_skip "no groff" "groff has nothing to say"
fi
if command -v mandoc >/dev/null; then
	for page in $pages; do
		tap_is "$(mandoc -T lint -W warning "$manual/$page" 2>&1 | grep -v 'missing date')" "" \
			"mandoc has nothing to say about $page"
	done
else
	tap_skip "no mandoc" "mandoc has nothing to say"
fi

# plain PAGE: its words, one space between them, without roff's escapes.
plain()
{
	sed -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\f[BIR]//g' -e 's/\\(dq/"/g' -e 's/\\e/\\/g' -e 's/\\(ti/~/g' \
		-e 's/\\&//g' \
		-e 's/^\.[A-Za-z]* //' "$manual/$1" | tr -s '\n ' '  '
}

# --- espalier(1) ---

page=$(plain espalier.1)
esp help
commands=$(echo "$out" | sed -n 's/^  \([a-z-]*\) .*/\1/p')
for command in $commands; do
	esp help "$command"
	missing=
	while read -r line; do
		case $page in *"$line"*) ;; *) missing="$missing $line" ;; esac
	done <<-LINES
		$(echo "$out" | sed -n '1s/^usage: //p; 2p')
		$(echo "$out" | sed -n '/^Options:/,/^$/s/^ \{2,\}\(--[a-z-]*\).*/\1/p')
		$(echo "$out" | sed -n '/^Options:/,/^$/s/^ *\(--[^ ]* [^ ]*\)\{0,1\}  *\([a-z].*\)/\2/p')
		$(echo "$out" | tail -n 1 | sed 's/^ *//')
	LINES
	tap_is "$missing" "" "the page has what 'espalier help $command' says"
done
[ "$(echo "$commands" | wc -l)" -ge 6 ]
tap_ok $? "all commands were looked for"

# --- espalier-diagnostics(7) ---

page=$(plain espalier-diagnostics.7)
esp explain-error
missing=
while read -r id title; do
	case $page in *"$id \"$title\""*) ;; *"$id $title"*) ;; *) missing="$missing $id" ;; esac
done <<LINES
$out
LINES
tap_is "$missing" "" "every diagnostic has an entry"
tap_is "$(grep -c '^\.B [a-z\\-]*$' "$manual/espalier-diagnostics.7")" \
	"$(echo "$out" | wc -l)" "and there are no others"

# --- espalier-algebra(7) ---

missing=
for rule in $(sed -n 's/^RULE("\([a-z_]*\)".*/\1/p' "$srcdir/src/rewrite/rules.def"); do
	grep -qx "\.B $rule" "$manual/espalier-algebra.7" || missing="$missing $rule"
done
tap_is "$missing" "" "every rule has an entry"
missing=
while read -r heading; do
	grep -qix "\.SH $heading" "$manual/espalier-algebra.7" || missing="$missing $heading"
done <<LINES
$(sed -n 's/^## //p' "$srcdir/doc/algebra.md")
LINES
tap_is "$missing" "" "the sections of doc/algebra.md are there"
page=$(plain espalier.1)
missing=
for family in $(sed -n 's/^REWRITE_FAMILY([A-Z]*, "\([a-z]*\)".*/\1/p' "$srcdir/src/rewrite/families.def"); do
	case $page in *" $family "*) ;; *) missing="$missing $family" ;; esac
done
tap_is "$missing" "" "every family is told by the command's page"

# --- espalier-model(7) ---

page=$(plain espalier-model.7)
missing=
while read -r heading; do
	grep -qix "\.SH $heading" "$manual/espalier-model.7" || missing="$missing $heading"
done <<LINES
$(sed -n 's/^## //p' "$srcdir/doc/model-text.md")
LINES
tap_is "$missing" "" "the sections of doc/model-text.md are there"
missing=
while read -r row; do
	case $page in *"$row"*) ;; *) missing="$missing $row" ;; esac
done <<LINES
$(sed -n 's/^| `\(.*\)` | .*/\1/p' "$srcdir/doc/model-text.md" | sed 's/`//g')
LINES
tap_is "$missing" "" "every function is there"
tap_is "$(sed -n '/^```$/,/^```$/p' "$srcdir/doc/model-text.md" | grep -vc '^```$')" \
	"$(sed -n '/^\.EX$/,/^\.EE$/p' "$manual/espalier-model.7" | grep -vc '^\.E[XE]$')" \
	"examples and grammar are there line by line"
tap_done
