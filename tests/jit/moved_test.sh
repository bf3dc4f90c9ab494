#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# A library that was moved finds its back ends in the folder "espalier" beside it.
. "${srcdir:-.}/tests/tap.sh"

plugins=("$builddir"/.libs/espalier-{llvm,gccjit}.so)
for plugin in "${plugins[@]}"; do [ -e "$plugin" ] && break; done
if [ ! -e "$builddir/.libs/libespalier.so" ] || [ ! -e "$plugin" ]; then
	tap_skip "there is no shared library, or no back end" "a library that was moved"
	tap_done
fi
name=${plugin##*/espalier-} name=${name%.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset ESPALIER_BACKEND_PATH
cp "$builddir"/.libs/libespalier.so.? "$work"
model=$srcdir/examples/treelstm

# Runs with the library that was moved.
moved()
{
	LD_LIBRARY_PATH=$work "$builddir/.libs/espalier" run "$model/treelstm.ra" \
		--weights "$model/sst-treelstm-small.safetensors" \
		--vocab "$model/sst-vocab.txt" --no-cache --backend "$name" "$model/sentences.ptb" 2>&1
}

tap_is "$(moved | grep -c "looked in: $work/espalier")" 1 "the folder beside the library is searched first"
mkdir "$work/espalier"
cp "$plugin" "$work/espalier"
tap_is "$(moved | grep -c 'A lovely film')" 1 "the back end beside it is found"
tap_done
