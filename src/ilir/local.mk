libespalier_internal_la_SOURCES += \
	%D%/build.c %D%/clean.c %D%/clone.c %D%/describe.c %D%/fit.c %D%/ilir.h %D%/infer_bounds.c \
	%D%/lower.c %D%/lower.h %D%/lower_program.c %D%/ops.def %D%/outline.c %D%/pack.c %D%/passes.c \
	%D%/passes.def %D%/passes.h %D%/range.c %D%/sink.c %D%/split_loops.c %D%/tile.c %D%/unroll.c \
	%D%/vectorize.c %D%/walk.c
