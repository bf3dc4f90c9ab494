#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Many requests while other clients break off or send garbage, and weights are exchanged.
. "${srcdir:-.}/tests/cli/serve.sh"
serve_tests serve_endure.py
