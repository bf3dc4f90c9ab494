# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Tests of models of TensorFlow Lite.
unit_tests += %D%/lite_cases_test %D%/lite_refused_test %D%/requantise_test
shell_tests += %D%/gemmlowp_test.sh
EXTRA_DIST += %D%/README.md %D%/cases %D%/flatbuffer.py %D%/gemmlowp.cc %D%/gemmlowp_test.sh %D%/refused %D%/write_cases.py %D%/write_refused.py
