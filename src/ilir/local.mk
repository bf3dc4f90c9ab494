# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/align_loads.c %D%/borders.h %D%/construct.c %D%/construct_statements.c %D%/clean.c %D%/clone.c %D%/describe_module.c %D%/calc.h %D%/expand_math.c %D%/expand_number.c %D%/fetch_ahead.c %D%/fit.c %D%/ilir.h \
	%D%/infer_bounds.c %D%/interpret.c %D%/interpret.h %D%/interpret_cells.c %D%/join.c %D%/lex_loops.c %D%/lex_loops.h %D%/loop_words.c %D%/lower_blocks.c %D%/lower_buffers.c %D%/lower_cut.c %D%/lower_group.c %D%/lower.h %D%/lower_move.c %D%/lower_program.c %D%/lower_scope.c \
	%D%/lower_rows.c %D%/lower_slots.c %D%/lower_sort.c %D%/lower_state.c %D%/lower_steps.c %D%/lower_storage.c %D%/lower_sum.c %D%/lower_type.c %D%/lower_value.c %D%/ilir_ops.def \
	%D%/outline.c %D%/pack.c %D%/parse_loops.c %D%/passes.c %D%/passes.def %D%/passes.h %D%/peel_borders.c %D%/place_heads.c %D%/print_loops.c %D%/query_loops.c \
	%D%/index_range.c %D%/resolve_borders.c %D%/pipeline.c %D%/share.c %D%/sink.c %D%/sink.h %D%/sink_masks.c %D%/sink_rows.c %D%/split_loops.c %D%/sweep.c %D%/spelling.h %D%/tile.c %D%/unroll.c %D%/bf16_nest.c %D%/matrix_nest.c %D%/matrix_nest.h %D%/use_matrices.c %D%/vectorize.c \
	%D%/verify.h %D%/verify_exprs.c %D%/verify_loops.c %D%/verify_matrices.c %D%/walk_loops.c
EXTRA_DIST += %D%/README.md
