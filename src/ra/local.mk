# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/bind.c %D%/build.c %D%/builder.c %D%/builder.h %D%/calls.c %D%/cones.c %D%/declare.c \
	%D%/expand.c %D%/expression.c %D%/finish.c %D%/internal.h %D%/keep.c %D%/lex.c %D%/model.c %D%/ops.def \
	%D%/parse.c %D%/prelude.c %D%/print.c %D%/ra.h %D%/report.c %D%/resolve.c %D%/shape.c %D%/types.c \
	%D%/values.c %D%/values.h
EXTRA_DIST += %D%/README.md
