# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/builtins.def %D%/fixed_point.c %D%/fixed_point.h %D%/flatbuffer.c %D%/flatbuffer.h %D%/lite.h %D%/lite_elementwise.c %D%/lite_lstm.c %D%/lite_operators.c \
	%D%/moves.c %D%/pools.c %D%/convolutions.c %D%/quantisation.c %D%/read_tflite.c %D%/requantise.c %D%/requantise.h %D%/schema.def %D%/tflite_ops.def
EXTRA_DIST += %D%/README.md
