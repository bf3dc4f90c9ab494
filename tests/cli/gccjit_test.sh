# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The back end gccjit: the same bits as another's, and whatever stops its compiler is a diagnostic, after which nothing
# is left behind.
. "${srcdir:-.}/tests/cli/support.sh"
if ! has_backend gccjit; then
	tap_skip "no libgccjit back end" "what stops a compiler"
	tap_done
fi
mkdir "$tmp/work" "$tmp/bin"
export TMPDIR=$tmp/work

# compiled OPTION...: the example, compiled anew.
compiled()
{
	esp run "$example/treelstm.ra" "$example/sentences.ptb" --weights "$example/sst-treelstm-small.safetensors" \
		--vocab "$example/sst-vocab.txt" --no-cache "$@"
}

# left: what is in the folder for temporary files.
left()
{
	find "$tmp/work" -mindepth 1
}

compiled --backend interpreter
wanted=$out
compiled --backend gccjit
tap_ok "$status" "it compiles" || show
[ -n "$out" ] && [ "$out" = "$wanted" ] && [ -z "$err" ]
tap_ok $? "and computes what the interpreter does"
tap_is "$(left)" "" "no file is left"

compiled --backend gccjit --target-cpu aarch64
refused 1 "target-not-here" "another machine's code is not run"
esp dump asm "$example/treelstm.ra" --weights "$example/sst-treelstm-small.safetensors" --backend gccjit \
	--target-cpu aarch64
refused 1 "makes no code for aarch64" "nor made"

ln -s /usr/bin/* "$tmp/bin"
rm -f "$tmp"/bin/{,*-}as
PATH=$tmp/bin compiled --backend gccjit
refused 1 "cannot execute 'as'" "without an assembler it says so"
tap_is "$(left)" "" "no file is left"

# A file-size limit stops writing as a full disk does.
(
	trap '' XFSZ
	ulimit -f 1
	"$ESPALIER" run "$example/treelstm.ra" "$example/sentences.ptb" --no-cache --backend gccjit \
		--weights "$example/sst-treelstm-small.safetensors" --vocab "$example/sst-vocab.txt" 2>&1 >/dev/null | cat
) >"$tmp/full"
grep -q "compile-failed" "$tmp/full"
tap_ok $? "where nothing can be written it says so"
tap_is "$(left)" "" "no file is left"

TMPDIR=$tmp/nowhere compiled --backend gccjit
TMPDIR=$tmp/work
refused 1 "nowhere" "a folder that is not there is named"
tap_done
