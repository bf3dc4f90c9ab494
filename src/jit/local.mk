# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/compile.c %D%/jit.h %D%/load.c
EXTRA_DIST += %D%/README.md
