# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/bind_sizes.c %D%/build.c %D%/builder.c %D%/builder.h %D%/calls.c %D%/check_bodies.c %D%/check_graph.c %D%/cones.c %D%/declare.c %D%/declare_cases.c \
	%D%/expand.c %D%/expression.c %D%/finish.c %D%/syntax.h %D%/keep.c %D%/lex.c %D%/read_model.c %D%/ra_ops.def \
	%D%/nest.c %D%/nest.h %D%/nest_elements.c %D%/nest_extents.c %D%/parse.c %D%/parse_dims.c %D%/parse_nest.c %D%/prelude.c %D%/print.h %D%/print_model.c %D%/print_nest.c %D%/ra.h %D%/report.c %D%/resolve.c %D%/shape.c %D%/take_tokens.c %D%/types.c \
	%D%/values.c %D%/values.h
EXTRA_DIST += %D%/README.md
