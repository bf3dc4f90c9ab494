#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Each fault of faults.tsv (a file of src/mutate/, text in it, text in its place) is put into the propagation of boxes or
# into the comparison, and the test of random linear programs must fail with it; or into the layouts or corrections of
# mutants, and the test of generated mutants, or of mutants of products or of leaves, must; or into the cancelling of
# reorganisations, and the test of chains or that of single ones must.  Of the faults those in the sample are tried.
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
read -ra cc <<<"${CC:-cc}"
flags=(-std=c11 -O1 -w -D_GNU_SOURCE -I"$srcdir/src" -I"$srcdir" -I"$builddir")

# TEST SOURCES...: makes a test, with these in place of those of the library.
build()
{
	"${cc[@]}" "${flags[@]}" "$tmp/$1.o" "${@:2}" "$builddir/.libs/libespalier-internal.a" -lm -ldl -lpthread -fopenmp -o "$tmp/test" 2>"$tmp/errors"
}

# FILE: prints the tests of which a fault in it fails one.
find_tests()
{
	case $1 in
	shape_mutant.c | correct_mutant.c | search_mutants.c) echo generated_test ;;
	like_inner.c) echo leaves_test ;;
	cancel_moves.c) echo chains_test cancel_test ;;
	*_products.c) echo products_test ;;
	*) echo random_linear_test ;;
	esac
}

# TEST COUNT: runs what was built: of random programs as many as a fault may need, of chains one run, of mutants all.
run_test()
{
	case $1 in
	random_linear_test) "$tmp/test" 1 "$2" ;;
	chains_test) "$tmp/test" 1 240 ;;
	*) "$tmp/test" ;;
	esac >"$tmp/output" 2>&1
}

# FILE: whether one of its tests fails with what is in its place.
finds_fault()
{
	local test
	for test in $(find_tests "$1"); do
		build "$test" "$tmp/$1" && ! run_test "$test" 4000 && return
	done
	return 1
}

for test in random_linear_test generated_test products_test leaves_test chains_test cancel_test; do
	if ! "${cc[@]}" "${flags[@]}" -c "$srcdir/tests/mutate/$test.c" -o "$tmp/$test.o" 2>"$tmp/errors" || ! build $test; then
		tap_skip "the library cannot be linked with plain options" "seeded faults are found"
		tap_done
	fi
	run_test $test 400
	tap_ok $? "without a fault $test passes"
done

number=0
while IFS=$'\t' read -r file old new; do
	tap_in_sample $((number++)) || continue
	text=$(<"$srcdir/src/mutate/$file")
	rest=${text#*"$old"}
	what="$file: '$old' as '$new'"
	if [ "$rest" = "$text" ] || [ "${rest#*"$old"}" != "$rest" ]; then
		tap_ok 1 "$what: is there once"
		continue
	fi
	printf '%s\n' "${text/"$old"/"$new"}" >"$tmp/$file"
	build "$(find_tests "$file" | cut -d' ' -f1)" "$tmp/$file"
	tap_ok $? "$what: compiles" || continue
	finds_fault "$file"
	tap_ok $? "$what: is found"
done <"$srcdir/tests/mutate/faults.tsv"
tap_done
