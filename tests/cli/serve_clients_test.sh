#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Clients that break off, are silent, slow, or too many.
. "${srcdir:-.}/tests/cli/serve.sh"
serve_tests serve_clients.py
