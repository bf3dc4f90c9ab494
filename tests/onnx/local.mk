# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Tests of ONNX files, as far as the build reads them.
unit_tests += %D%/absent_test %D%/control_test %D%/import_test %D%/quantised_test
if ONNX
unit_tests += %D%/cases_test %D%/failures_test %D%/iterate_test %D%/join_test %D%/model_test %D%/read_test
%D%/model_test.$(OBJEXT) %D%/read_test.$(OBJEXT): src/onnx/onnx.pb-c.h
endif
EXTRA_DIST += %D%/absent_test.c %D%/bodies.h %D%/cases_test.c %D%/encode.h %D%/failures_test.c %D%/control_test.c %D%/import_test.c %D%/imports.h %D%/iterate_test.c %D%/join_test.c %D%/messages.h %D%/model_test.c %D%/quantised_test.c %D%/qlinear %D%/qlinear/README.md %D%/read_test.c %D%/refused.tsv %D%/runnable.h %D%/write_qlinear.py
