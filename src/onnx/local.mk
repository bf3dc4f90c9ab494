# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/graph.c %D%/graph.h %D%/onnx_types.def
EXTRA_DIST += %D%/README.md
