#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The package for Python: its wheel is built with the library of this build and put into a virtual environment of its own,
# where python/tests are run.  Skipped where Python lacks what that needs.
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd)

# The first Python that has all of it.
find_python()
{
	local python
	for python in /usr/bin/python3 python3; do
		"$python" - <<-'PY' >/dev/null 2>&1 && { echo "$python"; return; }
			import os, sys, sysconfig
			import numpy, pytest, setuptools, venv, wheel
			assert sys.version_info >= (3, 11) and os.path.exists(sysconfig.get_path("include") + "/Python.h")
		PY
	done
}

# Writes the wheel's files to a new environment.
install_package()
{
	cp -rL "$source/python" "$work/python" && mkdir -p "$work/src" && ln -s "$source/src/api" "$work/src/api" &&
		chmod -R u+w "$work/python" && cd "$work/python" &&
		ESPALIER_BUILD=$builddir ESPALIER_CFLAGS="-Werror $sanitize" LDFLAGS=$sanitize "$python" setup.py -q bdist_wheel &&
		"$python" -m venv --system-site-packages --without-pip "$work/venv" &&
		"$python" -m zipfile -e dist/espalier-*-cp311-abi3-linux_*.whl "$(echo "$work"/venv/lib/python3.*/site-packages)" &&
		chmod +x "$work"/venv/lib/python3.*/site-packages/espalier/_lib/{bin/espalier,espalier/espalier-compile}
}

python=$(find_python)
library=$builddir/.libs/libespalier.so
sanitize='' preload=''
if [ -z "$python" ] || [ ! -e "$library" ]; then
	tap_skip "no Python 3.11 with its headers, NumPy, pytest, setuptools and wheel, or no shared library" "the package for Python"
	tap_done
elif nm -D "$library" | grep -q __tsan_; then
	tap_skip "ThreadSanitizer must be there from the beginning" "the package for Python"
	tap_done
elif nm -D "$library" | grep -q __asan_; then
	sanitize=-fsanitize=address preload=$(gcc -print-file-name=libasan.so)
	export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:${ASAN_OPTIONS-}
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! (install_package) >"$work/log" 2>&1; then
	sed 's/^/# /' "$work/log"
	tap_ok 1 "the wheel is built"
	tap_done
fi
tap_ok 0 "the wheel is built"
# The package finds its own back ends; each test is a line of the report.
cd "$work" || exit 1
env -u ESPALIER_BACKEND_PATH ESPALIER_EXAMPLES="$source/examples" ESPALIER_REPORT="$work/report" LD_PRELOAD="$preload" \
	"$work/venv/bin/python" -m pytest -q -p no:cacheprovider "$work/python/tests" >"$work/log" 2>&1
status=$?
touch "$work/report"
while IFS=$'\t' read -r outcome name why; do
	case $outcome in
	passed) tap_ok 0 "$name" ;;
	skipped) tap_skip "$why" "$name" ;;
	*) tap_ok 1 "$name" ;;
	esac
done <"$work/report"
[ $status = 0 ] || sed 's/^/# /' "$work/log"
tap_is $status 0 "pytest comes to its end"
tap_done
