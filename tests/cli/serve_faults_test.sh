#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Memory runs out in a server, and calls of the system fail, by a library that is preloaded.
. "${srcdir:-.}/tests/cli/serve.sh"
if grep -qs -e '-fsanitize' "$builddir/config.status"; then
	tap_skip "a sanitizer has an allocator of its own" "calls fail in a server"
	tap_done
fi
if ! nm -D "$builddir/tests/faults/.libs/refuse.so" 2>/dev/null | grep -q ' T malloc$'; then
	tap_skip "the C library's allocator cannot be replaced" "calls fail in a server"
	tap_done
fi
serve_tests serve_faults.py
