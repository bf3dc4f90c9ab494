#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What is asked and answered over HTTP, and with which status.
. "${srcdir:-.}/tests/cli/serve.sh"
serve_tests serve_requests.py
