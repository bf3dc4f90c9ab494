#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Fixed point as gemmlowp computes it (Debian's libgemmlowp-dev): 5 million products and divisions, and every number of 16 bits
# through the logistic function and the hyperbolic tangent.
. "${srcdir:-.}/tests/tap.sh"

header=$(echo '#include <gemmlowp/fixedpoint/fixedpoint.h>' | g++ -x c++ -E - 2>/dev/null | grep -c 'class FixedPoint')
if [ "${header:-0}" = 0 ]; then
	tap_skip "fixed point as gemmlowp computes it" "libgemmlowp-dev or g++ is not installed"
	tap_done
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -std=c11 -I"${srcdir:-.}/src" -c "${srcdir:-.}/src/tflite/fixed_point.c" -o "$work/fixed_point.o" &&
	g++ -O2 -I"${srcdir:-.}/src" "${srcdir:-.}/tests/tflite/gemmlowp.cc" "$work/fixed_point.o" -o "$work/compare" -lm
tap_is $? 0 "the comparison compiles"
tap_is "$("$work/compare")" "factors 0, logistic 0, tanh 0" "no number differs"
tap_done
