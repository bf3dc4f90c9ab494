#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Checks the installed library as its users see it: the header compiles alone in C and C++; pkg-config and CMake give all
# that a program needs; the installed examples build with nothing else, linked either way, and run.
#   installcheck.sh DESTDIR PKGCONFIGDIR LIBDIR LIBEXECDIR BINDIR MANDIR DATADIR DOCDIR CC
set -euo pipefail
destdir=$1 pkgconfig=$2 libdir=$3 libexecdir=$4 bindir=$5 mandir=$6 datadir=$7 docdir=$8 cc=$9
examples=$destdir$docdir/examples example=$examples/treelstm
espalier=$destdir$bindir/espalier archive=$destdir$libdir/libespalier.a
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export PKG_CONFIG_PATH=$destdir$pkgconfig
export LD_LIBRARY_PATH=$destdir$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ -z "$destdir" ] || export PKG_CONFIG_SYSROOT_DIR=$destdir
# Installed in its place the library finds its plug-ins and the helper by itself; below a DESTDIR it must be told.
unset ESPALIER_BACKEND_PATH
[ -z "$destdir" ] || export ESPALIER_BACKEND_PATH=$destdir$libdir/espalier:$destdir$libexecdir/espalier
export XDG_CACHE_HOME=$work/cache

say()
{
	echo "installed: $*"
}

fail()
{
	echo "not as it should be installed: $*" >&2
	exit 1
}

# same FILE FILE: fails with the difference.
same()
{
	diff "$1" "$2" >&2 || fail "$1 and $2 differ"
}

check_files()
{
	local file
	for file in "$mandir"/man1/espalier.1 "$mandir"/man7/espalier-{algebra,diagnostics,model}.7 \
		"$datadir"/bash-completion/completions/espalier "$datadir"/fish/vendor_completions.d/espalier.fish \
		"$datadir"/zsh/site-functions/_espalier "$docdir"/{README,CHANGELOG,doc/linking,doc/model-text}.md "$docdir"/{LICENSE,doc/profile.svg} \
		"$docdir"/examples/{treelstm/sst-vocab.txt,dependency/words.txt,ahead/README.md}; do
		[ -s "$destdir$file" ] || fail "$destdir$file is missing"
	done
}

# A program that links the library does not need the .pc files of the library's own dependencies.
check_pkg_config()
{
	local flag
	env -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR="$destdir$pkgconfig" pkg-config --cflags --libs espalier >"$work/said"
	env -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR="$destdir$pkgconfig" pkg-config --static --libs espalier >"$work/static"
	for flag in -ljansson -fopenmp -pthread; do
		grep -q -e "$flag" "$work/static" || fail "pkg-config --static lacks $flag"
	done
}

check_header()
{
	local flags standard
	read -ra flags < <(pkg-config --cflags espalier)
	echo '#include <espalier_service.h>' >"$work/alone.c"
	cp "$work/alone.c" "$work/alone.cc"
	$cc -std=c11 -pedantic -Wall -Wextra -Werror "${flags[@]}" -fsyntax-only "$work/alone.c"
	for standard in c++11 c++20; do
		c++ -std=$standard -pedantic -Wall -Wextra -Werror "${flags[@]}" -fsyntax-only "$work/alone.cc"
	done
}

# run_embed PROGRAM: over the sentences of the example, without the times that end what it prints.
run_embed()
{
	"$1" "$example/treelstm.ra" "$example"/{sst-treelstm-small.safetensors,sst-vocab.txt,sentences.ptb} | sed '$d'
}

# The example by a program and by the command; a program finds the library by its soname.
check_shared()
{
	local flags libs output trees soname
	read -ra flags < <(pkg-config --cflags espalier)
	read -ra libs < <(pkg-config --libs espalier)
	$cc -std=c11 -Wall -Wextra "$example/embed.c" "${flags[@]}" -o "$work/embed" "${libs[@]}"
	run_embed "$work/embed" >"$work/embedded"
	"$espalier" run "$example/treelstm.ra" --weights "$example/sst-treelstm-small.safetensors" \
		--vocab "$example/sst-vocab.txt" "$example/sentences.ptb" >"$work/run"
	"$espalier" run "$example/treelstm.ra" --weights "$example/sst-treelstm-small.safetensors" --no-cache --compile-in helper \
		--vocab "$example/sst-vocab.txt" "$example/sentences.ptb" >"$work/apart"
	same "$work/run" "$work/apart"
	trees=$(wc -l <"$example/sentences.ptb")
	for output in embedded run; do
		[ "$(wc -l <"$work/$output")" -ge "$trees" ] || fail "$output lacks sentences"
	done
	soname=$(objdump -p "$work/embed" | sed -n 's/^ *NEEDED *\(libespalier.*\)/\1/p')
	[ -z "$soname" ] || [ -e "$destdir$libdir/$soname" ] || fail "$soname is missing"
	"$espalier" init "$work/new.ra" >"$work/said"
	"$espalier" check "$work/new.ra" >"$work/said"
}

# The archive defines what the header declares, and no name that could clash with another library.
check_archive()
{
	nm -g --defined-only "$archive" 2>"$work/said" | awk 'NF == 3 { print $3 }' | sort >"$work/defined"
	grep -oh '\besp_[a-z0-9_]*(' "$destdir$(pkg-config --variable=includedir espalier | sed "s|^$destdir||")"/espalier*.h |
		tr -d '(' | sort -u >"$work/declared"
	[ -s "$work/defined" ] || fail "$archive defines nothing"
	grep -v '^esp_' "$work/defined" >&2 && fail "$archive defines these"
	comm -13 "$work/declared" "$work/defined" >"$work/private"
	[ ! -s "$work/private" ] || fail "$archive defines what the header does not declare: $(cat "$work/private")"
}

# Linked statically, a program runs what was compiled ahead of time. It loads no back end, but says so.
check_static()
{
	local flags libs status=0
	read -ra flags < <(pkg-config --static --cflags espalier)
	read -ra libs < <(pkg-config --static --libs espalier)
	echo 'int main(void) { return 0; }' >"$work/empty.c"
	if ! $cc -static "$work/empty.c" -o "$work/empty" "${libs[@]}" 2>"$work/said"; then
		say "no program is linked statically: $(grep -m 1 -e 'cannot find' -e incompatible "$work/said")"
		return
	fi
	$cc -static "$example/embed.c" "${flags[@]}" -o "$work/embed-static" "${libs[@]}" 2>"$work/said" || fail "$(cat "$work/said")"
	run_embed "$work/embed-static" >"$work/static" 2>"$work/said" || status=$?
	case $status in
	0) same "$work/embedded" "$work/static" ;;
	1) grep -q backend-unusable "$work/said" || fail "$(cat "$work/said")" ;;
	*) fail "a static program ends with status $status" ;;
	esac

	"$espalier" compile "$example/treelstm.ra" --weights "$example/sst-treelstm-small.safetensors" --pack -o "$work/tree.o"
	$cc -I"$work" "$examples/ahead/sentiment.c" "$work/tree.o" "${flags[@]}" -o "$work/ahead" $(pkg-config --libs espalier)
	$cc -static -I"$work" "$examples/ahead/sentiment.c" "$work/tree.o" "${flags[@]}" -o "$work/ahead-static" "${libs[@]}" \
		2>"$work/said" || fail "$(cat "$work/said")"
	"$work/ahead" >"$work/wanted"
	"$work/ahead-static" >"$work/found"
	same "$work/wanted" "$work/found"
	say "a program that is linked statically runs a model that was compiled ahead of time"
	check_static_helper "${flags[@]}" "${libs[@]}"
}

# check_static_helper FLAG...: the same program, told to compile in the helper, which loads the back end for it.
check_static_helper()
{
	local options='.size = sizeof(esp_context_options), .compile_in = ESP_COMPILE_IN_HELPER, .cache = ESP_CACHE_OFF'
	sed "s/esp_context_create(NULL,/esp_context_create(\&(esp_context_options){$options},/" "$example/embed.c" >"$work/apart.c"
	grep -q ESP_COMPILE_IN_HELPER "$work/apart.c" || fail "embed.c makes its context otherwise"
	$cc -static "$work/apart.c" "$@" -o "$work/apart-static" 2>"$work/said" || fail "$(cat "$work/said")"
	run_embed "$work/apart-static" >"$work/apart"
	same "$work/embedded" "$work/apart"
	say "a program that is linked statically compiles in the helper program"
}

check_cmake()
{
	local target targets=espalier::espalier
	[ -n "$(command -v cmake)" ] || { say "no cmake: its package file was not tried"; return; }
	[ ! -e "$archive" ] || targets+=' espalier::static'
	mkdir "$work/cmake"
	cat >"$work/cmake/CMakeLists.txt" <<-CMAKE
		cmake_minimum_required(VERSION 3.13)
		project(embed C)
		find_package(espalier $(pkg-config --modversion espalier) REQUIRED)
		foreach(target $targets)
		  string(REPLACE "::" "-" program \${target})
		  add_executable(\${program} "$example/embed.c")
		  target_link_libraries(\${program} \${target})
		endforeach()
	CMAKE
	CC=$cc cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH= \
		-Despalier_DIR="$destdir$libdir/cmake/espalier" >"$work/said" 2>&1 &&
		cmake --build "$work/cmake/build" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
	for target in $targets; do
		run_embed "$work/cmake/build/${target/::/-}" >"$work/by-cmake"
		same "$work/embedded" "$work/by-cmake"
	done
	say "CMake finds $targets"
}

check_files
check_pkg_config
check_header
check_shared
[ ! -e "$archive" ] || { check_archive; check_static; }
check_cmake
say "espalier $(pkg-config --modversion espalier); the examples run"
