#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Starting, reloading and ending; sockets; the access log.
. "${srcdir:-.}/tests/cli/serve.sh"
serve_tests serve_signals.py
