# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/build.c %D%/clean.c %D%/clone.c %D%/describe.c %D%/calc.h %D%/expand_math.c %D%/expand_number.c %D%/fetch_ahead.c %D%/fit.c %D%/ilir.h \
	%D%/infer_bounds.c %D%/interpret.c %D%/lex.c %D%/lex.h %D%/lower.c %D%/lower.h %D%/lower_move.c %D%/lower_program.c %D%/lower_scope.c \
	%D%/lower_slots.c %D%/lower_state.c %D%/lower_type.c %D%/ops.def \
	%D%/outline.c %D%/pack.c %D%/parse.c %D%/passes.c %D%/passes.def %D%/passes.h %D%/print.c \
	%D%/range.c %D%/share.c %D%/sink.c %D%/split_loops.c %D%/sweep.c %D%/text.h %D%/tile.c %D%/unroll.c %D%/vectorize.c \
	%D%/verify.c %D%/walk.c
EXTRA_DIST += %D%/README.md
