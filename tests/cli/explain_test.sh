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
tap_is "$(echo "$out" | grep -c '^products with node.U_[a-z_]* are computed in i16 of factors within 1$')" 10 \
	"and each product that is computed in it"
tap_is "$(echo "$out" | grep '^products with .* in f32' | sed 's/ with [^ ]*//' | sort | uniq -c | tr -s ' ')" \
	" 1 products are computed in f32: fewer than 16 terms, or 16 sums of the same factors
 3 products are computed in f32: no bound is known of what they multiply" "and each that is not, with the reason"

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
