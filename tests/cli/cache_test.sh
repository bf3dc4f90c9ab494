# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier run with and without its cache: the same results, no compiler the second time.
. "${srcdir:-.}/tests/cli/support.sh"

need_backend "the cache" || tap_done

# compiled ARGUMENT...: the tiny model, with the back end that makes code.
compiled()
{
	esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" "$@"
}

# files FOLDER: how many programs are kept in it.
files()
{
	find "$1" -type f 2>/dev/null | wc -l
}

cache=$tmp/cache
compiled --no-cache --cache-dir "$cache"
tap_is "$status $(files "$cache")" "0 0" "--no-cache keeps nothing"
plain=$out
compiled --cache-dir "$cache"
tap_is "$status $(files "$cache/images") $out" "0 1 $plain" "a program is kept in --cache-dir"
tap_is "$(stat -c %a "$cache" "$cache/images" "$cache"/images/* | tr '\n' ' ')" "700 700 600 " \
	"where nobody else can look"

# LD_DEBUG tells what is loaded; a statically linked command tells nothing.
LD_DEBUG=files LD_DEBUG_OUTPUT=$tmp/loaded compiled --cache-dir "$cache"
tap_is "$status $out" "0 $plain" "the second time gives the same results"
tap_is "$(cat "$tmp"/loaded.* | grep -cE 'libLLVM|libgccjit|espalier-(llvm|gccjit)')" 0 "and loads no compiler"
rm -f "$tmp"/loaded.*
LD_DEBUG=files LD_DEBUG_OUTPUT=$tmp/loaded compiled --no-cache
tap_ok "$(cat "$tmp"/loaded.* | grep -q "espalier-$backend"; echo $?)" "which without a cache it does"

compiled --cache-dir "$cache" --schedule /dev/null --at all
tap_is "$status $(files "$cache/images")" "0 2" "other options make another program"

chmod 755 "$cache/images"
compiled --cache-dir "$cache"
tap_is "$status $out" "0 $plain" "a folder that others can look into stops nobody"
tap_is "$(grep -c 'cache-unusable' <<<"$err") $(wc -l <<<"$err")" "1 2" "and is told once, with what to do"
chmod 700 "$cache/images"

for file in "$cache"/images/*; do truncate -s 50 "$file"; done
compiled --cache-dir "$cache"
tap_is "$status $out" "0 $plain" "a file that was cut off stops nobody"
tap_is "$(grep -c 'cache-entry-damaged' <<<"$err")" 1 "and is told"
compiled --cache-dir "$cache"
tap_is "$status $out$err" "0 $plain" "and replaced"
tap_done
