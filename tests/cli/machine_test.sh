# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier machine: what is known of this machine, measured on request and kept.
. "${srcdir:-.}/tests/cli/support.sh"

# value NAME: of a line of the description.
value()
{
	awk -v name="$1" '$1 == name { print $2 }' <<<"$out"
}

cache=$tmp/machine-cache
esp machine --cache-dir "$cache"
tap_is "$status $(value source) $(find "$cache" 2>/dev/null)" "0 defaults " \
	"in tests this machine is a usual one, and nothing is kept"
usual=$out
ESPALIER_MACHINE=kept esp machine --cache-dir "$cache"
tap_is "$status $(value source) $(find "$cache" 2>/dev/null)" "0 system " \
	"without a measurement the system is asked, and nothing kept"
tap_is "$(cut -d' ' -f1 <<<"$out")" "$(cut -d' ' -f1 <<<"$usual")" "by the same names"
tap_ok "$(grep -cvE '^(processor .*|target [a-z0-9]+|source [a-z]+|[a-z0-9_]+ [0-9.e+-]+ (bytes|ns|bytes/ns|ops/ns|-)  .+|iteration\.(l1|l2|beyond)\.[0-9]+( [0-9]+)+ ps)$' <<<"$out")" "each with a number, a unit and a meaning, or times of iterations"

ESPALIER_MACHINE=kept esp machine --cache-dir "$cache" --threads 1 --measure -o "$tmp/measured"
out=$(cat "$tmp/measured")
tap_is "$status $(value source) $(find "$cache/machines" -type f | wc -l)" "0 measured 1" \
	"--measure measures, and keeps that"
measured=$out
ESPALIER_MACHINE=kept esp machine --cache-dir "$cache"
tap_is "$status $out" "0 $measured" "which is then what is known"
ESPALIER_MACHINE=kept esp machine --cache-dir "$cache" --no-cache
tap_is "$status $(value source)" "0 system" "but not without the cache"

ESPALIER_MACHINE=kept esp machine --cache-dir "$tmp/two" --threads 2 --measure -o "$tmp/measured"
wake=$(sed -n 's/^wake \([0-9.]*\) ns .*/\1/p' "$tmp/measured")
ESPALIER_MACHINE=kept esp machine --cache-dir "$tmp/two" --threads 2
tap_is "$status $out" "0 $(cat "$tmp/measured")" "so is what two threads measure"
tap_ok "$(awk -v w="$wake" 'BEGIN { print !(w >= 10000 && w <= 440000) }')" \
	"among it how long a thread takes to wake up: $wake ns"

touch -d '1 hour ago' "$cache"/machines/*
before=$(stat -c '%i %Y %s' "$cache"/machines/*)
ESPALIER_MACHINE=measured esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" \
	--cache-dir "$cache"
tap_is "$status $(stat -c '%i %Y %s' "$cache"/machines/*)" "0 $before" "a run leaves what is kept as it is"
for asked in measured kept defaults; do
	ESPALIER_MACHINE=$asked esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" \
		--cache-dir "$cache"
	[ "$asked" = measured ] && results=$out
	tap_is "$status $out" "0 $results" "results do not depend on it ($asked)"
done
ESPALIER_MACHINE=bogus esp machine --cache-dir "$cache"
refused 2 "ESPALIER_MACHINE is 'bogus', which is none of measured, kept, defaults" \
	"a source that does not exist is refused"
ESPALIER_MACHINE= esp machine --cache-dir "$tmp/other" --no-cache
tap_is "$status $(value source)" "0 system" "an empty one is as none"
esp machine model.ra
refused 2 "usage: espalier machine" "an operand"
tap_done
