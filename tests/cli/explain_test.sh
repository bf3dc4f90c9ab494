# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier explain: what is said of the example, in both forms, and what is refused.
. "${srcdir:-.}/tests/cli/support.sh"
weights=$example/sst-treelstm-small.safetensors

# explain ARGUMENT...
explain()
{
	esp explain "$example/treelstm.ra" --weights "$weights" "$@"
}

explain --at model
tap_is "$status,$(echo "$out" | sed -n 1p)" "0,treelstm, math reassociate, all rules, V = 8217, E = 64, D = 64" \
	"the first line says what is explained"
text=$out
for body in leaf inner output output.root; do
	echo "$text" | grep -A 1 "^$body  *as written" | grep -q "^  *as computed"
	tap_ok $? "$body has a line before and one after"
done
tap_is "$(echo "$text" | grep -A 2 '^leaf' | sed -n '3s/  */ /gp')" " saved 8 3 29824 -260 49920 0 0 0" \
	"and one of what that saved"
explain --rules none
tap_is "$(echo "$out" | grep -c '^no rule was applied')" 1 "without rules none is applied"
explain --rules -tables,-geometric --math exact
case $out in "treelstm, math exact, rules but for geometric, tables, V"*) tap_ok 0 "options are told" ;; *) tap_ok 1 "options are told" ;; esac

explain --rules -tables --precision i16
case $out in "treelstm, math reassociate, rules but for tables, products in i16, V"*) tap_ok 0 "the precision is told" ;; *) tap_ok 1 "the precision is told" ;; esac
tap_is "$(echo "$out" | grep -c '^products node.U_[a-z_]*\*h are computed in i16 of factors within 1$')" 10 \
	"and each product that is computed in it"
tap_is "$(echo "$out" | grep '^products [^ ]* are computed in f32' | sed 's/ [^ ]*//' | sort | uniq -c | tr -s ' ')" \
	" 1 products are computed in f32: fewer than 16 terms, or 16 sums of the same factors
 3 products are computed in f32: no bound is known of what they multiply" "and each that is not, with the reason"

tap_is "$(echo "$out" | sed -n '/^largest difference/,/^$/p' | sed -n '2p;3s/  */ /gp;$p' | head -1 | tr -s ' ')" \
	"of structures of height 0 1 2 4 8 16 any" "and how far results may be from f32, by height"
tap_is "$(echo "$out" | awk '/^state h / { print ($3 == 0 && $4 > 0 && $4 < 0.1 && $5 > $4 && $9 == 2) } /^state c / { print $9 }' | tr '\n' ' ')" \
	"1 - " "a state within 1 has a bound, one that grows has none for any height"
tap_is "$(echo "$out" | grep -c '^sums with node.U_[a-z_]*, node.U_[a-z_]* change by at most 0.00[0-9]*$')" 5 \
	"each sum is told with what integers change of it"
explain --rules -tables --precision i16 --format json
tap_is "$(echo "$out" | tr '{' '\n' | grep -c '^"height":[0-9n].*"edges":null')" 7 "JSON has the bounds of each height"
tap_is "$(explain --format json; echo "$out" | grep -c '"errors":null,"layers"')" 1 "and none in f32"
explain --assume finite
case $out in "treelstm, math reassociate, all rules, finite numbers, V"*) tap_ok 0 "what is assumed is told" ;; *) tap_ok 1 "what is assumed is told" ;; esac
explain --layers
tap_is "$(echo "$out" | sed -n 3,5p)" "layers before      52  operators of the text
layers after        5  loop nests of a run, 1 of which only move elements
after / before  0.096" "layers before and after"
tap_is "$(echo "$out" | grep -c '^ *14  @$'),$(echo "$out" | grep -c '^inner\.0  *10 ')" 1,1 "with operators, and loop nests"

explain --at model --output "$tmp/text"
tap_is "$status,$out,$(cat "$tmp/text")" "0,,$text" "the text goes to a file"
explain --format json
tap_is "$status,$(echo "$out" | wc -l),${out:0:44}" '0,1,{"model":"treelstm","math":"reassociate","ru' "JSON is a line"

esp explain "$example/treelstm.ra"
refused 2 "explain needs --weights" "without weights it is refused"
esp explain "$here/none.ra" --weights "$weights"
refused 1 "cannot-read" "a model that is not there is refused"
explain --output "$tmp/none/text"
refused 1 "No such file" "a file that cannot be made is refused"
tap_done
