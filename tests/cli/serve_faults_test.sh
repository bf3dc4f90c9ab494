#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Memory runs out in a server, by an allocator that is preloaded.
. "${srcdir:-.}/tests/cli/serve.sh"
if grep -qs -e '-fsanitize' "$builddir/config.status"; then
	tap_skip "a sanitizer has an allocator of its own" "memory runs out"
	tap_done
fi
if ! nm -D "$builddir/tests/faults/.libs/refuse_memory.so" 2>/dev/null | grep -q ' T malloc$'; then
	tap_skip "the C library's allocator cannot be replaced" "memory runs out"
	tap_done
fi
serve_tests serve_faults.py
