# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier compile: what it makes runs without a back end and gives the same bytes; everything else is refused.
. "${srcdir:-.}/tests/cli/support.sh"

usage()
{
	local what=$1
	shift
	esp compile "$@"
	refused 2 "espalier" "$what"
}

usage "nowhere to write" "$here/tiny.ra" --weights "$tmp/tiny.safetensors"
usage "standard output" "$here/tiny.ra" --weights "$tmp/tiny.safetensors" -o -
usage "no weights" "$here/tiny.ra" -o "$tmp/none"
usage "weights to pack that are not there" "$here/tiny.ra" --pack -o "$tmp/none"
usage "sizes and weights" "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --sizes D=2 -o "$tmp/none"
usage "a size of nothing" "$here/tiny.ra" --sizes Q=2 -o "$tmp/none"
usage "a name of no object" "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --name tree -o "$tmp/none"
usage "a name that is no identifier" "$here/tiny.ra" --weights "$tmp/tiny.safetensors" -o "$tmp/2b.o"
esp compile "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --backend interpreter -o "$tmp/none"
refused 2 no-code "a program that is interpreted"
[ ! -e "$tmp/none" ]
tap_ok $? "nothing is left of them"


usage "C under a name that is no identifier" "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --as c -o "$tmp/2b"
esp compile "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --as c -o "$tmp/tree"
refused 2 no-source "C of a model with a structure"
[ ! -e "$tmp/tree" ]
tap_ok $? "it leaves no folder"
chain=${srcdir:-.}/tests/tflite/cases/chain.tflite
esp compile "$chain" --as c -o "$tmp/chain/"
tap_is "$status,$(cd "$tmp/chain" && echo *),$err" "0,chain.c chain.h chain_arithmetic.h chain_weights.c chain_weights.h," "a graph is written as C to a folder"
tap_is "$(grep '^int' "$tmp/chain/chain.h")" "int chain_run(int64_t rows, const int8_t *in_x0, int32_t *out_y0);" "its header declares the function"
esp compile "$chain" --as c --name other -o "$tmp/chain"
tap_is "$status,$(grep -c '^int other_run' "$tmp/chain/other.h")" "0,1" "which may have another name"

skip_backends
[ -n "$backend" ] || tap_done

# made FILE ARGUMENT...: compiles the tiny model, without the cache.
made()
{
	local file=$1
	shift
	esp compile "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --no-cache --backend $backend -o "$file" "$@"
}

# alone ARGUMENT...: a run where there is no back end.
alone()
{
	ESPALIER_BACKEND_PATH=/nonexistent esp run "$@" --vocab "$tmp/words"
}

# same PLACE: a program of the back end gives what the model gives.
same()
{
	run "$here/tiny.ra" "$tmp/trees" --at "$1" --rules all
	plain=$out
	made "$tmp/tiny.espalier" --at "$1"
	tap_is "$status,$out,$err" "0,," "$backend: a program is compiled for outputs at $1"
	alone "$tmp/tiny.espalier" "$tmp/trees" --weights "$tmp/tiny.safetensors" --at "$1"
	tap_is "$status,$out" "0,$plain" "it gives the same without a back end"
	made "$tmp/packed.espalier" --at "$1" --pack
	alone "$tmp/packed.espalier" "$tmp/trees" --at "$1"
	tap_is "$status,$out" "0,$plain" "and with its weights in it"
	esp compile "$tmp/tiny.espalier" --weights "$tmp/tiny.safetensors" --pack -o "$tmp/again.espalier"
	cmp -s "$tmp/again.espalier" "$tmp/packed.espalier"
	tap_ok $? "which can be added later"
}

esp compile "$here/tiny.ra" --sizes V=4,D=2 --no-cache -o "$tmp/sized.espalier"
made "$tmp/tiny.espalier"
tap_is "$status,$(cmp "$tmp/sized.espalier" "$tmp/tiny.espalier")" "0," "sizes alone make the same program as weights"
esp compile "$tmp/tiny.espalier" --sizes V=4,D=3 -o "$tmp/other.espalier"
refused 2 "--sizes goes with a model" "a compiled program has the sizes that it has"

run "$here/tiny.ra" "$tmp/trees" --rules all
plain=$out
made "$tmp/served.espalier" --continuous
! cmp -s "$tmp/served.espalier" "$tmp/tiny.espalier"
tap_ok $? "a program for a service is another one"
alone "$tmp/served.espalier" "$tmp/trees" --weights "$tmp/tiny.safetensors"
tap_is "$status,$out" "0,$plain" "that gives the same"

for backend in "${backends[@]}"; do
	same root
	same all
done
backend=${backends[0]}
alone "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --no-cache
refused 1 backend-not-found "a model cannot be run there"

# What the command loads, as the dynamic linker tells it; a statically linked one tells nothing.
LD_DEBUG=files LD_DEBUG_OUTPUT=$tmp/loaded esp run "$tmp/packed.espalier" "$tmp/trees" --vocab "$tmp/words"
tap_is "$status,$(cat "$tmp"/loaded.* | grep -cE 'libLLVM|libgccjit|espalier-[a-z]*\.so')" "0,0" \
	"no compiler is loaded, even where there is one"

esp check "$tmp/packed.espalier" "$tmp/trees" --vocab "$tmp/words"
tap_is "$status,$(tail -n 1 <<<"$out")" "0,    trees 3, nodes 9" "a program and a file of structures are checked"
esp check "$tmp/tiny.espalier" --weights "$tmp/tiny.safetensors"
tap_is "$status,$(head -n 1 <<<"$out")" "0,OK: a compiled program" "and weights for it"
alone_profile()
{
	ESPALIER_BACKEND_PATH=$tmp esp profile "$@" "$tmp/trees" --vocab "$tmp/words" --runs 3 --no-cache
	tap_is "$status,$(sed -n '1s/.*\///p' <<<"$out" | grep -c 'espalier, V = 4, D = 2$')" "0,1" "a program is profiled: $*"
}
alone_profile "$tmp/packed.espalier"
alone_profile "$tmp/tiny.espalier" --weights "$tmp/tiny.safetensors"

# --- refusals ---

made "$tmp/root.espalier"
alone "$tmp/root.espalier" "$tmp/trees" --weights "$tmp/tiny.safetensors" --at all
refused 2 "compile it with --at all" "outputs that were not compiled"
alone "$tmp/root.espalier" "$tmp/trees"
refused 2 "give --weights FILE" "a program that has no weights"
alone "$tmp/packed.espalier" "$tmp/trees" --math exact
refused 2 "--math goes with a model" "what was decided when it was compiled"
alone "$tmp/packed.espalier" "$tmp/trees" --continuous
refused 2 "--continuous goes with a model" "nor is it compiled for a service later"
esp explain "$tmp/packed.espalier" --weights "$tmp/tiny.safetensors"
refused 2 "is a compiled program" "a program where a model is needed"
head -c 2000 "$tmp/packed.espalier" >"$tmp/short.espalier"
alone "$tmp/short.espalier" "$tmp/trees"
refused 1 bad-image "a program that was cut off"
# A processor that this one is not; the second back end compiles for its own architecture only.
other=avx512
[ $backend != llvm ] || [ "$(uname -m)" = aarch64 ] || other=aarch64
if [ $other = avx512 ] && grep -qw avx512vl /proc/cpuinfo; then
	tap_skip "this processor has all that there is" "a program for another machine"
else
	made "$tmp/other.espalier" --target-cpu $other
	alone "$tmp/other.espalier" "$tmp/trees" --weights "$tmp/tiny.safetensors"
	refused 1 target-not-here "a program for another machine"
fi
echo before >"$tmp/old.espalier"
# From the cache, since a compiler may write files of its own.
kept=(compile "$here/tiny.ra" --weights "$tmp/tiny.safetensors" --cache-dir "$tmp/cache" --pack)
esp "${kept[@]}" -o "$tmp/new.espalier"
(ulimit -f 1; trap '' XFSZ; "$ESPALIER" "${kept[@]}" -o "$tmp/old.espalier") 2>"$tmp/err"
tap_is "$?,$(grep -c cannot-write "$tmp/err"),$(cat "$tmp/old.espalier"),$(ls "$tmp" | grep -c 'old.espalier.')" \
	"1,1,before,0" \
	"a file that cannot be written whole leaves the old one, and nothing else"

# --- objects ---

for target in generic aarch64; do
	[ $target = generic ] || [ $backend = llvm ] || continue
	made "$tmp/tree.o" --target-cpu $target --pack
	tap_is "$status" 0 "an object for $target"
	case $target in generic) machine=X86-64 ;; aarch64) machine=AArch64 ;; esac
	tap_is "$(readelf -h "$tmp/tree.o" | grep -c "REL (Relocatable file)\|$machine")" 2 "is one of that machine"
	tap_is "$(readelf -sW "$tmp/tree.o" | awk '/OBJECT/ { print $8, $5 }' | sort | tr '\n' ' ')" \
		"tree_program GLOBAL tree_size GLOBAL " "with two symbols"
	tap_is "$(readelf -SW "$tmp/tree.o" | awk '$3 == ".rodata" { print $NF }'),$(readelf -SW "$tmp/tree.o" | grep \
		-c GNU-stack)" \
		"64,1" "aligned, and with no wish for an executable stack"
done
tap_is "$(grep -c 'tree_input_word = 0\|tree_output_total = 1\|tree_size_V = 4' "$tmp/tree.h")" 3 \
	"the header has the numbers"
made "$tmp/tree.o" --name oak
tap_is "$(grep -c 'oak_program\[\]' "$tmp/tree.h"),$(readelf -sW "$tmp/tree.o" | grep -c 'oak_program')" "1,1" \
	"symbols have the name that is given"
if command -v aarch64-linux-gnu-readelf >/dev/null && [ $backend = llvm ]; then
	made "$tmp/tree.o" --target-cpu aarch64
	said=$(aarch64-linux-gnu-readelf -a "$tmp/tree.o" 2>&1 >/dev/null)
	tap_is "$?,$said" "0," "the tools of the other machine have nothing to say of its object"
else
	tap_skip "no LLVM back end, or no aarch64-linux-gnu-readelf" "the tools of the other machine"
fi
tap_done
