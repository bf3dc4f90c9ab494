#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# ONNX files are served: arrays in and out with the shapes of the graph.
. "${srcdir:-.}/tests/cli/serve.sh"
serve_tests serve_onnx.py
