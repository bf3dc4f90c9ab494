#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The build names its files one by one; none may be forgotten, and none be named that is not there.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1

# Every word of the fragments that could be a file, with %D% as the folder of the fragment.
named()
{
	local fragment
	find src tools doc cmake examples bench tests debian python -name local.mk | while read -r fragment; do
		sed -e 's/#.*//' -e "s,%D%,${fragment%/local.mk},g" "$fragment" | tr -s ' \t\\' '\n' | grep -E '^[a-z][a-z0-9_./-]*/'
	done | sort -u
}

# Sources and tests that no fragment names; a unit test is named without its ending.  What pip builds lies in
# python/build.
missing()
{
	comm -23 <(find src tools doc bench tests python ! -path 'python/build/*' \( -path '*/*.c' -o -path 'python/*.h' -o \
		-path 'python/*.py' -o -path 'python/*.pyi' -o -path 'python/*.ipynb' -o -path 'src/*.h' -o -name '*.def' \
		-o -path 'doc/*.md' -o -path 'tools/*.ra' -o -name README.md -o -path '*_test.sh' \) | sort) \
		<({ named; named | sed 's/$/.c/'; } | sort -u)
}

# Texts and numbers that no fragment names, neither themselves nor by a folder that they lie in: what tests read from
# them would be missing from the archive, of which only some tests are run.
unnamed()
{
	awk 'FNR == NR { named[$0]; next }
		{ for (at = $0; !(at in named) && sub(/\/[^\/]*$/, "", at);); if (!(at in named)) print }' \
		<(named) <(find examples tests -type f -regex '.*\.\(conllu\|def\|dict\|golden\|h\|json\|jsonl\|npy\|npz\|ptb\|py\|ra\|safetensors\|sched\|sh\|supp\|tsv\|txt\)' | sort)
}

# What the build itself makes of a description (protoc-c) need not be there.
absent()
{
	local name
	named | grep -E '\.(c|h|def|md|ra|sh|py|map)$' | grep -v '\.pb-c\.' | while read -r name; do
		[ -e "$name" ] || echo "$name"
	done
}

# Names that two files under src/ have; the back ends of jit/ are made of the same pieces.
twice()
{
	find src -name '*.[ch]' ! -path 'src/jit/*/*' -printf '%f\n' | sort | uniq -d
}

tap_is "$(twice)" "" "no two files have the same name"
tap_is "$(missing)" "" "every source and every test is part of the build"
tap_is "$(unnamed)" "" "what tests read is part of the archive"
tap_is "$(absent)" "" "what the build names exists"
tap_done
